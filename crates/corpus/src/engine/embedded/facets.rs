//! Counts the values of a field.

use std::collections::{HashMap, HashSet};

use tantivy::query::{AllQuery, EnableScoring, Query};
use tantivy::schema::IndexRecordOption;
use tantivy::{DocAddress, DocSet, TERMINATED, TantivyDocument};
use tribune_core::JsonObject;

use super::filter;
use super::schema::{facet_prefix, folded};
use super::version::{EmbeddedVersion, stored_fields, stored_text};
use crate::query::Filter;

/// The most values that are counted.
const MAX_FACETS: usize = 1_000;

impl EmbeddedVersion {
    /// Counts each document once per value, however many passages it has.
    pub(super) fn count_values(&self, field: &str, filter: &Filter) -> tantivy::Result<Vec<(String, u64)>> {
        let matching = filter::query(filter, &self.searcher, &self.fields)?.unwrap_or_else(|| Box::new(AllQuery));
        let matching = matching.weight(EnableScoring::disabled_from_searcher(&self.searcher))?;
        let prefix = facet_prefix(field);
        // By folded value: one of its passages, and the documents.
        let mut values: HashMap<String, (DocAddress, HashSet<u64>)> = HashMap::new();
        for (segment, (reader, documents)) in (0u32..).zip(self.searcher.segment_readers().iter().zip(&self.documents))
        {
            let mut matches: HashSet<u32> = HashSet::new();
            matching.for_each_no_score(reader, &mut |docs| matches.extend(docs))?;
            let index = reader.inverted_index(self.fields.facet)?;
            let mut terms = index.terms().range().ge(prefix.as_bytes()).into_stream()?;
            while terms.advance() {
                let Some(value) = terms.key().strip_prefix(prefix.as_bytes()) else {
                    break;
                };
                let value = String::from_utf8_lossy(value).into_owned();
                let mut postings = index.read_postings_from_terminfo(terms.value(), IndexRecordOption::Basic)?;
                while postings.doc() != TERMINATED {
                    let doc = postings.doc();
                    if !reader.is_deleted(doc)
                        && matches.contains(&doc)
                        && let Some(document) = documents.first(doc)
                        && (values.len() < MAX_FACETS || values.contains_key(&value))
                    {
                        let at = DocAddress::new(segment, doc);
                        let (_, held) = values.entry(value.clone()).or_insert_with(|| (at, HashSet::new()));
                        held.insert(document);
                    }
                    postings.advance();
                }
            }
        }
        let mut counted = Vec::with_capacity(values.len());
        for (value, (at, documents)) in values {
            counted.push((self.spelling(field, &value, at)?, documents.len() as u64));
        }
        counted.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        Ok(counted)
    }

    /// A folded value in the spelling of a document.
    fn spelling(&self, field: &str, value: &str, at: DocAddress) -> tantivy::Result<String> {
        let entry: TantivyDocument = self.searcher.doc(at)?;
        let fields = match self.record(&stored_text(&entry, self.fields.key))? {
            Some(record) => stored_fields(&record, self.fields.fields),
            None => JsonObject::new(),
        };
        let given = fields.iter().find(|(name, _)| name.eq_ignore_ascii_case(field));
        let spelled = given.and_then(|(_, given)| match given {
            serde_json::Value::Array(items) => items
                .iter()
                .filter_map(|item| item.as_str())
                .find(|item| folded(item) == value),
            single => single.as_str(),
        });
        Ok(spelled.unwrap_or(value).to_owned())
    }
}
