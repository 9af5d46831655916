//! The kinds of files, and what reads them.

mod archive;
mod code;
mod data;
mod epub;
mod html;
mod mail;
mod markup;
mod notebook;
mod office;
mod pdf;
mod sheets;

use serde::{Deserialize, Serialize};

use crate::extracted::{Extracted, Problem, Reason, Receive, Stop};

/// What a file with one document holds.
type Found = Result<Extracted, Problem>;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Format {
    Pdf,
    Docx,
    Pptx,
    Odt,
    Sheet,
    Html,
    Epub,
    Mail,
    Notebook,
    Rst,
    AsciiDoc,
    Org,
    Json,
    Yaml,
    Code,
    Zip,
    Tar,
    TarGz,
    /// In archives; files of their own have formats in the corpus.
    Markdown,
    Text,
}

impl Format {
    pub const ALL: [Self; 18] = [
        Self::Pdf,
        Self::Docx,
        Self::Pptx,
        Self::Odt,
        Self::Sheet,
        Self::Html,
        Self::Epub,
        Self::Mail,
        Self::Notebook,
        Self::Rst,
        Self::AsciiDoc,
        Self::Org,
        Self::Json,
        Self::Yaml,
        Self::Code,
        Self::Zip,
        Self::Tar,
        Self::TarGz,
    ];

    /// In lower case, without the dot.
    pub fn extensions(self) -> &'static [&'static str] {
        match self {
            Self::Pdf => &["pdf"],
            Self::Docx => &["docx", "docm", "dotx"],
            Self::Pptx => &["pptx", "pptm", "ppsx"],
            Self::Odt => &["odt", "ott"],
            Self::Sheet => &["xlsx", "xlsm", "xlsb", "xls", "ods"],
            Self::Html => &["html", "htm", "xhtml"],
            Self::Epub => &["epub"],
            Self::Mail => &["eml"],
            Self::Notebook => &["ipynb"],
            Self::Rst => &["rst"],
            Self::AsciiDoc => &["adoc", "asciidoc", "asc"],
            Self::Org => &["org"],
            Self::Json => &["json"],
            Self::Yaml => &["yaml", "yml"],
            Self::Code => code::EXTENSIONS,
            Self::Zip => &["zip"],
            Self::Tar => &["tar"],
            Self::TarGz => &["tgz", "gz"],
            Self::Markdown => &["md", "markdown"],
            Self::Text => &["txt", "text", "csv", "jsonl"],
        }
    }

    /// By extension, also of the formats that only archives need.
    fn within_archive(path: &str) -> Option<Self> {
        let (_, extension) = path.rsplit_once('.')?;
        let mut formats = Self::ALL.into_iter().chain([Self::Markdown, Self::Text]);
        formats.find(|format| format.extensions().iter().any(|known| known.eq_ignore_ascii_case(extension)))
    }

    /// Whether the text is Markdown.
    pub fn is_markdown(self) -> bool {
        matches!(
            self,
            Self::Docx
                | Self::Pptx
                | Self::Odt
                | Self::Html
                | Self::Epub
                | Self::Notebook
                | Self::Rst
                | Self::AsciiDoc
                | Self::Org
                | Self::Markdown
        )
    }

    /// Whether a file holds several documents.
    pub fn holds_many(self) -> bool {
        matches!(self, Self::Mail | Self::Sheet | Self::Zip | Self::Tar | Self::TarGz)
    }
}

/// Files in files: how deep, how many, and how many bytes they may come to.
const MAX_DEPTH: usize = 3;
const MAX_FILES: usize = 10_000;
const MAX_UNPACKED_BYTES: u64 = 256 << 20;

/// What is read, and where it goes.
pub(crate) struct Reading<'a> {
    receive: &'a mut dyn Receive,
    max_text_bytes: usize,
    /// The path of the file in hand within the outermost one.
    within: String,
    depth: usize,
    files_left: usize,
    bytes_left: u64,
}

pub(crate) fn read(
    format: Format,
    bytes: Vec<u8>,
    max_text_bytes: usize,
    receive: &mut dyn Receive,
) -> Result<(), Stop> {
    let mut reading = Reading {
        receive,
        max_text_bytes,
        within: String::new(),
        depth: 0,
        files_left: MAX_FILES,
        bytes_left: MAX_UNPACKED_BYTES,
    };
    reading.file(format, bytes)
}

