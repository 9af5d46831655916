//! The live feed: streams in, published books out. In reading order:
//!
//! - [`event`]: messages of the streams, as values
//! - `socket`: one connection; `subscriptions`: what it subscribes to
//! - `shard`: one connection's worth of symbols, the only writer of their books
//! - `tracked`: the writer's side of a symbol; `published`: the readers' side; `heartbeat`: when a connection last
//!   brought anything; `health`: the state of all connections, and the exchange's time
//! - `snapshots`: fetches snapshots by rank, within the weight budget
//! - `board`: the last 24 hours of every symbol; `pulse`: the activity of one; [`Observer`]: looks at every book
//!   once a second; `ofi`: pressure on the best prices

#[cfg(any(test, feature = "testing"))]
#[path = "../../testing/alone.rs"]
mod alone;
mod board;
pub mod event;
mod health;
mod heartbeat;
mod observer;
mod ofi;
mod published;
mod pulse;
mod settings;
mod shard;
mod snapshots;
mod socket;
mod subscriptions;
mod tracked;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tribune_clock::Clock;

#[cfg(any(test, feature = "testing"))]
pub use alone::Alone;
pub use board::{Board, Day};
pub use health::Health;
pub use observer::{OBSERVED_SECS, Observer};
pub use published::{BookState, BookView, Published, Status};
pub use pulse::{Beats, Pulse};
pub use settings::Settings;

use crate::moment::Moment;
use crate::rest::Rest;
use heartbeat::Heartbeat;
use shard::{Command, Past, Shard};
use snapshots::Wanted;

/// Four streams a symbol, of the 1,024 that one connection may have.
const SYMBOLS_A_SHARD: usize = 200;
/// How often unused books are looked for.
const LOOK_FOR_IDLE: Duration = Duration::from_secs(5);

/// The published book of every tracked symbol, by symbol.
type Books<O> = HashMap<Arc<str>, Arc<Published<O>>>;

/// Every tracked symbol. Ends when it is dropped.
pub struct Feed<O> {
    settings: Settings,
    clock: Arc<dyn Clock>,
    books: RwLock<Books<O>>,
    shards: Mutex<Vec<ShardHandle<O>>>,
    wanted: mpsc::UnboundedSender<Wanted<O>>,
    /// What the first connection needs; taken when the feed starts.
    unstarted: Mutex<Option<(Rest, mpsc::UnboundedReceiver<Wanted<O>>)>>,
    pub board: Arc<Board>,
    pub health: Arc<Health>,
    stop: CancellationToken,
}

struct ShardHandle<O> {
    commands: mpsc::UnboundedSender<Command<O>>,
    heartbeat: Arc<Heartbeat>,
    symbols: Vec<Arc<str>>,
}

impl<O: Observer> Feed<O> {
    /// Connects to nothing before [`Feed::connect`]. `rest` fetches snapshots in the background.
    pub fn new(settings: Settings, rest: Rest, clock: Arc<dyn Clock>) -> Arc<Self> {
        let (wanted, receiver) = mpsc::unbounded_channel();
        Arc::new(Self {
            settings,
            clock,
            books: RwLock::default(),
            shards: Mutex::default(),
            wanted,
            board: Arc::default(),
            health: Arc::new(Health::new(rest.clone())),
            unstarted: Mutex::new(Some((rest, receiver))),
            stop: CancellationToken::new(),
        })
    }

    /// A feed that is connected. Must be called within a runtime.
    pub fn start(settings: Settings, rest: Rest, clock: Arc<dyn Clock>) -> Arc<Self> {
        let feed = Self::new(settings, rest, clock);
        feed.connect();
        feed
    }

    /// Opens the first connection; a second call does nothing. Must be called within a runtime.
    pub fn connect(self: &Arc<Self>) {
        let unstarted = self.unstarted.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some((rest, wanted)) = unstarted else {
            return;
        };
        tokio::spawn(snapshots::run(rest, wanted, self.stop.clone()));
        let first = self.open_shard(true);
        self.lock_shards().push(first);
        tokio::spawn(forget_idle(Arc::downgrade(self), self.stop.clone()));
    }

    /// The book of a symbol, if it is tracked.
    pub fn lookup(&self, symbol: &str) -> Option<Arc<Published<O>>> {
        let books = self.books.read().unwrap_or_else(PoisonError::into_inner);
        let published = books.get(symbol).cloned()?;
        published.note_asked(self.clock.monotonic());
        Some(published)
    }

    /// Tracks a symbol from now on; `None` if the limit of live books is reached.
    pub fn track(&self, symbol: &Arc<str>, pinned: bool, rank: usize) -> Option<Arc<Published<O>>> {
        if let Some(published) = self.lookup(symbol) {
            return Some(pinned_too(published, pinned));
        }
        let now = Moment::now(&*self.clock);
        let day = self.board.lookup(symbol).map(|day| day.quote_volume);
        // Both are held throughout, as in `forget`, so that the shard gets both commands in the right order.
        let mut shards = self.lock_shards();
        let mut books = self.books.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(already) = books.get(symbol) {
            return Some(pinned_too(already.clone(), pinned));
        }
        if books.len() >= self.settings.max_books {
            return None;
        }
        let has_room = |shard: &ShardHandle<O>| shard.symbols.len() < SYMBOLS_A_SHARD;
        let at = shards.iter().position(has_room).unwrap_or(shards.len());
        if at == shards.len() {
            shards.push(self.open_shard(false));
        }
        let shard = &mut shards[at];
        let mut published = Published::new(symbol.clone(), pinned, rank, day, now);
        published.heartbeat = shard.heartbeat.clone();
        let published = Arc::new(published);
        books.insert(symbol.clone(), published.clone());
        metrics::gauge!("tribune_books").set(books.len() as f64);
        drop(books);
        shard.symbols.push(symbol.clone());
        let _ = shard.commands.send(Command::Track(published.clone()));
        Some(published)
    }

    /// Ends all connections; what was published stays.
    pub fn stop(&self) {
        self.stop.cancel();
    }

    /// Every tracked symbol.
    pub fn books(&self) -> Vec<Arc<Published<O>>> {
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
                let _ = shard.commands.send(Command::Forget(symbol.clone()));
            }
        }
    }

    fn lock_shards(&self) -> std::sync::MutexGuard<'_, Vec<ShardHandle<O>>> {
        self.shards.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn open_shard(&self, with_board: bool) -> ShardHandle<O> {
        let (commands, receiver) = mpsc::unbounded_channel();
        let now = self.clock.monotonic();
        let heartbeat = Arc::new(Heartbeat::new(now));
        let shard = Shard {
            heartbeat: heartbeat.clone(),
            settings: self.settings.clone(),
            clock: self.clock.clone(),
            commands: receiver,
            reply: commands.clone(),
            wanted: self.wanted.clone(),
            board: with_board.then(|| self.board.clone()),
            health: self.health.clone(),
            link: self.health.link(),
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
        ShardHandle { commands, heartbeat, symbols: Vec::new() }
    }
}

/// A book may be asked for before it is known to be pinned.
fn pinned_too<O: Observer>(published: Arc<Published<O>>, pinned: bool) -> Arc<Published<O>> {
    if pinned {
        published.set_pinned(true);
    }
    published
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
