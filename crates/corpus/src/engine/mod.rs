//! Indexes and ranks.
//!
//! - [`Engine`]: one index, its published version and changes; every engine passes `engine_contract` in the tests;
//! - [`Version`]: one published version, which searches read;
//! - [`embedded`]: the built-in engine, tantivy and vectors in files.
//!
//! All calls may block: the corpus makes them on its pool or on blocking threads.

pub mod embedded;

use std::ops::Range;
use std::sync::Arc;

use jiff::civil::Date;
use tribune_core::{JsonObject, Readers};

use crate::collection::Timeline;
use crate::format::{Markup, Place, Record};
use crate::manifest::Manifest;
use crate::passage::{Passage, Words};
use crate::query::{Clause, Filter};

pub type Result<T> = std::result::Result<T, EngineError>;

#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    #[error("another process is writing the index")]
    Busy,
    #[error("the disk is full")]
    DiskFull,
    #[error("{doing} failed")]
    Failed {
        doing: &'static str,
        #[source]
        cause: Box<dyn std::error::Error + Send + Sync>,
    },
}

/// The index of one corpus.
pub trait Engine: Send + Sync {
    /// Identifies the published version; cheap, and changes whenever [`Engine::open`] would return another version.
    fn published(&self) -> Option<VersionMark>;

    /// The published version; `None` before the first commit.
    fn open(&self) -> Result<Option<Arc<dyn Version>>>;

    /// Begins a change of about `bytes` of text. There is one writer at a time, across processes
    /// ([`EngineError::Busy`]); the lock of a killed writer is released.
    fn begin(&self, bytes: u64) -> Result<Box<dyn Changes>>;

    /// Opens the vectors for writing; `None` without a model, [`EngineError::Busy`] if another writer has them.
    fn vectors(&self) -> Result<Option<Box<dyn VectorWriter>>>;
}

/// Identifies a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VersionMark {
    pub index: u128,
    /// Also changes when only vectors were added.
    pub vectors: u128,
    pub committed: Option<jiff::Timestamp>,
}

/// A change in progress: [`Changes::commit`] publishes all of it, dropping it nothing.
pub trait Changes {
    /// The manifest of the published version; empty if there is none.
    fn manifest(&self) -> Arc<Manifest>;

    /// Whether nothing was ever committed.
    fn is_first(&self) -> bool;

    /// The first document of the published version with this key or value that `is_wanted`, including removed ones.
    fn holder(
        &self,
        by: &Lookup<'_>,
        is_wanted: &mut dyn FnMut(&IndexedDocument) -> bool,
    ) -> Result<Option<IndexedDocument>>;

    /// Removes all records of a provider's key.
    fn remove(&mut self, file: &str);

    fn add(&mut self, entry: &Entry<'_>) -> Result<()>;

    fn commit(self: Box<Self>, manifest: &Manifest) -> Result<()>;
}

/// How to look up a document.
pub enum Lookup<'a> {
    Key(&'a str),
    Field(&'a str, &'a str),
}

/// A document of the published version.
#[derive(Debug, Clone)]
pub struct IndexedDocument {
    pub key: String,
    pub file: String,
    pub date: Option<Date>,
    pub readers: Readers,
    /// `None` if loading them would be slow.
    pub fields: Option<JsonObject>,
}

/// One record with its passages.
pub struct Entry<'a> {
    /// The provider's key.
    pub file: &'a str,
    pub record: &'a Record,
    pub passages: &'a [Passage],
}

/// Adds vectors; holds their lock.
pub trait VectorWriter {
    /// Whether there is a vector for a content hash.
    fn holds(&self, content: u64) -> bool;

    /// Adds and commits vectors, so that a killed run keeps earlier batches.
    fn add(&mut self, vectors: &[(u64, Vec<f32>)]) -> Result<()>;

    /// Publishes added vectors.
    fn publish(&mut self) -> Result<()>;

    /// Drops vectors that are no longer needed.
    fn retain(&mut self, is_needed: &dyn Fn(u64) -> bool) -> Result<()>;
}

/// One passage of one version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PassageId(pub u64);

/// A document in the ranking of one leg, by its best passage.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Candidate {
    /// Hash of the document's key.
    pub document: u64,
    pub score: f32,
    pub passage: PassageId,
}

/// What documents are ranked by.
#[derive(Debug, Clone, Copy)]
pub enum Leg<'a> {
    /// By the words of the query.
    Words,
    /// By the cosine with this vector.
    Vector(&'a [f32]),
}

