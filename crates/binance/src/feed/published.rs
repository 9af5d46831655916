//! What readers see of one symbol, without ever blocking the feed.

use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::link::Link;
use super::pulse::{Beats, Pulse};
use crate::book::Depth;
use crate::model::Millis;
use crate::moment::Moment;
use crate::number::Notional;
use crate::tape::Tape;

/// Trades are kept for this long: the longest window of order flow, and its baseline.
const KEEP_TRADES: Millis = 15 * 60 * 1000;

/// How far a book can be trusted now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BookState {
    /// The first snapshot is being waited for.
    Warming,
    /// Exact, and current.
    Live,
    /// Was exact, and updates have stopped coming; or no update has joined its snapshot yet, where one must.
    Stale,
    /// Found wrong or incomplete, and discarded; the next snapshot is being waited for.
    Resyncing,
}

impl BookState {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Warming => "warming",
            Self::Live => "live",
            Self::Stale => "stale",
            Self::Resyncing => "resyncing",
        }
    }
}

/// The state of a book, and the book in that state.
#[derive(Debug)]
pub struct Status {
    pub state: BookState,
    /// Why it is not live.
    pub reason: Option<String>,
    pub since: Moment,
    /// Without a book that is exact or was so, there is none.
    pub view: Option<Arc<BookView>>,
}

/// A book after one update; never changed once it is published.
#[derive(Debug)]
pub struct BookView {
    pub depth: Depth,
    pub last_update_id: u64,
    /// Of the last update, by the exchange's clock; `None` right after a snapshot, which has none.
    pub exchange_time: Option<Millis>,
    pub received: Moment,
}

/// The beats that an observer is given are of so many seconds.
pub const OBSERVED_SECS: u64 = 10;

/// Looks at a tracked book once a second, and keeps what it needs; one for each book. Times are the exchange's.
pub trait Observer: Debug + Default + Send + Sync + 'static {
    /// What is traded in 24 hours by now, once that is known.
    fn set_turnover(&self, turnover: Notional);

    /// The book is exact; `beats` are of the last [`OBSERVED_SECS`].
    fn look(&self, view: &BookView, tape: &Tape, beats: Beats, time: Millis);

    /// The book is not exact: what is seen next does not continue what was seen before.
    fn interrupted(&self, time: Millis);
}

/// One tracked symbol, as readers have it.
#[derive(Debug)]
pub struct Published<O> {
    pub symbol: Arc<str>,
    /// Replaced only by the symbol's shard.
    status: ArcSwap<Status>,
    pub tape: Tape,
    pub pulse: Pulse,
    pub watch: O,
    /// Kept even if unused.
    pinned: AtomicBool,
    /// Smaller is more traded: the order in which snapshots are fetched.
    rank: AtomicUsize,
    started: Instant,
    /// Of the connection that its updates come on.
    pub(super) link: Arc<Link>,
    /// When the published book was last confirmed, in milliseconds since `started`.
    confirmed: AtomicU64,
    asked: AtomicU64,
    pub(super) resyncs: AtomicU64,
}

impl<O: Observer> Published<O> {
    pub fn new(symbol: Arc<str>, pinned: bool, rank: usize, now: Moment) -> Self {
        Self {
            link: Arc::new(Link::new(now.monotonic)),
            confirmed: AtomicU64::new(0),
            symbol,
            status: ArcSwap::from_pointee(Status {
                state: BookState::Warming,
                reason: Some("waiting for its first snapshot".to_owned()),
                since: now,
                view: None,
            }),
            tape: Tape::new(KEEP_TRADES),
            pulse: Pulse::new(now.monotonic),
            watch: O::default(),
            pinned: AtomicBool::new(pinned),
            rank: AtomicUsize::new(rank),
            started: now.monotonic,
            asked: AtomicU64::new(0),
            resyncs: AtomicU64::new(0),
        }
    }

    /// The book, if it is exact and current.
    pub fn live(&self) -> Option<Arc<BookView>> {
        let status = self.status.load();
        status.view.clone().filter(|_| status.state == BookState::Live)
    }

    pub fn status(&self) -> Arc<Status> {
        self.status.load_full()
    }

    /// When the book was last confirmed: it changed, or its connection brought something else and would have brought a
    /// change. Before the first book, when it was asked for.
    pub fn confirmed(&self) -> Instant {
        let heard = self.heard();
        heard.checked_sub(self.link.lag()).unwrap_or(heard)
    }

    /// How far behind the exchange's clock the last events were, if notably.
    pub fn lag(&self) -> Duration {
        self.link.lag()
    }

