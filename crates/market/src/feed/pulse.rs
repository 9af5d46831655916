//! How lively one symbol is: counts and best-price pressure by the second.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use crate::analytics::ofi::step;
use crate::analytics::quotes::Touch;
use crate::book::BestQuote;
use crate::number::Quantity;

/// The longest window that order flow is asked for.
const SECONDS: usize = 300;

/// What happened within one second.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Second {
    number: u64,
    updates: u32,
    quotes: u32,
    trades: u32,
    /// Order-flow imbalance of the best levels in 10⁻⁸ of the base asset.
    ofi: i128,
}

/// Sums over the last seconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Beats {
    /// Whole seconds that were really observed.
    pub seconds: u64,
    pub updates: u64,
    pub quotes: u64,
    pub trades: u64,
    /// Order-flow imbalance in 10⁻⁸ of the base asset.
    pub ofi_units: i128,
    /// Best prices were announced since the stream was opened: without any, nothing is known of their changes.
    pub has_quotes: bool,
}

#[derive(Debug)]
pub struct Pulse {
    start: Instant,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    seconds: VecDeque<Second>,
    quote: Option<BestQuote>,
    /// The first second that was observed whole.
    since: u64,
}

impl Pulse {
    pub fn new(start: Instant) -> Self {
        Self {
            start,
            inner: Mutex::default(),
        }
    }

    fn second(&self, now: Instant) -> u64 {
        now.saturating_duration_since(self.start).as_secs()
    }

    fn with<T>(&self, change: impl FnOnce(&mut Inner) -> T) -> T {
        change(&mut self.inner.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The stream was interrupted: what is counted from here on stands alone.
    pub fn interrupted(&self, now: Instant) {
        let since = self.second(now) + 1;
        self.with(|inner| {
            inner.seconds.clear();
            inner.quote = None;
            inner.since = since;
        });
    }

    pub fn update(&self, now: Instant) {
        let number = self.second(now);
        self.with(|inner| inner.at(number).updates += 1);
    }

    pub fn trade(&self, now: Instant) {
        let number = self.second(now);
        self.with(|inner| inner.at(number).trades += 1);
    }

    pub fn quote(&self, now: Instant, quote: BestQuote) {
        let number = self.second(now);
        self.with(|inner| {
            let before = inner.quote.replace(quote);
            if before.is_some_and(|before| before.update_id >= quote.update_id) {
                inner.quote = before;
                return;
            }
            let pressure = before.and_then(|before| pressure(before, quote));
            let second = inner.at(number);
            second.quotes += 1;
            second.ofi = second.ofi.saturating_add(pressure.unwrap_or(0));
        });
    }

    /// The last `window` whole seconds, without the one that is still running.
    pub fn beats(&self, now: Instant, window: u64) -> Beats {
        let end = self.second(now);
        self.with(|inner| {
            let from = end.saturating_sub(window).max(inner.since);
            let mut beats = Beats {
                seconds: end.saturating_sub(from),
                has_quotes: inner.quote.is_some(),
                ..Beats::default()
            };
            for second in inner
                .seconds
                .iter()
                .filter(|second| (from..end).contains(&second.number))
            {
                beats.updates += u64::from(second.updates);
                beats.quotes += u64::from(second.quotes);
                beats.trades += u64::from(second.trades);
                beats.ofi_units = beats.ofi_units.saturating_add(second.ofi);
            }
            beats
        })
    }
}

impl Inner {
    fn at(&mut self, number: u64) -> &mut Second {
        if self.seconds.back().is_none_or(|second| second.number < number) {
            if self.seconds.len() == SECONDS {
                self.seconds.pop_front();
            }
            self.seconds.push_back(Second {
                number,
                ..Second::default()
            });
        }
        let last = self.seconds.len() - 1;
        &mut self.seconds[last]
    }
}

/// Order-flow imbalance of one change of the best levels, in 10⁻⁸ of the base asset.
fn pressure(before: BestQuote, after: BestQuote) -> Option<i128> {
    let touch = |quote: BestQuote| Touch::new(quote.bid, quote.ask).ok();
    step(&touch(before)?, &touch(after)?).map(Quantity::units)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::book::Level;
    use crate::number::Price;
    use std::time::Duration;

    fn quote(update_id: u64, bid: (i64, i128), ask: (i64, i128)) -> BestQuote {
        let level = |(price, units)| Level {
            price: Price::from_units(price),
            quantity: Quantity::from_units(units),
        };
        BestQuote {
            update_id,
            bid: level(bid),
            ask: level(ask),
        }
    }

    #[test]
    fn beats_are_summed_over_the_seconds_that_were_observed() {
        let start = Instant::now();
        let pulse = Pulse::new(start);
        let at = |millis| start + Duration::from_millis(millis);
        for tenth in 0..100 {
            pulse.update(at(tenth * 100));
        }
        pulse.quote(at(5_000), quote(1, (100, 5), (101, 7)));
        pulse.quote(at(9_500), quote(2, (100, 8), (101, 7)));
        pulse.quote(at(9_600), quote(2, (100, 9), (101, 7)));
        let beats = pulse.beats(at(10_000), 5);
        assert_eq!(
            (beats.seconds, beats.updates, beats.quotes, beats.ofi_units),
            (5, 50, 2, 3)
        );
        pulse.interrupted(at(10_500));
        assert_eq!(pulse.beats(at(12_500), 60).seconds, 1);
    }
}
