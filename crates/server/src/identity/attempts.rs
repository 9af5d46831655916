//! How often a sign-in may fail.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

const WINDOW: Duration = Duration::from_secs(60);
/// Failed attempts within the window, for one name and for all together.
const MAX_OF_ONE: u32 = 5;
const MAX_OF_ALL: u32 = 100;

/// Failed attempts within the last minute. Names that do not exist are counted too.
#[derive(Default)]
pub(super) struct Attempts(Mutex<State>);

#[derive(Default)]
struct State {
    since: Option<Instant>,
    all: u32,
    of_one: HashMap<String, u32>,
}

impl State {
    fn at(&mut self, now: Instant) -> &mut Self {
        if self.since.is_none_or(|since| now.saturating_duration_since(since) >= WINDOW) {
            *self = Self { since: Some(now), ..Self::default() };
        }
        self
    }
}

impl Attempts {
    pub(super) fn may_try(&self, name: &str, now: Instant) -> bool {
        let mut state = self.0.lock();
        let state = state.at(now);
        state.all < MAX_OF_ALL && state.of_one.get(name).is_none_or(|failed| *failed < MAX_OF_ONE)
    }

    pub(super) fn failed(&self, name: &str, now: Instant) {
        let mut state = self.0.lock();
        let state = state.at(now);
        state.all += 1;
        // Bounded by `MAX_OF_ALL`, and a name by the form that it came from.
        *state.of_one.entry(name.to_owned()).or_default() += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_limited_for_a_minute() {
        let (attempts, start) = (Attempts::default(), Instant::now());
        for _ in 0..MAX_OF_ONE {
            assert!(attempts.may_try("ann", start));
            attempts.failed("ann", start);
        }
        assert!(!attempts.may_try("ann", start));
        assert!(attempts.may_try("ben", start));
        assert!(attempts.may_try("ann", start + WINDOW));
        for guess in 0..MAX_OF_ALL {
            attempts.failed(&guess.to_string(), start + WINDOW);
        }
        assert!(!attempts.may_try("ben", start + WINDOW));
    }
}
