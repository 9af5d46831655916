//! What sources return.

use jiff::Timestamp;

use crate::id::DocumentId;
use crate::links::Links;
use crate::tool::JsonObject;

/// One whole citable thing.
#[derive(Debug, Clone, PartialEq)]
pub struct Document {
    pub id: DocumentId,
    pub title: String,
    /// The complete text; outputs with a size limit cut it themselves.
    pub text: String,
    /// Where the original lives, when that is not Tribune itself.
    pub url: Option<String>,
    /// When the content was true, if the source knows.
    pub as_of: Option<Timestamp>,
    /// Everything else the source knows, by the source's own field names.
    pub metadata: JsonObject,
    /// Byte ranges of `text` that search ranks and citations point at; empty for an unsplit document.
    pub passages: Vec<std::ops::Range<usize>>,
}

impl Document {
    /// The citation record that it was read from, if any.
    pub fn record(&self) -> Option<&str> {
        Links::cited_record(self.url.as_deref()?)
    }
}

/// What a permalink leads to.
#[derive(Debug, Clone, PartialEq)]
pub enum Cited {
    /// As it was at that time.
    Kept { document: Box<Document>, at: Timestamp },
    /// No longer kept; the sentence says for how long it was.
    Expired(String),
    /// There is no such record.
    Unknown,
}

/// One search result. Scores of different sources are never compared: ranks are.
#[derive(Debug, Clone, PartialEq)]
pub struct Hit {
    pub id: DocumentId,
    pub title: String,
    /// The best passage, cut short, with the match in it.
    pub snippet: String,
    /// Where the original lives, when that is not Tribune itself.
    pub url: Option<String>,
    /// Which passage of the document matched, counted from 0, when it has more than one.
    pub passage: Option<usize>,
    /// The source's own score, not comparable with other sources.
    pub score: f32,
    /// How much of the query the hit covers, from 0 to 1; comparable between sources.
    pub coverage: f32,
    /// Additional fields, such as how the query was understood.
    pub metadata: Option<JsonObject>,
}
