//! A corpus behind the [`Source`] trait: searched on the pool, switched when a new index is committed.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use arc_swap::ArcSwapOption;
use async_trait::async_trait;
use jiff::Timestamp;
use tokio_util::sync::CancellationToken;
use tribune_core::view::View;
use tribune_core::{CallContext, Document, DocumentId, Error, Hit, Query, Result, Source, SourceFacts, SourceStatus};
use tribune_embed::Embedder;

use crate::embedding::{EmbedProgress, EmbedReport, Embedding, EmbeddingError};
use crate::indexer::{IndexError, IndexProgress, IndexReport, Indexing, Limits};
use crate::manifest::Manifest;
use crate::pool::Pool;
use crate::read::Reading;
use crate::snapshot::{Model, Snapshot};
use crate::vectors::VectorStore;
use crate::view::Subject;

/// What the owner says about a corpus.
#[derive(Clone)]
pub struct Settings {
    pub name: String,
    pub title: String,
    pub description: Option<String>,
    pub path: PathBuf,
    pub index_dir: PathBuf,
    pub limits: Limits,
    pub reading: Reading,
    /// What ranks by meaning beside full text; without one, full text serves alone.
    pub embedder: Option<Arc<dyn Embedder>>,
}

/// A folder of documents.
pub struct DocumentsSource {
    settings: Settings,
    indexing: Indexing,
    model: Option<Model>,
    pool: Pool,
    current: ArcSwapOption<Snapshot>,
    /// Which commit `current` is; held while a new one is opened, so that only one caller does.
    opened: Mutex<Option<CommitMark>>,
    /// When `current` was committed.
    committed: ArcSwapOption<Timestamp>,
    revision: AtomicU64,
    /// Grows with every other state of the index, and not when only vectors came.
    generation: AtomicU64,
    /// What the last or present indexing run has to say, for the operator.
    activity: Mutex<Activity>,
}

/// Changes with every commit, of the index and of the vectors: both are made by a rename.
type CommitMark = (FileMark, Option<FileMark>);
type FileMark = (SystemTime, u64);

#[derive(Default)]
struct Activity {
    running: Option<IndexProgress>,
    failure: Option<String>,
    embedding: Option<EmbedProgress>,
    embedding_failure: Option<String>,
}

impl DocumentsSource {
    pub fn new(settings: Settings, pool: Pool) -> Self {
        let indexing = Indexing {
            source: settings.name.clone(),
            path: settings.path.clone(),
            index_dir: settings.index_dir.clone(),
            limits: settings.limits.clone(),
            reading: settings.reading.clone(),
        };
        let model = settings.embedder.clone().map(|embedder| Model {
            store: VectorStore::new(&settings.index_dir, &*embedder),
            embedder,
        });
        Self {
            settings,
            indexing,
            model,
            pool,
            current: ArcSwapOption::empty(),
            opened: Mutex::new(None),
            committed: ArcSwapOption::empty(),
            revision: AtomicU64::new(0),
            generation: AtomicU64::new(0),
            activity: Mutex::default(),
        }
    }

    pub fn path(&self) -> &Path {
        &self.settings.path
    }

    pub fn reading(&self) -> &Reading {
        &self.settings.reading
    }

    pub fn limits(&self) -> &Limits {
        &self.settings.limits
    }

    pub fn index_dir(&self) -> &Path {
        &self.settings.index_dir
    }

    /// Whether passages are ranked by meaning too, and so need vectors.
    pub fn has_model(&self) -> bool {
        self.model.is_some()
    }

    /// Which state of the index is published, whatever has become of its vectors since.
    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// How far the embedding that is under way here has come.
    pub fn embedding(&self) -> Option<EmbedProgress> {
        self.activity().embedding
    }

