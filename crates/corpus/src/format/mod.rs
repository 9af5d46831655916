//! Reads files into records. A file or row that cannot be read becomes a fault; everything else is read.
//!
//! - `record`: [`Record`] and [`Fault`];
//! - `draft`: a document as read, before the [`Rules`] of its source make a record of it;
//! - `fields`: maps the field names of an owner's files to ours;
//! - `markdown`, `rows`: the built-in formats; `files`: those that `tribune_extract` reads in child processes.
//!   [`Formats`] chooses by extension, and other crates can add to it.

mod draft;
mod fields;
mod files;
mod markdown;
mod record;
mod rows;

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use tribune_core::{JsonObject, Readers};
use tribune_extract::Workers;

pub use draft::{Draft, take_id, take_text, title_from_text, web_address};
pub use fields::{FieldMap, as_given};
pub(crate) use markdown::sections;
pub use record::{Fault, Markup, Place, Reason, Record, Sink, Stop};

/// The field that says who may see a document.
const READERS: &str = "readers";

/// The warning about a file in Windows-1252.
const WAS_WINDOWS_1252: &str = "is not UTF-8 and was read as Windows-1252; if accents or quotation marks look wrong, convert it with `iconv -t UTF-8`";

/// A file format.
pub trait Format: Send + Sync {
    /// In lower case, without the dot.
    fn extensions(&self) -> &'static [&'static str];

    /// Whether a file holds several records, ordered as in the file, and not one.
    fn holds_many(&self) -> bool {
        false
    }

    /// Counts up when the same bytes give other records. Indexes then read the files of this format again.
    fn version(&self) -> u32 {
        1
    }

    /// Gives every record of a file to `sink`, and a fault for each one that cannot be read.
    fn read(&self, input: &Input<'_>, sink: &mut dyn Sink) -> Result<(), Stop>;
}

type Read = fn(&Input<'_>, &mut dyn Sink) -> Result<(), Stop>;

struct BuiltIn {
    extensions: &'static [&'static str],
    holds_many: bool,
    read: Read,
}

impl Format for BuiltIn {
    fn extensions(&self) -> &'static [&'static str] {
        self.extensions
    }

    fn holds_many(&self) -> bool {
        self.holds_many
    }

    fn read(&self, input: &Input<'_>, sink: &mut dyn Sink) -> Result<(), Stop> {
        (self.read)(input, sink)
    }
}

/// The formats of a source, chosen by extension.
#[derive(Clone)]
pub struct Formats(Vec<Arc<dyn Format>>);

impl Default for Formats {
    fn default() -> Self {
        let built_in = |extensions, holds_many, read: Read| -> Arc<dyn Format> {
            Arc::new(BuiltIn { extensions, holds_many, read })
        };
        Self(vec![
            built_in(&["md", "markdown"], false, markdown::read),
            built_in(&["txt", "text"], false, markdown::read_plain),
            built_in(&["jsonl", "ndjson"], true, rows::read_jsonl),
            built_in(&["csv"], true, rows::read_csv),
        ])
    }
}

impl Formats {
    /// One format, without the built-in ones.
    #[must_use]
    pub fn only(format: Arc<dyn Format>) -> Self {
        Self(vec![format])
    }

    /// Adds what `workers` read: PDF, office documents, mail and others.
    #[must_use]
    pub fn with_files(mut self, workers: &Arc<Workers>) -> Self {
        for format in tribune_extract::Format::ALL {
            self.0.push(Arc::new(files::Files { format, workers: workers.clone() }));
        }
        self
    }

    /// Adds a format. It replaces earlier formats for its extensions.
    #[must_use]
    pub fn with(mut self, format: Arc<dyn Format>) -> Self {
        self.0.push(format);
        self
    }

    /// `None` for files that are not documents.
    pub fn find(&self, path: &Path) -> Option<&Arc<dyn Format>> {
        let extension = path.extension()?.to_str()?;
        let reads = |format: &&Arc<dyn Format>| {
            let mut extensions = format.extensions().iter();
            extensions.any(|known| known.eq_ignore_ascii_case(extension))
        };
        self.0.iter().rev().find(reads)
    }
}

