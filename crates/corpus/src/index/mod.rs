//! One indexing run: incremental and atomic; the published version serves meanwhile.
//!
//! 1. Take the writer's lock, shared by all processes; the system releases the lock of a killed run.
//! 2. List the provider's keys and compare each with the manifest of the last commit.
//! 3. Delete the entries of keys that changed or are gone; read and add those that changed or are new
//!    (`intake`, with `claims` for ids and texts that are in use; `ahead` reads on several threads).
//! 4. Commit changes and manifest at once. Until then, readers see the whole old version.

#![allow(clippy::disallowed_methods, reason = "it reports how long it took, and records when")]

mod ahead;
mod claims;
mod intake;

use std::time::{Duration, Instant};

use jiff::Timestamp;
use tokio_util::sync::CancellationToken;

use self::intake::Run;
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
    /// What is not indexed, by kind and reason.
    pub skipped: Vec<String>,
    /// Whether a new version was committed; `false` if nothing had changed.
    pub committed: bool,
    pub elapsed: Duration,
}

/// Why a run that indexes or builds vectors did not finish. The published version stays.
#[derive(Debug, thiserror::Error)]
pub enum IndexError {
    /// Another process does the same work.
    #[error("{0}")]
    Busy(String),
    #[error("{0}")]
    Cancelled(String),
    #[error("{problem}")]
    Failed {
        problem: String,
        #[source]
        cause: Option<Box<dyn std::error::Error + Send + Sync>>,
    },
}

impl IndexError {
    pub(crate) fn failed(problem: String, cause: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Failed { problem, cause: Some(cause.into()) }
    }

    /// The failure with its cause, on one line; `None` if the run was stopped or another process does the work.
    pub(crate) fn failure(&self) -> Option<String> {
        match self {
            Self::Busy(_) | Self::Cancelled(_) => None,
            Self::Failed { problem, cause: Some(cause) } => Some(format!("{problem}: {cause}")),
            Self::Failed { problem, cause: None } => Some(problem.clone()),
        }
    }
}

/// Runs to the end or changes nothing.
pub(crate) fn run(
    settings: &Settings,
    engine: &dyn Engine,
    cancel: &CancellationToken,
    progress: &dyn Fn(IndexProgress),
) -> Result<IndexReport, IndexError> {
    let started = Instant::now();
    let name = &settings.name;
    let failed = |doing: &str, cause| {
        let problem = format!("source `{name}`: {doing} failed; the previous index keeps serving");
        IndexError::Failed { problem, cause: Some(cause) }
    };
    let engine_failed = |error| match error {
        EngineError::Busy => IndexError::Busy(format!(
            "source `{name}` is being indexed by another process; wait for it to finish or stop it"
        )),
        EngineError::DiskFull => IndexError::Failed {
            problem: format!(
                "the disk is full: source `{name}` was not re-indexed and the previous index keeps serving; free space in {} and run `tribune index {name}`",
                settings.index_dir.display()
            ),
            cause: None,
        },
        EngineError::Failed { doing, cause } => failed(doing, cause),
    };
    let listing = settings.provider.list().map_err(|error| match error {
        ProviderError::Missing(problem) => {
            IndexError::Failed { problem: format!("source `{name}`: {problem}"), cause: None }
        }
        ProviderError::Failed { doing, cause } => failed(&doing, cause),
    })?;
    let bytes = listing.items.iter().map(|item| item.bytes).sum();
    let mut changes = engine.begin(bytes).map_err(engine_failed)?;
    let old = changes.manifest();
    let mut run = Run { settings, changes: &mut *changes, cancel, progress };
    let (mut new, mut report) = run.files(&old, listing).map_err(engine_failed)?;
    if cancel.is_cancelled() {
        let problem = format!("indexing of source `{name}` was stopped; the previous index keeps serving");
        return Err(IndexError::Cancelled(problem));
    }
    new.public_since = old.public_since.filter(|_| new.public() == old.public());
    report.committed = new != *old || changes.is_first();
    if report.committed {
        new.public_since = new.public_since.or_else(|| Some(Timestamp::now()));
        changes.commit(&new).map_err(engine_failed)?;
    }
    report.documents = new.documents();
    report.passages = new.passages();
    report.summary = new.summary(report.passages_added);
    report.faults = new.files.values().flat_map(|f| f.faults.iter().cloned()).collect();
    report.faults_in_all = new.files.values().map(|f| f.faults_in_all).sum();
    report.skipped = new.skipped();
    report.elapsed = started.elapsed();
    Ok(report)
}
