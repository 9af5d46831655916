//! Where reports are kept, and who may write which: in this process's memory, or in Redis for several.
//!
//! - `memory`, `redis`: the two caches; one suite of tests holds both to what is written here
//! - `breaker`: a backend that does not answer is left alone for a while

mod breaker;
mod memory;
mod redis;

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;

use super::model::Report;

pub use self::redis::{BadUrl, RedisCache};
pub use memory::MemoryCache;

/// How long a report is kept after it was generated.
pub const KEEP_REPORT: Duration = Duration::from_secs(300);
/// How long a lease holds without being renewed.
pub const LEASE: Duration = Duration::from_millis(1_000);
/// A free lease that the node with the first claim leaves for this long is anybody's.
pub const LEFT_FREE: Duration = Duration::from_millis(500);
/// How long a node counts as alive after its last word.
pub const NODE_ALIVE: Duration = Duration::from_millis(1_000);
/// How long a symbol is remembered after its last report.
pub const KEEP_SYMBOL: Duration = Duration::from_secs(24 * 3600);
/// How long whoever reads waits.
pub const READ_WITHIN: Duration = Duration::from_millis(150);
/// How long whoever writes waits.
pub const WRITE_WITHIN: Duration = Duration::from_millis(500);

/// The times above, together: for tests that cannot wait for the real ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timing {
    pub keep_report: Duration,
    pub lease: Duration,
    pub left_free: Duration,
    pub node_alive: Duration,
    pub keep_symbol: Duration,
    pub read_within: Duration,
    pub write_within: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            keep_report: KEEP_REPORT,
            lease: LEASE,
            left_free: LEFT_FREE,
            node_alive: NODE_ALIVE,
            keep_symbol: KEEP_SYMBOL,
            read_within: READ_WITHIN,
            write_within: WRITE_WITHIN,
        }
    }
}

/// One process that writes reports; never two processes the same, nor one process twice.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(pub Arc<str>);

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Grows with every change of the writer of a symbol; what comes with a smaller one is refused.
pub type Token = u64;

/// No token is larger: numbers are exact in scripts only up to about here, and tokens are milliseconds since 1970
/// or little more. What claims to have a larger one is not ours.
pub const MAX_TOKEN: Token = 1 << 52;

/// The cache does not answer as it should: what happened, for the operator and the caller.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unavailable(pub String);

/// A report, and how long ago it was generated: never less than that.
#[derive(Debug, Clone)]
pub struct Stored {
    pub report: Arc<Report>,
    pub age: Duration,
}

/// What is kept under a symbol.
#[derive(Debug, Clone)]
pub enum Found {
    Report(Stored),
    Nothing,
    /// Something else than a report, and what is wrong with it.
    Garbage(String),
}

/// A symbol of which there is or was a report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Indexed {
    pub symbol: Arc<str>,
    pub base: Arc<str>,
    pub quote: Arc<str>,
    /// How long ago its last report was written.
    pub age: Duration,
}

/// How much a node wants a symbol that it does not write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Eagerness {
    /// It is the first choice: takes it if it is free, and says so if another has it.
    First,
    /// Takes it only if it was left free for [`LEFT_FREE`], counted from the first claim of a symbol that nobody
    /// ever had: otherwise all nodes that start together would take each other's symbols.
    IfLeft,
}

#[derive(Debug, Clone)]
pub struct Claim {
    pub symbol: Arc<str>,
    pub eagerness: Eagerness,
    /// Whether the node has what it takes to write the symbol now. One that has may take a lease from one that says
    /// that it has not.
    pub is_fresh: bool,
    /// The largest token that this node has seen of the symbol: the next one is larger, even if the cache has
    /// forgotten everything. Above [`MAX_TOKEN`] it counts as 0: nobody can have had it.
    pub floor: Token,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lease {
    /// This node writes the symbol from now on, with a token that nobody had before.
    Taken {
        token: Token,
    },
    /// This node still writes it. It may have a token that the node does not know, if the answer with which it was
    /// taken got lost.
    Renewed {
        token: Token,
        /// The node whose first choice it is, if that has asked for it within [`NODE_ALIVE`].
        wanted_by: Option<NodeId>,
    },
    Other {
        node: NodeId,
        token: Token,
    },
    /// Nobody writes it, and it is not this node's turn.
    Free,
}

#[derive(Debug, Clone)]
pub struct Write {
    /// Its writer's token and sequence decide whether it is taken.
    pub report: Arc<Report>,
    /// When it was generated, by this process's monotonic clock.
    pub generated: Instant,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Written {
    Stored,
    /// Another has the lease, or nobody, or a newer report of the same writer is there already.
    Refused {
        /// The token that is in force, 0 if there is none.
        token: Token,
    },
}

/// Reports by symbol, leases by symbol, and the nodes that are alive.
///
/// All times are of one clock, the cache's own, so that nodes whose clocks differ agree on who is alive and who
/// may write. Answers come in the order of what was asked.
#[async_trait]
pub trait ReportCache: Send + Sync {
    async fn read(&self, symbols: &[Arc<str>]) -> Result<Vec<Found>, Unavailable>;

    /// Every symbol that was written within [`KEEP_SYMBOL`], by name.
    async fn indexed(&self) -> Result<Vec<Indexed>, Unavailable>;

    /// Says that this node is alive and can write; gives every node that has said so within [`NODE_ALIVE`].
    /// A node that only asks says nothing of itself.
    async fn nodes(&self, alive: Option<&NodeId>) -> Result<Vec<NodeId>, Unavailable>;

    /// Takes or renews leases, each for [`LEASE`].
    async fn claim(&self, node: &NodeId, claims: &[Claim]) -> Result<Vec<Lease>, Unavailable>;

    /// Each report replaces the one before, if its token is in force and it is newer. It is gone [`KEEP_REPORT`]
    /// after it was generated.
    async fn write(&self, writes: &[Write]) -> Result<Vec<Written>, Unavailable>;

    /// Gives leases up, those of them that are still in force, and the node's place among the living.
    async fn release(&self, node: &NodeId, leases: &[(Arc<str>, Token)], leaving: bool) -> Result<(), Unavailable>;

    /// For logs and answers: where reports are kept, without secrets.
    fn place(&self) -> &str;
}
