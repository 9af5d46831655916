//! Settings of an exchange.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use crate::interval::Millis;

#[derive(Debug, Clone)]
pub struct Settings {
    /// The address to listen on; port 0 takes a free port.
    pub listen: SocketAddr,
    pub mode: Mode,
    pub limits: Limits,
    /// API keys that may trade, each with its own balances. Simulated mode only.
    pub api_keys: Vec<ApiKey>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            mode: Mode::Simulated(Simulation::default()),
            limits: Limits::default(),
            api_keys: Vec::new(),
        }
    }
}

#[derive(Debug, Clone)]
pub enum Mode {
    Simulated(Simulation),
    /// Files of recorded lines, `<receive_ns> <json>`, plain or gzipped, merged by time.
    Replay {
        files: Vec<PathBuf>,
        /// 1 is the recorded pace; 0 or infinity is as fast as clients can read.
        speed: f64,
    },
}

#[derive(Debug, Clone)]
pub struct Simulation {
    pub seed: u64,
    /// The clock's time at the start; `None` takes the machine's.
    pub start: Option<Millis>,
    /// Orders and cancellations per second of each well-known symbol.
    pub events_per_second: f64,
    /// Levels per side of a well-known symbol's first book.
    pub levels: usize,
    /// Additional quiet symbols with invented names.
    pub extra_symbols: usize,
    pub extra_events_per_second: f64,
    pub extra_levels: usize,
    /// Minutes of generated history before the start.
    pub history_minutes: usize,
    /// How long the markets have traded when the exchange opens.
    pub warm_up: Duration,
}

impl Default for Simulation {
    fn default() -> Self {
        Self {
            seed: 1,
            start: None,
            events_per_second: 20.0,
            levels: 1_200,
            extra_symbols: 0,
            extra_events_per_second: 0.05,
            extra_levels: 20,
            history_minutes: 8 * 24 * 60,
            warm_up: Duration::from_secs(120),
        }
    }
}

/// Limits of the exchange. The defaults are Binance's.
#[derive(Debug, Clone)]
pub struct Limits {
    pub weight_per_minute: u32,
    /// Rejections with 429 in one minute before the address is banned with 418.
    pub rejections_before_ban: u32,
    pub ban: Duration,
    pub ping_every: Duration,
    pub pong_within: Duration,
    pub connection_lifetime: Duration,
    /// How long before its end a connection receives `serverShutdown`.
    pub shutdown_notice: Duration,
    pub inbound_per_second: usize,
    pub streams_per_connection: usize,
    pub connects_per_five_minutes: usize,
    /// How long a replay at full speed waits for a client: to fetch its first snapshot, or to read what it was sent.
    pub client_wait: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            weight_per_minute: 6_000,
            rejections_before_ban: 10,
            ban: Duration::from_secs(120),
            ping_every: Duration::from_secs(20),
            pong_within: Duration::from_secs(60),
            connection_lifetime: Duration::from_secs(24 * 60 * 60),
            shutdown_notice: Duration::from_secs(10),
            inbound_per_second: 5,
            streams_per_connection: 1_024,
            connects_per_five_minutes: 300,
            client_wait: Duration::from_secs(10),
        }
    }
}

/// An API key, its secret and its balances: asset and decimal amount.
#[derive(Clone)]
pub struct ApiKey {
    pub key: String,
    pub secret: String,
    pub balances: Vec<(String, String)>,
}

impl std::fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ApiKey").field("key", &self.key).finish_non_exhaustive()
    }
}
