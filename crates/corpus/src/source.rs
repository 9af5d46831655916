//! The `documents` source: a corpus searched on the pool, switched when a new index is committed.

pub mod follow;
mod serve;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwapOption;
use tokio_util::sync::CancellationToken;
use tribune_core::{CallContext, Document, Error, Result, Tool};
use tribune_page::Reading;

use crate::collection::Settings;
use crate::embedding::{EmbedProgress, EmbedReport, Embedding};
use crate::engine::embedded::Embedded;
use crate::engine::{self, Engine, VersionMark};
use crate::index::{self, IndexError, IndexProgress, IndexReport};
use crate::manifest::Held;
use crate::pool::Pool;
use crate::provider::Provider;
use crate::snapshot::{Published, Snapshot};

/// What a kind of source adds to its corpus.
pub trait Features: Send + Sync {
    fn tools(&self, _corpus: &Arc<DocumentsSource>) -> Vec<Arc<dyn Tool>> {
        Vec::new()
    }

    /// Tools that change the source, for administrators.
    fn admin_tools(&self, _corpus: &Arc<DocumentsSource>) -> Vec<Arc<dyn Tool>> {
        Vec::new()
    }

    /// Completes the page of a document.
    fn page(&self, reading: Reading, _document: &Document, _snapshot: &Snapshot) -> engine::Result<Reading> {
        Ok(reading)
    }
}

/// Plain documents.
impl Features for () {}

/// How the background task of a corpus keeps its index up to date.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Upkeep {
    /// Publishes what other processes commit.
    #[default]
    Publish,
    /// Reads the provider once as well.
    IndexOnce,
    /// Reads the provider whenever it reports a change as well.
    Follow,
}

/// A searchable corpus, whatever provider its records come from.
pub struct DocumentsSource {
    settings: Arc<Settings>,
    features: Arc<dyn Features>,
    engine: Arc<dyn Engine>,
    pool: Pool,
    upkeep: Upkeep,
    current: ArcSwapOption<Published>,
    /// Which version `current` is; locked while a new one is opened, so that only one caller opens it.
    opened: Mutex<Option<VersionMark>>,
    revision: AtomicU64,
    /// Progress or failure of the last indexing run, for the operator.
    activity: Mutex<Activity>,
}

#[derive(Default)]
struct Activity {
    running: Option<IndexProgress>,
    failure: Option<String>,
    embedding: Option<EmbedProgress>,
    embedding_failure: Option<String>,
}

impl DocumentsSource {
    /// With the embedded engine.
    pub fn new(settings: Settings, pool: Pool) -> Self {
        let engine = Embedded::new(&settings.name, &settings.index_dir, settings.embedder.clone());
        Self::with_engine(settings, Arc::new(engine), pool)
    }

    pub fn with_engine(settings: Settings, engine: Arc<dyn Engine>, pool: Pool) -> Self {
        Self {
            settings: Arc::new(settings),
            features: Arc::new(()),
            engine,
            pool,
            upkeep: Upkeep::default(),
            current: ArcSwapOption::empty(),
            opened: Mutex::new(None),
            revision: AtomicU64::new(0),
            activity: Mutex::default(),
        }
    }

    #[must_use]
    pub fn with_features(mut self, features: Arc<dyn Features>) -> Self {
        self.features = features;
        self
    }

    /// Sets what the background task does.
    #[must_use]
    pub fn with_upkeep(mut self, upkeep: Upkeep) -> Self {
        self.upkeep = upkeep;
        self
    }

    pub fn provider(&self) -> &Arc<dyn Provider> {
        &self.settings.provider
    }

    /// Whether passages are ranked by meaning too, and so need vectors.
    pub fn has_model(&self) -> bool {
        self.settings.embedder.is_some()
    }

    /// Which version of the index is published, not counting added vectors.
    pub fn generation(&self) -> u64 {
        self.current.load().as_ref().map_or(0, |current| current.generation)
    }

    /// Progress of the embedding run in this process, if there is one.
    pub fn embedding(&self) -> Option<EmbedProgress> {
        self.activity().embedding
    }

