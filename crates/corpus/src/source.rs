//! A corpus behind the [`Source`] trait: searched on the pool, switched when a new index is committed.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use arc_swap::ArcSwapOption;
use async_trait::async_trait;
use tokio_util::sync::CancellationToken;
use tribune_core::{CallContext, Document, DocumentId, Error, Hit, Query, Result, Source, SourceFacts, SourceStatus};

use crate::indexer::{IndexError, IndexProgress, IndexReport, Indexing, Limits};
use crate::manifest::Manifest;
use crate::pool::Pool;
use crate::read::Reading;
use crate::snapshot::Snapshot;

/// What the owner says about a corpus.
#[derive(Debug, Clone)]
pub struct Settings {
    pub name: String,
    pub title: String,
    pub description: Option<String>,
    pub path: PathBuf,
    pub index_dir: PathBuf,
    pub limits: Limits,
    pub reading: Reading,
}

/// A folder of documents.
pub struct DocumentsSource {
    settings: Settings,
    indexing: Indexing,
    pool: Pool,
    current: ArcSwapOption<Snapshot>,
    /// Which commit `current` is; held while a new one is opened, so that only one caller does.
    opened: Mutex<Option<CommitMark>>,
    revision: AtomicU64,
    /// What the last or present indexing run has to say, for the operator.
    activity: Mutex<Activity>,
}

/// Changes with every commit: tantivy replaces `meta.json` by a rename.
type CommitMark = (SystemTime, u64);

#[derive(Default)]
struct Activity {
    running: Option<IndexProgress>,
    failure: Option<String>,
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
        Self {
            settings,
            indexing,
            pool,
            current: ArcSwapOption::empty(),
            opened: Mutex::new(None),
            revision: AtomicU64::new(0),
            activity: Mutex::default(),
        }
    }

    pub fn path(&self) -> &Path {
        &self.settings.path
    }

    /// Publishes the newest commit, whoever made it. Blocks on the disk; cheap when nothing changed.
    pub fn refresh(&self) -> Result<bool> {
        let dir = self.indexing.dir();
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        let mark = commit_mark(&dir);
        if mark.is_none() || *opened == mark {
            return Ok(false);
        }
        let snapshot = Snapshot::open(&self.settings.name, &dir).map_err(|e| {
            Error::unavailable(format!("the index of `{}` cannot be opened", self.settings.name)).caused_by(e)
        })?;
        *opened = mark;
        let Some(snapshot) = snapshot else {
            return Ok(false);
        };
        self.current.store(Some(Arc::new(snapshot)));
        // Whatever went wrong before, somebody has made a whole index since.
        self.activity().failure = None;
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

    fn activity(&self) -> std::sync::MutexGuard<'_, Activity> {
        self.activity.lock().unwrap_or_else(PoisonError::into_inner)
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

fn commit_mark(dir: &Path) -> Option<CommitMark> {
    let metadata = std::fs::metadata(dir.join("meta.json")).ok()?;
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
        if !self.owns(id.scheme()) {
            return Ok(None);
        }
        let key = id.key().to_owned();
        let snapshot = self.snapshot()?;
        self.pool
            .run(move || {
                snapshot
                    .fetch(&key)
                    .map_err(|e| Error::internal("the index could not be read").caused_by(e))
            })
            .await
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
            fields: manifest.map(Manifest::fields).unwrap_or_default(),
        }
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
        match &activity.failure {
            Some(failure) => SourceStatus::Degraded(failure.clone()),
            None => SourceStatus::Ready,
        }
    }

    fn revision(&self) -> u64 {
        self.revision.load(Ordering::Acquire)
    }
}
