//! The writer's side of one tracked symbol: updates, snapshots, and what is published of them. `asking` requests
//! snapshots, `silence` decides what it means when nothing comes.

#![allow(clippy::disallowed_methods, reason = "nodes must not ask at the same moment")]

mod asking;
mod silence;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::observer::{OBSERVED_SECS, Observer};
use super::published::{BookState, BookView, Published};
use super::rhythm::Rhythm;
use super::snapshots::Want;
use crate::book::{BestQuote, Diff, Fault, LocalBook, Outcome};
use crate::moment::Moment;

/// A book without any message for this long after its stream was opened is compared with the exchange's: the market may
/// just be quiet.
const CONFIRM_AFTER: Duration = Duration::from_secs(2);
const NOT_COMING: &str = "the exchange's book has changed, and the updates do not come";
const MAX_RETRY: Duration = Duration::from_secs(10);
/// How late a stream may be.
const MAX_AHEAD: Duration = Duration::from_secs(10);
/// A book that was fine for this long backs off less at its next fault; after the second time it does not back off.
const WELL: Duration = Duration::from_secs(2);
const FORGIVEN_AFTER: Duration = Duration::from_secs(10);

/// What the shard has to do for a symbol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    Nothing,
    /// Its streams are silent although the connection is fine: resubscribe. `tried` attempts did not help before.
    Resubscribe {
        tried: u32,
    },
}

/// Why a book that started from a snapshot is not exact before an update has joined it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
enum Doubt {
    #[error("the exchange's snapshot is older than the updates it has sent")]
    Outdated,
    #[error("updates stopped coming; resubscribed, and waiting for the first")]
    Silent,
    #[error("updates cannot be read")]
    Unreadable,
    #[error("the exchange's snapshot is ahead of all updates that come")]
    Ahead,
}

pub(super) struct Tracked<O> {
    pub(super) published: Arc<Published<O>>,
    pub(super) generation: u64,
    pub(super) book: LocalBook,
    max_levels: usize,
    /// The request without an answer yet.
    asked: Option<Want>,
    ask_at: Option<Instant>,
    /// The limit of the snapshot that the book started from.
    limit: usize,
    /// The same book from a deeper snapshot, while that is fetched.
    deeper: Option<LocalBook>,
    deepen_at: Option<Instant>,
    /// When to ask the exchange for the update id of its book.
    compare_at: Option<Instant>,
    /// Failed or unusable snapshots since the last good one.
    attempts: u32,
    /// Faults in quick succession, and the last one's time.
    faults: u32,
    faulted: Option<Instant>,
    /// Since when there is a book.
    began: Option<Instant>,
    /// Since the stream was opened, an update has joined the book or a snapshot was taken.
    confirmed: bool,
    opened: Option<Instant>,
    rhythm: Rhythm,
    doubt: Option<Doubt>,
    /// Unreadable updates in a row.
    unreadable: u32,
    /// Since when the exchange's book is ahead although nothing came: if nothing comes now, the stream is broken.
    suspected: Option<Instant>,
    /// Resubscriptions since anything last came, and when the last one was.
    resubscribed: u32,
    resubscribed_at: Option<Instant>,
    /// Whether updates older than the book came since the stream was opened, and how many older answers.
    has_old_updates: bool,
    older: u32,
    /// Since when only updates older than the book come.
    old_since: Option<Instant>,
    /// The last update for which best prices were announced, and since when the book is behind one.
    announced: u64,
    behind_since: Option<Instant>,
    /// How late events come, if so late that no book is current.
    late: Option<Duration>,
}

impl<O: Observer> Tracked<O> {
    pub(super) fn new(published: Arc<Published<O>>, max_levels: usize) -> Self {
        Self {
            published,
            generation: 0,
            book: LocalBook::new(max_levels),
            max_levels,
            asked: None,
            ask_at: None,
            limit: 0,
            deeper: None,
            deepen_at: None,
            compare_at: None,
            attempts: 0,
            faults: 0,
            faulted: None,
            began: None,
            confirmed: false,
            opened: None,
            rhythm: Rhythm::default(),
            doubt: None,
            unreadable: 0,
            suspected: None,
            resubscribed: 0,
            resubscribed_at: None,
            has_old_updates: false,
            older: 0,
            old_since: None,
            announced: 0,
            behind_since: None,
            late: None,
        }
    }

