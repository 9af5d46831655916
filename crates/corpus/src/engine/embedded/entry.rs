//! Makes index entries of a record: one per passage, and one for the whole of a longer document.

use std::collections::BTreeMap;

use serde_json::Value;
use tantivy::TantivyDocument;
use tantivy::schema::OwnedValue;
use tribune_core::JsonObject;

use super::schema::{Fields, MAX_FACET_BYTES, days, facet_prefix, folded};
use crate::engine::Entry;
use crate::hash;
use crate::passage::{Passage, ranked_text};

/// Fields are indexed with every passage, so only the beginning of a long value is searchable. It is stored and
/// returned in full.
const MAX_SEARCHED_VALUE_BYTES: usize = 500;
const MAX_SEARCHED_FIELDS_BYTES: usize = 8_000;

pub(super) fn entries(fields: &Fields, entry: &Entry<'_>) -> serde_json::Result<Vec<TantivyDocument>> {
    let Entry { file, record, passages } = *entry;
    let count = passages.len() as u64;
    let stored_fields = (!record.fields.is_empty())
        .then(|| serde_json::to_string(&record.fields))
        .transpose()?;
    let meta = searchable_fields(&record.fields);
    let facets = facets(&record.fields);
    let numbers = numbers(&record.fields);
    let document = hash::stable(&record.key);

    let mut entries = Vec::with_capacity(passages.len() + 1);
    for (ordinal, Passage { range, header }) in passages.iter().enumerate() {
        let passage = &record.text[range.clone()];
        let ranked = ranked_text(header, passage);
        let mut entry = TantivyDocument::new();
        entry.add_text(fields.file, file);
        entry.add_text(fields.key, &record.key);
        entry.add_u64(fields.document, document);
        entry.add_u64(fields.ordinal, ordinal as u64);
        entry.add_u64(fields.passages, count);
        entry.add_text(fields.title, &record.title);
        if let Some(url) = &record.url {
            entry.add_text(fields.url, url);
        }
        if let Some(date) = record.date {
            entry.add_i64(fields.day, days(date));
        }
        entry.add_u64(fields.content, hash::of_content(&ranked));
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
        whole.add_bytes(fields.ranges, &packed(passages));
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
    Ok(entries)
}

fn packed(passages: &[Passage]) -> Vec<u8> {
    let offset = |at: usize| u32::try_from(at).unwrap_or(u32::MAX).to_le_bytes();
    passages
        .iter()
        .flat_map(|passage| [offset(passage.range.start), offset(passage.range.end)])
        .flatten()
        .collect()
}

/// The searchable fields: every scalar as text, so that `year:2024` finds 2024 and "2024".
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

/// `name=value` of every short value, and of each item of a list.
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

/// Fields that are numbers, or text that is only a number.
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
