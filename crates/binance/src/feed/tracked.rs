//! The writer's side of one tracked symbol: updates, and what is published of them. `asking` requests snapshots and
//! notices when updates stop coming.

#![allow(clippy::disallowed_methods, reason = "nodes must not ask at the same moment")]

mod asking;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::published::{BookState, BookView, OBSERVED_SECS, Observer, Published};
use super::snapshots::Want;
use crate::book::{BestQuote, Diff, Fault, LocalBook, Outcome};
use crate::moment::Moment;

const NOT_COMING: &str = "the exchange's book has changed, and the updates do not come";
const LATE: &str = "events from the exchange come more than 2 s late";
/// A quiet market sends no update: its snapshot is requested this long after its streams were opened.
const FIRST_UPDATE_WITHIN: Duration = Duration::from_secs(1);
const MAX_RETRY: Duration = Duration::from_secs(10);
/// A book that was fine for this long is fetched at once after a fault.
const WELL: Duration = Duration::from_secs(5);
/// The exchange is asked whether a silent book has changed after this long; each time that it has not, the next question
/// comes after twice as long, up to the second.
const ASK_AFTER: Duration = Duration::from_secs(3);
const ASK_AFTER_AT_MOST: Duration = Duration::from_secs(120);

pub(super) struct Tracked<O> {
    pub(super) published: Arc<Published<O>>,
    pub(super) book: LocalBook,
    /// Since when its streams are open.
    opened: Option<Instant>,
    /// Since when there is a book.
    began: Option<Instant>,
    /// The request without an answer yet, and its number.
    asked: Option<Want>,
    pub(super) generation: u64,
    /// When to request a snapshot, or only its update id while there is a book.
    ask_at: Instant,
    /// How long a book may be silent before the exchange is asked.
    patience: Duration,
    /// Failed or unusable snapshots and faults in quick succession.
    failures: u32,
    /// Why a new snapshot does not suffice: the book is not exact before an update has joined it.
    doubt: Option<&'static str>,
    /// Since when the exchange's book is known to be ahead of this one.
    behind_since: Option<Instant>,
    /// Resubscriptions since the last message, and when the next may be.
    resubscribed: u32,
    resubscribe_at: Instant,
    /// Events come so late that no book is current.
    is_late: bool,
}

impl<O: Observer> Tracked<O> {
    pub(super) fn new(published: Arc<Published<O>>, max_levels: usize, now: Instant) -> Self {
        Self {
            published,
            book: LocalBook::new(max_levels),
            opened: None,
            began: None,
            asked: None,
            generation: 0,
            ask_at: now,
            patience: ASK_AFTER,
            failures: 0,
            doubt: None,
            behind_since: None,
            resubscribed: 0,
            resubscribe_at: now,
            is_late: false,
        }
    }

    pub(super) fn is_open(&self) -> bool {
        self.opened.is_some()
    }

    pub(super) fn refused(&self, why: &str, now: Moment) {
        self.set_reason(format!("the exchange refused the subscription; trying again: {why}"), now);
    }

    pub(super) fn opened(&mut self, now: Moment, exchange_millis: i64) {
        self.opened = Some(now.monotonic);
        self.failures = 0;
        self.ask_at = now.monotonic + FIRST_UPDATE_WITHIN;
        self.published.tape.opened(exchange_millis);
        self.published.pulse.interrupted(now.monotonic);
    }

    /// Its streams have ended. Readers keep the last book; updates of the next stream will not join it.
    pub(super) fn lost(&mut self, why: &str, now: Moment) {
        self.opened = None;
        self.published.lost();
        if matches!(self.published.status().state, BookState::Live | BookState::Stale) {
            self.published.set_status(BookState::Stale, Some(why.to_owned()), now);
        }
        self.forget_book();
        self.book.reopened();
    }

    pub(super) fn event(&mut self, diff: Diff, now: Moment) {
        self.published.pulse.update(now.monotonic);
        match self.book.event(diff) {
            Ok(Outcome::Applied) => {
                self.note_update(now.monotonic);
                self.publish(now);
            }
            Ok(Outcome::Buffered) if self.failures == 0 => self.ask_at = self.ask_at.min(now.monotonic),
            Ok(Outcome::Buffered | Outcome::Old) => {}
            Err(fault) => self.fault(fault, now),
        }
    }

