//! JSONL and CSV: one document a row. Rows are streamed, so a file may be of any size.

use std::cell::Cell;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use serde_json::Value;
use tribune_core::JsonObject;

use super::{Draft, Input, Sink, WAS_WINDOWS_1252, encoding, too_large};

pub(super) fn jsonl<S: Sink>(input: &Input<'_>, sink: &mut S) -> Result<(), S::Error> {
    let mut reader = match File::open(input.path) {
        Ok(file) => BufReader::with_capacity(256 * 1024, file),
        Err(error) => {
            sink.fault(None, true, format!("cannot be opened: {error}"));
            return Ok(());
        }
    };
    let max_row_bytes = input.max_document_bytes;
    let mut row = Vec::new();
    for number in 1u64.. {
        row.clear();
        match reader.by_ref().take(max_row_bytes + 1).read_until(b'\n', &mut row) {
            Ok(0) => break,
            Ok(_) => {}
            Err(error) => {
                sink.fault(Some(number), true, format!("cannot be read further: {error}"));
                break;
            }
        }
        if row.len() as u64 > max_row_bytes && !row.ends_with(b"\n") {
            sink.fault(Some(number), true, too_large(max_row_bytes));
            if skip_line(&mut reader).is_err() {
                break;
            }
            continue;
        }
        let bytes = row.strip_prefix("\u{feff}".as_bytes()).unwrap_or(&row);
        if bytes.trim_ascii().is_empty() {
            continue;
        }
        json_row(input, number, bytes, sink)?;
    }
    Ok(())
}

fn json_row<S: Sink>(input: &Input<'_>, number: u64, bytes: &[u8], sink: &mut S) -> Result<(), S::Error> {
    let mut warnings = Vec::new();
    let parsed = if input.reading.is_speeches() && std::str::from_utf8(bytes).is_err() {
        warnings.push(WAS_WINDOWS_1252.to_owned());
        serde_json::from_str::<Value>(&encoding::windows_1252(bytes))
    } else {
        serde_json::from_slice::<Value>(bytes)
    };
    match parsed {
        Ok(Value::Object(fields)) => {
            let draft = draft(input.relative, number, fields);
            return input.give(Some(number), draft, warnings, sink);
        }
        Ok(_) => sink.fault(Some(number), true, "is not a JSON object".to_owned()),
        Err(error) => sink.fault(Some(number), true, format!("is not valid JSON ({error})")),
    }
    Ok(())
}

fn draft(relative: &str, number: u64, fields: JsonObject) -> Draft {
    Draft {
        place: format!("{relative}#{number}"),
        fields,
        is_row: true,
        ..Draft::default()
    }
}

fn skip_line(reader: &mut impl BufRead) -> std::io::Result<()> {
    loop {
        let buffer = reader.fill_buf()?;
        if buffer.is_empty() {
            return Ok(());
        }
        let (used, done) = match buffer.iter().position(|&b| b == b'\n') {
            Some(at) => (at + 1, true),
            None => (buffer.len(), false),
        };
        reader.consume(used);
        if done {
            return Ok(());
        }
    }
}

pub(super) fn csv<S: Sink>(input: &Input<'_>, sink: &mut S) -> Result<(), S::Error> {
    let file = match File::open(input.path) {
        Ok(file) => file,
        Err(error) => {
            sink.fault(None, true, format!("cannot be opened: {error}"));
            return Ok(());
        }
    };
    let left = Cell::new(input.max_document_bytes);
    let bounded = Bounded { file, left: &left };
    let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(bounded);
    let names = match reader.byte_headers() {
        Ok(header) => column_names(header),
        Err(error) => {
            sink.fault(None, true, format!("has no readable header row: {error}"));
            return Ok(());
        }
    };
    if !check_columns(input, &names, sink) {
        return Ok(());
    }
    let mut row = csv::ByteRecord::new();
    let mut last = None;
    loop {
        let (line, byte) = (reader.position().line(), reader.position().byte());
        left.set(input.max_document_bytes);
        match reader.read_byte_record(&mut row) {
            Ok(true) => last = (reader.position().line() > line + 1).then_some((line, byte)),
            Ok(false) => break,
            Err(error) if error.is_io_error() => {
                let problem = format!("{error}; the rest of the file is not read");
                sink.fault(Some(line), true, problem);
                break;
            }
            Err(error) => {
                sink.fault(Some(line), true, format!("cannot be read: {error}"));
                continue;
            }
        }
        let mut warnings = surplus(&names, &row).into_iter().collect();
        match cells(input, &names, &row, &mut warnings) {
            Ok(fields) => input.give(Some(line), draft(input.relative, line, fields), warnings, sink)?,
            Err(problem) => sink.fault(Some(line), true, problem),
        }
    }
    if let Some((line, byte)) = last
        && has_open_quote(input.path, byte).unwrap_or(false)
    {
        let problem = "a quote in the row that begins here is never closed: everything after it was read as part of it";
        sink.fault(Some(line), false, problem.to_owned());
    }
    Ok(())
}

