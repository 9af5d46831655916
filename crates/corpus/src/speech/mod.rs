//! Speeches in a parliament.
//!
//! - [`aliases`]: one name for what goes by several;
//! - `dates`: days as people write them;
//! - [`rules`]: a draft becomes a speech with its speaker, party, chamber and day, or is refused with the reason;
//! - `xml`: the transcript of a sitting, in the form in which the Australian parliament publishes it.

pub mod aliases;
mod dates;
pub mod rules;
pub(crate) mod xml;

pub use aliases::Aliases;
pub use rules::SpeechRules;

use serde_json::Value;

use crate::read::Record;

/// Longest part of a header: it is indexed with every passage.
const MAX_HEADER_PART_CHARS: usize = 120;

/// Who said it, when and about what, in one short line: what a passage from the middle of a speech lacks.
pub fn context_header(record: &Record) -> String {
    let text = |name: &str| record.fields.get(name).and_then(Value::as_str).unwrap_or_default();
    let day = record.date.map(dates::long).unwrap_or_default();
    let section = text("section");
    let repeats = section == record.title;
    let parts = [
        record.title.as_str(),
        text("speaker"),
        day.as_str(),
        if repeats { "" } else { section },
    ];
    let short = |part: &str| part.chars().take(MAX_HEADER_PART_CHARS).collect::<String>();
    let parts: Vec<String> = parts
        .iter()
        .filter(|part| !part.is_empty())
        .map(|part| short(part))
        .collect();
    parts.join(" · ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_header_is_one_short_line_of_what_is_known() {
        let Value::Object(fields) = json!({"speaker": "Ada Byron", "section": "Bills › Looms Bill"}) else {
            panic!("an object");
        };
        let mut record = Record {
            key: "1".into(),
            title: "Looms Bill".into(),
            text: "text".into(),
            date: Some(jiff::civil::date(2024, 5, 28)),
            url: None,
            fields,
        };
        assert_eq!(
            context_header(&record),
            "Looms Bill · Ada Byron · 28 May 2024 · Bills › Looms Bill"
        );
        record.fields.clear();
        record.date = None;
        record.title = "x".repeat(1000);
        assert_eq!(context_header(&record).len(), MAX_HEADER_PART_CHARS);
    }
}
