//! The state of a connection: when it last brought market data, and why it is missing.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// Written by a connection's shard, read for every book on it. Messages of one connection come in order, so the last
/// one proves that nothing before it is missing.
#[derive(Debug)]
pub(super) struct Link {
    start: Instant,
    millis: AtomicU64,
    /// How far behind the exchange's clock the last event with a time was.
    lag_ms: AtomicU64,
    /// Why there is no connection; `None` while there is one or none is needed.
    trouble: Mutex<Option<String>>,
}

impl Link {
    pub fn new(start: Instant) -> Self {
        Self { start, millis: AtomicU64::new(0), lag_ms: AtomicU64::new(0), trouble: Mutex::default() }
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
    pub fn trouble(&self) -> Option<String> {
        self.trouble.lock().clone()
    }

    pub fn set_trouble(&self, trouble: Option<&str>) {
        *self.trouble.lock() = trouble.map(ToOwned::to_owned);
    }

    /// A connection is needed and not there yet. Why an earlier one failed says more.
    pub fn is_missing(&self) {
        self.trouble.lock().get_or_insert_with(|| "not connected yet".to_owned());
    }
}
