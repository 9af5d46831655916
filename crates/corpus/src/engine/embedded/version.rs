//! One published version of the index.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use quick_cache::sync::Cache;
use tantivy::query::{EnableScoring, MoreLikeThisQuery, Query};
use tantivy::schema::OwnedValue;
use tantivy::{DocAddress, Index, ReloadPolicy, TantivyDocument, Term};

use super::dense::Dense;
use super::lexical::{best_documents, plan};
use super::schema::{ANALYZER, EnglishWords, Fields, analyzer, facet_term};
use super::segments::{Segments, entries_with};
use super::visible::VisibleEntries;
use super::{Model, address, entry, facets, filter, timeline};
use crate::collection::Timeline;
use crate::engine::{
    Candidate, DatedDocument, Leg, PassageId, Ranking, Result, StoredDocument, StoredPassage, TimelineEntry, Version,
    Visible,
};
use crate::hash;
use crate::manifest::Manifest;
use crate::passage::Words;
use crate::query::Filter;

/// The most words used to find similar documents.
const MAX_COMPARED_WORDS: usize = 25;
/// The most entries read for one value.
const MAX_ENTRIES: usize = 100_000;
/// The most keys looked at for the next visible one.
const MAX_KEYS: usize = 10_000;
/// What callers may see is found once for those who may see the same. A bit an entry.
const CACHED_VISIBLE: usize = 100;

pub(super) struct EmbeddedVersion {
    segments: Segments,
    fields: Fields,
    dense: Option<Dense>,
    manifest: Manifest,
    words: EnglishWords,
    visible: Cache<Arc<[String]>, Arc<VisibleEntries>>,
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
        let segments = Segments::open(reader.searcher())?;
        let vectors = model.and_then(|model| {
            model.store.open(&*model.embedder).unwrap_or_else(|error| {
                tracing::warn!(source, %error, "the vectors cannot be used; only keyword search works");
                None
            })
        });
        let dense = vectors.map(|vectors| Dense::new(&segments, vectors)).transpose()?;
        Ok(Some(Self {
            segments,
            fields: Fields::new(),
            dense,
            manifest,
            words: EnglishWords::default(),
            visible: Cache::new(CACHED_VISIBLE),
        }))
    }

    /// `None` if all are.
    fn visible(&self, visible: &Visible) -> tantivy::Result<Option<Arc<VisibleEntries>>> {
        let Visible::Only(readers) = visible else {
            return Ok(None);
        };
        if let Some(entries) = self.visible.get(readers) {
            return Ok(Some(entries));
        }
        let entries = Arc::new(VisibleEntries::new(&self.segments, &self.fields, readers)?);
        self.visible.insert(readers.clone(), entries.clone());
        Ok(Some(entries))
    }

    /// The entry with the whole document, if it is visible.
    fn record(&self, key: &str, visible: &Visible) -> tantivy::Result<Option<DocAddress>> {
        let visible = self.visible(visible)?;
        let term = Term::from_field_text(self.fields.record, key);
        for segment in self.segments.iter() {
            if let Some(doc) = entries_with(segment.reader, &term)?.next() {
                let is_visible = visible.is_none_or(|visible| visible.hold(segment.number, doc));
                return Ok(is_visible.then(|| DocAddress::new(segment.number, doc)));
            }
        }
        Ok(None)
    }
}

impl Version for EmbeddedVersion {
    fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    fn size(&self) -> u64 {
        self.segments.searcher.num_docs()
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
        Box::new(self.words.clone())
    }

