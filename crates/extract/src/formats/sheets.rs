//! Spreadsheets: each sheet is a document. Rows below an evident header name their columns.

use std::io::Cursor;

use calamine::{Data, Range, Reader, Sheets, open_workbook_auto_from_rs};

use super::{Reading, damaged};
use crate::extracted::{Extracted, Place, Problem, Reason, Stop};

/// What a password-protected workbook of Microsoft's begins with: it is no zip archive any more.
const COMPOUND_FILE: &[u8] = &[0xd0, 0xcf, 0x11, 0xe0];
/// More rows are cut off, with a problem that says so.
const MAX_CELLS: usize = 2_000_000;

pub(super) fn read(bytes: Vec<u8>, reading: &mut Reading<'_>) -> Result<(), Stop> {
    let is_compound = bytes.starts_with(COMPOUND_FILE);
    let mut book = match open_workbook_auto_from_rs(Cursor::new(bytes)) {
        Ok(book) => book,
        Err(error) => {
            let is_locked = is_compound || error.to_string().to_lowercase().contains("password");
            let reason = if is_locked { Reason::Encrypted } else { Reason::Damaged };
            return reading.fail(Problem::new(reason, error.to_string()));
        }
    };
    let names = book.sheet_names();
    let mut is_empty = true;
    for name in &names {
        match sheet(&mut book, name) {
            Ok(Some(extracted)) => {
                is_empty = false;
                reading.give(extracted)?;
            }
            Ok(None) => {}
            Err(problem) => reading.fail(Problem { within: name.clone(), ..problem })?,
        }
    }
    if is_empty {
        reading.fail(Problem::new(Reason::NoText, "all its sheets are empty"))?;
    }
    Ok(())
}

fn sheet(book: &mut Sheets<Cursor<Vec<u8>>>, name: &str) -> Result<Option<Extracted>, Problem> {
    let range = book.worksheet_range(name).map_err(damaged)?;
    let text = text(&range);
    if text.trim().is_empty() {
        return Ok(None);
    }
    let places = vec![Place { at: 0, label: format!("sheet {name}") }];
    Ok(Some(Extracted { within: name.to_owned(), title: Some(name.to_owned()), text, places, ..Extracted::default() }))
}

fn text(range: &Range<Data>) -> String {
    let mut rows = range.rows().filter(|row| row.iter().any(|cell| *cell != Data::Empty)).peekable();
    let mut text = String::new();
    let header: Option<Vec<String>> =
        rows.peek().filter(|row| is_header(row)).map(|row| row.iter().map(cell).collect());
    if header.is_some() {
        rows.next();
    }
    let most = MAX_CELLS / range.width().max(1);
    for row in rows.take(most) {
        let cells = row.iter().enumerate().filter(|(_, value)| **value != Data::Empty);
        let shown: Vec<String> = cells
            .map(|(column, value)| match header.as_ref().and_then(|names| names.get(column)) {
                Some(name) if !name.is_empty() => format!("{name}: {}", cell(value)),
                _ => cell(value),
            })
            .collect();
        text.push_str(&shown.join(if header.is_some() { "; " } else { "\t" }));
        text.push('\n');
    }
    text
}

/// A first row of at least two different texts and nothing else.
fn is_header(row: &[Data]) -> bool {
    let mut names: Vec<&str> = Vec::new();
    for value in row {
        match value {
            Data::String(name) if !name.trim().is_empty() && !names.contains(&name.as_str()) => names.push(name),
            Data::Empty => {}
            _ => return false,
        }
    }
    names.len() >= 2
}

fn cell(value: &Data) -> String {
    match value {
        Data::DateTime(moment) if moment.is_datetime() => {
            let (year, month, day, hour, minute, second, _) = moment.to_ymd_hms_milli();
            match (hour, minute, second) {
                (0, 0, 0) => format!("{year:04}-{month:02}-{day:02}"),
                _ => format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}"),
            }
        }
        other => other.to_string().trim().replace(['\n', '\r'], " "),
    }
}
