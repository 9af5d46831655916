//! What all figures share: how far they can be trusted, why one is missing, how they are rounded.

use rust_decimal::prelude::ToPrimitive;
use rust_decimal::{Decimal, RoundingStrategy};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use tribune_binance::{Aggressor, Millis, Notional, Price, Quantity};

/// Decimal places of ratios, shares and basis points in an answer.
pub const RATIO_PLACES: u32 = 4;
/// Decimal places of computed prices: a hundredth of the smallest tick.
pub const PRICE_PLACES: u32 = 10;
/// The fewest significant digits of a small computed price.
const PRICE_DIGITS: u32 = 5;

/// How far a figure can be trusted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// Arithmetic on what the exchange said.
    #[default]
    Exact,
    /// An established estimate, within its stated limits.
    Sound,
    /// Describes the past; predicts nothing.
    Descriptive,
    /// One choice among many that would do.
    Convention,
    /// Worth a look, often nothing.
    Hint,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    Low,
    Medium,
    High,
}

impl Severity {
    /// By how large a figure is: medium and high from these on.
    pub(crate) fn by_size(figure: f64, medium: f64, high: f64) -> Self {
        match figure {
            figure if figure >= high => Self::High,
            figure if figure >= medium => Self::Medium,
            _ => Self::Low,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BookSide {
    Bid,
    Ask,
}

impl BookSide {
    /// The side that a trade took from.
    pub const fn hit_by(aggressor: Aggressor) -> Self {
        match aggressor {
            Aggressor::Buyer => Self::Ask,
            Aggressor::Seller => Self::Bid,
        }
    }
}

// Why a figure is missing. Written out in answers. (A doc comment would be repeated in their schemas.)
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, JsonSchema)]
#[serde(into = "String")]
#[schemars(with = "String", inline)]
pub enum Unavailable {
    #[error("the book has no bids")]
    NoBids,
    #[error("the book has no asks")]
    NoAsks,
    #[error("the book is crossed (best bid {bid}, best ask {ask}) until it is fetched again")]
    Crossed { bid: Price, ask: Price },
    #[error("a price is not above zero")]
    BadPrice,
    #[error("the numbers are too large to count exactly")]
    TooLarge,
    #[error("the size must be above zero")]
    NothingAsked,
    #[error("no level lies in the band")]
    EmptyBand,
    #[error("the band reaches beyond the known part of the book")]
    BeyondReach,
    #[error("the whole book holds less than the size asked for")]
    TooSmallBook,
    #[error("the known levels hold less than the size asked for; deeper levels are not known")]
    BeyondKnownLevels,
    #[error("no trades in the window")]
    NoTrades,
    #[error("{have} {what}, {need} needed")]
    TooFew { what: &'static str, have: usize, need: usize },
    #[error("all samples are equal")]
    NoVariation,
    #[error("the rows would be more than {most}: give a larger tick_size")]
    TooManyRows { most: usize },
    #[error("a candle's high is below its low")]
    BadCandle,
    #[error("watched for less than {need_secs} s")]
    TooShort { need_secs: u32 },
    #[error("the data is {secs} s old")]
    TooOld { secs: u64 },
    #[error("only {have_pct}% of the weight has an input, {need_pct}% needed")]
    TooLittleWeight { have_pct: u32, need_pct: u32 },
    #[error("{0} is not known")]
    Unknown(&'static str),
}

impl From<Unavailable> for String {
    fn from(reason: Unavailable) -> Self {
        reason.to_string()
    }
}

/// From after `start_ms` to `end_ms` inclusive, so that consecutive windows do not overlap.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Window {
    pub start_ms: Millis,
    pub end_ms: Millis,
}

impl Window {
    /// The `seconds` before `now`, with `now`.
    pub fn last(seconds: u32, now: Millis) -> Self {
        Self { start_ms: now.saturating_sub(Millis::from(seconds) * 1000), end_ms: now }
    }

    pub const fn contains(&self, time: Millis) -> bool {
        self.start_ms < time && time <= self.end_ms
    }

    /// Zero if it ends before it starts.
    pub fn seconds(&self) -> f64 {
        self.millis() as f64 / 1000.0
    }

