//! Exact numbers: prices and quantities are integers of 10⁻⁸, money is an integer of 10⁻¹⁶.

/// A price in 10⁻⁸ of the quote asset.
pub type Price = i64;
/// A quantity in 10⁻⁸ of the base asset.
pub type Quantity = i128;
/// Price times quantity, in 10⁻¹⁶ of the quote asset.
pub type Money = i128;

pub const UNIT: i128 = 100_000_000;
const PLACES: usize = 8;
/// Longer texts are not numbers of an exchange.
const MAX_DIGITS: usize = 28;

/// Parses a decimal text without sign into 10⁻⁸; `None` if it is malformed or not exact.
pub fn parse(text: &str) -> Option<i128> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let fraction = fraction.trim_end_matches('0');
    if whole.is_empty() || whole.len() + PLACES > MAX_DIGITS || fraction.len() > PLACES {
        return None;
    }
    let mut value: i128 = 0;
    for byte in whole.bytes().chain(fraction.bytes()) {
        if !byte.is_ascii_digit() {
            return None;
        }
        value = value * 10 + i128::from(byte - b'0');
    }
    Some(value * 10i128.pow((PLACES - fraction.len()) as u32))
}

pub fn parse_price(text: &str) -> Option<Price> {
    parse(text).and_then(|units| Price::try_from(units).ok())
}

/// Appends a number of 10⁻⁸ with eight places, as the exchange writes them.
pub fn push(text: &mut String, units: i128) {
    use std::fmt::Write as _;
    let sign = if units < 0 { "-" } else { "" };
    let units = units.unsigned_abs();
    let unit = UNIT as u128;
    // Writing to a String cannot fail.
    let _ = match (u64::try_from(units / unit), u64::try_from(units % unit)) {
        // 64-bit formatting is several times faster and fits nearly every number.
        (Ok(whole), Ok(fraction)) => write!(text, "{sign}{whole}.{fraction:08}"),
        _ => write!(text, "{sign}{}.{:08}", units / unit, units % unit),
    };
}

pub fn fixed(units: impl Into<i128>) -> String {
    let mut text = String::with_capacity(20);
    push(&mut text, units.into());
    text
}

/// Money with eight places, truncated like the exchange does.
pub fn fixed_money(money: Money) -> String {
    fixed(money / UNIT)
}

/// `part` of `whole` in percent with three places, rounded half away from zero; 0 if `whole` is 0.
pub fn percent(part: i128, whole: i128) -> String {
    let thousandths = match whole {
        0 => 0,
        _ => {
            let doubled = part.saturating_mul(200_000);
            let rounding = if doubled < 0 { -whole } else { whole };
            (doubled + rounding) / (2 * whole)
        }
    };
    let sign = if thousandths < 0 { "-" } else { "" };
    let thousandths = thousandths.unsigned_abs();
    format!("{sign}{}.{:03}", thousandths / 1000, thousandths % 1000)
}

/// Numbers of 10⁻⁸ as decimal texts, for `#[serde(with = "text")]`.
pub mod text {
    use serde::de::Error as _;
    use serde::{Deserialize as _, Deserializer, Serializer};

    pub fn serialize<T: Copy + Into<i128>, S: Serializer>(units: &T, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&super::fixed(*units))
    }

    pub fn deserialize<'de, T: TryFrom<i128>, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
        let text = <&str>::deserialize(deserializer)?;
        let units = super::parse(text).and_then(|units| T::try_from(units).ok());
        units.ok_or_else(|| D::Error::custom(format_args!("`{text}` is not a quantity or a price")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_round_trip() {
        assert_eq!(parse("65000.01"), Some(6_500_001_000_000));
        assert_eq!(parse("0.00000001"), Some(1));
        assert_eq!(parse("1.000000000000"), Some(UNIT));
        assert_eq!(fixed(6_500_001_000_000i128), "65000.01000000");
        assert_eq!(fixed(-5i128), "-0.00000005");
    }

    #[test]
    fn malformed_numbers_are_none() {
        for text in ["", ".", ".5", "-1", "+1", "1e3", "1.2.3", "0.000000001", "1_000", "٣", &"9".repeat(40)] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn percent_rounds_half_away_from_zero() {
        assert_eq!(percent(1, 3), "33.333");
        assert_eq!(percent(-2, 3), "-66.667");
        assert_eq!(percent(0, 5), "0.000");
        assert_eq!(percent(7, 0), "0.000");
    }

    proptest::proptest! {
        #[test]
        fn every_number_round_trips(units in 0i128..1_000_000_000_000_000_000_000_000) {
            proptest::prop_assert_eq!(parse(&fixed(units)), Some(units));
        }

        #[test]
        fn no_text_panics(text in ".{0,40}") {
            let _ = parse(&text);
        }
    }
}
