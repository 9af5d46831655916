//! A backend that does not answer is left alone for a while, and then tried by one call alone.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tribune_core::Clock;

use super::Unavailable;

/// Failures in a row after which calls are not let through.
const PATIENCE: u32 = 3;
const FIRST_PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

pub(super) struct Breaker {
    clock: Arc<dyn Clock>,
    /// What it guards, for metrics and logs.
    side: &'static str,
    state: Mutex<State>,
}

enum State {
    Closed { failures: u32 },
    Open(Pause),
}

struct Pause {
    length: Duration,
    until: Instant,
    /// Whether a call is on its way to find out.
    trying: bool,
    reason: Unavailable,
}

impl Breaker {
    pub(super) fn new(side: &'static str, clock: Arc<dyn Clock>) -> Self {
        metrics::gauge!("tribune_report_cache_breaker_open", "side" => side).set(0.0);
        Self {
            clock,
            side,
            state: Mutex::new(State::Closed { failures: 0 }),
        }
    }

    /// Lets a call through, or says why the last one failed. While the backend is left alone nobody waits for it;
    /// after the pause one call at a time tries.
    pub(super) fn enter(&self) -> Result<Pass<'_>, Unavailable> {
        let trial = match &mut *self.state() {
            State::Closed { .. } => false,
            State::Open(pause) if pause.trying || self.clock.monotonic() < pause.until => {
                return Err(pause.reason.clone());
            }
            State::Open(pause) => {
                pause.trying = true;
                true
            }
        };
        Ok(Pass { breaker: self, trial })
    }

    fn closed(&self) {
        let mut state = self.state();
        if matches!(*state, State::Open(_)) {
            metrics::gauge!("tribune_report_cache_breaker_open", "side" => self.side).set(0.0);
            tracing::info!(side = self.side, "the report cache answers again");
        }
        *state = State::Closed { failures: 0 };
    }

    fn failed(&self, trial: bool, reason: Unavailable) {
        let mut state = self.state();
        let pause = match &mut *state {
            State::Closed { failures } => {
                *failures += 1;
                if *failures < PATIENCE {
                    return;
                }
                metrics::gauge!("tribune_report_cache_breaker_open", "side" => self.side).set(1.0);
                tracing::warn!(side = self.side, %reason, "the report cache is left alone for a moment");
                FIRST_PAUSE
            }
            State::Open(pause) if trial => (pause.length * 2).min(LONGEST_PAUSE),
            // Calls that were on their way when it opened say nothing new.
            State::Open(_) => return,
        };
        *state = State::Open(Pause {
            length: pause,
            until: self.clock.monotonic() + pause,
            trying: false,
            reason,
        });
    }

    /// A call that was given up has found out nothing: the next one may try.
    fn given_up(&self) {
        if let State::Open(pause) = &mut *self.state() {
            pause.trying = false;
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A call that was let through; dropped without a word it counts for nothing.
#[must_use]
pub(super) struct Pass<'a> {
    breaker: &'a Breaker,
    trial: bool,
}

impl Pass<'_> {
    pub(super) fn succeeded(mut self) {
        self.trial = false;
        self.breaker.closed();
    }

    pub(super) fn failed(mut self, reason: Unavailable) {
        let trial = std::mem::take(&mut self.trial);
        self.breaker.failed(trial, reason);
    }
}

impl Drop for Pass<'_> {
    fn drop(&mut self) {
        if self.trial {
            self.breaker.given_up();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rest::testing::ManualClock;

    struct Scene {
        clock: Arc<ManualClock>,
        breaker: Breaker,
    }

    fn scene() -> Scene {
        let clock = Arc::new(ManualClock::at(0));
        let breaker = Breaker::new("test", clock.clone());
        Scene { clock, breaker }
    }

    fn reason(text: &str) -> Unavailable {
        Unavailable(text.to_owned())
    }

    impl Scene {
        fn fail(&self, text: &str) {
            self.breaker.enter().expect("let through").failed(reason(text));
        }

        fn refused(&self) -> Option<String> {
            self.breaker.enter().err().map(|reason| reason.0)
        }
    }

    #[test]
    fn it_opens_after_failures_in_a_row_and_gives_the_last_reason() {
        let scene = scene();
        scene.fail("one");
        scene.fail("two");
        scene.breaker.enter().expect("closed").succeeded();
        scene.fail("three");
        scene.fail("four");
        assert_eq!(scene.refused(), None);
        scene.fail("five");
        assert_eq!(scene.refused().as_deref(), Some("five"));
    }

    #[test]
    fn one_call_tries_after_the_pause_and_success_closes() {
        let scene = scene();
        (0..3).for_each(|_| scene.fail("down"));
        scene.clock.advance_ms(249);
        assert_eq!(scene.refused().as_deref(), Some("down"));
        scene.clock.advance_ms(1);
        let trial = scene.breaker.enter().expect("the pause is over");
        assert_eq!(scene.refused().as_deref(), Some("down"), "one at a time");
        trial.succeeded();
        assert_eq!(scene.refused(), None);
        scene.fail("again");
        assert_eq!(scene.refused(), None, "failures are counted anew");
    }

    #[test]
    fn pauses_double_up_to_the_longest() {
        let scene = scene();
        (0..3).for_each(|_| scene.fail("down"));
        for pause in [250, 500, 1_000, 2_000, 2_000] {
            scene.clock.advance_ms(pause - 1);
            assert!(scene.refused().is_some(), "{pause}");
            scene.clock.advance_ms(1);
            scene.fail("still down");
        }
    }

    #[test]
    fn calls_on_their_way_when_it_opens_do_not_lengthen_the_pause() {
        let scene = scene();
        let calls: Vec<_> = (0..100).map(|_| scene.breaker.enter().expect("closed")).collect();
        calls.into_iter().for_each(|call| call.failed(reason("slow")));
        scene.clock.advance_ms(250);
        assert_eq!(scene.refused(), None);
    }

    #[test]
    fn a_late_success_closes_it() {
        let scene = scene();
        let slow = scene.breaker.enter().expect("closed");
        (0..3).for_each(|_| scene.fail("down"));
        slow.succeeded();
        assert_eq!(scene.refused(), None);
    }

    #[test]
    fn a_trial_that_is_given_up_leaves_room_for_the_next() {
        let scene = scene();
        (0..3).for_each(|_| scene.fail("down"));
        scene.clock.advance_ms(250);
        drop(scene.breaker.enter().expect("the pause is over"));
        assert_eq!(scene.refused(), None);
    }
}
