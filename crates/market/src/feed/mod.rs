//! The live feed: streams in, published books out. In reading order:
//!
//! - [`event`]: messages of the streams, as values
//! - `socket`: one connection
//! - `shard`: one connection's worth of symbols, the only writer of their books
//! - `tracked`: the writer's side of a symbol; `published`: the readers'; `heartbeat`: when a connection last spoke
//! - `snapshots`: fetches snapshots by rank, within the weight budget
//! - `board`: the last day of every symbol; `pulse`: how lively one is; `watch`: what was seen of
//!   its book for a while; `history`: spread and imbalance of the last minutes
//! - `alone`: one book without a connection, to be measured

mod alone;
mod board;
mod dial;
pub mod event;
mod heartbeat;
mod history;
mod published;
mod pulse;
mod shard;
mod snapshots;
mod socket;
mod tracked;
mod watch;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tribune_core::Clock;

#[doc(hidden)]
pub use alone::Alone;
pub use board::{Board, Day};
pub use history::{EVERY_MS as SAMPLE_EVERY_MS, HISTORY_SECS, IMBALANCE_LEVELS, Sample};
pub use published::{BookState, BookView, Published, Status};
pub use pulse::{Beats, Pulse};
pub use watch::Watch;

use crate::model::Millis;
use crate::moment::Moment;
use crate::rest::Rest;
use heartbeat::Heartbeat;
use shard::{Order, Shard};
use snapshots::Wanted;

/// Four streams a symbol, of the 1,024 that one connection may have.
const SYMBOLS_A_SHARD: usize = 200;
/// Events come within a moment: more than this is another clock.
const NOTABLE_DRIFT_MS: Millis = 1_000;
/// An event that is further ahead of the clocks than this is not believed.
const MAX_AHEAD_MS: Millis = 24 * 3600 * 1000;
/// How often is looked for books that nobody wants.
const LOOK_FOR_IDLE: Duration = Duration::from_secs(5);

#[derive(Debug, Clone)]
pub struct Settings {
    pub stream_url: String,
    /// A connection is replaced before the exchange ends it, which it does after a day.
    pub rotate_after: Duration,
    /// Levels a side that a book keeps.
    pub max_levels: usize,
    /// Of the most traded symbols, snapshots of 5,000 levels are taken; of the others 1,000.
    pub deep_ranks: usize,
    /// Books kept at the same time, pinned ones among them.
    pub max_books: usize,
    /// A book that nobody asked for in this time is dropped, unless it is pinned.
    pub idle_after: Duration,
}

impl Settings {
    pub fn new(stream_url: impl Into<String>) -> Self {
        Self {
            stream_url: stream_url.into(),
            rotate_after: Duration::from_secs(23 * 3600 + 1800),
            max_levels: 6_000,
            deep_ranks: 10,
            max_books: 200,
            idle_after: Duration::from_secs(600),
        }
    }

    fn snapshot_limit(&self, rank: usize, pinned: bool) -> u32 {
        if pinned && rank < self.deep_ranks { 5_000 } else { 1_000 }
    }
}

/// How the streams are, for the operator.
#[derive(Debug, Default)]
pub struct Health {
    connected: AtomicBool,
    /// Why the last connection failed or ended.
    trouble: Mutex<Option<String>>,
    /// How far the exchange's clock is ahead of ours.
    offset_ms: AtomicI64,
    /// The latest time of an event, by the exchange's clock.
    latest: AtomicI64,
    /// How far the last event was from what the exchange's clock was thought to say.
    drift_ms: AtomicI64,
    /// The exchange's clock has been told, and runs as clocks do: a replay's does not.
    has_clock: AtomicBool,
}

impl Health {
    fn connected(&self, is: bool) {
        self.connected.store(is, Ordering::Relaxed);
    }

    fn connection_failed(&self, why: &str) {
        self.connected(false);
        *self.trouble.lock().unwrap_or_else(PoisonError::into_inner) = Some(why.to_owned());
    }

    /// How far behind the exchange's clock the last event was. Less than a second is what clocks and ways differ by
    /// anyway.
    pub fn lag(&self) -> Duration {
        let behind = self.drift_ms.load(Ordering::Relaxed).saturating_neg();
        match u64::try_from(behind) {
            Ok(behind) if behind >= NOTABLE_DRIFT_MS.unsigned_abs() && self.has_clock.load(Ordering::Relaxed) => {
                Duration::from_millis(behind)
            }
            _ => Duration::ZERO,
        }
    }

