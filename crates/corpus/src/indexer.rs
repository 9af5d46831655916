//! One run from folder to index: incremental, atomic, and never at the cost of what already serves.
//!
//! 1. Take the writer's lock: one run at a time, across processes; a killed run's lock frees itself.
//! 2. Walk the folder and compare each file with the manifest of the last commit.
//! 3. Delete the entries of files that changed or are gone; read and add those that changed or are new.
//! 4. Write the new manifest, then commit the index with the manifest's name in it: one rename makes
//!    both true. Until that rename, whoever reads the index sees the old state whole.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use tantivy::directory::error::LockError;
use tantivy::{Index, IndexWriter, TantivyError};
use tokio_util::sync::CancellationToken;

use crate::intake::Run;
use crate::manifest::{Manifest, Summary};
use crate::read::{Fault, Reading};
use crate::schema::{ANALYZER, FORMAT, Fields, analyzer};
use crate::walk::walk;

/// Tantivy's smallest arena is 15 MB a thread; this is enough for segments of tens of thousands of passages.
const ARENA_BYTES_PER_THREAD: usize = 48 * 1024 * 1024;
/// Below this much text a second indexing thread costs more (a second segment) than it saves.
const PARALLEL_FROM_BYTES: u64 = 16 * 1024 * 1024;

#[derive(Debug, Clone)]
pub struct Limits {
    /// One file of Markdown or text, or one row, is at most this large.
    pub max_document_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_document_bytes: 16 * 1024 * 1024,
        }
    }
}

/// What to index and where the index lives.
#[derive(Debug, Clone)]
pub struct Indexing {
    pub source: String,
    /// A folder, or one file.
    pub path: PathBuf,
    /// The source's own folder below the data directory.
    pub index_dir: PathBuf,
    pub limits: Limits,
    pub reading: Reading,
}

/// How far a run has come.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct IndexProgress {
    pub files_done: u64,
    pub files_total: u64,
    pub documents: u64,
}

/// What a run did.
#[derive(Debug, Clone, Default)]
pub struct IndexReport {
    pub files: u64,
    pub files_read: u64,
    pub files_unchanged: u64,
    pub files_removed: u64,
    /// Documents read in this run.
    pub documents_read: u64,
    /// Documents in the index now.
    pub documents: u64,
    /// Passages added in this run.
    pub passages_added: u64,
    /// Passages in the index now.
    pub passages: u64,
    pub summary: Summary,
    /// The first faults of each file, whether found now or in an earlier run.
    pub faults: Vec<Fault>,
    pub faults_in_all: u64,
    /// Whether this run made a new state of the index; `false` if there was nothing to change.
    pub committed: bool,
    pub elapsed: Duration,
}

