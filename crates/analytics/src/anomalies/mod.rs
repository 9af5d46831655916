//! Differences from a symbol's own past. Every check says what it compared; none says what follows from it.

use std::collections::VecDeque;

use schemars::JsonSchema;
use serde::Serialize;

use crate::depth::Band;
use crate::figure::{Severity, Standing, Unavailable, median, quantile, significant};
use crate::icebergs::{IcebergHint, IcebergTracker};
use crate::walls::{Vanished, Walls};
use tribune_binance::{Candle, Millis};

/// A quote rate below this many times the usual is no anomaly, whatever its percentile.
const QUOTE_RATE_FACTOR: f64 = 3.0;
/// Both depth and spread must be this many times worse than usual.
const STRESS_FACTOR: f64 = 2.0;
/// Robust deviations from the median that make an outlier.
const OUTLIER_DEVIATIONS: f64 = 6.0;
/// The median absolute deviation of a normal distribution is this share of its standard deviation.
const MAD_OF_NORMAL: f64 = 0.6745;

const MIN_BASELINE: usize = 30;
/// An hour of samples, one every ten seconds.
const MOST_SAMPLES: usize = 360;

/// The last values of one figure of one symbol.
#[derive(Debug, Clone, Default)]
pub(crate) struct Baseline {
    values: VecDeque<f64>,
}

impl Baseline {
    /// Ignores NaN and infinities.
    pub fn push(&mut self, value: f64) {
        if !value.is_finite() {
            return;
        }
        if self.values.len() == MOST_SAMPLES {
            self.values.pop_front();
        }
        self.values.push_back(value);
    }

    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// The value below which `share` of the values lie; `None` while there are too few.
    pub fn quantile(&self, share: f64) -> Result<f64, Unavailable> {
        if self.len() < MIN_BASELINE {
            return Err(short_past(self.len()));
        }
        let mut values: Vec<f64> = self.values.iter().copied().collect();
        quantile(&mut values, share).ok_or(short_past(0))
    }

    pub fn median(&self) -> Result<f64, Unavailable> {
        self.quantile(0.5)
    }
}

const fn short_past(have: usize) -> Unavailable {
    Unavailable::TooFew { what: "baseline samples", have, need: MIN_BASELINE }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AnomalyKind {
    QuoteRate,
    LiquidityStress,
    VolumeOutlier,
    ReturnOutlier,
    IcebergHint,
    LargeLevelVanishedUntraded,
}

/// One comparison, whether or not it found something.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Check {
    #[serde(rename = "type")]
    pub kind: AnomalyKind,
    /// Null if it could not be checked.
    pub found: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub severity: Option<Severity>,
    pub value: Option<f64>,
    /// What the value was compared with, where that is the symbol's past.
    pub baseline: Option<f64>,
    /// From where on the value counts as found.
    pub threshold: Option<f64>,
    pub samples: usize,
    /// The window of the value: `the last 300 s`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<Unavailable>,
    pub standing: Standing,
    pub note: &'static str,
}

struct Compared {
    value: f64,
    baseline: Option<f64>,
    threshold: f64,
}

impl Check {
    fn of(kind: AnomalyKind, samples: usize, outcome: Result<Compared, Unavailable>) -> Self {
        let compared = outcome.as_ref().ok();
        let excess = compared.map(|compared| compared.value / compared.threshold);
        let found = excess.map(|excess| excess >= 1.0);
        Self {
            kind,
            found,
            // Low from the threshold on.
            severity: excess.filter(|excess| *excess >= 1.0).map(|excess| Severity::by_size(excess, 2.0, 4.0)),
            value: compared.and_then(|compared| significant(compared.value)),
            baseline: compared.and_then(|compared| significant(compared.baseline?)),
            threshold: compared.and_then(|compared| significant(compared.threshold)),
            samples,
            window: None,
            reason: outcome.err(),
            standing: Standing::Hint,
            note: kind.note(),
        }
    }

    pub fn not_made(kind: AnomalyKind, reason: Unavailable) -> Self {
        Self::of(kind, 0, Err(reason))
    }

    #[must_use]
    pub fn over(mut self, window: impl Into<String>) -> Self {
        self.window = Some(window.into());
        self
    }
}

impl AnomalyKind {
    /// The checks that need a watched book.
    pub const OF_BOOKS: [Self; 4] =
        [Self::QuoteRate, Self::LiquidityStress, Self::IcebergHint, Self::LargeLevelVanishedUntraded];

    const fn note(self) -> &'static str {
        match self {
            Self::QuoteRate => "book updates for each trade, against its own past; 100 ms updates hide churn",
            Self::LiquidityStress => {
                "times worse than usual, the lesser of depth lost and spread widened; predicts nothing"
            }
            Self::VolumeOutlier => "robust deviations of the last closed candle's log volume from those before",
            Self::ReturnOutlier => "robust deviations of the last closed candle's log return from those before",
            Self::IcebergHint => "prices at which far more traded than was shown; several people look the same as one",
            Self::LargeLevelVanishedUntraded => {
                "large levels that vanished untraded in the window; an observation, whose reason cannot be known"
            }
        }
    }
}

/// Book updates per trade over a window, against earlier windows. An anomaly is above both the 99th percentile of the past
/// and three times its median.
pub(crate) fn quote_rate(updates: u64, trades: u64, past: &Baseline) -> Check {
    let compare = || {
        if trades == 0 {
            return Err(Unavailable::NoTrades);
        }
        let usual = past.median()?;
        let threshold = past.quantile(0.99)?.max(QUOTE_RATE_FACTOR * usual);
        if threshold <= 0.0 {
            return Err(Unavailable::NoVariation);
        }
        Ok(Compared { value: updates as f64 / trades as f64, baseline: Some(usual), threshold })
    };
    Check::of(AnomalyKind::QuoteRate, past.len(), compare())
}

