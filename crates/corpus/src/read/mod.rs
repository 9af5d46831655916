//! Files become records. A file or row that cannot be read becomes a fault that names it;
//! nothing else is lost.

mod markdown;
mod rows;

pub(crate) use markdown::sections;

use std::fmt;
use std::path::Path;

use jiff::civil::Date;
use serde::{Deserialize, Serialize};
use tribune_core::JsonObject;

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

/// How a file is read, told by its ending.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    Markdown,
    Text,
    Jsonl,
    Csv,
}

impl Format {
    /// `None` for files that are not documents.
    pub fn of(path: &Path) -> Option<Self> {
        let extension = path.extension()?.to_str()?.to_ascii_lowercase();
        Some(match extension.as_str() {
            "md" | "markdown" => Self::Markdown,
            "txt" | "text" => Self::Text,
            "jsonl" | "ndjson" => Self::Jsonl,
            "csv" => Self::Csv,
            _ => return None,
        })
    }

    /// Whether one file holds many documents and is read row by row, however large it is.
    pub const fn is_rows(self) -> bool {
        matches!(self, Self::Jsonl | Self::Csv)
    }
}

/// Receives what a file holds. An error from a sink stops the reading.
pub trait Sink {
    type Error;
    fn record(&mut self, line: Option<u64>, record: Record) -> Result<(), Self::Error>;
    fn fault(&mut self, line: Option<u64>, skipped: bool, problem: String);
}

/// Reads one file. `relative` is its path below the source's folder, with forward slashes.
pub fn read_file<S: Sink>(
    path: &Path,
    relative: &str,
    format: Format,
    max_document_bytes: u64,
    sink: &mut S,
) -> Result<(), S::Error> {
    match format {
        Format::Jsonl => rows::jsonl(path, relative, max_document_bytes, sink),
        Format::Csv => rows::csv(path, relative, max_document_bytes, sink),
        Format::Markdown | Format::Text => {
            let text = match read_text(path, max_document_bytes) {
                Ok(text) => text,
                Err(problem) => {
                    sink.fault(None, true, problem);
                    return Ok(());
                }
            };
            let (record, warning) = if format == Format::Markdown {
                markdown::record(relative, &text)
            } else {
                (markdown::plain(relative, &text), None)
            };
            if let Some(warning) = warning {
                sink.fault(None, false, warning);
            }
            if record.text.trim().is_empty() {
                sink.fault(None, true, "the file has no text".to_owned());
                return Ok(());
            }
            sink.record(None, record)
        }
    }
}

fn read_text(path: &Path, max_bytes: u64) -> Result<String, String> {
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
    utf8(bytes)
}

fn too_large(max_bytes: u64) -> String {
    format!(
        "is larger than one document may be ({} MiB): split it, or raise max_document_mb for this source",
        max_bytes / (1024 * 1024)
    )
}

fn utf8(bytes: Vec<u8>) -> Result<String, String> {
    let text = String::from_utf8(bytes).map_err(|e| {
        format!(
            "is not UTF-8 (first bad byte at offset {}): convert it, for example with `iconv -t UTF-8`",
            e.utf8_error().valid_up_to()
        )
    })?;
    Ok(match text.strip_prefix('\u{feff}') {
        Some(rest) => rest.to_owned(),
        None => text,
    })
}

/// A calendar date at the start of `text`: `2024-05-28`, with or without a time behind it.
fn date(text: &str) -> Option<Date> {
    let text = text.trim();
    let head = text.get(..10)?;
    let rest = &text[10..];
    if !rest.is_empty() && !rest.starts_with(['T', 't', ' ']) {
        return None;
    }
    head.parse().ok()
}

/// What browsers and proxies still take.
const MAX_URL_BYTES: usize = 2048;

/// An address a person can open.
fn web_address(text: &str) -> Option<String> {
    let text = text.trim();
    let is_web = text.starts_with("https://") || text.starts_with("http://");
    (is_web && text.len() <= MAX_URL_BYTES && !text.contains(char::is_whitespace)).then(|| text.to_owned())
}

/// The first words of a text, for documents without a title.
fn title_from_text(text: &str) -> String {
    const MAX_CHARS: usize = 80;
    let line = text
        .lines()
        .map(str::trim)
        .find(|line| !line.is_empty())
        .unwrap_or_default();
    if line.chars().count() <= MAX_CHARS {
        return line.to_owned();
    }
    let cut: String = line.chars().take(MAX_CHARS).collect();
    let cut = cut.rsplit_once(' ').map_or(cut.as_str(), |(head, _)| head);
    format!("{cut}…")
}
