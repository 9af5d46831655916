//! One budget of request weight for the whole process: we stop long before the exchange would stop us.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tribune_core::Clock;

use super::error::RestError;
use crate::model::Millis;

/// What the exchange allows an address in a minute, until it has said so itself.
pub const DEFAULT_BUDGET: u32 = 6_000;
const MINUTE_MS: Millis = 60_000;
/// After the turn of the exchange's minute: our knowledge of its clock is not exact.
const MARGIN: Duration = Duration::from_millis(50);
/// The longest ban there is.
const MAX_PAUSE: Duration = Duration::from_secs(3 * 24 * 3600);
/// Where the exchange does not say how long to wait: its minute, and its shortest ban.
const PAUSE: Duration = Duration::from_secs(60);
const BAN: Duration = Duration::from_secs(120);

/// Who waits for the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Priority {
    /// Nobody: snapshots for books that warm up.
    Background,
    /// Somebody.
    Interactive,
}

impl Priority {
    /// Percent of the budget up to which requests are let through. What background work may not use
    /// is left for people.
    const fn share(self) -> u32 {
        match self {
            Self::Background => 50,
            Self::Interactive => 70,
        }
    }

    pub(super) const fn share_in_words(self) -> &'static str {
        match self {
            Self::Background => "background work may use 50%",
            Self::Interactive => "70% may be used",
        }
    }
}

/// Where our idea of the exchange's clock comes from; better ones replace worse.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Anchoring {
    OwnClock,
    DateHeader,
    ServerTime,
}

#[derive(Debug, Clone, Copy)]
struct Pause {
    until: Instant,
    banned: bool,
}

/// Counts by the exchange's minutes. They are told by the monotonic clock from a point where the
/// exchange's time was known, so that a step of the wall clock cannot begin a minute twice.
#[derive(Debug)]
struct State {
    budget: u32,
    anchor: (Millis, Instant),
    anchoring: Anchoring,
    minute: Millis,
    used: u32,
    /// Of requests that are not answered yet.
    in_flight: u32,
    pause: Option<Pause>,
}

/// Why a request cannot go now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Hold {
    /// Until the exchange's next minute.
    Wait(Duration),
    Never,
    Paused {
        wait: Duration,
        banned: bool,
    },
}

impl State {
    fn exchange_now(&self, now: Instant) -> Millis {
        let (time, at) = self.anchor;
        let since = now.saturating_duration_since(at).as_millis();
        time.saturating_add(Millis::try_from(since).unwrap_or(Millis::MAX))
    }

    /// Begins a new minute if it is time. What is in flight may be counted in it by the exchange.
    fn turn(&mut self, now: Instant) {
        let minute = self.exchange_now(now).div_euclid(MINUTE_MS);
        if minute > self.minute {
            self.minute = minute;
            self.used = self.in_flight;
        }
    }

    const fn most(&self, priority: Priority) -> u32 {
        (self.budget as u64 * priority.share() as u64 / 100) as u32
    }

    fn take(&mut self, weight: u32, priority: Priority, now: Instant) -> Result<(), Hold> {
        self.turn(now);
        if let Some(Pause { until, banned }) = self.pause {
            let wait = until.saturating_duration_since(now);
            if !wait.is_zero() {
                return Err(Hold::Paused { wait, banned });
            }
            self.pause = None;
        }
        let most = self.most(priority);
        if weight > most {
            return Err(Hold::Never);
        }
        match self.used.checked_add(weight) {
            Some(used) if used <= most => {
                self.used = used;
                self.in_flight = self.in_flight.saturating_add(weight);
                Ok(())
            }
            _ => Err(Hold::Wait(self.until_next_minute(now))),
        }
    }

    fn until_next_minute(&self, now: Instant) -> Duration {
        let left = MINUTE_MS - self.exchange_now(now).rem_euclid(MINUTE_MS);
        Duration::from_millis(left.unsigned_abs()) + MARGIN
    }

    /// Says what time it is at the exchange. What was counted stays counted: it may belong to the
    /// minute that this makes the present one. A step back over the turn of a minute does not let the
    /// same minute begin twice.
    fn anchor(&mut self, time: Millis, anchoring: Anchoring, now: Instant) {
        self.turn(now);
        self.anchor = (time, now);
        self.anchoring = anchoring;
        let minute = time.div_euclid(MINUTE_MS);
        if minute.saturating_add(1) != self.minute {
            self.minute = minute;
        }
    }

    /// Takes the exchange's count for ours if it is higher. A count of a minute that is over, by the
    /// answer's own date, says nothing about this one.
    fn correct(&mut self, counted: u32, date: Option<Millis>, now: Instant) {
        self.turn(now);
        let current = date.is_none_or(|date| date.div_euclid(MINUTE_MS) >= self.minute);
        if current {
            self.used = self.used.max(counted);
        }
    }
}

