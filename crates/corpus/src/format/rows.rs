//! JSONL and CSV: one document per row. Rows are streamed, so a file may have any size.

use std::cell::Cell;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use serde_json::Value;
use tribune_core::JsonObject;

use super::{Draft, Input, READERS, Sink, Stop, WAS_WINDOWS_1252, too_large, windows_1252};

pub(super) fn read_jsonl(input: &Input<'_>, sink: &mut dyn Sink) -> Result<(), Stop> {
    let Some(file) = open(input, sink) else {
        return Ok(());
    };
    let mut reader = BufReader::with_capacity(256 * 1024, file);
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
            match reader.skip_until(b'\n') {
                Ok(_) => continue,
                Err(_) => break,
            }
        }
        let bytes = row.strip_prefix("\u{feff}".as_bytes()).unwrap_or(&row);
        if bytes.trim_ascii().is_empty() {
            continue;
        }
        json_row(input, number, bytes, sink)?;
    }
    Ok(())
}

fn json_row(input: &Input<'_>, number: u64, bytes: &[u8], sink: &mut dyn Sink) -> Result<(), Stop> {
    let mut warnings = Vec::new();
    let parsed = if input.reading.rules.assumes_windows_1252() && std::str::from_utf8(bytes).is_err() {
        warnings.push(WAS_WINDOWS_1252.to_owned());
        serde_json::from_str::<Value>(&windows_1252(bytes))
    } else {
        serde_json::from_slice::<Value>(bytes)
    };
    let problem = match parsed {
        Ok(Value::Object(fields)) => {
            let draft = draft(input.relative, number, fields);
            return input.give(Some(number), draft, warnings, sink);
        }
        Ok(_) => "is not a JSON object".to_owned(),
        Err(error) => format!("is not valid JSON ({error})"),
    };
    sink.fault(Some(number), true, problem);
    Ok(())
}

fn draft(relative: &str, number: u64, fields: JsonObject) -> Draft {
    Draft { place: format!("{relative}#{number}"), fields, is_row: true, ..Draft::default() }
}

fn open(input: &Input<'_>, sink: &mut dyn Sink) -> Option<File> {
    let opened = File::open(input.path);
    opened.inspect_err(|error| sink.fault(None, true, format!("cannot be opened: {error}"))).ok()
}

pub(super) fn read_csv(input: &Input<'_>, sink: &mut dyn Sink) -> Result<(), Stop> {
    let Some(file) = open(input, sink) else {
        return Ok(());
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

/// Whether the quotes from `byte` to the end of the file are unbalanced.
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

/// Whether there is a text column, with warnings about the header.
fn check_columns(input: &Input<'_>, names: &[String], sink: &mut dyn Sink) -> bool {
    let text = input.reading.fields.theirs("text").unwrap_or("text");
    if !names.iter().any(|name| name.eq_ignore_ascii_case(text)) {
        let found = names.join(", ");
        let problem = format!(
            "has no column `{text}` (its columns: {found}); say which one is the text with `fields = {{ text = … }}`"
        );
        sink.fault(None, true, problem);
        return false;
    }
    for (at, name) in names.iter().enumerate() {
        if names[..at].contains(name) {
            sink.fault(None, false, format!("has two columns `{name}`; the last one counts"));
        }
    }
    true
}

/// A warning about cells without a column, mostly because of an unquoted comma.
fn surplus(names: &[String], row: &csv::ByteRecord) -> Option<String> {
    let is_lost = row.iter().skip(names.len()).any(|cell| !cell.trim_ascii().is_empty());
    is_lost.then(|| {
        format!(
            "has {} cells for {} columns; the extra cells are ignored. Put quotes around a cell that contains a comma",
            row.len(),
            names.len()
        )
    })
}

/// Limits the bytes of one row: an unclosed quote would otherwise make one row of the rest of the file, in memory.
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

/// Known names are recognised in any case; others stay as they are.
fn column_names(header: &csv::ByteRecord) -> Vec<String> {
    header
        .iter()
        .map(|name| {
            let name = String::from_utf8_lossy(name);
            let name = name.trim_start_matches('\u{feff}').trim();
            let lower = name.to_ascii_lowercase();
            match lower.as_str() {
                "id" | "_id" | "title" | "text" | "date" | "url" | READERS => lower,
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
            Err(_) if input.reading.rules.assumes_windows_1252() => {
                was_windows_1252 = true;
                windows_1252(cell)
            }
            Err(_) => return Err(format!("`{name}` is not UTF-8")),
        };
        if !cell.is_empty() || name == "text" {
            fields.insert(name.clone(), Value::from(cell));
        }
    }
    // A row that ends too early does not say who may see it.
    if names.iter().skip(row.len()).any(|name| input.reading.fields.mention_readers(name)) {
        fields.insert(READERS.to_owned(), Value::Null);
    }
    if was_windows_1252 {
        warnings.push(WAS_WINDOWS_1252.to_owned());
    }
    Ok(fields)
}

#[cfg(test)]
mod tests;
