//! Files become records. A file or row that cannot be read becomes a fault that names it;
//! nothing else is lost.
//!
//! - `markdown`, `rows` and, for speeches, [`crate::speech`] find [`Draft`]s in a file: what it says, unjudged;
//! - [`mapping`]: the names an owner's files use, as the names that mean something here;
//! - `draft`: a draft becomes a record, by the rules of the source's [`Dialect`];
//! - `encoding`: bytes become text.

mod draft;
mod encoding;
pub mod mapping;
mod markdown;
mod rows;

pub(crate) use markdown::sections;

use std::fmt;
use std::path::Path;

use jiff::civil::Date;
use serde::{Deserialize, Serialize};
use tribune_core::JsonObject;

pub(crate) use draft::{Draft, take_id, take_text, title_from_text, web_address};
pub(crate) use encoding::{Decoded, WAS_WINDOWS_1252, decode, windows_1252};
pub use mapping::FieldMap;

use crate::speech::{self, SpeechRules};

/// One document as a file gives it, before it is indexed.
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    /// The part of the id after the source's scheme, verbatim.
    pub key: String,
    pub title: String,
    pub text: String,
    pub date: Option<Date>,
    pub url: Option<String>,
    /// Everything else the file says, under the names it uses.
    pub fields: JsonObject,
}

/// Something in the folder that could not be taken as it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    /// Relative to the source's folder.
    pub file: String,
    pub line: Option<u64>,
    pub problem: String,
    /// Whether something was left out of the index because of it.
    pub skipped: bool,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        let outcome = if self.skipped {
            "skipped"
        } else {
            "indexed with a warning"
        };
        write!(f, ": {}; {outcome}", self.problem)
    }
}

/// How the files of a source are read.
#[derive(Debug, Clone, Default)]
pub struct Reading {
    pub dialect: Dialect,
    pub fields: FieldMap,
    pub duplicates: Duplicates,
}

impl Reading {
    /// Speeches, each text once.
    pub fn speeches(rules: SpeechRules) -> Self {
        Self {
            dialect: Dialect::Speeches(rules),
            fields: FieldMap::default(),
            duplicates: Duplicates::Skip,
        }
    }

    /// What the source holds, in the plural.
    pub const fn noun(&self) -> &'static str {
        match self.dialect {
            Dialect::Documents => "documents",
            Dialect::Speeches(_) => "speeches",
        }
    }

    /// Changes whenever files would be read otherwise than before.
    pub fn fingerprint(&self) -> String {
        format!("{:016x}", crate::schema::document_hash(&format!("{self:?}")))
    }

    pub const fn is_speeches(&self) -> bool {
        matches!(self.dialect, Dialect::Speeches(_))
    }
}

/// What the files are taken to hold.
#[derive(Debug, Clone, Default)]
pub enum Dialect {
    #[default]
    Documents,
    /// Speeches in a parliament: checked, normalised, and also read from Hansard XML.
    Speeches(SpeechRules),
}

/// What happens to a document whose text another one has already.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Duplicates {
    /// Both are held.
    #[default]
    Keep,
    /// The first stays; later ones are named.
    Skip,
    /// The last replaces the ones before it, which are named.
    Update,
    /// The first stays; later ones are faults that count as failures.
    Error,
}

/// How a file is read, told by its ending.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    Markdown,
    Text,
    Jsonl,
    Csv,
    /// The transcript of a sitting, in the form of the Australian parliament.
    HansardXml,
}

impl Format {
    /// `None` for files that are not documents.
    pub fn of(path: &Path, reading: &Reading) -> Option<Self> {
        let extension = path.extension()?.to_str()?.to_ascii_lowercase();
        Some(match extension.as_str() {
            "md" | "markdown" => Self::Markdown,
            "txt" | "text" => Self::Text,
            "jsonl" | "ndjson" => Self::Jsonl,
            "csv" => Self::Csv,
            "xml" if reading.is_speeches() => Self::HansardXml,
            _ => return None,
        })
    }

    /// Whether some source reads files of this name.
    pub fn may_be_read(path: &Path) -> bool {
        let is_xml = path
            .extension()
            .is_some_and(|extension| extension.eq_ignore_ascii_case("xml"));
        is_xml || Self::of(path, &Reading::default()).is_some()
    }

