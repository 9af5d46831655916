//! Recorded lines, `<receive_ns> <json>`, of plain or gzipped files, merged by time. A time of 10, 13 or 16 digits is in
//! seconds, milliseconds or microseconds, and may have decimals and a colon behind it; `2021-08-14T14:46:35.79Z` is a
//! time too. Lines of a file may be up to a second from where they belong; a byte order mark at the
//! beginning of a file is no part of its first line.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{BufRead, BufReader, Read as _};
use std::path::{Path, PathBuf};

use flate2::bufread::MultiGzDecoder;
use jiff::Timestamp;

use super::order::{Ranked, Sorter};
use crate::clock::Nanos;

/// Longer lines are skipped: a snapshot of 5,000 levels a side has half a megabyte, all symbols of exchangeInfo some ten.
const MAX_LINE: usize = 32 << 20;
/// The year 2200: later times are no times, and nobody has to fear for arithmetic.
const MAX_TIME: Nanos = 7_258_118_400_000_000_000;
const BUFFER: usize = 256 << 10;
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// A recording is read several times, and says only once what is wrong with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pass {
    First,
    Again,
}

/// Why a line is none.
const NO_LINE: &str = "a line is `<receive_ns> <json>`";

/// The first line that is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Misread {
    pub place: Place,
    pub why: &'static str,
}

/// Where a line stands: the file's place in the list and the line's number, from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Place {
    pub file: usize,
    pub line: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    pub place: Place,
    pub time: Nanos,
    pub json: String,
}

/// The lines of one file.
struct FileLines {
    reader: Box<dyn BufRead + Send>,
    file: usize,
    path: PathBuf,
    pass: Pass,
    sorter: Sorter,
    ended: bool,
    next: u64,
    skipped: u64,
    misread: Option<Misread>,
}

impl FileLines {
    fn open(path: &Path, file: usize, pass: Pass) -> std::io::Result<Self> {
        let mut plain = BufReader::with_capacity(BUFFER, File::open(path)?);
        let gzipped = plain.fill_buf()?.starts_with(&[0x1f, 0x8b]);
        let reader: Box<dyn BufRead + Send> = if gzipped {
            Box::new(BufReader::with_capacity(BUFFER, MultiGzDecoder::new(plain)))
        } else {
            Box::new(plain)
        };
        Ok(Self {
            reader,
            file,
            path: path.to_owned(),
            pass,
            sorter: Sorter::default(),
            ended: false,
            next: 0,
            skipped: 0,
            misread: None,
        })
    }

    /// The next line by time.
    fn next(&mut self) -> Option<Ranked> {
        while !self.ended {
            if let Some(settled) = self.sorter.pop_settled() {
                return Some(settled);
            }
            match self.next_written() {
                Some(line) => self.sorter.push(line),
                None => self.ended = true,
            }
        }
        self.sorter.pop()
    }

    /// The next line that is one; the others are counted. A file that breaks off has simply ended.
    fn next_written(&mut self) -> Option<Line> {
        loop {
            let bytes = match self.read() {
                Ok(bytes) => bytes?,
                Err(error) => {
                    if self.pass == Pass::First {
                        tracing::warn!(file = %self.path.display(), %error, "a recording broke off");
                    }
                    self.skipped += 1;
                    return None;
                }
            };
            let place = Place {
                file: self.file,
                line: self.next,
            };
            self.next += 1;
            let bytes = match place.line {
                0 => bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&bytes),
                _ => &bytes,
            };
            if bytes.iter().all(u8::is_ascii_whitespace) {
                continue;
            }
            if let Some((time, json)) = split(bytes) {
                return Some(Line { place, time, json });
            }
            self.misread.get_or_insert(Misread { place, why: NO_LINE });
            self.skipped += 1;
        }
    }

    /// `None` at the end; of a line that is too long only its beginning.
    fn read(&mut self) -> std::io::Result<Option<Vec<u8>>> {
        let mut bytes = Vec::new();
        let mut limited = self.reader.by_ref().take(MAX_LINE as u64);
        if limited.read_until(b'\n', &mut bytes)? == 0 {
            return Ok(None);
        }
        while bytes.len() >= MAX_LINE && bytes.last() != Some(&b'\n') {
            let mut rest = Vec::new();
            let read = self
                .reader
                .by_ref()
                .take(MAX_LINE as u64)
                .read_until(b'\n', &mut rest)?;
            if read == 0 || rest.last() == Some(&b'\n') {
                break;
            }
        }
        Ok(Some(bytes))
    }
}

