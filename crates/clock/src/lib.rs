//! Time as a parameter, so that everything that depends on it can be tested.

#![allow(clippy::disallowed_methods, reason = "this is where the machine's clock is read")]

mod id;

use std::time::Instant;

use jiff::Timestamp;

pub use id::id_of_time;

pub trait Clock: Send + Sync {
    /// Wall-clock time, for people and records.
    fn now(&self) -> Timestamp;
    /// Monotonic time, for ages and deadlines.
    fn monotonic(&self) -> Instant;
}

/// The machine's own clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }

    fn monotonic(&self) -> Instant {
        Instant::now()
    }
}