    /// Whether one file holds many documents and is read piece by piece, however large it is.
    pub const fn is_rows(self) -> bool {
        matches!(self, Self::Jsonl | Self::Csv | Self::HansardXml)
    }
}

/// Receives what a file holds. An error from a sink stops the reading.
pub trait Sink {
    type Error;
    /// `warnings` say what was found odd in a record that is good enough to be held.
    fn record(&mut self, line: Option<u64>, record: Record, warnings: Vec<String>) -> Result<(), Self::Error>;
    fn fault(&mut self, line: Option<u64>, skipped: bool, problem: String);
}

/// One file to be read.
pub struct Input<'a> {
    pub path: &'a Path,
    /// Its path below the source's folder, with forward slashes.
    pub relative: &'a str,
    pub format: Format,
    pub reading: &'a Reading,
    pub max_document_bytes: u64,
}

impl Input<'_> {
    pub fn read<S: Sink>(&self, sink: &mut S) -> Result<(), S::Error> {
        match self.format {
            Format::Jsonl => rows::jsonl(self, sink),
            Format::Csv => rows::csv(self, sink),
            Format::HansardXml => speech::xml::read(self, sink),
            Format::Markdown | Format::Text => self.whole(sink),
        }
    }

    /// A file that is one document.
    fn whole<S: Sink>(&self, sink: &mut S) -> Result<(), S::Error> {
        let read = read_bytes(self.path, self.max_document_bytes).and_then(|bytes| self.decode(bytes));
        let decoded = match read {
            Ok(decoded) => decoded,
            Err(problem) => {
                sink.fault(None, true, problem);
                return Ok(());
            }
        };
        let found = match self.format {
            Format::Markdown => markdown::draft(self.relative, &decoded.text),
            _ => Ok(markdown::plain(self.relative, &decoded.text)),
        };
        let (draft, mut warnings) = match found {
            Ok(draft) => (draft, Vec::new()),
            // A note with a typo in its front matter is still a note; a speech without its date and
            // speaker would be found under the wrong ones.
            Err(broken) if self.reading.is_speeches() => {
                sink.fault(broken.line, true, broken.problem);
                return Ok(());
            }
            Err(broken) => (markdown::unread(self.relative, &decoded.text), vec![broken.told()]),
        };
        if decoded.was_windows_1252 {
            warnings.push(WAS_WINDOWS_1252.to_owned());
        }
        self.give(None, draft, warnings, sink)
    }

    /// Judges a draft by the source's rules and hands on what comes of it.
    pub(crate) fn give<S: Sink>(
        &self,
        line: Option<u64>,
        mut draft: Draft,
        mut warnings: Vec<String>,
        sink: &mut S,
    ) -> Result<(), S::Error> {
        self.reading.fields.apply(&mut draft.fields);
        let judged = match &self.reading.dialect {
            Dialect::Documents => draft.into_document(&self.reading.fields),
            Dialect::Speeches(rules) => rules.judge(draft).map(|(record, odd)| {
                warnings.extend(odd);
                record
            }),
        };
        match judged {
            Ok(record) => sink.record(line, record, warnings),
            Err(problem) => {
                sink.fault(line, true, problem);
                Ok(())
            }
        }
    }

    /// Speeches come from old archives; other documents are better converted than guessed at.
    pub(crate) fn decode(&self, bytes: Vec<u8>) -> Result<Decoded, String> {
        decode(bytes, self.reading.is_speeches())
    }
}

fn read_bytes(path: &Path, max_bytes: u64) -> Result<Vec<u8>, String> {
    use std::io::Read;
    let file = std::fs::File::open(path).map_err(|e| format!("cannot be opened: {e}"))?;
    let mut bytes = Vec::new();
    // One byte more than allowed tells "exactly at the limit" from "too long", even for a file
    // that grows while it is read.
    file.take(max_bytes + 1)
        .read_to_end(&mut bytes)
        .map_err(|e| format!("cannot be read: {e}"))?;
    if bytes.len() as u64 > max_bytes {
        return Err(too_large(max_bytes));
    }
    Ok(bytes)
}

pub(crate) fn too_large(max_bytes: u64) -> String {
    format!(
        "is larger than one document may be ({} MiB): split it, or raise max_document_mb for this source",
        max_bytes / (1024 * 1024)
    )
}
