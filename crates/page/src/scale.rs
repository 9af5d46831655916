//! Positions of values on an axis, and round tick values.

/// The range of an axis. Both ends are finite, the second is larger, and values between them are distinguishable.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scale {
    low: f64,
    high: f64,
}

/// Round values within a scale, and their decimal places.
#[derive(Debug, Clone, PartialEq)]
pub struct Ticks {
    pub values: Vec<f64>,
    pub places: usize,
}

/// Beyond these, differences and ratios overflow.
const LARGEST: f64 = 1e150;
const SMALLEST: f64 = 1e-150;
/// A smaller span relative to its values is lost in rounding.
const FINEST: f64 = 1e-12;

impl Scale {
    /// From the smallest to the largest finite value; `None` if there is none.
    pub fn over(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut ends: Option<(f64, f64)> = None;
        for value in values.into_iter().filter(|value| value.is_finite()) {
            let (low, high) = ends.unwrap_or((value, value));
            ends = Some((low.min(value), high.max(value)));
        }
        ends.map(|(low, high)| Self::between(low, high))
    }

    /// Equal ends are moved apart, so that the value is in the middle.
    fn between(low: f64, high: f64) -> Self {
        let (low, high) = (low.clamp(-LARGEST, LARGEST), high.clamp(-LARGEST, LARGEST));
        let size = low.abs().max(high.abs());
        if high - low > (size * FINEST).max(SMALLEST) {
            return Self { low, high };
        }
        let apart = if size > SMALLEST { size * 0.01 } else { 1.0 };
        Self { low: low - apart, high: high + apart }
    }

    /// With padding at both ends, as a share of the range.
    #[must_use]
    pub fn with_room(self, share: f64) -> Self {
        let room = (self.high - self.low) * share;
        Self::between(self.low - room, self.high + room)
    }

    pub fn low(self) -> f64 {
        self.low
    }

    pub fn high(self) -> f64 {
        self.high
    }

    pub fn contains(self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }

    /// The position of a value, from 0 at the low end to 1 at the high end; clamped.
    pub fn share(self, value: f64) -> f64 {
        if value.is_nan() {
            return 0.0;
        }
        (((value.clamp(self.low, self.high)) - self.low) / (self.high - self.low)).clamp(0.0, 1.0)
    }

    /// The same from the top of a chart, where the high end is.
    pub fn from_top(self, value: f64) -> f64 {
        1.0 - self.share(value)
    }

    /// About as many round values as wanted, in steps of 1, 2 or 5 times a power of ten.
    pub fn ticks(self, about: usize) -> Ticks {
        let wanted = (self.high - self.low) / about.clamp(1, 20) as f64;
        let power = wanted.log10().floor();
        let unit = 10f64.powf(power);
        let (step, power) = match wanted / unit {
            ..1.5 => (unit, power),
            ..3.0 => (2.0 * unit, power),
            ..7.0 => (5.0 * unit, power),
            _ => (10.0 * unit, power + 1.0),
        };
        let first = (self.low / step).ceil();
        let mut values: Vec<f64> = Vec::new();
        for index in 0..=40 {
            let value = (first + f64::from(index)) * step;
            if self.contains(value) && values.last().is_none_or(|last| *last < value) {
                // Avoids a negative zero.
                values.push(value + 0.0);
            }
        }
        Ticks { values, places: usize::try_from(-power as i64).unwrap_or(0) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn over(values: &[f64]) -> Scale {
        Scale::over(values.iter().copied()).expect("a scale")
    }

    #[test]
    fn ticks_are_round() {
        let ticks = over(&[94_120.0, 96_480.0]).ticks(5);
        assert_eq!(ticks.values, [94_500.0, 95_000.0, 95_500.0, 96_000.0]);
        assert_eq!(ticks.places, 0);
        let ticks = over(&[0.0, 0.1]).ticks(4);
        assert_eq!(ticks.values, [0.0, 0.02, 0.04, 0.06, 0.08, 0.1]);
        assert_eq!(ticks.places, 2);
        let ticks = over(&[-1.0, 1.0]).ticks(4);
        assert_eq!(ticks.values, [-1.0, -0.5, 0.0, 0.5, 1.0]);
    }

    #[test]
    fn single_value_is_in_the_middle() {
        for value in [0.0, 7.5, -3.0, 1e18, 1e-12, 1e-300, 1e140] {
            assert!((over(&[value]).share(value) - 0.5).abs() < 1e-6, "{value}");
        }
    }

    #[test]
    fn non_finite_values_are_ignored() {
        assert_eq!(Scale::over([f64::NAN, f64::INFINITY]), None);
        assert_eq!(Scale::over([]), None);
        let scale = over(&[f64::NAN, 1.0, 3.0, f64::NEG_INFINITY]);
        assert_eq!((scale.low(), scale.high()), (1.0, 3.0));
        assert_eq!(scale.share(f64::NAN), 0.0);
        assert_eq!(scale.share(f64::INFINITY), 1.0);
    }

    proptest! {
        #[test]
        fn ticks_lie_inside_and_increase(a: f64, b: f64, about in 0usize..30) {
            let Some(scale) = Scale::over([a, b]) else { return Ok(()) };
            let ticks = scale.ticks(about);
            prop_assert!(ticks.values.iter().all(|value| scale.contains(*value)));
            prop_assert!(ticks.values.windows(2).all(|pair| pair[0] < pair[1]));
            prop_assert!(ticks.values.len() <= 41);
        }

        #[test]
        fn ordinary_scales_have_ticks(low in -1e9..1e9f64, span in 1e-3..1e9f64, about in 2usize..12) {
            let ticks = over(&[low, low + span]).ticks(about);
            prop_assert!((1..=2 * about + 1).contains(&ticks.values.len()), "{:?}", ticks);
        }

        #[test]
        fn shares_are_within_the_whole(a: f64, b: f64, value: f64) {
            let Some(scale) = Scale::over([a, b]) else { return Ok(()) };
            prop_assert!((0.0..=1.0).contains(&scale.share(value)));
            prop_assert!((0.0..=1.0).contains(&scale.with_room(0.1).share(value)));
        }
    }
}
