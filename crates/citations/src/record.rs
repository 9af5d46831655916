//! A document as a record, and back.

use std::borrow::Cow;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use tribune_core::{Document, DocumentId, Error, JsonObject, Result};

use super::segment::MAX_RECORD_BYTES;

/// A document to be stored.
pub(super) struct Draft {
    /// A JSON object.
    pub(super) body: String,
}

impl Draft {
    pub(super) fn new(document: &Document) -> Result<Self> {
        Ok(Self { body: body(document)? })
    }
}

/// A document as it is stored, after its token. Borrowed to write, owned to read.
#[derive(Serialize, Deserialize)]
pub(super) struct Record<'a> {
    #[serde(skip_serializing)]
    pub(super) token: String,
    pub(super) id: Cow<'a, DocumentId>,
    title: Cow<'a, str>,
    text: Cow<'a, str>,
    url: Option<Cow<'a, str>>,
    as_of: Option<Timestamp>,
    metadata: Cow<'a, JsonObject>,
    passages: Vec<(usize, usize)>,
}

fn body(document: &Document) -> Result<String> {
    let record = Record {
        token: String::new(),
        id: Cow::Borrowed(&document.id),
        title: document.title.as_str().into(),
        text: document.text.as_str().into(),
        url: document.url.as_deref().map(Cow::from),
        as_of: document.as_of,
        metadata: Cow::Borrowed(&document.metadata),
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

impl From<Record<'_>> for Document {
    fn from(record: Record<'_>) -> Self {
        let text = record.text.into_owned();
        let passages = record.passages.into_iter().map(|(start, end)| start..end);
        Self {
            passages: passages.filter(|range| text.get(range.clone()).is_some()).collect(),
            id: record.id.into_owned(),
            title: record.title.into_owned(),
            url: record.url.map(Cow::into_owned),
            as_of: record.as_of,
            metadata: record.metadata.into_owned(),
            text,
        }
    }
}
