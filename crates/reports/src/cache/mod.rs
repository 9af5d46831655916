//! Where reports are kept, and who may write which: in this process's memory, or in Redis for several.
//!
//! - `memory`, `redis`: the two caches; one contract suite tests both

mod memory;
mod redis;

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use tribune_core::Error;

use super::model::Report;

pub use self::redis::RedisCache;
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
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeId(pub Arc<str>);

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A fencing token: grows with every change of the writer of a symbol; writes with a smaller one are refused.
pub type Token = u64;

/// The largest token. Lua's numbers are exact up to about here, and tokens are close to milliseconds since 1970, so a
/// larger one is not ours.
pub const MAX_TOKEN: Token = 1 << 52;

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

/// A report, and how long ago it was generated, at most.
#[derive(Debug, Clone)]
pub struct Stored {
    pub report: Arc<Report>,
    pub age: Duration,
}

/// What is stored under a symbol.
#[derive(Debug, Clone)]
pub enum Found {
    Report(Stored),
    Nothing,
    /// Not a report; the text says what it is.
    Garbage(String),
}

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
    /// The largest token that this node has seen of the symbol: the next one is larger, even if the cache has
    /// forgotten everything. Above [`MAX_TOKEN`] it counts as 0: nobody can have had it.
    pub floor: Token,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lease {
    /// This node writes the symbol from now on, with a token that nobody had before.
    Taken { token: Token },
    /// This node still writes it. The token is unknown to the node if the answer that granted it was lost.
    Renewed { token: Token },
    /// Another node writes it.
    Other { token: Token },
}

#[derive(Debug, Clone)]
pub struct Write {
    /// Its writer's token and sequence decide whether it is stored.
    pub report: Arc<Report>,
    /// When it was generated, by this process's monotonic clock.
    pub generated: Instant,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Written {
    Stored,
    /// Another node or none has the lease, or a newer report is stored already.
    Refused {
        /// The token in force, 0 if there is none.
        token: Token,
    },
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

    /// Takes or renews leases, each for [`Timing::lease`].
    async fn claim(&self, node: &NodeId, claims: &[Claim]) -> Result<Vec<Lease>, Unavailable>;

    /// Each report replaces the one before, if its token is in force and it is newer. It expires [`Timing::keep_report`]
    /// after it was generated.
    async fn write(&self, writes: &[Write]) -> Result<Vec<Written>, Unavailable>;

    /// Releases those leases that are still in force.
    async fn release(&self, node: &NodeId, leases: &[(Arc<str>, Token)]) -> Result<(), Unavailable>;

    /// Where reports are kept, without secrets, for logs and answers.
    fn place(&self) -> &str;
}
