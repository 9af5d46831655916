//! A book without updates may be quiet, or its streams may be broken. The exchange is asked for the update id of its
//! book; ours stays meanwhile, and an update that joins it proves it before the answer does.

use std::time::{Duration, Instant};

use super::super::observer::Observer;
use super::super::snapshots::Want;
use super::{CONFIRM_AFTER, Doubt, NOT_COMING, Next, Tracked, jitter};
use crate::moment::Moment;

/// How long an update may be in transit.
const ON_ITS_WAY: Duration = Duration::from_millis(500);
/// Best prices are announced at once, and the book's next update contains them: how long that may take.
const LEFT_BEHIND_AFTER_SECS: (f64, f64) = (1.0, 3.0);
const LEFT_BEHIND: &str = "best prices change, but the book's updates do not come";
/// Silent streams are resubscribed after this long, and then after twice as long each time.
const RESUBSCRIBE_AFTER: Duration = Duration::from_secs(15);
const RESUBSCRIBE_AFTER_AT_MOST: Duration = Duration::from_secs(600);
/// Answers older than the book before it is resynced.
const MAX_OLDER: u32 = 5;

impl<O: Observer> Tracked<O> {
    /// The exchange's book was at `theirs` when ours was at `ours`.
    pub(super) fn compare(&mut self, ours: u64, theirs: u64, now: Moment) {
        if self.book.last_update_id() != ours {
            // An update has joined since, which proves more.
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
                // An update was missed between two streams, or the snapshot was old.
                self.restart("an update was missed; waiting for a new snapshot", now);
            }
            return;
        }
        self.rhythm.assure(now.monotonic);
        // A market is not quiet while announced best prices are missing in the book.
        if self.behind_since.is_some() && theirs < self.announced {
            self.confirmed = true;
            self.set_behind(Some(now.monotonic));
            return self.set_stale(LEFT_BEHIND, now);
        }
        self.set_behind(None);
        if self.doubt.is_none() {
            self.confirmed = true;
            self.published.confirm(now.monotonic);
            self.set_current(now);
        }
    }

    /// An answer older than the book proves nothing. Only if updates are older too, or all answers are, has the exchange
    /// restarted its ids.
    fn compare_with_older(&mut self, now: Moment) {
        self.older += 1;
        if !self.confirmed && (self.has_old_updates || self.older > MAX_OLDER) {
            self.restart("the exchange restarted its update ids; waiting for a snapshot", now);
        } else {
            self.compare_at = Some(now.monotonic + CONFIRM_AFTER + jitter());
        }
    }

    /// Checks whether updates have stopped coming.
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
            self.set_stale(LEFT_BEHIND, now);
            self.compare_soon(now.monotonic);
        } else if let Some(silence) = self.rhythm.overdue(now.monotonic) {
            let reason = format!(
                "no update for {:.0} s, where one every {:.0} ms is usual",
                silence.as_secs_f64(),
                self.rhythm.usual_millis()
            );
            self.set_stale(reason, now);
            self.compare_soon(now.monotonic);
        } else if self.rhythm.is_worth_a_question(now.monotonic) {
            self.compare_soon(now.monotonic);
        }
        Next::Nothing
    }

    fn check_suspicion(&self, suspected: Instant, now: Moment) -> Next {
        let silence = now.monotonic.duration_since(suspected);
        if silence >= ON_ITS_WAY {
            self.set_stale(NOT_COMING, now);
        }
        let again = (RESUBSCRIBE_AFTER * 2u32.pow(self.resubscribed.min(10))).min(RESUBSCRIBE_AFTER_AT_MOST);
        let is_due = self.resubscribed_at.is_none_or(|at| now.monotonic.duration_since(at) >= again);
        if silence >= CONFIRM_AFTER && is_due {
            return Next::Resubscribe { tried: self.resubscribed };
        }
        Next::Nothing
    }

    /// The book stays: an update that joins proves it before the answer does. A pending request for more levels, which may
    /// take minutes, is dropped and repeated later.
    fn compare_soon(&mut self, now: Instant) {
        if matches!(self.asked, None | Some(Want::MoreLevels)) {
            self.compare_at.get_or_insert(now);
        }
    }

    /// Starts over from a new snapshot.
    fn restart(&mut self, why: &str, now: Moment) {
        self.book.discard();
        self.forget_questions();
        self.set_stale(why, now);
        self.ask_at = Some(now.monotonic);
    }

    /// Whether best prices have long been announced for an update that the book lacks.
    fn is_left_behind(&self, now: Instant) -> bool {
        let (least, most) = LEFT_BEHIND_AFTER_SECS;
        let two_updates = (self.rhythm.usual_millis() * 2.0 / 1_000.0).clamp(least, most);
        let longest = Duration::from_secs_f64(two_updates) * self.rhythm.quiet();
        self.behind_since.is_some_and(|since| now.duration_since(since) >= longest)
    }
}
