//! What is asked of the exchange for one symbol, and what is made of the answers.

use std::time::{Duration, Instant};

use super::super::published::BookState;
use super::super::snapshots::Unanswered;
use super::{CONFIRM_AFTER, Doubt, MAX_RETRY, Tracked, Want, jitter};
use crate::book::{Installed, LocalBook, Snapshot};
use crate::moment::Moment;

/// Books are compared no faster than this: where somebody waits for one to be live again, and where one only might be
/// wrong. At a weight of 5 each, that is at most 600 a minute for a connection on which all is well.
const BETWEEN_COMPARISONS: Duration = Duration::from_millis(100);
const BETWEEN_QUESTIONS: Duration = Duration::from_millis(500);
/// A book that was begun with fewer levels than it should have, because there was no time or weight for more, is
/// deepened after this long, and tried again after as long.
const DEEPEN_AFTER: Duration = Duration::from_secs(20);
impl Tracked {
    /// What is to be asked now; `compared` is when a book was last compared, `limit` how many levels it should have.
    pub(in crate::feed) fn wants(&mut self, now: Instant, compared: Option<Instant>, limit: u32) -> Option<Want> {
        let opened = self.opened?;
        match self.asked {
            // More levels have time; whether those there are still hold has not.
            Some(Want::Deeper) if self.is_to_be_compared(now, compared) => self.deeper = None,
            Some(_) => return None,
            None => {}
        }
        let want = if self.book.is_synced() {
            if self.is_to_be_compared(now, compared) {
                self.compare_at = None;
                Want::Place(self.book.last_update_id())
            } else if self.is_to_be_deeper(now, limit) {
                self.deeper = Some(LocalBook::new(self.max_levels));
                Want::Deeper
            } else {
                return None;
            }
        } else {
            // Nothing has been heard of it: a quiet market needs a snapshot too.
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

    /// When the exchange is to be asked how far its book is.
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

    /// The answer to what was asked for with this generation.
    pub(in crate::feed) fn answered(&mut self, generation: u64, answer: Result<Snapshot, Unanswered>, now: Moment) {
        if generation != self.generation {
            return;
        }
        match (self.asked.take(), answer) {
            (Some(Want::Book), Ok(snapshot)) => self.install(snapshot, now),
            (Some(Want::Place(ours)), Ok(snapshot)) => self.compare(ours, snapshot.last_update_id, now),
            (Some(Want::Deeper), answer) => self.deepen(answer.ok(), now),
            (Some(want), Err(unanswered)) => self.unanswered(want, unanswered, now),
            (None, _) => {}
        }
    }

    /// Goes on with a deeper snapshot, if it is one and what came since joins it.
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

    fn unanswered(&mut self, want: Want, unanswered: Unanswered, now: Moment) {
        let Unanswered { reason, wait } = unanswered;
        if matches!(want, Want::Place(_)) {
            // The book is what it was; what joins it says more than an answer would.
            let wait = wait.unwrap_or(MAX_RETRY / 2);
            self.compare_at = Some(now.monotonic + wait + jitter());
            return;
        }
        let state = self.published.status().state;
        self.published
            .set_status(state, Some(format!("no snapshot yet: {reason}")), now);
        match wait {
            // Before that it would be in vain, and much after it too late.
            Some(wait) => self.ask_at = Some(now.monotonic + wait + jitter()),
            None => self.ask_later(now.monotonic),
        }
    }

    /// Begins with a snapshot.
    pub(in crate::feed) fn install(&mut self, snapshot: Snapshot, now: Moment) {
        if self.opened.is_none() {
            // Taken before the next stream is open, it could not be joined to it.
            return;
        }
        if snapshot.bids.is_empty() && snapshot.asks.is_empty() {
            let state = self.published.status().state;
            let reason = "the exchange gave a book without a single level".to_owned();
            self.published.set_status(state, Some(reason), now);
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
