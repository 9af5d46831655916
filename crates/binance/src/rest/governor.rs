//! One budget of request weight for the whole process, well below the exchange's limit.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tribune_clock::Clock;

use super::error::RestError;

/// What the exchange allows an address in a minute, until exchangeInfo says.
pub const DEFAULT_BUDGET: u32 = 6_000;
/// The exchange counts by the minutes of its clock. A request counts here until a minute after its answer, so that no
/// minute of the exchange can contain more than this one.
const MINUTE: Duration = Duration::from_secs(60);
/// The exchange's longest ban.
const MAX_PAUSE: Duration = Duration::from_secs(3 * 24 * 3600);
/// Without a Retry-After: one minute, and the exchange's shortest ban.
const PAUSE: Duration = Duration::from_secs(60);
const BAN: Duration = Duration::from_secs(120);
/// However short a pause is asked for.
const MIN_PAUSE: Duration = Duration::from_secs(1);

/// Who waits for the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Priority {
    /// Background work, such as snapshots.
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
    /// Percent of the budget up to which requests are allowed, percent that those of this priority may use together (open
    /// pages ask for ever), and both in words.
    pub(super) const fn shares(self) -> (u32, u32, &'static str) {
        match self {
            Self::Background => (50, 50, "background work may use 50%"),
            Self::Page => (50, 20, "pages may use 20%, and what is left of 50%"),
            Self::BesideOrders => (65, 65, "65% may be used, and 5% is kept for orders"),
            Self::Interactive | Self::Order => (70, 70, "70% may be used"),
        }
    }
}

pub struct Governor {
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
}

impl Governor {
    pub fn new(clock: Arc<dyn Clock>) -> Arc<Self> {
        let state =
            State { budget: DEFAULT_BUDGET, has_orders: false, last_number: 0, grants: Vec::new(), pause: None };
        Arc::new(Self { clock, state: Mutex::new(state) })
    }

