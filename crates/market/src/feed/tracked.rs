//! The writer's side of one tracked symbol.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::published::{BookState, BookView, Published};
use super::snapshots::Unanswered;
use super::watch::SAMPLE_SECS;
use crate::book::{BestQuote, Diff, Fault, Installed, LocalBook, Outcome, Snapshot};
use crate::moment::Moment;

/// A book whose stream was opened, and which nothing has been heard of for this long, is compared
/// with a snapshot: it may just be quiet.
const CONFIRM_AFTER: Duration = Duration::from_secs(2);
/// A book that is usually lively is not called stale before this.
const MIN_PATIENCE: Duration = Duration::from_secs(3);
const LEFT_BEHIND: &str = "best prices change, and the book's own updates do not come";
const MAX_RETRY: Duration = Duration::from_secs(10);
/// After this long without a fault the next one is answered at once again.
const FORGIVEN_AFTER: Duration = Duration::from_secs(10);

/// What the shard has to do after an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    Nothing,
    /// Something was missed although the connection seems well.
    Reconnect,
}

pub(super) struct Tracked {
    pub(super) published: Arc<Published>,
    pub(super) generation: u64,
    pub(super) book: LocalBook,
    /// A snapshot has been asked for.
    waiting: bool,
    ask_at: Option<Instant>,
    attempts: u32,
    faulted: Instant,
    /// Since the stream was opened, an update has joined on to the book or a snapshot was taken.
    confirmed: bool,
    opened: Option<Instant>,
    updated: Option<Instant>,
    /// Mean seconds between updates, once there were enough.
    usual: f64,
    updates: u32,
    /// Grows each time that silence turned out to be quiet.
    quiet: u32,
    /// What was published when the book was taken down to be compared with a snapshot.
    comparing: Option<u64>,
    /// The snapshot was ahead although nothing had come: if nothing comes now, the stream is broken.
    suspected: Option<Instant>,
    /// The last update for which best prices were announced, and since when the book is behind one.
    announced: u64,
    behind_since: Option<Instant>,
}

impl Tracked {
    pub(super) fn new(published: Arc<Published>, max_levels: usize, now: Instant) -> Self {
        Self {
            published,
            generation: 0,
            book: LocalBook::new(max_levels),
            waiting: false,
            ask_at: None,
            attempts: 0,
            faulted: now,
            confirmed: false,
            opened: None,
            updated: None,
            usual: 0.0,
            updates: 0,
            quiet: 1,
            comparing: None,
            suspected: None,
            announced: 0,
            behind_since: None,
        }
    }

    /// Whether its streams are known to come.
    pub(super) fn is_open(&self) -> bool {
        self.opened.is_some()
    }

    /// The exchange does not send its streams.
    pub(super) fn refused(&self, why: &str, now: Moment) {
        let reason = format!("the exchange refused a subscription: {why}");
        let state = self.published.status().state;
        self.published.set_status(state, Some(reason), now);
    }

    /// Its streams have been subscribed to on a new connection.
    pub(super) fn opened(&mut self, now: Moment, exchange_millis: i64) {
        self.opened = Some(now.monotonic);
        self.confirmed = false;
        self.book.reopened();
        self.published.tape.opened(exchange_millis);
        self.published.pulse.interrupted(now.monotonic);
    }

    /// The connection is gone.
    pub(super) fn lost(&mut self, why: &str, now: Moment) {
        self.opened = None;
        self.confirmed = false;
        self.suspected = None;
        self.comparing = None;
        self.behind_since = None;
        self.published.lost();
        if matches!(self.published.status().state, BookState::Live | BookState::Stale) {
            self.published.set_status(BookState::Stale, Some(why.to_owned()), now);
        }
        if !self.book.is_synced() {
            // What was buffered cannot be joined to what will come.
            self.book.discard();
        }
    }

    pub(super) fn event(&mut self, diff: Diff, now: Moment) {
        self.published.pulse.update(now.monotonic);
        match self.book.event(diff) {
            Ok(Outcome::Applied) => {
                self.note_update(now.monotonic);
                self.publish(now);
            }
            Ok(Outcome::Buffered) => self.ask_soon(now.monotonic),
            Ok(Outcome::Old) if self.suspected.is_some() => self.publish(now),
            Ok(Outcome::Old) => {}
            Err(fault) => self.fault(fault, now),
        }
    }

