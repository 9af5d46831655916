//! The exchange's clock. It starts at a given time and runs at a given pace, which a replay changes.

use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::interval::Millis;

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
        *self.0.lock() = Anchor::now(time, pace);
    }

    pub fn nanos(&self) -> Nanos {
        let anchor = *self.0.lock();
        let elapsed = anchor.real.elapsed().as_nanos() as f64 * anchor.pace;
        anchor.time.saturating_add(elapsed as Nanos)
    }

    pub fn millis(&self) -> Millis {
        self.nanos() / 1_000_000
    }

    /// How long until it is `time`; `None` if the clock is stopped before it.
    pub fn until(&self, time: Nanos) -> Option<Duration> {
        let ahead = time.saturating_sub(self.nanos()).max(0);
        let pace = self.0.lock().pace;
        if ahead == 0 {
            return Some(Duration::ZERO);
        }
        (pace > 0.0).then(|| Duration::from_nanos((ahead as f64 / pace) as u64))
    }
}
