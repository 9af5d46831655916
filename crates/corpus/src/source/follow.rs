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

use crate::embedding::{EmbedProgress, EmbedReport, EmbeddingError};
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
    /// An update found nothing new.
    Unchanged,
    /// Reported once, however often the update fails in the same way.
    Failed(&'a str),
    Embedding(EmbedProgress),
    /// Every passage has its vector, whether or not any was missing.
    Embedded(&'a EmbedReport),
    EmbeddingFailed(&'a str),
}

/// Receives events, with the source's name.
pub type Listener = Arc<dyn Fn(&str, Event<'_>) + Send + Sync>;

/// Brings a source and its vectors up to date. With `watch` it goes on after every change until it is cancelled.
pub async fn follow(corpus: Arc<DocumentsSource>, watch: bool, cancel: CancellationToken, listener: Listener) {
    let mut follower = Follower {
        corpus,
        cancel: cancel.clone(),
        listener,
        reported: Reported::default(),
        retry_at: (!watch).then(Instant::now),
        embedding: JoinSet::new(),
        running: None,
        embedded: None,
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
        match tokio::task::spawn_blocking(move || refreshing.refresh()).await {
            // While vectors are built here, every batch is a new version.
            Ok(Ok(true)) if corpus.embedding().is_none() => {
                tracing::info!(source = corpus.name(), "a new index is being served");
            }
            Ok(Ok(_)) => failing = false,
            Ok(Err(error)) if !failing => {
                failing = true;
                tracing::warn!(source = corpus.name(), %error, "the new index cannot be opened; the old one keeps serving");
            }
            Ok(Err(_)) | Err(_) => {}
        }
    }
}

/// Logs an event.
pub fn log(source: &str, event: Event<'_>) {
    match event {
        Event::Indexing(_) | Event::Unchanged => {}
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
        Event::Failed(problem) | Event::EmbeddingFailed(problem) => tracing::error!(source, "{problem}"),
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
    reported: Reported,
    /// When to update again because another process was indexing.
    retry_at: Option<Instant>,
    /// At most one run.
    embedding: JoinSet<Embedded>,
    /// The version of the index that vectors are being built for.
    running: Option<(u64, CancellationToken)>,
    /// The version of the index that has all vectors.
    embedded: Option<u64>,
    /// The earliest time to embed again after a failure.
    next_embedding: Instant,
}

type Embedded = Result<Option<EmbedReport>, EmbeddingError>;

/// Reports that are still true, so that they are not repeated.
#[derive(Default)]
struct Reported {
    any: bool,
    faults: HashSet<String>,
    failure: Option<String>,
    embedding_failure: Option<String>,
}

impl Follower {
    async fn update(&mut self) {
        self.retry_at = None;
        let (corpus, cancel, listener) = (self.corpus.clone(), self.cancel.clone(), self.listener.clone());
        let run = move || corpus.update(&cancel, &|state| listener(corpus.name(), Event::Indexing(state)));
        match tokio::task::spawn_blocking(run).await {
            Ok(Ok(report)) => self.report_update(&report),
            // Another process does the same work, or this one stops: not a failure.
            Ok(Err(error @ (IndexError::Busy(_) | IndexError::Cancelled(_)))) => {
                let is_busy = matches!(error, IndexError::Busy(_));
                self.retry_at = is_busy.then(|| Instant::now() + BUSY_PAUSE);
                self.report(Event::Unchanged);
            }
            Ok(Err(error)) => self.report_failure(with_cause(&error)),
            Err(_) => {
                self.report_failure("indexing failed unexpectedly; the previous index keeps serving".to_owned());
            }
        }
        self.start_embedding_if_needed().await;
    }

    fn report_failure(&mut self, problem: String) {
        if self.reported.failure.as_ref() == Some(&problem) {
            self.report(Event::Unchanged);
        } else {
            self.report(Event::Failed(&problem));
            self.reported.failure = Some(problem);
        }
    }

    fn report_update(&mut self, report: &IndexReport) {
        let lines: Vec<String> = report.faults.iter().map(ToString::to_string).collect();
        let numbered = report.faults.iter().zip(&lines);
        let fresh = numbered.filter(|(_, line)| !self.reported.faults.contains(*line));
        let fresh: Vec<&Fault> = fresh.map(|(fault, _)| fault).collect();
        // A recovery is reported too.
        if report.committed || !self.reported.any || self.reported.failure.is_some() {
            self.report(Event::Indexed(report, &fresh));
        } else {
            self.report(Event::Unchanged);
        }
        self.reported.any = true;
        self.reported.failure = None;
        self.reported.faults = lines.into_iter().collect();
    }

    /// Starts to build vectors if the published version lacks some.
    async fn start_embedding_if_needed(&mut self) {
        let generation = self.corpus.generation();
        let running = self.running.as_ref().map(|(generation, _)| *generation);
        if !self.corpus.has_model()
            || generation == 0
            || self.embedded == Some(generation)
            || running == Some(generation)
            || (running.is_none() && Instant::now() < self.next_embedding)
        {
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
                self.reported.embedding_failure = None;
                if let Some(report) = report {
                    self.report(Event::Embedded(&report));
                }
                return;
            }
            Ok(Err(EmbeddingError::Cancelled(_))) => return,
            Ok(Err(EmbeddingError::Busy(_))) => None,
            Ok(Err(error)) => Some(with_cause(&error)),
            Err(_) => Some("building vectors failed unexpectedly; only keyword search works".to_owned()),
        };
        self.next_embedding = Instant::now() + EMBEDDING_PAUSE;
        if failure.is_some() && failure != self.reported.embedding_failure {
            self.report(Event::EmbeddingFailed(failure.as_deref().unwrap_or_default()));
            self.reported.embedding_failure = failure;
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

/// An error with its cause, on one line.
pub(super) fn with_cause(error: &dyn std::error::Error) -> String {
    match error.source() {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}