/// Whether the quotes from `byte` to the end of the file do not come in pairs.
fn has_open_quote(path: &Path, byte: u64) -> std::io::Result<bool> {
    let mut file = BufReader::new(File::open(path)?);
    file.seek(SeekFrom::Start(byte))?;
    let mut is_open = false;
    loop {
        let part = file.fill_buf()?;
        if part.is_empty() {
            return Ok(is_open);
        }
        is_open ^= !part.iter().filter(|b| **b == b'"').count().is_multiple_of(2);
        let read = part.len();
        file.consume(read);
    }
}

/// Whether there is a text to be read, and what is odd about the header.
fn check_columns<S: Sink>(input: &Input<'_>, names: &[String], sink: &mut S) -> bool {
    let text = input.reading.fields.theirs("text").unwrap_or("text");
    if !names.iter().any(|name| name.eq_ignore_ascii_case(text)) {
        let found = names.join(", ");
        sink.fault(
            None,
            true,
            format!(
                "has no column `{text}` (its columns: {found}); say which one is the text with `fields = {{ text = … }}`"
            ),
        );
        return false;
    }
    for (at, name) in names.iter().enumerate() {
        if names[..at].contains(name) {
            sink.fault(None, false, format!("has two columns `{name}`; the last one counts"));
        }
    }
    true
}

/// Says so where a row has cells that belong to no column: most often a comma that was not quoted.
fn surplus(names: &[String], row: &csv::ByteRecord) -> Option<String> {
    let more = row.len().saturating_sub(names.len());
    let lost = row.iter().skip(names.len()).any(|cell| !cell.trim_ascii().is_empty());
    (more > 0 && lost).then(|| {
        format!(
            "has {} cells for {} columns and what follows the last column is left out; a comma inside a cell needs quotes around the cell",
            row.len(),
            names.len()
        )
    })
}

/// A file that gives only so many bytes for one row: a quote that is never closed would otherwise
/// make one row of all that follows it, and hold it in memory.
struct Bounded<'a> {
    file: File,
    left: &'a Cell<u64>,
}

impl Read for Bounded<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        if self.left.get() == 0 {
            return Err(std::io::Error::other(
                "the row that begins here is larger than one document may be, perhaps because a quote is not closed",
            ));
        }
        let read = self.file.read(buffer)?;
        self.left.set(self.left.get().saturating_sub(read as u64));
        Ok(read)
    }
}

/// The five names that mean something are recognised in any case; others are kept as they are.
fn column_names(header: &csv::ByteRecord) -> Vec<String> {
    header
        .iter()
        .map(|name| {
            let name = String::from_utf8_lossy(name);
            let name = name.trim_start_matches('\u{feff}').trim();
            let lower = name.to_ascii_lowercase();
            match lower.as_str() {
                "id" | "_id" | "title" | "text" | "date" | "url" => lower,
                _ => name.to_owned(),
            }
        })
        .collect()
}

