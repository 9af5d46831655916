//! A book of which nothing is heard may be quiet, or its streams may be broken. The exchange is asked how far its own
//! book is; ours stays meanwhile, and an update that joins it proves it before the answer does.

use std::time::{Duration, Instant};

use super::super::published::BookState;
use super::{CONFIRM_AFTER, Doubt, NOT_COMING, Next, Tracked, Want, jitter};
use crate::moment::Moment;

/// An update that the exchange has may be on its way for this long.
const ON_ITS_WAY: Duration = Duration::from_millis(500);
/// Best prices are announced as they change, and the update that has them comes with the next of the book.
const LEFT_BEHIND_AFTER_SECS: (f64, f64) = (1.0, 3.0);
const LEFT_BEHIND: &str = "best prices change, and the book's own updates do not come";
/// Streams that stay silent are subscribed to again after this long, and then after twice as long each time.
const RESUBSCRIBE_AFTER: Duration = Duration::from_secs(15);
const RESUBSCRIBE_AFTER_AT_MOST: Duration = Duration::from_secs(600);
/// Answers older than the book before it is started again.
const MAX_OLDER: u32 = 5;

impl Tracked {
    /// The exchange's book was at `theirs` when ours was at `ours`.
    pub(super) fn compare(&mut self, ours: u64, theirs: u64, now: Moment) {
        if self.book.last_update_id() != ours {
            // An update has joined since, which says more.
            return;
        }
        if theirs < ours {
            return self.compare_with_older(now);
        }
        self.older = 0;
        if theirs > ours {
            if self.confirmed && self.doubt != Some(Doubt::Outdated) {
                self.suspected.get_or_insert(now.monotonic);
            } else {
                // It was missed between two streams, or by a snapshot that was old.
                self.restart("an update was missed; a new snapshot is waited for", now);
            }
            return;
        }
        self.rhythm.assure(now.monotonic);
        // A market is not quiet while best prices are announced that the book does not have.
        if self.behind_since.is_some() && theirs < self.announced {
            self.confirmed = true;
            self.set_behind(Some(now.monotonic));
            return self
                .published
                .set_status(BookState::Stale, Some(LEFT_BEHIND.to_owned()), now);
        }
        self.set_behind(None);
        if self.doubt.is_none() {
            self.confirmed = true;
            self.published.confirm(now.monotonic);
            self.set_current(now);
        }
    }

    /// An answer that is older than the book says nothing of it. Only where updates are older too, or answers stay so,
    /// has the exchange begun to count anew.
    fn compare_with_older(&mut self, now: Moment) {
        self.older += 1;
        if !self.confirmed && (self.has_old_updates || self.older > MAX_OLDER) {
            self.restart("the exchange counts its updates anew; a snapshot is waited for", now);
        } else {
            self.compare_at = Some(now.monotonic + CONFIRM_AFTER + jitter());
        }
    }

    /// Looks whether updates have stopped coming.
    pub(in crate::feed) fn check_silence(&mut self, now: Moment) -> Next {
        let Some(opened) = self.opened.filter(|_| self.book.is_synced()) else {
            return Next::Nothing;
        };
        if let Some(suspected) = self.suspected {
            return self.check_suspicion(suspected, now);
        }
        if !self.confirmed {
            if now.monotonic.duration_since(opened) >= CONFIRM_AFTER {
                self.compare_soon(now.monotonic);
            }
        } else if self.is_left_behind(now.monotonic) {
            self.published
                .set_status(BookState::Stale, Some(LEFT_BEHIND.to_owned()), now);
            self.compare_soon(now.monotonic);
        } else if let Some(silence) = self.rhythm.overdue(now.monotonic) {
            let reason = format!(
                "no update for {:.0} s, where one every {:.0} ms is usual",
                silence.as_secs_f64(),
                self.rhythm.usual_millis()
            );
            self.published.set_status(BookState::Stale, Some(reason), now);
            self.compare_soon(now.monotonic);
        } else if self.rhythm.is_worth_a_question(now.monotonic) {
            self.compare_soon(now.monotonic);
        }
        Next::Nothing
    }

    fn check_suspicion(&self, suspected: Instant, now: Moment) -> Next {
        let silence = now.monotonic.duration_since(suspected);
        if silence >= ON_ITS_WAY {
            self.published
                .set_status(BookState::Stale, Some(NOT_COMING.to_owned()), now);
        }
        let again = (RESUBSCRIBE_AFTER * 2u32.pow(self.resubscribed.min(10))).min(RESUBSCRIBE_AFTER_AT_MOST);
        let is_due = self
            .resubscribed_at
            .is_none_or(|at| now.monotonic.duration_since(at) >= again);
        if silence >= CONFIRM_AFTER && is_due {
            return Next::Resubscribe {
                tried: self.resubscribed,
            };
        }
        Next::Nothing
    }

    /// The book stays: an update that joins proves it before the answer does. Deeper levels, which may be waited for
    /// for minutes, do not stand in the way: they are asked for again.
    fn compare_soon(&mut self, now: Instant) {
        if matches!(self.asked, None | Some(Want::Deeper)) {
            self.compare_at.get_or_insert(now);
        }
    }

    /// From a new snapshot.
    fn restart(&mut self, why: &str, now: Moment) {
        self.book.discard();
        self.forget_questions();
        self.published.set_status(BookState::Stale, Some(why.to_owned()), now);
        self.ask_at = Some(now.monotonic);
    }

    /// Whether best prices have long been announced for an update that the book does not have.
    fn is_left_behind(&self, now: Instant) -> bool {
        let (least, most) = LEFT_BEHIND_AFTER_SECS;
        let two_updates = (self.rhythm.usual_millis() * 2.0 / 1_000.0).clamp(least, most);
        let longest = Duration::from_secs_f64(two_updates) * self.rhythm.quiet();
        self.behind_since
            .is_some_and(|since| now.duration_since(since) >= longest)
    }
}
