//! When a symbol whose computation panicked is tried again.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

const FIRST_DELAY: Duration = Duration::from_secs(5);
const MAX_DELAY: Duration = Duration::from_secs(300);

/// A panic may come from one state of one book, so the symbol is retried with backoff.
#[derive(Debug, Default)]
pub struct Retry {
    failures: u32,
    due: Option<Instant>,
}

/// The computation panicked.
#[derive(Debug, PartialEq, Eq)]
pub struct Panicked;

impl Retry {
    pub fn is_due(&self, now: Instant) -> bool {
        self.due.is_none_or(|due| now >= due)
    }

    /// Runs `compute`, so that a panic costs this symbol alone, and only for a while.
    pub fn attempt<T>(&mut self, now: Instant, compute: impl FnOnce() -> T) -> Result<T, Panicked> {
        if let Ok(value) = catch_unwind(AssertUnwindSafe(compute)) {
            *self = Self::default();
            return Ok(value);
        }
        let delay = FIRST_DELAY.saturating_mul(2_u32.saturating_pow(self.failures));
        self.due = Some(now + delay.min(MAX_DELAY));
        self.failures = self.failures.saturating_add(1);
        Err(Panicked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fail(retry: &mut Retry, now: Instant) {
        let outcome: Result<(), Panicked> = retry.attempt(now, || panic!("on purpose"));
        assert_eq!(outcome, Err(Panicked));
    }

    #[test]
    fn panicking_report_is_retried_with_backoff() {
        let (start, secs) = (Instant::now(), Duration::from_secs);
        let mut retry = Retry::default();
        assert!(retry.is_due(start));
        fail(&mut retry, start);
        assert!(!retry.is_due(start + secs(4)) && retry.is_due(start + secs(5)));
        fail(&mut retry, start + secs(5));
        assert!(!retry.is_due(start + secs(14)) && retry.is_due(start + secs(15)));
        for _ in 0..100 {
            fail(&mut retry, start);
        }
        assert!(!retry.is_due(start) && retry.is_due(start + MAX_DELAY));
    }

    #[test]
    fn success_ends_the_backoff() {
        let start = Instant::now();
        let mut retry = Retry::default();
        fail(&mut retry, start);
        assert_eq!(retry.attempt(start + FIRST_DELAY, || 7), Ok(7));
        assert!(retry.is_due(start));
        fail(&mut retry, start);
        assert!(retry.is_due(start + FIRST_DELAY));
    }
}
