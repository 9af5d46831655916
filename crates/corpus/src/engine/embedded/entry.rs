//! What the entries of an index hold: one entry per passage, and one for the whole of a longer document.

use std::collections::BTreeMap;
use std::ops::Range;

use serde_json::Value as Json;
use tantivy::TantivyDocument;
use tantivy::schema::{Field, OwnedValue, Value};
use tribune_core::{JsonObject, Readers};

use super::schema::{Fields, MAX_FACET_BYTES, date_of, days, facet_prefix, folded};
use crate::engine::{Entry, IndexedDocument, StoredDocument, StoredPassage};
use crate::format::Markup;
use crate::hash;
use crate::passage::{Passage, beginning, ranked_text};

/// Fields are indexed with every passage, so only the beginning of a long value is searchable. It is stored and
/// returned in full.
const MAX_SEARCHED_VALUE_BYTES: usize = 500;
const MAX_SEARCHED_FIELDS_BYTES: usize = 8_000;

/// The entries of a record.
pub(super) fn entries(fields: &Fields, entry: &Entry<'_>) -> serde_json::Result<Vec<TantivyDocument>> {
    let Entry { file, record, passages } = *entry;
    let is_long = passages.len() > 1;
    let mut common = TantivyDocument::new();
    common.add_text(fields.file, file);
    common.add_text(fields.key, &record.key);
    common.add_text(fields.readers, record.readers.to_string());
    if let Some(url) = &record.url {
        common.add_text(fields.url, url);
    }
    if let Some(date) = record.date {
        common.add_i64(fields.day, days(date));
    }
    let mut whole = common.clone();
    whole.add_text(fields.record, &record.key);
    if !record.fields.is_empty() {
        whole.add_text(fields.fields, serde_json::to_string(&record.fields)?);
    }
    if record.markup == Markup::Markdown {
        whole.add_bool(fields.markdown, true);
    }
    if !record.places.is_empty() {
        whole.add_text(fields.places, serde_json::to_string(&record.places)?);
    }
    let mut entries = Vec::with_capacity(passages.len() + 1);
    if is_long {
        whole.add_text(fields.text, &record.text);
        whole.add_bytes(fields.ranges, &packed(passages));
        whole.add_text(fields.record_title, &record.title);
    }

    // The only passage of a document is its record too.
    let mut searched = if is_long { common } else { whole.clone() };
    searched.add_u64(fields.document, hash::stable(&record.key));
    searched.add_u64(fields.passages, passages.len() as u64);
    searched.add_text(fields.title, &record.title);
    for facet in facets(&record.fields) {
        searched.add_text(fields.facet, facet);
    }
    for (field, values) in [(fields.numbers, numbers(&record.fields)), (fields.meta, searchable_fields(&record.fields))]
    {
        if !values.is_empty() {
            searched.add_object(field, values);
        }
    }
    for (ordinal, Passage { range, header, place }) in passages.iter().enumerate() {
        let passage = &record.text[range.clone()];
        let ranked = ranked_text(header, passage);
        let mut entry = searched.clone();
        entry.add_u64(fields.ordinal, ordinal as u64);
        entry.add_u64(fields.content, hash::of_content(&ranked));
        entry.add_text(fields.body, ranked);
        entry.add_text(fields.header, header);
        if let Some(place) = place {
            entry.add_text(fields.place, place);
        }
        entry.add_text(fields.passage, passage);
        entries.push(entry);
    }
    if is_long {
        entries.push(whole);
    }
    Ok(entries)
}

pub(super) fn stored_passage(fields: &Fields, entry: &TantivyDocument) -> StoredPassage {
    let number = |field: Field| {
        let number = entry.get_first(field).and_then(|value| value.as_u64());
        number.map_or(0, |number| number as usize)
    };
    StoredPassage {
        key: text_or_empty(entry, fields.key),
        title: text_or_empty(entry, fields.title),
        url: text(entry, fields.url),
        text: text_or_empty(entry, fields.passage),
        header: text_or_empty(entry, fields.header),
        place: text(entry, fields.place),
        ordinal: number(fields.ordinal),
        count: number(fields.passages),
    }
}

