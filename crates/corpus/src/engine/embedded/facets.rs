//! Counts the values of a field.

use std::collections::{HashMap, HashSet};

use tantivy::query::{AllQuery, EnableScoring, Query};
use tribune_core::JsonObject;

use super::filter;
use super::schema::{Fields, folded};
use super::segments::Segments;
use super::visible::VisibleEntries;
use crate::engine::PassageId;
use crate::query::Filter;

/// The most values that are counted.
const MAX_FACETS: usize = 1_000;

/// A value's documents, each once however many passages it has, and one of their passages.
pub(super) struct Counted {
    pub(super) documents: HashSet<u64>,
    pub(super) passage: PassageId,
}

/// The values, folded, in documents that meet a filter and are visible.
pub(super) fn count(
    segments: &Segments,
    fields: &Fields,
    field: &str,
    filter: &Filter,
    visible: Option<&VisibleEntries>,
) -> tantivy::Result<HashMap<String, Counted>> {
    let matching = filter::query(filter, segments, fields)?.unwrap_or_else(|| Box::new(AllQuery));
    let matching = matching.weight(EnableScoring::disabled_from_searcher(&segments.searcher))?;
    let mut values: HashMap<String, Counted> = HashMap::new();
    for segment in segments.iter() {
        let mut matches: HashSet<u32> = HashSet::new();
        let is_visible = |doc: &&u32| visible.is_none_or(|visible| visible.hold(segment.number, **doc));
        matching.for_each_no_score(segment.reader, &mut |docs| matches.extend(docs.iter().filter(is_visible)))?;
        segment.each_value(fields, field, |value, info| {
            for doc in segment.entries_of(fields, info)?.filter(|doc| matches.contains(doc)) {
                if let Some(document) = segment.documents.first(doc)
                    && (values.len() < MAX_FACETS || values.contains_key(value))
                {
                    let counted = values
                        .entry(value.to_owned())
                        .or_insert_with(|| Counted { documents: HashSet::new(), passage: segment.passage(doc) });
                    counted.documents.insert(document);
                }
            }
            Ok(())
        })?;
    }
    Ok(values)
}

/// A folded value in the spelling of a document.
pub(super) fn spelling(stored: &JsonObject, field: &str, value: &str) -> Option<String> {
    let (_, given) = stored.iter().find(|(name, _)| name.eq_ignore_ascii_case(field))?;
    let given = match given {
        serde_json::Value::Array(items) => {
            let mut texts = items.iter().filter_map(|item| item.as_str());
            texts.find(|item| folded(item) == value)
        }
        single => single.as_str(),
    };
    given.map(str::to_owned)
}
