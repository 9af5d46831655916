//! What was cited within the last second: the same content cited again gets the same record, without asking the disk.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hasher};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde::Serialize;
use tribune_core::{Clock, DocumentId};

use crate::Token;

/// The same content cited again within this time gets the same record.
pub(crate) const SAME_MOMENT: Duration = Duration::from_secs(1);
/// Ids whose last record is remembered.
const MAX_RECENT: usize = 1_024;

/// Tells two states of a document apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fingerprint {
    id: DocumentId,
    content: u64,
}

impl Fingerprint {
    /// `content` is what differs when the document does.
    pub fn new(id: &DocumentId, content: &impl Serialize) -> Self {
        let mut hash = Hash(DefaultHasher::new());
        // What cannot be written as JSON cannot be stored either, which the record then says.
        let _ = serde_json::to_writer(&mut hash, content);
        Self { id: id.clone(), content: hash.0.finish() }
    }

    pub(crate) const fn id(&self) -> &DocumentId {
        &self.id
    }
}

/// The records of the last second, by document.
pub(crate) struct Recent {
    clock: Arc<dyn Clock>,
    records: Mutex<HashMap<DocumentId, Cited>>,
}

struct Cited {
    content: u64,
    token: Token,
    at: Instant,
}

impl Recent {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, records: Mutex::default() }
    }

    pub(crate) fn token(&self, document: &Fingerprint) -> Option<Token> {
        let now = self.clock.monotonic();
        let records = self.lock();
        let cited = records.get(&document.id)?;
        let is_fresh = now.saturating_duration_since(cited.at) < SAME_MOMENT;
        (is_fresh && cited.content == document.content).then_some(cited.token)
    }

    pub(crate) fn remember(&self, document: Fingerprint, token: Token) {
        let (content, at) = (document.content, self.clock.monotonic());
        let mut records = self.lock();
        if records.len() >= MAX_RECENT {
            records.clear();
        }
        records.insert(document.id, Cited { content, token, at });
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<DocumentId, Cited>> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Hashes what is written to it.
struct Hash(DefaultHasher);

impl io::Write for Hash {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
