//! One file of records: a JSON object a line, the token first.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use super::token::Token;

const EXTENSION: &str = "jsonl";
const BEFORE_TOKEN: &[u8] = b"{\"token\":\"";
const TOKEN_LENGTH: usize = 13;

/// Longest record, on disk and in memory.
pub(super) const MAX_RECORD_BYTES: usize = 4 * 1024 * 1024;

/// Where a record is in its segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    pub offset: u64,
    pub length: usize,
}

/// A line of a segment: `body` is a JSON object, which gets the token as its first field.
pub(super) fn line(token: Token, body: &str) -> String {
    let fields = body.strip_prefix('{').unwrap_or(body);
    format!("{{\"token\":\"{token}\",{fields}\n")
}

pub(super) fn path(dir: &Path, first: Token) -> PathBuf {
    dir.join(format!("{first}.{EXTENSION}"))
}

/// Segments of a folder, oldest first, each with the token it is named by; files of others are left alone.
pub(super) fn list(dir: &Path) -> io::Result<Vec<(Token, PathBuf)>> {
    let entries = match std::fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(e),
    };
    let mut segments = Vec::new();
    for entry in entries {
        let path = entry?.path();
        let ours = path.extension().is_some_and(|extension| extension == EXTENSION);
        let stem = path.file_stem().and_then(|stem| stem.to_str());
        if let Some(token) = stem.filter(|_| ours).and_then(Token::parse) {
            segments.push((token, path));
        }
    }
    segments.sort();
    Ok(segments)
}

/// Calls `found` for every whole record. A line without an end was being written when the process was
/// killed; it is passed over, as is anything else that is no record.
pub(super) fn scan(path: &Path, mut found: impl FnMut(Token, Span)) -> io::Result<()> {
    let mut file = BufReader::with_capacity(1 << 16, File::open(path)?);
    let mut line = Line::default();
    loop {
        let chunk = file.fill_buf()?;
        if chunk.is_empty() {
            return Ok(());
        }
        let end = chunk.iter().position(|byte| *byte == b'\n');
        line.take(&chunk[..end.unwrap_or(chunk.len())]);
        let used = end.map_or(chunk.len(), |end| end + 1);
        file.consume(used);
        if end.is_some() {
            if let Some((token, span)) = line.record() {
                found(token, span);
            }
            line = Line::after(&line);
        }
    }
}

/// As much of a line as must be remembered to know the record.
#[derive(Default)]
struct Line {
    offset: u64,
    length: usize,
    head: Vec<u8>,
    last: Option<u8>,
}

impl Line {
    fn after(before: &Self) -> Self {
        Self {
            offset: before.offset + before.length as u64 + 1,
            ..Self::default()
        }
    }

    fn take(&mut self, bytes: &[u8]) {
        let room = (BEFORE_TOKEN.len() + TOKEN_LENGTH).saturating_sub(self.head.len());
        self.head.extend(bytes.iter().take(room));
        self.length += bytes.len();
        self.last = bytes.last().copied().or(self.last);
    }

    fn record(&self) -> Option<(Token, Span)> {
        let token = self.head.strip_prefix(BEFORE_TOKEN)?;
        let token = Token::parse(std::str::from_utf8(token).ok()?)?;
        let whole = self.last == Some(b'}') && self.length < MAX_RECORD_BYTES;
        let span = Span {
            offset: self.offset,
            length: self.length,
        };
        whole.then_some((token, span))
    }
}

/// The text of one record.
pub(super) fn read(path: &Path, span: Span) -> io::Result<String> {
    let mut file = File::open(path)?;
    file.seek(SeekFrom::Start(span.offset))?;
    let mut bytes = vec![0; span.length];
    file.read_exact(&mut bytes)?;
    String::from_utf8(bytes).map_err(|e| io::Error::new(io::ErrorKind::InvalidData, e))
}

/// The segment that grows.
pub(super) struct Writer {
    file: File,
    length: u64,
    pub records: usize,
}

impl Writer {
    /// A new file, never one that exists: a torn line at its end must stay the last.
    pub fn create(path: &Path) -> io::Result<Self> {
        if let Some(dir) = path.parent() {
            std::fs::create_dir_all(dir)?;
        }
        let file = OpenOptions::new().append(true).create_new(true).open(path)?;
        Ok(Self {
            file,
            length: 0,
            records: 0,
        })
    }

    /// One write to the system, which shows it to every reader and keeps it if this process dies. It is not
    /// forced to the disk: a power cut may lose the citations of its last seconds, and waiting for the disk
    /// would cost every answer milliseconds.
    pub fn append(&mut self, lines: &[String]) -> io::Result<Vec<Span>> {
        if let Err(e) = self.file.write_all(lines.concat().as_bytes()) {
            // Half a line must not stand before a whole one; the caller begins a new file in any case.
            let _ = self.file.set_len(self.length);
            return Err(e);
        }
        let place = |line: &String| {
            let (offset, length) = (self.length, line.len() - 1);
            self.length += line.len() as u64;
            Span { offset, length }
        };
        let spans = lines.iter().map(place).collect();
        self.records += lines.len();
        Ok(spans)
    }

    pub const fn length(&self) -> u64 {
        self.length
    }
}
