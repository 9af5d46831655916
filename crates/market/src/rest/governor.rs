//! One budget of request weight for the whole process: we stop long before the exchange would stop us.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tribune_core::Clock;

use super::error::RestError;
use crate::model::Millis;

/// What the exchange allows an address in a minute, until it has said so itself.
pub const DEFAULT_BUDGET: u32 = 6_000;
const MINUTE_MS: Millis = 60_000;
/// How long answered requests are remembered: the turn of a minute is never more uncertain than half of it.
const REMEMBERED: Duration = Duration::from_secs(10);
/// The longest ban there is.
const MAX_PAUSE: Duration = Duration::from_secs(3 * 24 * 3600);
/// Where the exchange does not say how long to wait: its minute, and its shortest ban.
const PAUSE: Duration = Duration::from_secs(60);
const BAN: Duration = Duration::from_secs(120);
/// However short a pause the exchange asks for: it is at least this, and twice as long each time that the request
/// after it is refused as well.
const MIN_PAUSE: Duration = Duration::from_secs(1);
const MAX_MIN_PAUSE: Duration = Duration::from_secs(60);
/// A refusal this long after a pause is another matter.
const ANOTHER_MATTER: Duration = Duration::from_secs(60);

/// Who waits for the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Priority {
    /// Nobody: snapshots for books that warm up.
    Background,
    /// Somebody who looks at a page that renews itself, and has what it showed before.
    Page,
    /// Somebody.
    Interactive,
}

impl Priority {
    /// Percent of the budget up to which requests are let through. What background work may not use
    /// is left for people.
    const fn share(self) -> u32 {
        match self {
            Self::Background | Self::Page => 50,
            Self::Interactive => 70,
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
            Self::Interactive => "70% may be used",
        }
    }
}

/// Where our idea of the exchange's clock comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Anchoring {
    OwnClock,
    DateHeader,
    ServerTime,
}

impl Anchoring {
    /// How far the turn of the exchange's minute may be from where we believe it.
    const fn uncertainty_ms(self) -> Millis {
        match self {
            Self::OwnClock => 5_000,
            // It has whole seconds.
            Self::DateHeader => 1_000,
            Self::ServerTime => 250,
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
        RestError::Paused {
            wait: self.until.saturating_duration_since(now),
            banned: self.banned,
        }
    }
}

/// How often in a row the exchange refused, and until when it wanted to be left alone.
#[derive(Debug, Clone, Copy)]
struct Refusals {
    count: u32,
    until: Instant,
}

/// Counts by the exchange's minutes. They are told by the monotonic clock from a point where the
/// exchange's time was known, so that a step of the wall clock cannot begin a minute twice.
///
/// A minute begins here when it has surely begun there. What was answered around the turn, or is not
/// answered yet, may be counted there in either of the two minutes, and so is counted here in both.
#[derive(Debug)]
struct State {
    budget: u32,
    anchor: (Millis, Instant),
    anchoring: Anchoring,
    minute: Millis,
    used: u32,
    /// What pages used of that.
    used_by_pages: u32,
    granted: u64,
    /// Those answered in the last seconds, and those without an answer.
    grants: Vec<Grant>,
    pause: Option<Pause>,
    refusals: Option<Refusals>,
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
    fn exchange_time(&self, at: Instant) -> Millis {
        let (time, anchor) = self.anchor;
        let millis = |span: Duration| Millis::try_from(span.as_millis()).unwrap_or(Millis::MAX);
        match at.checked_duration_since(anchor) {
            Some(after) => time.saturating_add(millis(after)),
            None => time.saturating_sub(millis(anchor.saturating_duration_since(at))),
        }
    }

    /// The last minute that has surely begun.
    fn begun(&self, now: Instant) -> Millis {
        let certain = self.exchange_time(now).saturating_sub(self.anchoring.uncertainty_ms());
        certain.div_euclid(MINUTE_MS)
    }

    fn turn(&mut self, now: Instant) {
        let minute = self.begun(now);
        if minute <= self.minute {
            return;
        }
        self.minute = minute;
        let since = minute
            .saturating_mul(MINUTE_MS)
            .saturating_sub(self.anchoring.uncertainty_ms());
        let counts_again = |grant: &&Grant| grant.answered.is_none_or(|at| self.exchange_time(at) >= since);
        let sum = |is_counted: fn(&Grant) -> bool| {
            let again = self
                .grants
                .iter()
                .filter(counts_again)
                .filter(|grant| is_counted(grant));
            again.fold(0u32, |sum, grant| sum.saturating_add(grant.weight))
        };
        let by_pages = sum(|grant| grant.priority == Priority::Page);
        self.used = sum(|_| true);
        self.used_by_pages = by_pages;
    }

