//! One published version of the index.

use std::collections::HashSet;
use std::ops::Range;
use std::path::Path;

use tantivy::collector::TopDocs;
use tantivy::columnar::Column;
use tantivy::query::MoreLikeThisQuery;
use tantivy::schema::{Field, IndexRecordOption, OwnedValue, Value};
use tantivy::tokenizer::TextAnalyzer;
use tantivy::{DocAddress, DocSet, Index, ReloadPolicy, Searcher, TERMINATED, TantivyDocument, Term};
use tribune_core::JsonObject;

use super::dense::Dense;
use super::lexical::{Planner, best_documents};
use super::schema::{ANALYZER, EnglishWords, Fields, analyzer, date_of, facet_term};
use super::{Model, address, attempt, filter, passage_id, timeline};
use crate::collection::Timeline;
use crate::engine::{
    Candidate, DatedDocument, Leg, PassageId, Ranking, Result, StoredDocument, StoredPassage, TimelineEntry, Version,
};
use crate::hash;
use crate::manifest::Manifest;
use crate::passage::Words;
use crate::query::Filter;

/// The most words used to find similar documents.
const MAX_COMPARED_WORDS: usize = 25;
/// The most entries read for one value.
const MAX_ENTRIES: usize = 100_000;

pub(super) struct EmbeddedVersion {
    pub(super) searcher: Searcher,
    pub(super) fields: Fields,
    /// [`Fields::document`] of each segment, opened once.
    pub(super) documents: Vec<Column<u64>>,
    dense: Option<Dense>,
    manifest: Manifest,
    analyzer: TextAnalyzer,
}

impl EmbeddedVersion {
    /// The last commit in `dir`; `None` if there is none.
    pub(super) fn open(source: &str, dir: &Path, model: Option<&Model>) -> tantivy::Result<Option<Self>> {
        if !dir.join("meta.json").exists() {
            return Ok(None);
        }
        let index = Index::open_in_dir(dir)?;
        index.tokenizers().register(ANALYZER, analyzer());
        let Some(name) = index.load_metas()?.payload else {
            return Ok(None);
        };
        let manifest = Manifest::load(&dir.join(name))?;
        let reader = index.reader_builder().reload_policy(ReloadPolicy::Manual).try_into()?;
        let searcher = reader.searcher();
        let column = |name: &str| {
            let segments = searcher.segment_readers().iter();
            segments
                .map(|segment| segment.fast_fields().u64(name))
                .collect::<tantivy::Result<Vec<_>>>()
        };
        let documents = column("document")?;
        let dense = match model {
            Some(model) => match model.store.open(&*model.embedder) {
                Ok(Some(vectors)) => Some(Dense::new(&searcher, &column("content")?, vectors)),
                Ok(None) => None,
                Err(error) => {
                    tracing::warn!(source, %error, "the vectors cannot be used; only keyword search works");
                    None
                }
            },
            None => None,
        };
        Ok(Some(Self {
            searcher,
            fields: Fields::new(),
            documents,
            dense,
            manifest,
            analyzer: analyzer(),
        }))
    }