    /// Whether its streams are open.
    pub(super) fn is_open(&self) -> bool {
        self.opened.is_some()
    }

    /// The exchange refused its subscription.
    pub(super) fn refused(&self, why: &str, now: Moment) {
        let reason = format!("the exchange refused the subscription; trying again: {why}");
        self.set_reason(reason, now);
    }

    /// Its streams are open from now on.
    pub(super) fn opened(&mut self, now: Moment, exchange_millis: i64) {
        self.opened = Some(now.monotonic);
        self.confirmed = false;
        self.has_old_updates = false;
        self.older = 0;
        self.old_since = None;
        self.book.reopened();
        self.published.tape.opened(exchange_millis);
        self.published.pulse.interrupted(now.monotonic);
    }

    /// Its streams have ended.
    pub(super) fn lost(&mut self, why: &str, now: Moment) {
        self.opened = None;
        self.confirmed = false;
        self.forget_questions();
        self.published.lost();
        if matches!(self.published.status().state, BookState::Live | BookState::Stale) {
            self.set_stale(why, now);
        }
        if !self.book.is_synced() {
            // The buffered updates will not join those of the next stream.
            self.book.discard();
        }
    }

    /// Its streams were silent and are resubscribed.
    pub(super) fn resubscribed(&mut self, now: Moment) {
        self.lost(NOT_COMING, now);
        self.book.discard();
        self.doubt = Some(Doubt::Silent);
        self.resubscribed = self.resubscribed.saturating_add(1);
        self.resubscribed_at = Some(now.monotonic);
    }

    pub(super) fn event(&mut self, diff: Diff, now: Moment) {
        self.published.pulse.update(now.monotonic);
        self.unreadable = 0;
        if let Some(deeper) = &mut self.deeper
            && deeper.event(diff.clone()).is_err()
        {
            self.deeper = None;
        }
        match self.book.event(diff) {
            Ok(Outcome::Applied) => {
                self.note_update(now.monotonic);
                self.publish(now);
            }
            Ok(Outcome::Buffered) => self.ask_soon(now.monotonic),
            Ok(Outcome::Old) => self.note_old(now),
            Err(fault) => self.fault(fault, now),
        }
    }

    /// An update came that the book already has. That is usual right after a snapshot; if no other comes, the snapshot
    /// does not belong to this stream.
    fn note_old(&mut self, now: Moment) {
        self.has_old_updates = true;
        let since = *self.old_since.get_or_insert(now.monotonic);
        // Once that is known, another snapshot is rarely worth its weight.
        let patience = if self.doubt == Some(Doubt::Ahead) { 6 * MAX_AHEAD } else { MAX_AHEAD };
        if now.monotonic.duration_since(since) >= patience {
            self.old_since = None;
            self.doubt = Some(Doubt::Ahead);
            self.book.discard();
            self.fault(Fault::Ahead, now);
        }
    }

    /// An unreadable update came.
    pub(super) fn unreadable(&mut self, now: Moment) {
        self.unreadable = self.unreadable.saturating_add(1);
        if self.unreadable > 1 {
            // Not by accident: a new snapshot would be wrong after the next update.
            self.doubt = Some(Doubt::Unreadable);
        }
        self.book.discard();
        self.fault(Fault::Unreadable, now);
    }

    /// An unrecognised message came on its connection; it may have been an update.
    pub(super) fn doubt(&mut self, now: Instant) {
        if self.opened.is_some() {
            self.opened = Some(now);
            self.confirmed = false;
        }
    }

