//! Candles of every length from two bases, seconds and minutes. A base has only what traded; a bucket in which
//! nothing did is flat at the last price, as the exchange gives it. A candle of which a part is not known is not told.

use std::collections::{BTreeMap, HashMap, VecDeque};

pub use super::candle::Candle;
use super::coverage::Coverage;
use super::tape::Trade;
use crate::interval::{Interval, MINUTE, Millis, SECOND};
use crate::number::Price;

/// Seconds with trades that are kept.
const SECONDS_KEPT: usize = 20_000;
/// Minutes with trades that are kept: more than two weeks without a pause.
const MINUTES_KEPT: usize = 25_000;

/// Which candles are asked for.
#[derive(Debug, Clone, Copy)]
pub struct Range {
    pub interval: Interval,
    pub offset: Millis,
    pub start: Option<Millis>,
    pub end: Option<Millis>,
    pub limit: usize,
}

/// A candle that a recording has. Until it is closed it is as it was when it was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Recorded {
    pub candle: Candle,
    pub closed: bool,
}

type RecordedByOpening = BTreeMap<Millis, Recorded>;

#[derive(Debug, Default)]
pub struct Candles {
    seconds: VecDeque<Candle>,
    minutes: VecDeque<Candle>,
    /// Closed ones are truer than any made from trades.
    recorded: HashMap<Interval, RecordedByOpening>,
    /// Of which time every trade is known.
    pub coverage: Coverage,
}

/// What longer candles are made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Base {
    Seconds,
    Minutes,
}

impl Base {
    const fn of(interval: Interval) -> Self {
        if interval.is_second() {
            Self::Seconds
        } else {
            Self::Minutes
        }
    }

    const fn interval(self) -> Interval {
        match self {
            Self::Seconds => Interval::ALL[0],
            Self::Minutes => Interval::ALL[1],
        }
    }

    const fn length(self) -> Millis {
        match self {
            Self::Seconds => SECOND,
            Self::Minutes => MINUTE,
        }
    }
}

impl Candles {
    /// Candles of minutes from before the first trade, oldest first.
    pub fn with_history(minutes: Vec<Candle>) -> Self {
        Self {
            minutes: minutes.into(),
            ..Self::default()
        }
    }

    pub fn record(&mut self, trade: &Trade) {
        self.record_many(trade, 1);
    }

    /// One line of a recording may stand for several trades at one price.
    pub fn record_many(&mut self, trade: &Trade, count: u64) {
        add(&mut self.seconds, SECOND, SECONDS_KEPT, trade, count);
        add(&mut self.minutes, MINUTE, MINUTES_KEPT, trade, count);
    }

    /// A candle of a recording, as it is now. One that is closed stays so.
    pub fn record_candle(&mut self, interval: Interval, told: Recorded) {
        let recorded = self.recorded.entry(interval).or_default();
        let known = recorded.get(&told.candle.open_time);
        if told.closed || known.is_none_or(|known| !known.closed) {
            recorded.insert(told.candle.open_time, told);
        }
        if recorded.len() > MINUTES_KEPT {
            recorded.pop_first();
        }
    }

    fn recorded_at(&self, interval: Interval, open: Millis) -> Option<&Recorded> {
        self.recorded.get(&interval)?.get(&open)
    }

    /// The first opening of which anything is known.
    fn oldest(&self, interval: Interval, offset: Millis) -> Option<Millis> {
        let base = Base::of(interval);
        let first = |interval: Interval| {
            let (open, _) = self.recorded.get(&interval)?.first_key_value()?;
            Some(*open)
        };
        let traded = self.traded(base).front().map(|candle| candle.open_time);
        let pieces = traded.into_iter().chain(first(base.interval())).min();
        let pieces = pieces.map(|time| interval.open_of(time, offset));
        let recorded = first(interval).filter(|_| offset == 0);
        pieces.into_iter().chain(recorded).min()
    }

    const fn traded(&self, base: Base) -> &VecDeque<Candle> {
        match base {
            Base::Seconds => &self.seconds,
            Base::Minutes => &self.minutes,
        }
    }

