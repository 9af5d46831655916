//! A document's fields as text.

use jiff::civil::Date;
use serde_json::Value;
use tribune_core::JsonObject;
use tribune_core::wire::clip;

const MAX_FACTS: usize = 24;
const MAX_FACT_CHARS: usize = 280;
const MAX_LABEL_CHARS: usize = 40;
const MAX_CITED_TITLE_CHARS: usize = 200;

/// A value as text; `None` if it is empty.
pub fn text(value: &Value) -> Option<String> {
    let text = match value {
        Value::Null => return None,
        Value::Bool(yes) => if *yes { "yes" } else { "no" }.to_owned(),
        Value::Number(number) => number.to_string(),
        Value::String(text) => text.trim().to_owned(),
        Value::Array(items) => items.iter().filter_map(text_within).collect::<Vec<_>>().join(", "),
        Value::Object(fields) => {
            let named = |(name, value): (&String, &Value)| Some(format!("{}: {}", label(name), text_within(value)?));
            fields.iter().filter_map(named).collect::<Vec<_>>().join("; ")
        }
    };
    (!text.is_empty()).then(|| clip(&text, MAX_FACT_CHARS).into_owned())
}

/// Only one level of nesting fits on a line.
fn text_within(value: &Value) -> Option<String> {
    match value {
        Value::Array(items) => {
            let flat = items.iter().filter(|item| !item.is_array() && !item.is_object());
            let texts: Vec<String> = flat.filter_map(text).collect();
            (!texts.is_empty()).then(|| texts.join(", "))
        }
        Value::Object(_) => None,
        scalar => text(scalar),
    }
}

/// `source_file` as `Source file`.
fn label(name: &str) -> String {
    let spaced = name.replace(['_', '-'], " ");
    let spaced = spaced.trim();
    let mut letters = spaced.chars();
    let label = match letters.next() {
        Some(first) => first.to_uppercase().chain(letters).collect(),
        None => name.to_owned(),
    };
    clip(&label, MAX_LABEL_CHARS).into_owned()
}

/// The name and the text of the author field.
pub fn author(fields: &JsonObject) -> Option<(&'static str, String)> {
    ["speaker", "author", "authors"].into_iter().find_map(|field| Some((field, text(fields.get(field)?)?)))
}

/// `28 May 2024`
pub fn long_date(date: Date) -> String {
    date.strftime("%-d %B %Y").to_string()
}

/// A title in quotation marks, for a citation.
pub fn cited_title(title: &str) -> String {
    format!("‘{}’", clip(title, MAX_CITED_TITLE_CHARS))
}

/// `Ann Citizen, ‘Title’, Garden notes, 12 June 2019.`, without unknown parts.
pub(super) fn cite_as(fields: &JsonObject, title: &str, collection: &str, date: Option<Date>) -> String {
    let mut parts: Vec<String> = Vec::new();
    parts.extend(author(fields).map(|(_, name)| name));
    parts.push(cited_title(title));
    parts.push(collection.to_owned());
    parts.extend(date.map(long_date));
    sentence(&parts)
}

/// Joins the parts of a citation.
pub fn sentence(parts: &[String]) -> String {
    let mut sentence = parts.join(", ");
    if !sentence.ends_with('.') {
        sentence.push('.');
    }
    sentence
}

/// Every field that is not hidden and fits on a line.
pub fn facts(fields: &JsonObject, is_hidden: impl Fn(&str) -> bool) -> Vec<(String, String)> {
    fields
        .iter()
        .filter(|(name, _)| !is_hidden(name) && !name.ends_with("_as_given"))
        .filter_map(|(name, value)| Some((label(name), text(value)?)))
        .take(MAX_FACTS)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::civil::date;
    use serde_json::json;

    #[test]
    fn citation_names_author_title_collection_and_date() {
        let cite = |fields: Value| {
            let fields = fields.as_object().expect("fields");
            cite_as(fields, "On beans", "Garden notes", Some(date(2019, 6, 12)))
        };
        assert_eq!(cite(json!({})), "‘On beans’, Garden notes, 12 June 2019.");
        assert_eq!(cite(json!({"author": ["Ann", "Ben"]})), "Ann, Ben, ‘On beans’, Garden notes, 12 June 2019.");
    }

    #[test]
    fn facts_are_readable() {
        let fields = json!({
            "source_file": "x.xml", "empty": [], "nothing": null, "sample": true, "page": 17, "party": "Labor",
            "party_as_given": "ALP", "tags": ["a", "b"], "themes": {"primary": "c", "second-best": ["d", ["e"]], "deep": {"f": {}}},
            "long": "x".repeat(1_000),
        });
        let facts = facts(fields.as_object().expect("fields"), |name| name == "party");
        let facts: Vec<(&str, &str)> = facts.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        assert_eq!(
            facts[..5],
            [
                ("Source file", "x.xml"),
                ("Sample", "yes"),
                ("Page", "17"),
                ("Tags", "a, b"),
                ("Themes", "Primary: c; Second best: d"),
            ]
        );
        assert!(facts[5].0 == "Long" && facts[5].1.chars().count() <= MAX_FACT_CHARS + 1);
    }
}
