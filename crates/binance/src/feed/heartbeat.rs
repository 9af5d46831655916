//! When a connection last brought market data.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Written by a connection's shard, read for every book on it. Messages of one connection come in order, so the last
/// one proves that nothing before it is missing.
#[derive(Debug)]
pub struct Heartbeat {
    start: Instant,
    millis: AtomicU64,
    /// How far behind the exchange's clock the last event with a time was.
    lag_ms: AtomicU64,
}

impl Heartbeat {
    pub fn new(start: Instant) -> Self {
        Self { start, millis: AtomicU64::new(0), lag_ms: AtomicU64::new(0) }
    }

    pub fn beat(&self, now: Instant) {
        let millis = now.saturating_duration_since(self.start).as_millis();
        self.millis.store(u64::try_from(millis).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    pub fn last(&self) -> Instant {
        self.start + Duration::from_millis(self.millis.load(Ordering::Relaxed))
    }

    pub fn set_lag(&self, lag: Duration) {
        let millis = u64::try_from(lag.as_millis()).unwrap_or(u64::MAX);
        self.lag_ms.store(millis, Ordering::Relaxed);
    }

    /// How late events arrive, because the connection is read too slowly or delayed on the way.
    pub fn lag(&self) -> Duration {
        Duration::from_millis(self.lag_ms.load(Ordering::Relaxed))
    }
}
