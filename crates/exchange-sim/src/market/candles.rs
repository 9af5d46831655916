//! Candles of every length, built from two series of trades: seconds and minutes. A series holds only the buckets in
//! which something traded; the others are flat at the last price, as on the exchange. A recording has no
//! candle that opened before it.

use std::collections::VecDeque;

pub use super::candle::Candle;
use super::tape::Trade;
use crate::interval::{Interval, MINUTE, Millis, SECOND};
use crate::number::Price;

const MAX_SECONDS: usize = 20_000;
/// More than two weeks of minutes without a pause.
const MAX_MINUTES: usize = 25_000;

/// Which candles a request asks for.
#[derive(Debug, Clone, Copy)]
pub struct Range {
    pub interval: Interval,
    pub start: Option<Millis>,
    pub end: Option<Millis>,
    pub limit: usize,
}

/// Buckets of one length that traded, oldest first.
#[derive(Debug)]
struct Series {
    length: Millis,
    capacity: usize,
    candles: VecDeque<Candle>,
}

impl Series {
    const fn new(length: Millis, capacity: usize) -> Self {
        Self { length, capacity, candles: VecDeque::new() }
    }

    /// Adds a trade. A late one goes where it belongs.
    fn record(&mut self, trade: &Trade) {
        let open = trade.time - trade.time.rem_euclid(self.length);
        let at = self.candles.partition_point(|candle| candle.open_time < open);
        let traded = Candle::of(open, trade);
        if let Some(candle) = self.candles.get_mut(at).filter(|candle| candle.open_time == open) {
            candle.add(&traded);
            return;
        }
        self.candles.insert(at, traded);
        if self.candles.len() > self.capacity {
            self.candles.pop_front();
        }
    }

    /// Everything that traded from `start` to before `end`, as one candle.
    fn merge(&self, start: Millis, end: Millis) -> Option<Candle> {
        let first = self.candles.partition_point(|candle| candle.open_time < start);
        let within = self.candles.range(first..).take_while(|candle| candle.open_time < end);
        within.copied().reduce(|mut all, next| {
            all.add(&next);
            all
        })
    }

    fn close_before(&self, time: Millis) -> Option<Price> {
        let end = self.candles.partition_point(|candle| candle.open_time < time);
        end.checked_sub(1).map(|last| self.candles[last].close)
    }
}

#[derive(Debug)]
pub struct Candles {
    seconds: Series,
    minutes: Series,
    /// Every trade since then is known: a simulation knows all. `None` if a recording has no trades.
    pub known_since: Option<Millis>,
}

impl Candles {
    /// `history` has minutes from before the first trade, oldest first.
    pub fn new(history: Vec<Candle>, known_since: Option<Millis>) -> Self {
        let mut minutes = Series::new(MINUTE, MAX_MINUTES);
        minutes.candles = history.into();
        Self { seconds: Series::new(SECOND, MAX_SECONDS), minutes, known_since }
    }

    pub fn record(&mut self, trade: &Trade) {
        self.seconds.record(trade);
        self.minutes.record(trade);
    }

    const fn series(&self, interval: Interval) -> &Series {
        if interval.is_second() { &self.seconds } else { &self.minutes }
    }

    /// Whether every trade from `start` on is known.
    pub fn is_complete_since(&self, start: Millis) -> bool {
        self.known_since.is_some_and(|since| since <= start)
    }

    pub fn last(&self) -> Option<&Candle> {
        self.minutes.candles.back()
    }

    /// Everything that traded from `start` on, as one candle; `None` if nothing did.
    pub fn since(&self, start: Millis) -> Option<Candle> {
        self.minutes.merge(start, Millis::MAX)
    }

    /// The last price before `time`.
    pub fn close_before(&self, time: Millis) -> Option<Price> {
        self.minutes.close_before(time)
    }

    /// The candle that opened at `open`; flat if nothing traded in it. `None` before the first trade, and
    /// where a recording began later.
    pub fn at(&self, interval: Interval, open: Millis) -> Option<Candle> {
        if !self.is_complete_since(open) {
            return None;
        }
        let series = self.series(interval);
        let traded = series.merge(open, interval.next_open(open)).map(|candle| Candle { open_time: open, ..candle });
        traded.or_else(|| Some(Candle::flat(open, series.close_before(open)?)))
    }

    /// Candles by the exchange's rules, each with its closing time: with a start the oldest from there, without one the
    /// newest. A candle belongs to the range if it opens between start and end, both included.
    pub fn range(&self, range: &Range, now: Millis) -> Vec<(Candle, Millis)> {
        let interval = range.interval;
        let Some(first) = self.series(interval).candles.front() else {
            return Vec::new();
        };
        let oldest = interval.open_of(first.open_time);
        let newest = interval.open_of(range.end.unwrap_or(now).min(now));
        let next = |open: &Millis| Some(interval.next_open(*open));
        let previous = |open: &Millis| Some(interval.open_of(*open - 1));
        let opens: Vec<Millis> = match range.start {
            Some(start) => {
                // The first that opens at `start` or later.
                let from = interval.next_open(interval.open_of(start.saturating_sub(1)));
                let forward = std::iter::successors(Some(from.max(oldest)), next);
                forward.take_while(|open| *open <= newest).take(range.limit).collect()
            }
            None => {
                let backward = std::iter::successors(Some(newest), previous);
                let mut opens: Vec<Millis> = backward.take_while(|open| *open >= oldest).take(range.limit).collect();
                opens.reverse();
                opens
            }
        };
        let candle = |open: Millis| {
            let candle = self.at(interval, open)?;
            Some((candle, interval.next_open(open) - 1))
        };
        opens.into_iter().filter_map(candle).collect()
    }
}

#[cfg(test)]
mod tests;