    /// Publishes the newest commit, whoever made it. Blocks on the disk; cheap when nothing changed.
    pub fn refresh(&self) -> Result<bool> {
        let dir = self.indexing.dir();
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        let vectors = self
            .model
            .as_ref()
            .and_then(|model| file_mark(&model.store.ready_file()));
        let Some(mark) = file_mark(&dir.join("meta.json")).map(|index| Some((index, vectors))) else {
            return Ok(false);
        };
        if *opened == mark {
            return Ok(false);
        }
        let snapshot = Snapshot::open(&self.settings.name, &dir, self.model.as_ref()).map_err(|e| {
            Error::unavailable(format!("the index of `{}` cannot be opened", self.settings.name)).caused_by(e)
        })?;
        let same_index = opened.map(|(index, _)| index) == mark.map(|(index, _)| index);
        let committed = mark.and_then(|((at, _), _)| Timestamp::try_from(at).ok());
        self.committed.store(committed.map(Arc::new));
        *opened = mark;
        let Some(snapshot) = snapshot else {
            return Ok(false);
        };
        if !same_index {
            // Whatever went wrong before, somebody has made a whole index since.
            self.activity().failure = None;
        }
        self.current.store(Some(Arc::new(snapshot)));
        if !same_index {
            self.generation.fetch_add(1, Ordering::Release);
        }
        self.revision.fetch_add(1, Ordering::Release);
        Ok(true)
    }

    /// Reads what changed in the folder and publishes it. Blocks; not for async threads.
    pub fn update(
        &self,
        cancel: &CancellationToken,
        progress: &dyn Fn(IndexProgress),
    ) -> Result<IndexReport, IndexError> {
        self.activity().running = Some(IndexProgress::default());
        let outcome = self.indexing.run(cancel, &|state| {
            self.activity().running = Some(state);
            progress(state);
        });
        let mut activity = self.activity();
        activity.running = None;
        activity.failure = match &outcome {
            // Another process does the same work: that is no failure.
            Ok(_) | Err(IndexError::Busy(_) | IndexError::Cancelled(_)) => None,
            Err(error) => Some(error.to_string()),
        };
        drop(activity);
        let report = outcome?;
        self.refresh().map_err(|e| IndexError::Failed {
            source_name: self.settings.name.clone(),
            doing: "opening the new index",
            cause: Box::new(e),
        })?;
        Ok(report)
    }

    /// Makes the vectors that the published index lacks and publishes them. Blocks; not for async
    /// threads. `None` if this corpus has no model or nothing is indexed yet.
    pub fn embed(
        &self,
        cancel: &CancellationToken,
        progress: &dyn Fn(EmbedProgress),
    ) -> Result<Option<EmbedReport>, EmbeddingError> {
        let (Some(model), Some(snapshot)) = (&self.model, self.current.load_full()) else {
            return Ok(None);
        };
        let embedding = Embedding {
            snapshot: &snapshot,
            model,
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
        activity.embedding_failure = match &outcome {
            Ok(_) | Err(EmbeddingError::Busy(_) | EmbeddingError::Cancelled(_)) => None,
            Err(error) => Some(match std::error::Error::source(error) {
                Some(cause) => format!("{error}: {cause}"),
                None => error.to_string(),
            }),
        };
        drop(activity);
        let report = outcome?;
        if let Err(error) = self.refresh() {
            tracing::warn!(source = self.settings.name, %error, "the new vectors cannot be opened yet");
        }
        Ok(Some(report))
    }

    /// The published state, to search with conditions.
    pub fn published(&self) -> Result<Arc<Snapshot>> {
        self.snapshot()
    }

    pub fn pool(&self) -> &Pool {
        &self.pool
    }

    fn activity(&self) -> std::sync::MutexGuard<'_, Activity> {
        self.activity.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the published state says of a document of ours, read on the pool.
    async fn of_document<T, F>(&self, id: &DocumentId, read: F) -> Result<Option<T>>
    where
        T: Send + 'static,
        F: FnOnce(&Snapshot, &str) -> tantivy::Result<Option<T>> + Send + 'static,
    {
        if !self.owns(id.scheme()) {
            return Ok(None);
        }
        let key = id.key().to_owned();
        let snapshot = self.snapshot()?;
        let unreadable = |e| Error::internal("the index could not be read").caused_by(e);
        self.pool.run(move || read(&snapshot, &key).map_err(unreadable)).await
    }

    fn snapshot(&self) -> Result<Arc<Snapshot>> {
        self.current.load_full().ok_or_else(|| {
            let name = &self.settings.name;
            Error::unavailable(match &self.activity().failure {
                Some(failure) => format!("`{name}` could not be indexed: {failure}"),
                None => format!("`{name}` is still being indexed for the first time; try again shortly"),
            })
        })
    }
}

fn file_mark(path: &Path) -> Option<FileMark> {
    let metadata = std::fs::metadata(path).ok()?;
    #[cfg(unix)]
    let identity = std::os::unix::fs::MetadataExt::ino(&metadata);
    #[cfg(not(unix))]
    let identity = metadata.len();
    Some((metadata.modified().ok()?, identity))
}

#[async_trait]
impl Source for DocumentsSource {
    fn name(&self) -> &str {
        &self.settings.name
    }