    /// A permit to send a request of this weight. Waits until enough of the budget is free again if that is
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
        let mut state = self.state.lock();
        let priority = match priority {
            Priority::Interactive if state.has_orders => Priority::BesideOrders,
            other => other,
        };
        let number = state.take(weight, priority, now)?;
        report(state.used());
        Ok(Permit { governor: Arc::clone(self), number })
    }

    /// Reserves some of the budget for orders from now on.
    pub(super) fn keep_for_orders(&self) {
        self.state.lock().has_orders = true;
    }

    /// Sets the weight per minute that exchangeInfo allows; zero is ignored.
    pub fn set_budget(&self, per_minute: u32) {
        if per_minute > 0 {
            self.state.lock().budget = per_minute;
        }
    }

    /// After a 429 or 418, sends nothing until the pause is over. A shorter pause does not end a longer one.
    pub fn pause(&self, retry_after: Option<Duration>, banned: bool) -> RestError {
        let asked = retry_after.unwrap_or(if banned { BAN } else { PAUSE });
        let wait = asked.clamp(MIN_PAUSE, MAX_PAUSE);
        let now = self.clock.monotonic();
        let until = now + wait;
        let mut state = self.state.lock();
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

    /// Weight used within a minute, and the whole budget.
    pub fn used(&self) -> (u32, u32) {
        let now = self.clock.monotonic();
        let mut state = self.state.lock();
        state.forget_old(now);
        (state.used(), state.budget)
    }

    /// How long nothing may be sent, during a pause.
    pub fn paused_for(&self) -> Option<Duration> {
        let now = self.clock.monotonic();
        let pause = self.state.lock().pause?;
        Some(pause.until.saturating_duration_since(now)).filter(|wait| !wait.is_zero())
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
}

impl Permit {
    /// Takes the exchange's count of this minute (`X-MBX-USED-WEIGHT-1M`) if it is higher than ours: others share the
    /// address.
    pub fn note_counted(&self, counted: u32) {
        let now = self.governor.clock.monotonic();
        let mut state = self.governor.state.lock();
        state.forget_old(now);
        let by_others = counted.saturating_sub(state.used());
        if by_others > 0 {
            state.grant(by_others, Priority::Interactive, Some(now));
        }
        report(state.used());
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let now = self.governor.clock.monotonic();
        let mut state = self.governor.state.lock();
        if let Some(grant) = state.grants.iter_mut().find(|grant| grant.number == self.number) {
            grant.answered = Some(now);
        }
    }
}

/// A request that was let through.
#[derive(Debug)]
struct Grant {
    number: u64,
    weight: u32,
    priority: Priority,
    answered: Option<Instant>,
}

#[derive(Debug, Clone, Copy)]
struct Pause {
    until: Instant,
    banned: bool,
}

impl Pause {
    fn error(self, now: Instant) -> RestError {
        RestError::Paused { wait: self.until.saturating_duration_since(now), banned: self.banned }
    }
}

#[derive(Debug)]
struct State {
    budget: u32,
    /// Orders are placed too.
    has_orders: bool,
    last_number: u64,
    /// Requests answered within the last minute, or not yet.
    grants: Vec<Grant>,
    pause: Option<Pause>,
}

impl State {
    fn forget_old(&mut self, now: Instant) {
        let counts = |at| now.saturating_duration_since(at) < MINUTE;
        self.grants.retain(|grant| grant.answered.is_none_or(counts));
    }

    fn used(&self) -> u32 {
        self.grants.iter().fold(0, |sum: u32, grant| sum.saturating_add(grant.weight))
    }

    const fn percent(&self, share: u32) -> u32 {
        (self.budget as u64 * share as u64 / 100) as u32
    }

    fn take(&mut self, weight: u32, priority: Priority, now: Instant) -> Result<u64, RestError> {
        self.forget_old(now);
        if let Some(pause) = self.pause.filter(|pause| pause.until > now) {
            return Err(pause.error(now));
        }
        self.pause = None;
        let budget = self.budget;
        if weight > self.percent(priority.shares().1) {
            return Err(RestError::TooHeavy { weight, budget });
        }
        let wait = self.until_room(weight, priority, now);
        if !wait.is_zero() {
            return Err(RestError::HeldBack { wait, used: self.used(), budget, priority });
        }
        Ok(self.grant(weight, priority, None))
    }

    fn grant(&mut self, weight: u32, priority: Priority, answered: Option<Instant>) -> u64 {
        self.last_number += 1;
        self.grants.push(Grant { number: self.last_number, weight, priority, answered });
        self.last_number
    }

    /// How long until the weight fits into the share of all requests, and into that of its priority.
    fn until_room(&self, weight: u32, priority: Priority, now: Instant) -> Duration {
        let (share, own_share, _) = priority.shares();
        let among_all = self.until_fits(weight, share, now, |_| true);
        let own = |grant: &Grant| priority == Priority::Page && grant.priority == Priority::Page;
        among_all.max(self.until_fits(weight, own_share, now, own))
    }

    /// How long until the weight and that of these requests are within a share.
    fn until_fits(&self, weight: u32, share: u32, now: Instant, counts: impl Fn(&Grant) -> bool) -> Duration {
        let mut counted: Vec<&Grant> = self.grants.iter().filter(|grant| counts(grant)).collect();
        let mut used: u64 = counted.iter().map(|grant| u64::from(grant.weight)).sum();
        let fits = |used: u64| used + u64::from(weight) <= u64::from(self.percent(share));
        if fits(used) {
            return Duration::ZERO;
        }
        counted.sort_by_key(|grant| grant.answered);
        for grant in counted {
            // What is under way frees nothing before it is answered.
            let Some(at) = grant.answered else { continue };
            used -= u64::from(grant.weight);
            if fits(used) {
                return (at + MINUTE).saturating_duration_since(now);
            }
        }
        MINUTE
    }
}

#[cfg(test)]
mod tests;
