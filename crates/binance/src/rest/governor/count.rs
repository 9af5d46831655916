//! Counts the weight used in the exchange's minute, and the pauses it asked for.

use std::time::{Duration, Instant};

use super::{DEFAULT_BUDGET, Priority};
use crate::model::Millis;
use crate::rest::error::RestError;

const MINUTE_MS: Millis = 60_000;
/// How long answered requests are remembered: twice the largest uncertainty of a minute's start.
const REMEMBERED: Duration = Duration::from_secs(10);
/// The shortest pause, doubled each time that the request after it is refused as well.
const MIN_PAUSE: Duration = Duration::from_secs(1);
const MAX_MIN_PAUSE: Duration = Duration::from_secs(60);
/// A refusal this long after a pause starts a new series.
const NEW_SERIES_AFTER: Duration = Duration::from_secs(60);

/// Where our reading of the exchange's clock comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Anchoring {
    OwnClock,
    DateHeader,
    ServerTime,
}

impl Anchoring {
    /// How far the start of the exchange's minute may be from our reading.
    const fn uncertainty_ms(self) -> Millis {
        match self {
            Self::OwnClock => 5_000,
            // Whole seconds.
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
pub(super) struct Pause {
    pub(super) until: Instant,
    pub(super) banned: bool,
}

impl Pause {
    pub(super) fn error(self, now: Instant) -> RestError {
        RestError::Paused {
            wait: self.until.saturating_duration_since(now),
            banned: self.banned,
        }
    }
}

/// Refusals in a row, and until when the exchange asked for a pause.
#[derive(Debug, Clone, Copy)]
pub(super) struct Refusals {
    count: u32,
    pub(super) until: Instant,
}

/// Counts by the exchange's minutes, which are derived from the monotonic clock and one known exchange time: a step of
/// the wall clock cannot begin a minute twice.
///
/// A minute begins here when it has certainly begun there. A request answered around that moment, or not answered yet,
/// may be counted there in either minute, so it is counted here in both.
#[derive(Debug)]
pub(super) struct State {
    pub(super) budget: u32,
    /// Orders are placed too.
    pub(super) has_orders: bool,
    anchor: (Millis, Instant),
    pub(super) anchoring: Anchoring,
    minute: Millis,
    pub(super) used: u32,
    /// What pages used of that.
    used_by_pages: u32,
    granted: u64,
    /// Requests answered recently, or not yet.
    grants: Vec<Grant>,
    pub(super) pause: Option<Pause>,
    pub(super) refusals: Option<Refusals>,
}

impl State {
    /// Assumes that the exchange's clock equals ours.
    pub(super) fn new(time: Millis, now: Instant) -> Self {
        let anchoring = Anchoring::OwnClock;
        Self {
            budget: DEFAULT_BUDGET,
            has_orders: false,
            anchor: (time, now),
            anchoring,
            minute: time.saturating_sub(anchoring.uncertainty_ms()).div_euclid(MINUTE_MS),
            used: 0,
            used_by_pages: 0,
            granted: 0,
            grants: Vec::new(),
            pause: None,
            refusals: None,
        }
    }

    fn exchange_time(&self, at: Instant) -> Millis {
        let (time, anchor) = self.anchor;
        let millis = |span: Duration| Millis::try_from(span.as_millis()).unwrap_or(Millis::MAX);
        match at.checked_duration_since(anchor) {
            Some(after) => time.saturating_add(millis(after)),
            None => time.saturating_sub(millis(anchor.saturating_duration_since(at))),
        }
    }

    /// The last minute that has certainly begun.
    fn current_minute(&self, now: Instant) -> Millis {
        let certain = self.exchange_time(now).saturating_sub(self.anchoring.uncertainty_ms());
        certain.div_euclid(MINUTE_MS)
    }

    pub(super) fn turn(&mut self, now: Instant) {
        let minute = self.current_minute(now);
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

    /// Whether the weight fits into the share of all requests, and into that of its priority.
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

    pub(super) fn take(&mut self, weight: u32, priority: Priority, now: Instant) -> Result<u64, RestError> {
        self.turn(now);
        let recent = |at| now.saturating_duration_since(at) < REMEMBERED;
        self.grants.retain(|grant| grant.answered.is_none_or(recent));
        if let Some(pause) = self.pause.filter(|pause| pause.until > now) {
            return Err(pause.error(now));
        }
        self.pause = None;
        let (used, budget) = (self.used, self.budget);
        if weight > self.percent(priority.own_share()) {
            return Err(RestError::TooHeavy { weight, budget });
        }
        if !self.has_room(weight, priority) {
            let wait = self.until_next_minute(now);
            return Err(RestError::HeldBack {
                wait,
                used,
                budget,
                priority,
            });
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

    /// Notes that a request was answered.
    pub(super) fn answered(&mut self, number: u64, now: Instant) {
        self.turn(now);
        if let Some(grant) = self.grants.iter_mut().find(|grant| grant.number == number) {
            grant.answered = Some(now);
        }
    }

    /// The shortest pause after a refusal. Requests that were under way at an earlier refusal belong to that one.
    pub(super) fn least_pause(&mut self, now: Instant) -> Duration {
        let count = match self.refusals {
            Some(last) if now < last.until => last.count,
            Some(last) if now.duration_since(last.until) < NEW_SERIES_AFTER => last.count.saturating_add(1),
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

    /// Sets the exchange's time. The count stays, because it may belong to the minute that is now current. A step back
    /// over the start of a minute does not begin that minute twice.
    pub(super) fn anchor(&mut self, time: Millis, anchoring: Anchoring, now: Instant) {
        self.turn(now);
        self.anchor = (time, now);
        self.anchoring = anchoring;
        let minute = self.current_minute(now);
        if minute.saturating_add(1) != self.minute {
            self.minute = minute;
        }
    }

    /// Takes the exchange's count if it is higher than ours, unless the answer's date shows that it belongs to the minute
    /// before.
    pub(super) fn correct(&mut self, counted: u32, date: Option<Millis>, granted: Instant, now: Instant) {
        self.turn(now);
        let this_minute = self.current_minute(granted) >= self.minute;
        if this_minute || date.is_none_or(|date| date.div_euclid(MINUTE_MS) >= self.minute) {
            self.used = self.used.max(counted);
        }
    }
}