/// Part of a folder's fingerprint.
impl fmt::Debug for Formats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut list = f.debug_list();
        for format in &self.0 {
            list.entry(&format.extensions());
            // Version 1 is not written, so that indexes made before versions existed stay valid.
            if format.version() > 1 {
                list.entry(&format.version());
            }
        }
        list.finish()
    }
}

/// How a kind of source makes records of drafts.
pub trait Rules: fmt::Debug + Send + Sync {
    /// The record with warnings, or why there is none.
    fn record(&self, draft: Draft, fields: &FieldMap) -> Result<(Record, Vec<String>), String>;

    /// Whether files that are not UTF-8 are read as Windows-1252 (as in old archives) or refused.
    fn assumes_windows_1252(&self) -> bool {
        false
    }

    /// Whether a file with broken front matter is refused or read without it.
    fn requires_front_matter(&self) -> bool {
        false
    }
}

/// The rules of plain documents.
#[derive(Debug, Clone, Copy, Default)]
pub struct DocumentRules;

impl Rules for DocumentRules {
    fn record(&self, draft: Draft, fields: &FieldMap) -> Result<(Record, Vec<String>), String> {
        Ok((draft.into_document(fields)?, Vec::new()))
    }
}

/// How the files of a source are read.
#[derive(Debug, Clone)]
pub struct Reading {
    pub rules: Arc<dyn Rules>,
    pub formats: Formats,
    pub fields: FieldMap,
}

impl Default for Reading {
    fn default() -> Self {
        Self { rules: Arc::new(DocumentRules), formats: Formats::default(), fields: FieldMap::default() }
    }
}

/// A file to read.
pub struct Input<'a> {
    pub path: &'a Path,
    /// The path below the source's folder, with forward slashes.
    pub relative: &'a str,
    pub reading: &'a Reading,
    pub max_document_bytes: u64,
}

impl Input<'_> {
    /// Reads the file in the format of its extension.
    pub fn read(&self, sink: &mut dyn Sink) -> Result<(), Stop> {
        match self.reading.formats.find(self.path) {
            Some(format) => format.read(self, sink),
            None => {
                sink.fault(None, true, "has an extension that this source does not read".to_owned());
                Ok(())
            }
        }
    }

    /// Applies the source's rules to a draft and gives the record to `sink`.
    pub fn give(
        &self,
        line: Option<u64>,
        mut draft: Draft,
        mut warnings: Vec<String>,
        sink: &mut dyn Sink,
    ) -> Result<(), Stop> {
        self.reading.fields.apply(&mut draft.fields);
        let readers = take_readers(&mut draft.fields, &mut warnings);
        match self.reading.rules.record(draft, &self.reading.fields) {
            Ok((mut record, more)) => {
                record.readers = readers;
                warnings.extend(more);
                sink.record(line, record, warnings)
            }
            Err(problem) => {
                sink.fault(line, true, problem);
                Ok(())
            }
        }
    }

    /// The text of a file that is one document, read and decoded within the limit; `None` after a fault.
    pub fn text(&self, sink: &mut dyn Sink) -> Option<String> {
        self.text_within(self.max_document_bytes, sink)
    }

    /// The text of a file, for formats with a limit of their own.
    pub fn text_within(&self, max_bytes: u64, sink: &mut dyn Sink) -> Option<String> {
        let bytes = read_bytes(self.path, max_bytes);
        match bytes.and_then(|bytes| decode(bytes, self.reading.rules.assumes_windows_1252())) {
            Ok((text, was_windows_1252)) => {
                if was_windows_1252 {
                    sink.fault(None, false, WAS_WINDOWS_1252.to_owned());
                }
                Some(text)
            }
            Err(problem) => {
                sink.fault(None, true, problem);
                None
            }
        }
    }
}