    pub fn set_has_clock(&self, has: bool) {
        self.has_clock.store(has, Ordering::Relaxed);
    }

    /// What was learned of the exchange's clock, at this time of ours.
    pub fn set_offset_ms(&self, offset: Millis, now: Timestamp) {
        self.offset_ms.store(offset, Ordering::Relaxed);
        let reckoned = now.as_millisecond().saturating_add(offset);
        // A clock that was put back takes what it said before with it.
        if self.latest.load(Ordering::Relaxed) > reckoned.saturating_add(NOTABLE_DRIFT_MS) {
            self.latest.store(reckoned, Ordering::Relaxed);
        }
        self.drift_ms.store(0, Ordering::Relaxed);
    }

    /// An event has come that the exchange says is of this time.
    fn note_event(&self, time: Millis, now: Timestamp) {
        let reckoned = now
            .as_millisecond()
            .saturating_add(self.offset_ms.load(Ordering::Relaxed));
        self.drift_ms.store(time.saturating_sub(reckoned), Ordering::Relaxed);
        self.latest.fetch_max(time, Ordering::Relaxed);
    }

    /// Whether events are of another time than the exchange's clock is thought to have.
    pub fn has_drifted(&self) -> bool {
        self.drift_ms.load(Ordering::Relaxed).abs() >= NOTABLE_DRIFT_MS
    }

    /// What the exchange's clock says now: never before what it has already said.
    pub fn exchange_millis(&self, now: Timestamp) -> Millis {
        let offset = self.offset_ms.load(Ordering::Relaxed);
        let reckoned = now.as_millisecond().saturating_add(offset);
        let latest = self.latest.load(Ordering::Relaxed);
        let is_likely = latest.saturating_sub(reckoned) <= MAX_AHEAD_MS;
        if is_likely { reckoned.max(latest) } else { reckoned }
    }

    /// `None` while all is well.
    pub fn trouble(&self) -> Option<String> {
        if self.connected.load(Ordering::Relaxed) {
            return None;
        }
        let trouble = self.trouble.lock().unwrap_or_else(PoisonError::into_inner);
        Some(trouble.clone().unwrap_or_else(|| "not connected yet".to_owned()))
    }
}

/// Every tracked symbol. Ends when it is dropped.
pub struct Feed {
    settings: Settings,
    clock: Arc<dyn Clock>,
    books: Arc<RwLock<HashMap<Arc<str>, Arc<Published>>>>,
    shards: Mutex<Vec<ShardHandle>>,
    wanted: mpsc::UnboundedSender<Wanted>,
    pub board: Arc<Board>,
    pub health: Arc<Health>,
    stop: CancellationToken,
}

struct ShardHandle {
    orders: mpsc::UnboundedSender<Order>,
    heartbeat: Arc<Heartbeat>,
    symbols: Vec<Arc<str>>,
}

impl Feed {
    /// `rest` is for snapshots, which nobody waits for. Must be called within a runtime.
    pub fn start(settings: Settings, rest: Rest, clock: Arc<dyn Clock>) -> Arc<Self> {
        let (wanted, receiver) = mpsc::unbounded_channel();
        let stop = CancellationToken::new();
        tokio::spawn(snapshots::run(rest, receiver, stop.clone()));
        let feed = Arc::new(Self {
            settings,
            clock,
            books: Arc::default(),
            shards: Mutex::default(),
            wanted,
            board: Arc::default(),
            health: Arc::default(),
            stop,
        });
        let first = feed.open_shard(true);
        feed.lock_shards().push(first);
        tokio::spawn(forget_idle(Arc::downgrade(&feed), feed.stop.clone()));
        feed
    }

    /// The book of a symbol, if it is tracked.
    pub fn lookup(&self, symbol: &str) -> Option<Arc<Published>> {
        let books = self.books.read().unwrap_or_else(PoisonError::into_inner);
        let published = books.get(symbol).cloned()?;
        published.note_asked(self.clock.monotonic());
        Some(published)
    }