/// Which documents a caller may see.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Visible {
    All,
    /// Those with one of these readers, as [`Readers`] prints them.
    Only(Arc<[String]>),
}

pub struct Ranking<'a> {
    /// The query: words rank, conditions restrict every leg.
    pub clauses: &'a [Clause],
    pub filter: &'a Filter,
    pub visible: &'a Visible,
    /// The most documents per leg.
    pub depth: usize,
}

/// A passage as it was indexed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredPassage {
    pub key: String,
    pub title: String,
    pub url: Option<String>,
    pub text: String,
    pub header: String,
    /// The page, slide or chapter that it begins in.
    pub place: Option<String>,
    /// The number of this passage, from 0, and of all.
    pub ordinal: usize,
    pub count: usize,
}

/// A document as it was indexed.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredDocument {
    /// The provider's key.
    pub file: String,
    pub title: String,
    pub text: String,
    pub url: Option<String>,
    pub date: Option<Date>,
    pub fields: JsonObject,
    /// The ranges of its passages in the text; empty if there is only one.
    pub passages: Vec<Range<usize>>,
    pub markup: Markup,
    /// As in its record.
    pub places: Vec<Place>,
}

/// Days since 1970-01-01.
pub fn days(date: Date) -> i64 {
    let epoch = jiff::civil::date(1970, 1, 1);
    i64::from(epoch.until(date).map_or(0, |span| span.get_days()))
}

/// A document and its date, in [`days`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DatedDocument {
    pub document: u64,
    pub passage: PassageId,
    pub day: Option<i64>,
}

/// The position of a dated document in a [`Timeline`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct TimelineEntry {
    /// 0 if unknown.
    pub series: u16,
    pub day: i64,
    pub page: u32,
    pub passage: PassageId,
    pub document: u64,
}

/// One published version of an index. It never changes; a commit makes a new one.
///
/// What is not visible does not exist: it takes no place in a ranking and is in no count, and a lookup of it costs as
/// much as one of a key that never existed.
pub trait Version: Send + Sync {
    fn manifest(&self) -> &Manifest;

    /// The number of entries.
    fn size(&self) -> u64;

    /// The number of passages with a vector.
    fn embedded(&self) -> u64;

    /// Whether enough passages have vectors to rank by them.
    fn ranks_by_vector(&self) -> bool;

    fn has_vector(&self, passage: PassageId) -> bool;

    /// How this engine splits text into words.
    fn words(&self) -> Box<dyn Words>;

    /// The best documents of each leg, best first. A query without words or conditions finds nothing by words, and
    /// everything by a vector.
    fn rank(&self, ranking: &Ranking<'_>, legs: &[Leg<'_>]) -> Result<Vec<Vec<Candidate>>>;

    /// The best documents by the words of a text.
    fn similar(&self, text: &str, visible: &Visible, depth: usize) -> Result<Vec<Candidate>>;

    /// The mean of a document's vectors, if it has any.
    fn centroid(&self, key: &str) -> Result<Option<Vec<f32>>>;

    fn passage(&self, passage: PassageId) -> Result<StoredPassage>;

    fn document(&self, key: &str, visible: &Visible) -> Result<Option<StoredDocument>>;

    fn holds(&self, key: &str, visible: &Visible) -> Result<bool>;

    /// Whether the document of a passage is visible.
    fn shows(&self, passage: PassageId, visible: &Visible) -> Result<bool>;

    /// The values of a field in the documents that meet a filter, with counts, most frequent first.
    fn facets(&self, field: &str, filter: &Filter, visible: &Visible) -> Result<Vec<(String, u64)>>;

    /// One passage of a document that meets a filter.
    fn any(&self, filter: &Filter, visible: &Visible) -> Result<Option<PassageId>>;

    /// Every document with this value of a field.
    fn documents_with(&self, field: &str, value: &str, visible: &Visible) -> Result<Vec<DatedDocument>>;

    /// Every dated document, visible or not, in order.
    fn timeline(&self, timeline: Timeline) -> Result<Vec<TimelineEntry>>;

    /// Up to `most` keys before `key` (nearest first) or after it.
    fn keys_beside(&self, key: &str, before: bool, most: usize, visible: &Visible) -> Result<Vec<String>>;

    /// Each distinct content hash with one of its passages.
    fn contents(&self) -> Result<Vec<(u64, PassageId)>>;
}
