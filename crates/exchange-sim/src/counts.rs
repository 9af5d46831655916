//! What the exchange has counted so far.

use std::collections::BTreeMap;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::Serialize;

use crate::venue::Venue;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Requests by path.
    pub requests: BTreeMap<String, u64>,
    /// The weight of all of them.
    pub weight: u64,
    /// Answers 429 and 418 because a client was really over the limit.
    pub organic_429: u64,
    pub organic_418: u64,
    /// Answers that a fault rejected.
    pub injected_rejections: u64,
    /// Stream connections that are open, and that ever were.
    pub connections: usize,
    pub connections_accepted: u64,
    pub messages_sent: u64,
}

impl Counts {
    pub(crate) fn of(venue: &Venue) -> Self {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let tally = &venue.tally;
        Self {
            requests: tally.requests.lock().unwrap_or_else(PoisonError::into_inner).clone(),
            weight: load(&tally.weight_total),
            organic_429: load(&tally.organic_429),
            organic_418: load(&tally.organic_418),
            injected_rejections: load(&tally.injected),
            connections: venue.hub.connections(),
            connections_accepted: venue.hub.connections_accepted(),
            messages_sent: venue.hub.messages_sent(),
        }
    }
}