fn split(bytes: &[u8]) -> Option<(Nanos, String)> {
    let text = std::str::from_utf8(bytes).ok()?.trim();
    // Some recorders write before an answer what was asked.
    let asked = text.split_once(" -> ").filter(|(asked, _)| asked.starts_with("http"));
    let text = asked.map_or(text, |(_, answer)| answer);
    let (time, json) = text.split_once([' ', '\t'])?;
    let time = nanos(time)?;
    let json = json.trim_start();
    ((0..MAX_TIME).contains(&time) && json.starts_with(['{', '['])).then(|| (time, json.to_owned()))
}

/// Present times have 10 digits in seconds, 13 in milliseconds, 16 in microseconds and 19 in nanoseconds; or they are
/// written out.
fn nanos(text: &str) -> Option<Nanos> {
    if text.contains('T') {
        let written: Timestamp = text.parse().ok()?;
        return Nanos::try_from(written.as_nanosecond()).ok();
    }
    let text = text.strip_suffix(':').unwrap_or(text);
    let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
    let time: Nanos = whole.parse().ok()?;
    let places = match time {
        1_000_000_000..10_000_000_000 => 9,
        1_000_000_000_000..10_000_000_000_000 => 6,
        1_000_000_000_000_000..10_000_000_000_000_000 => 3,
        _ => 0,
    };
    if !decimals.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    // What is finer than a nanosecond is cut off.
    let decimals = &decimals[..decimals.len().min(places)];
    let fraction: Nanos = format!("{decimals:0<places$}").parse().unwrap_or(0);
    Some(time.saturating_mul(10i64.pow(places as u32)).saturating_add(fraction))
}

/// Lines of all files in the order of their times; those of one time in the order of the files and in these as written.
pub struct Merged {
    files: Vec<FileLines>,
    heads: BinaryHeap<Reverse<Ranked>>,
}

impl Merged {
    pub fn open(paths: &[PathBuf], pass: Pass) -> Result<Self, String> {
        let mut files = Vec::with_capacity(paths.len());
        let mut heads = BinaryHeap::new();
        for (index, path) in paths.iter().enumerate() {
            let unreadable = |error| format!("cannot read {}: {error}", path.display());
            let mut file = FileLines::open(path, index, pass).map_err(unreadable)?;
            heads.extend(file.next().map(Reverse));
            files.push(file);
        }
        Ok(Self { files, heads })
    }

    /// Lines skipped so far because they are none.
    pub fn skipped(&self) -> u64 {
        self.files.iter().map(|file| file.skipped).sum()
    }

    /// The first of them.
    pub fn first_misread(&self) -> Option<Misread> {
        self.files.iter().find_map(|file| file.misread)
    }
}

impl Iterator for Merged {
    type Item = Line;

    fn next(&mut self) -> Option<Line> {
        let Reverse(Ranked { line, .. }) = self.heads.pop()?;
        let following = self.files[line.place.file].next();
        self.heads.extend(following.map(Reverse));
        Some(line)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn gzipped(text: &str) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(text.as_bytes()).expect("it is memory");
        encoder.finish().expect("it is memory")
    }