    fn rank(&self, ranking: &Ranking<'_>, legs: &[Leg<'_>]) -> Result<Vec<Vec<Candidate>>> {
        let plan = plan(&self.segments, &self.fields, ranking)?;
        let visible = self.visible(ranking.visible)?;
        let visible = visible.as_deref();
        let rank = |leg: &Leg<'_>| match (leg, &plan, &self.dense) {
            (Leg::Words, Some(plan), _) => plan.best_documents(&self.segments, visible, ranking.depth),
            (Leg::Vector(vector), plan, Some(dense)) => {
                let only = plan.as_ref().and_then(|plan| plan.constraint.as_deref());
                dense.nearest(vector, ranking.depth, &self.segments, only, visible)
            }
            (Leg::Words, None, _) | (Leg::Vector(_), _, None) => Ok(Vec::new()),
        };
        Ok(legs.iter().map(rank).collect::<tantivy::Result<_>>()?)
    }

    fn similar(&self, text: &str, visible: &Visible, depth: usize) -> Result<Vec<Candidate>> {
        let query = MoreLikeThisQuery::builder()
            .with_min_doc_frequency(1)
            .with_min_term_frequency(1)
            .with_max_query_terms(MAX_COMPARED_WORDS)
            .with_document_fields(vec![(self.fields.body, vec![OwnedValue::Str(text.to_owned())])]);
        let visible = self.visible(visible)?;
        Ok(best_documents(&self.segments, &query, visible.as_deref(), depth)?)
    }

    fn centroid(&self, key: &str) -> Result<Option<Vec<f32>>> {
        let hash = hash::stable(key);
        let passages = self.segments.iter().flat_map(|segment| {
            let mut docs = Vec::new();
            let entries = 0..segment.reader.max_doc();
            segment.documents.get_docids_for_value_range(hash..=hash, entries, &mut docs);
            docs.retain(|doc| !segment.reader.is_deleted(*doc));
            docs.into_iter().map(move |doc| DocAddress::new(segment.number, doc))
        });
        Ok(self.dense.as_ref().and_then(|dense| dense.mean(passages)))
    }

    fn passage(&self, passage: PassageId) -> Result<StoredPassage> {
        let stored: TantivyDocument = self.segments.searcher.doc(address(passage))?;
        Ok(entry::stored_passage(&self.fields, &stored))
    }

    fn document(&self, key: &str, visible: &Visible) -> Result<Option<StoredDocument>> {
        let Some(address) = self.record(key, visible)? else {
            return Ok(None);
        };
        let stored: TantivyDocument = self.segments.searcher.doc(address)?;
        Ok(Some(entry::stored_document(&self.fields, &stored)))
    }

    fn holds(&self, key: &str, visible: &Visible) -> Result<bool> {
        Ok(self.record(key, visible)?.is_some())
    }

    fn shows(&self, passage: PassageId, visible: &Visible) -> Result<bool> {
        let (visible, entry) = (self.visible(visible)?, address(passage));
        Ok(visible.is_none_or(|visible| visible.hold(entry.segment_ord, entry.doc_id)))
    }

    fn facets(&self, field: &str, filter: &Filter, visible: &Visible) -> Result<Vec<(String, u64)>> {
        let entries = self.visible(visible)?;
        let mut values = Vec::new();
        for (value, counted) in facets::count(&self.segments, &self.fields, field, filter, entries.as_deref())? {
            let document = self.document(&self.passage(counted.passage)?.key, visible)?;
            let spelled = document.and_then(|document| facets::spelling(&document.fields, field, &value));
            values.push((spelled.unwrap_or(value), counted.documents.len() as u64));
        }
        values.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        Ok(values)
    }

    fn any(&self, filter: &Filter, visible: &Visible) -> Result<Option<PassageId>> {
        let Some(query) = filter::query(filter, &self.segments, &self.fields)? else {
            return Ok(None);
        };
        let visible = self.visible(visible)?;
        let weight = query.weight(EnableScoring::disabled_from_searcher(&self.segments.searcher))?;
        for segment in self.segments.iter() {
            let mut found = None;
            weight.for_each_no_score(segment.reader, &mut |docs| {
                let is_visible = |doc: &u32| {
                    let is_passage = segment.documents.first(*doc).is_some() && !segment.reader.is_deleted(*doc);
                    is_passage && visible.as_ref().is_none_or(|visible| visible.hold(segment.number, *doc))
                };
                found = found.or_else(|| docs.iter().copied().find(is_visible));
            })?;
            if let Some(doc) = found {
                return Ok(Some(segment.passage(doc)));
            }
        }
        Ok(None)
    }

    fn documents_with(&self, field: &str, value: &str, visible: &Visible) -> Result<Vec<DatedDocument>> {
        let visible = self.visible(visible)?;
        let term = facet_term(&self.fields, field, value);
        let mut known = HashSet::new();
        let mut found = Vec::new();
        for segment in self.segments.iter() {
            let days = segment.reader.fast_fields().i64("day")?;
            let is_visible = |doc: &u32| visible.as_ref().is_none_or(|visible| visible.hold(segment.number, *doc));
            for doc in entries_with(segment.reader, &term)?.filter(is_visible).take(MAX_ENTRIES) {
                if let Some(document) = segment.documents.first(doc)
                    && known.insert(document)
                {
                    found.push(DatedDocument { document, passage: segment.passage(doc), day: days.first(doc) });
                }
            }
        }
        Ok(found)
    }

    fn timeline(&self, timeline: Timeline) -> Result<Vec<TimelineEntry>> {
        Ok(timeline::entries(&self.segments, &self.fields, timeline)?)
    }

    fn keys_beside(&self, key: &str, before: bool, most: usize, visible: &Visible) -> Result<Vec<String>> {
        let mut found: Vec<String> = Vec::new();
        for segment in self.segments.iter() {
            let index = segment.reader.inverted_index(self.fields.record)?;
            let range = index.terms().range();
            let mut keys =
                if before { range.lt(key).backward().into_stream()? } else { range.gt(key).into_stream()? };
            let enough = found.len() + most;
            for _ in 0..MAX_KEYS {
                if found.len() == enough || !keys.advance() {
                    break;
                }
                let key = String::from_utf8_lossy(keys.key());
                if *visible == Visible::All || self.holds(&key, visible)? {
                    found.push(key.into_owned());
                }
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

    fn contents(&self) -> Result<Vec<(u64, PassageId)>> {
        let mut seen = HashSet::new();
        let mut needed = Vec::new();
        for segment in self.segments.iter() {
            let contents = segment.reader.fast_fields().u64("content")?;
            for doc in segment.reader.doc_ids_alive() {
                if let Some(content) = contents.first(doc)
                    && seen.insert(content)
                {
                    needed.push((content, segment.passage(doc)));
                }
            }
        }
        Ok(needed)
    }
}
