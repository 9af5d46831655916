//! One indexing run: incremental and atomic; the published version serves meanwhile.
//!
//! 1. Take the writer's lock, shared by all processes; the system releases the lock of a killed run.
//! 2. List the provider's keys and compare each with the manifest of the last commit.
//! 3. Delete the entries of keys that changed or are gone; read and add those that changed or are new
//!    (`intake`, with `claims` for ids and texts that are in use).
//! 4. Commit changes and manifest at once. Until then, readers see the whole old version.

#![allow(clippy::disallowed_methods, reason = "it reports how long it took")]

mod claims;
mod intake;

use std::borrow::Cow;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

use self::intake::{Run, RunError};
use crate::collection::Settings;
use crate::engine::{Engine, EngineError};
use crate::format::Fault;
use crate::manifest::Summary;
use crate::provider::ProviderError;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct IndexProgress {
    pub files_done: u64,
    pub files_total: u64,
    pub documents: u64,
}

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
    /// The first faults of each file, from this or an earlier run.
    pub faults: Vec<Fault>,
    pub faults_in_all: u64,
    /// Whether a new version was committed; `false` if nothing had changed.
    pub committed: bool,
    pub elapsed: Duration,
}

#[derive(Debug, thiserror::Error)]
pub enum IndexError {
    #[error("source `{source_name}`: {problem}")]
    Missing { source_name: String, problem: String },
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
        doing: Cow<'static, str>,
        #[source]
        cause: Box<dyn std::error::Error + Send + Sync>,
    },
}

/// Runs to the end or changes nothing.
pub(crate) fn run(
    settings: &Settings,
    engine: &dyn Engine,
    cancel: &CancellationToken,
    progress: &dyn Fn(IndexProgress),
) -> Result<IndexReport, IndexError> {
    let started = Instant::now();
    let source_name = || settings.name.clone();
    let failed = |doing, cause| IndexError::Failed { source_name: source_name(), doing, cause };
    let engine_failed = |error| match error {
        EngineError::Busy => IndexError::Busy(source_name()),
        EngineError::DiskFull => IndexError::DiskFull { source_name: source_name(), dir: settings.index_dir.clone() },
        EngineError::Failed { doing, cause } => failed(doing.into(), cause),
    };
    let listing = settings.provider.list().map_err(|error| match error {
        ProviderError::Missing(problem) => IndexError::Missing { source_name: source_name(), problem },
        ProviderError::Failed { doing, cause } => failed(doing.into(), cause),
    })?;
    let bytes = listing.items.iter().map(|item| item.bytes).sum();
    let mut changes = engine.begin(bytes).map_err(engine_failed)?;
    let old = changes.manifest();
    let mut run = Run { settings, changes: &mut *changes, cancel, progress };
    let (new, mut report) = run.files(&old, listing).map_err(|error| match error {
        RunError::Engine(error) => engine_failed(error),
        RunError::Cancelled => IndexError::Cancelled(source_name()),
    })?;
    report.committed = new != *old || changes.is_first();
    if report.committed {
        changes.commit(&new).map_err(engine_failed)?;
    }
    report.documents = new.documents();
    report.passages = new.passages();
    report.summary = new.summary(report.passages_added);
    report.faults = new.files.values().flat_map(|f| f.faults.iter().cloned()).collect();
    report.faults_in_all = new.files.values().map(|f| f.faults_in_all).sum();
    report.elapsed = started.elapsed();
    Ok(report)
}
