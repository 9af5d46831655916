//! Reads the exchange's JSON field by field: what is wrong is named, nothing is guessed, and fields we do
//! not know are passed over.

use std::borrow::Cow;
use std::fmt;

use rust_decimal::Decimal;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::book::Level;
use crate::model::Millis;
use crate::number::{Notional, Price, Quantity};

/// Where an answer is not as documented, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Wrong {
    pub(super) field: String,
    pub(super) why: String,
}

impl Wrong {
    pub(crate) fn new(field: &str, why: impl fmt::Display) -> Self {
        Self {
            field: field.to_owned(),
            why: why.to_string(),
        }
    }

    /// The same, seen from outside: `filters[2].tickSize`.
    pub(crate) fn within(mut self, outer: &str) -> Self {
        let dot = if self.field.is_empty() || self.field.starts_with('[') {
            ""
        } else {
            "."
        };
        self.field = format!("{outer}{dot}{}", self.field);
        self
    }
}

pub(crate) type Read<T> = Result<T, Wrong>;

/// A string of JSON, borrowed where it has no escapes.
struct Text<'a>(Cow<'a, str>);

impl<'de> Deserialize<'de> for Text<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Strings;
        impl<'de> Visitor<'de> for Strings {
            type Value = Text<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }
            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Text<'de>, E> {
                Ok(Text(Cow::Borrowed(text)))
            }
            fn visit_str<E>(self, text: &str) -> Result<Text<'de>, E> {
                Ok(Text(Cow::Owned(text.to_owned())))
            }
        }
        deserializer.deserialize_str(Strings)
    }
}

/// An object whose values are read when they are asked for.
pub(crate) struct Fields<'a>(Vec<(Text<'a>, &'a RawValue)>);

impl<'de> Deserialize<'de> for Fields<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Objects;
        impl<'de> Visitor<'de> for Objects {
            type Value = Fields<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields<'de>, A::Error> {
                let mut fields = Vec::with_capacity(24);
                while let Some(entry) = map.next_entry()? {
                    fields.push(entry);
                }
                Ok(Fields(fields))
            }
        }
        deserializer.deserialize_map(Objects)
    }
}

/// The whole of an answer.
pub(crate) fn parse<'a, T: Deserialize<'a>>(body: &'a [u8], expected: &str) -> Read<T> {
    serde_json::from_slice(body).map_err(|error| {
        let what = if error.is_data() {
            "it is not"
        } else {
            "it is not JSON and so not"
        };
        Wrong::new("", format!("{what} {expected}"))
    })
}

pub(crate) fn object(body: &[u8]) -> Read<Fields<'_>> {
    parse(body, "an object")
}

/// Each element of an array, with its place in errors.
pub(crate) fn each<T>(body: &[u8], mut read: impl FnMut(Fields<'_>) -> Read<T>) -> Read<Vec<T>> {
    let items: Vec<&RawValue> = parse(body, "a list")?;
    let mut values = Vec::with_capacity(items.len());
    for (at, item) in items.into_iter().enumerate() {
        let value = object(item.get().as_bytes()).and_then(&mut read);
        values.push(value.map_err(|wrong| wrong.within(&format!("[{at}]")))?);
    }
    Ok(values)
}

impl<'a> Fields<'a> {
    pub(crate) fn lookup(&self, name: &str) -> Option<&'a RawValue> {
        self.0.iter().find(|(key, _)| key.0 == name).map(|(_, value)| *value)
    }

    pub(crate) fn raw(&self, name: &str) -> Read<&'a RawValue> {
        self.lookup(name).ok_or_else(|| Wrong::new(name, "is missing"))
    }

    fn typed<T: Deserialize<'a>>(&self, name: &str, expected: &str) -> Read<T> {
        let raw = self.raw(name)?;
        serde_json::from_str(raw.get()).map_err(|_| Wrong::new(name, format!("is not {expected}")))
    }

    pub(crate) fn text(&self, name: &str) -> Read<Cow<'a, str>> {
        self.typed::<Text<'a>>(name, "a string").map(|text| text.0)
    }

    /// A name or a word of the exchange's, none of which is long.
    pub(crate) fn word(&self, name: &str) -> Read<Cow<'a, str>> {
        let word = self.text(name)?;
        if word.len() > MAX_WORD_BYTES {
            return Err(Wrong::new(name, "is longer than any such word"));
        }
        Ok(word)
    }

    pub(crate) fn list(&self, name: &str) -> Read<Vec<&'a RawValue>> {
        self.typed(name, "a list")
    }

    fn number<T, E: fmt::Display>(&self, name: &str, read: impl FnOnce(&str) -> Result<T, E>) -> Read<T> {
        let text = self.text(name)?;
        read(&text).map_err(|why| Wrong::new(name, format!("is wrong: {why}")))
    }

    pub(crate) fn price(&self, name: &str) -> Read<Price> {
        self.number(name, Price::parse)
    }

    /// `None` for zero, which is how the exchange says that there is none.
    pub(crate) fn price_unless_zero(&self, name: &str) -> Read<Option<Price>> {
        self.price(name)
            .map(|price| Some(price).filter(|price| price.units() != 0))
    }

    pub(crate) fn quantity(&self, name: &str) -> Read<Quantity> {
        self.number(name, Quantity::parse)
    }

    pub(crate) fn notional(&self, name: &str) -> Read<Notional> {
        self.number(name, Notional::parse)
    }

    /// With a sign, exactly.
    pub(crate) fn signed(&self, name: &str) -> Read<Decimal> {
        self.number(name, signed_decimal)
    }

    pub(crate) fn count(&self, name: &str) -> Read<u64> {
        self.typed(name, "a whole number")
    }

    pub(crate) fn integer(&self, name: &str) -> Read<i64> {
        self.typed(name, "a whole number")
    }

    pub(crate) fn millis(&self, name: &str) -> Read<Millis> {
        let time: Millis = self.typed(name, "a time in milliseconds")?;
        if (0..=MAX_MILLIS).contains(&time) {
            return Ok(time);
        }
        Err(Wrong::new(name, "is not a time"))
    }

    /// `None` for −1, which stands for no id.
    pub(crate) fn id(&self, name: &str) -> Read<Option<u64>> {
        let id: i64 = self.typed(name, "an id")?;
        Ok(u64::try_from(id).ok())
    }

    pub(crate) fn truth(&self, name: &str) -> Read<bool> {
        self.typed(name, "true or false")
    }

    /// Price and size of one side; `None` if nobody offers.
    pub(crate) fn level(&self, price: &str, quantity: &str) -> Read<Option<Level>> {
        let quantity = self.quantity(quantity)?;
        let price = self.price_unless_zero(price)?;
        Ok(price
            .filter(|_| !quantity.is_zero())
            .map(|price| Level { price, quantity }))
    }

    /// `[["price", "quantity"], …]`
    pub(crate) fn levels(&self, name: &str) -> Read<Vec<Level>> {
        let rows: Vec<(Text<'a>, Text<'a>)> = self.typed(name, "a list of [price, quantity]")?;
        let level = |(at, (price, quantity)): (usize, (Text<'a>, Text<'a>))| {
            let wrong = |why| Wrong::new(&format!("{name}[{at}]"), format!("is wrong: {why}"));
            Ok(Level {
                price: Price::parse(&price.0).map_err(wrong)?,
                quantity: Quantity::parse(&quantity.0).map_err(wrong)?,
            })
        };
        rows.into_iter().enumerate().map(level).collect()
    }
}

