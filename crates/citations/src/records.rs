//! Citing from async code: a document is stored as it is, and its permalink leads back to that.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tribune_core::{Cited, Document, DocumentId, Environment, Error, Links, Result};

pub use crate::recent::Fingerprint;
use crate::recent::Recent;
use crate::record::Draft;
use crate::{Citations, Limits, Token};

/// Jobs that may wait for the disk; further answers cite the current page.
const MAX_WAITING: usize = 1_024;
/// How long an answer waits for its record before it cites the current page.
const PATIENCE: Duration = Duration::from_secs(2);

#[derive(Clone)]
pub struct Records {
    /// Without a store, answers cite the current page.
    store: Option<Store>,
    links: Links,
}

#[derive(Clone)]
struct Store {
    citations: Arc<Citations>,
    recent: Arc<Recent>,
    /// To the one thread that writes, so that a slow disk blocks no async thread.
    queue: mpsc::Sender<Job>,
}

struct Job {
    drafts: Vec<Draft>,
    reply: oneshot::Sender<Result<Vec<Token>>>,
}

impl Records {
    /// Records in a folder of the data directory. Where they cannot be kept, answers are cited by their current page.
    pub fn open(folder: &str, limits: Limits, environment: &Environment) -> Self {
        let open = || {
            Citations::open(environment.data_dir.join(folder), limits, environment.clock.clone())
                .inspect_err(|error| tracing::error!(%error, folder, "citations are not kept"))
                .ok()
                .map(Arc::new)
        };
        let citations = environment.keeps_citations.then(open).flatten();
        Self::new(citations, environment.links.clone())
    }

    /// Starts the thread that writes, which ends with the last clone.
    pub fn new(citations: Option<Arc<Citations>>, links: Links) -> Self {
        let store = citations.and_then(Store::start);
        Self { store, links }
    }

    /// Stores a document and returns its permalink. `document` is only called if no record has the same fingerprint.
    pub async fn cite(&self, fingerprint: Fingerprint, document: impl FnOnce() -> Document) -> String {
        let mut document = Some(document);
        let made = |_| document.take().map(|document| document());
        // One document has one address.
        self.cite_all(vec![fingerprint], made).await.remove(0)
    }

    /// The same for several documents at once; `document` gets the place in the list.
    pub async fn cite_all(
        &self,
        documents: Vec<Fingerprint>,
        document: impl FnMut(usize) -> Option<Document>,
    ) -> Vec<String> {
        let tokens = self.tokens(&documents, document).await;
        let address = |(document, token): (&Fingerprint, Option<Token>)| match token {
            Some(record) => self.links.record(document.id(), &record.to_string()),
            None => self.links.citation(document.id(), None),
        };
        documents.iter().zip(tokens).map(address).collect()
    }

    /// The record of each document, if it could be stored.
    async fn tokens(
        &self,
        documents: &[Fingerprint],
        mut document: impl FnMut(usize) -> Option<Document>,
    ) -> Vec<Option<Token>> {
        let Some(store) = &self.store else {
            return vec![None; documents.len()];
        };
        let mut tokens: Vec<_> = documents.iter().map(|document| store.recent.token(document)).collect();
        let (mut places, mut drafts) = (Vec::new(), Vec::new());
        for place in (0..documents.len()).filter(|place| tokens[*place].is_none()) {
            let draft = document(place).map(|document| Draft::new(&document));
            match draft {
                Some(Ok(draft)) => {
                    places.push(place);
                    drafts.push(draft);
                }
                Some(Err(error)) => tracing::warn!(%error, "cannot store a citation"),
                None => {}
            }
        }
        if drafts.is_empty() {
            return tokens;
        }
        match store.freeze(drafts).await {
            Ok(written) => {
                for (place, token) in places.into_iter().zip(written) {
                    store.recent.remember(documents[place].clone(), token);
                    tokens[place] = Some(token);
                }
            }
            Err(error) => tracing::warn!(%error, "cannot store a citation"),
        }
        tokens
    }

    pub async fn cited(&self, id: &DocumentId, record: &str) -> Result<Option<Cited>> {
        let Some(store) = &self.store else {
            return Ok(None);
        };
        let mut cited = store.lookup(id, record).await?;
        if let Cited::Kept { document, .. } = &mut cited {
            document.url = Some(self.links.record(id, record));
        }
        Ok(Some(cited))
    }
}

impl Store {
    fn start(citations: Arc<Citations>) -> Option<Self> {
        let (queue, mut jobs) = mpsc::channel::<Job>(MAX_WAITING);
        let recent = Arc::new(Recent::new(citations.clock.clone()));
        let writing = citations.clone();
        let write = move || {
            while let Some(job) = jobs.blocking_recv() {
                // Nobody waits any more: the answer cites the current page.
                if !job.reply.is_closed() {
                    let _ = job.reply.send(writing.freeze_drafts(&job.drafts));
                }
            }
        };
        let thread = std::thread::Builder::new().name("citations".to_owned()).spawn(write);
        thread
            .inspect_err(|error| tracing::error!(%error, "citations are not stored: their thread cannot be started"))
            .ok()?;
        Some(Self { citations, recent, queue })
    }

    /// Returns once the records are written.
    async fn freeze(&self, drafts: Vec<Draft>) -> Result<Vec<Token>> {
        let (reply, written) = oneshot::channel();
        let job = Job { drafts, reply };
        self.queue
            .try_send(job)
            .map_err(|_| Error::unavailable(format!("{MAX_WAITING} citations wait for the disk")))?;
        match tokio::time::timeout(PATIENCE, written).await {
            Ok(Ok(tokens)) => tokens,
            Ok(Err(_)) => Err(Error::internal("the thread that keeps citations has ended")),
            Err(_) => {
                Err(Error::unavailable(format!("the disk has not taken a citation within {} s", PATIENCE.as_secs())))
            }
        }
    }

    async fn lookup(&self, id: &DocumentId, record: &str) -> Result<Cited> {
        let (citations, id, record) = (self.citations.clone(), id.clone(), record.to_owned());
        tokio::task::spawn_blocking(move || citations.lookup(&id, &record))
            .await
            .map_err(|error| Error::internal("a citation could not be looked up").caused_by(error))?
    }
}
