//! What is said of candles.

use jiff::Timestamp;

use super::{AtHand, Told, of_day};
use crate::candles::open_time;
use crate::model::{Interval, Millis};
use crate::number::Quantity;

impl AtHand<'_> {
    /// The candle that is open now, if every trade of it is on the tape.
    pub(super) fn candle(&self, interval: Interval) -> Option<Told> {
        let tape = &self.tracked.as_ref()?.tape;
        let until = self.heard_until()?;
        let opened = open_time(interval, until)?;
        let recent = tape.recent(opened);
        let trades = || recent.trades();
        let (first, last) = (trades().next()?, trades().last()?);
        if recent.complete_from.is_none_or(|from| from > opened) {
            return None;
        }
        let prices = || trades().map(|trade| trade.price);
        let volume = trades().try_fold(Quantity::ZERO, |sum, trade| sum.checked_add(trade.quantity))?;
        let text = format!(
            "{}, {interval} candle since {}: open {}, high {}, low {}, last {} {}; volume {} {}.",
            self.symbol.name,
            began(interval, opened)?,
            first.price,
            prices().max()?,
            prices().min()?,
            last.price,
            self.symbol.quote,
            volume,
            self.symbol.base
        );
        Some(Told {
            text,
            as_of: Timestamp::from_millisecond(until).ok()?,
        })
    }

    /// The last price is the close of the candle that is open.
    pub(super) fn candle_of_day(&self, interval: Interval) -> Option<Told> {
        let day = self.day.as_ref()?;
        let opened = open_time(interval, self.market.exchange_now())?;
        let text = format!(
            "{}: the {interval} candle that is open began at {}; its close so far is {} {}. Fetch it for the candles.",
            self.symbol.name,
            began(interval, opened)?,
            day.last,
            self.symbol.quote
        );
        (of_day(day).as_millisecond() >= opened).then_some(Told {
            text,
            as_of: of_day(day),
        })
    }
}

/// When a candle began, to the second only where several begin in a minute.
fn began(interval: Interval, opened: Millis) -> Option<String> {
    let time = Timestamp::from_millisecond(opened).ok()?;
    let format = match interval {
        Interval::S1 => "%Y-%m-%d %H:%M:%SZ",
        _ => "%Y-%m-%d %H:%MZ",
    };
    Some(time.strftime(format).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_candle_of_a_second_begins_at_a_second() {
        let opened = 1_794_834_427_000;
        assert_eq!(began(Interval::S1, opened).as_deref(), Some("2026-11-16 13:07:07Z"));
        assert_eq!(began(Interval::M1, opened).as_deref(), Some("2026-11-16 13:07Z"));
    }
}
