//! Price statistics of the last 24 hours, in the shapes of REST and of the streams.

use serde_json::{Value, json};

use super::Market;
use super::candle::Candle;
use super::levels::Level;
use crate::interval::{DAY, MINUTE, Millis};
use crate::number::{self, Price, Quantity};

/// What is not known is zero.
pub struct Ticker<'a> {
    symbol: &'a str,
    open_time: Millis,
    close_time: Millis,
    traded: Candle,
    previous_close: Price,
    last_quantity: Quantity,
    bid: Level,
    ask: Level,
}

impl Market {
    /// The window opens on a whole minute, so that it agrees with candles exactly, and not before a recording. `skew` is
    /// that of the exchange's clock.
    pub fn ticker(&self, now: Millis, skew: Millis) -> Ticker<'_> {
        let start = now - now.rem_euclid(MINUTE) - DAY;
        let opened = start.max(self.candles.known_since.unwrap_or(now)).min(now);
        let (bid, ask) = self.best().unwrap_or_default();
        let last = self.tape.last().filter(|last| last.trade_count() == 1);
        Ticker {
            symbol: &self.symbol.name,
            open_time: opened.saturating_add(skew),
            close_time: now.saturating_add(skew),
            traded: self.candles.since(start).unwrap_or(Candle::flat(start, 0)),
            previous_close: self.candles.close_before(opened).unwrap_or(0),
            last_quantity: last.map_or(0, |last| last.quantity),
            bid,
            ask,
        }
    }
}

impl Ticker<'_> {
    fn change(&self) -> Price {
        self.traded.close - self.traded.open
    }

    fn percent(&self) -> String {
        number::percent(self.change().into(), self.traded.open.into())
    }

    fn average(&self) -> Quantity {
        self.traded.quote_volume.checked_div(self.traded.volume).unwrap_or(0)
    }

    /// The first and the last trade; −1 if nothing traded.
    fn ids(&self) -> [i64; 2] {
        [self.traded.first_trade, self.traded.last_trade].map(|id| self.traded.id(id))
    }

    pub fn rest(&self) -> Value {
        let (traded, [first, last]) = (&self.traded, self.ids());
        json!({
            "symbol": self.symbol,
            "openPrice": number::fixed(traded.open),
            "highPrice": number::fixed(traded.high),
            "lowPrice": number::fixed(traded.low),
            "lastPrice": number::fixed(traded.close),
            "volume": number::fixed(traded.volume),
            "quoteVolume": number::fixed_money(traded.quote_volume),
            "openTime": self.open_time,
            "closeTime": self.close_time,
            "firstId": first,
            "lastId": last,
            "count": traded.trades,
            "priceChange": number::fixed(self.change()),
            "priceChangePercent": self.percent(),
            "weightedAvgPrice": number::fixed(self.average()),
            "prevClosePrice": number::fixed(self.previous_close),
            "lastQty": number::fixed(self.last_quantity),
            "bidPrice": number::fixed(self.bid.0),
            "bidQty": number::fixed(self.bid.1),
            "askPrice": number::fixed(self.ask.0),
            "askQty": number::fixed(self.ask.1)
        })
    }

    pub fn event(&self, event_time: Millis) -> Value {
        let (traded, [first, last]) = (&self.traded, self.ids());
        json!({
            "e": "24hrTicker",
            "E": event_time,
            "s": self.symbol,
            "p": number::fixed(self.change()),
            "P": self.percent(),
            "w": number::fixed(self.average()),
            "x": number::fixed(self.previous_close),
            "c": number::fixed(traded.close),
            "Q": number::fixed(self.last_quantity),
            "b": number::fixed(self.bid.0),
            "B": number::fixed(self.bid.1),
            "a": number::fixed(self.ask.0),
            "A": number::fixed(self.ask.1),
            "o": number::fixed(traded.open),
            "h": number::fixed(traded.high),
            "l": number::fixed(traded.low),
            "v": number::fixed(traded.volume),
            "q": number::fixed_money(traded.quote_volume),
            "O": self.open_time,
            "C": self.close_time,
            "F": first,
            "L": last,
            "n": traded.trades
        })
    }

    pub fn mini_event(&self, event_time: Millis) -> Value {
        let traded = &self.traded;
        json!({
            "e": "24hrMiniTicker",
            "E": event_time,
            "s": self.symbol,
            "c": number::fixed(traded.close),
            "o": number::fixed(traded.open),
            "h": number::fixed(traded.high),
            "l": number::fixed(traded.low),
            "v": number::fixed(traded.volume),
            "q": number::fixed_money(traded.quote_volume)
        })
    }
}
