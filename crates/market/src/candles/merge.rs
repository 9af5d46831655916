//! Large candles from small ones.

use super::{BuiltCandle, calendar, is_closed};
use crate::model::{Candle, Interval, Millis};

/// Why small candles do not make large ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Misaligned {
    #[error("a candle does not lie within one of the larger interval")]
    Straddles,
    #[error("the candles are not in order of time")]
    OutOfOrder,
    #[error("the numbers are too large to count")]
    TooLarge,
}

/// Candles of a larger interval from smaller ones in order of time. One is complete if the small ones fill it
/// without a hole, or up to now if it is still open.
pub fn aggregate(candles: &[Candle], to: Interval, now: Millis) -> Result<Vec<BuiltCandle>, Misaligned> {
    let mut made: Vec<BuiltCandle> = Vec::new();
    let mut end_of_last = None;
    for small in candles {
        let open_time = calendar::open_time(to, small.open_time).ok_or(Misaligned::TooLarge)?;
        let close_time = calendar::close_time(to, small.open_time).ok_or(Misaligned::TooLarge)?;
        if small.close_time > close_time || small.close_time < small.open_time {
            return Err(Misaligned::Straddles);
        }
        if end_of_last.is_some_and(|end| small.open_time <= end) {
            return Err(Misaligned::OutOfOrder);
        }
        let joined = end_of_last.and_then(|end: Millis| end.checked_add(1)) == Some(small.open_time);
        end_of_last = Some(small.close_time);
        match made.last_mut() {
            Some(last) if last.candle.open_time == open_time => {
                last.candle = join(last.candle, small).ok_or(Misaligned::TooLarge)?;
                last.complete &= joined;
            }
            _ => made.push(BuiltCandle {
                candle: Candle {
                    open_time,
                    close_time,
                    ..*small
                },
                closed: false,
                complete: small.open_time == open_time,
            }),
        }
    }
    for built in &mut made {
        built.closed = is_closed(&built.candle, now);
        // The last small one must reach the end, or the moment it is.
        let end = last_within(candles, built.candle.close_time);
        built.complete &= end >= built.candle.close_time.min(now);
    }
    Ok(made)
}

/// The end of the last small candle that ends no later than `close_time`.
fn last_within(candles: &[Candle], close_time: Millis) -> Millis {
    let count = candles.partition_point(|small| small.close_time <= close_time);
    count
        .checked_sub(1)
        .map_or(Millis::MIN, |last| candles[last].close_time)
}

/// A small candle without trades only repeats the close before: it opens nothing.
fn join(mut candle: Candle, next: &Candle) -> Option<Candle> {
    if next.trades == 0 {
        return Some(candle);
    }
    if candle.trades == 0 {
        let (open_time, close_time) = (candle.open_time, candle.close_time);
        return Some(Candle {
            open_time,
            close_time,
            ..*next
        });
    }
    candle.high = candle.high.max(next.high);
    candle.low = candle.low.min(next.low);
    candle.close = next.close;
    candle.volume = candle.volume.checked_add(next.volume)?;
    candle.quote_volume = candle.quote_volume.checked_add(next.quote_volume)?;
    candle.trades = candle.trades.checked_add(next.trades)?;
    candle.taker_buy_volume = candle.taker_buy_volume.checked_add(next.taker_buy_volume)?;
    candle.taker_buy_quote_volume = candle.taker_buy_quote_volume.checked_add(next.taker_buy_quote_volume)?;
    Some(candle)
}
