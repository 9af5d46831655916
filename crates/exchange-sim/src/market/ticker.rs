//! Price statistics of the last 24 hours, in the shapes of REST and of the streams.

use serde_json::{Map, Value, json};

use super::Market;
use super::candle::Candle;
use crate::interval::{DAY, MINUTE, Millis};
use crate::number;

/// What a stream's short ticker has.
const SHORT: [&str; 7] = ["s", "c", "o", "h", "l", "v", "q"];

/// The fields with their names in REST and in streams. What is not known is zero.
pub struct Ticker([(&'static str, &'static str, Value); 21]);

impl Market {
    /// The window opens on a whole minute, so that it agrees with candles exactly, and not before a recording. `skew` is
    /// that of the exchange's clock.
    pub fn ticker(&self, now: Millis, skew: Millis) -> Ticker {
        let start = now - now.rem_euclid(MINUTE) - DAY;
        let opened = start.max(self.candles.known_since.unwrap_or(now)).min(now);
        let (bid, ask) = self.best().unwrap_or_default();
        let last = self.tape.last();
        let traded = self.candles.since(start).unwrap_or(Candle::flat(start, 0));
        let change = traded.close - traded.open;
        let average = traded.quote_volume.checked_div(traded.volume).unwrap_or(0);
        let fixed = |units: i128| Value::from(number::fixed(units));
        Ticker([
            ("symbol", "s", self.symbol.name.as_str().into()),
            ("openPrice", "o", fixed(traded.open.into())),
            ("highPrice", "h", fixed(traded.high.into())),
            ("lowPrice", "l", fixed(traded.low.into())),
            ("lastPrice", "c", fixed(traded.close.into())),
            ("volume", "v", fixed(traded.volume)),
            ("quoteVolume", "q", number::fixed_money(traded.quote_volume).into()),
            ("openTime", "O", opened.saturating_add(skew).into()),
            ("closeTime", "C", now.saturating_add(skew).into()),
            ("firstId", "F", traded.id(traded.first_trade).into()),
            ("lastId", "L", traded.id(traded.last_trade).into()),
            ("count", "n", traded.trades.into()),
            ("priceChange", "p", fixed(change.into())),
            ("priceChangePercent", "P", number::percent(change.into(), traded.open.into()).into()),
            ("weightedAvgPrice", "w", fixed(average)),
            ("prevClosePrice", "x", fixed(self.candles.close_before(opened).unwrap_or(0).into())),
            ("lastQty", "Q", fixed(last.map_or(0, |last| last.quantity))),
            ("bidPrice", "b", fixed(bid.0.into())),
            ("bidQty", "B", fixed(bid.1)),
            ("askPrice", "a", fixed(ask.0.into())),
            ("askQty", "A", fixed(ask.1)),
        ])
    }
}

impl Ticker {
    pub fn rest(self) -> Value {
        Value::Object(self.0.into_iter().map(|(name, _, value)| (name.to_owned(), value)).collect())
    }

    pub fn event(self, event_time: Millis) -> Value {
        self.message("24hrTicker", event_time, |_| true)
    }

    pub fn mini_event(self, event_time: Millis) -> Value {
        self.message("24hrMiniTicker", event_time, |name| SHORT.contains(&name))
    }

    fn message(self, event: &str, event_time: Millis, has: impl Fn(&str) -> bool) -> Value {
        let mut message = Map::from_iter([("e".to_owned(), json!(event)), ("E".to_owned(), json!(event_time))]);
        let fields = self.0.into_iter().filter(|(_, name, _)| has(name));
        message.extend(fields.map(|(_, name, value)| (name.to_owned(), value)));
        Value::Object(message)
    }
}