    /// Tracks a symbol from now on; `None` if as many books as may be are kept and wanted.
    pub fn track(&self, symbol: &Arc<str>, pinned: bool, rank: usize) -> Option<Arc<Published>> {
        if let Some(published) = self.lookup(symbol) {
            // Somebody may have asked for it before it was known that it is always wanted.
            if pinned {
                published.set_pinned(true);
            }
            return Some(published);
        }
        // Held throughout, as in `forget`: else the shard could hear of both in the other order.
        let mut shards = self.lock_shards();
        let now = Moment::now(&*self.clock);
        let day = self.board.lookup(symbol).map(|day| day.quote_volume);
        {
            let books = self.books.read().unwrap_or_else(PoisonError::into_inner);
            if let Some(already) = books.get(symbol) {
                return Some(already.clone());
            }
            if books.len() >= self.settings.max_books {
                return None;
            }
        }
        let shard = match shards
            .iter_mut()
            .position(|shard| shard.symbols.len() < SYMBOLS_A_SHARD)
        {
            Some(place) => &mut shards[place],
            None => {
                shards.push(self.open_shard(false));
                shards.last_mut()?
            }
        };
        let heartbeat = shard.heartbeat.clone();
        let published = Arc::new(Published::on(heartbeat, symbol.clone(), pinned, rank, day, now));
        {
            let mut books = self.books.write().unwrap_or_else(PoisonError::into_inner);
            books.insert(symbol.clone(), published.clone());
            metrics::gauge!("tribune_books").set(books.len() as f64);
        }
        shard.symbols.push(symbol.clone());
        let _ = shard.orders.send(Order::Track(published.clone()));
        Some(published)
    }

    /// Lets go of the exchange; what was published stays.
    pub fn stop(&self) {
        self.stop.cancel();
    }

    /// Every tracked symbol.
    pub fn books(&self) -> Vec<Arc<Published>> {
        let books = self.books.read().unwrap_or_else(PoisonError::into_inner);
        books.values().cloned().collect()
    }

    fn forget(&self, symbol: &Arc<str>) {
        let mut shards = self.lock_shards();
        let mut books = self.books.write().unwrap_or_else(PoisonError::into_inner);
        books.remove(symbol);
        metrics::gauge!("tribune_books").set(books.len() as f64);
        drop(books);
        for shard in shards.iter_mut() {
            if let Some(at) = shard.symbols.iter().position(|tracked| tracked == symbol) {
                shard.symbols.swap_remove(at);
                let _ = shard.orders.send(Order::Forget(symbol.clone()));
            }
        }
    }

    fn lock_shards(&self) -> std::sync::MutexGuard<'_, Vec<ShardHandle>> {
        self.shards.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn open_shard(&self, with_board: bool) -> ShardHandle {
        let (orders, receiver) = mpsc::unbounded_channel();
        let now = self.clock.monotonic();
        let heartbeat = Arc::new(Heartbeat::new(now));
        let shard = Shard {
            heartbeat: heartbeat.clone(),
            settings: self.settings.clone(),
            clock: self.clock.clone(),
            orders: receiver,
            reply: orders.clone(),
            wanted: self.wanted.clone(),
            board: with_board.then(|| self.board.clone()),
            health: self.health.clone(),
            stop: self.stop.clone(),
            symbols: HashMap::new(),
            socket: None,
            successor: None,
            connecting: None,
            connect_at: now,
            failures: 0,
            looked: now,
        };
        tokio::spawn(shard.run());
        ShardHandle {
            orders,
            heartbeat,
            symbols: Vec::new(),
        }
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        self.stop();
    }
}

async fn forget_idle(feed: std::sync::Weak<Feed>, stop: CancellationToken) {
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(LOOK_FOR_IDLE) => {}
        }
        let Some(feed) = feed.upgrade() else { return };
        let now = feed.clock.monotonic();
        let longest = u64::try_from(feed.settings.idle_after.as_millis()).unwrap_or(u64::MAX);
        for book in feed.books() {
            if !book.is_pinned() && book.unasked_millis(now) > longest {
                feed.forget(&book.symbol);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_that_are_seconds_old_lag() {
        let health = Health::default();
        let now = Timestamp::from_millisecond(1_000_000).expect("a time");
        health.set_offset_ms(2_000, now);
        health.note_event(1_002_000 - 6_200, now);
        assert_eq!(health.lag(), Duration::ZERO, "no clock to compare with");
        health.set_has_clock(true);
        assert_eq!(health.lag(), Duration::from_millis(6_200));
        health.note_event(1_002_000 - 900, now);
        assert_eq!(health.lag(), Duration::ZERO, "what ways differ by");
        health.note_event(1_002_000 + 5_000, now);
        assert_eq!(health.lag(), Duration::ZERO, "a clock that is ahead does not lag");
    }
}