    /// When its last message arrived, however late.
    pub fn heard(&self) -> Instant {
        let received = self.started + Duration::from_millis(self.confirmed.load(Ordering::Relaxed));
        match self.status.load().state {
            BookState::Live => received.max(self.link.last()),
            _ => received,
        }
    }

    fn millis_at(&self, at: Instant) -> u64 {
        let millis = at.saturating_duration_since(self.started).as_millis();
        u64::try_from(millis).unwrap_or(u64::MAX)
    }

    /// Its connection has ended: a live book was current until then.
    pub(super) fn lost(&self) {
        self.confirm(self.heard());
    }

    pub fn is_pinned(&self) -> bool {
        self.pinned.load(Ordering::Relaxed)
    }

    pub fn set_pinned(&self, pinned: bool) {
        self.pinned.store(pinned, Ordering::Relaxed);
    }

    pub fn rank(&self) -> usize {
        self.rank.load(Ordering::Relaxed)
    }

    pub fn set_rank(&self, rank: usize) {
        self.rank.store(rank, Ordering::Relaxed);
    }

    /// The published book was the exchange's at this time.
    pub fn confirm(&self, at: Instant) {
        self.confirmed.fetch_max(self.millis_at(at), Ordering::Relaxed);
    }

    pub fn resyncs(&self) -> u64 {
        self.resyncs.load(Ordering::Relaxed)
    }

    pub fn note_asked(&self, now: Instant) {
        self.asked.store(self.millis_at(now), Ordering::Relaxed);
    }

    /// How long ago it was last asked for.
    pub fn unasked_millis(&self, now: Instant) -> u64 {
        let millis = self.millis_at(now);
        millis.saturating_sub(self.asked.load(Ordering::Relaxed))
    }

    pub fn publish(&self, view: BookView, state: BookState, reason: Option<String>) {
        let now = view.received;
        self.store(Some(Arc::new(view)), state, reason, now);
    }

    pub fn set_status(&self, state: BookState, reason: Option<String>, now: Moment) {
        let has_book = matches!(state, BookState::Live | BookState::Stale);
        let view = self.status.load().view.clone().filter(|_| has_book);
        self.store(view, state, reason, now);
    }

    fn store(&self, view: Option<Arc<BookView>>, state: BookState, reason: Option<String>, now: Moment) {
        let before = self.status.load();
        let since = if before.state == state { before.since } else { now };
        self.status.store(Arc::new(Status { state, reason, since, view }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::ManualClock;

    /// Each time that it is live, it is at a later update.
    #[test]
    fn live_status_always_has_its_book() {
        let start = Moment::now(&ManualClock::at(0));
        let book = Arc::new(Published::<()>::new("BTCUSDT".into(), true, 0, start));
        let reader = book.clone();
        let done = Arc::new(AtomicBool::new(false));
        let is_done = done.clone();
        let reading = std::thread::spawn(move || {
            let mut last = (0, 0);
            while !is_done.load(Ordering::Relaxed) {
                let status = reader.status();
                if status.state == BookState::Live {
                    let turn: u64 = status.reason.as_deref().expect("a number").parse().expect("a number");
                    let id = status.view.as_ref().expect("a live book is there").last_update_id;
                    assert!(id >= turn && (turn, id) >= last, "{turn} {id} {last:?}");
                    last = (turn, id);
                }
            }
        });
        for turn in 1..20_000u64 {
            let view = |last_update_id| BookView {
                depth: Depth::default(),
                last_update_id,
                exchange_time: None,
                received: start,
            };
            book.publish(view(turn), BookState::Live, Some(turn.to_string()));
            book.set_status(BookState::Resyncing, None, start);
        }
        done.store(true, Ordering::Relaxed);
        reading.join().expect("no panic");
    }

    #[test]
    fn age_counts_from_the_last_confirmation_and_its_lag() {
        let clock = ManualClock::at(0);
        let start = Moment::now(&clock);
        let book = Published::<()>::new("BTCUSDT".into(), true, 0, start);
        let link = book.link.clone();
        let at = |millis| start.monotonic + Duration::from_millis(millis);
        book.confirm(at(1_000));
        book.set_status(BookState::Live, None, start);
        link.beat(at(8_000));
        assert_eq!(book.confirmed(), at(8_000), "something else came, so it is quiet");
        link.set_lag(Duration::from_secs(6));
        assert_eq!(book.confirmed(), at(2_000), "what came was six seconds old");
        link.set_lag(Duration::ZERO);
        book.lost();
        book.set_status(BookState::Stale, None, start);
        link.beat(at(9_000));
        assert_eq!(book.confirmed(), at(8_000), "another connection's word says nothing of it");
    }
}
