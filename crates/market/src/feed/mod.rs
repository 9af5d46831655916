//! The live feed: streams in, published books out. In reading order:
//!
//! - [`event`]: messages of the streams, as values
//! - `socket`: one connection; `subscriptions`: what it is to bring; `dial`: the way to it
//! - `shard`: one connection's worth of symbols, the only writer of their books
//! - `tracked`: the writer's side of a symbol; `rhythm`: how often it changes; `published`: the readers' side;
//!   `heartbeat`: when a connection last spoke; `health`: how connections are
//! - `snapshots`: fetches snapshots by rank, within the weight budget
//! - `board`: the last day of every symbol; `pulse`: how lively one is; `watch`: what was seen of
//!   its book for a while; `history`: spread and imbalance of the last minutes
//! - `alone`: one book without a connection, to be measured

mod alone;
mod board;
mod dial;
pub mod event;
mod health;
mod heartbeat;
mod history;
mod published;
mod pulse;
mod rhythm;
mod settings;
mod shard;
mod snapshots;
mod socket;
mod subscriptions;
mod tracked;
mod watch;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tribune_core::Clock;

#[doc(hidden)]
pub use alone::Alone;
pub use board::{Board, Day};
pub use health::Health;
pub use history::{EVERY_MS as SAMPLE_EVERY_MS, HISTORY_SECS, IMBALANCE_LEVELS, Sample};
pub use published::{BookState, BookView, Published, Status};
pub use pulse::{Beats, Pulse};
pub use settings::Settings;
pub use watch::Watch;

use crate::moment::Moment;
use crate::rest::Rest;
use heartbeat::Heartbeat;
use shard::{Order, Past, Shard};
use snapshots::Wanted;

/// Four streams a symbol, of the 1,024 that one connection may have.
const SYMBOLS_A_SHARD: usize = 200;
/// How often is looked for books that nobody wants.
const LOOK_FOR_IDLE: Duration = Duration::from_secs(5);

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
            return Some(pinned_too(published, pinned));
        }
        // Held throughout, as in `forget`: else the shard could hear of both in the other order.
        let mut shards = self.lock_shards();
        let now = Moment::now(&*self.clock);
        let day = self.board.lookup(symbol).map(|day| day.quote_volume);
        {
            let books = self.books.read().unwrap_or_else(PoisonError::into_inner);
            if let Some(already) = books.get(symbol) {
                return Some(pinned_too(already.clone(), pinned));
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
        ShardHandle {
            orders,
            heartbeat,
            symbols: Vec::new(),
        }
    }
}

/// Somebody may have asked for it before it was known that it is always wanted.
fn pinned_too(published: Arc<Published>, pinned: bool) -> Arc<Published> {
    if pinned {
        published.set_pinned(true);
    }
    published
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
