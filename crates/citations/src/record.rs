//! A document as a record, and back.

use std::ops::Range;

use jiff::Timestamp;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use tribune_core::{Document, DocumentId, Error, JsonObject, Result};

/// Longest record.
pub(super) const MAX_RECORD_BYTES: usize = 4 * 1024 * 1024;

#[derive(Serialize, Deserialize)]
#[serde(remote = "Document")]
struct Stored {
    id: DocumentId,
    title: String,
    text: String,
    url: Option<String>,
    as_of: Option<Timestamp>,
    metadata: JsonObject,
    #[serde(serialize_with = "pairs", deserialize_with = "ranges")]
    passages: Vec<Range<usize>>,
}

#[derive(Serialize, Deserialize)]
#[serde(transparent)]
struct Record(#[serde(with = "Stored")] Document);

fn pairs<S: Serializer>(ranges: &[Range<usize>], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(ranges.iter().map(|range| (range.start, range.end)))
}

fn ranges<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Range<usize>>, D::Error> {
    let pairs = Vec::<(usize, usize)>::deserialize(deserializer)?;
    Ok(pairs.into_iter().map(|(start, end)| start..end).collect())
}

pub(super) fn written(document: Document) -> Result<String> {
    let record = serde_json::to_string(&Record(document))
        .map_err(|error| Error::internal("the document cannot be written as JSON").caused_by(error))?;
    if record.len() > MAX_RECORD_BYTES {
        return Err(Error::invalid_argument(format!(
            "the document is too long for a citation record: {} bytes of at most {MAX_RECORD_BYTES}",
            record.len()
        )));
    }
    Ok(record)
}

pub(super) fn read(record: &str) -> serde_json::Result<Document> {
    let Record(mut document) = serde_json::from_str(record)?;
    let text = &document.text;
    document.passages.retain(|range| text.get(range.clone()).is_some());
    Ok(document)
}
