//! What the feed is started with.

use std::time::Duration;

#[derive(Debug, Clone)]
pub struct Settings {
    pub stream_url: String,
    /// A connection is replaced before the exchange ends it, which it does after a day.
    pub rotate_after: Duration,
    /// Of the most traded symbols, snapshots of 5,000 levels are taken; of the others 1,000.
    pub deep_ranks: usize,
    /// Books kept at the same time, pinned ones among them.
    pub max_books: usize,
    /// An unpinned book that is not used for this long is dropped.
    pub idle_after: Duration,
}

impl Settings {
    pub fn new(stream_url: impl Into<String>) -> Self {
        Self {
            stream_url: stream_url.into(),
            rotate_after: Duration::from_secs(23 * 3600 + 1800),
            deep_ranks: 10,
            max_books: 200,
            idle_after: Duration::from_secs(600),
        }
    }

    pub(super) fn snapshot_limit(&self, rank: usize, pinned: bool) -> u32 {
        if pinned && rank < self.deep_ranks { 5_000 } else { 1_000 }
    }
}