    async fn search(&self, query: &Query, cx: &CallContext) -> Result<Arc<[Hit]>> {
        let snapshot = self.snapshot()?;
        let failed = |e| Error::internal("the index could not be searched").caused_by(e);
        if let Some(hits) = snapshot.known(&query.text, query.limit) {
            return Ok(hits);
        }
        if snapshot.is_small() {
            return snapshot.search(&query.text, query.limit).map_err(failed);
        }
        let (text, limit) = (query.text.clone(), query.limit);
        let cancel = cx.cancel.clone();
        self.pool
            .run(move || {
                if cancel.is_cancelled() {
                    return Ok(Arc::default());
                }
                snapshot.search(&text, limit).map_err(failed)
            })
            .await
    }

    async fn fetch(&self, id: &DocumentId, _cx: &CallContext) -> Result<Option<Document>> {
        self.of_document(id, Snapshot::fetch).await
    }

    async fn related(&self, id: &DocumentId, limit: usize, _cx: &CallContext) -> Result<Option<Arc<[Hit]>>> {
        let related = move |snapshot: &Snapshot, key: &str| snapshot.related(key, limit);
        Ok(self.of_document(id, related).await?.map(Arc::from))
    }

    /// Documents do not change under their ids, so nothing is ever shown as it was cited.
    async fn view(&self, document: &Document, _cited: Option<Timestamp>, _cx: &CallContext) -> Result<Option<View>> {
        let subject = Subject::new(document, &self.settings.title, self.settings.reading.is_speeches());
        let view = move |snapshot: &Snapshot, _: &str| snapshot.view(&subject);
        self.of_document(&document.id, view).await
    }

    fn relates(&self) -> bool {
        true
    }

    fn facts(&self) -> SourceFacts {
        let snapshot = self.current.load();
        let manifest = snapshot.as_deref().map(Snapshot::manifest);
        SourceFacts {
            name: self.settings.name.clone(),
            title: self.settings.title.clone(),
            description: self.settings.description.clone(),
            noun: self.settings.reading.noun().to_owned(),
            documents: manifest.map(Manifest::documents),
            dates: manifest.and_then(Manifest::dates),
            example_id: None,
            live: false,
            fields: manifest.map(Manifest::fields).unwrap_or_default(),
        }
    }

    fn updated(&self) -> Option<Timestamp> {
        self.committed.load().as_deref().copied()
    }

    fn status(&self) -> SourceStatus {
        let activity = self.activity();
        if self.current.load().is_none() {
            return SourceStatus::Unready(match (&activity.running, &activity.failure) {
                (Some(state), _) => format!(
                    "indexing for the first time: {} of {} files, {} documents so far",
                    state.files_done, state.files_total, state.documents
                ),
                (None, Some(failure)) => failure.clone(),
                (None, None) => "waiting to be indexed".to_owned(),
            });
        }
        match activity.failure.as_ref().or(activity.embedding_failure.as_ref()) {
            Some(failure) => SourceStatus::Degraded(failure.clone()),
            None => SourceStatus::Ready,
        }
    }

    fn revision(&self) -> u64 {
        self.revision.load(Ordering::Acquire)
    }
}