    /// What is known of a base between two times, oldest first: candles made from trades and recorded ones.
    fn pieces(&self, base: Base, start: Millis, end: Millis) -> impl Iterator<Item = Candle> {
        let traded = self.traded(base);
        let first = traded.partition_point(|candle| candle.open_time < start);
        let mut traded = traded
            .range(first..)
            .take_while(move |candle| candle.open_time < end)
            .peekable();
        let recorded = self.recorded.get(&base.interval());
        let mut recorded = recorded
            .into_iter()
            .flat_map(move |recorded| recorded.range(start..end.max(start)).map(|(_, recorded)| recorded))
            .peekable();
        std::iter::from_fn(move || match (traded.peek(), recorded.peek()) {
            (Some(made), Some(told)) if made.open_time == told.candle.open_time => {
                let (made, told) = (traded.next()?, recorded.next()?);
                Some(self.truer(base, *made, *told))
            }
            (Some(made), Some(told)) if made.open_time > told.candle.open_time => {
                recorded.next().map(|told| told.candle)
            }
            (None, _) => recorded.next().map(|told| told.candle),
            (Some(_), _) => traded.next().copied(),
        })
    }

    /// Recorded candles come every other second until they are closed: those made from every trade are newer.
    fn truer(&self, base: Base, made: Candle, told: Recorded) -> Candle {
        let whole = self.coverage.is_whole(made.open_time, made.open_time + base.length());
        if whole && !told.closed { made } else { told.candle }
    }

    fn merged(&self, base: Base, start: Millis, end: Millis) -> Option<Candle> {
        self.pieces(base, start, end).reduce(|mut all, next| {
            all.extend(&next);
            all
        })
    }

    pub fn last(&self) -> Option<Candle> {
        let made = self.minutes.back().copied();
        let told = self.recorded.get(&Base::Minutes.interval());
        let told = told.and_then(|recorded| recorded.last_key_value());
        let told = told.map(|(_, recorded)| recorded.candle);
        [told, made].into_iter().flatten().max_by_key(|candle| candle.open_time)
    }

    /// All that traded from `start` on, as one; `None` if nothing did.
    pub fn since(&self, start: Millis) -> Option<Candle> {
        self.merged(Base::Minutes, start, Millis::MAX)
    }

    /// When `merged` really opened, of which nothing from before `known` is known but what was recorded.
    pub fn recorded_opening(&self, merged: Option<&Candle>, known: Millis) -> Millis {
        let opened = merged.map_or(known, |merged| merged.open_time);
        match self.recorded_at(Base::Minutes.interval(), opened) {
            Some(_) => known.min(opened),
            None => known,
        }
    }

    /// The same by the second, if seconds are kept from so long ago; else from the next minute on. And since when.
    pub fn since_second(&self, start: Millis) -> (Millis, Option<Candle>) {
        let next = |length: Millis| start + (-start).rem_euclid(length);
        let kept = self.seconds.len() < SECONDS_KEPT || self.seconds[0].open_time <= start;
        let base = if kept { Base::Seconds } else { Base::Minutes };
        let start = next(base.length());
        (start, self.merged(base, start, Millis::MAX))
    }

    /// The last price before `time`.
    pub fn close_before(&self, time: Millis) -> Option<Price> {
        self.piece_before(Base::Minutes, time).map(|candle| candle.close)
    }

    fn piece_before(&self, base: Base, time: Millis) -> Option<Candle> {
        let traded = self.traded(base);
        let end = traded.partition_point(|candle| candle.open_time < time);
        let made = end.checked_sub(1).map(|index| traded[index]);
        let told = self.recorded.get(&base.interval());
        let told = told.and_then(|recorded| recorded.range(..time).next_back());
        let told = told.map(|(_, recorded)| recorded.candle);
        [told, made].into_iter().flatten().max_by_key(|candle| candle.open_time)
    }

