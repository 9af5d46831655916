//! Prices, quantities and levels, from the decimal strings of the wire.

use std::fmt;

use serde::Deserialize;
use serde::de::{self, Deserializer, SeqAccess, Visitor};

use crate::book::Level;
use crate::number::{Notional, Price, Quantity};

macro_rules! read_from_decimal_strings {
    ($($kind:ty),*) => {$(
        impl<'de> Deserialize<'de> for $kind {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Text;
                impl Visitor<'_> for Text {
                    type Value = $kind;

                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str("a decimal string")
                    }

                    fn visit_str<E: de::Error>(self, text: &str) -> Result<$kind, E> {
                        <$kind>::parse(text).map_err(E::custom)
                    }
                }
                deserializer.deserialize_str(Text)
            }
        }
    )*};
}

read_from_decimal_strings!(Price, Quantity, Notional);

/// Times are in milliseconds, or in microseconds where a connection asked for them.
const fn in_millis(time: i64) -> i64 {
    // In milliseconds this would be the year 5138.
    const MICROSECONDS: u64 = 100_000_000_000_000;
    if time.unsigned_abs() < MICROSECONDS {
        time
    } else {
        time / 1_000
    }
}

pub(super) fn time<'de, D: Deserializer<'de>>(deserializer: D) -> Result<i64, D::Error> {
    i64::deserialize(deserializer).map(in_millis)
}

pub(super) fn some_time<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<i64>, D::Error> {
    Ok(Option::<i64>::deserialize(deserializer)?.map(in_millis))
}

/// `["97123.45","0.5"]`; what may follow is ignored.
impl<'de> Deserialize<'de> for Level {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Pair;
        impl<'de> Visitor<'de> for Pair {
            type Value = Level;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a price and a quantity")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut pair: A) -> Result<Level, A::Error> {
                let missing = || de::Error::invalid_length(0, &"a price and a quantity");
                let price = pair.next_element()?.ok_or_else(missing)?;
                let quantity = pair.next_element()?.ok_or_else(missing)?;
                while pair.next_element::<de::IgnoredAny>()?.is_some() {}
                Ok(Level { price, quantity })
            }
        }
        deserializer.deserialize_seq(Pair)
    }
}

/// The levels of one side, with room for as many as a message usually has.
pub(super) fn levels<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Level>, D::Error> {
    struct Levels;
    impl<'de> Visitor<'de> for Levels {
        type Value = Vec<Level>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a list of levels")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vec<Level>, A::Error> {
            let mut levels = Vec::with_capacity(32);
            while let Some(level) = list.next_element()? {
                levels.push(level);
            }
            Ok(levels)
        }
    }
    deserializer.deserialize_seq(Levels)
}
