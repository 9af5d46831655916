//! Which snapshots one symbol requests from the exchange, and what it does with them.

use std::time::{Duration, Instant};

use super::super::observer::Observer;
use super::super::published::BookState;
use super::super::snapshots::Want;
use super::{CONFIRM_AFTER, Doubt, MAX_RETRY, Tracked, jitter};
use crate::book::{Installed, LocalBook, Snapshot};
use crate::moment::Moment;
use crate::rest::RestError;

/// Books of one connection are compared no faster than this: those that are not live, and those that only might be
/// wrong. At a weight of 5 each, that is at most 600 a minute while all books are live.
const BETWEEN_COMPARISONS: Duration = Duration::from_millis(100);
const BETWEEN_QUESTIONS: Duration = Duration::from_millis(500);
/// A book that started with fewer levels than it should have, for lack of weight, is deepened after this long, and
/// retried after as long.
const DEEPEN_AFTER: Duration = Duration::from_secs(20);

impl<O: Observer> Tracked<O> {
    /// What to request now; `compared` is when a book was last compared, `limit` how many levels this one should have.
    pub(in crate::feed) fn wants(&mut self, now: Instant, compared: Option<Instant>, limit: u32) -> Option<Want> {
        let opened = self.opened?;
        match self.asked {
            // More levels can wait; a comparison cannot.
            Some(Want::MoreLevels) if self.is_to_be_compared(now, compared) => self.deeper = None,
            Some(_) => return None,
            None => {}
        }
        let want = if self.book.is_synced() {
            if self.is_to_be_compared(now, compared) {
                self.compare_at = None;
                Want::UpdateId(self.book.last_update_id())
            } else if self.is_to_be_deeper(now, limit) {
                self.deeper = Some(LocalBook::new(self.max_levels));
                Want::MoreLevels
            } else {
                return None;
            }
        } else {
            // A quiet market needs a snapshot too.
            let due = self.ask_at.unwrap_or(opened + CONFIRM_AFTER / 2);
            if now < due {
                return None;
            }
            self.ask_at = None;
            Want::Book
        };
        self.asked = Some(want);
        self.generation += 1;
        Some(want)
    }

    /// When to ask the exchange for the update id of its book.
    pub(in crate::feed) fn compare_due(&self) -> Option<Instant> {
        self.compare_at.filter(|_| self.book.is_synced())
    }

    fn is_to_be_compared(&self, now: Instant, compared: Option<Instant>) -> bool {
        let pause = match self.published.status().state {
            BookState::Live => BETWEEN_QUESTIONS,
            _ => BETWEEN_COMPARISONS,
        };
        let may = compared.is_none_or(|last| now.duration_since(last) >= pause);
        may && self.compare_at.is_some_and(|at| now >= at)
    }

    fn is_to_be_deeper(&self, now: Instant, limit: u32) -> bool {
        let is_shallow = self.limit < limit as usize && self.deepen_at.is_some_and(|at| now >= at);
        is_shallow && self.published.status().state == BookState::Live
    }

    /// The answer to the request of this generation.
    pub(in crate::feed) fn answered(
        &mut self,
        generation: u64,
        answer: Result<Option<Snapshot>, RestError>,
        now: Moment,
    ) {
        if generation != self.generation {
            return;
        }
        match (self.asked.take(), answer) {
            (Some(Want::Book), Ok(Some(snapshot))) => self.install(snapshot, now),
            (Some(Want::UpdateId(ours)), Ok(Some(snapshot))) => self.compare(ours, snapshot.last_update_id, now),
            (Some(Want::MoreLevels), answer) => self.deepen(answer.ok().flatten(), now),
            (Some(want), Err(error)) => self.unanswered(want, &error, now),
            (_, Ok(None)) | (None, _) => {}
        }
    }

    /// Continues with a deeper snapshot, if the updates since then join it.
    fn deepen(&mut self, snapshot: Option<Snapshot>, now: Moment) {
        self.deepen_at = Some(now.monotonic + DEEPEN_AFTER + jitter());
        let (Some(mut deeper), Some(snapshot)) = (self.deeper.take(), snapshot) else {
            return;
        };
        let limit = snapshot.limit;
        let is_whole = deeper.snapshot(snapshot) == Ok(Installed::Synced);
        if is_whole && self.book.adopt(deeper) {
            self.limit = limit;
            self.publish(now);
        }
    }

    fn unanswered(&mut self, want: Want, error: &RestError, now: Moment) {
        let wait = error.wait();
        if matches!(want, Want::UpdateId(_)) {
            // The book stays; an update that joins it proves more than an answer would.
            let wait = wait.unwrap_or(MAX_RETRY / 2);
            self.compare_at = Some(now.monotonic + wait + jitter());
            return;
        }
        self.set_reason(format!("no snapshot yet: {error}"), now);
        match wait {
            // Earlier attempts would fail, and later ones lose time.
            Some(wait) => self.ask_at = Some(now.monotonic + wait + jitter()),
            None => self.ask_later(now.monotonic),
        }
    }

    /// Starts the book from a snapshot.
    pub(in crate::feed) fn install(&mut self, snapshot: Snapshot, now: Moment) {
        if self.opened.is_none() {
            // A snapshot from before the next stream opens would not join it.
            return;
        }
        if snapshot.bids.is_empty() && snapshot.asks.is_empty() {
            self.set_reason("the exchange sent a book without levels".to_owned(), now);
            return self.ask_later(now.monotonic);
        }
        let has_updates = self.book.buffered() > 0;
        let (id, limit) = (snapshot.last_update_id, snapshot.limit);
        self.limit = limit;
        match self.book.snapshot(snapshot) {
            Ok(Installed::Synced) => {
                let is_settled = match self.doubt {
                    Some(Doubt::Ahead) => self.book.last_update_id() > id,
                    Some(Doubt::Outdated) => true,
                    _ => has_updates,
                };
                if is_settled {
                    self.doubt = None;
                }
                self.begin(now);
            }
            Ok(Installed::Outdated) => {
                self.doubt.get_or_insert(Doubt::Outdated);
                self.begin(now);
            }
            Ok(Installed::TooOld) => self.ask_later(now.monotonic),
            Ok(Installed::NotNeeded) => {}
            Err(fault) => self.fault(fault, now),
        }
    }

    fn begin(&mut self, now: Moment) {
        self.attempts = 0;
        self.began = Some(now.monotonic);
        self.set_behind(None);
        self.deepen_at = Some(now.monotonic + DEEPEN_AFTER + jitter());
        self.rhythm.begin(now.monotonic);
        self.publish(now);
    }
}