/// The thinner side of a band and the spread, against their past. An anomaly if both are at least twice as bad as usual.
pub(crate) fn liquidity_stress(band: &Band, spread_bps: f64, past_depth: &Baseline, past_spread: &Baseline) -> Check {
    let depth = band.smaller_side().as_f64();
    let compare = || {
        if !band.complete {
            return Err(Unavailable::BeyondReach);
        }
        let (usual_depth, usual_spread) = (past_depth.median()?, past_spread.median()?);
        if usual_depth <= 0.0 || usual_spread <= 0.0 {
            return Err(Unavailable::NoVariation);
        }
        // No depth is infinitely worse, so the spread decides.
        let value = (usual_depth / depth).min(spread_bps / usual_spread);
        Ok(Compared { value, baseline: Some(1.0), threshold: STRESS_FACTOR })
    };
    let samples = past_depth.len().min(past_spread.len());
    Check::of(AnomalyKind::LiquidityStress, samples, compare())
}

/// The last closed candle's volume against those before it; candles without volume are skipped.
pub fn volume_outlier(candles: &[Candle]) -> Check {
    let volume = |candle: &Candle| Some(candle.volume.as_f64()).filter(|volume| *volume > 0.0);
    let logs: Vec<f64> = candles.iter().filter_map(volume).map(f64::ln).collect();
    let last_traded = candles.last().is_some_and(|last| !last.volume.is_zero());
    let outcome = if last_traded { deviations(&logs, |z| z) } else { Err(Unavailable::NoTrades) };
    Check::of(AnomalyKind::VolumeOutlier, logs.len().saturating_sub(1), outcome)
}

/// The last closed candle's return against those before it, up or down.
pub fn return_outlier(candles: &[Candle]) -> Check {
    let returns = candles.windows(2).map(|pair| (pair[1].close.as_f64() / pair[0].close.as_f64()).ln());
    let returns: Vec<f64> = returns.collect();
    let outcome = if returns.iter().all(|change| change.is_finite()) {
        deviations(&returns, f64::abs)
    } else {
        Err(Unavailable::BadPrice)
    };
    Check::of(AnomalyKind::ReturnOutlier, returns.len().saturating_sub(1), outcome)
}

/// How far the last value lies from the median of those before it, in robust standard deviations.
fn deviations(values: &[f64], of: impl Fn(f64) -> f64) -> Result<Compared, Unavailable> {
    let (last, past) = values.split_last().ok_or(short_past(0))?;
    if past.len() < MIN_BASELINE {
        return Err(short_past(past.len()));
    }
    let middle = median(&mut past.to_vec()).ok_or(short_past(0))?;
    let mut distances: Vec<f64> = past.iter().map(|value| (value - middle).abs()).collect();
    let spread = median(&mut distances).filter(|mad| *mad > 0.0).ok_or(Unavailable::NoVariation)?;
    Ok(Compared { value: of(MAD_OF_NORMAL * (last - middle) / spread), baseline: None, threshold: OUTLIER_DEVIATIONS })
}

pub(crate) fn iceberg_check(tracker: &IcebergTracker) -> Check {
    let outcome = match tracker.prices_watched() {
        0 => Err(Unavailable::Unknown("the recent book")),
        _ => Ok(count(tracker.hints().len())),
    };
    Check::of(AnomalyKind::IcebergHint, tracker.prices_watched(), outcome)
}

/// A book must have been watched this long before the check can find nothing.
const VANISHED_WATCH_MS: Millis = 30_000;

/// Large levels that vanished untraded after `since`.
pub(crate) fn vanished_check(walls: &Walls, since: Millis) -> Check {
    let outcome = match (walls.watched_ms, walls.vanished_since(since).count()) {
        (0, _) => Err(Unavailable::Unknown("the recent book")),
        // A short watch without a finding proves nothing.
        (..VANISHED_WATCH_MS, 0) => Err(Unavailable::TooShort { need_secs: (VANISHED_WATCH_MS / 1_000) as u32 }),
        (_, vanished) => Ok(count(vanished)),
    };
    let samples = walls.bid_levels_used.saturating_add(walls.ask_levels_used);
    Check::of(AnomalyKind::LargeLevelVanishedUntraded, samples, outcome)
}

fn count(found: usize) -> Compared {
    Compared { value: found as f64, baseline: None, threshold: 1.0 }
}

#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Anomalies {
    pub found: usize,
    /// Checks that could be made.
    pub checked: usize,
    pub checks: Vec<Check>,
    /// The prices that the iceberg hint is of.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub icebergs: Vec<IcebergHint>,
    /// The levels that vanished untraded in the window of that check.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub vanished_untraded: Vec<Vanished>,
    pub standing: Standing,
    pub note: &'static str,
}

impl From<Vec<Check>> for Anomalies {
    fn from(checks: Vec<Check>) -> Self {
        Self {
            found: checks.iter().filter(|check| check.found == Some(true)).count(),
            checked: checks.iter().filter(|check| check.found.is_some()).count(),
            checks,
            icebergs: Vec::new(),
            vanished_untraded: Vec::new(),
            standing: Standing::Hint,
            note: "differences from this symbol's own past; each may be harmless",
        }
    }
}

#[cfg(test)]
mod tests;