#[derive(Debug, thiserror::Error)]
pub enum IndexError {
    #[error("source `{source_name}`: {path} does not exist; correct `path` in the configuration or create the folder")]
    NoSuchFolder { source_name: String, path: PathBuf },
    #[error("source `{0}` is being indexed by another process; wait for it to finish or stop it")]
    Busy(String),
    #[error(
        "the disk is full: source `{source_name}` was not re-indexed and the previous index keeps serving; free space in {dir} and run `tribune index {source_name}`"
    )]
    DiskFull { source_name: String, dir: PathBuf },
    #[error("indexing of source `{0}` was stopped; the previous index keeps serving")]
    Cancelled(String),
    #[error("source `{source_name}`: {doing} failed; the previous index keeps serving")]
    Failed {
        source_name: String,
        doing: &'static str,
        #[source]
        cause: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl Indexing {
    /// Where this release keeps the index.
    pub fn dir(&self) -> PathBuf {
        self.index_dir.join(FORMAT)
    }

    /// Runs to the end or changes nothing.
    pub fn run(&self, cancel: &CancellationToken, progress: &dyn Fn(IndexProgress)) -> Result<IndexReport, IndexError> {
        let started = Instant::now();
        if !self.path.exists() {
            return Err(IndexError::NoSuchFolder {
                source_name: self.source.clone(),
                path: self.path.clone(),
            });
        }
        if self.path.is_dir() {
            // A folder that cannot be listed must not pass for an empty one.
            self.attempt("reading the folder", std::fs::read_dir(&self.path))?;
        }
        let index = self.open_or_create()?;
        let found = walk(&self.path, &self.reading);
        let bytes = found.files.iter().map(|file| file.metadata.len()).sum();
        let mut writer = self.writer(&index, bytes)?;
        // What a killed or failed run left behind takes room that this one may need.
        if let Err(error) = writer.garbage_collect_files().wait() {
            tracing::debug!(source = self.source, %error, "leftovers of an earlier run stay for now");
        }
        let payload = self.attempt("reading the index", index.load_metas())?.payload;
        let old = self.load_manifest(payload.as_deref(), &mut writer)?;
        let run = Run {
            indexing: self,
            writer: &writer,
            fields: Fields::new(),
            cancel,
            progress,
        };
        let (new, mut report) = match run.files(&index, &old, found) {
            Ok(done) => done,
            Err(error) => return Err(self.root_cause(error, &mut writer)),
        };
        report.committed = new != old || payload.is_none();
        if report.committed {
            self.commit(&mut writer, &new, payload.as_deref())?;
        }
        self.attempt("merging the index", writer.wait_merging_threads())?;
        report.documents = new.documents();
        report.passages = new.passages();
        report.summary = new.summary(report.passages_added);
        report.faults = new.files.values().flat_map(|f| f.faults.iter().cloned()).collect();
        report.faults_in_all = new.files.values().map(|f| f.faults_in_all).sum();
        report.elapsed = started.elapsed();
        Ok(report)
    }

    fn open_or_create(&self) -> Result<Index, IndexError> {
        let dir = self.dir();
        self.attempt("creating the index folder", std::fs::create_dir_all(&dir))?;
        let open = || -> Result<Index, TantivyError> {
            let directory = tantivy::directory::MmapDirectory::open(&dir)?;
            Index::open_or_create(directory, Fields::new().schema)
        };
        let index = open().or_else(|error| {
            let broken = matches!(
                error,
                TantivyError::DataCorruption(_) | TantivyError::SchemaError(_) | TantivyError::IncompatibleIndex(_)
            );
            if !broken {
                return Err(error);
            }
            // The index is derived from the folder: making it again loses nothing.
            tracing::warn!(source = self.source, %error, "the index cannot be read; making it again");
            std::fs::remove_dir_all(&dir)?;
            std::fs::create_dir_all(&dir)?;
            open()
        });
        let index = self.attempt("opening the index", index)?;
        index.tokenizers().register(ANALYZER, analyzer());
        Ok(index)
    }

    fn writer(&self, index: &Index, bytes: u64) -> Result<IndexWriter, IndexError> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let threads = if bytes < PARALLEL_FROM_BYTES { 1 } else { cores.min(4) };
        match index.writer_with_num_threads(threads, threads * ARENA_BYTES_PER_THREAD) {
            Err(TantivyError::LockFailure(LockError::LockBusy, _)) => Err(IndexError::Busy(self.source.clone())),
            other => self.attempt("opening the index for writing", other),
        }
    }

    fn load_manifest(&self, payload: Option<&str>, writer: &mut IndexWriter) -> Result<Manifest, IndexError> {
        let Some(name) = payload else {
            return Ok(Manifest::default());
        };
        match Manifest::load(&self.dir().join(name)) {
            Ok(manifest) => Ok(manifest),
            Err(error) => {
                tracing::warn!(source = self.source, %error, "the index has lost its list of files; making it again");
                self.attempt("clearing the index", writer.delete_all_documents())?;
                Ok(Manifest::default())
            }
        }
    }

    fn commit(&self, writer: &mut IndexWriter, manifest: &Manifest, previous: Option<&str>) -> Result<(), IndexError> {
        let dir = self.dir();
        let generation = 1 + previous
            .and_then(|name| {
                name.strip_prefix("manifest-")?
                    .strip_suffix(".json")?
                    .parse::<u64>()
                    .ok()
            })
            .unwrap_or(0);
        let name = self.attempt("writing the list of files", manifest.save(&dir, generation))?;
        let mut prepared = self.attempt("writing the index", writer.prepare_commit())?;
        prepared.set_payload(&name);
        self.attempt("committing the index", prepared.commit())?;
        Manifest::remove_others(&dir, &name);
        Ok(())
    }

    /// A writer whose thread has failed says only that it was killed; what killed it comes out when
    /// it is asked to commit.
    fn root_cause(&self, error: IndexError, writer: &mut IndexWriter) -> IndexError {
        if !matches!(error, IndexError::Failed { .. }) {
            return error;
        }
        match writer.prepare_commit() {
            Err(cause) if is_disk_full(&cause) => IndexError::DiskFull {
                source_name: self.source.clone(),
                dir: self.index_dir.clone(),
            },
            Ok(prepared) => {
                // Nothing of a failed run is kept.
                drop(prepared.abort());
                error
            }
            Err(_) => error,
        }
    }

    pub(crate) fn attempt<T, E>(&self, doing: &'static str, result: Result<T, E>) -> Result<T, IndexError>
    where
        E: std::error::Error + Send + Sync + 'static,
    {
        result.map_err(|cause| {
            if is_disk_full(&cause) {
                IndexError::DiskFull {
                    source_name: self.source.clone(),
                    dir: self.index_dir.clone(),
                }
            } else {
                IndexError::Failed {
                    source_name: self.source.clone(),
                    doing,
                    cause: Box::new(cause),
                }
            }
        })
    }
}

/// Tantivy reports a worker's failed write by text once the worker is gone, so both are looked at.
fn is_disk_full(error: &(dyn std::error::Error + 'static)) -> bool {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if error
            .downcast_ref::<std::io::Error>()
            .is_some_and(|e| e.kind() == std::io::ErrorKind::StorageFull)
        {
            return true;
        }
        cause = error.source();
    }
    let text = format!("{error} {error:?}");
    text.contains("No space left on device") || text.contains("StorageFull")
}