    pub(super) fn quote(&mut self, quote: BestQuote, now: Moment) {
        self.published.pulse.quote(now.monotonic, quote);
        if self.book.is_synced() && quote.update_id > self.book.last_update_id() {
            self.announced = quote.update_id;
            self.behind_since.get_or_insert(now.monotonic);
        }
        match self.book.announce(quote) {
            Ok(()) => self.published.agreed.store(self.book.agreed(), Ordering::Relaxed),
            Err(fault) => self.fault(fault, now),
        }
    }

    /// The answer to what was asked for with this generation.
    pub(super) fn snapshot(&mut self, generation: u64, answer: Result<Snapshot, Unanswered>, now: Moment) {
        if generation != self.generation {
            return;
        }
        self.waiting = false;
        let snapshot = match answer {
            Ok(snapshot) => snapshot,
            Err(Unanswered { reason, wait }) => {
                let state = self.published.status().state;
                self.published
                    .set_status(state, Some(format!("no snapshot yet: {reason}")), now);
                match wait {
                    // Before that it would be in vain, and much after it too late.
                    Some(wait) => self.ask_at = Some(now.monotonic + wait + jitter()),
                    None => self.ask_later(now.monotonic),
                }
                return;
            }
        };
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
        // A market is not quiet while best prices are announced that the book does not have.
        let is_behind =
            self.comparing.is_some() && self.behind_since.is_some() && snapshot.last_update_id < self.announced;
        let moved_on = self.comparing.is_some_and(|id| id != snapshot.last_update_id) && self.is_silent();
        match self.book.snapshot(snapshot) {
            Ok(Installed::Synced) if moved_on => {
                self.comparing = None;
                self.suspected = Some(now.monotonic);
                self.publish_as(BookState::Stale, Some("updates do not come".to_owned()), now);
            }
            Ok(Installed::Synced) if is_behind => {
                self.comparing = None;
                self.confirmed = true;
                self.quiet = (self.quiet * 2).min(64);
                self.behind_since = Some(now.monotonic);
                self.updated = Some(now.monotonic);
                self.publish_as(BookState::Stale, Some(LEFT_BEHIND.to_owned()), now);
            }
            Ok(Installed::Synced) => {
                self.behind_since = None;
                if self.comparing.take().is_some() {
                    self.quiet = (self.quiet * 2).min(64);
                }
                self.updated = Some(now.monotonic);
                self.publish(now);
            }
            Ok(Installed::TooOld) => self.ask_later(now.monotonic),
            Ok(Installed::NotNeeded) => {}
            Err(fault) => self.fault(fault, now),
        }
    }

    /// Whether a snapshot is to be asked for now.
    pub(super) fn wants_snapshot(&mut self, now: Instant) -> bool {
        let Some(opened) = self.opened else { return false };
        if self.waiting {
            return false;
        }
        if self.book.is_synced() {
            return false;
        }
        // Nothing has been heard of it: a quiet market needs a snapshot too.
        let due = self.ask_at.unwrap_or(opened + CONFIRM_AFTER / 2);
        if now < due {
            return false;
        }
        self.waiting = true;
        self.ask_at = None;
        self.generation += 1;
        true
    }

    /// Looks whether updates have stopped coming.
    pub(super) fn check_silence(&mut self, now: Moment) -> Next {
        let Some(opened) = self.opened else {
            return Next::Nothing;
        };
        if !self.book.is_synced() {
            return Next::Nothing;
        }
        if let Some(suspected) = self.suspected {
            let broken = now.monotonic.duration_since(suspected) >= CONFIRM_AFTER;
            return if broken { Next::Reconnect } else { Next::Nothing };
        }
        if !self.confirmed {
            if now.monotonic.duration_since(opened) >= CONFIRM_AFTER {
                self.compare(now.monotonic);
            }
            return Next::Nothing;
        }
        if self.is_left_behind(now.monotonic) {
            self.published
                .set_status(BookState::Stale, Some(LEFT_BEHIND.to_owned()), now);
            self.compare(now.monotonic);
            return Next::Nothing;
        }
        let (Some(updated), Some(patience)) = (self.updated, self.patience()) else {
            return Next::Nothing;
        };
        let silence = now.monotonic.duration_since(updated);
        if silence >= patience {
            let reason = format!(
                "no update for {:.0} s, where one every {:.0} ms is usual",
                silence.as_secs_f64(),
                self.usual * 1000.0
            );
            self.published.set_status(BookState::Stale, Some(reason), now);
            self.compare(now.monotonic);
        }
        Next::Nothing
    }

