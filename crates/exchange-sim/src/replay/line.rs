//! Reads the lines of a recording, `<receive_ns> <json>`, from plain or gzipped files, and merges the files by time.

use std::fmt::Display;
use std::fs::File;
use std::io::{BufRead, BufReader, Read as _};
use std::path::{Path, PathBuf};

use flate2::bufread::MultiGzDecoder;

use crate::clock::Nanos;

/// A full exchangeInfo has about ten megabytes.
const MAX_LINE_BYTES: u64 = 32 << 20;
const BUFFER_BYTES: usize = 256 << 10;
/// 2001 to 2200: receive times have 19 digits.
const TIMES: std::ops::Range<Nanos> = 1_000_000_000_000_000_000..7_258_118_400_000_000_000;

/// Why a recording cannot be played: where, what is wrong, and what to record instead.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct RecordingError(String);

/// What is wrong with a line, before its file and number are known.
#[derive(Debug)]
pub struct Refusal(pub String);

impl Refusal {
    pub fn new(problem: impl Display, remedy: impl Display) -> Self {
        Self(format!("{problem}; {remedy}"))
    }

    /// `line` is `None` if the whole file is meant.
    pub fn at(self, file: &Path, line: Option<u64>) -> RecordingError {
        let line = line.map_or_else(String::new, |line| format!(", line {line}"));
        RecordingError(format!("{}{line}: {}", file.display(), self.0))
    }
}

#[derive(Debug)]
pub struct Line {
    /// The file's index in the list of files.
    pub file: usize,
    /// From 1.
    pub number: u64,
    /// Never earlier than the line before it in the same file.
    pub time: Nanos,
    pub json: String,
}

/// The lines of one file, in the order in which they were written.
struct FileLines {
    reader: Box<dyn BufRead + Send>,
    path: PathBuf,
    file: usize,
    number: u64,
    time: Nanos,
}

impl FileLines {
    fn open(path: &Path, file: usize) -> Result<Self, RecordingError> {
        let unreadable = |error| unreadable(&error).at(path, None);
        let mut plain = BufReader::with_capacity(BUFFER_BYTES, File::open(path).map_err(unreadable)?);
        let is_gzip = plain.fill_buf().map_err(unreadable)?.starts_with(&[0x1f, 0x8b]);
        let reader: Box<dyn BufRead + Send> = if is_gzip {
            Box::new(BufReader::with_capacity(BUFFER_BYTES, MultiGzDecoder::new(plain)))
        } else {
            Box::new(plain)
        };
        Ok(Self { reader, path: path.to_owned(), file, number: 0, time: 0 })
    }

    /// The next line that is not blank; `None` at the end of the file.
    fn read(&mut self) -> Result<Option<Line>, RecordingError> {
        loop {
            self.number += 1;
            let mut bytes = Vec::new();
            let read = self.reader.by_ref().take(MAX_LINE_BYTES).read_until(b'\n', &mut bytes);
            let refuse = |refusal: Refusal| refusal.at(&self.path, Some(self.number));
            if read.map_err(|error| refuse(unreadable(&error)))? == 0 {
                return Ok(None);
            }
            if bytes.len() as u64 == MAX_LINE_BYTES {
                let remedy = "record one message per line";
                return Err(refuse(Refusal::new("the line is longer than 32 MiB", remedy)));
            }
            if bytes.iter().all(u8::is_ascii_whitespace) {
                continue;
            }
            let (time, json) = split(&bytes).map_err(refuse)?;
            // A recorder's clock may step back; the order of the lines is the order in which they came.
            self.time = self.time.max(time);
            return Ok(Some(Line { file: self.file, number: self.number, time: self.time, json: json.to_owned() }));
        }
    }
}

fn unreadable(error: &std::io::Error) -> Refusal {
    let remedy = match error.kind() {
        std::io::ErrorKind::UnexpectedEof => {
            "the file ends in the middle; unpack what is there and remove the last line"
        }
        _ => "check the path and the file's permissions",
    };
    Refusal::new(format!("cannot read the file ({error})"), remedy)
}

