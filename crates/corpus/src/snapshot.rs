//! One published version of an index, with caches. Readers share it; a new commit makes a new one.

use std::sync::{Arc, OnceLock};

use jiff::Timestamp;
use quick_cache::sync::Cache;
use tribune_core::{Document, DocumentId, Hit, JsonObject};

use crate::collection::Settings;
use crate::engine::{EngineError, PassageId, Result, StoredDocument, TimelineEntry, Version};
use crate::manifest::Manifest;
use crate::passage::{Quotable, Words, stems};
use crate::query::{Condition, Filter};

/// Size of the cache of decoded passages.
const CACHE_BYTES: u64 = 24 * 1024 * 1024;
/// Cached answers: models repeat queries in retries, follow-ups and parallel conversations.
const CACHED_ANSWERS: usize = 1000;

/// A passage as a search shows it.
pub(crate) struct QuotablePassage {
    pub(crate) id: DocumentId,
    pub(crate) title: String,
    pub(crate) title_stems: Vec<u32>,
    pub(crate) url: Option<String>,
    pub(crate) text: Quotable,
    /// `None` for the only passage of a document.
    pub(crate) ordinal: Option<usize>,
}

impl QuotablePassage {
    pub(crate) fn hit(&self, snippet: String, score: f32, coverage: f32) -> Hit {
        Hit {
            id: self.id.clone(),
            title: self.title.clone(),
            snippet,
            url: self.url.clone(),
            passage: self.ordinal,
            score,
            coverage,
            metadata: None,
        }
    }
}

#[derive(Clone)]
struct PassageBytes;

impl quick_cache::Weighter<PassageId, Arc<QuotablePassage>> for PassageBytes {
    fn weight(&self, _: &PassageId, passage: &Arc<QuotablePassage>) -> u64 {
        (passage.text.bytes() + passage.title.len() + 256) as u64
    }
}

pub struct Snapshot {
    pub(crate) settings: Arc<Settings>,
    pub(crate) version: Arc<dyn Version>,
    /// When the version was committed.
    pub(crate) committed: Option<Timestamp>,
    /// Grows with every version of the index, but not when only vectors were added.
    pub(crate) generation: u64,
    field_names: Vec<String>,
    passages: Cache<PassageId, Arc<QuotablePassage>, PassageBytes>,
    /// Hits by query and limit.
    answers: Cache<(String, usize), Arc<[Hit]>>,
    /// The order of dated documents, computed on first use.
    pub(crate) timeline: OnceLock<Vec<TimelineEntry>>,
}

impl Snapshot {
    pub(crate) fn new(
        settings: Arc<Settings>,
        version: Arc<dyn Version>,
        committed: Option<Timestamp>,
        generation: u64,
    ) -> Self {
        Self {
            settings,
            field_names: version.manifest().fields(),
            version,
            committed,
            generation,
            passages: Cache::with_weighter(10_000, CACHE_BYTES, PassageBytes),
            answers: Cache::new(CACHED_ANSWERS),
            timeline: OnceLock::new(),
        }
    }

    /// Whether a search is faster than a switch to another thread.
    pub fn is_small(&self) -> bool {
        const SMALL: u64 = 2_000;
        self.version.size() <= SMALL && self.version.embedded() == 0
    }

    pub fn manifest(&self) -> &Manifest {
        self.version.manifest()
    }

    /// The number of passages, and of those with a vector.
    pub fn coverage(&self) -> (u64, u64) {
        (self.manifest().passages(), self.version.embedded())
    }

    /// The cached answer to a query.
    pub fn cached(&self, text: &str, limit: usize) -> Option<Arc<[Hit]>> {
        self.answers.get(&(text.to_owned(), limit))
    }

    pub(crate) fn cache(&self, text: &str, limit: usize, hits: &Arc<[Hit]>) {
        self.answers.insert((text.to_owned(), limit), hits.clone());
    }

    pub fn fetch(&self, key: &str) -> Result<Option<Document>> {
        let stored = self.version.document(key)?;
        stored.map(|stored| self.document(key, stored)).transpose()
    }

    pub(crate) fn document(&self, key: &str, stored: StoredDocument) -> Result<Document> {
        let midnight = |date: jiff::civil::Date| date.to_zoned(jiff::tz::TimeZone::UTC).ok().map(|day| day.timestamp());
        Ok(Document {
            id: self.id(key)?,
            title: stored.title,
            text: stored.text,
            url: stored.url,
            as_of: stored.date.and_then(midnight),
            metadata: stored.fields,
            passages: stored.passages,
        })
    }

    fn id(&self, key: &str) -> Result<DocumentId> {
        DocumentId::new(&self.settings.name, key)
            .map_err(|cause| EngineError::Failed { doing: "reading an id from the index", cause: Box::new(cause) })
    }

    pub fn holds(&self, key: &str) -> Result<bool> {
        self.version.holds(key)
    }

    /// All fields of a document.
    pub fn metadata(&self, key: &str) -> Result<JsonObject> {
        let stored = self.version.document(key)?;
        Ok(stored.map(|stored| stored.fields).unwrap_or_default())
    }

    /// The key of a document that meets a condition, and its provider's key.
    pub fn holder(&self, condition: Condition) -> Result<Option<(String, String)>> {
        let Some(passage) = self.version.any(&Filter(vec![condition]))? else {
            return Ok(None);
        };
        let key = self.version.passage(passage)?.key;
        Ok(self.file_of(&key)?.map(|file| (key, file)))
    }

    /// The provider's key of a document.
    pub fn file_of(&self, key: &str) -> Result<Option<String>> {
        Ok(self.version.document(key)?.map(|stored| stored.file))
    }

    /// The corpus's spelling of a field, also of a nested one (`speaker.name`).
    pub(crate) fn field_name(&self, name: &str) -> Option<String> {
        if name.eq_ignore_ascii_case("title") {
            return Some("title".to_owned());
        }
        let spelled = |name: &str| self.field_names.iter().find(|field| field.eq_ignore_ascii_case(name));
        if let Some(field) = spelled(name) {
            return Some(field.replace('.', "\\."));
        }
        let (first, rest) = name.split_once('.')?;
        spelled(first).map(|field| format!("{}.{rest}", field.replace('.', "\\.")))
    }

    pub(crate) fn passage(&self, id: PassageId, words: &mut dyn Words) -> Result<Arc<QuotablePassage>> {
        if let Some(passage) = self.passages.get(&id) {
            return Ok(passage);
        }
        let stored = self.version.passage(id)?;
        let passage = Arc::new(QuotablePassage {
            id: self.id(&stored.key)?,
            title_stems: stems(&stored.title, words),
            title: stored.title,
            url: stored.url,
            text: Quotable::new(&stored.text, words),
            ordinal: (stored.count > 1).then_some(stored.ordinal),
        });
        self.passages.insert(id, passage.clone());
        Ok(passage)
    }
}
