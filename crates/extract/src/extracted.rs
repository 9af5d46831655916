//! What a file holds.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// One document in a file.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Extracted {
    /// Where it is in its file: empty for the whole file, or the path in an archive.
    pub within: String,
    pub title: Option<String>,
    pub text: String,
    /// Whether the text is Markdown.
    pub is_markdown: bool,
    /// Where its pages, slides, sheets or chapters begin, in order.
    pub places: Vec<Place>,
    /// What else the file says: author, date, subject.
    pub fields: Map<String, Value>,
}

/// The beginning of a page, slide, sheet or chapter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// The byte of the text.
    pub at: usize,
    /// As a citation names it: `p. 12`, `slide 3`, `sheet Costs`.
    pub label: String,
}

/// Why a file, or a part of it, could not be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// As in [`Extracted`].
    pub within: String,
    pub reason: Reason,
    /// What else is known, for the owner of the file.
    pub detail: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    NoText,
    Encrypted,
    Damaged,
    TooLarge,
    /// Its parser took too long, too much memory, or crashed.
    Killed,
}

impl Problem {
    pub fn new(reason: Reason, detail: impl Into<String>) -> Self {
        Self { within: String::new(), reason, detail: detail.into() }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.reason {
            Reason::NoText => "has no text; if it is scanned, run OCR on it first",
            Reason::Encrypted => "is encrypted; save it without a password",
            Reason::Damaged => "is damaged or not what its extension says",
            Reason::TooLarge => "is too large",
            Reason::Killed => "cannot be read safely",
        };
        match (self.within.as_str(), self.detail.as_str()) {
            ("", "") => f.write_str(what),
            ("", detail) => write!(f, "{what} ({detail})"),
            (within, "") => write!(f, "`{within}` {what}"),
            (within, detail) => write!(f, "`{within}` {what} ({detail})"),
        }
    }
}

/// Ends a reading early.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stop;

/// Takes what is found in a file, in order.
pub trait Receive {
    fn extracted(&mut self, extracted: Extracted) -> Result<(), Stop>;
    fn problem(&mut self, problem: Problem) -> Result<(), Stop>;

    /// Whether anybody still wants the rest; asked while nothing arrives.
    fn is_wanted(&self) -> bool {
        true
    }
}
