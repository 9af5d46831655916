//! The live feed: streams in, published books out. In reading order:
//!
//! - [`event`]: messages of the streams, as values
//! - `socket`: one connection; `subscriptions`: what it subscribes to
//! - `shard`: one connection's worth of symbols, the only writer of their books
//! - `tracked`: the writer's side of a symbol; `published`: the readers' side; `link`: the state of a connection;
//!   `health`: that of all connections, and the exchange's time
//! - `snapshots`: fetches snapshots by rank, within the weight budget
//! - `board`: the last 24 hours of every symbol; `pulse`: the activity of one; [`Observer`]: looks at every book
//!   once a second

#[cfg(any(test, feature = "testing"))]
#[path = "../../testing/alone.rs"]
mod alone;
mod board;
pub mod event;
mod health;
mod link;
mod published;
mod pulse;
mod shard;
mod snapshots;
mod socket;
mod subscriptions;
mod tracked;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, RwLock};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tribune_clock::Clock;

#[cfg(any(test, feature = "testing"))]
pub use alone::Alone;
pub use board::{Board, Day};
pub use health::Health;
pub use published::{BookState, BookView, OBSERVED_SECS, Observer, Published, Status};
pub use pulse::{Beats, Pulse};

use crate::moment::Moment;
use crate::rest::Rest;
use link::Link;
use shard::{Command, Past, Shard};
use snapshots::Wanted;

/// Four streams a symbol, of the 1,024 that one connection may have.
const SYMBOLS_A_SHARD: usize = 200;
const LOOK_FOR_IDLE: Duration = Duration::from_secs(5);

#[derive(Debug, Clone)]
pub struct Settings {
    pub stream_url: String,
    /// A connection is replaced before the exchange ends it, which it does after a day.
    pub rotate_after: Duration,
    /// Books kept at the same time, pinned ones among them.
    pub max_books: usize,
    /// An unpinned book that is not used for this long is dropped.
    pub idle_after: Duration,
}

impl Settings {
    pub fn new(stream_url: impl Into<String>) -> Self {
        Self {
            stream_url: stream_url.into(),
            rotate_after: Duration::from_secs(23 * 3600 + 1800),
            max_books: 200,
            idle_after: Duration::from_secs(600),
        }
    }
}

/// Every tracked symbol. Ends when it is dropped.
pub struct Feed<O> {
    settings: Settings,
    clock: Arc<dyn Clock>,
    tracking: RwLock<Tracking<O>>,
    wanted: mpsc::UnboundedSender<Wanted<O>>,
    /// What the first connection needs; taken when the feed starts.
    unstarted: Mutex<Option<(Rest, mpsc::UnboundedReceiver<Wanted<O>>)>>,
    pub board: Arc<Board>,
    pub health: Arc<Health>,
    stop: CancellationToken,
}

struct Tracking<O> {
    /// By symbol; with the place of its shard.
    books: HashMap<Arc<str>, (Arc<Published<O>>, usize)>,
    shards: Vec<ShardHandle<O>>,
}

struct ShardHandle<O> {
    commands: mpsc::UnboundedSender<Command<O>>,
    link: Arc<Link>,
    symbols: usize,
}

impl<O: Observer> Feed<O> {
    /// Connects to nothing before [`Feed::connect`]. `rest` fetches snapshots in the background.
    pub fn new(settings: Settings, rest: Rest, clock: Arc<dyn Clock>) -> Arc<Self> {
        let (wanted, receiver) = mpsc::unbounded_channel();
        Arc::new(Self {
            settings,
            clock,
            tracking: RwLock::new(Tracking { books: HashMap::new(), shards: Vec::new() }),
            wanted,
            board: Arc::default(),
            health: Arc::new(Health::new(rest.clone())),
            unstarted: Mutex::new(Some((rest, receiver))),
            stop: CancellationToken::new(),
        })
    }

