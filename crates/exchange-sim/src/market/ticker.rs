//! Price statistics of a window, in the shapes of REST and of the streams.

use serde_json::{Map, Value, json};

use super::Market;
use super::levels::Level;
use crate::interval::Millis;
use crate::number::{self, Money, Price, Quantity};
use crate::stream::hub::Hub;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ticker {
    pub symbol: String,
    pub change: String,
    pub change_percent: String,
    pub average: String,
    /// `None` is not known, here and below.
    pub previous_close: Option<Price>,
    pub last: Price,
    pub last_quantity: Option<Quantity>,
    /// Best bid and ask.
    pub best: Option<(Level, Level)>,
    pub open: Price,
    pub high: Price,
    pub low: Price,
    pub volume: Quantity,
    pub quote_volume: Money,
    pub open_time: Millis,
    pub close_time: Millis,
    /// −1 if nothing traded.
    pub first_id: Option<i64>,
    pub last_id: Option<i64>,
    pub count: Option<u64>,
}

impl Ticker {
    /// Of what traded since `start`. Where a recording begins within the window, or lacks trades in it, the window is
    /// what is left of it, and says so.
    pub fn of(market: &Market, start: Millis, now: Millis) -> Self {
        let candles = &market.candles;
        let (known_start, close_time) = candles.coverage.latest_whole(start, now);
        let (open_time, traded) = if known_start > start.max(candles.coverage.since) {
            candles.since_second(known_start)
        } else {
            (known_start, candles.since(start))
        };
        let open_time = candles.recorded_opening(traded.as_ref(), open_time);
        let whole = open_time == start;
        let id = |id: u64| i64::try_from(id).unwrap_or(-1);
        let open = traded.map_or(0, |all| all.open);
        let last = traded.map_or(0, |all| all.close);
        let volume = traded.map_or(0, |all| all.volume);
        let quote_volume = traded.map_or(0, |all| all.quote_volume);
        Self {
            symbol: market.symbol.name.clone(),
            change: number::fixed_price(last - open),
            change_percent: number::percent(i128::from(last - open), i128::from(open)),
            average: number::fixed(if volume == 0 { 0 } else { quote_volume / volume }),
            previous_close: candles.close_before(start).or_else(|| whole.then_some(open)),
            last,
            last_quantity: market.tape.last().and_then(|trade| trade.quantity),
            best: market.best().ok(),
            open,
            high: traded.map_or(0, |all| all.high),
            low: traded.map_or(0, |all| all.low),
            volume,
            quote_volume,
            open_time: open_time.min(close_time),
            close_time,
            first_id: Some(traded.map_or(-1, |all| id(all.first_trade))),
            last_id: Some(traded.map_or(-1, |all| id(all.last_trade))),
            count: Some(traded.map_or(0, |all| all.trades)),
        }
    }

    /// With times as clients are told them.
    pub fn told(mut self, hub: &Hub) -> Self {
        self.open_time = hub.event_time(self.open_time);
        self.close_time = hub.event_time(self.close_time);
        self
    }

