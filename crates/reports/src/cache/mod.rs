//! Where reports are kept, and who may write which: in this process's memory, or in Redis for several.
//!
//! - `memory`, `redis`: the two caches, tested by one contract suite; leases matter in Redis, where several nodes ask

mod memory;
mod redis;

use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use tribune_core::Error;

use super::aged::AgedReport;
use super::model::Report;

pub use self::redis::{RedisCache, client};
pub use memory::MemoryCache;

/// The times that a cache works with; tests shorten them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timing {
    /// How long a report is kept after it was generated.
    pub keep_report: Duration,
    /// How long a lease holds without being renewed.
    pub lease: Duration,
    /// How long a symbol is remembered after its last report.
    pub keep_symbol: Duration,
    /// How long a reader waits.
    pub read_within: Duration,
    /// How long a writer waits.
    pub write_within: Duration,
}

impl Timing {
    pub const DEFAULT: Self = Self {
        keep_report: Duration::from_secs(300),
        lease: Duration::from_millis(1_000),
        keep_symbol: Duration::from_secs(24 * 3600),
        read_within: Duration::from_millis(150),
        write_within: Duration::from_millis(500),
    };
}

/// One process that writes reports. Every process has an id of its own, also after a restart.
pub type NodeId = Arc<str>;

/// A fencing token: grows with every change of the writer of a symbol; only writes with the one in force are stored.
pub type Token = u64;

/// Why the cache cannot be used now, for the operator and the caller.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unavailable(pub String);

impl From<Unavailable> for Error {
    fn from(unavailable: Unavailable) -> Self {
        Self::unavailable(format!(
            "backend_unavailable: reports cannot be read now: {unavailable}. Ask again in a few seconds."
        ))
    }
}

/// What is stored under a symbol; an error says what is there instead of a report.
pub type Found = Result<Option<AgedReport>, String>;

/// A symbol that has or had a report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Indexed {
    pub symbol: Arc<str>,
    pub base: Arc<str>,
    pub quote: Arc<str>,
    /// How long ago its last report was written.
    pub age: Duration,
}

#[derive(Debug, Clone)]
pub struct Claim {
    pub symbol: Arc<str>,
    /// Whether the node has fresh data of the symbol. Such a node may take the lease from one that has not.
    pub is_fresh: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lease {
    /// This node writes the symbol from now on, with a token that nobody had before.
    Taken(Token),
    /// This node still writes it. The token is unknown to the node if the answer that granted it was lost.
    Renewed(Token),
    /// Another node writes it.
    Other,
}

/// A report, and when it was generated, by this process's monotonic clock.
#[derive(Debug, Clone)]
pub struct Generated {
    pub report: Arc<Report>,
    pub at: Instant,
}

/// Reports by symbol, and leases by symbol.
///
/// All times are of one clock, the cache's own, so that nodes whose clocks differ agree on who
/// may write. Answers come in the order of what was asked.
#[async_trait]
pub trait ReportCache: Send + Sync {
    async fn read(&self, symbols: &[Arc<str>]) -> Result<Vec<Found>, Unavailable>;

    /// Every symbol that was written within [`Timing::keep_symbol`], by name.
    async fn indexed(&self) -> Result<Vec<Indexed>, Unavailable>;

    /// Takes or renews leases, each for [`Timing::lease`] where several nodes share the cache.
    async fn claim(&self, node: &NodeId, claims: &[Claim]) -> Result<Vec<Lease>, Unavailable>;

    /// Each report replaces the one before, if its token is in force and it is no older: one that is sent twice is stored.
    /// It expires [`Timing::keep_report`] after it was generated. Says which were stored.
    async fn write(&self, writes: &[Generated]) -> Result<Vec<bool>, Unavailable>;

    /// Releases those leases that are still in force.
    async fn release(&self, node: &NodeId, leases: &[(Arc<str>, Token)]) -> Result<(), Unavailable>;

    /// Where reports are kept, without secrets, for logs and answers.
    fn place(&self) -> &str;
}
