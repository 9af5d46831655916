//! Numbers, times and words for people.

use jiff::Timestamp;
use rust_decimal::Decimal;
use rust_decimal::prelude::FromPrimitive;

use crate::time;

pub fn capitalised(words: &str) -> String {
    let mut letters = words.chars();
    match letters.next() {
        Some(first) => first.to_uppercase().chain(letters).collect(),
        None => String::new(),
    }
}

/// Significant digits of a quotient.
const DERIVED_DIGITS: u32 = 8;

/// A quotient, rounded for people; other text is unchanged.
pub fn derived(text: &str) -> String {
    let number = text.parse::<Decimal>().ok().and_then(|number| number.round_sf(DERIVED_DIGITS));
    number.map_or_else(|| text.to_owned(), |number| number.normalize().to_string())
}

/// Significant digits of a ratio, and the bounds of its decimal places.
const RATIO_DIGITS: i64 = 3;
const FEWEST_PLACES: i64 = 2;
const MOST_PLACES: i64 = 6;

/// Decimal places of a ratio, by its size: the spread of one market is thousandths of a basis point, of another hundreds.
/// A ratio other than zero always has a digit.
pub fn ratio_places(ratio: Decimal) -> u32 {
    let Some(digits) = ratio.mantissa().unsigned_abs().checked_ilog10() else {
        return FEWEST_PLACES as u32;
    };
    let first = i64::from(ratio.scale()) - i64::from(digits);
    let places = (first + RATIO_DIGITS - 1).clamp(FEWEST_PLACES, MOST_PLACES);
    places.max(first) as u32
}

/// A ratio, rounded for people: `0.00156`, `12.35`, `150.00`.
pub fn ratio(ratio: Decimal) -> String {
    let shown = ratio.round_dp(ratio_places(ratio)).normalize();
    padded(&shown.to_string(), FEWEST_PLACES as usize)
}

/// Significant digits of a sum in millions or billions.
const SUM_DIGITS: u32 = 3;
/// Significant digits of a sum below a million.
const SMALL_SUM_DIGITS: u32 = 6;

/// A sum, rounded for people: `54.8 M`, `1.2 B`, `1234.57`. Other text is unchanged.
pub fn sum(exact: &str) -> String {
    let Ok(number) = exact.parse::<Decimal>() else {
        return exact.to_owned();
    };
    let units = [(1_000_000_000, "B"), (1_000_000, "M")];
    let unit = units.into_iter().find(|(size, _)| number.abs() >= Decimal::from(*size));
    let (shown, digits) = match unit {
        Some((size, _)) => (number / Decimal::from(size), SUM_DIGITS),
        None => (number, SMALL_SUM_DIGITS),
    };
    let shown = shown.round_sf(digits).unwrap_or(shown).normalize();
    match unit {
        Some((_, unit)) => format!("{shown} {unit}"),
        None => shown.to_string(),
    }
}

/// `4 s`, `3 min`, `5 h`, rounded down.
pub fn age(millis: u64) -> String {
    match millis / 1_000 {
        seconds @ 0..120 => format!("{seconds} s"),
        seconds @ 120..7_200 => format!("{} min", seconds / 60),
        seconds => format!("{} h", seconds / 3_600),
    }
}

/// `2026-01-02 03:04:05`, in UTC.
pub fn time_of(millis: i64) -> Option<String> {
    Timestamp::from_millisecond(millis).ok().map(time::second)
}

pub fn finite(text: &str) -> Option<f64> {
    text.parse().ok().filter(|number: &f64| number.is_finite())
}

/// The most decimal places of these numbers, at most 10.
pub fn places<'a>(numbers: impl IntoIterator<Item = &'a str>) -> usize {
    let places = |number: &str| number.split_once('.').map_or(0, |(_, fraction)| fraction.len());
    numbers.into_iter().map(places).max().unwrap_or(0).min(10)
}

/// Pads a number to at least this many digits after the point, so that a column of numbers lines up.
pub fn padded(number: &str, places: usize) -> String {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if places <= fraction.len() || !whole.bytes().any(|byte| byte.is_ascii_digit()) {
        return number.to_owned();
    }
    format!("{whole}.{fraction:0<places$}")
}

pub fn plain(number: f64) -> Option<String> {
    let exact = Decimal::from_f64(number).map(|number| number.normalize().to_string());
    exact.or_else(|| number.is_finite().then(|| number.to_string()))
}

pub fn dash() -> String {
    "–".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ratios_have_three_significant_digits() {
        let shown = |text: &str| ratio(text.parse().expect("a number"));
        // A tick of 0.01 at 64,000 is 0.01/64,000 · 10,000 = 0.0015625 bps.
        for (exact, expected) in [
            ("0.0015625", "0.00156"),
            ("0.0016", "0.0016"),
            ("-0.0015625", "-0.00156"),
            ("0.5", "0.50"),
            ("0.12345", "0.123"),
            ("1.23456", "1.23"),
            ("12.3456", "12.35"),
            ("150", "150.00"),
            ("1234.5678", "1234.57"),
            ("0.00000123456", "0.000001"),
            ("0.000000000123456", "0.0000000001"),
            ("0", "0.00"),
            ("0.999999", "1.00"),
        ] {
            assert_eq!(shown(exact), expected, "{exact}");
        }
    }

    #[test]
    fn ages_use_a_fitting_unit() {
        assert_eq!((&*age(999), &*age(119_999), &*age(120_000)), ("0 s", "119 s", "2 min"));
        assert_eq!((&*age(7_199_999), &*age(7_200_000)), ("119 min", "2 h"));
    }

    proptest! {
        #[test]
        fn nonzero_never_looks_like_zero(mantissa in any::<i64>(), scale in 0..=28u32) {
            let exact = Decimal::from_i128_with_scale(i128::from(mantissa), scale);
            let shown: Decimal = ratio(exact).parse().expect("a number");
            prop_assert_eq!(shown.is_zero(), exact.is_zero());
            prop_assert!(exact.is_zero() || shown.is_sign_negative() == exact.is_sign_negative());
        }
    }

    #[test]
    fn numbers_of_a_column_line_up() {
        assert_eq!((&*padded("1", 2), &*padded("1.5", 2), &*padded("-1.234", 2)), ("1.00", "1.50", "-1.234"));
        assert_eq!((&*padded("1", 0), &*padded("null", 2), &*padded("", 3)), ("1", "null", ""));
        assert_eq!((places(["1", "2.50", "3.5"]), places(["1"]), places([])), (2, 0, 0));
    }

    #[test]
    fn sums_are_rounded() {
        for (exact, shown) in [
            ("54762603.8014655", "54.8 M"),
            ("221477872.59249398", "221 M"),
            ("120000000000", "120 B"),
            ("1230000000", "1.23 B"),
            ("-2500000", "-2.5 M"),
            ("999999.4", "999999"),
            ("1234.56789", "1234.57"),
            ("0.12345678901", "0.123457"),
            ("0", "0"),
            ("null", "null"),
        ] {
            assert_eq!(sum(exact), shown);
        }
    }

    #[test]
    fn quotients_and_times_are_shortened() {
        assert_eq!(
            (&*derived("63998.9486070129"), &*derived("0.0000123456789"), &*derived("?")),
            ("63998.949", "0.000012345679", "?")
        );
        assert_eq!(time_of(0).as_deref(), Some("1970-01-01 00:00:00 UTC"));
        assert_eq!((time_of(i64::MAX), capitalised("")), (None, String::new()));
    }
}
