//! Mid, spread and imbalance of one book over the last minutes, for charts and for price impact.

use std::collections::VecDeque;

use rust_decimal::prelude::ToPrimitive;

use crate::depth::top_imbalance;
use crate::quotes::Touch;
use tribune_binance::{Depth, Millis};

/// Ten minutes of samples: 300 of 40 bytes, about 12 KB per symbol. The feed keeps them, so that a page shows the past when
/// it is opened.
const SAMPLES: usize = 300;
/// The time between samples.
pub const EVERY_MS: Millis = 2_000;
/// Observations come about once a second.
const JITTER_MS: Millis = 500;
/// Samples further apart than this have a gap between them.
const MOST_PAUSE_MS: Millis = 3 * EVERY_MS;
/// Over how long samples are kept.
pub const HISTORY_SECS: u32 = 600;
pub const IMBALANCE_LEVELS: usize = 20;

/// A book at one moment.
#[derive(Debug, Clone, Copy, Default)]
pub struct Sample {
    /// By the exchange's clock.
    pub time: Millis,
    /// In the quote asset.
    pub mid: Option<f64>,
    /// In basis points of the mid.
    pub spread_bps: Option<f32>,
    /// (bid − ask)/(bid + ask) of the best [`IMBALANCE_LEVELS`] a side.
    pub imbalance: Option<f32>,
}

impl Sample {
    fn gap(time: Millis) -> Self {
        Self { time, ..Self::default() }
    }

    fn of(depth: &Depth, time: Millis) -> Self {
        let touch = Touch::of(depth).ok();
        let top = top_imbalance(depth, IMBALANCE_LEVELS).ok();
        Self {
            time,
            mid: touch.and_then(|touch| touch.mid().to_f64()),
            spread_bps: touch.and_then(|touch| touch.spread_bps()?.to_f32()),
            imbalance: top.and_then(|top| top.imbalance.map(|imbalance| imbalance as f32)),
        }
    }

    fn is_gap(&self) -> bool {
        self.spread_bps.is_none() && self.imbalance.is_none()
    }
}

#[derive(Debug, Default)]
pub(crate) struct History {
    samples: VecDeque<Sample>,
}

impl History {
    /// The book is exact: one sample every two seconds, and at once after a gap.
    pub(crate) fn look(&mut self, depth: &Depth, time: Millis) {
        self.note(Sample::of(depth, time));
    }

    /// The book is not exact: a gap begins at once, and lasts.
    pub(crate) fn interrupted(&mut self, time: Millis) {
        // A book that was never exact has no history to interrupt.
        if !self.samples.is_empty() {
            self.note(Sample::gap(time));
        }
    }

    /// Oldest first.
    pub(crate) fn samples(&self) -> Vec<Sample> {
        self.samples.iter().copied().collect()
    }

    fn note(&mut self, sample: Sample) {
        if let Some(last) = self.samples.back().copied() {
            let apart = sample.time.saturating_sub(last.time);
            if last.is_gap() == sample.is_gap() && apart.saturating_abs() < EVERY_MS - JITTER_MS {
                return;
            }
            if apart < 0 {
                // The exchange's clock was set back, or a replay restarted: earlier times are not comparable.
                self.samples.clear();
            } else if apart > MOST_PAUSE_MS && !last.is_gap() {
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
    use tribune_binance::testing::depth;

    fn book() -> Depth {
        // Mid 100, spread 2: 200 bps. (3 − 1)/(3 + 1) = 0.5.
        depth(&[("99", "3")], &[("101", "1")])
    }

    fn spreads(history: &History) -> Vec<(Millis, Option<f32>)> {
        history.samples().iter().map(|sample| (sample.time, sample.spread_bps)).collect()
    }

    #[test]
    fn one_sample_every_two_seconds() {
        let mut history = History::default();
        for second in 0..5 {
            // Looks come a little late each time.
            history.look(&book(), second * 1_010);
        }
        assert_eq!(spreads(&history), [(0, Some(200.0)), (2_020, Some(200.0)), (4_040, Some(200.0))]);
        assert_eq!(history.samples()[0].imbalance, Some(0.5));
    }

    #[test]
    fn interruption_is_a_gap() {
        let mut history = History::default();
        history.interrupted(-1_000);
        assert!(spreads(&history).is_empty(), "warming is no interruption");
        history.look(&book(), 0);
        for time in [1_000, 2_000, 3_000] {
            history.interrupted(time);
        }
        history.look(&book(), 4_000);
        assert_eq!(spreads(&history), [(0, Some(200.0)), (1_000, None), (3_000, None), (4_000, Some(200.0))]);
    }

    #[test]
    fn pause_between_samples_is_a_gap() {
        let mut history = History::default();
        history.look(&book(), 0);
        history.look(&book(), 6_000);
        assert_eq!(spreads(&history).len(), 2, "a slow second is none");
        history.look(&book(), 60_000);
        assert_eq!(spreads(&history)[2..], [(8_000, None), (60_000, Some(200.0))]);
    }

    #[test]
    fn history_is_bounded_and_restarts_with_the_clock() {
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
    fn empty_side_leaves_nothing_to_draw() {
        let mut history = History::default();
        history.look(&depth(&[("99", "3")], &[]), 0);
        assert_eq!(spreads(&history), [(0, None)]);
        assert_eq!(std::mem::size_of::<Sample>(), 40);
    }
}
