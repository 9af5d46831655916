//! The exchange's clock. It starts at a given time and runs at a given pace, which a replay changes.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::interval::Millis;
use crate::lock::lock;

/// Nanoseconds since 1970.
pub type Nanos = i64;

#[derive(Debug, Clone, Copy)]
struct Anchor {
    real: Instant,
    time: Nanos,
    pace: f64,
}

impl Anchor {
    fn now(time: Nanos, pace: f64) -> Self {
        Self { real: Instant::now(), time, pace }
    }
}

#[derive(Debug)]
pub struct Clock(Mutex<Anchor>);

impl Clock {
    /// A pace of 0 stops the clock.
    pub fn starting_at(time: Nanos, pace: f64) -> Self {
        Self(Mutex::new(Anchor::now(time, pace)))
    }

    pub fn set(&self, time: Nanos, pace: f64) {
        *lock(&self.0) = Anchor::now(time, pace);
    }

    pub fn nanos(&self) -> Nanos {
        let anchor = *lock(&self.0);
        let elapsed = anchor.real.elapsed().as_nanos() as f64 * anchor.pace;
        anchor.time.saturating_add(elapsed as Nanos)
    }

    pub fn millis(&self) -> Millis {
        self.nanos() / 1_000_000
    }

    /// How long until it is `time`; `None` if the clock is stopped before it.
    pub fn until(&self, time: Nanos) -> Option<Duration> {
        let ahead = time.saturating_sub(self.nanos()).max(0);
        let pace = lock(&self.0).pace;
        if ahead == 0 {
            return Some(Duration::ZERO);
        }
        (pace > 0.0).then(|| Duration::from_nanos((ahead as f64 / pace) as u64))
    }
}