    fn ranked(&self, ranking: &Ranking<'_>, legs: &[Leg<'_>]) -> tantivy::Result<Vec<Vec<Candidate>>> {
        let mut analyzer = self.analyzer.clone();
        let plan = Planner {
            searcher: &self.searcher,
            fields: &self.fields,
            analyzer: &mut analyzer,
        }
        .plan(ranking.clauses, ranking.filter)?;
        let depth = ranking.depth;
        let rank = |leg: &Leg<'_>| match (leg, &plan, &self.dense) {
            (Leg::Words, Some(plan), _) => best_documents(&self.searcher, &self.documents, &plan.query, depth),
            (Leg::Vector(vector), plan, Some(dense)) => {
                let only = plan.as_ref().and_then(|plan| plan.constraint.as_deref());
                dense.nearest(vector, depth, &self.searcher, &self.documents, only)
            }
            (Leg::Words, None, _) | (Leg::Vector(_), _, None) => Ok(Vec::new()),
        };
        legs.iter().map(rank).collect()
    }

    fn similar_by_words(&self, text: &str, depth: usize) -> tantivy::Result<Vec<Candidate>> {
        let query = MoreLikeThisQuery::builder()
            .with_min_doc_frequency(1)
            .with_min_term_frequency(1)
            .with_max_query_terms(MAX_COMPARED_WORDS)
            .with_document_fields(vec![(self.fields.body, vec![OwnedValue::Str(text.to_owned())])]);
        best_documents(&self.searcher, &self.documents, &query, depth)
    }

    /// The entry with the whole document.
    pub(super) fn record(&self, key: &str) -> tantivy::Result<Option<TantivyDocument>> {
        let address = self.record_address(key)?;
        address.map(|address| self.searcher.doc(address)).transpose()
    }

    fn record_address(&self, key: &str) -> tantivy::Result<Option<DocAddress>> {
        let term = Term::from_field_text(self.fields.record, key);
        for (segment, reader) in (0u32..).zip(self.searcher.segment_readers()) {
            let index = reader.inverted_index(self.fields.record)?;
            let Some(mut postings) = index.read_postings(&term, IndexRecordOption::Basic)? else {
                continue;
            };
            while postings.doc() != TERMINATED {
                if !reader.is_deleted(postings.doc()) {
                    return Ok(Some(DocAddress::new(segment, postings.doc())));
                }
                postings.advance();
            }
        }
        Ok(None)
    }

    /// The entries of a document's passages.
    fn passages_of(&self, key: &str) -> Vec<DocAddress> {
        let hash = hash::stable(key);
        let mut found = Vec::new();
        for (segment, (reader, column)) in (0u32..).zip(self.searcher.segment_readers().iter().zip(&self.documents)) {
            let mut docs = Vec::new();
            column.get_docids_for_value_range(hash..=hash, 0..reader.max_doc(), &mut docs);
            let alive = docs.into_iter().filter(|doc| !reader.is_deleted(*doc));
            found.extend(alive.map(|doc| DocAddress::new(segment, doc)));
        }
        found
    }

    fn stored_passage(&self, id: PassageId) -> tantivy::Result<StoredPassage> {
        let entry: TantivyDocument = self.searcher.doc(address(id))?;
        let number = |field: Field| {
            let number = entry.get_first(field).and_then(|value| value.as_u64());
            number
                .and_then(|number| usize::try_from(number).ok())
                .unwrap_or_default()
        };
        Ok(StoredPassage {
            key: stored_text(&entry, self.fields.key),
            title: stored_text(&entry, self.fields.title),
            url: stored(&entry, self.fields.url),
            text: stored_text(&entry, self.fields.passage),
            header: stored_text(&entry, self.fields.header),
            ordinal: number(self.fields.ordinal),
            count: number(self.fields.passages),
        })
    }

    fn stored_document(&self, entry: &TantivyDocument) -> StoredDocument {
        let fields = &self.fields;
        let whole = stored(entry, fields.text);
        let title = if whole.is_some() {
            fields.record_title
        } else {
            fields.title
        };
        let ranges = entry.get_first(fields.ranges);
        StoredDocument {
            file: stored_text(entry, fields.file),
            title: stored_text(entry, title),
            text: whole.unwrap_or_else(|| stored_text(entry, fields.passage)),
            url: stored(entry, fields.url),
            date: entry.get_first(fields.day).and_then(|v| v.as_i64()).and_then(date_of),
            fields: stored_fields(entry, fields.fields),
            passages: ranges.and_then(|v| v.as_bytes().map(unpacked)).unwrap_or_default(),
        }
    }

    fn with_value(&self, field: &str, value: &str) -> tantivy::Result<Vec<DatedDocument>> {
        let term = facet_term(&self.fields, field, value);
        let mut known = HashSet::new();
        let mut found = Vec::new();
        let segments = self.searcher.segment_readers().iter().zip(&self.documents);
        for (segment, (reader, documents)) in (0u32..).zip(segments) {
            let index = reader.inverted_index(self.fields.facet)?;
            let Some(mut postings) = index.read_postings(&term, IndexRecordOption::Basic)? else {
                continue;
            };
            let days = reader.fast_fields().i64("day")?;
            for _ in 0..MAX_ENTRIES {
                let doc = postings.doc();
                if doc == TERMINATED {
                    break;
                }
                if !reader.is_deleted(doc)
                    && let Some(document) = documents.first(doc)
                    && known.insert(document)
                {
                    found.push(DatedDocument {
                        document,
                        passage: passage_id(DocAddress::new(segment, doc)),
                        day: days.first(doc),
                    });
                }
                postings.advance();
            }
        }
        Ok(found)
    }

    fn sorted_keys(&self, key: &str, before: bool, most: usize) -> tantivy::Result<Vec<String>> {
        let mut found: Vec<String> = Vec::new();
        for reader in self.searcher.segment_readers() {
            let index = reader.inverted_index(self.fields.record)?;
            let range = index.terms().range();
            let mut keys = if before {
                range.lt(key).backward().into_stream()?
            } else {
                range.gt(key).into_stream()?
            };
            for _ in 0..most {
                if !keys.advance() {
                    break;
                }
                found.push(String::from_utf8_lossy(keys.key()).into_owned());
            }
        }
        found.sort_unstable();
        if before {
            found.reverse();
        }
        // A key may be in several segments, deleted in all but one.
        found.dedup();
        found.truncate(most);
        Ok(found)
    }

    fn different_contents(&self) -> tantivy::Result<Vec<(u64, PassageId)>> {
        let mut seen = HashSet::new();
        let mut needed = Vec::new();
        for (number, segment) in (0u32..).zip(self.searcher.segment_readers()) {
            let contents = segment.fast_fields().u64("content")?;
            for doc in segment.doc_ids_alive() {
                if let Some(content) = contents.first(doc)
                    && seen.insert(content)
                {
                    needed.push((content, passage_id(DocAddress::new(number, doc))));
                }
            }
        }
        Ok(needed)
    }

    fn first_match(&self, filter: &Filter) -> tantivy::Result<Option<PassageId>> {
        let Some(query) = filter::query(filter, &self.searcher, &self.fields)? else {
            return Ok(None);
        };
        let found = self.searcher.search(&query, &TopDocs::with_limit(1).order_by_score())?;
        Ok(found.first().map(|(_, address)| passage_id(*address)))
    }
}