    /// The candle that opened at `open`, as far as it has come by `now`; flat if nothing traded in it. `None` before
    /// anything ever did, and if not all of it is known.
    pub fn at(&self, interval: Interval, open: Millis, offset: Millis, now: Millis) -> Option<Candle> {
        let end = interval.next_open(open, offset);
        let recorded = self.recorded_at(interval, open).filter(|_| offset == 0);
        if let Some(closed) = recorded.filter(|recorded| recorded.closed) {
            return Some(closed.candle);
        }
        let base = Base::of(interval);
        if self.coverage.is_whole(open, end.min(now + 1)) {
            return self.made(base, open, end);
        }
        if let Some(growing) = recorded.filter(|_| now < end) {
            return Some(growing.candle);
        }
        self.is_in_pieces(base, open, end, now)
            .then(|| self.made(base, open, end))
            .flatten()
    }

    fn made(&self, base: Base, open: Millis, end: Millis) -> Option<Candle> {
        let merged = self.merged(base, open, end);
        let candle = merged.map(|candle| Candle {
            open_time: open,
            ..candle
        });
        let flat = || Some(Candle::flat(open, self.piece_before(base, open)?.close));
        candle.or_else(flat)
    }

    /// Whether each base candle up to now is known, from trades or because it was recorded.
    fn is_in_pieces(&self, base: Base, open: Millis, end: Millis, now: Millis) -> bool {
        let known = |open: Millis| {
            let end = open + base.length();
            let recorded = self.recorded_at(base.interval(), open);
            recorded.is_some_and(|recorded| recorded.closed || now < end)
                || self.coverage.is_whole(open, end.min(now + 1))
        };
        std::iter::successors(Some(open), |open| Some(open + base.length()))
            .take_while(|open| *open < end && *open <= now)
            .all(known)
    }

    /// Candles by the exchange's rules: with a start the oldest from there, without one the newest; those count
    /// whose opening lies between start and end, both included.
    pub fn range(&self, range: &Range, now: Millis) -> Vec<(Candle, Millis)> {
        let (interval, offset) = (range.interval, range.offset);
        let Some(oldest) = self.oldest(interval, offset) else {
            return Vec::new();
        };
        let newest = interval.open_of(range.end.unwrap_or(now).min(now), offset);
        let mut opens = match range.start {
            Some(start) => {
                let open = interval.open_of(start, offset);
                let from = if open < start {
                    interval.next_open(open, offset)
                } else {
                    open
                };
                forward(range, from.max(oldest), newest)
            }
            None => backward(range, newest, oldest),
        };
        opens.retain(|open| *open <= newest);
        let told = |open: Millis| {
            let candle = self.at(interval, open, offset, now)?;
            Some((candle, interval.next_open(open, offset) - 1))
        };
        opens.into_iter().filter_map(told).collect()
    }
}

fn forward(range: &Range, from: Millis, newest: Millis) -> Vec<Millis> {
    std::iter::successors(Some(from), |open| Some(range.interval.next_open(*open, range.offset)))
        .take_while(|open| *open <= newest)
        .take(range.limit)
        .collect()
}

fn backward(range: &Range, newest: Millis, oldest: Millis) -> Vec<Millis> {
    let mut opens: Vec<Millis> = std::iter::successors(Some(newest), |open| {
        Some(range.interval.open_of(open - 1, range.offset))
    })
    .take_while(|open| *open >= oldest)
    .take(range.limit)
    .collect();
    opens.reverse();
    opens
}

/// A trade that comes late is counted where it belongs.
fn add(base: &mut VecDeque<Candle>, length: Millis, kept: usize, trade: &Trade, count: u64) {
    let open = trade.time - trade.time.rem_euclid(length);
    let at = base.partition_point(|candle| candle.open_time < open);
    if let Some(candle) = base.get_mut(at).filter(|candle| candle.open_time == open) {
        candle.add(trade, count);
        return;
    }
    base.insert(at, Candle::of_trade(open, trade, count));
    if base.len() > kept {
        base.pop_front();
    }
}

#[cfg(test)]
mod tests;
