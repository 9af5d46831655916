//! How the exchange writes times, levels, trades and missing numbers in JSON, for `#[serde(deserialize_with)]`.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::{self, Deserializer, SeqAccess, Visitor};

use crate::model::{Aggressor, Millis, Trade};
use crate::number::{Price, Quantity};

/// The last moment of the year 9999: what calendars can still show.
const MAX_MILLIS: Millis = 253_402_300_799_999;

/// `None` for zero, which the exchange writes for a missing value.
pub fn nonzero<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default + PartialEq,
{
    let value = T::deserialize(deserializer)?;
    Ok(Some(value).filter(|value| *value != T::default()))
}

pub fn millis<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Millis, D::Error> {
    let time = Millis::deserialize(deserializer)?;
    if (0..=MAX_MILLIS).contains(&time) {
        return Ok(time);
    }
    Err(de::Error::custom("not a time"))
}

/// `None` for zero, which the exchange writes for never.
pub fn known_millis<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Millis>, D::Error> {
    Ok(Some(millis(deserializer)?).filter(|time| *time > 0))
}

/// The levels of one side, with room for as many as an update usually has.
pub fn levels<'de, D: Deserializer<'de>, L: Deserialize<'de>>(deserializer: D) -> Result<Vec<L>, D::Error> {
    struct Levels<L>(PhantomData<L>);
    impl<'de, L: Deserialize<'de>> Visitor<'de> for Levels<L> {
        type Value = Vec<L>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a list of levels")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vec<L>, A::Error> {
            let mut levels = Vec::with_capacity(32);
            while let Some(level) = list.next_element()? {
                levels.push(level);
            }
            Ok(levels)
        }
    }
    deserializer.deserialize_seq(Levels(PhantomData))
}

/// A trade, as streams and REST write it: a single one, or an aggregate of several. REST has long names in single trades.
#[derive(Deserialize)]
#[serde(expecting = "an object")]
pub struct TradeWire<'a> {
    /// The symbol, in streams.
    #[serde(borrow, default)]
    pub s: Cow<'a, str>,
    #[serde(alias = "price")]
    p: Price,
    #[serde(alias = "qty")]
    q: Quantity,
    #[serde(rename = "T", alias = "time", deserialize_with = "millis")]
    time: Millis,
    /// Whether the buyer was the maker: then the seller crossed the spread.
    #[serde(alias = "isBuyerMaker")]
    m: bool,
    /// The id of a single trade.
    #[serde(alias = "id")]
    t: Option<u64>,
    /// The id of an aggregate, and those of its first and last trade.
    pub a: Option<u64>,
    pub f: Option<u64>,
    l: Option<u64>,
}

impl TradeWire<'_> {
    /// `None` if its ids are missing or impossible.
    pub fn trade(&self) -> Option<Trade> {
        let (first_id, last_id) = self.f.or(self.t).zip(self.l.or(self.t)).filter(|(first, last)| first <= last)?;
        let aggressor = if self.m { Aggressor::Seller } else { Aggressor::Buyer };
        Some(Trade { price: self.p, quantity: self.q, time: self.time, aggressor, first_id, last_id })
    }
}
