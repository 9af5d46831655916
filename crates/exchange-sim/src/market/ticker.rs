//! Price statistics of a time window, in the shapes of REST and of the streams.

use serde::Serialize;
use serde_json::{Value, json};

use super::Market;
use crate::hub::Hub;
use crate::interval::Millis;
use crate::number;

/// `type=FULL` of the rolling window and of the trading day. Fields are named and ordered as in REST.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Ticker {
    #[serde(flatten)]
    pub mini: MiniTicker,
    pub price_change: String,
    pub price_change_percent: String,
    pub weighted_avg_price: String,
}

/// `type=MINI` of every ticker endpoint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MiniTicker {
    pub symbol: String,
    pub open_price: String,
    pub high_price: String,
    pub low_price: String,
    pub last_price: String,
    pub volume: String,
    pub quote_volume: String,
    pub open_time: Millis,
    pub close_time: Millis,
    /// −1 if nothing traded, like `last_id`.
    pub first_id: i64,
    pub last_id: i64,
    pub count: u64,
}

/// `type=FULL` of the 24 hours.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DayTicker {
    #[serde(flatten)]
    ticker: Ticker,
    prev_close_price: String,
    last_qty: String,
    bid_price: String,
    bid_qty: String,
    ask_price: String,
    ask_qty: String,
}

impl Ticker {
    /// Of what traded since `start`, a whole minute. Where a recording begins later or has a gap, the window is the
    /// part after that, and its times say so.
    pub fn since(market: &Market, start: Millis, now: Millis) -> Self {
        let candles = &market.candles;
        let (known_start, close_time) = candles.coverage.latest_complete(start, now);
        let (open_time, traded) = if known_start > start.max(candles.coverage.since) {
            candles.since_second(known_start)
        } else {
            (known_start, candles.since(start))
        };
        let id = |id: u64| i64::try_from(id).unwrap_or(-1);
        let (open, last) = traded.map_or((0, 0), |all| (all.open, all.close));
        let (high, low) = traded.map_or((0, 0), |all| (all.high, all.low));
        let (volume, quote_volume) = traded.map_or((0, 0), |all| (all.volume, all.quote_volume));
        Self {
            price_change: number::fixed_price(last - open),
            price_change_percent: number::percent(i128::from(last - open), i128::from(open)),
            weighted_avg_price: number::fixed(if volume == 0 { 0 } else { quote_volume / volume }),
            mini: MiniTicker {
                symbol: market.symbol.name.clone(),
                open_price: number::fixed_price(open),
                high_price: number::fixed_price(high),
                low_price: number::fixed_price(low),
                last_price: number::fixed_price(last),
                volume: number::fixed(volume),
                quote_volume: number::fixed_money(quote_volume),
                open_time: open_time.min(close_time),
                close_time,
                first_id: traded.map_or(-1, |all| id(all.first_trade)),
                last_id: traded.map_or(-1, |all| id(all.last_trade)),
                count: traded.map_or(0, |all| all.trades),
            },
        }
    }

    /// With times as the exchange's clock tells them.
    pub fn with_skew(mut self, hub: &Hub) -> Self {
        self.mini.open_time = hub.event_time(self.mini.open_time);
        self.mini.close_time = hub.event_time(self.mini.close_time);
        self
    }
}

impl DayTicker {
    /// Of the last 24 hours, with the last trade and the best levels; what is not known is zero.
    pub fn new(market: &Market, now: Millis, hub: &Hub) -> Self {
        let ticker = market.ticker(now);
        let (bid, ask) = market.best().unwrap_or_default();
        let last_quantity = market.tape.last().and_then(|trade| trade.quantity);
        let previous = market.candles.close_before(ticker.mini.open_time);
        Self {
            prev_close_price: number::fixed_price(previous.unwrap_or(0)),
            last_qty: number::fixed(last_quantity.unwrap_or(0)),
            bid_price: number::fixed_price(bid.0),
            bid_qty: number::fixed(bid.1),
            ask_price: number::fixed_price(ask.0),
            ask_qty: number::fixed(ask.1),
            ticker: ticker.with_skew(hub),
        }
    }

    pub fn event(&self, event_time: Millis) -> Value {
        let (ticker, mini) = (&self.ticker, &self.ticker.mini);
        json!({
            "e": "24hrTicker",
            "E": event_time,
            "s": mini.symbol,
            "p": ticker.price_change,
            "P": ticker.price_change_percent,
            "w": ticker.weighted_avg_price,
            "x": self.prev_close_price,
            "c": mini.last_price,
            "Q": self.last_qty,
            "b": self.bid_price,
            "B": self.bid_qty,
            "a": self.ask_price,
            "A": self.ask_qty,
            "o": mini.open_price,
            "h": mini.high_price,
            "l": mini.low_price,
            "v": mini.volume,
            "q": mini.quote_volume,
            "O": mini.open_time,
            "C": mini.close_time,
            "F": mini.first_id,
            "L": mini.last_id,
            "n": mini.count
        })
    }
}

impl MiniTicker {
    pub fn event(&self, event_time: Millis) -> Value {
        json!({
            "e": "24hrMiniTicker",
            "E": event_time,
            "s": self.symbol,
            "c": self.last_price,
            "o": self.open_price,
            "h": self.high_price,
            "l": self.low_price,
            "v": self.volume,
            "q": self.quote_volume
        })
    }
}
