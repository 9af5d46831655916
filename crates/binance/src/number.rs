//! Exact numbers. The wire has decimal strings of at most eight places; they are stored as integers of
//! 10⁻⁸, and money (a price times a quantity) as integers of 10⁻¹⁶. Nothing here is ever rounded.

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Add, Mul};
use std::str::FromStr;

use rust_decimal::Decimal;
use schemars::JsonSchema;
use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Places after the point that the exchange has.
pub const PLACES: u32 = 8;
const UNIT: i128 = 100_000_000;

/// Why a text is not a number that can be kept exactly.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidNumber {
    #[error("not a decimal number")]
    NotDecimal,
    #[error("too many places after the point")]
    TooPrecise,
    #[error("too large")]
    TooLarge,
}

// Plain comments on these three: schemas repeat doc comments of types, and use these types everywhere.

// What one unit of the base asset costs, in the quote asset, in 10⁻⁸.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, JsonSchema)]
#[schemars(with = "String", inline)]
pub struct Price(i64);

// An amount of the base asset in 10⁻⁸. Wider than a price: of the cheapest coins single levels hold
// more than 64 bits can count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, JsonSchema)]
#[schemars(with = "String", inline)]
pub struct Quantity(i128);

// An amount of the quote asset in 10⁻¹⁶: a price times a quantity, exactly.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, JsonSchema)]
#[schemars(with = "String", inline)]
pub struct Notional(i128);

/// A decimal text without sign, as an integer of 10^-places. Nearly every text is short, and then 64 bits do, which are
/// several times faster than 128.
fn units(text: &[u8], places: u32) -> Result<i128, InvalidNumber> {
    let point = text.iter().position(|byte| *byte == b'.').unwrap_or(text.len());
    let (whole, fraction) = (&text[..point], text.get(point + 1..).unwrap_or_default());
    if whole.is_empty() {
        return Err(InvalidNumber::NotDecimal);
    }
    let (fraction, beyond) = fraction.split_at(fraction.len().min(places as usize));
    let value = match whole.len() + fraction.len() {
        ..=19 => digits(digits(0u64, whole)?, fraction)?.into(),
        // 128 bits hold 38 digits.
        _ if whole.len() + places as usize <= 38 => digits(digits(0i128, whole)?, fraction)?,
        _ => return Err(InvalidNumber::TooLarge),
    };
    if !beyond.iter().all(u8::is_ascii_digit) {
        return Err(InvalidNumber::NotDecimal);
    }
    if beyond.iter().any(|byte| *byte != b'0') {
        return Err(InvalidNumber::TooPrecise);
    }
    Ok(value * i128::from(10u64.pow(places - fraction.len() as u32)))
}

/// The digits behind those that are there already.
fn digits<N>(before: N, text: &[u8]) -> Result<N, InvalidNumber>
where
    N: From<u8> + Add<Output = N> + Mul<Output = N>,
{
    text.iter().try_fold(before, |value, byte| match byte.wrapping_sub(b'0') {
        digit @ 0..=9 => Ok(value * N::from(10) + N::from(digit)),
        _ => Err(InvalidNumber::NotDecimal),
    })
}

impl Price {
    /// Money for `quantity` at this price; `None` if it is more than can be counted.
    pub fn times(self, quantity: Quantity) -> Option<Notional> {
        // Nearly all quantities have 64 bits, and their product always fits.
        match i64::try_from(quantity.0) {
            Ok(quantity) => Some(Notional(i128::from(self.0) * i128::from(quantity))),
            Err(_) => i128::from(self.0).checked_mul(quantity.0).map(Notional),
        }
    }
}

/// As a decimal; of numbers beyond 28 digits the last places are dropped until it fits.
fn exact(mut units: i128, mut scale: u32) -> Decimal {
    loop {
        if let Ok(decimal) = Decimal::try_from_i128_with_scale(units, scale) {
            return decimal.normalize();
        }
        if scale == 0 {
            return if units < 0 { Decimal::MIN } else { Decimal::MAX };
        }
        units /= 10;
        scale -= 1;
    }
}

/// What [`Decimal`] prints, several times faster: answers are mostly numbers, and `Decimal` divides 96 bits for each digit.
fn print(units: i128, mut places: u32, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let Ok(mut rest) = u64::try_from(units) else {
        return print_large(units, places as usize, f);
    };
    while places > 0 && rest.is_multiple_of(10) {
        rest /= 10;
        places -= 1;
    }
    // From the last digit on; 20 digits, the point and the digit before it fit.
    let mut text = [0; 24];
    let (mut at, mut digits) = (text.len(), 0);
    while rest > 0 || digits <= places {
        if digits == places && places > 0 {
            at -= 1;
            text[at] = b'.';
        }
        at -= 1;
        text[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        digits += 1;
    }
    f.write_str(std::str::from_utf8(&text[at..]).unwrap_or_default())
}

/// The same for more than 64 bits, or below zero.
fn print_large(units: i128, places: usize, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let digits = format!("{:0>width$}", units.unsigned_abs(), width = places + 1);
    let (whole, fraction) = digits.split_at(digits.len() - places);
    let fraction = fraction.trim_end_matches('0');
    let (sign, point) = (if units < 0 { "-" } else { "" }, if fraction.is_empty() { "" } else { "." });
    write!(f, "{sign}{whole}{point}{fraction}")
}

/// Reads a number from the text of a message, without a copy.
struct Text<T>(PhantomData<T>);

impl<T: FromStr<Err = InvalidNumber>> Visitor<'_> for Text<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
        text.parse().map_err(E::custom)
    }
}

