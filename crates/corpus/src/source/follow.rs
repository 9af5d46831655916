//! Keeps a corpus up to date: reads its provider at once and after every change, then builds missing vectors. One
//! task per source; no failure ends it.

#![allow(clippy::disallowed_methods, reason = "folders change in real time")]

#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::task::{JoinError, JoinSet};
use tokio_util::sync::CancellationToken;
use tribune_core::Source;

use crate::embedding::{EmbedProgress, EmbedReport};
use crate::format::Fault;
use crate::index::{IndexError, IndexProgress, IndexReport};
use crate::source::DocumentsSource;

/// How often a server checks whether another process has committed a new index.
const REFRESH_INTERVAL: Duration = Duration::from_millis(500);
/// How long to wait before the next attempt while another process indexes the same source.
const BUSY_PAUSE: Duration = Duration::from_secs(1);
/// How long to wait after a model has failed, or while another process builds the vectors.
const EMBEDDING_PAUSE: Duration = Duration::from_secs(30);

/// What happened to a source.
pub enum Event<'a> {
    Indexing(IndexProgress),
    /// Something changed, or this is the first update. The faults are those not reported before.
    Indexed(&'a IndexReport, &'a [&'a Fault]),
    /// The update is over, after its other events.
    Updated,
    /// Indexing or embedding failed; reported once, however often it fails in the same way.
    Failed(&'a str),
    Embedding(EmbedProgress),
    /// Every passage has its vector, whether or not any was missing.
    Embedded(&'a EmbedReport),
}

/// Receives events, with the source's name.
pub type Listener = Arc<dyn Fn(&str, Event<'_>) + Send + Sync>;

/// Brings a source and its vectors up to date. With `watch` it goes on after every change until it is cancelled.
pub async fn follow(corpus: Arc<DocumentsSource>, watch: bool, cancel: CancellationToken, listener: Listener) {
    let mut follower = Follower {
        corpus,
        cancel: cancel.clone(),
        listener,
        faults: None,
        failure: None,
        retry_at: (!watch).then(Instant::now),
        embedding: JoinSet::new(),
        running: None,
        embedded: None,
        embedding_failure: None,
        next_embedding: Instant::now(),
    };
    loop {
        tokio::select! {
            biased;
            () = cancel.cancelled() => break,
            Some(outcome) = follower.embedding.join_next() => follower.embedding_ended(outcome),
            () = update_due(&follower.corpus, watch, follower.retry_at) => follower.update().await,
        }
    }
    follower.stop_embedding().await;
}

/// Publishes commits of other processes until it is cancelled.
pub async fn publish_commits(corpus: Arc<DocumentsSource>, cancel: CancellationToken) {
    let mut tick = tokio::time::interval(REFRESH_INTERVAL);
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut failing = false;
    while cancel.run_until_cancelled(tick.tick()).await.is_some() {
        let refreshing = corpus.clone();
        let Ok(refreshed) = tokio::task::spawn_blocking(move || refreshing.refresh()).await else {
            continue;
        };
        match &refreshed {
            // While vectors are built here, every batch is a new version.
            Ok(true) if corpus.embedding().is_none() => {
                tracing::info!(source = corpus.name(), "a new index is being served");
            }
            Err(error) if !failing => {
                tracing::warn!(source = corpus.name(), %error, "the new index cannot be opened; the old one keeps serving");
            }
            _ => {}
        }
        failing = refreshed.is_err();
    }
}

/// Logs an event.
pub fn log(source: &str, event: Event<'_>) {
    match event {
        Event::Indexing(_) | Event::Updated => {}
        Event::Indexed(report, faults) => {
            for fault in faults.iter().filter(|fault| fault.skipped) {
                tracing::warn!(source, "{fault}");
            }
            let warnings = faults.iter().filter(|fault| !fault.skipped).count();
            if warnings > 0 {
                tracing::info!(source, warnings, "indexed with warnings; `tribune index` lists them");
            }
            tracing::info!(
                source,
                documents = report.documents,
                files_read = report.files_read,
                files_unchanged = report.files_unchanged,
                files_removed = report.files_removed,
                faults = report.faults_in_all,
                ms = report.elapsed.as_millis() as u64,
                "indexed"
            );
        }
        Event::Embedding(state) if state.done == 0 && state.total > 0 => {
            let passages = state.total;
            tracing::info!(source, passages, "building vectors; keyword search works meanwhile");
        }
        Event::Embedding(_) => {}
        Event::Embedded(report) if report.embedded == 0 => {}
        Event::Embedded(report) => {
            let ms = report.elapsed.as_millis() as u64;
            tracing::info!(source, model = report.model, passages = report.embedded, ms, "embedded");
        }
        Event::Failed(problem) => tracing::error!(source, "{problem}"),
    }
}

/// Waits until the corpus should be updated.
async fn update_due(corpus: &DocumentsSource, watch: bool, retry_at: Option<Instant>) {
    let retry = async { tokio::time::sleep_until(retry_at.unwrap_or_else(Instant::now).into()).await };
    tokio::select! {
        () = retry, if retry_at.is_some() => {}
        () = corpus.provider().changed(), if watch => {}
        else => std::future::pending().await,
    }
}

struct Follower {
    corpus: Arc<DocumentsSource>,
    cancel: CancellationToken,
    listener: Listener,
    /// The faults of the last update, which are not reported again; `None` before the first.
    faults: Option<HashSet<String>>,
    /// The reported failure, until an update succeeds.
    failure: Option<String>,
    /// When to update again because another process was indexing.
    retry_at: Option<Instant>,
    /// At most one run.
    embedding: JoinSet<Embedded>,
    /// The version of the index that vectors are being built for.
    running: Option<(u64, CancellationToken)>,
    /// The version of the index that has all vectors.
    embedded: Option<u64>,
    /// The reported failure, until a run succeeds.
    embedding_failure: Option<String>,
    /// The earliest time to embed again after a failure.
    next_embedding: Instant,
}

type Embedded = Result<Option<EmbedReport>, IndexError>;

impl Follower {
    async fn update(&mut self) {
        self.retry_at = None;
        let (corpus, cancel, listener) = (self.corpus.clone(), self.cancel.clone(), self.listener.clone());
        let run = move || corpus.update(&cancel, &|state| listener(corpus.name(), Event::Indexing(state)));
        let failure = match tokio::task::spawn_blocking(run).await {
            Ok(Ok(report)) => {
                self.report_update(&report);
                None
            }
            Ok(Err(error)) => {
                self.retry_at = matches!(error, IndexError::Busy(_)).then(|| Instant::now() + BUSY_PAUSE);
                error.failure()
            }
            Err(_) => Some("indexing failed unexpectedly; the previous index keeps serving".to_owned()),
        };
        if failure.is_some() && failure != self.failure {
            self.report(Event::Failed(failure.as_deref().unwrap_or_default()));
            self.failure = failure;
        }
        self.report(Event::Updated);
        self.start_embedding_if_needed().await;
    }

    fn report_update(&mut self, report: &IndexReport) {
        let lines = report.faults.iter().map(ToString::to_string).collect();
        let known = self.faults.replace(lines);
        let is_new = |fault: &&Fault| known.as_ref().is_none_or(|known| !known.contains(&fault.to_string()));
        let fresh: Vec<&Fault> = report.faults.iter().filter(is_new).collect();
        // The first update and a recovery are reported too.
        if self.failure.take().is_some() || report.committed || known.is_none() {
            self.report(Event::Indexed(report, &fresh));
        }
    }

    /// Starts to build vectors if the published version lacks some.
    async fn start_embedding_if_needed(&mut self) {
        let generation = self.corpus.generation();
        let is_due = match &self.running {
            Some((running, _)) => *running != generation,
            None => self.embedded != Some(generation) && Instant::now() >= self.next_embedding,
        };
        if !self.corpus.has_model() || generation == 0 || !is_due {
            return;
        }
        self.stop_embedding().await;
        if self.cancel.is_cancelled() {
            return;
        }
        let cancel = self.cancel.child_token();
        let (corpus, stop, listener) = (self.corpus.clone(), cancel.clone(), self.listener.clone());
        let run = move || corpus.embed(&stop, &|state| listener(corpus.name(), Event::Embedding(state)));
        self.embedding.spawn_blocking(run);
        self.running = Some((generation, cancel));
    }

    fn embedding_ended(&mut self, outcome: Result<Embedded, JoinError>) {
        let generation = self.running.take().map(|(generation, _)| generation);
        let failure = match outcome {
            Ok(Ok(report)) => {
                self.embedded = generation;
                self.embedding_failure = None;
                if let Some(report) = report {
                    self.report(Event::Embedded(&report));
                }
                return;
            }
            Ok(Err(IndexError::Cancelled(_))) => return,
            Ok(Err(error)) => error.failure(),
            Err(_) => Some("building vectors failed unexpectedly; only keyword search works".to_owned()),
        };
        self.next_embedding = Instant::now() + EMBEDDING_PAUSE;
        if failure.is_some() && failure != self.embedding_failure {
            self.report(Event::Failed(failure.as_deref().unwrap_or_default()));
            self.embedding_failure = failure;
        }
    }

    /// Vectors that are already built stay.
    async fn stop_embedding(&mut self) {
        if let Some((_, cancel)) = &self.running {
            cancel.cancel();
        }
        if let Some(outcome) = self.embedding.join_next().await {
            self.embedding_ended(outcome);
        }
    }

    fn report(&self, event: Event<'_>) {
        (self.listener)(self.corpus.name(), event);
    }
}