    #[test]
    fn files_are_merged_by_time_and_malformed_lines_counted() {
        let folder = tempfile::tempdir().expect("a folder");
        let paths = [folder.path().join("a.txt"), folder.path().join("b.gz")];
        std::fs::write(
            &paths[0],
            "1 {\"a\":1}\nnonsense\n\n3 {\"a\":3}\n5 not json\n\u{feff}6 {}",
        )
        .expect("written");
        std::fs::write(&paths[1], gzipped("2 {\"b\":2}\r\n3 {\"b\":3}\n-4 {}\n")).expect("written");
        let mut merged = Merged::open(&paths, Pass::First).expect("opened");
        let lines: Vec<String> = merged.by_ref().map(|line| line.json).collect();
        assert_eq!(lines, ["{\"a\":1}", "{\"b\":2}", "{\"a\":3}", "{\"b\":3}"]);
        assert_eq!(merged.skipped(), 4);
    }

    #[test]
    fn times_are_known_by_their_size() {
        for (written, time) in [
            ("1750000040123", 1_750_000_040_123_000_000),
            ("1750000040123456", 1_750_000_040_123_456_000),
            ("1750000040123456789", 1_750_000_040_123_456_789),
            ("1750000040", 1_750_000_040_000_000_000),
            ("1750000040.123", 1_750_000_040_123_000_000),
            ("1750000040123.5", 1_750_000_040_123_500_000),
            ("1750000040.1234567899", 1_750_000_040_123_456_789),
            ("1750000040.", 1_750_000_040_000_000_000),
            ("1750000040.1x", MAX_TIME),
            ("9999999999999", MAX_TIME),
            ("170", 170),
            ("1750000040.123:", 1_750_000_040_123_000_000),
            ("1750000040::", MAX_TIME),
            ("2021-08-14T14:46:35.7998050Z", 1_628_952_395_799_805_000),
            ("2021-08-14T16:46:35+02:00", 1_628_952_395_000_000_000),
            ("2021-08-14T14:46:35", MAX_TIME),
            ("9999-08-14T14:46:35Z", MAX_TIME),
            ("T", MAX_TIME),
        ] {
            let line = split(format!("{written} {{}}\n").as_bytes());
            let expected = (time < MAX_TIME).then(|| (time, "{}".to_owned()));
            assert_eq!(line, expected, "{written}");
        }
    }

    #[test]
    fn what_was_asked_may_stand_before_the_answer() {
        let line = |text: &str| split(text.as_bytes()).map(|(time, _)| time);
        let time = 1_628_952_396_228_346_000;
        let answer = r#"1628952396.228346: {"a":" -> "}"#;
        assert_eq!(line(answer), Some(time));
        assert_eq!(line(&format!("https://x/depth?symbol=A -> {answer}")), Some(time));
        assert_eq!(line(&format!("nonsense -> {answer}")), None);
        assert_eq!(line("wss://x/stream <-> 1628952394.891941"), None);
    }

    #[test]
    fn a_byte_order_mark_is_no_part_of_the_first_line() {
        let folder = tempfile::tempdir().expect("a folder");
        let paths = [folder.path().join("a.txt"), folder.path().join("b.gz")];
        std::fs::write(&paths[0], "\u{feff}1 {\"a\":1}\n").expect("written");
        std::fs::write(&paths[1], gzipped("\u{feff}2 {\"b\":2}\n")).expect("written");
        let mut merged = Merged::open(&paths, Pass::Again).expect("opened");
        assert_eq!(merged.by_ref().count(), 2);
        assert_eq!(merged.skipped(), 0);
    }

    #[test]
    fn a_file_that_breaks_off_gives_what_it_has() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("torn.gz");
        let text: String = (0..5_000)
            .map(|index| format!("{index} {{\"n\":{}}}\n", index * 7_919 % 5_003))
            .collect();
        let whole = gzipped(&text);
        std::fs::write(&path, &whole[..whole.len() / 2]).expect("written");
        let mut merged = Merged::open(&[path], Pass::First).expect("opened");
        let count = merged.by_ref().count();
        assert!((1..5_000).contains(&count), "{count}");
        assert_eq!(merged.skipped(), 1);
    }
}
