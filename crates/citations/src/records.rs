//! Citing from async code: a document is stored as it is, and its permalink leads back to that.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher as _};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Semaphore;
use tribune_config::Environment;
use tribune_core::{Cited, DocumentId, Error, Links, Result};

use crate::token::Token;
use crate::{Citations, Limits, Pool};

/// The same content cited again within this time gets the same record.
pub(crate) const SAME_MOMENT: Duration = Duration::from_secs(1);
/// Ids whose last record is remembered.
const MAX_RECENT: usize = 1_024;
/// Answers that may wait for the disk; further ones cite the current page.
const MAX_WAITING: usize = 256;
/// Documents that are cited at once, each by itself.
const TURNS: usize = 32;
/// How long an answer waits for its record before it cites the current page.
const PATIENCE: Duration = Duration::from_secs(2);

/// Tells two states of a document apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fingerprint {
    id: DocumentId,
    content: u64,
}

impl Fingerprint {
    /// `content` is what differs when the document does.
    pub fn new(id: &DocumentId, content: impl Hash) -> Self {
        let mut hasher = DefaultHasher::new();
        content.hash(&mut hasher);
        Self { id: id.clone(), content: hasher.finish() }
    }
}

#[derive(Clone)]
pub struct Records {
    /// Without a store, answers cite the current page.
    store: Option<Arc<Store>>,
    links: Links,
}

struct Store {
    citations: Arc<Citations>,
    waiting: Arc<Semaphore>,
    /// What was cited within the last second, by document: it needs no new record.
    recent: Mutex<HashMap<DocumentId, Recent>>,
    /// Taken while a single document is cited; several ids share one.
    turns: [tokio::sync::Mutex<()>; TURNS],
}

struct Recent {
    content: u64,
    pool: Pool,
    token: Token,
    at: Instant,
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

    pub fn new(citations: Option<Arc<Citations>>, links: Links) -> Self {
        let store = citations.map(|citations| {
            let waiting = Arc::new(Semaphore::new(MAX_WAITING));
            Arc::new(Store { citations, waiting, recent: Mutex::default(), turns: Default::default() })
        });
        Self { store, links }
    }

    /// Stores a document and returns its permalink. `record` is only called if no record has the same fingerprint.
    pub async fn cite(
        &self,
        pool: Pool,
        fingerprint: Fingerprint,
        mut record: impl FnMut() -> Result<String>,
    ) -> String {
        // Callers who cite the same moment at once share one record.
        let _turn = match &self.store {
            Some(store) if store.recent(pool, &fingerprint).is_none() => {
                match tokio::time::timeout(PATIENCE, store.turn(&fingerprint).lock()).await {
                    Ok(turn) => Some(turn),
                    Err(_) => return self.links.citation(&fingerprint.id, None),
                }
            }
            _ => None,
        };
        // One document has one address.
        self.cite_all(pool, vec![fingerprint], |_| record()).await.remove(0)
    }

    /// The same for several documents at once; `record` gets the place in the list.
    pub async fn cite_all(
        &self,
        pool: Pool,
        documents: Vec<Fingerprint>,
        record: impl FnMut(usize) -> Result<String>,
    ) -> Vec<String> {
        let tokens = match &self.store {
            Some(store) => store.tokens(pool, &documents, record).await,
            None => vec![None; documents.len()],
        };
        let address = |(document, token): (&Fingerprint, Option<Token>)| match token {
            Some(record) => self.links.record(&document.id, &record.to_string()),
            None => self.links.citation(&document.id, None),
        };
        documents.iter().zip(tokens).map(address).collect()
    }

    pub async fn cited(&self, id: &DocumentId, record: &str) -> Result<Option<Cited>> {
        let Some(store) = &self.store else {
            return Ok(None);
        };
        let (citations, named, token) = (store.citations.clone(), id.clone(), record.to_owned());
        let looked = tokio::task::spawn_blocking(move || citations.lookup(&named, &token)).await;
        let mut cited =
            looked.map_err(|error| Error::internal("a citation could not be looked up").caused_by(error))??;
        if let Cited::Kept { document, .. } = &mut cited {
            document.url = Some(self.links.record(id, record));
        }
        Ok(Some(cited))
    }
}

impl Store {
    /// The record of each document, if it could be stored.
    async fn tokens(
        &self,
        pool: Pool,
        documents: &[Fingerprint],
        mut record: impl FnMut(usize) -> Result<String>,
    ) -> Vec<Option<Token>> {
        let mut tokens: Vec<_> = documents.iter().map(|document| self.recent(pool, document)).collect();
        let (mut places, mut records) = (Vec::new(), Vec::new());
        for place in (0..documents.len()).filter(|place| tokens[*place].is_none()) {
            match record(place) {
                Ok(record) => {
                    places.push(place);
                    records.push(record);
                }
                Err(error) => tracing::warn!(%error, "cannot store a citation"),
            }
        }
        if records.is_empty() {
            return tokens;
        }
        match self.write(pool, records).await {
            Ok(stored) => {
                for (place, token) in places.into_iter().zip(stored) {
                    self.remember(pool, &documents[place], token);
                    tokens[place] = Some(token);
                }
            }
            Err(error) => tracing::warn!(%error, "cannot store a citation"),
        }
        tokens
    }

    /// Returns once the records are written. A slow disk holds up to [`MAX_WAITING`] blocking threads, and no async one.
    async fn write(&self, pool: Pool, records: Vec<String>) -> Result<Vec<Token>> {
        let permit = Arc::clone(&self.waiting)
            .try_acquire_owned()
            .map_err(|_| Error::unavailable(format!("{MAX_WAITING} citations wait for the disk")))?;
        let citations = self.citations.clone();
        let stored = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            citations.store(&records, pool)
        });
        match tokio::time::timeout(PATIENCE, stored).await {
            Ok(Ok(tokens)) => tokens,
            Ok(Err(error)) => Err(Error::internal("storing a citation failed").caused_by(error)),
            Err(_) => {
                Err(Error::unavailable(format!("the disk has not taken a citation within {} s", PATIENCE.as_secs())))
            }
        }
    }

    fn turn(&self, document: &Fingerprint) -> &tokio::sync::Mutex<()> {
        let mut hasher = DefaultHasher::new();
        document.id.hash(&mut hasher);
        &self.turns[hasher.finish() as usize % TURNS]
    }

    fn recent(&self, pool: Pool, document: &Fingerprint) -> Option<Token> {
        let now = self.citations.clock.monotonic();
        let recent = self.lock();
        let cited = recent.get(&document.id)?;
        let is_fresh = now.saturating_duration_since(cited.at) < SAME_MOMENT;
        (is_fresh && cited.content == document.content && cited.pool.serves(pool)).then_some(cited.token)
    }

    fn remember(&self, pool: Pool, document: &Fingerprint, token: Token) {
        let at = self.citations.clock.monotonic();
        let mut recent = self.lock();
        if recent.len() >= MAX_RECENT {
            recent.clear();
        }
        recent.insert(document.id.clone(), Recent { content: document.content, pool, token, at });
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<DocumentId, Recent>> {
        self.recent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
