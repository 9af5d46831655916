//! Where records come from.
//!
//! - [`Provider`]: the trait; every provider passes `provider_contract` in the tests;
//! - [`Folder`]: files below a folder, or one file.

mod folder;

use async_trait::async_trait;
use tribune_core::Readers;

pub use folder::{Choice, Folder, Limits};

use crate::format::{Fault, Sink, Stop};

/// Where the records of a corpus come from.
///
/// Each item has a key, and a fingerprint that changes with its contents. An index run lists the keys, reads those
/// with a new fingerprint, and removes those that are gone. `list` and `read` may block: they run on blocking
/// threads.
#[async_trait]
pub trait Provider: Send + Sync {
    /// Changes whenever the same contents would give different records; everything is then read again.
    fn fingerprint(&self) -> String;

    /// All items, in a fixed order. Must be cheap, because it is called often.
    fn list(&self) -> Result<Listing, ProviderError>;

    /// Gives the records of a key to `sink`, with faults for unreadable ones. Returns [`Stop`] when `sink` does.
    fn read(&self, key: &str, sink: &mut dyn Sink) -> Result<(), Stop>;

    /// Why a changed key cannot be read now; its indexed records then stay.
    fn check(&self, _key: &str) -> Result<(), String> {
        Ok(())
    }

    /// Whether a key may have several records, ordered as they are read, even if it is gone.
    fn holds_many(&self, _key: &str) -> bool {
        false
    }

    /// Resolves when something may have changed; the first call resolves at once. May be dropped and
    /// called again at any time.
    async fn changed(&self);

    /// For the operator: a path or URLs.
    fn origin(&self) -> Option<String> {
        None
    }

    /// Why nothing can be read at all, found without reading.
    fn problem(&self) -> Option<String> {
        None
    }

    /// Finds what the operator should correct, such as an unreadable list of readers, without connecting to anything.
    fn mistakes(&self) -> Vec<Fault> {
        Vec::new()
    }

    /// What cannot be read now, for the source's status.
    fn degraded(&self) -> Option<String> {
        None
    }
}

#[derive(Debug, Default)]
pub struct Listing {
    pub items: Vec<Item>,
    /// Keys, or prefixes of keys before a `/`, that cannot be listed now: their indexed records stay.
    pub unreachable: Vec<Unreachable>,
    /// Items that are excluded on purpose, and what is wrong with the listing itself.
    pub excluded: Vec<Fault>,
    /// Files that no format reads.
    pub unread: Vec<String>,
}

#[derive(Debug)]
pub struct Unreachable {
    pub fault: Fault,
    /// Records that others may see too do not stay.
    pub readers: Readers,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    pub key: String,
    /// Changes whenever the contents do.
    pub fingerprint: String,
    /// The approximate size.
    pub bytes: u64,
    /// Who may see its records. Each record can narrow them.
    pub readers: Readers,
}

#[derive(Debug, thiserror::Error)]
pub enum ProviderError {
    /// The source of records is missing; the text says what to do.
    #[error("{0}")]
    Missing(String),
    #[error("{doing} failed")]
    Failed {
        doing: String,
        #[source]
        cause: Box<dyn std::error::Error + Send + Sync>,
    },
}