    /// Publishes the newest commit of any process. Blocks on the disk; cheap when nothing changed.
    pub fn refresh(&self) -> Result<bool> {
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(mark) = self.engine.published() else {
            return Ok(false);
        };
        if *opened == Some(mark) {
            return Ok(false);
        }
        let version = self.engine.open().map_err(|e| {
            Error::unavailable(format!("the index of `{}` cannot be opened", self.settings.name)).caused_by(e)
        })?;
        let same_index = opened.is_some_and(|opened| opened.index == mark.index);
        *opened = Some(mark);
        let Some(version) = version else {
            return Ok(false);
        };
        let generation = self.generation() + u64::from(!same_index);
        let published = Published::new(self.settings.clone(), version, mark.committed, generation);
        if !same_index {
            // A whole index was committed since the last failure.
            self.activity().failure = None;
        }
        self.current.store(Some(Arc::new(published)));
        self.revision.fetch_add(1, Ordering::Release);
        Ok(true)
    }

    /// Reads what the provider has changed and publishes it. Blocks; not for async threads.
    pub fn update(
        &self,
        cancel: &CancellationToken,
        progress: &dyn Fn(IndexProgress),
    ) -> Result<IndexReport, IndexError> {
        self.activity().running = Some(IndexProgress::default());
        let outcome = index::run(&self.settings, &*self.engine, cancel, &|state| {
            self.activity().running = Some(state);
            progress(state);
        });
        let mut activity = self.activity();
        activity.running = None;
        activity.failure = outcome.as_ref().err().and_then(IndexError::failure);
        drop(activity);
        let report = outcome?;
        self.refresh().map_err(|error| {
            IndexError::failed(format!("source `{}`: opening the new index failed", self.settings.name), error)
        })?;
        Ok(report)
    }

    /// Makes the vectors that the published index lacks and publishes them. Blocks; not for async
    /// threads. `None` if this corpus has no model or nothing is indexed yet.
    pub fn embed(
        &self,
        cancel: &CancellationToken,
        progress: &dyn Fn(EmbedProgress),
    ) -> Result<Option<EmbedReport>, IndexError> {
        let (Some(embedder), Some(published)) = (&self.settings.embedder, self.current.load_full()) else {
            return Ok(None);
        };
        let embedding = Embedding {
            source: &self.settings.name,
            engine: &*self.engine,
            version: &*published.version,
            embedder,
            pool: &self.pool,
            cancel,
            progress: &|state| {
                self.activity().embedding = Some(state);
                progress(state);
            },
        };
        let outcome = embedding.run();
        let mut activity = self.activity();
        activity.embedding = None;
        activity.embedding_failure = outcome.as_ref().err().and_then(IndexError::failure);
        drop(activity);
        let report = outcome?;
        if let Err(error) = self.refresh() {
            tracing::warn!(source = self.settings.name, %error, "the new vectors cannot be opened yet");
        }
        Ok(Some(report))
    }

    fn activity(&self) -> std::sync::MutexGuard<'_, Activity> {
        self.activity.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The published version as a caller sees it; `None` if there is no such source for them.
    pub fn seen_by(&self, cx: &CallContext) -> Result<Option<Snapshot>> {
        match self.settings.readers.allow(cx) {
            true => Ok(Some(self.published()?.seen_by(cx))),
            false => Ok(None),
        }
    }

    /// The published version with everything in it: for the operator, never for an answer.
    pub fn seen_in_full(&self) -> Result<Snapshot> {
        Ok(self.published()?.seen_in_full())
    }

    /// What everybody may see; `None` if that is nothing.
    pub fn public(&self) -> Option<Held> {
        let published = self.current.load();
        published.as_ref().filter(|_| self.settings.readers.is_everybody())?.public().cloned()
    }

    fn published(&self) -> Result<Arc<Published>> {
        self.current.load_full().ok_or_else(|| {
            let name = &self.settings.name;
            match self.activity().failure.clone() {
                Some(failure) => Error::unavailable(format!("`{name}` is not available now")).caused_by(failure),
                None => {
                    Error::unavailable(format!("`{name}` is still being indexed for the first time; try again shortly"))
                }
            }
        })
    }
}
