//! Counters of the exchange, as tests and `/sim/state` read them.

use std::collections::BTreeMap;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::Serialize;

use crate::venue::Venue;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Requests by path.
    pub requests: BTreeMap<String, u64>,
    /// Their total weight.
    pub weight: u64,
    /// Answers 429 and 418 because a client really was over the limit.
    pub organic_429: u64,
    pub organic_418: u64,
    /// Answers rejected by an injected fault.
    pub injected_rejections: u64,
    /// Open stream connections, and all that were ever accepted.
    pub connections: usize,
    pub connections_accepted: u64,
    pub messages_sent: u64,
}

impl Counts {
    pub(crate) fn current(venue: &Venue) -> Self {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let counters = &venue.counters;
        Self {
            requests: counters.requests.lock().unwrap_or_else(PoisonError::into_inner).clone(),
            weight: load(&counters.weight_total),
            organic_429: load(&counters.organic_429),
            organic_418: load(&counters.organic_418),
            injected_rejections: load(&counters.injected),
            connections: venue.markets.hub.connections(),
            connections_accepted: venue.markets.hub.connections_accepted(),
            messages_sent: venue.markets.hub.messages_sent(),
        }
    }
}
