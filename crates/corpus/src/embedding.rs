//! Making the vectors that an index lacks: in the background, in batches, so that a killed run goes
//! on where it was.

use std::collections::HashSet;
use std::io;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use tantivy::schema::Value;
use tantivy::{DocAddress, TantivyDocument};
use tokio_util::sync::CancellationToken;
use tribune_embed::{EmbedError, Role};

use crate::entry::ranked;
use crate::pool::Pool;
use crate::snapshot::{Model, Snapshot};
use crate::vectors::VectorWriter;

/// Vectors are committed when so many wait, or so much time has passed.
const COMMIT_ROWS: usize = 20_000;
const COMMIT_EVERY: Duration = Duration::from_secs(3);
const LOOK_FOR_CANCEL: Duration = Duration::from_millis(200);

/// How far embedding has come.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EmbedProgress {
    pub done: u64,
    pub total: u64,
}

/// What an embedding run did.
#[derive(Debug, Clone, Default)]
pub struct EmbedReport {
    pub model: String,
    /// Passages embedded in this run.
    pub embedded: u64,
    /// Passages in the index.
    pub passages: u64,
    pub elapsed: Duration,
}

#[derive(Debug, thiserror::Error)]
pub enum EmbeddingError {
    #[error("vectors for source `{0}` are being made by another process")]
    Busy(String),
    #[error("making vectors for source `{0}` was stopped; what was made is kept")]
    Cancelled(String),
    #[error("vectors for source `{source_name}` could not be made; full text serves alone")]
    Model {
        source_name: String,
        #[source]
        cause: EmbedError,
    },
    #[error("the model failed on a text of source `{0}`; full text serves alone, and the log has the details")]
    Panicked(String),
    #[error("vectors for source `{source_name}` could not be kept; full text serves alone")]
    Disk {
        source_name: String,
        #[source]
        cause: io::Error,
    },
    #[error("the index of source `{source_name}` could not be read")]
    Index {
        source_name: String,
        #[source]
        cause: tantivy::TantivyError,
    },
}

/// One run over one state of the index.
pub(crate) struct Embedding<'a> {
    pub(crate) snapshot: &'a Snapshot,
    pub(crate) model: &'a Model,
    pub(crate) pool: &'a Pool,
    pub(crate) cancel: &'a CancellationToken,
    pub(crate) progress: &'a dyn Fn(EmbedProgress),
}

/// `None` if the model panicked.
type Made = Option<Result<Vec<(u64, Vec<f32>)>, EmbedError>>;