fn cells(
    input: &Input<'_>,
    names: &[String],
    row: &csv::ByteRecord,
    warnings: &mut Vec<String>,
) -> Result<JsonObject, String> {
    let mut fields = JsonObject::new();
    let mut was_windows_1252 = false;
    for (name, cell) in names.iter().zip(row) {
        let cell = match std::str::from_utf8(cell) {
            Ok(cell) => cell.to_owned(),
            Err(_) if input.reading.is_speeches() => {
                was_windows_1252 = true;
                encoding::windows_1252(cell)
            }
            Err(_) => return Err(format!("`{name}` is not UTF-8")),
        };
        if !cell.is_empty() || name == "text" {
            fields.insert(name.clone(), Value::from(cell));
        }
    }
    if was_windows_1252 {
        warnings.push(WAS_WINDOWS_1252.to_owned());
    }
    Ok(fields)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::{Fault, FieldMap, Format, Reading, Record};

    #[derive(Default)]
    struct Collected {
        records: Vec<Record>,
        faults: Vec<Fault>,
    }

    impl Sink for Collected {
        type Error = std::convert::Infallible;
        fn record(&mut self, line: Option<u64>, record: Record, warnings: Vec<String>) -> Result<(), Self::Error> {
            self.records.push(record);
            for warning in warnings {
                self.fault(line, false, warning);
            }
            Ok(())
        }
        fn fault(&mut self, line: Option<u64>, skipped: bool, problem: String) {
            self.faults.push(Fault {
                file: "f".into(),
                line,
                problem,
                skipped,
            });
        }
    }

    fn read(name: &str, content: &[u8]) -> Collected {
        read_as(&Reading::default(), name, content)
    }

    fn read_as(reading: &Reading, name: &str, content: &[u8]) -> Collected {
        let dir = tempfile::tempdir().expect("dir");
        let path = dir.path().join(name);
        std::fs::write(&path, content).expect("write");
        let mut collected = Collected::default();
        let input = Input {
            path: &path,
            relative: name,
            format: Format::of(&path, reading).expect("a known format"),
            reading,
            max_document_bytes: 1024,
        };
        let Ok(()) = input.read(&mut collected);
        collected
    }

    #[test]
    fn jsonl_keeps_ids_verbatim_and_names_bad_rows() {
        let long = format!("{{\"id\":\"long\",\"text\":\"{}\"}}", "x".repeat(2000));
        let content = format!(
            "{}\n\nnot json\n{}\n{}\n{}\n{}\n{}\n",
            r#"{"id":"x-coredata://A/ICNote/p12 50%","title":"T","text":"one","date":"2024-01-02","lang":"en"}"#,
            r#"{"id":7,"text":"two"}"#,
            r#"{"id":"no text"}"#,
            long,
            r#"{"text":"four words in here"}"#,
            r#"{"_id":"8","title":"No more than a title","text":""}"#,
        );
        let read = read("rows.jsonl", content.as_bytes());
        let keys: Vec<&str> = read.records.iter().map(|r| r.key.as_str()).collect();
        assert_eq!(keys, ["x-coredata://A/ICNote/p12 50%", "7", "rows.jsonl#7", "8"]);
        assert_eq!(read.records[0].fields["lang"], "en");
        assert_eq!(read.records[2].title, "four words in here");
        assert_eq!(read.records[3].text, "No more than a title");
        let lines: Vec<Option<u64>> = read.faults.iter().map(|f| f.line).collect();
        assert_eq!(lines, [Some(3), Some(5), Some(6)]);
    }

    #[test]
    fn csv_reads_quoted_cells_and_names_bad_ones() {
        let read = read(
            "rows.csv",
            b"ID,Title,Text,Topic\n1,One,\"first, with \"\"quotes\"\"\nand a line\",a\n2,,,b\n3,Three,\xff\xfe,c\n4,Four,fourth\n",
        );
        assert_eq!(read.records.len(), 2);
        assert_eq!(read.records[0].text, "first, with \"quotes\"\nand a line");
        assert_eq!(read.records[0].fields["Topic"], "a");
        assert_eq!(read.records[1].key, "4");
        assert_eq!(read.faults.len(), 2, "{:?}", read.faults);
    }

    #[test]
    fn a_quote_that_is_never_closed_costs_the_rest_and_no_more() {
        let content = format!("id,text\n1,one\n2,\"two\n{}", "3,three\n".repeat(10_000));
        let read = read("rows.csv", content.as_bytes());
        assert_eq!(read.records.len(), 1);
        assert_eq!(read.faults[0].line, Some(3));
        assert!(
            read.faults[0].problem.contains("a quote is not closed"),
            "{:?}",
            read.faults
        );
    }

    #[test]
    fn a_quote_left_open_near_the_end_is_told() {
        let read = read("rows.csv", b"id,text\n1,one\n2,\"two\n3,three\n4,four\n");
        assert_eq!(read.records.len(), 2);
        assert_eq!(read.faults[0].line, Some(3));
        assert!(read.faults[0].problem.contains("never closed"), "{:?}", read.faults);
    }

    #[test]
    fn a_column_named_twice_is_told() {
        let read = read("rows.csv", b"id,text,text\n1,first,second\n");
        assert_eq!(read.records[0].text, "second");
        assert!(read.faults[0].problem.contains("two columns `text`") && !read.faults[0].skipped);
    }

    #[test]
    fn csv_without_a_text_column_says_which_columns_it_has() {
        let read = read("rows.csv", b"id,body\n1,x\n");
        assert!(
            read.faults[0]
                .problem
                .contains("no column `text` (its columns: id, body)")
        );
    }

    #[test]
    fn cells_beyond_the_last_column_are_told() {
        let read = read("rows.csv", b"id,text\n1,one, and more\n2,two,\n");
        assert_eq!(read.records.len(), 2);
        assert_eq!(read.faults.len(), 1, "{:?}", read.faults);
        assert!(read.faults[0].problem.contains("has 3 cells for 2 columns"));
        assert!(!read.faults[0].skipped);
    }

    #[test]
    fn columns_of_other_names_are_mapped() {
        let fields: FieldMap = [("text", "Body"), ("title", "heading"), ("id", "ref"), ("date", "day")]
            .map(|(ours, theirs)| (ours.to_owned(), theirs.to_owned()))
            .into_iter()
            .collect();
        let reading = Reading {
            fields,
            ..Reading::default()
        };
        let read = read_as(
            &reading,
            "rows.csv",
            b"ref,heading,body,day,x\nR 1,T,words,2024-01-02,y\n",
        );
        assert!(read.faults.is_empty(), "{:?}", read.faults);
        let record = &read.records[0];
        assert_eq!(
            (record.key.as_str(), record.title.as_str(), record.text.as_str()),
            ("R 1", "T", "words")
        );
        assert_eq!(record.date, Some(jiff::civil::date(2024, 1, 2)));
        assert_eq!(record.fields["x"], "y");
    }
}
