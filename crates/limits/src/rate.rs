//! How often something may happen, for each key.

use std::collections::HashMap;
use std::fmt::Debug;
use std::hash::Hash;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use governor::middleware::StateInformationMiddleware;
use governor::state::keyed::DashMapStateStore;
use governor::{Quota, RateLimiter};
use parking_lot::Mutex;
use sha2::{Digest, Sha256};
use tribune_core::Clock;

use crate::shared::{SharedCounts, secs};

/// Keys beyond which those that have not been used lately are forgotten.
const MANY_KEYS: usize = 10_000;
/// Checks between two looks at the number of keys.
const LOOK_EVERY: u32 = 1_024;

/// Our clock, as the rate limiter reads it.
#[derive(Clone)]
struct Monotonic(Arc<dyn Clock>);

impl governor::clock::Clock for Monotonic {
    type Instant = Instant;

    fn now(&self) -> Instant {
        self.0.monotonic()
    }
}

type Limiter<K> = RateLimiter<K, DashMapStateStore<K>, Monotonic, StateInformationMiddleware>;

/// At most so many at once, and as many more in each period.
pub struct Rate<K: Hash + Eq + Clone> {
    /// `None` limits nothing.
    limiter: Option<Limiter<K>>,
    /// Keys that have used up what they were charged, and until when.
    exhausted: Mutex<HashMap<K, Instant>>,
    checks: AtomicU32,
    clock: Arc<dyn Clock>,
    max: u64,
    period: Duration,
    /// What all nodes count, under the name of this rate.
    shared: Option<(&'static str, Arc<SharedCounts>)>,
}

impl<K: Hash + Eq + Clone + Debug> Rate<K> {
    /// A `max` of 0 limits nothing.
    pub fn new(max: u32, period: Duration, clock: Arc<dyn Clock>) -> Self {
        let quota = NonZeroU32::new(max).and_then(|max| Some(Quota::with_period(period / max.get())?.allow_burst(max)));
        let limiter =
            quota.map(|quota| RateLimiter::dashmap_with_clock(quota, Monotonic(clock.clone())).with_middleware());
        let (exhausted, checks) = (Mutex::default(), AtomicU32::new(0));
        Self { limiter, exhausted, checks, clock, max: max.into(), period, shared: None }
    }

    /// Besides, all nodes together may do it only as often, in each minute, hour or day by the clock.
    pub fn shared(self, name: &'static str, counts: Option<&Arc<SharedCounts>>) -> Self {
        Self { shared: counts.map(|counts| (name, counts.clone())), ..self }
    }

    /// Adds to the count of all nodes in the current window, which begins at the same moment at each of them; the error is
    /// how long to wait, once nothing is left.
    fn add_for_all(&self, key: &K, times: u32) -> Result<(), Duration> {
        let Some((name, counts)) = &self.shared else {
            return Ok(());
        };
        let (now, period) = (secs(&*self.clock), self.period.as_secs());
        let ends = (now / period + 1) * period;
        // Redis must not hold names or addresses.
        let digest: [u8; 32] = Sha256::digest(format!("{name} {ends} {key:?}")).into();
        let digest = digest.first_chunk().map_or(0, |first| u128::from_be_bytes(*first));
        if counts.add(digest, ends, times) < self.max { Ok(()) } else { Err(Duration::from_secs(ends - now)) }
    }

    /// Counts one; the error is how long to wait.
    pub fn take(&self, key: &K) -> Result<(), Duration> {
        let Some(limiter) = &self.limiter else {
            return Ok(());
        };
        self.forget_unused(limiter);
        self.add_for_all(key, 0)?;
        let taken = limiter.check_key(key);
        taken.map_err(|not_until| not_until.wait_time_from(self.clock.monotonic()))?;
        // The last one uses up what is left, and is let through.
        self.add_for_all(key, 1).or(Ok(()))
    }