const READING: &str = "reading the index";

impl Version for EmbeddedVersion {
    fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    fn size(&self) -> u64 {
        self.searcher.num_docs()
    }

    fn embedded(&self) -> u64 {
        self.dense.as_ref().map_or(0, |dense| dense.covered as u64)
    }

    fn ranks_by_vector(&self) -> bool {
        self.dense.as_ref().is_some_and(Dense::is_ready)
    }

    fn has_vector(&self, passage: PassageId) -> bool {
        let dense = self.dense.as_ref();
        dense.is_some_and(|dense| dense.has_vector(address(passage)))
    }

    fn words(&self) -> Box<dyn Words> {
        Box::new(EnglishWords::new(self.analyzer.clone()))
    }

    fn rank(&self, ranking: &Ranking<'_>, legs: &[Leg<'_>]) -> Result<Vec<Vec<Candidate>>> {
        attempt("searching the index", self.ranked(ranking, legs))
    }

    fn similar(&self, text: &str, depth: usize) -> Result<Vec<Candidate>> {
        attempt("searching the index", self.similar_by_words(text, depth))
    }

    fn centroid(&self, key: &str) -> Result<Option<Vec<f32>>> {
        let dense = self.dense.as_ref();
        Ok(dense.and_then(|dense| dense.mean(&self.passages_of(key))))
    }

    fn passage(&self, passage: PassageId) -> Result<StoredPassage> {
        attempt(READING, self.stored_passage(passage))
    }

    fn document(&self, key: &str) -> Result<Option<StoredDocument>> {
        let record = attempt(READING, self.record(key))?;
        Ok(record.map(|entry| self.stored_document(&entry)))
    }

    fn holds(&self, key: &str) -> Result<bool> {
        Ok(attempt(READING, self.record_address(key))?.is_some())
    }

    fn facets(&self, field: &str, filter: &Filter) -> Result<Vec<(String, u64)>> {
        attempt(READING, self.count_values(field, filter))
    }

    fn any(&self, filter: &Filter) -> Result<Option<PassageId>> {
        attempt(READING, self.first_match(filter))
    }

    fn documents_with(&self, field: &str, value: &str) -> Result<Vec<DatedDocument>> {
        attempt(READING, self.with_value(field, value))
    }

    fn timeline(&self, timeline: Timeline) -> Result<Vec<TimelineEntry>> {
        let places = timeline::places(&self.searcher, &self.documents, &self.fields, timeline);
        attempt(READING, places)
    }

    fn keys_beside(&self, key: &str, before: bool, most: usize) -> Result<Vec<String>> {
        attempt(READING, self.sorted_keys(key, before, most))
    }

    fn contents(&self) -> Result<Vec<(u64, PassageId)>> {
        attempt(READING, self.different_contents())
    }
}

pub(super) fn stored_fields(entry: &TantivyDocument, field: Field) -> JsonObject {
    stored(entry, field)
        .and_then(|json| serde_json::from_str(&json).ok())
        .unwrap_or_default()
}

pub(super) fn stored(entry: &TantivyDocument, field: Field) -> Option<String> {
    entry
        .get_first(field)
        .and_then(|value| value.as_str().map(str::to_owned))
}

pub(super) fn stored_text(entry: &TantivyDocument, field: Field) -> String {
    stored(entry, field).unwrap_or_default()
}

fn unpacked(bytes: &[u8]) -> Vec<Range<usize>> {
    let offset = |bytes: &[u8]| bytes.try_into().map_or(0, |b| u32::from_le_bytes(b) as usize);
    bytes
        .chunks_exact(8)
        .map(|pair| offset(&pair[..4])..offset(&pair[4..]))
        .collect()
}
