//! One budget of request weight for the whole process: we stop long before the exchange would stop us. `count` is what
//! is counted.

mod count;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tribune_core::Clock;

use super::error::RestError;
use crate::model::Millis;
use count::{Anchoring, Hold, Pause, State};

/// What the exchange allows an address in a minute, until it has said so itself.
pub const DEFAULT_BUDGET: u32 = 6_000;
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
    /// Somebody who looks at a page that renews itself, and has what it showed before.
    Page,
    /// Somebody.
    Interactive,
    /// The same where orders are placed too, which have the rest to themselves: who reads keeps nobody from cancelling.
    BesideOrders,
    /// Somebody who places an order, or wants to know what became of one.
    Order,
}

impl Priority {
    /// Percent of the budget up to which requests are let through. What background work may not use
    /// is left for people.
    const fn share(self) -> u32 {
        match self {
            Self::Background | Self::Page => 50,
            Self::BesideOrders => 65,
            Self::Interactive | Self::Order => 70,
        }
    }

    /// Percent of the budget that all requests of the kind may use together, where that is less: pages ask as long as
    /// anybody leaves them open.
    const fn own_share(self) -> u32 {
        match self {
            Self::Page => 20,
            other => other.share(),
        }
    }

    pub(super) const fn share_in_words(self) -> &'static str {
        match self {
            Self::Background => "background work may use 50%",
            Self::Page => "pages may use 20%, and what is left of 50%",
            Self::BesideOrders => "65% may be used, and 5% is kept for orders",
            Self::Interactive | Self::Order => "70% may be used",
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
        let state = State::new(clock.now().as_millisecond(), clock.monotonic());
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
        let priority = match priority {
            Priority::Interactive if state.has_orders => Priority::BesideOrders,
            other => other,
        };
        let taken = state.take(weight, priority, now);
        let (used, budget) = (state.used, state.budget);
        drop(state);
        report(used);
        match taken {
            Ok(number) => Ok(Permit {
                governor: Arc::clone(self),
                number,
                at: now,
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

    /// Orders are placed from now on: some of the budget is theirs.
    pub(super) fn keep_for_orders(&self) {
        self.lock().has_orders = true;
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
        let asked = retry_after.unwrap_or(if banned { BAN } else { PAUSE }).min(MAX_PAUSE);
        let now = self.clock.monotonic();
        let mut state = self.lock();
        let wait = asked.max(state.least_pause(now));
        let until = now + wait;
        if let Some(refusals) = &mut state.refusals {
            refusals.until = refusals.until.max(until);
        }
        if let Some(longer) = state.pause.filter(|pause| pause.until > until) {
            return longer.error(now);
        }
        state.pause = Some(Pause { until, banned });
        drop(state);
        tracing::warn!(
            seconds = wait.as_secs(),
            banned,
            "the exchange asked for a pause: no requests are sent until it ends"
        );
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

    fn learn(&self, told: Told, granted: Instant) {
        let now = self.clock.monotonic();
        let mut state = self.lock();
        if let Some(date) = told.date
            && state.anchoring == Anchoring::OwnClock
        {
            // The middle of the second that it names.
            state.anchor(date.saturating_add(500), Anchoring::DateHeader, now);
        }
        if let Some(counted) = told.used_weight {
            state.correct(counted, told.date, granted, now);
        }
        let used = state.used;
        drop(state);
        report(used);
    }

    fn answered(&self, number: u64) {
        let now = self.clock.monotonic();
        self.lock().answered(number, now);
    }
}

fn report(used: u32) {
    metrics::gauge!("tribune_upstream_weight_used").set(f64::from(used));
}

/// Leave to send one request, to be kept until its answer is there.
#[must_use]
pub struct Permit {
    governor: Arc<Governor>,
    number: u64,
    at: Instant,
}

impl Permit {
    /// What came back.
    pub fn told(&self, told: Told) {
        self.governor.learn(told, self.at);
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.governor.answered(self.number);
    }
}

#[cfg(test)]
mod tests;
