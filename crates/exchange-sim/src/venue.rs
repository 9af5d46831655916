//! The exchange's whole state, shared by REST, streams and whatever moves the markets.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use indexmap::IndexMap;
use tokio_util::sync::CancellationToken;

use crate::clock::{Clock, Nanos};
use crate::faults::Faults;
use crate::interval::Millis;
use crate::market::Market;
use crate::replay::Progress;
use crate::settings::Limits;
use crate::simulated::engine::Engine;
use crate::stream::hub::Hub;
use crate::weight::Meter;

/// One listed symbol: what clients see, and in simulated mode what moves it.
#[derive(Debug)]
pub struct Listed {
    pub market: Market,
    pub engine: Option<Engine>,
}

pub type Shared = Arc<Mutex<Listed>>;

pub fn lock(listed: &Shared) -> MutexGuard<'_, Listed> {
    listed.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The word of the `X-Tribune-Simulated` header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Label {
    Simulated,
    Replay,
}

impl Label {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Simulated => "simulated",
            Self::Replay => "replay",
        }
    }
}

/// What was asked and how it was answered.
#[derive(Debug, Default)]
pub struct Tally {
    pub requests: Mutex<BTreeMap<String, u64>>,
    pub weight_total: AtomicU64,
    pub weight_used: AtomicU64,
    /// Rejections because a client was really over the limit.
    pub organic_429: AtomicU64,
    pub organic_418: AtomicU64,
    /// Rejections that were asked for as a fault.
    pub injected: AtomicU64,
}

impl Tally {
    /// Paths that are counted by name; the rest are one.
    const MAX_PATHS: usize = 100;

    pub fn count(&self, path: &str) {
        let mut requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        let known = requests.contains_key(path) || requests.len() < Self::MAX_PATHS;
        let path = if known { path } else { "other" };
        *requests.entry(path.to_owned()).or_default() += 1;
    }

    pub fn add(counter: &AtomicU64, amount: u64) {
        counter.fetch_add(amount, Ordering::Relaxed);
    }
}

#[derive(Debug)]
pub struct Venue {
    pub label: Label,
    pub listed: IndexMap<String, Shared>,
    pub hub: Hub,
    pub faults: Arc<Faults>,
    pub clock: Clock,
    /// Weight is counted by real minutes, however fast a recording is played.
    pub meter_clock: Clock,
    pub meter: Meter,
    pub limits: Limits,
    pub tally: Tally,
    pub stopping: CancellationToken,
    pub replay: Option<Arc<Progress>>,
    pub accounts: crate::account::Accounts,
    connects: Mutex<HashMap<IpAddr, VecDeque<Instant>>>,
}

const FIVE_MINUTES: Duration = Duration::from_secs(300);

/// What both modes bring to a new exchange.
pub struct Opening {
    pub label: Label,
    pub listed: IndexMap<String, Shared>,
    pub start: Nanos,
    /// How fast the clock goes at first.
    pub pace: f64,
    pub replay: Option<Arc<Progress>>,
}

impl Venue {
    pub fn open(opening: Opening, hub: Hub, faults: Arc<Faults>, settings: &crate::settings::Settings) -> Self {
        Self {
            label: opening.label,
            listed: opening.listed,
            hub,
            faults,
            clock: Clock::starting_at(opening.start, opening.pace),
            meter_clock: Clock::starting_at(opening.start, 1.0),
            meter: Meter::new(&settings.limits),
            limits: settings.limits.clone(),
            tally: Tally::default(),
            stopping: CancellationToken::new(),
            replay: opening.replay,
            accounts: crate::account::Accounts::new(&settings.api_keys),
            connects: Mutex::default(),
        }
    }

    pub fn lookup(&self, symbol: &str) -> Option<&Shared> {
        self.listed.get(symbol)
    }

    /// The time without skew, by which markets move.
    pub fn now(&self) -> Millis {
        self.clock.millis()
    }

    /// The time as clients are told it.
    pub fn told_time(&self) -> Millis {
        self.hub.event_time(self.now())
    }

    /// Counts a new connection; false if there were too many from this address.
    pub fn admit(&self, address: IpAddr) -> bool {
        let mut connects = self.connects.lock().unwrap_or_else(PoisonError::into_inner);
        let times = connects.entry(address).or_default();
        let now = Instant::now();
        while times
            .front()
            .is_some_and(|time| now.duration_since(*time) >= FIVE_MINUTES)
        {
            times.pop_front();
        }
        let admitted = times.len() < self.limits.connects_per_five_minutes;
        if admitted {
            times.push_back(now);
        }
        admitted
    }
}