/// Takes the readers of a document out of its fields. A list that cannot be read names nobody.
fn take_readers(fields: &mut JsonObject, warnings: &mut Vec<String>) -> Readers {
    let mut readers = Readers::default();
    let names: Vec<String> = fields.keys().filter(|name| name.eq_ignore_ascii_case(READERS)).cloned().collect();
    for written in names.iter().filter_map(|name| fields.shift_remove(name)) {
        let own = serde_json::from_value(written).unwrap_or_else(|problem| {
            warnings.push(format!("`readers`: {problem}; only the operator sees the document until this is corrected"));
            Readers::nobody()
        });
        readers = readers.narrowed(&own);
    }
    readers
}

fn read_bytes(path: &Path, max_bytes: u64) -> Result<Vec<u8>, String> {
    use std::io::Read;
    let file = std::fs::File::open(path).map_err(|e| format!("cannot be opened: {e}"))?;
    let mut bytes = Vec::new();
    // One byte more than allowed tells "exactly at the limit" from "too long", even for a file
    // that grows while it is read.
    file.take(max_bytes + 1).read_to_end(&mut bytes).map_err(|e| format!("cannot be read: {e}"))?;
    if bytes.len() as u64 > max_bytes {
        return Err(too_large(max_bytes));
    }
    Ok(bytes)
}

/// UTF-8 with or without a byte order mark, else Windows-1252, which is the flag, if the rules allow it.
fn decode(bytes: Vec<u8>, assume_windows_1252: bool) -> Result<(String, bool), String> {
    let utf16 = bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]);
    match String::from_utf8(bytes) {
        Ok(text) => match text.strip_prefix('\u{feff}') {
            Some(rest) => Ok((rest.to_owned(), false)),
            None => Ok((text, false)),
        },
        Err(error) if assume_windows_1252 && !utf16 => Ok((windows_1252(error.as_bytes()), true)),
        Err(error) => Err(format!(
            "is not UTF-8 (first bad byte at offset {}): convert it, for example with `iconv -t UTF-8`",
            error.utf8_error().valid_up_to()
        )),
    }
}

/// Cannot fail: every byte is a character in Windows-1252.
fn windows_1252(bytes: &[u8]) -> String {
    let (text, _) = encoding_rs::WINDOWS_1252.decode_without_bom_handling(bytes);
    text.into_owned()
}

/// The fault of a document that is larger than a source allows.
pub fn too_large(max_bytes: u64) -> String {
    format!(
        "is larger than one document may be ({} MiB): split it, or raise max_document_mb for this source",
        max_bytes / (1024 * 1024)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Calendar(u32);

    impl Format for Calendar {
        fn extensions(&self) -> &'static [&'static str] {
            &["ics"]
        }

        fn holds_many(&self) -> bool {
            true
        }

        fn version(&self) -> u32 {
            self.0
        }

        fn read(&self, _input: &Input<'_>, _sink: &mut dyn Sink) -> Result<(), Stop> {
            Ok(())
        }
    }

    #[test]
    fn one_format_leaves_out_the_built_in_ones() {
        let formats = Formats::only(Arc::new(Calendar(1)));
        assert!(formats.find(Path::new("a.ICS")).is_some());
        assert!(formats.find(Path::new("a.md")).is_none());
    }

    #[test]
    fn new_version_changes_the_fingerprint() {
        let fingerprint = |version| format!("{:?}", Formats::only(Arc::new(Calendar(version))));
        assert_ne!(fingerprint(1), fingerprint(2));
        assert_ne!(fingerprint(2), fingerprint(3));
    }

    #[test]
    fn utf_8_comes_first_and_windows_1252_only_where_it_may_be_assumed() {
        let decoded = decode("\u{feff}café".into(), true).expect("utf-8");
        assert_eq!((decoded.0.as_str(), decoded.1), ("café", false));
        let decoded = decode(b"caf\xe9 \x93so\x94 \x97".to_vec(), true).expect("decoded");
        assert_eq!((decoded.0.as_str(), decoded.1), ("café “so” —", true));
        assert!(decode(b"caf\xe9".to_vec(), false).is_err());
        assert!(decode(b"\xff\xfea\0".to_vec(), true).is_err(), "UTF-16 is not guessed at");
    }
}
