//! Reads an answer with serde, and names the field that is not as documented. Unknown fields are ignored.

use std::fmt;

use rust_decimal::Decimal;
use serde::de::{self, DeserializeOwned};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

const MAX_WORD_BYTES: usize = 100;

/// Where an answer is not as documented, and how. It never repeats what the answer says there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wrong {
    /// `symbols[7].status`; empty for the answer itself.
    pub(super) field: String,
    pub(super) why: String,
}

pub type Read<T> = Result<T, Wrong>;

impl Wrong {
    pub fn new(field: &str, why: &str) -> Self {
        Self { field: field.to_owned(), why: why.to_owned() }
    }

    fn of(path: &serde_path_to_error::Path, error: &serde_json::Error) -> Self {
        if !error.is_data() {
            return Self::new("", "is not JSON");
        }
        let path = path.to_string();
        let path = if path == "." { "" } else { &path };
        let message = error.to_string();
        let message = message.rsplit_once(" at line ").map_or(&*message, |(before, _)| before);
        if let Some(name) = message.strip_prefix("missing field `") {
            let dot = if path.is_empty() { "" } else { "." };
            return Self::new(&format!("{path}{dot}{}", name.trim_end_matches('`')), "is missing");
        }
        // What stands before it repeats the value.
        match message.rsplit_once(", expected ") {
            Some((_, expected)) => Self::new(path, &format!("is not {expected}")),
            None => Self::new(path, &format!("is wrong: {message}")),
        }
    }
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.field.as_str() {
            "" => write!(f, "it {}", self.why),
            field => write!(f, "`{field}` {}", self.why),
        }
    }
}

pub fn parse<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Read<T> {
    // Following the path allocates for every field, so only what is wrong is read that way.
    serde_json::from_slice(body).or_else(|_| parse_with_path(body))
}

fn parse_with_path<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Read<T> {
    let mut json = serde_json::Deserializer::from_slice(body);
    let value = serde_path_to_error::deserialize(&mut json);
    let value = value.map_err(|error| Wrong::of(error.path(), error.inner()))?;
    json.end().map_err(|_| Wrong::new("", "is not JSON"))?;
    Ok(value)
}

/// An element of a list that may be wrong without taking the others away.
#[derive(Debug)]
pub(super) struct Lenient<T>(pub(super) Read<T>);

impl<'de, T: DeserializeOwned> Deserialize<'de> for Lenient<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = <&RawValue>::deserialize(deserializer)?;
        Ok(Self(parse(raw.get().as_bytes())))
    }
}

/// A name or a word of the exchange; all are short.
pub fn word<'de, D: Deserializer<'de>, T: From<String>>(deserializer: D) -> Result<T, D::Error> {
    let word = String::deserialize(deserializer)?;
    if word.len() > MAX_WORD_BYTES {
        return Err(de::Error::custom("longer than any such word"));
    }
    Ok(word.into())
}

/// A number with a sign, exactly.
pub fn signed<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Decimal, D::Error> {
    let text = String::deserialize(deserializer)?;
    let decimal = Decimal::from_str_exact(&text).map_err(|_| de::Error::custom("not a decimal number"))?;
    Ok(decimal.normalize())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::number::Price;
    use crate::wire;
    use proptest::prelude::*;

    #[derive(Debug, Deserialize)]
    #[serde(expecting = "an object")]
    struct Row {
        price: Price,
        #[serde(deserialize_with = "wire::millis")]
        time: i64,
        #[serde(default, deserialize_with = "word")]
        name: String,
    }

    #[test]
    fn wrong_field_is_named_not_repeated() {
        let cases = [
            (r#"[{"time":1}]"#, "`[0].price` is missing"),
            (r#"[{"price":7,"time":1}]"#, "`[0].price` is not a string"),
            (r#"[{"price":"x","time":1}]"#, "`[0].price` is wrong: not a decimal number"),
            (r#"[{"price":"1","time":"hello, expected a friend at line 7"}]"#, "`[0].time` is not i64"),
            (r#"[{"price":"1","time":-1}]"#, "`[0].time` is wrong: not a time"),
            (r#"[{"price":"1","time":1},[]]"#, "`[1]` is not an object"),
            (r#"[{"price":"1","time":1},"a"]"#, "`[1]` is not an object"),
            (r#"{"secret":1}"#, "it is not a sequence"),
            ("<html>", "it is not JSON"),
            ("[", "it is not JSON"),
            ("[] []", "it is not JSON"),
        ];
        for (body, expected) in cases {
            let wrong = parse::<Vec<Row>>(body.as_bytes()).expect_err(body);
            assert_eq!(wrong.to_string(), expected, "{body}");
        }
        let long = format!(r#"[{{"price":"1","time":1,"name":"{}"}}]"#, "x".repeat(101));
        let wrong = parse::<Vec<Row>>(long.as_bytes()).expect_err("long");
        assert_eq!(wrong.to_string(), "`[0].name` is wrong: longer than any such word");
        let escaped = br#"[{"pr\u0069ce":"1.5","time":1,"new":[1e400]}]"#;
        let rows: Vec<Row> = parse(escaped).expect("escapes and unknown fields");
        assert_eq!((rows[0].price.units(), rows[0].time, &*rows[0].name), (150_000_000, 1, ""));
    }

    #[test]
    fn one_wrong_element_leaves_the_others() {
        let body = br#"[{"price":"1","time":1},{"price":1},7]"#;
        let rows: Vec<Lenient<Row>> = parse(body).expect("a list");
        let wrong: Vec<_> = rows.iter().filter_map(|row| row.0.as_ref().err()).collect();
        assert_eq!(wrong, [&Wrong::new("price", "is not a string"), &Wrong::new("", "is not an object")]);
    }

    #[test]
    fn signed_numbers_are_exact() {
        let read = |text: &str| signed(serde_json::Value::from(text)).ok().map(|decimal| decimal.to_string());
        assert_eq!(read("-94.99999800").as_deref(), Some("-94.999998"));
        for not in ["", "-", "1e3", "--1", "NaN", "1.2.3"] {
            assert_eq!(read(not), None, "{not}");
        }
    }

    proptest! {
        #[test]
        fn no_body_panics(body in "\\PC{0,60}|[\\[\\]{}\",:0-9a-e.-]{0,60}") {
            let _ = parse::<Vec<Row>>(body.as_bytes());
            let _ = parse::<Vec<Lenient<Row>>>(body.as_bytes());
            let _ = parse::<Row>(body.as_bytes());
        }
    }
}