/// What an answer's headers say about the budget.
#[derive(Debug, Clone, Copy, Default)]
pub struct Told {
    /// `X-MBX-USED-WEIGHT-1M`
    pub used_weight: Option<u32>,
    /// `Date`, which has whole seconds.
    pub date: Option<Millis>,
}

pub struct Governor {
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
}

impl Governor {
    pub fn new(clock: Arc<dyn Clock>) -> Arc<Self> {
        let (time, now) = (clock.now().as_millisecond(), clock.monotonic());
        let state = State {
            budget: DEFAULT_BUDGET,
            anchor: (time, now),
            anchoring: Anchoring::OwnClock,
            minute: time.div_euclid(MINUTE_MS),
            used: 0,
            in_flight: 0,
            pause: None,
        };
        Arc::new(Self {
            clock,
            state: Mutex::new(state),
        })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Leave to send a request of this weight. Waits for the exchange's next minute if that comes
    /// within `wait_at_most`; otherwise the error says how long to wait.
    pub async fn acquire(
        self: &Arc<Self>,
        weight: u32,
        priority: Priority,
        wait_at_most: Duration,
    ) -> Result<Permit, RestError> {
        let mut patience = wait_at_most;
        loop {
            let wait = match self.try_acquire(weight, priority) {
                Err(RestError::HeldBack { wait, .. }) if wait <= patience => wait,
                decided => return decided,
            };
            patience -= wait;
            tokio::time::sleep(wait).await;
        }
    }

    /// The same without waiting.
    pub fn try_acquire(self: &Arc<Self>, weight: u32, priority: Priority) -> Result<Permit, RestError> {
        let now = self.clock.monotonic();
        let mut state = self.lock();
        let taken = state.take(weight, priority, now);
        let (used, budget) = (state.used, state.budget);
        drop(state);
        report(used);
        match taken {
            Ok(()) => Ok(Permit {
                governor: Arc::clone(self),
                weight,
            }),
            Err(Hold::Wait(wait)) => Err(RestError::HeldBack {
                wait,
                used,
                budget,
                priority,
            }),
            Err(Hold::Never) => Err(RestError::TooHeavy { weight, budget }),
            Err(Hold::Paused { wait, banned }) => Err(RestError::Paused { wait, banned }),
        }
    }

    /// What exchangeInfo says a minute may weigh. Nothing sensible changes nothing.
    pub fn set_budget(&self, per_minute: u32) {
        if per_minute > 0 {
            self.lock().budget = per_minute;
        }
    }

    /// The exchange's clock showed `time` just now.
    pub fn set_exchange_time(&self, time: Millis) {
        let now = self.clock.monotonic();
        self.lock().anchor(time, Anchoring::ServerTime, now);
    }

    /// After a 429 or 418: nothing goes out until the pause is over. A shorter pause never ends a longer.
    pub fn pause(&self, retry_after: Option<Duration>, banned: bool) -> RestError {
        let wait = retry_after.unwrap_or(if banned { BAN } else { PAUSE }).min(MAX_PAUSE);
        let now = self.clock.monotonic();
        let mut state = self.lock();
        let until = now + wait;
        if state.pause.is_none_or(|pause| pause.until < until) {
            state.pause = Some(Pause { until, banned });
        }
        RestError::Paused { wait, banned }
    }

    /// Weight used in this minute, and the whole budget.
    pub fn used(&self) -> (u32, u32) {
        let now = self.clock.monotonic();
        let mut state = self.lock();
        state.turn(now);
        (state.used, state.budget)
    }

    /// How long nothing may be sent, if so.
    pub fn paused_for(&self) -> Option<Duration> {
        let now = self.clock.monotonic();
        let pause = self.lock().pause?;
        Some(pause.until.saturating_duration_since(now)).filter(|wait| !wait.is_zero())
    }

    fn learn(&self, told: Told) {
        let now = self.clock.monotonic();
        let mut state = self.lock();
        if let Some(date) = told.date
            && state.anchoring == Anchoring::OwnClock
        {
            // The middle of the second that it names.
            state.anchor(date.saturating_add(500), Anchoring::DateHeader, now);
        }
        if let Some(counted) = told.used_weight {
            state.correct(counted, told.date, now);
        }
        let used = state.used;
        drop(state);
        report(used);
    }

    fn release(&self, weight: u32) {
        let now = self.clock.monotonic();
        let mut state = self.lock();
        state.turn(now);
        state.in_flight = state.in_flight.saturating_sub(weight);
    }
}

fn report(used: u32) {
    metrics::gauge!("tribune_upstream_weight_used").set(f64::from(used));
}

/// Leave to send one request. While it lives, its weight may still be counted in the next minute.
#[must_use]
pub struct Permit {
    governor: Arc<Governor>,
    weight: u32,
}

impl Permit {
    /// What came back.
    pub fn answered(&self, told: Told) {
        self.governor.learn(told);
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.governor.release(self.weight);
    }
}

#[cfg(test)]
mod tests;
