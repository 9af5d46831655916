//! Short constructors for what a board is made of: panels, columns, cells.

use crate::model::{Cell, Column, Content, Panel, Table, Tone, Width};

pub fn panel(key: &'static str, title: impl Into<String>, width: Width, content: Content) -> Panel {
    Panel { key, title: title.into(), note: None, width, content }
}

/// A panel, or the reason why it is empty.
pub fn panel_or_why(
    key: &'static str,
    title: &str,
    width: Width,
    content: Result<(Content, Option<String>), String>,
) -> Panel {
    match content {
        Ok((content, note)) => Panel { note, ..panel(key, title, width, content) },
        Err(why) => panel(key, title, width, Content::Missing(why)),
    }
}

pub fn noted(panel: Panel, note: impl Into<String>) -> Panel {
    Panel { note: Some(note.into()), ..panel }
}

/// A column of words.
pub fn words(title: impl Into<String>) -> Column {
    Column { title: title.into(), is_number: false }
}

pub fn numbers(title: impl Into<String>) -> Column {
    Column { title: title.into(), is_number: true }
}

pub fn cell(text: impl Into<String>) -> Cell {
    Cell { text: text.into(), ..Cell::default() }
}

pub fn toned(text: impl Into<String>, tone: Tone) -> Cell {
    Cell { text: text.into(), tone, ..Cell::default() }
}

pub fn table(columns: Vec<Column>, rows: Vec<Vec<Cell>>) -> Content {
    Content::Table(Table { columns, rows })
}

/// The tone of a change.
pub fn tone_of(number: Option<f64>) -> Tone {
    match number {
        Some(number) if number > 0.0 => Tone::Up,
        Some(number) if number < 0.0 => Tone::Down,
        _ => Tone::Plain,
    }
}

/// `+1.5`, `-0.2`, `0`.
pub fn signed(text: &str) -> String {
    let is_nothing = text.bytes().all(|digit| matches!(digit, b'0' | b'.'));
    if text.starts_with(['-', '+']) || is_nothing { text.to_owned() } else { format!("+{text}") }
}

#[cfg(test)]
mod tests {
    use super::signed;

    #[test]
    fn only_rising_numbers_get_a_sign() {
        assert_eq!((&*signed("1.5"), &*signed("-2"), &*signed("0.00")), ("+1.5", "-2", "0.00"));
    }
}