    const fn percent(&self, share: u32) -> u32 {
        (self.budget as u64 * share as u64 / 100) as u32
    }

    /// Whether so much more is within the share of all, and within that of the kind.
    fn has_room(&self, weight: u32, priority: Priority) -> bool {
        let within = |used: u32, share: u32| {
            let after = used.checked_add(weight);
            after.is_some_and(|after| after <= self.percent(share))
        };
        let own = if priority == Priority::Page {
            self.used_by_pages
        } else {
            0
        };
        within(self.used, priority.share()) && within(own, priority.own_share())
    }

    fn take(&mut self, weight: u32, priority: Priority, now: Instant) -> Result<u64, Hold> {
        self.turn(now);
        let recent = |at| now.saturating_duration_since(at) < REMEMBERED;
        self.grants.retain(|grant| grant.answered.is_none_or(recent));
        if let Some(Pause { until, banned }) = self.pause {
            let wait = until.saturating_duration_since(now);
            if !wait.is_zero() {
                return Err(Hold::Paused { wait, banned });
            }
            self.pause = None;
        }
        if weight > self.percent(priority.own_share()) {
            return Err(Hold::Never);
        }
        if !self.has_room(weight, priority) {
            return Err(Hold::Wait(self.until_next_minute(now)));
        }
        self.used += weight;
        if priority == Priority::Page {
            self.used_by_pages += weight;
        }
        self.granted += 1;
        self.grants.push(Grant {
            number: self.granted,
            weight,
            priority,
            answered: None,
        });
        Ok(self.granted)
    }

    /// The least that a refusal which has come just now is answered with. What was under way when an earlier one came
    /// belongs to that.
    fn least_pause(&mut self, now: Instant) -> Duration {
        let count = match self.refusals {
            Some(last) if now < last.until => last.count,
            Some(last) if now.duration_since(last.until) < ANOTHER_MATTER => last.count.saturating_add(1),
            _ => 0,
        };
        let until = self.refusals.map_or(now, |last| last.until.max(now));
        self.refusals = Some(Refusals { count, until });
        (MIN_PAUSE * 2u32.pow(count.min(10))).min(MAX_MIN_PAUSE)
    }

    fn until_next_minute(&self, now: Instant) -> Duration {
        let turn = self.minute.saturating_add(1).saturating_mul(MINUTE_MS);
        let certain = turn.saturating_add(self.anchoring.uncertainty_ms());
        let left = certain.saturating_sub(self.exchange_time(now)).max(1);
        Duration::from_millis(left.unsigned_abs())
    }

    /// Says what time it is at the exchange. What was counted stays counted: it may belong to the
    /// minute that this makes the present one. A step back over the turn of a minute does not let the
    /// same minute begin twice.
    fn anchor(&mut self, time: Millis, anchoring: Anchoring, now: Instant) {
        self.turn(now);
        self.anchor = (time, now);
        self.anchoring = anchoring;
        let minute = self.begun(now);
        if minute.saturating_add(1) != self.minute {
            self.minute = minute;
        }
    }

    /// Takes the exchange's count for ours if it is higher. Of a request from before the turn of the
    /// minute it may be the count of that minute, as the answer's date tells.
    fn correct(&mut self, counted: u32, date: Option<Millis>, granted: Instant, now: Instant) {
        self.turn(now);
        let this_minute = self.begun(granted) >= self.minute;
        if this_minute || date.is_none_or(|date| date.div_euclid(MINUTE_MS) >= self.minute) {
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
            minute: time
                .saturating_sub(Anchoring::OwnClock.uncertainty_ms())
                .div_euclid(MINUTE_MS),
            used: 0,
            used_by_pages: 0,
            granted: 0,
            grants: Vec::new(),
            pause: None,
            refusals: None,
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
        let mut state = self.lock();
        state.turn(now);
        if let Some(grant) = state.grants.iter_mut().find(|grant| grant.number == number) {
            grant.answered = Some(now);
        }
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
