//! What the feed is started with.

use std::time::Duration;

#[derive(Debug, Clone)]
pub struct Settings {
    pub stream_url: String,
    /// A connection is replaced before the exchange ends it, which it does after a day.
    pub rotate_after: Duration,
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
            max_books: 200,
            idle_after: Duration::from_secs(600),
        }
    }
}
