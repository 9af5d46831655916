//! A symbol's own past.

use std::collections::VecDeque;

use crate::figure::{Unavailable, quantile};

pub(super) const MIN_BASELINE: usize = 30;

/// An hour of samples, one every ten seconds.
const MOST: usize = 360;

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
        if self.values.len() == MOST {
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

pub(super) const fn short_past(have: usize) -> Unavailable {
    Unavailable::too_few("baseline samples", have, MIN_BASELINE)
}