    /// The fields that are not known, by their names in REST. They have the value that says nothing, and no exchange has
    /// a list of them: clients that look for it can tell the two apart.
    fn unknown(&self, full: bool) -> Vec<&'static str> {
        let fields = [
            ("prevClosePrice", full && self.previous_close.is_none()),
            ("lastQty", full && self.last_quantity.is_none()),
            ("bidPrice", full && self.best.is_none()),
            ("bidQty", full && self.best.is_none()),
            ("askPrice", full && self.best.is_none()),
            ("askQty", full && self.best.is_none()),
            ("firstId", self.first_id.is_none()),
            ("lastId", self.last_id.is_none()),
            ("count", self.count.is_none()),
        ];
        let unknown = fields.into_iter().filter(|(_, unknown)| *unknown);
        unknown.map(|(name, _)| name).collect()
    }

    fn marked(&self, mut fields: Map<String, Value>, full: bool) -> Value {
        let unknown = self.unknown(full);
        if !unknown.is_empty() {
            fields.insert("unknown".into(), unknown.into());
        }
        Value::Object(fields)
    }

    fn essentials(&self) -> Map<String, Value> {
        let mut fields = Map::new();
        fields.insert("symbol".into(), self.symbol.clone().into());
        fields.insert("openPrice".into(), number::fixed_price(self.open).into());
        fields.insert("highPrice".into(), number::fixed_price(self.high).into());
        fields.insert("lowPrice".into(), number::fixed_price(self.low).into());
        fields.insert("lastPrice".into(), number::fixed_price(self.last).into());
        fields.insert("volume".into(), number::fixed(self.volume).into());
        fields.insert("quoteVolume".into(), number::fixed_money(self.quote_volume).into());
        fields.insert("openTime".into(), self.open_time.into());
        fields.insert("closeTime".into(), self.close_time.into());
        fields.insert("firstId".into(), self.first_id.unwrap_or(-1).into());
        fields.insert("lastId".into(), self.last_id.unwrap_or(-1).into());
        fields.insert("count".into(), self.count.unwrap_or(0).into());
        fields
    }

    /// `type=MINI` of every ticker endpoint.
    pub fn mini(&self) -> Value {
        self.marked(self.essentials(), false)
    }

    /// `type=FULL` of the rolling window and of the trading day.
    pub fn rolling(&self) -> Value {
        let mut fields = self.essentials();
        fields.insert("priceChange".into(), self.change.clone().into());
        fields.insert("priceChangePercent".into(), self.change_percent.clone().into());
        fields.insert("weightedAvgPrice".into(), self.average.clone().into());
        self.marked(fields, false)
    }

    /// `type=FULL` of the 24 hours.
    pub fn full(&self) -> Value {
        let mut fields = self.essentials();
        let mut put = |name: &str, text: String| fields.insert(name.into(), text.into());
        put("priceChange", self.change.clone());
        put("priceChangePercent", self.change_percent.clone());
        put("weightedAvgPrice", self.average.clone());
        put("prevClosePrice", number::fixed_price(self.previous_close.unwrap_or(0)));
        put("lastQty", number::fixed(self.last_quantity.unwrap_or(0)));
        let (bid, ask) = self.best.unwrap_or_default();
        put("bidPrice", number::fixed_price(bid.0));
        put("bidQty", number::fixed(bid.1));
        put("askPrice", number::fixed_price(ask.0));
        put("askQty", number::fixed(ask.1));
        self.marked(fields, true)
    }

    pub fn event(&self, event_time: Millis) -> Value {
        let (bid, ask) = self.best.unwrap_or_default();
        let event = json!({
            "e": "24hrTicker",
            "E": event_time,
            "s": self.symbol,
            "p": self.change,
            "P": self.change_percent,
            "w": self.average,
            "x": number::fixed_price(self.previous_close.unwrap_or(0)),
            "c": number::fixed_price(self.last),
            "Q": number::fixed(self.last_quantity.unwrap_or(0)),
            "b": number::fixed_price(bid.0),
            "B": number::fixed(bid.1),
            "a": number::fixed_price(ask.0),
            "A": number::fixed(ask.1),
            "o": number::fixed_price(self.open),
            "h": number::fixed_price(self.high),
            "l": number::fixed_price(self.low),
            "v": number::fixed(self.volume),
            "q": number::fixed_money(self.quote_volume),
            "O": self.open_time,
            "C": self.close_time,
            "F": self.first_id.unwrap_or(-1),
            "L": self.last_id.unwrap_or(-1),
            "n": self.count.unwrap_or(0)
        });
        match event {
            Value::Object(fields) => self.marked(fields, true),
            other => other,
        }
    }

    pub fn mini_event(&self, event_time: Millis) -> Value {
        json!({
            "e": "24hrMiniTicker",
            "E": event_time,
            "s": self.symbol,
            "c": number::fixed_price(self.last),
            "o": number::fixed_price(self.open),
            "h": number::fixed_price(self.high),
            "l": number::fixed_price(self.low),
            "v": number::fixed(self.volume),
            "q": number::fixed_money(self.quote_volume)
        })
    }
}
