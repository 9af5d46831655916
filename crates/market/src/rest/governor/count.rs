//! What has been used of the exchange's minute, and what it asked for.

use std::time::{Duration, Instant};

use super::{DEFAULT_BUDGET, Priority};
use crate::model::Millis;
use crate::rest::error::RestError;

const MINUTE_MS: Millis = 60_000;
/// How long answered requests are remembered: the turn of a minute is never more uncertain than half of it.
const REMEMBERED: Duration = Duration::from_secs(10);
/// However short a pause the exchange asks for: it is at least this, and twice as long each time that the request
/// after it is refused as well.
const MIN_PAUSE: Duration = Duration::from_secs(1);
const MAX_MIN_PAUSE: Duration = Duration::from_secs(60);
/// A refusal this long after a pause is another matter.
const ANOTHER_MATTER: Duration = Duration::from_secs(60);

/// Where our idea of the exchange's clock comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Anchoring {
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

/// How often in a row the exchange refused, and until when it wanted to be left alone.
#[derive(Debug, Clone, Copy)]
pub(super) struct Refusals {
    count: u32,
    pub(super) until: Instant,
}

/// Counts by the exchange's minutes. They are told by the monotonic clock from a point where the
/// exchange's time was known, so that a step of the wall clock cannot begin a minute twice.
///
/// A minute begins here when it has surely begun there. What was answered around the turn, or is not
/// answered yet, may be counted there in either of the two minutes, and so is counted here in both.
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
    /// Those answered in the last seconds, and those without an answer.
    grants: Vec<Grant>,
    pub(super) pause: Option<Pause>,
    pub(super) refusals: Option<Refusals>,
}

/// Why a request cannot go now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hold {
    /// Until the exchange's next minute.
    Wait(Duration),
    Never,
    Paused {
        wait: Duration,
        banned: bool,
    },
}

impl State {
    /// Where the exchange's clock is taken to be ours.
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

    /// The last minute that has surely begun.
    fn begun(&self, now: Instant) -> Millis {
        let certain = self.exchange_time(now).saturating_sub(self.anchoring.uncertainty_ms());
        certain.div_euclid(MINUTE_MS)
    }

    pub(super) fn turn(&mut self, now: Instant) {
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

    pub(super) fn take(&mut self, weight: u32, priority: Priority, now: Instant) -> Result<u64, Hold> {
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

    /// The answer to a request is there.
    pub(super) fn answered(&mut self, number: u64, now: Instant) {
        self.turn(now);
        if let Some(grant) = self.grants.iter_mut().find(|grant| grant.number == number) {
            grant.answered = Some(now);
        }
    }

    /// The least that a refusal which has come just now is answered with. What was under way when an earlier one came
    /// belongs to that.
    pub(super) fn least_pause(&mut self, now: Instant) -> Duration {
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
    pub(super) fn anchor(&mut self, time: Millis, anchoring: Anchoring, now: Instant) {
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
    pub(super) fn correct(&mut self, counted: u32, date: Option<Millis>, granted: Instant, now: Instant) {
        self.turn(now);
        let this_minute = self.begun(granted) >= self.minute;
        if this_minute || date.is_none_or(|date| date.div_euclid(MINUTE_MS) >= self.minute) {
            self.used = self.used.max(counted);
        }
    }
}
