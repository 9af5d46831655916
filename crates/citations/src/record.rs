//! A document as a record, and back.

use std::ops::Range;

use jiff::Timestamp;
use serde::{Deserialize, Deserializer, Serialize};
use tribune_core::{Document, DocumentId, Error, JsonObject, Result};

/// Longest record.
pub(super) const MAX_RECORD_BYTES: usize = 4 * 1024 * 1024;

#[derive(Serialize)]
struct Written<'a, V> {
    id: &'a DocumentId,
    title: &'a str,
    text: &'a str,
    url: Option<&'a str>,
    as_of: Option<Timestamp>,
    metadata: Metadata<'a, V>,
    passages: Vec<(usize, usize)>,
}

#[derive(Serialize)]
struct Metadata<'a, V> {
    #[serde(flatten)]
    fields: &'a JsonObject,
    #[serde(flatten)]
    values: Option<V>,
}

#[derive(Deserialize)]
#[serde(remote = "Document")]
struct Stored {
    id: DocumentId,
    title: String,
    text: String,
    url: Option<String>,
    as_of: Option<Timestamp>,
    metadata: JsonObject,
    #[serde(deserialize_with = "ranges")]
    passages: Vec<Range<usize>>,
}

fn ranges<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Range<usize>>, D::Error> {
    let pairs = Vec::<(usize, usize)>::deserialize(deserializer)?;
    Ok(pairs.into_iter().map(|(start, end)| start..end).collect())
}

/// A document as it is stored. `values` has fields of its metadata that only its page needs.
pub fn record<V: Serialize>(document: &Document, values: Option<V>) -> Result<String> {
    let written = Written {
        id: &document.id,
        title: &document.title,
        text: &document.text,
        url: document.url.as_deref(),
        as_of: document.as_of,
        metadata: Metadata { fields: &document.metadata, values },
        passages: document.passages.iter().map(|range| (range.start, range.end)).collect(),
    };
    let record = serde_json::to_string(&written)
        .map_err(|error| Error::internal("the document cannot be written as JSON").caused_by(error))?;
    if record.len() > MAX_RECORD_BYTES {
        return Err(Error::invalid_argument(format!(
            "the document is too long for a citation record: {} bytes of at most {MAX_RECORD_BYTES}",
            record.len()
        )));
    }
    Ok(record)
}

/// The document of a record.
pub fn document(record: &str) -> serde_json::Result<Document> {
    let mut document = Stored::deserialize(&mut serde_json::Deserializer::from_str(record))?;
    let text = &document.text;
    document.passages.retain(|range| text.get(range.clone()).is_some());
    Ok(document)
}
