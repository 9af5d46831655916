//! One item before it is indexed, and the faults of reading it.

use std::fmt;

use jiff::civil::Date;
use serde::{Deserialize, Serialize};
use tribune_core::{JsonObject, Readers, escape_controls};
pub use tribune_extract::{Place, Reason};

use crate::hash;

/// One item from a provider, before it is indexed.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Record {
    /// The id without the source's scheme.
    pub key: String,
    pub title: String,
    pub text: String,
    pub date: Option<Date>,
    pub url: Option<String>,
    /// All other fields, under their own names.
    pub fields: JsonObject,
    /// Who may see it, of those who may see its source and its folder.
    pub readers: Readers,
    pub markup: Markup,
    /// Where pages, slides, sheets, chapters or definitions begin in the text, in order.
    pub places: Vec<Place>,
}

impl Record {
    /// Of everything that its readers see.
    pub(crate) fn digest(&self) -> u64 {
        let Self { key, title, text, date, url, fields, readers: _, markup: _, places: _ } = self;
        hash::of_content(&serde_json::json!([key, title, text, date, url, fields]).to_string())
    }
}

/// A problem with a file or a record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    /// The provider's key; for a folder, the path below it.
    pub file: String,
    pub line: Option<u64>,
    pub problem: String,
    /// Whether a document is missing from the index because of it.
    pub skipped: bool,
    /// Why, if its file's parser knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Reason>,
}

impl Fault {
    /// A document that is not indexed.
    pub fn skipped(file: impl Into<String>, problem: impl Into<String>) -> Self {
        Self { file: file.into(), line: None, problem: problem.into(), skipped: true, reason: None }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&escape_controls(&self.file))?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        let outcome = if self.skipped { "skipped" } else { "indexed with a warning" };
        write!(f, ": {}; {outcome}", escape_controls(&self.problem))
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Markup {
    #[default]
    Plain,
    Markdown,
}

/// Ends a reading early.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stop;

/// Receives records and faults.
pub trait Sink {
    /// `warnings` are problems of a record that is indexed all the same.
    fn record(&mut self, line: Option<u64>, record: Record, warnings: Vec<String>) -> Result<(), Stop>;
    fn fault(&mut self, line: Option<u64>, skipped: bool, problem: String);

    /// Whether anybody still wants the rest.
    fn is_wanted(&self) -> bool {
        true
    }

    /// A file, or a part of it, that could not be read for a known reason.
    fn unreadable(&mut self, _reason: Reason, problem: String) {
        self.fault(None, true, problem);
    }
}