    pub(super) fn quote(&mut self, quote: BestQuote, now: Moment) {
        self.published.pulse.quote(now.monotonic, quote);
        if self.book.is_synced() && quote.update_id > self.book.last_update_id() {
            self.announced = quote.update_id;
            let since = self.behind_since.unwrap_or(now.monotonic);
            self.set_behind(Some(since));
        }
        match self.book.announce(quote) {
            Ok(()) => self.published.agreed.store(self.book.agreed, Ordering::Relaxed),
            Err(fault) => self.fault(fault, now),
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

    fn forget_questions(&mut self) {
        self.asked = None;
        self.deeper = None;
        self.compare_at = None;
        self.suspected = None;
        self.set_behind(None);
    }

    /// Since when best prices are announced for an update that the book lacks.
    fn set_behind(&mut self, since: Option<Instant>) {
        self.behind_since = since;
        self.published.set_behind(since);
    }

    /// Sets how late events come, if so late that no book is current.
    pub(super) fn set_late(&mut self, late: Option<Duration>, now: Moment) {
        if late == self.late {
            return;
        }
        let before = self.late.map(describe_lag);
        self.late = late;
        let status = self.published.status();
        let is_late_alone = status.state == BookState::Stale && before.is_some() && status.reason == before;
        if status.state == BookState::Live || is_late_alone {
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
        match (self.doubt, self.late) {
            (Some(doubt), _) => (BookState::Stale, Some(doubt.to_string())),
            (None, Some(lag)) => (BookState::Stale, Some(describe_lag(lag))),
            (None, None) => (BookState::Live, None),
        }
    }

    fn set_stale(&self, why: impl Into<String>, now: Moment) {
        self.published.set_status(BookState::Stale, Some(why.into()), now);
    }

    /// Says why the book is in the state that it is in.
    fn set_reason(&self, reason: String, now: Moment) {
        let state = self.published.status().state;
        self.published.set_status(state, Some(reason), now);
    }

    fn note_update(&mut self, now: Instant) {
        self.rhythm.update(now);
        self.doubt = None;
        self.old_since = None;
        self.suspected = None;
        self.compare_at = None;
        self.set_behind(None);
        self.resubscribed = 0;
    }

    pub(super) fn publish(&mut self, now: Moment) {
        self.confirmed = true;
        if self.doubt.is_none() {
            self.published.confirm(now.monotonic);
        }
        let view = BookView {
            symbol: self.published.symbol.clone(),
            depth: self.book.depth().clone(),
            last_update_id: self.book.last_update_id(),
            exchange_time: self.book.time,
            received: now,
        };
        self.published.agreed.store(self.book.agreed, Ordering::Relaxed);
        let (state, reason) = self.state();
        self.published.publish_as(view, state, reason);
    }

    fn fault(&mut self, fault: Fault, now: Moment) {
        if matches!(fault, Fault::Gap { .. }) {
            // Messages were lost, so the counts are incomplete.
            self.published.pulse.interrupted(now.monotonic);
        }
        let warming = self.published.status().state == BookState::Warming;
        if !warming {
            self.published.resyncs.fetch_add(1, Ordering::Relaxed);
            metrics::counter!("tribune_book_resyncs_total").increment(1);
            tracing::debug!(symbol = %self.published.symbol, %fault, "book discarded");
            self.published.set_status(BookState::Resyncing, Some(fault.to_string()), now);
        }
        self.forget_questions();
        let last = self.faulted.replace(now.monotonic);
        let within = |time: Option<Instant>, span| time.is_some_and(|time| now.monotonic.duration_since(time) <= span);
        let was_well = self.began.is_some() && !within(self.began.take(), WELL);
        self.faults = match within(last, FORGIVEN_AFTER) {
            false => 0,
            true if was_well => self.faults.clamp(1, 2),
            true => self.faults.saturating_add(1),
        };
        if self.faults == 0 {
            self.ask_at = Some(now.monotonic);
        } else if self.ask_at.is_none() {
            // Further faults do not postpone it.
            self.ask_at = Some(now.monotonic + self.back_off());
        }
    }

    fn ask_soon(&mut self, now: Instant) {
        if self.asked.is_none() && self.ask_at.is_none() {
            self.ask_at = Some(now);
        }
    }

    fn ask_later(&mut self, now: Instant) {
        self.attempts = self.attempts.saturating_add(1);
        self.ask_at = Some(now + self.back_off());
    }

    fn back_off(&self) -> Duration {
        let wait = Duration::from_millis(100) * 2u32.pow(self.attempts.max(self.faults).min(10));
        wait.min(MAX_RETRY) + jitter()
    }
}

/// In whole seconds, so that the text rarely changes.
fn describe_lag(lag: Duration) -> String {
    format!("events from the exchange are {} s late", lag.as_secs())
}

/// Keeps many books from asking at the same moment.
fn jitter() -> Duration {
    Duration::from_millis(fastrand::u64(0..50))
}

#[cfg(test)]
mod tests;
