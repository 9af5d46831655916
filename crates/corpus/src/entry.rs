//! A record becomes index entries: one for each passage, under the header that says where it stands.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;
use tantivy::TantivyDocument;
use tantivy::schema::OwnedValue;
use tribune_core::JsonObject;

use crate::passage;
use crate::read::{Format, Reading, Record, sections};
use crate::schema::{Fields, MAX_FACET_BYTES, content_hash, days, document_hash, facet_prefix, folded};

/// Fields are searched with every passage, so a raw page in a column must not be: what is longer is
/// kept and returned, but only its beginning is searched.
const MAX_SEARCHED_VALUE_BYTES: usize = 500;
const MAX_SEARCHED_FIELDS_BYTES: usize = 8_000;
const MAX_SEARCHED_TITLE_BYTES: usize = 500;
const MAX_SECTION_BYTES: usize = 160;

/// All entries of a record, and how many passages it has.
pub(crate) fn entries(fields: &Fields, file: &str, record: &Record) -> serde_json::Result<(Vec<TantivyDocument>, u64)> {
    let ranges = passage::split(&record.text);
    let count = ranges.len() as u64;
    let stored_fields = (!record.fields.is_empty())
        .then(|| serde_json::to_string(&record.fields))
        .transpose()?;
    let meta = searchable_fields(&record.fields);
    let facets = facets(&record.fields);
    let numbers = numbers(&record.fields);
    let hash = document_hash(&record.key);
    let sections = match Format::of(Path::new(file), &Reading::default()) {
        Some(Format::Markdown) if count > 1 => sections(&record.text),
        _ => Vec::new(),
    };

    let mut entries = Vec::with_capacity(ranges.len() + 1);
    for (ordinal, range) in ranges.iter().enumerate() {
        let passage = &record.text[range.clone()];
        let section = sections.iter().rev().find(|section| section.at < range.start);
        let header = header(record, passage, section.map(|section| section.title.as_str()));
        let ranked = ranked(&header, passage);
        let mut entry = TantivyDocument::new();
        entry.add_text(fields.file, file);
        entry.add_text(fields.key, &record.key);
        entry.add_u64(fields.document, hash);
        entry.add_u64(fields.ordinal, ordinal as u64);
        entry.add_u64(fields.passages, count);
        entry.add_text(fields.title, &record.title);
        if let Some(url) = &record.url {
            entry.add_text(fields.url, url);
        }
        if let Some(date) = record.date {
            entry.add_i64(fields.day, days(date));
        }
        entry.add_u64(fields.content, content_hash(&ranked));
        entry.add_text(fields.body, ranked);
        entry.add_text(fields.header, header);
        entry.add_text(fields.passage, passage);
        for facet in &facets {
            entry.add_text(fields.facet, facet);
        }
        if !numbers.is_empty() {
            entry.add_object(fields.numbers, numbers.clone());
        }
        if !meta.is_empty() {
            entry.add_object(fields.meta, meta.clone());
        }
        if count == 1 {
            entry.add_text(fields.record, &record.key);
            if let Some(stored) = &stored_fields {
                entry.add_text(fields.fields, stored);
            }
        }
        entries.push(entry);
    }
    if count > 1 {
        let mut whole = TantivyDocument::new();
        whole.add_text(fields.file, file);
        whole.add_text(fields.record, &record.key);
        whole.add_text(fields.key, &record.key);
        whole.add_text(fields.text, &record.text);
        whole.add_bytes(fields.ranges, &packed(&ranges));
        whole.add_text(fields.record_title, &record.title);
        if let Some(stored) = &stored_fields {
            whole.add_text(fields.fields, stored);
        }
        if let Some(url) = &record.url {
            whole.add_text(fields.url, url);
        }
        if let Some(date) = record.date {
            whole.add_i64(fields.day, days(date));
        }
        entries.push(whole);
    }
    Ok((entries, count))
}

