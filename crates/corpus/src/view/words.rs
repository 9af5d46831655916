//! What is said of a document, made only of what its file says.

use serde_json::Value;
use tribune_core::wire::clip;

use super::Subject;
use crate::speech::dates::long;

const MAX_FACTS: usize = 24;
const MAX_FACT_CHARS: usize = 280;
const MAX_LABEL_CHARS: usize = 40;
const MAX_CITED_TITLE_CHARS: usize = 200;

/// Fields that the page says elsewhere, or that say nothing to people.
const TOLD_ELSEWHERE: [&str; 14] = [
    "speaker",
    "author",
    "authors",
    "date",
    "title",
    "url",
    "party",
    "chamber",
    "electorate",
    "state",
    "role",
    "hansard_reference",
    "speech_id",
    "content_hash",
];

/// A value in words; `None` if it says nothing.
pub(super) fn text(value: &Value) -> Option<String> {
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

/// Of what is nested in a value, only what is nested no further: a line is no place for trees.
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

fn field(subject: &Subject, name: &str) -> Option<String> {
    text(subject.fields.get(name)?)
}

/// Office, party, seat and chamber of a speaker, as far as they are known and not said twice.
pub(super) fn byline_details(subject: &Subject) -> Vec<String> {
    if subject.author().is_none() {
        return Vec::new();
    }
    let mut details: Vec<String> = Vec::new();
    for name in ["role", "party", "electorate", "state", "chamber"] {
        if let Some(detail) = field(subject, name)
            && !details.iter().any(|said| said.contains(&detail))
        {
            details.push(detail);
        }
    }
    details
}

/// Where it stands on record; for what has no record, the file.
pub(super) fn reference(subject: &Subject, file: &str) -> String {
    if let Some(reference) = field(subject, "hansard_reference") {
        return reference;
    }
    let page = field(subject, "page").map(|page| format!("p. {page}"));
    let on_record: Vec<String> = [field(subject, "chamber"), page].into_iter().flatten().collect();
    if subject.is_speech && !on_record.is_empty() {
        return on_record.join(", ");
    }
    file.to_owned()
}

/// `Jane Citizen, ‘Title’, House of Representatives, 12 June 2019, Hansard p. 4.`, of what is known of it.
pub(super) fn cite_as(subject: &Subject) -> String {
    let date = subject.date.map(long);
    let on_record = field(subject, "hansard_reference");
    let record_dates = on_record
        .as_ref()
        .zip(date.as_ref())
        .is_some_and(|(record, date)| record.contains(date.as_str()));
    let mut parts: Vec<String> = Vec::new();
    parts.extend(subject.author().map(|(_, name)| name));
    parts.push(format!("‘{}’", clip(&subject.title, MAX_CITED_TITLE_CHARS)));
    match on_record {
        // It says chamber and day itself.
        Some(record) if record_dates => parts.push(record),
        Some(record) => {
            parts.extend(field(subject, "chamber"));
            parts.extend(date);
            parts.push(record);
        }
        None => {
            parts.push(field(subject, "chamber").unwrap_or_else(|| subject.collection.clone()));
            parts.extend(date);
        }
    }
    let mut citation = parts.join(", ");
    if !citation.ends_with('.') {
        citation.push('.');
    }
    citation
}

/// Everything else that the file says and a line can hold.
pub(super) fn facts(subject: &Subject) -> Vec<(String, String)> {
    let says_section = subject.fields.contains_key("section");
    let is_told = |name: &str| {
        TOLD_ELSEWHERE.contains(&name)
            || name.ends_with("_as_given")
            // The section is made of these.
            || (says_section && (name == "debate" || name.starts_with("subdebate")))
    };
    subject
        .fields
        .iter()
        .filter(|(name, _)| !is_told(name))
        .filter_map(|(name, value)| Some((label(name), text(value)?)))
        .take(MAX_FACTS)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::civil::date;
    use serde_json::json;
    use tribune_core::DocumentId;

    fn subject(fields: Value) -> Subject {
        Subject {
            id: DocumentId::parse("docs:a.md").expect("an id"),
            title: "On beans".to_owned(),
            date: Some(date(2019, 6, 12)),
            fields: fields.as_object().cloned().expect("fields"),
            collection: "Garden notes".to_owned(),
            is_speech: true,
        }
    }

    #[test]
    fn a_citation_is_made_of_what_is_known() {
        let cite = |fields| cite_as(&subject(fields));
        assert_eq!(cite(json!({})), "‘On beans’, Garden notes, 12 June 2019.");
        assert_eq!(
            cite(json!({"speaker": "Jane Citizen", "chamber": "Senate"})),
            "Jane Citizen, ‘On beans’, Senate, 12 June 2019."
        );
        assert_eq!(
            cite(
                json!({"speaker": "Jane Citizen", "chamber": "Senate", "hansard_reference": "Senate Hansard, 12 June 2019, p. 4"})
            ),
            "Jane Citizen, ‘On beans’, Senate Hansard, 12 June 2019, p. 4."
        );
        assert_eq!(
            cite(json!({"author": ["Ann", "Ben"], "chamber": "Senate", "hansard_reference": "Hansard p. 4"})),
            "Ann, Ben, ‘On beans’, Senate, 12 June 2019, Hansard p. 4."
        );
    }

    #[test]
    fn the_byline_says_nothing_twice_and_references_are_never_made_up() {
        let speech = subject(json!({
            "speaker": "Jane", "role": "Member for Banksmere", "party": "Labor", "electorate": "Banksmere", "state": "NSW",
        }));
        assert_eq!(byline_details(&speech), ["Member for Banksmere", "Labor", "NSW"]);
        assert_eq!(
            byline_details(&subject(json!({"party": "Labor"}))),
            Vec::<String>::new()
        );
        assert_eq!(reference(&speech, "a/b.md"), "a/b.md");
        let paged = subject(json!({"chamber": "Senate", "page": 4}));
        assert_eq!(reference(&paged, "x"), "Senate, p. 4");
    }

    #[test]
    fn facts_are_for_people() {
        let facts = facts(&subject(json!({
            "source_file": "x.xml", "empty": [], "nothing": null, "sample": true, "page": 17, "party": "Labor",
            "party_as_given": "ALP", "tags": ["a", "b"], "themes": {"primary": "c", "second-best": ["d", ["e"]], "deep": {"f": {}}},
            "long": "x".repeat(1_000),
        })));
        let facts: Vec<(&str, &str)> = facts
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
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