impl Embedding<'_> {
    pub(crate) fn run(&self) -> Result<EmbedReport, EmbeddingError> {
        let started = Instant::now();
        let store = &self.model.store;
        let embedder = &*self.model.embedder;
        let Some(mut writer) = self.kept(store.writer(embedder))? else {
            return Err(EmbeddingError::Busy(self.source()));
        };
        let needed = self.read(self.needed())?;
        let missing: Vec<(u64, DocAddress)> = needed.iter().copied().filter(|(c, _)| !writer.holds(*c)).collect();
        let embedded = missing.len() as u64;
        let outcome = self.embed(&missing, &mut writer);
        self.kept(writer.announce())?;
        outcome?;
        let contents: HashSet<u64> = needed.iter().map(|(content, _)| *content).collect();
        self.kept(writer.drop_stale(|content| contents.contains(&content)))?;
        store.remove_others();
        Ok(EmbedReport {
            model: embedder.name().to_owned(),
            embedded,
            passages: self.snapshot.manifest().passages(),
            elapsed: started.elapsed(),
        })
    }

    /// Each different content once, with an entry that has its text.
    fn needed(&self) -> tantivy::Result<Vec<(u64, DocAddress)>> {
        let mut seen = HashSet::new();
        let mut needed = Vec::new();
        for (number, segment) in (0u32..).zip(self.snapshot.searcher.segment_readers()) {
            let contents = segment.fast_fields().u64("content")?;
            for doc in segment.doc_ids_alive() {
                if let Some(content) = contents.first(doc)
                    && seen.insert(content)
                {
                    needed.push((content, DocAddress::new(number, doc)));
                }
            }
        }
        Ok(needed)
    }

    fn embed(&self, missing: &[(u64, DocAddress)], writer: &mut VectorWriter) -> Result<(), EmbeddingError> {
        let total = missing.len() as u64;
        let mut state = EmbedProgress { done: 0, total };
        (self.progress)(state);
        let (made, results) = mpsc::channel::<Made>();
        let mut batches = missing.chunks(self.model.embedder.batch());
        let mut under_way = 0;
        let mut waiting: Vec<(u64, Vec<f32>)> = Vec::new();
        let mut committed = Instant::now();
        loop {
            while under_way < self.pool.background_width() * 2
                && !self.cancel.is_cancelled()
                && let Some(batch) = batches.next()
            {
                self.hand_over(batch, made.clone())?;
                under_way += 1;
            }
            if under_way == 0 {
                break;
            }
            let result = match results.recv_timeout(LOOK_FOR_CANCEL) {
                Ok(result) => result,
                // A batch that hangs in somebody's endpoint must not hold up a stop.
                Err(mpsc::RecvTimeoutError::Timeout) if self.cancel.is_cancelled() => break,
                Err(mpsc::RecvTimeoutError::Timeout) => continue,
                Err(mpsc::RecvTimeoutError::Disconnected) => break,
            };
            under_way -= 1;
            let vectors = result
                .ok_or_else(|| EmbeddingError::Panicked(self.source()))?
                .map_err(|cause| EmbeddingError::Model {
                    source_name: self.source(),
                    cause,
                })?;
            state.done += vectors.len() as u64;
            waiting.extend(vectors);
            (self.progress)(state);
            if waiting.len() >= COMMIT_ROWS || committed.elapsed() >= COMMIT_EVERY {
                self.kept(writer.add(&waiting))?;
                waiting.clear();
                committed = Instant::now();
            }
        }
        if !waiting.is_empty() {
            self.kept(writer.add(&waiting))?;
        }
        if self.cancel.is_cancelled() {
            return Err(EmbeddingError::Cancelled(self.source()));
        }
        Ok(())
    }

    fn hand_over(&self, batch: &[(u64, DocAddress)], made: mpsc::Sender<Made>) -> Result<(), EmbeddingError> {
        let mut texts = Vec::with_capacity(batch.len());
        for (content, address) in batch {
            texts.push((*content, self.read(self.text(*address))?));
        }
        let embedder = self.model.embedder.clone();
        self.pool.background(move || {
            let passages: Vec<&str> = texts.iter().map(|(_, text)| text.as_str()).collect();
            let embed = || embedder.embed(Role::Passage, &passages);
            let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(embed));
            let keyed = |vectors: Vec<Vec<f32>>| texts.iter().map(|(content, _)| *content).zip(vectors).collect();
            drop(made.send(outcome.ok().map(|outcome| outcome.map(keyed))));
        });
        Ok(())
    }

    fn text(&self, address: DocAddress) -> tantivy::Result<String> {
        let entry: TantivyDocument = self.snapshot.searcher.doc(address)?;
        let fields = &self.snapshot.fields;
        let text = |field| entry.get_first(field).and_then(|v| v.as_str()).unwrap_or_default();
        Ok(ranked(text(fields.header), text(fields.passage)))
    }

    fn source(&self) -> String {
        self.snapshot.source.clone()
    }

    fn read<T>(&self, result: tantivy::Result<T>) -> Result<T, EmbeddingError> {
        result.map_err(|cause| EmbeddingError::Index {
            source_name: self.source(),
            cause,
        })
    }

    fn kept<T>(&self, result: io::Result<T>) -> Result<T, EmbeddingError> {
        result.map_err(|cause| EmbeddingError::Disk {
            source_name: self.source(),
            cause,
        })
    }
}
