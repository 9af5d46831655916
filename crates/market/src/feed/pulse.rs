//! How lively one symbol is: counts and best-price pressure by the second, and what is usual for it.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use crate::book::{BestQuote, Level};

/// The longest window that order flow is asked for.
const SECONDS: usize = 300;
/// What is usual is taken over the last hour.
const MINUTES: usize = 60;

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

/// One minute, for what is usual.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Minute {
    pub number: u64,
    pub updates: u64,
    pub trades: u64,
    /// Means of what was sampled once a second.
    pub spread_bps: Option<f64>,
    pub depth_quote: Option<f64>,
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
}

#[derive(Debug)]
pub struct Pulse {
    start: Instant,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    seconds: VecDeque<Second>,
    minutes: VecDeque<Minute>,
    open: Sampling,
    quote: Option<BestQuote>,
    /// The first second that was observed whole.
    since: u64,
}

/// The minute that is still running.
#[derive(Debug, Default)]
struct Sampling {
    number: u64,
    updates: u64,
    trades: u64,
    spread: (f64, u32),
    depth: (f64, u32),
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
        self.with(|inner| {
            inner.at(number).updates += 1;
            inner.open.updates += 1;
        });
    }

    pub fn trade(&self, now: Instant) {
        let number = self.second(now);
        self.with(|inner| {
            inner.at(number).trades += 1;
            inner.open.trades += 1;
        });
    }

    pub fn quote(&self, now: Instant, quote: BestQuote) {
        let number = self.second(now);
        self.with(|inner| {
            let before = inner.quote.replace(quote);
            if before.is_some_and(|before| before.update_id >= quote.update_id) {
                inner.quote = before;
                return;
            }
            let pressure = before.and_then(|before| pressure(&before, &quote));
            let second = inner.at(number);
            second.quotes += 1;
            second.ofi = second.ofi.saturating_add(pressure.unwrap_or(0));
        });
    }

    /// Once a second: how wide and how deep the book is.
    pub fn sample(&self, now: Instant, spread_bps: Option<f64>, depth_quote: Option<f64>) {
        let number = self.second(now) / 60;
        self.with(|inner| inner.sample(number, spread_bps, depth_quote));
    }

    /// The last `window` whole seconds, without the one that is still running.
    pub fn beats(&self, now: Instant, window: u64) -> Beats {
        let end = self.second(now);
        self.with(|inner| {
            let from = end.saturating_sub(window).max(inner.since);
            let mut beats = Beats {
                seconds: end.saturating_sub(from),
                ..Beats::default()
            };
            for second in inner.seconds.iter().filter(|second| (from..end).contains(&second.number)) {
                beats.updates += u64::from(second.updates);
                beats.quotes += u64::from(second.quotes);
                beats.trades += u64::from(second.trades);
                beats.ofi_units = beats.ofi_units.saturating_add(second.ofi);
            }
            beats
        })
    }

    /// The whole minutes of the last hour, oldest first.
    pub fn minutes(&self) -> Vec<Minute> {
        self.with(|inner| inner.minutes.iter().copied().collect())
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

    fn sample(&mut self, number: u64, spread_bps: Option<f64>, depth_quote: Option<f64>) {
        if self.open.number != number {
            let ended = std::mem::replace(
                &mut self.open,
                Sampling {
                    number,
                    ..Sampling::default()
                },
            );
            if self.minutes.len() == MINUTES {
                self.minutes.pop_front();
            }
            self.minutes.push_back(ended.minute());
        }
        let add = |sum: &mut (f64, u32), value: Option<f64>| {
            if let Some(value) = value {
                *sum = (sum.0 + value, sum.1 + 1);
            }
        };
        add(&mut self.open.spread, spread_bps);
        add(&mut self.open.depth, depth_quote);
    }
}

impl Sampling {
    fn minute(&self) -> Minute {
        let mean = |(sum, count): (f64, u32)| (count > 0).then(|| sum / f64::from(count));
        Minute {
            number: self.number,
            updates: self.updates,
            trades: self.trades,
            spread_bps: mean(self.spread),
            depth_quote: mean(self.depth),
        }
    }
}

/// Order-flow imbalance of one change of the best levels (Cont, Kukanov and Stoikov): size that came
/// to the bid or left the ask counts up, the reverse counts down.
fn pressure(before: &BestQuote, after: &BestQuote) -> Option<i128> {
    let size = |level: Level| level.quantity.units();
    let when = |holds: bool, units: i128| if holds { units } else { 0 };
    when(after.bid.price >= before.bid.price, size(after.bid))
        .checked_sub(when(after.bid.price <= before.bid.price, size(before.bid)))?
        .checked_sub(when(after.ask.price <= before.ask.price, size(after.ask)))?
        .checked_add(when(after.ask.price >= before.ask.price, size(before.ask)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::number::{Price, Quantity};
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
    fn pressure_is_worked_by_the_formula() {
        let before = quote(1, (100, 5), (101, 7));
        // The bid grows from 5 to 8: +8 − 5; the ask stays: −7 + 7.
        assert_eq!(pressure(&before, &quote(2, (100, 8), (101, 7))), Some(3));
        // A better bid of 2: +2, nothing is taken off; the ask stays.
        assert_eq!(pressure(&before, &quote(2, (101, 2), (102, 4))), Some(2 + 7));
        // A worse bid: −5; a better ask of 3: −3.
        assert_eq!(pressure(&before, &quote(2, (99, 9), (100, 3))), Some(-5 - 3));
        assert_eq!(pressure(&before, &before), Some(0));
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
        assert_eq!((beats.seconds, beats.updates, beats.quotes, beats.ofi_units), (5, 50, 2, 3));
        pulse.interrupted(at(10_500));
        assert_eq!(pulse.beats(at(12_500), 60).seconds, 1);
    }

    #[test]
    fn what_is_usual_is_kept_by_the_minute() {
        let start = Instant::now();
        let pulse = Pulse::new(start);
        for second in 0..150 {
            let now = start + Duration::from_secs(second);
            pulse.update(now);
            pulse.sample(now, Some(2.0), None);
        }
        let minutes = pulse.minutes();
        assert_eq!(minutes.len(), 2);
        assert_eq!((minutes[1].spread_bps, minutes[1].depth_quote), (Some(2.0), None));
        assert!((59..=61).contains(&minutes[1].updates));
    }
}
