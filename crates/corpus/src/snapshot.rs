//! One published version of an index, with caches, and what a caller sees of it. A new commit makes a new one.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use jiff::Timestamp;
use quick_cache::sync::Cache;
use tribune_core::{CallContext, Document, DocumentId, Hit, JsonObject, Principal, Readers, UserId};

use crate::collection::Settings;
use crate::engine::{EngineError, PassageId, Result, StoredDocument, TimelineEntry, Version, Visible};
use crate::manifest::{Held, Manifest, field_names};
use crate::passage::{Quotable, Words, stems};
use crate::query::{Condition, Filter};

/// Size of the cache of decoded passages.
const CACHE_BYTES: u64 = 24 * 1024 * 1024;
/// Cached answers: models repeat queries in retries, follow-ups and parallel conversations.
const CACHED_ANSWERS: usize = 1000;
/// Callers whose permissions are kept.
const CACHED_SIGHTS: usize = 1000;

/// A passage as a search shows it.
pub(crate) struct QuotablePassage {
    pub(crate) id: DocumentId,
    pub(crate) title: String,
    pub(crate) title_stems: Vec<u32>,
    pub(crate) url: Option<String>,
    pub(crate) text: Quotable,
    /// `None` for the only passage of a document.
    pub(crate) ordinal: Option<usize>,
    /// The page, slide or chapter that it begins in.
    pub(crate) place: Option<String>,
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
            metadata: self.place.clone().map(|place| JsonObject::from_iter([("place".to_owned(), place.into())])),
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

/// A version with its caches, for all callers.
pub struct Published {
    pub(crate) settings: Arc<Settings>,
    pub(crate) version: Arc<dyn Version>,
    /// When the version was committed.
    committed: Option<Timestamp>,
    /// Grows with every version of the index, but not when only vectors were added.
    pub(crate) generation: u64,
    /// The documents by their readers.
    held: BTreeMap<Readers, Held>,
    /// Whether everybody may see everything.
    is_public: bool,
    everything: Arc<Sight>,
    /// What callers may see, by user and groups.
    sights: Cache<Caller, Arc<Sight>>,
    passages: Cache<PassageId, Arc<QuotablePassage>, PassageBytes>,
    /// Hits by query and limit, for those who may see the same.
    answers: Cache<(Visible, String, usize), Arc<[Hit]>>,
    /// The order of dated documents, computed on first use.
    pub(crate) timeline: OnceLock<Vec<TimelineEntry>>,
}

/// A user, if known, and their groups.
type Caller = (Option<UserId>, Arc<[String]>);

/// What a caller may see of a version.
struct Sight {
    visible: Visible,
    field_names: Vec<String>,
}

impl Published {
    pub(crate) fn new(
        settings: Arc<Settings>,
        version: Arc<dyn Version>,
        committed: Option<Timestamp>,
        generation: u64,
    ) -> Self {
        let held = version.manifest().held();
        let everything = Sight { visible: Visible::All, field_names: field_names(held.values()) };
        Self {
            settings,
            version,
            committed,
            generation,
            is_public: held.keys().all(Readers::is_everybody),
            held,
            everything: Arc::new(everything),
            sights: Cache::new(CACHED_SIGHTS),
            passages: Cache::with_weighter(10_000, CACHE_BYTES, PassageBytes),
            answers: Cache::new(CACHED_ANSWERS),
            timeline: OnceLock::new(),
        }
    }

    /// What everybody may see: tool descriptions are about it.
    pub(crate) fn public(&self) -> Option<&Held> {
        self.held.get(Readers::EVERYBODY)
    }

    /// When what everybody may see has last changed.
    pub(crate) fn public_since(&self) -> Option<Timestamp> {
        let recorded = self.version.manifest().public_since;
        recorded.or_else(|| self.committed.filter(|_| self.is_public))
    }

    pub(crate) fn seen_in_full(self: &Arc<Self>) -> Snapshot {
        Snapshot { published: self.clone(), sight: self.everything.clone() }
    }

    pub(crate) fn seen_by(self: &Arc<Self>, cx: &CallContext) -> Snapshot {
        if self.is_public || cx.principal == Principal::Local {
            return self.seen_in_full();
        }
        let caller = (cx.principal.user(), cx.groups.clone());
        let sight = self.sights.get(&caller).unwrap_or_else(|| {
            let sight = Arc::new(self.sight(|readers| readers.allow(cx)));
            self.sights.insert(caller, sight.clone());
            sight
        });
        Snapshot { published: self.clone(), sight }
    }

    fn sight(&self, allows: impl Fn(&Readers) -> bool) -> Sight {
        let seen: Vec<(&Readers, &Held)> = self.held.iter().filter(|(readers, _)| allows(readers)).collect();
        let readers = seen.iter().map(|(readers, _)| readers.to_string());
        Sight {
            visible: Visible::Only(readers.collect()),
            field_names: field_names(seen.iter().map(|(_, held)| *held)),
        }
    }
}

/// A published version as one caller sees it: what they may not see does not exist.
#[derive(Clone)]
pub struct Snapshot {
    published: Arc<Published>,
    sight: Arc<Sight>,
}

impl Deref for Snapshot {
    type Target = Published;

    fn deref(&self) -> &Published {
        &self.published
    }
}

impl Snapshot {
    /// Only the documents with exactly these readers.
    #[must_use]
    pub fn only(&self, readers: &Readers) -> Self {
        Self { published: self.published.clone(), sight: Arc::new(self.sight(|other| other == readers)) }
    }

    pub(crate) fn visible(&self) -> &Visible {
        &self.sight.visible
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
        self.answers.get(&(self.visible().clone(), text.to_owned(), limit))
    }

    pub(crate) fn cache(&self, text: &str, limit: usize, hits: &Arc<[Hit]>) {
        self.answers.insert((self.visible().clone(), text.to_owned(), limit), hits.clone());
    }

    pub(crate) fn stored(&self, key: &str) -> Result<Option<StoredDocument>> {
        self.version.document(key, self.visible())
    }

    pub fn fetch(&self, key: &str) -> Result<Option<Document>> {
        let stored = self.stored(key)?;
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
        self.version.holds(key, self.visible())
    }

    /// All fields of a document.
    pub fn metadata(&self, key: &str) -> Result<JsonObject> {
        let stored = self.stored(key)?;
        Ok(stored.map(|stored| stored.fields).unwrap_or_default())
    }

    /// The key of a document that meets a condition, and its provider's key.
    pub fn holder(&self, condition: Condition) -> Result<Option<(String, String)>> {
        let Some(passage) = self.version.any(&Filter(vec![condition]), self.visible())? else {
            return Ok(None);
        };
        let key = self.version.passage(passage)?.key;
        Ok(self.file_of(&key)?.map(|file| (key, file)))
    }

    /// The provider's key of a document.
    pub fn file_of(&self, key: &str) -> Result<Option<String>> {
        Ok(self.stored(key)?.map(|stored| stored.file))
    }

    /// The corpus's spelling of a field, also of a nested one (`speaker.name`).
    pub(crate) fn field_name(&self, name: &str) -> Option<String> {
        if name.eq_ignore_ascii_case("title") {
            return Some("title".to_owned());
        }
        let spelled = |name: &str| self.sight.field_names.iter().find(|field| field.eq_ignore_ascii_case(name));
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
            place: stored.place,
        });
        self.passages.insert(id, passage.clone());
        Ok(passage)
    }
}
