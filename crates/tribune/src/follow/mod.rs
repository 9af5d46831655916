//! Folders followed into their indexes: read at once, watched from then on, and embedded behind it.
//!
//! - `changes`: when to look at a folder again;
//! - here: what is done then, one task for each source. Nothing that goes wrong ends it.

mod changes;
#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tribune_core::Source;
use tribune_corpus::read::Fault;
use tribune_corpus::{
    DocumentsSource, EmbedProgress, EmbedReport, EmbeddingError, IndexError, IndexProgress, IndexReport,
};

use changes::{Changes, Why};

/// How often a server looks whether an index has been renewed by another process.
const REFRESH: Duration = Duration::from_millis(500);
/// How long another process that is indexing the same source is given before the next try.
const BUSY_PAUSE: Duration = Duration::from_secs(1);
/// How long a model that failed, or vectors that another process makes, are left alone.
const EMBEDDING_PAUSE: Duration = Duration::from_secs(30);

/// What there is to tell of a source.
pub enum News<'a> {
    /// The folder cannot be watched, and why; it is compared every few seconds instead.
    Unwatched(&'a str),
    Indexing(IndexProgress),
    /// Something has changed, or this is the first look. The faults are those that were not told before.
    Indexed(&'a IndexReport, &'a [&'a Fault]),
    /// A look has ended without anything to tell.
    Unchanged,
    /// Told once, however often it is tried again.
    Failed(&'a str),
    Embedding(EmbedProgress),
    /// Every passage has its vector, whether any had to be made or not.
    Embedded(&'a EmbedReport),
    EmbeddingFailed(&'a str),
}

/// Whoever wants to know.
pub type Tell = Arc<dyn Fn(&str, News<'_>) + Send + Sync>;

/// Brings a source up to date, and its vectors behind it. With `watch` it goes on whenever the folder
/// changes, until it is cancelled.
pub async fn follow(corpus: Arc<DocumentsSource>, watch: bool, cancel: CancellationToken, tell: Tell) {
    let mut changes = watch.then(|| Changes::of(corpus.path(), corpus.index_dir()));
    let mut follower = Follower {
        corpus,
        cancel: cancel.clone(),
        tell,
        told: Told::default(),
        embedding: None,
        embedded: None,
        next_embedding: Instant::now(),
    };
    let mut first = true;
    loop {
        tokio::select! {
            biased;
            () = cancel.cancelled() => break,
            outcome = finished(&mut follower.embedding) => follower.embedding_ended(outcome),
            why = next(&mut changes, first) => {
                first = false;
                follower.look(why, changes.as_mut()).await;
            }
        }
    }
    follower.stop_embedding().await;
}

/// Publishes what other processes commit, until it is cancelled.
pub async fn keep_fresh(corpus: Arc<DocumentsSource>, cancel: CancellationToken) {
    let mut tick = tokio::time::interval(REFRESH);
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut failing = false;
    while cancel.run_until_cancelled(tick.tick()).await.is_some() {
        let refreshing = corpus.clone();
        match tokio::task::spawn_blocking(move || refreshing.refresh()).await {
            // While vectors are made here, every batch of them is a new state.
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

/// The news as log lines.
pub fn log(source: &str, news: News<'_>) {
    match news {
        News::Indexing(_) | News::Unchanged => {}
        News::Unwatched(problem) => {
            tracing::warn!(
                source,
                "the folder cannot be watched ({problem}); it is compared every few seconds"
            );
        }
        News::Indexed(report, faults) => {
            for fault in faults.iter().filter(|fault| fault.skipped) {
                tracing::warn!(source, "{fault}");
            }
            // Taken all the same: one line says so, and `tribune index` names each.
            let odd = faults.iter().filter(|fault| !fault.skipped).count();
            if odd > 0 {
                tracing::info!(source, odd, "taken with a warning; `tribune index` names them");
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
        News::Failed(problem) => tracing::error!(source, "{problem}"),
        News::Embedding(state) if state.done == 0 && state.total > 0 => {
            tracing::info!(source, passages = state.total, "embedding; full text serves meanwhile");
        }
        News::Embedding(_) => {}
        News::Embedded(report) if report.embedded == 0 => {}
        News::Embedded(report) => {
            tracing::info!(
                source,
                model = report.model,
                passages = report.embedded,
                ms = report.elapsed.as_millis() as u64,
                "embedded"
            );
        }
        News::EmbeddingFailed(problem) => tracing::error!(source, "{problem}"),
    }
}

async fn next(changes: &mut Option<Changes>, first: bool) -> Why {
    match changes {
        Some(changes) => changes.next().await,
        None if first => Why::Told,
        None => std::future::pending().await,
    }
}

struct Follower {
    corpus: Arc<DocumentsSource>,
    cancel: CancellationToken,
    tell: Tell,
    told: Told,
    embedding: Option<Embedding>,
    /// The state of the index that has all its vectors.
    embedded: Option<u64>,
    /// After a failure, not before this.
    next_embedding: Instant,
}

/// What was told already and is still so.
#[derive(Default)]
struct Told {
    any: bool,
    faults: HashSet<String>,
    failure: Option<String>,
    embedding_failure: Option<String>,
}

/// Vectors being made.
struct Embedding {
    generation: u64,
    cancel: CancellationToken,
    run: JoinHandle<Result<Option<EmbedReport>, EmbeddingError>>,
}

type Embedded = Result<Result<Option<EmbedReport>, EmbeddingError>, tokio::task::JoinError>;

async fn finished(embedding: &mut Option<Embedding>) -> Embedded {
    match embedding {
        Some(embedding) => (&mut embedding.run).await,
        None => std::future::pending().await,
    }
}

impl Follower {
    async fn look(&mut self, why: Why, mut changes: Option<&mut Changes>) {
        if let Some(problem) = changes.as_mut().and_then(|changes| changes.problem()) {
            self.tell(News::Unwatched(&problem));
        }
        let started = Instant::now();
        let outcome = self.update(changes.is_none()).await;
        if let Some(changes) = changes {
            changes.looked(started.elapsed());
            match &outcome {
                Ok(report) if report.committed && why == Why::Time => changes.missed_something(),
                Err(Some(IndexError::Busy(_))) => changes.again_in(BUSY_PAUSE),
                _ => {}
            }
        }
        self.tell_outcome(outcome);
        self.embed_what_is_new().await;
    }

    /// One run; `None` as its error if it panicked.
    async fn update(&self, only_once: bool) -> Result<IndexReport, Option<IndexError>> {
        loop {
            let (corpus, cancel, tell) = (self.corpus.clone(), self.cancel.clone(), self.tell.clone());
            let run = move || corpus.update(&cancel, &|state| tell(corpus.name(), News::Indexing(state)));
            match tokio::task::spawn_blocking(run).await {
                // Nothing else would try again.
                Ok(Err(IndexError::Busy(_))) if only_once && !self.cancel.is_cancelled() => {
                    tokio::time::sleep(BUSY_PAUSE).await;
                }
                Ok(outcome) => return outcome.map_err(Some),
                Err(_) => return Err(None),
            }
        }
    }

    fn tell_outcome(&mut self, outcome: Result<IndexReport, Option<IndexError>>) {
        match outcome {
            Ok(report) => self.tell_report(&report),
            // Another process does the same work, or we are stopping: that is no failure.
            Err(Some(IndexError::Busy(_) | IndexError::Cancelled(_))) => self.tell(News::Unchanged),
            Err(error) => {
                let told = error.as_ref().map_or_else(
                    || "indexing failed unexpectedly; the previous index keeps serving".to_owned(),
                    |error| with_cause(error),
                );
                if self.told.failure.as_ref() != Some(&told) {
                    self.tell(News::Failed(&told));
                    self.told.failure = Some(told);
                } else {
                    self.tell(News::Unchanged);
                }
            }
        }
    }

    fn tell_report(&mut self, report: &IndexReport) {
        let lines: Vec<String> = report.faults.iter().map(ToString::to_string).collect();
        let fresh: Vec<&Fault> = report
            .faults
            .iter()
            .zip(&lines)
            .filter(|(_, line)| !self.told.faults.contains(*line))
            .map(|(fault, _)| fault)
            .collect();
        // What failed before and is put right is worth a line too.
        if report.committed || !self.told.any || self.told.failure.is_some() {
            self.tell(News::Indexed(report, &fresh));
        } else {
            self.tell(News::Unchanged);
        }
        self.told.any = true;
        self.told.failure = None;
        self.told.faults = lines.into_iter().collect();
    }

    /// Starts to make vectors if the published state is another than the one that has them all.
    async fn embed_what_is_new(&mut self) {
        let generation = self.corpus.generation();
        let under_way = self.embedding.as_ref().map(|embedding| embedding.generation);
        if !self.corpus.has_model()
            || generation == 0
            || self.embedded == Some(generation)
            || under_way == Some(generation)
            || (under_way.is_none() && Instant::now() < self.next_embedding)
        {
            return;
        }
        self.stop_embedding().await;
        if self.cancel.is_cancelled() {
            return;
        }
        let cancel = self.cancel.child_token();
        let (corpus, stop, tell) = (self.corpus.clone(), cancel.clone(), self.tell.clone());
        let run = move || corpus.embed(&stop, &|state| tell(corpus.name(), News::Embedding(state)));
        self.embedding = Some(Embedding {
            generation,
            cancel,
            run: tokio::task::spawn_blocking(run),
        });
    }

    fn embedding_ended(&mut self, outcome: Embedded) {
        let Some(Embedding { generation, .. }) = self.embedding.take() else {
            return;
        };
        let failure = match outcome {
            Ok(Ok(report)) => {
                self.embedded = Some(generation);
                self.told.embedding_failure = None;
                if let Some(report) = report {
                    self.tell(News::Embedded(&report));
                }
                return;
            }
            Ok(Err(EmbeddingError::Cancelled(_))) => return,
            Ok(Err(EmbeddingError::Busy(_))) => None,
            Ok(Err(error)) => Some(with_cause(&error)),
            Err(_) => Some("embedding failed unexpectedly; full text serves alone".to_owned()),
        };
        self.next_embedding = Instant::now() + EMBEDDING_PAUSE;
        if failure.is_some() && failure != self.told.embedding_failure {
            self.tell(News::EmbeddingFailed(failure.as_deref().unwrap_or_default()));
            self.told.embedding_failure = failure;
        }
    }

    /// What was made until now is kept.
    async fn stop_embedding(&mut self) {
        if let Some(embedding) = &self.embedding {
            embedding.cancel.cancel();
            let outcome = finished(&mut self.embedding).await;
            self.embedding_ended(outcome);
        }
    }

    fn tell(&self, news: News<'_>) {
        (self.tell)(self.corpus.name(), news);
    }
}

/// An error and what caused it, on one line.
fn with_cause(error: &dyn std::error::Error) -> String {
    match error.source() {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}
