//! One budget of request weight for the whole process, well below the exchange's limit. `count` counts the weight.

mod count;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tribune_clock::Clock;

use super::error::RestError;
use crate::model::Millis;
use count::{Anchoring, Pause, State};

/// What the exchange allows an address in a minute, until exchangeInfo says.
pub const DEFAULT_BUDGET: u32 = 6_000;
/// The exchange's longest ban.
const MAX_PAUSE: Duration = Duration::from_secs(3 * 24 * 3600);
/// Without a Retry-After: one minute, and the exchange's shortest ban.
const PAUSE: Duration = Duration::from_secs(60);
const BAN: Duration = Duration::from_secs(120);

/// Who waits for the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Priority {
    /// Nobody: background work, such as snapshots.
    Background,
    /// A page that refreshes itself and still shows its last values.
    Page,
    /// A caller.
    Interactive,
    /// A caller where orders are placed too: reading must not use up the weight that a cancellation needs.
    BesideOrders,
    /// A caller who places an order or asks about one.
    Order,
}

impl Priority {
    /// Percent of the budget up to which requests are allowed.
    const fn share(self) -> u32 {
        match self {
            Self::Background | Self::Page => 50,
            Self::BesideOrders => 65,
            Self::Interactive | Self::Order => 70,
        }
    }

    /// Percent of the budget that all requests of this priority may use together: open pages ask for ever.
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

/// Headers of an answer that concern the budget.
#[derive(Debug, Clone, Copy, Default)]
pub struct BudgetHeaders {
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

    /// A permit to send a request of this weight. Waits for the exchange's next minute if that comes
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
        let used = state.used;
        drop(state);
        report(used);
        Ok(Permit {
            governor: Arc::clone(self),
            number: taken?,
            at: now,
        })
    }

    /// Reserves some of the budget for orders from now on.
    pub(super) fn keep_for_orders(&self) {
        self.lock().has_orders = true;
    }

    /// Sets the weight per minute that exchangeInfo allows; zero is ignored.
    pub fn set_budget(&self, per_minute: u32) {
        if per_minute > 0 {
            self.lock().budget = per_minute;
        }
    }

    /// Sets the exchange's clock to `time`.
    pub fn set_exchange_time(&self, time: Millis) {
        let now = self.clock.monotonic();
        self.lock().anchor(time, Anchoring::ServerTime, now);
    }

    /// After a 429 or 418, sends nothing until the pause is over. A shorter pause does not end a longer one.
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

    /// How long nothing may be sent, during a pause.
    pub fn paused_for(&self) -> Option<Duration> {
        let now = self.clock.monotonic();
        let pause = self.lock().pause?;
        Some(pause.until.saturating_duration_since(now)).filter(|wait| !wait.is_zero())
    }

    fn learn(&self, headers: BudgetHeaders, granted: Instant) {
        let now = self.clock.monotonic();
        let mut state = self.lock();
        if let Some(date) = headers.date
            && state.anchoring == Anchoring::OwnClock
        {
            // The middle of the second that it names.
            state.anchor(date.saturating_add(500), Anchoring::DateHeader, now);
        }
        if let Some(counted) = headers.used_weight {
            state.correct(counted, headers.date, granted, now);
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

/// Permission to send one request, held until its answer is there.
#[must_use]
pub struct Permit {
    governor: Arc<Governor>,
    number: u64,
    at: Instant,
}

impl Permit {
    /// Learns from the headers of the answer.
    pub fn note_headers(&self, headers: BudgetHeaders) {
        self.governor.learn(headers, self.at);
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.governor.answered(self.number);
    }
}

#[cfg(test)]
mod tests;
