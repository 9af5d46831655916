//! Builds missing vectors in the background, in batches, so that a killed run continues where it stopped.

#![allow(clippy::disallowed_methods, reason = "it reports how long it took")]

use std::collections::HashSet;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;
use tribune_embed::{EmbedError, Embedder, Role};

use crate::engine::{Engine, EngineError, PassageId, VectorWriter, Version};
use crate::index::IndexError;
use crate::passage::ranked_text;
use crate::pool::Pool;

/// Vectors are committed after this many rows or this much time.
const COMMIT_ROWS: usize = 20_000;
const COMMIT_EVERY: Duration = Duration::from_secs(3);
const CANCEL_CHECK_INTERVAL: Duration = Duration::from_millis(200);

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EmbedProgress {
    pub done: u64,
    pub total: u64,
}

#[derive(Debug, Clone, Default)]
pub struct EmbedReport {
    pub model: String,
    /// Passages embedded in this run.
    pub embedded: u64,
    /// Passages in the index.
    pub passages: u64,
    pub elapsed: Duration,
}

/// One run over one version of the index.
pub(crate) struct Embedding<'a> {
    pub(crate) source: &'a str,
    pub(crate) engine: &'a dyn Engine,
    pub(crate) version: &'a dyn Version,
    pub(crate) embedder: &'a Arc<dyn Embedder>,
    pub(crate) pool: &'a Pool,
    pub(crate) cancel: &'a CancellationToken,
    pub(crate) progress: &'a dyn Fn(EmbedProgress),
}

type BatchResult = Result<Vec<(u64, Vec<f32>)>, EmbedError>;

impl Embedding<'_> {
    pub(crate) fn run(&self) -> Result<EmbedReport, IndexError> {
        let started = Instant::now();
        let mut report = EmbedReport {
            model: self.embedder.name().to_owned(),
            passages: self.version.manifest().passages(),
            ..EmbedReport::default()
        };
        let Some(mut writer) = self.attempt(self.engine.vectors())? else {
            return Ok(report);
        };
        let needed = self.attempt(self.version.contents())?;
        let missing: Vec<(u64, PassageId)> = needed.iter().copied().filter(|(c, _)| !writer.holds(*c)).collect();
        report.embedded = missing.len() as u64;
        let outcome = self.embed(&missing, &mut *writer);
        self.attempt(writer.publish())?;
        outcome?;
        let contents: HashSet<u64> = needed.iter().map(|(content, _)| *content).collect();
        self.attempt(writer.retain(&|content| contents.contains(&content)))?;
        report.elapsed = started.elapsed();
        Ok(report)
    }

    fn embed(&self, missing: &[(u64, PassageId)], writer: &mut dyn VectorWriter) -> Result<(), IndexError> {
        let total = missing.len() as u64;
        let mut state = EmbedProgress { done: 0, total };
        (self.progress)(state);
        let (sender, results) = mpsc::channel::<BatchResult>();
        let mut batches = missing.chunks(self.embedder.batch());
        let mut in_flight = 0;
        let mut uncommitted: Vec<(u64, Vec<f32>)> = Vec::new();
        let mut committed = Instant::now();
        loop {
            while in_flight < self.pool.background_width() * 2
                && !self.cancel.is_cancelled()
                && let Some(batch) = batches.next()
            {
                self.submit(batch, sender.clone())?;
                in_flight += 1;
            }
            if in_flight == 0 {
                break;
            }
            let result = match results.recv_timeout(CANCEL_CHECK_INTERVAL) {
                Ok(result) => result,
                // A stop must not wait for a slow endpoint; a local batch ends soon and is kept.
                Err(_) if self.cancel.is_cancelled() && self.embedder.is_remote() => break,
                Err(_) => continue,
            };
            in_flight -= 1;
            let vectors = result.map_err(|cause| self.failed("made", cause))?;
            state.done += vectors.len() as u64;
            uncommitted.extend(vectors);
            (self.progress)(state);
            if uncommitted.len() >= COMMIT_ROWS || committed.elapsed() >= COMMIT_EVERY {
                self.attempt(writer.add(&uncommitted))?;
                uncommitted.clear();
                committed = Instant::now();
            }
        }
        if !uncommitted.is_empty() {
            self.attempt(writer.add(&uncommitted))?;
        }
        if self.cancel.is_cancelled() {
            let problem = format!("building vectors for source `{}` was stopped; those built so far stay", self.source);
            return Err(IndexError::Cancelled(problem));
        }
        Ok(())
    }

    fn submit(&self, batch: &[(u64, PassageId)], sender: mpsc::Sender<BatchResult>) -> Result<(), IndexError> {
        let mut texts = Vec::with_capacity(batch.len());
        for (content, passage) in batch {
            let stored = self.attempt(self.version.passage(*passage))?;
            texts.push((*content, ranked_text(&stored.header, &stored.text)));
        }
        let embedder = self.embedder.clone();
        self.pool.background(move || {
            let passages: Vec<&str> = texts.iter().map(|(_, text)| text.as_str()).collect();
            let embed = || embedder.embed(Role::Passage, &passages);
            let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(embed));
            let panicked = |_| Err(EmbedError::Model("the model failed on a text; the log has the details".to_owned()));
            let keyed = |vectors: Vec<Vec<f32>>| texts.iter().map(|(content, _)| *content).zip(vectors).collect();
            drop(sender.send(outcome.unwrap_or_else(panicked).map(keyed)));
        });
        Ok(())
    }

    fn attempt<T>(&self, result: Result<T, EngineError>) -> Result<T, IndexError> {
        let source = self.source;
        result.map_err(|cause| match cause {
            EngineError::Busy => {
                IndexError::Busy(format!("another process is building the vectors for source `{source}`"))
            }
            cause => self.failed("stored", cause),
        })
    }

    fn failed(&self, done: &str, cause: impl std::error::Error + Send + Sync + 'static) -> IndexError {
        let source = self.source;
        let problem = format!("vectors for source `{source}` could not be {done}; only keyword search works");
        IndexError::failed(problem, cause)
    }
}