fn split(bytes: &[u8]) -> Result<(Nanos, &str), Refusal> {
    let not_a_line = || {
        let problem = "the line does not begin with a receive time in nanoseconds (19 digits)";
        Refusal::new(problem, "write each message as `<receive_ns> <json>`")
    };
    let text = std::str::from_utf8(bytes).map_err(|_| not_a_line())?;
    let (time, json) = text.trim().split_once([' ', '\t']).ok_or_else(not_a_line)?;
    let time = time.parse().ok().filter(|time| TIMES.contains(time));
    Ok((time.ok_or_else(not_a_line)?, json.trim_start()))
}

/// The lines of all files by time; lines of the same time in the order of the files. Each file is with its next line.
pub struct Lines(Vec<(FileLines, Option<Line>)>);

impl Lines {
    pub fn open(paths: &[PathBuf]) -> Result<Self, RecordingError> {
        let open = |(file, path): (usize, &PathBuf)| {
            let mut lines = FileLines::open(path, file)?;
            let first = lines.read()?;
            Ok((lines, first))
        };
        paths.iter().enumerate().map(open).collect::<Result<_, _>>().map(Self)
    }

    pub fn read(&mut self) -> Result<Option<Line>, RecordingError> {
        let unfinished = self.0.iter_mut().filter(|(_, next)| next.is_some());
        let earliest = unfinished.min_by_key(|(_, next)| next.as_ref().map(|line| line.time));
        let Some((lines, next)) = earliest else { return Ok(None) };
        Ok(std::mem::replace(next, lines.read()?))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    const T: Nanos = 1_750_000_000_000_000_000;

    fn gzip(text: &str) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(text.as_bytes()).expect("memory");
        encoder.finish().expect("memory")
    }

    fn write(folder: &tempfile::TempDir, name: &str, bytes: &[u8]) -> PathBuf {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).expect("written");
        path
    }

    #[test]
    fn files_are_merged_by_time() {
        let folder = tempfile::tempdir().expect("a folder");
        let line = |after: Nanos, name: &str| format!("{} {{\"n\":\"{name}\"}}\n", T + after);
        let plain = [line(1, "a1"), "\n".to_owned(), line(5, "a2"), line(2, "a3")].concat();
        let zipped = [line(2, "b1"), line(5, "b2")].concat();
        let paths = [write(&folder, "a.txt", plain.as_bytes()), write(&folder, "b.gz", &gzip(&zipped))];
        let mut lines = Lines::open(&paths).expect("opened");
        let lines: Vec<Line> = std::iter::from_fn(|| lines.read().expect("a line")).collect();
        let order: Vec<&str> = lines.iter().map(|line| &line.json[6..8]).collect();
        assert_eq!(order, ["a1", "b1", "a2", "a3", "b2"]);
        let last = lines.iter().find(|line| line.json.contains("a3")).expect("a3");
        assert_eq!((last.number, last.time), (4, T + 5), "time never goes back");
    }

    #[test]
    fn other_times_are_refused() {
        for text in [
            "",
            "{}",
            "1750000040123 {}",
            "1750000040.5: {}",
            "2025-06-15T15:07:21Z {}",
            "\u{feff}1750000000000000000 {}",
        ] {
            let refusal = split(text.as_bytes()).expect_err(text);
            assert!(refusal.0.contains("receive time in nanoseconds"), "{text}");
        }
    }

    #[test]
    fn truncated_file_is_refused_with_its_line() {
        let folder = tempfile::tempdir().expect("a folder");
        let text: String = (0..5_000).map(|n: i64| format!("{} {{\"n\":{}}}\n", T + n, n * 7_919 % 5_003)).collect();
        let whole = gzip(&text);
        let path = write(&folder, "torn.gz", &whole[..whole.len() / 2]);
        let mut lines = Lines::open(&[path]).expect("opened");
        let error = std::iter::repeat_with(|| lines.read()).find_map(Result::err).expect("an error");
        assert!(error.to_string().contains("torn.gz, line "), "{error}");
        assert!(error.to_string().contains("remove the last line"), "{error}");
    }
}