    /// Once a second.
    pub(super) fn look(&self, now: Instant, exchange_millis: i64) {
        match self.published.live() {
            Some(view) => {
                let beats = self.published.pulse.beats(now, SAMPLE_SECS);
                self.published
                    .watch
                    .look(&view, &self.published.tape, beats, exchange_millis);
            }
            None => self.published.watch.interrupted(exchange_millis),
        }
    }

    fn compare(&mut self, now: Instant) {
        self.comparing = Some(self.book.last_update_id());
        self.book.discard();
        self.waiting = false;
        self.ask_at = Some(now);
    }

    fn is_silent(&self) -> bool {
        self.book.buffered() == 0
    }

    /// Whether best prices have long been announced for an update that the book does not have.
    fn is_left_behind(&self, now: Instant) -> bool {
        let longest = MIN_PATIENCE * self.quiet;
        self.behind_since
            .is_some_and(|since| now.duration_since(since) >= longest)
    }

    fn patience(&self) -> Option<Duration> {
        (self.updates >= 20).then(|| {
            let usual = Duration::from_secs_f64((self.usual * 20.0).min(3600.0));
            usual.max(MIN_PATIENCE) * self.quiet
        })
    }

    fn note_update(&mut self, now: Instant) {
        if let Some(before) = self.updated {
            let seconds = now.duration_since(before).as_secs_f64();
            let share = if self.updates < 20 { 0.3 } else { 0.05 };
            self.usual += share * (seconds - self.usual);
        }
        self.updates = self.updates.saturating_add(1);
        self.updated = Some(now);
        self.behind_since = None;
        self.quiet = 1;
        if self.attempts > 0 && now.duration_since(self.faulted) > FORGIVEN_AFTER {
            self.attempts = 0;
        }
    }

    pub(super) fn publish(&mut self, now: Moment) {
        self.confirmed = true;
        self.suspected = None;
        self.published.confirm(now.monotonic);
        self.publish_as(BookState::Live, None, now);
    }

    fn publish_as(&self, state: BookState, reason: Option<String>, now: Moment) {
        self.published.publish(BookView {
            symbol: self.published.symbol.clone(),
            depth: self.book.depth().clone(),
            last_update_id: self.book.last_update_id(),
            exchange_time: self.book.time(),
            received: now,
        });
        self.published.agreed.store(self.book.agreed(), Ordering::Relaxed);
        self.published.set_status(state, reason, now);
    }

    fn fault(&mut self, fault: Fault, now: Moment) {
        let warming = self.published.status().state == BookState::Warming;
        if !warming {
            self.published.resyncs.fetch_add(1, Ordering::Relaxed);
            metrics::counter!("tribune_book_resyncs_total").increment(1);
            tracing::debug!(symbol = %self.published.symbol, %fault, "book discarded");
            self.published
                .set_status(BookState::Resyncing, Some(fault.to_string()), now);
        }
        self.comparing = None;
        self.suspected = None;
        self.behind_since = None;
        self.waiting = false;
        if now.monotonic.duration_since(self.faulted) > FORGIVEN_AFTER {
            self.attempts = 0;
        }
        self.faulted = now.monotonic;
        match self.attempts {
            0 => {
                self.attempts = 1;
                self.ask_at = Some(now.monotonic);
            }
            _ => self.ask_later(now.monotonic),
        }
    }

    fn ask_soon(&mut self, now: Instant) {
        if !self.waiting && self.ask_at.is_none() {
            self.ask_at = Some(now);
        }
    }

    fn ask_later(&mut self, now: Instant) {
        let wait = Duration::from_millis(100) * 2u32.pow(self.attempts.min(10));
        self.attempts = self.attempts.saturating_add(1);
        self.ask_at = Some(now + wait.min(MAX_RETRY) + jitter());
    }
}

/// So that many books do not ask in the same moment.
fn jitter() -> Duration {
    Duration::from_millis(fastrand::u64(0..50))
}
