//! Candles of every length, built from two series of trades: seconds and minutes. A series holds only the buckets in
//! which something traded; the others are flat at the last price, as on the exchange. Candles that may
//! lack a trade do not exist.

use std::collections::VecDeque;

pub use super::candle::Candle;
use super::coverage::Coverage;
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
    /// The time zone's offset from UTC, east positive.
    pub offset: Millis,
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
        Self {
            length,
            capacity,
            candles: VecDeque::new(),
        }
    }

    /// Adds `count` trades at one price. A late trade goes where it belongs.
    fn record(&mut self, trade: &Trade, count: u64) {
        let open = trade.time - trade.time.rem_euclid(self.length);
        let at = self.candles.partition_point(|candle| candle.open_time < open);
        if let Some(candle) = self.candles.get_mut(at).filter(|candle| candle.open_time == open) {
            candle.add(trade, count);
            return;
        }
        self.candles.insert(at, Candle::of_trade(open, trade, count));
        if self.candles.len() > self.capacity {
            self.candles.pop_front();
        }
    }

    /// Everything that traded from `start` to before `end`, as one candle.
    fn merge(&self, start: Millis, end: Millis) -> Option<Candle> {
        let first = self.candles.partition_point(|candle| candle.open_time < start);
        let within = self.candles.range(first..).take_while(|candle| candle.open_time < end);
        within.copied().reduce(|mut all, next| {
            all.extend(&next);
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
    pub coverage: Coverage,
}

impl Candles {
    /// `history` has minutes from before the first trade, oldest first.
    pub fn new(history: Vec<Candle>, coverage: Coverage) -> Self {
        let mut minutes = Series::new(MINUTE, MAX_MINUTES);
        minutes.candles = history.into();
        Self {
            seconds: Series::new(SECOND, MAX_SECONDS),
            minutes,
            coverage,
        }
    }

    pub fn record(&mut self, trade: &Trade, count: u64) {
        self.seconds.record(trade, count);
        self.minutes.record(trade, count);
    }

    const fn series(&self, interval: Interval) -> &Series {
        if interval.is_second() {
            &self.seconds
        } else {
            &self.minutes
        }
    }

    pub fn last(&self) -> Option<&Candle> {
        self.minutes.candles.back()
    }

    /// Everything that traded from `start` on, as one candle; `None` if nothing did.
    pub fn since(&self, start: Millis) -> Option<Candle> {
        self.minutes.merge(start, Millis::MAX)
    }

    /// The same to the second where seconds are kept, else from the next whole minute; returns where it begins.
    pub fn since_second(&self, start: Millis) -> (Millis, Option<Candle>) {
        let oldest = self
            .seconds
            .candles
            .front()
            .map_or(Millis::MIN, |candle| candle.open_time);
        let is_kept = self.seconds.candles.len() < MAX_SECONDS || oldest <= start;
        let series = if is_kept { &self.seconds } else { &self.minutes };
        let start = start + (-start).rem_euclid(series.length);
        (start, series.merge(start, Millis::MAX))
    }

    /// The last price before `time`.
    pub fn close_before(&self, time: Millis) -> Option<Price> {
        self.minutes.close_before(time)
    }

    /// The candle that opened at `open`, as of `now`; flat if nothing traded in it. `None` before the first trade, and
    /// where a trade may be missing.
    pub fn at(&self, interval: Interval, open: Millis, offset: Millis, now: Millis) -> Option<Candle> {
        let end = interval.next_open(open, offset);
        if !self.coverage.is_complete(open, end.min(now.saturating_add(1))) {
            return None;
        }
        let series = self.series(interval);
        let traded = series.merge(open, end).map(|candle| Candle {
            open_time: open,
            ..candle
        });
        traded.or_else(|| Some(Candle::flat(open, series.close_before(open)?)))
    }

    /// Candles by the exchange's rules, each with its closing time: with a start the oldest from there, without one the
    /// newest. A candle belongs to the range if it opens between start and end, both included.
    pub fn range(&self, range: &Range, now: Millis) -> Vec<(Candle, Millis)> {
        let Range {
            interval,
            offset,
            limit,
            ..
        } = *range;
        let Some(first) = self.series(interval).candles.front() else {
            return Vec::new();
        };
        let oldest = interval.open_of(first.open_time, offset);
        let newest = interval.open_of(range.end.unwrap_or(now).min(now), offset);
        let next = |open: &Millis| Some(interval.next_open(*open, offset));
        let previous = |open: &Millis| Some(interval.open_of(*open - 1, offset));
        let opens: Vec<Millis> = match range.start {
            Some(start) => {
                let open = interval.open_of(start, offset);
                let from = if open < start {
                    interval.next_open(open, offset)
                } else {
                    open
                };
                let forward = std::iter::successors(Some(from.max(oldest)), next);
                forward.take_while(|open| *open <= newest).take(limit).collect()
            }
            None => {
                let backward = std::iter::successors(Some(newest), previous);
                let mut opens: Vec<Millis> = backward.take_while(|open| *open >= oldest).take(limit).collect();
                opens.reverse();
                opens
            }
        };
        let candle = |open: Millis| {
            let candle = self.at(interval, open, offset, now)?;
            Some((candle, interval.next_open(open, offset) - 1))
        };
        opens.into_iter().filter_map(candle).collect()
    }
}

#[cfg(test)]
mod tests;