/// What the three have in common: an integer in units, printed and written as a decimal.
macro_rules! number_in_units {
    ($kind:ty: $units:ty, $places:expr, $one:expr) => {
        impl $kind {
            pub const ZERO: Self = Self(0);

            pub const fn from_units(units: $units) -> Self {
                Self(units)
            }

            pub const fn units(self) -> $units {
                self.0
            }

            pub const fn is_zero(self) -> bool {
                self.0 == 0
            }

            pub fn decimal(self) -> Decimal {
                exact(self.0 as i128, $places)
            }

            pub fn as_f64(self) -> f64 {
                self.0 as f64 / $one as f64
            }

            pub fn checked_add(self, other: Self) -> Option<Self> {
                self.0.checked_add(other.0).map(Self)
            }

            pub fn checked_sub(self, other: Self) -> Option<Self> {
                self.0.checked_sub(other.0).map(Self)
            }
        }

        impl FromStr for $kind {
            type Err = InvalidNumber;

            /// As the exchange writes it: without a sign.
            fn from_str(text: &str) -> Result<Self, InvalidNumber> {
                let units = units(text.as_bytes(), $places)?;
                <$units>::try_from(units).map(Self).map_err(|_| InvalidNumber::TooLarge)
            }
        }

        impl fmt::Display for $kind {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                print(self.0 as i128, $places, f)
            }
        }

        /// As a decimal string: JSON numbers are not exact everywhere.
        impl Serialize for $kind {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $kind {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_str(Text(PhantomData))
            }
        }
    };
}

number_in_units!(Price: i64, PLACES, UNIT);
number_in_units!(Quantity: i128, PLACES, UNIT);
number_in_units!(Notional: i128, 2 * PLACES, (UNIT * UNIT));

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn money_of_any_quantity_is_exact() {
        let (price, small) = (Price::from_units(i64::MAX), i128::from(i64::MAX));
        for units in [0, -1, small, small + 1, i128::MAX / small, i128::MAX / small + 1, i128::MIN] {
            let exact = small.checked_mul(units).map(Notional::from_units);
            assert_eq!(price.times(Quantity::from_units(units)), exact, "{units}");
        }
    }

    #[test]
    fn numbers_of_the_wire_are_read_exactly() {
        assert_eq!("0.00000001".parse::<Price>().map(Price::units), Ok(1));
        assert_eq!("97123.45000000".parse::<Price>().expect("price").to_string(), "97123.45");
        assert_eq!("92233720368.54775807".parse::<Price>().map(Price::units), Ok(i64::MAX));
        assert_eq!("92233720368.54775808".parse::<Price>(), Err(InvalidNumber::TooLarge));
        // A level of a coin that costs a few ten-millionths.
        assert_eq!("250000000000".parse::<Quantity>().expect("quantity").to_string(), "250000000000");
        for not in ["", ".", ".5", "-1", "+1", "1e5", " 1", "1 ", "1.2.3", "NaN", "0x1", "١"] {
            assert_eq!(not.parse::<Price>(), Err(InvalidNumber::NotDecimal), "{not}");
        }
        // As long as 64 bits can read, and one longer.
        for (text, units) in [
            ("9999999999999999999", 999_999_999_999_999_999_900_000_000),
            ("99999999999999999990", 9_999_999_999_999_999_999_000_000_000),
            ("9999999999.99999999", 999_999_999_999_999_999),
            ("99999999999.99999999", 9_999_999_999_999_999_999),
        ] {
            assert_eq!(text.parse::<Quantity>().map(Quantity::units), Ok(units), "{text}");
        }
        assert_eq!("0.123456789".parse::<Price>(), Err(InvalidNumber::TooPrecise));
        assert_eq!("0.1234567800".parse::<Price>().map(Price::units), Ok(12_345_678));
        assert_eq!("9".repeat(40).parse::<Quantity>(), Err(InvalidNumber::TooLarge));
        let money = "0.1".parse::<Price>().expect("price").times("0.2".parse::<Quantity>().expect("quantity"));
        assert_eq!(money.expect("money").to_string(), "0.02");
    }

    proptest! {
        #[test]
        fn reading_and_printing_round_trip(units in 0..i64::MAX) {
            let price = Price::from_units(units);
            prop_assert_eq!(price.to_string().parse::<Price>(), Ok(price));
            let quantity = Quantity::from_units(i128::from(units) * 1000);
            prop_assert_eq!(quantity.to_string().parse::<Quantity>(), Ok(quantity));
        }

        #[test]
        fn numbers_are_printed_as_decimals_are(units in any::<u64>(), less in 0..200_u64) {
            for units in [units, less, less * 100_000_000, u64::MAX] {
                let quantity = Quantity::from_units(units.into());
                prop_assert_eq!(quantity.to_string(), quantity.decimal().to_string());
                let money = Notional::from_units(units.into());
                prop_assert_eq!(money.to_string(), money.decimal().to_string());
            }
        }

        #[test]
        fn json_round_trips(units in 0..i64::MAX) {
            fn round_trip<T: Serialize + for<'de> Deserialize<'de>>(value: &T) -> T {
                let json = serde_json::to_string(value).expect("JSON");
                serde_json::from_str(&json).expect("a number")
            }
            for units in [i128::from(units), i128::from(units) << 60, 10i128.pow(38) - 1] {
                let quantity = Quantity::from_units(units);
                prop_assert_eq!(round_trip(&quantity), quantity);
                let money = Notional::from_units(units);
                prop_assert_eq!(round_trip(&money), money);
            }
            let price = Price::from_units(units);
            prop_assert_eq!(round_trip(&price), price);
        }

        #[test]
        fn any_text_is_read_or_refused(text in "\\PC{0,40}|[0-9.]{0,40}") {
            let _ = text.parse::<Price>();
            let _ = text.parse::<Quantity>();
            let _ = text.parse::<Notional>();
        }
    }
}