/// What a passage alone does not say: what it is from, who speaks, when, and under which heading.
fn header(record: &Record, passage: &str, section: Option<&str>) -> String {
    let text_of = |name: &str| record.fields.get(name).and_then(Value::as_str);
    let mut header = String::new();
    // A title that was made of the first words must not count twice where these stand anyway.
    if !passage.trim_start().starts_with(record.title.trim_end_matches('…')) {
        header.push_str(cut(&record.title, MAX_SEARCHED_TITLE_BYTES));
    }
    let mut add = |part: &str| {
        let part = cut(part.trim(), MAX_SECTION_BYTES);
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

/// The text that full text and vectors rank alike.
pub(crate) fn ranked(header: &str, passage: &str) -> String {
    if header == passage {
        // No more than a title: said twice it would count twice.
        return passage.to_owned();
    }
    format!("{header}\n{passage}")
}

fn packed(ranges: &[std::ops::Range<usize>]) -> Vec<u8> {
    let offset = |at: usize| u32::try_from(at).unwrap_or(u32::MAX).to_le_bytes();
    ranges
        .iter()
        .flat_map(|r| [offset(r.start), offset(r.end)])
        .flatten()
        .collect()
}

/// Fields as they are searched: every scalar as text, so that `year:2024` finds 2024 and "2024" alike.
fn searchable_fields(fields: &JsonObject) -> BTreeMap<String, OwnedValue> {
    fn text(value: &Value) -> Option<OwnedValue> {
        Some(match value {
            Value::Null => return None,
            Value::String(text) => OwnedValue::Str(cut(text, MAX_SEARCHED_VALUE_BYTES).to_owned()),
            Value::Array(items) => OwnedValue::Array(items.iter().filter_map(text).collect()),
            Value::Object(map) => {
                OwnedValue::Object(map.iter().filter_map(|(k, v)| Some((k.clone(), text(v)?))).collect())
            }
            scalar => OwnedValue::Str(scalar.to_string()),
        })
    }
    let mut bytes = 0;
    fields
        .iter()
        .take_while(|(name, value)| {
            bytes += name.len()
                + value
                    .as_str()
                    .map_or(64, |text| text.len().min(MAX_SEARCHED_VALUE_BYTES));
            bytes <= MAX_SEARCHED_FIELDS_BYTES
        })
        .filter_map(|(name, value)| Some((name.clone(), text(value)?)))
        .collect()
}

/// `name=value` of every short value, those of lists each.
fn facets(fields: &JsonObject) -> Vec<String> {
    let mut facets = Vec::new();
    let mut bytes = 0;
    for (name, value) in fields {
        let values = match value {
            Value::Array(items) => items.as_slice(),
            single => std::slice::from_ref(single),
        };
        for value in values {
            let text = match value {
                Value::String(text) => folded(text),
                Value::Number(_) | Value::Bool(_) => value.to_string(),
                _ => continue,
            };
            if text.is_empty() || text.len() > MAX_FACET_BYTES {
                continue;
            }
            bytes += name.len() + text.len();
            if bytes > MAX_SEARCHED_FIELDS_BYTES {
                return facets;
            }
            facets.push(facet_prefix(name) + &text);
        }
    }
    facets
}

/// Fields that are numbers, or text that is nothing but a number.
fn numbers(fields: &JsonObject) -> BTreeMap<String, OwnedValue> {
    let number = |value: &Value| match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) if text.len() <= 30 => text.trim().parse().ok(),
        _ => None,
    };
    fields
        .iter()
        .filter_map(|(name, value)| Some((name.clone(), number(value).filter(|n: &f64| n.is_finite())?)))
        .take(64)
        .map(|(name, number)| (name, OwnedValue::F64(number)))
        .collect()
}

/// The beginning of a text, at a character boundary.
fn cut(text: &str, max_bytes: usize) -> &str {
    &text[..text.floor_char_boundary(max_bytes)]
}
