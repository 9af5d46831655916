//! Mid, spread and imbalance of one book over the last minutes, for those who draw them, and for how much trading
//! moves the price.

use std::collections::VecDeque;

use rust_decimal::prelude::ToPrimitive;

use crate::analytics::depth::top_imbalance;
use crate::analytics::quotes::Touch;
use crate::book::Depth;
use crate::model::Millis;

/// Ten minutes of samples: 300 of 24 bytes, about 7 KB a symbol, so that hundreds of tracked books cost little more
/// than one of them does. Kept by the feed because pages come and go, and the first look at one must show a past.
const SAMPLES: usize = 300;
/// How far samples are apart.
pub const EVERY_MS: Millis = 2_000;
/// Looks come once a second, more or less.
const JITTER_MS: Millis = 500;
/// Nothing is known of the time between samples that are further apart than this.
const MOST_PAUSE_MS: Millis = 3 * EVERY_MS;
/// Over how long samples are kept.
pub const HISTORY_SECS: u32 = 600;
/// The best levels of each side that the imbalance is taken of.
pub const IMBALANCE_LEVELS: usize = 20;

/// One moment of a book. Not a number where the book was not known, which takes half the room of an option.
#[derive(Debug, Clone, Copy)]
pub struct Sample {
    /// By the exchange's clock.
    pub time: Millis,
    mid: f64,
    spread_bps: f32,
    imbalance: f32,
}

impl Sample {
    const fn gap(time: Millis) -> Self {
        Self {
            time,
            mid: f64::NAN,
            spread_bps: f32::NAN,
            imbalance: f32::NAN,
        }
    }

    fn of(depth: &Depth, time: Millis) -> Self {
        let touch = Touch::of(depth).ok();
        let mid = touch.and_then(|touch| touch.mid().to_f64());
        let spread = touch.and_then(|touch| touch.spread_bps()?.to_f32());
        let imbalance = top_imbalance(depth, IMBALANCE_LEVELS).ok();
        let imbalance = imbalance.and_then(|top| top.imbalance.map(|imbalance| imbalance as f32));
        Self {
            time,
            mid: mid.unwrap_or(f64::NAN),
            spread_bps: spread.unwrap_or(f32::NAN),
            imbalance: imbalance.unwrap_or(f32::NAN),
        }
    }

    /// In the quote asset.
    pub fn mid(&self) -> Option<f64> {
        Some(self.mid).filter(|mid| mid.is_finite())
    }

    /// In basis points of the mid.
    pub fn spread_bps(&self) -> Option<f32> {
        Some(self.spread_bps).filter(|spread| spread.is_finite())
    }

    /// (bid − ask)/(bid + ask) of the best [`IMBALANCE_LEVELS`] a side.
    pub fn imbalance(&self) -> Option<f32> {
        Some(self.imbalance).filter(|imbalance| imbalance.is_finite())
    }

    fn is_gap(&self) -> bool {
        self.spread_bps.is_nan() && self.imbalance.is_nan()
    }
}

#[derive(Debug, Default)]
pub(super) struct History {
    samples: VecDeque<Sample>,
}

impl History {
    /// The book is exact: one sample every two seconds, and at once after a gap.
    pub(super) fn look(&mut self, depth: &Depth, time: Millis) {
        self.note(Sample::of(depth, time));
    }

    /// The book is not exact: a gap begins at once, and lasts.
    pub(super) fn interrupted(&mut self, time: Millis) {
        // Of a book that was never exact there is nothing to be interrupted.
        if !self.samples.is_empty() {
            self.note(Sample::gap(time));
        }
    }

    /// Oldest first.
    pub(super) fn samples(&self) -> Vec<Sample> {
        self.samples.iter().copied().collect()
    }

    fn note(&mut self, sample: Sample) {
        let is_due = self.samples.back().is_none_or(|last| {
            let apart = sample.time.saturating_sub(last.time).saturating_abs();
            last.is_gap() != sample.is_gap() || apart >= EVERY_MS - JITTER_MS
        });
        if is_due {
            self.push(sample);
        }
    }

    fn push(&mut self, sample: Sample) {
        if let Some(last) = self.samples.back().copied() {
            if sample.time < last.time {
                // The exchange's clock was put right, or a replay began again: times before do not compare.
                self.samples.clear();
            } else if sample.time.saturating_sub(last.time) > MOST_PAUSE_MS && !last.is_gap() {
                self.add(Sample::gap(last.time + EVERY_MS));
            }
        }
        self.add(sample);
    }

    fn add(&mut self, sample: Sample) {
        if self.samples.len() == SAMPLES {
            self.samples.pop_front();
        }
        self.samples.push_back(sample);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analytics::fixture::depth;

    fn book() -> Depth {
        // Mid 100, spread 2: 200 bps. (3 − 1)/(3 + 1) = 0.5.
        depth(&[("99", "3")], &[("101", "1")])
    }

    fn spreads(history: &History) -> Vec<(Millis, Option<f32>)> {
        history
            .samples()
            .iter()
            .map(|sample| (sample.time, sample.spread_bps()))
            .collect()
    }

    #[test]
    fn a_sample_is_taken_every_two_seconds_of_looks() {
        let mut history = History::default();
        for second in 0..5 {
            // Looks come a little late each time.
            history.look(&book(), second * 1_010);
        }
        assert_eq!(
            spreads(&history),
            [(0, Some(200.0)), (2_020, Some(200.0)), (4_040, Some(200.0))]
        );
        assert_eq!(history.samples()[0].imbalance(), Some(0.5));
    }

    #[test]
    fn an_interruption_is_a_gap_from_its_first_second_to_its_last() {
        let mut history = History::default();
        history.interrupted(-1_000);
        assert!(spreads(&history).is_empty(), "warming is no interruption");
        history.look(&book(), 0);
        for time in [1_000, 2_000, 3_000] {
            history.interrupted(time);
        }
        history.look(&book(), 4_000);
        assert_eq!(
            spreads(&history),
            [(0, Some(200.0)), (1_000, None), (3_000, None), (4_000, Some(200.0))]
        );
    }

    #[test]
    fn a_pause_in_which_nobody_looked_is_a_gap_too() {
        let mut history = History::default();
        history.look(&book(), 0);
        history.look(&book(), 6_000);
        assert_eq!(spreads(&history).len(), 2, "a slow second is none");
        history.look(&book(), 60_000);
        assert_eq!(spreads(&history)[2..], [(8_000, None), (60_000, Some(200.0))]);
    }

    #[test]
    fn it_is_bounded_and_a_clock_that_goes_back_begins_it_anew() {
        let mut history = History::default();
        for step in 0..1_000 {
            history.look(&book(), step * EVERY_MS);
        }
        let samples = history.samples();
        assert_eq!((samples.len(), samples[0].time), (SAMPLES, 700 * EVERY_MS));
        history.look(&book(), 5_000);
        assert_eq!(spreads(&history), [(5_000, Some(200.0))]);
    }

    #[test]
    fn a_side_that_is_empty_leaves_nothing_to_draw() {
        let mut history = History::default();
        history.look(&depth(&[("99", "3")], &[]), 0);
        assert_eq!(spreads(&history), [(0, None)]);
        assert_eq!(std::mem::size_of::<Sample>(), 24);
    }
}
