//! Candles from trades, equal to what the exchange would say.

mod build;
mod calendar;

pub use build::{CandleBuilder, Refused};
pub use calendar::{close_time, open_time};

use crate::model::{Candle, Millis};
use crate::number::{Notional, Price, Quantity};

/// One unit of the wire's eighth place, in money of 10⁻¹⁶.
const WIRE_PLACE: i128 = 100_000_000;

/// A candle of our own making, and what is known about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BuiltCandle {
    pub candle: Candle,
    /// Whether its time is over.
    pub closed: bool,
    /// Whether all of it was seen: from its first millisecond, without a gap in trade ids.
    pub complete: bool,
}

/// Whether a candle's time is over at `now`.
pub const fn is_closed(candle: &Candle, now: Millis) -> bool {
    candle.close_time < now
}

/// The candles that are over at `now`, of candles in order of time.
pub fn closed_at(candles: &[Candle], now: Millis) -> &[Candle] {
    let over = candles.partition_point(|candle| is_closed(candle, now));
    &candles[..over]
}

/// Whether two candles say the same at the wire's precision: everything equal, and money within less than one
/// unit of the eighth place, beyond which the exchange cuts it.
pub fn same_on_the_wire(one: &Candle, other: &Candle) -> bool {
    let close = |a: Notional, b: Notional| a.units().abs_diff(b.units()) < WIRE_PLACE.unsigned_abs();
    let without_money = |candle: &Candle| Candle {
        quote_volume: Notional::ZERO,
        taker_buy_quote_volume: Notional::ZERO,
        ..*candle
    };
    without_money(one) == without_money(other)
        && close(one.quote_volume, other.quote_volume)
        && close(one.taker_buy_quote_volume, other.taker_buy_quote_volume)
}

/// A candle in which nothing was traded stays at the close before, as the exchange's do.
fn flat(open_time: Millis, close_time: Millis, at: Price) -> Candle {
    Candle {
        open_time,
        close_time,
        open: at,
        high: at,
        low: at,
        close: at,
        volume: Quantity::ZERO,
        quote_volume: Notional::ZERO,
        trades: 0,
        taker_buy_volume: Quantity::ZERO,
        taker_buy_quote_volume: Notional::ZERO,
    }
}

#[cfg(test)]
mod tests;
