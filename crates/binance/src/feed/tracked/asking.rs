//! What one symbol asks the exchange for: a snapshot to start from, and whether a silent book has changed. The book stays
//! while that is asked; an update that joins it proves more than the answer.

use std::time::{Duration, Instant};

use super::super::published::Observer;
use super::super::snapshots::Want;
use super::{ASK_AFTER_AT_MOST, MAX_RETRY, NOT_COMING, Tracked, jitter};
use crate::book::{Installed, Snapshot};
use crate::feed::BookState;
use crate::moment::Moment;
use crate::rest::RestError;

/// A book that is known to be behind is stale after this long, for an update may be on its way; after the second its
/// streams are subscribed to again.
const STALE_AFTER: Duration = Duration::from_secs(1);
const RESUBSCRIBE_AFTER: Duration = Duration::from_secs(3);
/// Between two resubscriptions; twice as long each time.
const RESUBSCRIBE_AGAIN: Duration = Duration::from_secs(15);
const RESUBSCRIBE_AGAIN_AT_MOST: Duration = Duration::from_secs(600);

impl<O: Observer> Tracked<O> {
    /// What to request, and since when that is due.
    pub(in crate::feed) fn due(&self, now: Instant) -> Option<(Want, Instant)> {
        let may = self.opened.is_some() && self.asked.is_none() && now >= self.ask_at;
        let want = if self.book.is_synced() { Want::UpdateId } else { Want::Book };
        may.then_some((want, self.ask_at))
    }

    /// It is requested; the answer comes with the number that is returned.
    pub(in crate::feed) fn requested(&mut self, want: Want) -> u64 {
        self.asked = Some(want);
        self.generation += 1;
        self.generation
    }

    /// The answer to the request of this number.
    pub(in crate::feed) fn answered(&mut self, generation: u64, answer: Result<Snapshot, RestError>, now: Moment) {
        if generation != self.generation {
            return;
        }
        match (self.asked.take(), answer) {
            (Some(Want::Book), Ok(snapshot)) => self.install(snapshot, now),
            (Some(Want::UpdateId), Ok(snapshot)) => self.compare(snapshot.last_update_id, now),
            (Some(want), Err(error)) => {
                if want == Want::Book {
                    self.set_reason(format!("no snapshot yet: {error}"), now);
                }
                match error.wait() {
                    // Earlier attempts would fail, and later ones lose time.
                    Some(wait) => self.ask_at = now.monotonic + wait + jitter(),
                    None => self.ask_later(now.monotonic),
                }
            }
            (None, _) => {}
        }
    }

    pub(in crate::feed) fn install(&mut self, snapshot: Snapshot, now: Moment) {
        if snapshot.bids.is_empty() && snapshot.asks.is_empty() {
            self.set_reason("the exchange sent a book without levels".to_owned(), now);
            return self.ask_later(now.monotonic);
        }
        let id = snapshot.last_update_id;
        match self.book.snapshot(snapshot) {
            Ok(Installed::Synced) => {
                if self.book.last_update_id() > id {
                    self.doubt = None;
                }
                self.began = Some(now.monotonic);
                self.ask_at = now.monotonic + self.patience;
                self.publish(now);
            }
            Ok(Installed::TooOld) => self.ask_later(now.monotonic),
            Err(fault) => {
                self.ask_later(now.monotonic);
                self.fault(fault, now);
            }
        }
    }

    /// The exchange's book is at this update.
    fn compare(&mut self, theirs: u64, now: Moment) {
        let ours = self.book.last_update_id();
        if theirs > ours {
            self.behind_since.get_or_insert(now.monotonic);
        } else if theirs == ours && self.behind_since.is_none() {
            self.patience = (self.patience * 2).min(ASK_AFTER_AT_MOST);
            if self.doubt.is_none() {
                self.published.confirm(now.monotonic);
            }
            self.set_current(now);
        }
        // An older answer proves nothing.
        self.ask_at = now.monotonic + self.patience + jitter();
    }

    /// Whether its streams are to be subscribed to again: the exchange's book is ahead, and no update comes.
    pub(in crate::feed) fn is_silent(&self, now: Moment) -> bool {
        let Some(since) = self.behind_since else { return false };
        let behind = now.monotonic.saturating_duration_since(since);
        if behind >= STALE_AFTER {
            self.published.set_status(BookState::Stale, Some(NOT_COMING.to_owned()), now);
        }
        behind >= RESUBSCRIBE_AFTER && now.monotonic >= self.resubscribe_at
    }

    /// Its streams are subscribed to again; how often that did not help before.
    pub(in crate::feed) fn resubscribed(&mut self, now: Moment) -> u32 {
        self.lost(NOT_COMING, now);
        self.doubt = Some("updates stopped coming; resubscribed, and waiting for the first");
        let tried = self.resubscribed;
        let wait = (RESUBSCRIBE_AGAIN * 2u32.pow(tried.min(10))).min(RESUBSCRIBE_AGAIN_AT_MOST);
        self.resubscribe_at = now.monotonic + wait;
        self.resubscribed = tried.saturating_add(1);
        tried
    }

    /// At once the first time, then after ever longer waits.
    pub(super) fn ask_later(&mut self, now: Instant) {
        let wait = match self.failures {
            0 => Duration::ZERO,
            failures => (Duration::from_millis(100) * 2u32.pow(failures.min(10))).min(MAX_RETRY) + jitter(),
        };
        self.failures = self.failures.saturating_add(1);
        self.ask_at = now + wait;
    }
}
