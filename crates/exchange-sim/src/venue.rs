//! The exchange's whole state, shared by REST and streams.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use serde::Serialize;
use tokio_util::sync::CancellationToken;

use crate::account::Accounts;
use crate::api::error::ApiError;
use crate::clock::Clock;
use crate::markets::Markets;
use crate::replay::Progress;
use crate::settings::{Limits, Settings};
use crate::simulated::SharedInstrument;
use crate::weight::WeightMeter;

const FIVE_MINUTES: Duration = Duration::from_secs(300);
/// Requests of further paths are counted as `other`.
const MAX_PATHS: usize = 100;

/// What the exchange did so far, as tests and `/sim/state` read it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
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

#[derive(Debug)]
pub struct Venue {
    pub markets: Arc<Markets>,
    /// Weight is counted in real minutes, however fast a recording is played.
    pub meter_clock: Clock,
    pub meter: Mutex<WeightMeter>,
    pub limits: Limits,
    pub stopping: CancellationToken,
    pub replay: Option<Arc<Progress>>,
    pub accounts: Accounts,
    /// Those of requests; the hub counts connections and messages.
    counts: Mutex<Counts>,
    connects: Mutex<Vec<Instant>>,
}

impl Venue {
    /// `replay` is the progress of a recording; without one the markets are simulated.
    pub fn new(settings: &Settings, markets: Arc<Markets>, replay: Option<Arc<Progress>>) -> Self {
        Self {
            meter_clock: Clock::starting_at(markets.clock.nanos(), 1.0),
            markets,
            meter: Mutex::default(),
            limits: settings.limits.clone(),
            stopping: CancellationToken::new(),
            replay,
            accounts: Accounts::new(&settings.api_keys),
            counts: Mutex::default(),
            connects: Mutex::default(),
        }
    }

    /// The value of the `X-Tribune-Simulated` header.
    pub fn label(&self) -> &'static str {
        if self.replay.is_some() { "replay" } else { "simulated" }
    }

    pub fn find(&self, symbol: &str) -> Result<&SharedInstrument, ApiError> {
        self.markets.lookup(symbol).ok_or_else(ApiError::invalid_symbol)
    }

    pub fn counts(&self) -> Counts {
        let (connections, connections_accepted, messages_sent) = self.markets.hub.counts();
        Counts { connections, connections_accepted, messages_sent, ..self.counts.lock().clone() }
    }

    pub fn count(&self, change: impl FnOnce(&mut Counts)) {
        change(&mut self.counts.lock());
    }

    /// Counts a new connection; returns false if there were too many.
    pub fn admit(&self) -> bool {
        let mut connects = self.connects.lock();
        let now = Instant::now();
        connects.retain(|time| now.duration_since(*time) < FIVE_MINUTES);
        let is_admitted = connects.len() < self.limits.connects_per_five_minutes;
        if is_admitted {
            connects.push(now);
        }
        is_admitted
    }
}

impl Counts {
    pub fn add_request(&mut self, path: String) {
        let has_room = self.requests.contains_key(&path) || self.requests.len() < MAX_PATHS;
        let path = if has_room { path } else { "other".to_owned() };
        *self.requests.entry(path).or_default() += 1;
    }
}