    pub fn millis(&self) -> Millis {
        self.end_ms.saturating_sub(self.start_ms).max(0)
    }
}

/// For answers: how many times the other one integer is, with four places; `None` for a division by zero.
pub fn ratio(numerator: i128, denominator: i128) -> Option<f64> {
    quotient(numerator, denominator).and_then(rounded)
}

/// A quotient of integers, to 28 significant digits; `None` for a division by zero.
pub fn quotient(numerator: i128, denominator: i128) -> Option<Decimal> {
    // Both in the same unit, so the unit does not matter; this one keeps 28 digits of any integer.
    let decimal = |units| Notional::from_units(units).decimal();
    decimal(numerator).checked_div(decimal(denominator))
}

/// For answers: a ratio with four places, half to even.
pub fn rounded(ratio: Decimal) -> Option<f64> {
    ratio.round_dp(RATIO_PLACES).to_f64().map(without_sign_of_zero)
}

/// For answers: basis points with four places, half to even; smaller values keep two digits, so that they are not zero.
pub fn rounded_bps(bps: Decimal) -> Option<f64> {
    let places = bps.round_dp(RATIO_PLACES);
    let shown = if places.is_zero() { bps.round_sf(2)? } else { places };
    shown.to_f64().map(without_sign_of_zero)
}

/// Removes the sign of a negative zero, which JSON would print.
fn without_sign_of_zero(value: f64) -> f64 {
    value + 0.0
}

/// For answers: a computed price with ten places, or five digits where that is finer; half to even.
pub fn derived_price(price: Decimal) -> Decimal {
    let half_to_even = RoundingStrategy::MidpointNearestEven;
    let is_small = price.abs() < Decimal::new(1, PRICE_PLACES - PRICE_DIGITS + 1);
    let digits = is_small.then(|| price.round_sf_with_strategy(PRICE_DIGITS, half_to_even));
    let rounded = digits.flatten();
    rounded.unwrap_or_else(|| price.round_dp_with_strategy(PRICE_PLACES, half_to_even)).normalize()
}

/// For answers: a statistic with six significant digits; `None` for NaN.
pub fn significant(statistic: f64) -> Option<f64> {
    if !statistic.is_finite() {
        return None;
    }
    format!("{statistic:.5e}").parse().ok().map(without_sign_of_zero)
}

/// `part` in basis points of `whole`.
pub fn bps(part: Decimal, whole: Decimal) -> Option<Decimal> {
    part.checked_div(whole)?.checked_mul(Decimal::from(10_000))
}

/// (a − b)/(a + b), from −1 to 1; `None` if both are zero.
pub fn imbalance(a: i128, b: i128) -> Option<f64> {
    ratio(a.checked_sub(b)?, a.checked_add(b)?)
}

/// Twice the median of quantities, which is an integer; `None` without any, or if it is too large.
pub(crate) fn twice_median(mut quantities: Vec<Quantity>) -> Option<i128> {
    quantities.sort_unstable();
    let (upper, lower) = (quantities.len() / 2, quantities.len().checked_sub(1)? / 2);
    quantities[upper].checked_add(quantities[lower]).map(Quantity::units)
}

/// The median: the mean of the two middle values if their number is even.
pub fn median(values: &mut [f64]) -> Option<f64> {
    quantile(values, 0.5)
}

/// The value below which `share` of the values lie, interpolated between neighbours.
pub fn quantile(values: &mut [f64], share: f64) -> Option<f64> {
    let last = values.len().checked_sub(1)?;
    values.sort_unstable_by(f64::total_cmp);
    let place = share.clamp(0.0, 1.0) * last as f64;
    let below = place.floor() as usize;
    let above = (below + 1).min(last);
    Some(values[below] + (values[above] - values[below]) * (place - below as f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounding_is_as_stated() {
        // 2/3 = 0.66666… ; 1/8 = 0.125 exactly.
        assert_eq!(quotient(2, 3).and_then(rounded), Some(0.6667));
        assert_eq!(quotient(1, 8).and_then(rounded), Some(0.125));
        assert_eq!(quotient(1, 0), None);
        // Half to even at the fourth place.
        assert_eq!(rounded(Decimal::new(12_345, 5)), Some(0.1234));
        assert_eq!(significant(0.000_012_345_678), Some(0.000_012_345_7));
        assert_eq!(significant(f64::NAN), None);
        let almost_nothing = rounded(Decimal::new(-1, 6)).expect("a number");
        assert!(almost_nothing == 0.0 && almost_nothing.is_sign_positive());
        let bps = |mantissa, scale| rounded_bps(Decimal::new(mantissa, scale));
        assert_eq!((bps(15_625, 7), bps(15_625, 9)), (Some(0.0016), Some(0.000_016)));
        assert_eq!((bps(5, 5), bps(-1, 6), bps(0, 0)), (Some(0.000_05), Some(-0.000_001), Some(0.0)));
        assert_eq!(imbalance(0, 0), None);
        assert_eq!(imbalance(i128::MAX, 1), None);
        assert_eq!(imbalance(i128::MAX, 0), Some(1.0));
    }

    #[test]
    fn small_prices_keep_their_digits() {
        let of = |mantissa, scale| derived_price(Decimal::new(mantissa, scale)).to_string();
        // From 0.000001 on ten places are five digits or more.
        assert_eq!(of(100_857_142_857_142, 12), "100.8571428571");
        assert_eq!(of(123_456_789, 13), "0.0000123457");
        assert_eq!(of(160_592_857, 16), "0.000000016059");
        assert_eq!(of(-160_592_857, 16), "-0.000000016059");
        assert_eq!((of(99_994_449, 14), of(0, 4)), ("0.00000099994".to_owned(), "0".to_owned()));
    }

    #[test]
    fn quantiles_interpolate() {
        assert_eq!(median(&mut []), None);
        assert_eq!(median(&mut [3.0, 1.0]), Some(2.0));
        // Place 0.99 · 4 = 3.96 among 1…5: 4 + 0.96.
        assert_eq!(quantile(&mut [5.0, 4.0, 3.0, 2.0, 1.0], 0.99), Some(4.96));
    }

    #[test]
    fn consecutive_windows_do_not_overlap() {
        let window = Window::last(10, 20_000);
        assert!(!window.contains(10_000) && window.contains(10_001) && window.contains(20_000));
        assert_eq!(window.seconds(), 10.0);
    }
}