    /// Opens the first connection; a second call does nothing. Must be called within a runtime.
    pub fn connect(self: &Arc<Self>) {
        let Some((rest, wanted)) = self.unstarted.lock().take() else { return };
        tokio::spawn(snapshots::run(rest, wanted, self.stop.clone()));
        let first = self.open_shard(true);
        self.tracking.write().shards.push(first);
        tokio::spawn(forget_idle(Arc::downgrade(self), self.stop.clone()));
    }

    /// The book of a symbol, if it is tracked.
    pub fn lookup(&self, symbol: &str) -> Option<Arc<Published<O>>> {
        let tracking = self.tracking.read();
        let (published, _) = tracking.books.get(symbol)?;
        published.note_asked(self.clock.monotonic());
        Some(published.clone())
    }

    /// Tracks a symbol from now on; `None` if the limit of live books is reached.
    pub fn track(&self, symbol: &Arc<str>, pinned: bool, rank: usize) -> Option<Arc<Published<O>>> {
        let now = Moment::now(&*self.clock);
        // Held throughout, as in `forget`, so that the shard gets both commands in the right order.
        let mut tracking = self.tracking.write();
        let Tracking { books, shards } = &mut *tracking;
        if let Some((published, _)) = books.get(symbol) {
            // It may have been asked for before it is known to be pinned.
            if pinned {
                published.set_pinned(true);
            }
            return Some(published.clone());
        }
        if books.len() >= self.settings.max_books {
            return None;
        }
        let with_room = shards.iter().position(|shard| shard.symbols < SYMBOLS_A_SHARD);
        let at = with_room.unwrap_or_else(|| {
            shards.push(self.open_shard(false));
            shards.len() - 1
        });
        let shard = &mut shards[at];
        let mut published = Published::<O>::new(symbol.clone(), pinned, rank, now);
        if let Some(day) = self.board.lookup(symbol) {
            published.watch.set_turnover(day.quote_volume);
        }
        published.link = shard.link.clone();
        let published = Arc::new(published);
        books.insert(symbol.clone(), (published.clone(), at));
        metrics::gauge!("tribune_books").set(books.len() as f64);
        shard.symbols += 1;
        let _ = shard.commands.send(Command::Track(published.clone()));
        Some(published)
    }

    /// Ends all connections; what was published stays.
    pub fn stop(&self) {
        self.stop.cancel();
    }

    pub fn books(&self) -> Vec<Arc<Published<O>>> {
        let tracking = self.tracking.read();
        tracking.books.values().map(|(published, _)| published.clone()).collect()
    }

    fn forget(&self, symbol: &Arc<str>) {
        let mut tracking = self.tracking.write();
        let Some((_, at)) = tracking.books.remove(symbol) else { return };
        metrics::gauge!("tribune_books").set(tracking.books.len() as f64);
        let shard = &mut tracking.shards[at];
        shard.symbols -= 1;
        let _ = shard.commands.send(Command::Forget(symbol.clone()));
    }

    fn open_shard(&self, with_board: bool) -> ShardHandle<O> {
        let (commands, receiver) = mpsc::unbounded_channel();
        let now = self.clock.monotonic();
        let link = self.health.link(now);
        let shard = Shard {
            settings: self.settings.clone(),
            clock: self.clock.clone(),
            commands: receiver,
            reply: commands.clone(),
            wanted: self.wanted.clone(),
            board: with_board.then(|| self.board.clone()),
            health: self.health.clone(),
            link: link.clone(),
            stop: self.stop.clone(),
            symbols: HashMap::new(),
            socket: None,
            successor: None,
            connecting: None,
            connect_at: now,
            failures: 0,
            looked: now,
            past: Past::default(),
        };
        tokio::spawn(shard.run());
        ShardHandle { commands, link, symbols: 0 }
    }
}

impl<O> Drop for Feed<O> {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

async fn forget_idle<O: Observer>(feed: std::sync::Weak<Feed<O>>, stop: CancellationToken) {
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