    /// An unreadable update came: a snapshot alone would be wrong after the next of them.
    pub(super) fn unreadable(&mut self, now: Moment) {
        self.doubt = Some("an update could not be read; waiting for one that can");
        self.book.discard();
        self.fault(Fault::Unreadable, now);
    }

    pub(super) fn quote(&mut self, quote: BestQuote, now: Moment) {
        self.published.pulse.quote(now.monotonic, quote);
        if self.book.is_synced() && quote.update_id > self.book.last_update_id() {
            self.behind_since.get_or_insert(now.monotonic);
        }
        if let Err(fault) = self.book.announce(quote) {
            self.fault(fault, now);
        }
    }

    /// Runs once a second.
    pub(super) fn look(&self, now: Instant, exchange_millis: i64) {
        match self.published.live() {
            Some(view) => {
                let heard = self.published.heard().min(now);
                let beats = self.published.pulse.beats(heard, heard, OBSERVED_SECS);
                self.published.watch.look(&view, &self.published.tape, beats, exchange_millis);
            }
            None => self.published.watch.interrupted(exchange_millis),
        }
    }

    /// Sets whether events come so late that no book is current.
    pub(super) fn set_late(&mut self, is_late: bool, now: Moment) {
        if is_late == self.is_late {
            return;
        }
        self.is_late = is_late;
        let status = self.published.status();
        if status.state == BookState::Live || status.reason.as_deref() == Some(LATE) {
            self.set_current(now);
        }
    }

    /// The book equals the exchange's.
    fn set_current(&self, now: Moment) {
        let (state, reason) = self.state();
        self.published.set_status(state, reason, now);
    }

    /// The state of a book that was just started, updated or compared.
    fn state(&self) -> (BookState, Option<String>) {
        match self.doubt.or(self.is_late.then_some(LATE)) {
            Some(why) => (BookState::Stale, Some(why.to_owned())),
            None => (BookState::Live, None),
        }
    }

    /// Says why the book is in the state that it is in.
    fn set_reason(&self, reason: String, now: Moment) {
        let state = self.published.status().state;
        self.published.set_status(state, Some(reason), now);
    }

    fn note_update(&mut self, now: Instant) {
        // A market that moves within a quarter of the time that it is given is no longer quiet.
        if self.ask_at.saturating_duration_since(now) > self.patience * 3 / 4 {
            self.patience = (self.patience / 2).max(ASK_AFTER);
        }
        self.ask_at = now + self.patience;
        self.doubt = None;
        self.behind_since = None;
        self.resubscribed = 0;
    }

    pub(super) fn publish(&mut self, now: Moment) {
        if self.doubt.is_none() {
            self.published.confirm(now.monotonic);
        }
        let view = BookView {
            depth: self.book.depth().clone(),
            last_update_id: self.book.last_update_id(),
            exchange_time: self.book.time,
            received: now,
        };
        let (state, reason) = self.state();
        self.published.publish(view, state, reason);
    }

    /// The book was found wrong, and discarded.
    fn fault(&mut self, fault: Fault, now: Moment) {
        if matches!(fault, Fault::Gap { .. }) {
            // Messages were lost, so the counts are incomplete.
            self.published.pulse.interrupted(now.monotonic);
        }
        if self.published.status().state != BookState::Warming {
            self.published.resyncs.fetch_add(1, Ordering::Relaxed);
            metrics::counter!("tribune_book_resyncs_total").increment(1);
            tracing::debug!(symbol = %self.published.symbol, %fault, "book discarded");
            self.published.set_status(BookState::Resyncing, Some(fault.to_string()), now);
        }
        if self.began.is_some_and(|began| now.monotonic.duration_since(began) >= WELL) {
            self.failures = 0;
        }
        // Further faults do not postpone a request that waits.
        if self.began.is_some() || self.asked.is_some() {
            self.ask_later(now.monotonic);
        }
        self.forget_book();
    }

    fn forget_book(&mut self) {
        self.began = None;
        self.asked = None;
        self.behind_since = None;
    }
}

/// Keeps many books from asking at the same moment.
fn jitter() -> Duration {
    Duration::from_millis(fastrand::u64(0..50))
}

#[cfg(test)]
mod tests;
