//! A circuit breaker: a backend that does not answer is left alone for a moment, then tried by one call.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tribune_core::Clock;

use super::Unavailable;

/// Failures in a row that open it.
const MAX_FAILURES: u32 = 3;
const PAUSE: Duration = Duration::from_millis(250);

pub(super) struct Breaker {
    clock: Arc<dyn Clock>,
    /// What it guards, for metrics and logs.
    side: &'static str,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Calls in a row that got no answer.
    failures: u32,
    /// While it is open: when the next call may try, and why the last one failed.
    open: Option<(Instant, Unavailable)>,
}

impl Breaker {
    pub(super) fn new(side: &'static str, clock: Arc<dyn Clock>) -> Self {
        metrics::gauge!("tribune_report_cache_breaker_open", "side" => side).set(0.0);
        Self { clock, side, state: Mutex::default() }
    }

    /// Lets a call through, or says why the last one failed. While it is open, one call per pause tries.
    pub(super) fn enter(&self) -> Result<(), Unavailable> {
        let now = self.clock.monotonic();
        match &mut self.state().open {
            Some((until, reason)) if now < *until => Err(reason.clone()),
            Some((until, _)) => {
                *until = now + PAUSE;
                Ok(())
            }
            None => Ok(()),
        }
    }

    pub(super) fn succeeded(&self) {
        let mut state = self.state();
        state.failures = 0;
        if state.open.take().is_some() {
            metrics::gauge!("tribune_report_cache_breaker_open", "side" => self.side).set(0.0);
            tracing::info!(side = self.side, "the report cache answers again");
        }
    }

    pub(super) fn failed(&self, reason: Unavailable) {
        let mut state = self.state();
        state.failures = state.failures.saturating_add(1);
        if state.failures < MAX_FAILURES {
            return;
        }
        if state.open.is_none() {
            metrics::gauge!("tribune_report_cache_breaker_open", "side" => self.side).set(1.0);
            tracing::warn!(side = self.side, %reason, "the report cache does not answer; calls fail at once for a moment");
        }
        state.open = Some((self.clock.monotonic() + PAUSE, reason));
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tribune_binance::testing::ManualClock;

    struct Scene {
        clock: Arc<ManualClock>,
        breaker: Breaker,
    }

    fn scene() -> Scene {
        let clock = Arc::new(ManualClock::at(0));
        let breaker = Breaker::new("test", clock.clone());
        Scene { clock, breaker }
    }

    impl Scene {
        fn fail(&self, text: &str) {
            self.breaker.enter().expect("let through");
            self.breaker.failed(Unavailable(text.to_owned()));
        }

        fn refused(&self) -> Option<String> {
            self.breaker.enter().err().map(|reason| reason.0)
        }
    }

    #[test]
    fn failures_in_a_row_open_it() {
        let scene = scene();
        scene.fail("one");
        scene.fail("two");
        scene.breaker.succeeded();
        scene.fail("three");
        scene.fail("four");
        assert_eq!(scene.refused(), None);
        scene.fail("five");
        assert_eq!(scene.refused().as_deref(), Some("five"));
    }

    #[test]
    fn one_call_tries_after_a_pause() {
        let scene = scene();
        (0..3).for_each(|_| scene.fail("down"));
        scene.clock.advance_ms(249);
        assert_eq!(scene.refused().as_deref(), Some("down"));
        scene.clock.advance_ms(1);
        assert_eq!(scene.refused(), None, "the pause is over");
        assert_eq!(scene.refused().as_deref(), Some("down"), "one at a time");
        scene.breaker.succeeded();
        assert_eq!(scene.refused(), None);
        scene.fail("again");
        assert_eq!(scene.refused(), None, "failures are counted anew");
    }

    #[test]
    fn failed_trial_starts_another_pause() {
        let scene = scene();
        (0..3).for_each(|_| scene.fail("down"));
        for _ in 0..5 {
            scene.clock.advance_ms(250);
            scene.fail("still down");
            assert_eq!(scene.refused().as_deref(), Some("still down"));
        }
    }

    #[test]
    fn cancelled_trial_leaves_room_for_the_next() {
        let scene = scene();
        (0..3).for_each(|_| scene.fail("down"));
        scene.clock.advance_ms(250);
        assert_eq!(scene.refused(), None, "this one never says how it ended");
        scene.clock.advance_ms(250);
        assert_eq!(scene.refused(), None);
    }

    #[test]
    fn late_success_closes_it() {
        let scene = scene();
        scene.breaker.enter().expect("closed");
        (0..3).for_each(|_| scene.fail("down"));
        scene.breaker.succeeded();
        assert_eq!(scene.refused(), None);
    }
}