pub(super) fn stored_document(fields: &Fields, entry: &TantivyDocument) -> StoredDocument {
    let whole = text(entry, fields.text);
    let title = if whole.is_some() { fields.record_title } else { fields.title };
    let ranges = entry.get_first(fields.ranges);
    StoredDocument {
        file: text_or_empty(entry, fields.file),
        title: text_or_empty(entry, title),
        text: whole.unwrap_or_else(|| text_or_empty(entry, fields.passage)),
        url: text(entry, fields.url),
        date: date(fields, entry),
        fields: json(fields, entry).unwrap_or_default(),
        passages: ranges.and_then(|v| v.as_bytes().map(unpacked)).unwrap_or_default(),
        markup: if entry.get_first(fields.markdown).is_some() { Markup::Markdown } else { Markup::Plain },
        places: text(entry, fields.places).and_then(|json| serde_json::from_str(&json).ok()).unwrap_or_default(),
    }
}

/// From any entry of a document.
pub(super) fn indexed_document(fields: &Fields, entry: &TantivyDocument) -> IndexedDocument {
    IndexedDocument {
        key: text_or_empty(entry, fields.key),
        file: text_or_empty(entry, fields.file),
        date: date(fields, entry),
        readers: Readers::read(&text_or_empty(entry, fields.readers)),
        // Only documents of one passage have their fields on the same entry.
        fields: json(fields, entry),
    }
}

fn text(entry: &TantivyDocument, field: Field) -> Option<String> {
    let value = entry.get_first(field)?;
    value.as_str().map(str::to_owned)
}

fn text_or_empty(entry: &TantivyDocument, field: Field) -> String {
    text(entry, field).unwrap_or_default()
}

fn date(fields: &Fields, entry: &TantivyDocument) -> Option<jiff::civil::Date> {
    date_of(entry.get_first(fields.day)?.as_i64()?)
}

fn json(fields: &Fields, entry: &TantivyDocument) -> Option<JsonObject> {
    serde_json::from_str(entry.get_first(fields.fields)?.as_str()?).ok()
}

fn packed(passages: &[Passage]) -> Vec<u8> {
    let offset = |at: usize| u32::try_from(at).unwrap_or(u32::MAX).to_le_bytes();
    let ranges = passages.iter().map(|passage| &passage.range);
    ranges.flat_map(|range| [offset(range.start), offset(range.end)]).flatten().collect()
}

fn unpacked(bytes: &[u8]) -> Vec<Range<usize>> {
    let (ranges, _) = bytes.as_chunks::<8>();
    let offset = |bytes: [u8; 4]| u32::from_le_bytes(bytes) as usize;
    let range = |&[a, b, c, d, e, f, g, h]: &[u8; 8]| offset([a, b, c, d])..offset([e, f, g, h]);
    ranges.iter().map(range).collect()
}

/// The searchable fields: every scalar as text, so that `year:2024` finds 2024 and "2024".
fn searchable_fields(fields: &JsonObject) -> BTreeMap<String, OwnedValue> {
    fn text(value: &Json) -> Option<OwnedValue> {
        Some(match value {
            Json::Null => return None,
            Json::String(text) => OwnedValue::Str(beginning(text, MAX_SEARCHED_VALUE_BYTES).to_owned()),
            Json::Array(items) => OwnedValue::Array(items.iter().filter_map(text).collect()),
            Json::Object(map) => {
                OwnedValue::Object(map.iter().filter_map(|(k, v)| Some((k.clone(), text(v)?))).collect())
            }
            scalar => OwnedValue::Str(scalar.to_string()),
        })
    }
    let mut bytes = 0;
    let fit = fields.iter().take_while(|(name, value)| {
        let value_bytes = value.as_str().map_or(64, |text| text.len().min(MAX_SEARCHED_VALUE_BYTES));
        bytes += name.len() + value_bytes;
        bytes <= MAX_SEARCHED_FIELDS_BYTES
    });
    fit.filter_map(|(name, value)| Some((name.clone(), text(value)?))).collect()
}

/// `name=value` of every short value, and of each item of a list.
fn facets(fields: &JsonObject) -> Vec<String> {
    let mut facets = Vec::new();
    let mut bytes = 0;
    for (name, value) in fields {
        let values = match value {
            Json::Array(items) => items.as_slice(),
            single => std::slice::from_ref(single),
        };
        for value in values {
            let text = match value {
                Json::String(text) => folded(text),
                Json::Number(_) | Json::Bool(_) => value.to_string(),
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
    let number = |value: &Json| match value {
        Json::Number(number) => number.as_f64(),
        Json::String(text) if text.len() <= 30 => text.trim().parse().ok(),
        _ => None,
    };
    fields
        .iter()
        .filter_map(|(name, value)| Some((name.clone(), number(value).filter(|n: &f64| n.is_finite())?)))
        .take(64)
        .map(|(name, number)| (name, OwnedValue::F64(number)))
        .collect()
}
