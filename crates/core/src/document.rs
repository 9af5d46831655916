//! What sources give back.

use jiff::Timestamp;

use crate::id::DocumentId;
use crate::links::Links;
use crate::tool::JsonObject;

/// One whole citable thing.
#[derive(Debug, Clone, PartialEq)]
pub struct Document {
    pub id: DocumentId,
    pub title: String,
    /// Exactly as the source has it; outputs that must be smaller cut it at their own edge.
    pub text: String,
    /// Where the original lives, when that is not Tribune itself.
    pub url: Option<String>,
    /// The moment the content speaks for, when the source knows one.
    pub as_of: Option<Timestamp>,
    /// Everything else the source knows, by the source's own field names.
    pub metadata: JsonObject,
    /// Byte ranges of `text` that search ranks and citations point at; empty for an unsplit document.
    pub passages: Vec<std::ops::Range<usize>>,
}

impl Document {
    /// The record that it is of, where what it shows changes under its id.
    pub fn record(&self) -> Option<&str> {
        Links::cited_record(self.url.as_deref()?)
    }
}

/// What is left of a citation of something that changes: a market, say.
#[derive(Debug, Clone, PartialEq)]
pub enum Cited {
    /// As it was at that time.
    Kept { document: Box<Document>, at: Timestamp },
    /// It was kept for as long as the sentence says.
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
    /// The source's own score: says nothing beside another source's.
    pub score: f32,
    /// How much of what was asked for the hit holds, from 0 to 1: this can be compared.
    pub coverage: f32,
    /// What else the source has to say of it, such as how the query was understood.
    pub metadata: Option<JsonObject>,
}