const MAX_WORD_BYTES: usize = 100;

/// The last moment of the year 9999: what calendars can still show.
const MAX_MILLIS: Millis = 253_402_300_799_999;

fn signed_decimal(text: &str) -> Result<Decimal, &'static str> {
    let plain = text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'.' | b'-'));
    if !plain {
        return Err("not a decimal number");
    }
    Decimal::from_str_exact(text)
        .map(|decimal| decimal.normalize())
        .map_err(|_| "not a decimal number")
}

/// A row of columns, some of them numbers and some strings.
pub(crate) struct Row<'a>(Vec<&'a RawValue>);

impl<'a> Row<'a> {
    pub(crate) fn parse(raw: &'a RawValue) -> Read<Self> {
        let columns = serde_json::from_str(raw.get()).map_err(|_| Wrong::new("", "is not a list"))?;
        Ok(Self(columns))
    }

    fn column<T: Deserialize<'a>>(&self, at: usize, name: &str) -> Read<T> {
        let raw = self.0.get(at).ok_or_else(|| Wrong::new(name, "is missing"))?;
        serde_json::from_str(raw.get()).map_err(|_| Wrong::new(name, "has the wrong type"))
    }

    pub(crate) fn number<T, E: fmt::Display>(
        &self,
        at: usize,
        name: &str,
        read: impl FnOnce(&str) -> Result<T, E>,
    ) -> Read<T> {
        let text: Text<'a> = self.column(at, name)?;
        read(&text.0).map_err(|why| Wrong::new(name, format!("is wrong: {why}")))
    }

    pub(crate) fn millis(&self, at: usize, name: &str) -> Read<Millis> {
        let time: Millis = self.column(at, name)?;
        if (0..=MAX_MILLIS).contains(&time) {
            return Ok(time);
        }
        Err(Wrong::new(name, "is not a time"))
    }

    pub(crate) fn count(&self, at: usize, name: &str) -> Read<u64> {
        self.column(at, name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_wrong_is_named() {
        let fields =
            object(br#"{"a":"1.5","b":1.5,"c":"x","id":-1,"t":-5,"big":1e400,"a\u0062":true}"#).expect("object");
        assert_eq!(fields.price("a").map(Price::units), Ok(150_000_000));
        assert_eq!(fields.price("b"), Err(Wrong::new("b", "is not a string")));
        assert_eq!(
            fields.price("c"),
            Err(Wrong::new("c", "is wrong: not a decimal number"))
        );
        assert_eq!(fields.price("d"), Err(Wrong::new("d", "is missing")));
        assert_eq!(fields.id("id"), Ok(None));
        assert_eq!(fields.millis("t"), Err(Wrong::new("t", "is not a time")));
        assert_eq!(fields.count("big"), Err(Wrong::new("big", "is not a whole number")));
        assert_eq!(fields.truth("ab"), Ok(true), "escapes in names are read");
        let inner = Wrong::new("tickSize", "is missing")
            .within("filters[2]")
            .within("symbols[7]");
        assert_eq!(inner.field, "symbols[7].filters[2].tickSize");
    }

    #[test]
    fn signed_numbers_are_exact() {
        assert_eq!(
            signed_decimal("-94.99999800").map(|d| d.to_string()),
            Ok("-94.999998".to_owned())
        );
        for not in ["", "-", "1_000", "+1", "1e3", "--1", "NaN", "1.2.3"] {
            assert!(signed_decimal(not).is_err(), "{not}");
        }
    }

    proptest! {
        #[test]
        fn no_body_makes_it_panic(body in "\\PC{0,60}|[\\[\\]{}\",:0-9a-e.-]{0,60}") {
            if let Ok(fields) = object(body.as_bytes()) {
                for name in ["", "a", "b"] {
                    let _ = (fields.price(name), fields.levels(name), fields.list(name), fields.signed(name));
                }
            }
            let _ = each(body.as_bytes(), |fields| fields.count("a"));
        }
    }
}