    /// Whether [`Self::charge`] has left anything; the error is how long to wait.
    pub fn check(&self, key: &K) -> Result<(), Duration> {
        if self.limiter.is_none() {
            return Ok(());
        }
        self.add_for_all(key, 0)?;
        let now = self.clock.monotonic();
        let mut exhausted = self.exhausted.lock();
        match exhausted.get(key) {
            Some(until) if *until > now => Err(*until - now),
            Some(_) => {
                exhausted.remove(key);
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// Counts what has happened already, and cannot be refused.
    pub fn charge(&self, key: &K, times: u32) {
        let Some(limiter) = &self.limiter else {
            return;
        };
        self.forget_unused(limiter);
        self.add_for_all(key, times).ok();
        for _ in 0..times {
            let until = match limiter.check_key(key) {
                Ok(left) if left.remaining_burst_capacity() > 0 => continue,
                Ok(left) => self.clock.monotonic() + left.quota().replenish_interval(),
                Err(not_until) => not_until.earliest_possible(),
            };
            let mut exhausted = self.exhausted.lock();
            if exhausted.len() >= MANY_KEYS {
                let now = self.clock.monotonic();
                exhausted.retain(|_, until| *until > now);
            }
            exhausted.insert(key.clone(), until);
            return;
        }
    }

    fn forget_unused(&self, limiter: &Limiter<K>) {
        let checks = self.checks.fetch_add(1, Ordering::Relaxed);
        if checks.is_multiple_of(LOOK_EVERY) && limiter.len() > MANY_KEYS {
            limiter.retain_recent();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Stopped(Mutex<Instant>);

    impl Clock for Stopped {
        fn now(&self) -> jiff::Timestamp {
            jiff::Timestamp::UNIX_EPOCH
        }

        fn monotonic(&self) -> Instant {
            *self.0.lock()
        }
    }

    fn rate(max: u32) -> (Rate<&'static str>, impl Fn(u64)) {
        let clock = Arc::new(Stopped(Mutex::new(Instant::now())));
        let rate = Rate::new(max, Duration::from_secs(60), clock.clone());
        (rate, move |secs| *clock.0.lock() += Duration::from_secs(secs))
    }

    #[test]
    fn each_key_has_its_own_rate() {
        let (rate, pass) = rate(3);
        for _ in 0..3 {
            assert_eq!(rate.take(&"ann"), Ok(()));
        }
        assert_eq!(rate.take(&"ann"), Err(Duration::from_secs(20)));
        assert_eq!(rate.take(&"ben"), Ok(()));
        pass(20);
        assert_eq!(rate.take(&"ann"), Ok(()));
        assert!(rate.take(&"ann").is_err());
    }

    #[test]
    fn charges_close_until_something_is_left() {
        let (rate, pass) = rate(3);
        rate.charge(&"ann", 2);
        assert_eq!(rate.check(&"ann"), Ok(()));
        rate.charge(&"ann", 7);
        assert_eq!(rate.check(&"ann"), Err(Duration::from_secs(20)));
        assert_eq!(rate.check(&"ben"), Ok(()));
        pass(20);
        assert_eq!(rate.check(&"ann"), Ok(()));
    }

    #[test]
    fn zero_limits_nothing() {
        let (rate, _) = rate(0);
        rate.charge(&"ann", 1_000);
        assert!((0..1_000).all(|_| rate.take(&"ann").is_ok()));
        assert_eq!(rate.check(&"ann"), Ok(()));
    }

    #[test]
    fn unused_keys_are_forgotten() {
        let clock = Arc::new(Stopped(Mutex::new(Instant::now())));
        let rate = Rate::new(1, Duration::from_secs(60), clock.clone());
        for key in 0..2 * MANY_KEYS {
            assert_eq!(rate.take(&key), Ok(()));
        }
        *clock.0.lock() += Duration::from_secs(120);
        for _ in 0..LOOK_EVERY {
            let _ = rate.take(&0);
        }
        assert!(rate.limiter.as_ref().is_some_and(|limiter| limiter.len() <= MANY_KEYS));
    }
}
