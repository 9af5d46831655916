//! One file of records: one JSON object per line, with the token first.

use std::fs::{File, OpenOptions, TryLockError};
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

/// Segments of a folder, oldest first, each with the token that names it; other files are ignored.
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

/// Calls `found` for every complete record. Anything else is skipped, such as a last line that was cut off when the
/// process was killed.
pub(super) fn scan(path: &Path, mut found: impl FnMut(Token, Span)) -> io::Result<()> {
    let mut file = BufReader::with_capacity(1 << 16, File::open(path)?);
    let (mut line, mut offset) = (Vec::new(), 0);
    let mut begins_line = true;
    loop {
        line.clear();
        // Of a longer line, only a part is in memory at a time.
        let length = file.by_ref().take(MAX_RECORD_BYTES as u64).read_until(b'\n', &mut line)?;
        if length == 0 {
            return Ok(());
        }
        let record = line.strip_suffix(b"\n").filter(|_| begins_line);
        if let Some((record, token)) = record.and_then(|record| Some((record, token(record)?))) {
            let length = record.len();
            found(token, Span { offset, length });
        }
        begins_line = line.ends_with(b"\n");
        offset += length as u64;
    }
}

/// The token of a line that is a whole record.
fn token(line: &[u8]) -> Option<Token> {
    let token = line.strip_prefix(BEFORE_TOKEN)?.get(..TOKEN_LENGTH)?;
    let token = Token::parse(std::str::from_utf8(token).ok()?)?;
    line.ends_with(b"}").then_some(token)
}

/// Whether a process is writing the file.
pub(super) fn is_written(path: &Path) -> bool {
    let locked = |file: File| matches!(file.try_lock(), Err(TryLockError::WouldBlock));
    File::open(path).is_ok_and(locked)
}

/// The text of one record.
pub(super) fn read(path: &Path, span: Span) -> io::Result<String> {
    let mut file = File::open(path)?;
    file.seek(SeekFrom::Start(span.offset))?;
    let mut bytes = vec![0; span.length];
    file.read_exact(&mut bytes)?;
    String::from_utf8(bytes).map_err(|e| io::Error::new(io::ErrorKind::InvalidData, e))
}

/// The segment that this process writes.
pub(super) struct Writer {
    file: File,
    pub length: u64,
    pub records: usize,
}

impl Writer {
    /// Always a new file: an existing one may end in a torn line.
    pub fn create(path: &Path) -> io::Result<Self> {
        if let Some(dir) = path.parent() {
            std::fs::create_dir_all(dir)?;
        }
        let file = OpenOptions::new().append(true).create_new(true).open(path)?;
        // Keeps other processes from deleting the file, where locks work.
        if let Err(error) = file.lock() {
            tracing::debug!(path = %path.display(), %error, "cannot lock a file of citations");
        }
        Ok(Self { file, length: 0, records: 0 })
    }

    /// One write, without fsync: records survive a crash of the process, but a power cut may lose those of the last
    /// seconds. An fsync would cost every answer milliseconds.
    pub fn append(&mut self, lines: &[String]) -> io::Result<Vec<Span>> {
        if let Err(e) = self.file.write_all(lines.concat().as_bytes()) {
            // Removes half a line; the caller starts a new file in any case.
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
}
