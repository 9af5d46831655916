//! The context header of a passage.

use serde_json::Value;

use super::beginning;
use crate::format::Record;

const MAX_TITLE_BYTES: usize = 500;
const MAX_PART_BYTES: usize = 160;

/// The context of a passage: document, author, date and heading.
pub(super) fn header(record: &Record, passage: &str, section: Option<&str>) -> String {
    let text_of = |name: &str| record.fields.get(name).and_then(Value::as_str);
    let mut header = String::new();
    // A title made from the first words is already in the passage, and must not count twice.
    if !passage.trim_start().starts_with(record.title.trim_end_matches('…')) {
        header.push_str(beginning(&record.title, MAX_TITLE_BYTES));
    }
    let mut add = |part: &str| {
        let part = beginning(part.trim(), MAX_PART_BYTES);
        if !part.is_empty() && !header.contains(part) {
            if !header.is_empty() {
                header.push_str(". ");
            }
            header.push_str(part);
        }
    };
    if let Some(speaker) = text_of("speaker").or_else(|| text_of("author")) {
        add(speaker);
    }
    if let Some(date) = record.date {
        add(&date.strftime("%-d %B %Y").to_string());
    }
    for part in [text_of("section"), section].into_iter().flatten() {
        add(part);
    }
    header
}
