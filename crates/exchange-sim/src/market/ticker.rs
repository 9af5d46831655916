//! Price statistics of a window, in the shapes of REST and of the streams.

use serde_json::{Map, Value, json};

use super::Market;
use super::levels::Level;
use crate::interval::Millis;
use crate::number::{self, Money, Price, Quantity};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ticker {
    pub symbol: String,
    pub change: String,
    pub change_percent: String,
    pub average: String,
    pub previous_close: Price,
    pub last: Price,
    pub last_quantity: Quantity,
    pub bid: Level,
    pub ask: Level,
    pub open: Price,
    pub high: Price,
    pub low: Price,
    pub volume: Quantity,
    pub quote_volume: Money,
    pub open_time: Millis,
    pub close_time: Millis,
    /// −1 if nothing traded.
    pub first_id: i64,
    pub last_id: i64,
    pub count: u64,
}

impl Ticker {
    pub fn of(market: &Market, start: Millis, now: Millis) -> Self {
        let traded = market.candles.since(start);
        let before = market.candles.close_before(start);
        let id = |id: u64| i64::try_from(id).unwrap_or(-1);
        let open = traded.map_or(0, |all| all.open);
        let last = traded.map_or(0, |all| all.close);
        let volume = traded.map_or(0, |all| all.volume);
        let quote_volume = traded.map_or(0, |all| all.quote_volume);
        let (bid, ask) = market.best();
        Self {
            symbol: market.symbol.name.clone(),
            change: number::fixed_price(last - open),
            change_percent: number::percent(i128::from(last - open), i128::from(open)),
            average: number::fixed(if volume == 0 { 0 } else { quote_volume / volume }),
            previous_close: before.unwrap_or(open),
            last,
            last_quantity: market.tape.last().map_or(0, |trade| trade.quantity),
            bid,
            ask,
            open,
            high: traded.map_or(0, |all| all.high),
            low: traded.map_or(0, |all| all.low),
            volume,
            quote_volume,
            // Where a recording began within the window it cannot speak of what was before.
            open_time: start.max(market.known_since),
            close_time: now,
            first_id: traded.map_or(-1, |all| id(all.first_trade)),
            last_id: traded.map_or(-1, |all| id(all.last_trade)),
            count: traded.map_or(0, |all| all.trades),
        }
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
        fields.insert("firstId".into(), self.first_id.into());
        fields.insert("lastId".into(), self.last_id.into());
        fields.insert("count".into(), self.count.into());
        fields
    }

    /// `type=MINI` of every ticker endpoint.
    pub fn mini(&self) -> Value {
        Value::Object(self.essentials())
    }

    /// `type=FULL` of the rolling window and of the trading day.
    pub fn rolling(&self) -> Value {
        let mut fields = self.essentials();
        fields.insert("priceChange".into(), self.change.clone().into());
        fields.insert("priceChangePercent".into(), self.change_percent.clone().into());
        fields.insert("weightedAvgPrice".into(), self.average.clone().into());
        Value::Object(fields)
    }

    /// `type=FULL` of the 24 hours.
    pub fn full(&self) -> Value {
        json!({
            "symbol": self.symbol,
            "priceChange": self.change,
            "priceChangePercent": self.change_percent,
            "weightedAvgPrice": self.average,
            "prevClosePrice": number::fixed_price(self.previous_close),
            "lastPrice": number::fixed_price(self.last),
            "lastQty": number::fixed(self.last_quantity),
            "bidPrice": number::fixed_price(self.bid.0),
            "bidQty": number::fixed(self.bid.1),
            "askPrice": number::fixed_price(self.ask.0),
            "askQty": number::fixed(self.ask.1),
            "openPrice": number::fixed_price(self.open),
            "highPrice": number::fixed_price(self.high),
            "lowPrice": number::fixed_price(self.low),
            "volume": number::fixed(self.volume),
            "quoteVolume": number::fixed_money(self.quote_volume),
            "openTime": self.open_time,
            "closeTime": self.close_time,
            "firstId": self.first_id,
            "lastId": self.last_id,
            "count": self.count
        })
    }

    pub fn event(&self, event_time: Millis) -> Value {
        json!({
            "e": "24hrTicker",
            "E": event_time,
            "s": self.symbol,
            "p": self.change,
            "P": self.change_percent,
            "w": self.average,
            "x": number::fixed_price(self.previous_close),
            "c": number::fixed_price(self.last),
            "Q": number::fixed(self.last_quantity),
            "b": number::fixed_price(self.bid.0),
            "B": number::fixed(self.bid.1),
            "a": number::fixed_price(self.ask.0),
            "A": number::fixed(self.ask.1),
            "o": number::fixed_price(self.open),
            "h": number::fixed_price(self.high),
            "l": number::fixed_price(self.low),
            "v": number::fixed(self.volume),
            "q": number::fixed_money(self.quote_volume),
            "O": self.open_time,
            "C": self.close_time,
            "F": self.first_id,
            "L": self.last_id,
            "n": self.count
        })
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
