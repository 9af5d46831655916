//! A document as a record, and back.

use jiff::Timestamp;
use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};
use tribune_core::{Document, DocumentId, Error, JsonObject, Result};

use super::segment::MAX_RECORD_BYTES;

/// A document to be stored.
pub(super) struct Draft {
    pub(super) id: DocumentId,
    /// A JSON object.
    pub(super) body: String,
    /// Hash of the body.
    pub(super) content: Vec<u8>,
}

impl Draft {
    pub(super) fn new(document: &Document) -> Result<Self> {
        let body = body(document)?;
        Ok(Self {
            id: document.id.clone(),
            content: digest(&SHA256, body.as_bytes()).as_ref().to_vec(),
            body,
        })
    }
}

/// A document as it is stored. Borrowed to write, owned to read.
#[derive(Serialize)]
struct RecordOut<'a> {
    id: &'a DocumentId,
    title: &'a str,
    text: &'a str,
    url: Option<&'a str>,
    as_of: Option<Timestamp>,
    metadata: &'a JsonObject,
    passages: Vec<(usize, usize)>,
}

#[derive(Deserialize)]
pub(super) struct RecordIn {
    pub(super) token: String,
    pub(super) id: DocumentId,
    title: String,
    text: String,
    url: Option<String>,
    as_of: Option<Timestamp>,
    metadata: JsonObject,
    passages: Vec<(usize, usize)>,
}

fn body(document: &Document) -> Result<String> {
    let record = RecordOut {
        id: &document.id,
        title: &document.title,
        text: &document.text,
        url: document.url.as_deref(),
        as_of: document.as_of,
        metadata: &document.metadata,
        passages: document.passages.iter().map(|range| (range.start, range.end)).collect(),
    };
    let body = serde_json::to_string(&record)
        .map_err(|e| Error::internal("the document cannot be written as JSON").caused_by(e))?;
    if body.len() + 64 > MAX_RECORD_BYTES {
        return Err(Error::invalid_argument(format!(
            "the document is too long for a citation record: {} bytes of at most {MAX_RECORD_BYTES}",
            body.len()
        )));
    }
    Ok(body)
}

impl From<RecordIn> for Document {
    fn from(record: RecordIn) -> Self {
        let text = record.text;
        let passages = record.passages.into_iter().map(|(start, end)| start..end);
        Self {
            passages: passages.filter(|range| text.get(range.clone()).is_some()).collect(),
            id: record.id,
            title: record.title,
            url: record.url,
            as_of: record.as_of,
            metadata: record.metadata,
            text,
        }
    }
}
