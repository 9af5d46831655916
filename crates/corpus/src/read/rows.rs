//! JSONL and CSV: one document a row. Rows are streamed, so a file may be of any size.

use std::cell::Cell;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use serde_json::Value;
use tribune_core::JsonObject;

use super::{Record, Sink, date, title_from_text, too_large, web_address};

pub(super) fn jsonl<S: Sink>(path: &Path, relative: &str, max_row_bytes: u64, sink: &mut S) -> Result<(), S::Error> {
    let mut reader = match File::open(path) {
        Ok(file) => BufReader::with_capacity(256 * 1024, file),
        Err(error) => {
            sink.fault(None, true, format!("cannot be opened: {error}"));
            return Ok(());
        }
    };
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
        match serde_json::from_slice::<Value>(bytes) {
            Ok(Value::Object(fields)) => match record(fields, || format!("{relative}#{number}")) {
                Ok(record) => sink.record(Some(number), record)?,
                Err(problem) => sink.fault(Some(number), true, problem),
            },
            Ok(_) => sink.fault(Some(number), true, "is not a JSON object".to_owned()),
            Err(error) => sink.fault(Some(number), true, format!("is not valid JSON ({error})")),
        }
    }
    Ok(())
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

pub(super) fn csv<S: Sink>(path: &Path, relative: &str, max_row_bytes: u64, sink: &mut S) -> Result<(), S::Error> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) => {
            sink.fault(None, true, format!("cannot be opened: {error}"));
            return Ok(());
        }
    };
    let left = Cell::new(max_row_bytes);
    let bounded = Bounded { file, left: &left };
    let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(bounded);
    let names = match reader.byte_headers() {
        Ok(header) => column_names(header),
        Err(error) => {
            sink.fault(None, true, format!("has no readable header row: {error}"));
            return Ok(());
        }
    };
    if !names.iter().any(|name| name == "text") {
        let found = names.join(", ");
        sink.fault(None, true, format!("has no column `text` (its columns: {found})"));
        return Ok(());
    }
    for (at, name) in names.iter().enumerate() {
        if names[..at].contains(name) {
            sink.fault(None, false, format!("has two columns `{name}`; the last one counts"));
        }
    }
    let mut row = csv::ByteRecord::new();
    loop {
        let line = reader.position().line();
        left.set(max_row_bytes);
        match reader.read_byte_record(&mut row) {
            Ok(true) => {}
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
        match fields(&names, &row).and_then(|f| record(f, || format!("{relative}#{line}"))) {
            Ok(record) => sink.record(Some(line), record)?,
            Err(problem) => sink.fault(Some(line), true, problem),
        }
    }
    Ok(())
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

fn fields(names: &[String], row: &csv::ByteRecord) -> Result<JsonObject, String> {
    let mut fields = JsonObject::new();
    for (name, cell) in names.iter().zip(row) {
        let cell = std::str::from_utf8(cell).map_err(|_| format!("`{name}` is not UTF-8"))?;
        if !cell.is_empty() || name == "text" {
            fields.insert(name.clone(), Value::from(cell));
        }
    }
    Ok(fields)
}

/// A row's fields as a record; `place` names a row that brings no id.
fn record(mut fields: JsonObject, place: impl FnOnce() -> String) -> Result<Record, String> {
    let text = match fields.shift_remove("text") {
        Some(Value::String(text)) => text,
        Some(_) => return Err("`text` is not a string".to_owned()),
        None => return Err("has no `text`".to_owned()),
    };
    let key = match fields.shift_remove("id").or_else(|| fields.shift_remove("_id")) {
        Some(Value::String(id)) if !id.is_empty() => id,
        Some(Value::Number(id)) => id.to_string(),
        Some(Value::Null | Value::String(_)) | None => place(),
        Some(_) => return Err("`id` is neither a string nor a number".to_owned()),
    };
    let title = match fields.shift_remove("title") {
        Some(Value::String(title)) if !title.trim().is_empty() => Some(title),
        Some(Value::Number(title)) => Some(title.to_string()),
        _ => None,
    };
    let (title, text) = match title {
        // Some documents are no more than their title, and are looked for all the same.
        Some(title) if text.trim().is_empty() => (title.clone(), title),
        Some(title) => (title, text),
        None if text.trim().is_empty() => return Err("`text` is empty, and there is no `title`".to_owned()),
        None => (title_from_text(&text), text),
    };
    let text_of = |name: &str| fields.get(name).and_then(Value::as_str);
    let date = text_of("date").and_then(date);
    let url = text_of("url").and_then(web_address);
    Ok(Record {
        key,
        title,
        text,
        date,
        url,
        fields,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::{Fault, Format, read_file};

    #[derive(Default)]
    struct Collected {
        records: Vec<Record>,
        faults: Vec<Fault>,
    }

    impl Sink for Collected {
        type Error = std::convert::Infallible;
        fn record(&mut self, _: Option<u64>, record: Record) -> Result<(), Self::Error> {
            self.records.push(record);
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
        let dir = tempfile::tempdir().expect("dir");
        let path = dir.path().join(name);
        std::fs::write(&path, content).expect("write");
        let mut collected = Collected::default();
        let format = Format::of(&path).expect("a known format");
        let Ok(()) = read_file(&path, name, format, 1024, &mut collected);
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
}