impl Reading<'_> {
    fn file(&mut self, format: Format, bytes: Vec<u8>) -> Result<(), Stop> {
        let found = match format {
            Format::Pdf => pdf::read(bytes),
            Format::Docx => office::docx(bytes),
            Format::Pptx => office::pptx(bytes),
            Format::Odt => office::odt(bytes),
            Format::Html => decoded(&bytes).and_then(|text| html::read(&text)),
            Format::Epub => epub::read(bytes),
            Format::Notebook => notebook::read(&bytes),
            Format::Rst => decoded(&bytes).map(|text| markup::rst(&text)),
            Format::AsciiDoc => decoded(&bytes).map(|text| markup::asciidoc(&text)),
            Format::Org => decoded(&bytes).map(|text| markup::org(&text)),
            Format::Json => data::json(&bytes),
            Format::Yaml => data::yaml(&bytes),
            Format::Code => decoded(&bytes).and_then(code::read),
            Format::Markdown | Format::Text => decoded(&bytes).map(|text| Extracted {
                text,
                is_markdown: format == Format::Markdown,
                ..Extracted::default()
            }),
            Format::Sheet => return sheets::read(bytes, self),
            Format::Mail => return mail::read(&bytes, self),
            Format::Zip => return archive::zip(bytes, self),
            Format::Tar => return archive::tar(&*bytes, self),
            Format::TarGz => return archive::tar_gz(&bytes, self),
        };
        match found {
            Ok(extracted) => self.give(extracted),
            Err(problem) => self.fail(problem),
        }
    }

    /// Gives a document on. One without text, or with too much of it, is a problem.
    fn give(&mut self, mut extracted: Extracted) -> Result<(), Stop> {
        if extracted.text.trim().is_empty() {
            return self.fail(Problem::new(Reason::NoText, ""));
        }
        if extracted.text.len() > self.max_text_bytes {
            let most = self.max_text_bytes >> 20;
            return self.fail(Problem::new(Reason::TooLarge, format!("more than {most} MiB of text")));
        }
        extracted.within.insert_str(0, &self.within);
        self.receive.extracted(extracted)
    }

    fn fail(&mut self, mut problem: Problem) -> Result<(), Stop> {
        problem.within.insert_str(0, &self.within);
        self.receive.problem(problem)
    }

    /// A file within the one in hand. What is no document is passed over.
    fn inner(&mut self, name: &str, read: impl FnOnce(u64) -> Result<Vec<u8>, Problem>) -> Result<(), Stop> {
        let Some(format) = Format::within_archive(name) else {
            return Ok(());
        };
        let before = self.within.len();
        if before > 0 {
            self.within.push('/');
        }
        self.within.push_str(name);
        let given = if self.depth >= MAX_DEPTH || self.files_left == 0 {
            self.fail(Problem::new(Reason::TooLarge, "too many files, or too deep in one another"))
        } else {
            self.files_left -= 1;
            match read(self.bytes_left) {
                Err(problem) => self.fail(problem),
                Ok(bytes) => {
                    self.bytes_left = self.bytes_left.saturating_sub(bytes.len() as u64);
                    self.depth += 1;
                    let given = self.file(format, bytes);
                    self.depth -= 1;
                    given
                }
            }
        };
        self.within.truncate(before);
        given
    }
}

/// Text in UTF-8, UTF-16 with a byte order mark, or else Windows-1252.
fn decoded(bytes: &[u8]) -> Result<String, Problem> {
    let (encoding, _) = encoding_rs::Encoding::for_bom(bytes).unwrap_or((encoding_rs::UTF_8, 0));
    let (text, _, is_broken) = encoding.decode(bytes);
    if !is_broken {
        return Ok(text.into_owned());
    }
    if bytes.contains(&0) {
        return Err(Problem::new(Reason::Damaged, "it is not text"));
    }
    Ok(encoding_rs::WINDOWS_1252.decode_without_bom_handling(bytes).0.into_owned())
}

fn damaged(error: impl std::fmt::Display) -> Problem {
    Problem::new(Reason::Damaged, error.to_string())
}
