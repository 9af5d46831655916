//! The name of one citable thing.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Longest id accepted. Ids travel in URLs, and 2 KiB percent-encoded is what every proxy still takes.
pub const MAX_ID_BYTES: usize = 2048;

/// Everything a path segment cannot carry unchanged through browsers, proxies and routers.
/// `:` stays readable; `/` is encoded so that an id is always exactly one segment and no
/// client "normalises" `//` or `..` inside it.
const SEGMENT: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'#')
    .add(b'%')
    .add(b'&')
    .add(b'\'')
    .add(b'(')
    .add(b')')
    .add(b'*')
    .add(b'+')
    .add(b'/')
    .add(b';')
    .add(b'<')
    .add(b'>')
    .add(b'?')
    .add(b'[')
    .add(b'\\')
    .add(b']')
    .add(b'^')
    .add(b'`')
    .add(b'{')
    .add(b'|')
    .add(b'}');

/// `scheme:key`. The scheme says which source answers for it, the key is whatever that source
/// says: `ticker:BTCUSDT`, `klines:BTCUSDT:1h`, `x-coredata://A/ICNote/p12`, `notes:50% off!`.
///
/// Parsing and printing round-trip exactly: nothing is trimmed, folded or decoded.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DocumentId {
    text: Arc<str>,
    scheme_len: usize,
}

/// Why a string is not a [`DocumentId`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidId {
    #[error("an id looks like `source:key`; this one has no source before a colon")]
    NoScheme,
    #[error("an id looks like `source:key`; this one has nothing after the colon")]
    NoKey,
    #[error("an id is at most {MAX_ID_BYTES} bytes long; this one has {0}")]
    TooLong(usize),
}

impl DocumentId {
    /// Joins a source's scheme and its key.
    pub fn new(scheme: &str, key: &str) -> Result<Self, InvalidId> {
        Self::parse(&format!("{scheme}:{key}"))
    }

    /// Splits at the first colon.
    pub fn parse(text: &str) -> Result<Self, InvalidId> {
        let scheme_len = text.find(':').ok_or(InvalidId::NoScheme)?;
        if scheme_len == 0 {
            return Err(InvalidId::NoScheme);
        }
        if scheme_len + 1 == text.len() {
            return Err(InvalidId::NoKey);
        }
        if text.len() > MAX_ID_BYTES {
            return Err(InvalidId::TooLong(text.len()));
        }
        Ok(Self { text: Arc::from(text), scheme_len })
    }

    /// The part before the first colon.
    pub fn scheme(&self) -> &str {
        &self.text[..self.scheme_len]
    }

    /// Everything after the first colon, verbatim.
    pub fn key(&self) -> &str {
        &self.text[self.scheme_len + 1..]
    }

    /// The whole id.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The id as one percent-encoded path segment, for `/data/{id}`.
    pub fn to_path_segment(&self) -> String {
        utf8_percent_encode(&self.text, SEGMENT).to_string()
    }
}

impl FromStr for DocumentId {
    type Err = InvalidId;

    fn from_str(text: &str) -> Result<Self, InvalidId> {
        Self::parse(text)
    }
}

impl fmt::Display for DocumentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for DocumentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DocumentId({:?})", self.text)
    }
}

impl Serialize for DocumentId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

impl<'de> Deserialize<'de> for DocumentId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
        Self::parse(&text).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ids_of_every_documented_shape_split_at_the_first_colon() {
        for (text, scheme, key) in [
            ("ticker:BTCUSDT", "ticker", "BTCUSDT"),
            ("klines:BTCUSDT:1h", "klines", "BTCUSDT:1h"),
            ("x-coredata://A/ICNote/p12", "x-coredata", "//A/ICNote/p12"),
            ("notes:50% off, ünïcode ☃ ", "notes", "50% off, ünïcode ☃ "),
        ] {
            let id = DocumentId::parse(text).expect(text);
            assert_eq!((id.scheme(), id.key()), (scheme, key));
            assert_eq!(id.to_string(), text);
        }
    }

    #[test]
    fn invalid_ids_are_explained() {
        assert_eq!(DocumentId::parse("plain"), Err(InvalidId::NoScheme));
        assert_eq!(DocumentId::parse(":key"), Err(InvalidId::NoScheme));
        assert_eq!(DocumentId::parse("notes:"), Err(InvalidId::NoKey));
        let long = format!("notes:{}", "x".repeat(MAX_ID_BYTES));
        assert_eq!(DocumentId::parse(&long), Err(InvalidId::TooLong(MAX_ID_BYTES + 6)));
    }

    proptest! {
        #[test]
        fn any_scheme_and_key_survive_text_json_and_url(scheme in "[a-z][a-z0-9_-]{0,15}", key in "\\PC{1,80}|[\\x00-\\x7f]{1,40}") {
            let id = DocumentId::new(&scheme, &key).expect("non-empty");
            prop_assert_eq!((id.scheme(), id.key()), (scheme.as_str(), key.as_str()));

            let printed = id.to_string();
            prop_assert_eq!(&DocumentId::parse(&printed).expect("printed"), &id);

            let json = serde_json::to_string(&id).expect("json");
            prop_assert_eq!(&serde_json::from_str::<DocumentId>(&json).expect("from json"), &id);

            let segment = id.to_path_segment();
            prop_assert!(segment.is_ascii() && !segment.contains(['/', '?', '#', ' ']));
            let decoded = percent_encoding::percent_decode_str(&segment).decode_utf8().expect("utf-8");
            prop_assert_eq!(decoded.as_ref(), id.as_str());
        }
    }
}
