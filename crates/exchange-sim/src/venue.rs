//! The exchange's whole state, shared by REST and streams.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

use crate::account::Accounts;
use crate::clock::Clock;
use crate::markets::Markets;
use crate::replay::Progress;
use crate::settings::{Limits, Settings};
use crate::weight::WeightMeter;

/// Requests and how they were answered.
#[derive(Debug, Default)]
pub struct Counters {
    pub requests: Mutex<BTreeMap<String, u64>>,
    pub weight_total: AtomicU64,
    pub weight_used: AtomicU64,
    /// Rejections because a client really was over the limit.
    pub organic_429: AtomicU64,
    pub organic_418: AtomicU64,
    /// Rejections by an injected fault.
    pub injected: AtomicU64,
}

impl Counters {
    /// Further paths are counted as `other`.
    const MAX_PATHS: usize = 100;

    pub fn count_request(&self, path: &str) {
        let mut requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        let has_room = requests.contains_key(path) || requests.len() < Self::MAX_PATHS;
        let path = if has_room { path } else { "other" };
        *requests.entry(path.to_owned()).or_default() += 1;
    }

    pub fn add(counter: &AtomicU64, amount: u64) {
        counter.fetch_add(amount, Ordering::Relaxed);
    }
}

#[derive(Debug)]
pub struct Venue {
    pub markets: Arc<Markets>,
    /// Weight is counted in real minutes, however fast a recording is played.
    pub meter_clock: Clock,
    pub meter: WeightMeter,
    pub limits: Limits,
    pub counters: Counters,
    pub stopping: CancellationToken,
    pub replay: Option<Arc<Progress>>,
    pub accounts: Accounts,
    connects: Mutex<HashMap<IpAddr, VecDeque<Instant>>>,
}

const FIVE_MINUTES: Duration = Duration::from_secs(300);
/// Addresses whose connections are counted; on loopback there is one.
const MAX_ADDRESSES: usize = 10_000;

impl Venue {
    /// `replay` is the progress of a recording; without one the markets are simulated.
    pub fn new(settings: &Settings, markets: Arc<Markets>, replay: Option<Arc<Progress>>) -> Self {
        Self {
            meter_clock: Clock::starting_at(markets.clock.nanos(), 1.0),
            markets,
            meter: WeightMeter::new(&settings.limits),
            limits: settings.limits.clone(),
            counters: Counters::default(),
            stopping: CancellationToken::new(),
            replay,
            accounts: Accounts::new(&settings.api_keys),
            connects: Mutex::default(),
        }
    }

    /// The value of the `X-Tribune-Simulated` header.
    pub fn label(&self) -> &'static str {
        if self.replay.is_some() { "replay" } else { "simulated" }
    }

    /// Counts a new connection; returns false if there were too many from this address.
    pub fn admit(&self, address: IpAddr) -> bool {
        let mut connects = self.connects.lock().unwrap_or_else(PoisonError::into_inner);
        if connects.len() >= MAX_ADDRESSES && !connects.contains_key(&address) {
            connects.clear();
        }
        let times = connects.entry(address).or_default();
        let now = Instant::now();
        while times
            .front()
            .is_some_and(|time| now.duration_since(*time) >= FIVE_MINUTES)
        {
            times.pop_front();
        }
        let is_admitted = times.len() < self.limits.connects_per_five_minutes;
        if is_admitted {
            times.push_back(now);
        }
        is_admitted
    }
}
