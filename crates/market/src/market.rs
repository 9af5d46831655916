//! The market as a whole: its symbols, their books, and requests to the exchange.

mod cache;
mod listing;
mod times;
mod trades;
mod trouble;
mod worth;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tribune_market_parts::exchange_error;

use arc_swap::{ArcSwap, ArcSwapOption};
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tribune_core::{Clock, Error, Result};

pub(crate) use cache::Cache;
pub use trades::TradesReading;
use tribune_analytics::{Feed, Published};
use tribune_binance::{BookState, BookView, Depth, Governor, Moment, Priority, Rest, Symbol, feed, rest};
pub(crate) use tribune_market_parts::book::NOT_KEPT;
use tribune_market_resolve::SymbolTable;

/// How long a caller waits for the list of symbols when the server has just started.
const WAIT_FOR_SYMBOLS: Duration = Duration::from_millis(2_500);
/// Smaller differences between the clocks are not reported.
const NOTABLE_OFFSET_MS: i64 = 1_000;
/// Levels of a snapshot for estimating an order.
const ORDER_LEVELS: u32 = 1_000;
/// The most levels that the exchange gives.
pub(crate) const DEEPEST: u32 = 5_000;
/// Callers within this time share one deep snapshot, with its age: repeated requests for sizes that no book fills would
/// use up the weight of all others.
const KEEP_DEEP: Duration = Duration::from_secs(15);
/// An older one is not current any more.
const CURRENT_MS: u64 = 1_000;
const ONCE_IN_A_WHILE: &str = "all levels of a book are fetched at most once in 15 s";
/// Why a book is not live if no more books can be tracked.
pub(crate) const ASKED_EACH_TIME: &str = "live-book limit reached; this book is fetched per request";

#[derive(Debug, Clone)]
pub struct Settings {
    pub rest: rest::Settings,
    pub feed: feed::Settings,
    /// Always tracked.
    pub symbols: Vec<String>,
    /// As many of the most traded are always tracked too.
    pub track_top: usize,
}

pub struct Market {
    pub(crate) rest: Rest,
    pub feed: Arc<Feed>,
    pub clock: Arc<dyn Clock>,
    known: Arc<Known>,
}

/// The state of the market, shared by all callers.
struct Known {
    settings: Settings,
    table: ArcSwapOption<SymbolTable>,
    loaded: Mutex<Moment>,
    /// When the last day of all symbols was loaded.
    days_loaded: Mutex<Option<Moment>>,
    /// What is listed but cannot be read, in upper case, and why.
    unreadable: ArcSwap<HashMap<String, String>>,
    /// Why there is no table.
    trouble: Mutex<Option<Error>>,
    /// Counts attempts to load the table.
    tried: watch::Sender<u64>,
    revision: AtomicU64,
    /// Every traded symbol by its turnover of a day, the most traded first.
    ranked: ArcSwap<Vec<Arc<str>>>,
    deep: Cache<BookReading>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    Stream,
    Rest,
}

/// A book, and how far it can be trusted.
#[derive(Debug, Clone)]
pub struct BookReading {
    pub view: Arc<BookView>,
    pub state: BookState,
    pub reason: Option<String>,
    pub origin: Origin,
    /// Its last confirmation: a quiet book is not old while its connection delivers messages.
    pub received: Moment,
}

impl Market {
    /// Sends no request before [`Market::run`].
    pub fn new(settings: Settings, clock: Arc<dyn Clock>) -> Result<Arc<Self>> {
        let rest = Rest::new(settings.rest.clone(), clock.clone()).map_err(exchange_error)?;
        let feed = Feed::new(settings.feed.clone(), rest.with_priority(Priority::Background), clock.clone());
        let known = Known {
            settings,
            table: ArcSwapOption::empty(),
            loaded: Mutex::new(Moment::now(&*clock)),
            days_loaded: Mutex::default(),
            unreadable: ArcSwap::default(),
            trouble: Mutex::default(),
            tried: watch::Sender::new(0),
            revision: AtomicU64::new(0),
            ranked: ArcSwap::default(),
            deep: Cache::default(),
        };
        Ok(Arc::new(Self { rest, feed, clock, known: Arc::new(known) }))
    }

    /// Keeps the connection and the list of symbols until `stop` is cancelled.
    pub async fn run(&self, stop: CancellationToken) {
        self.feed.connect();
        listing::keep_symbols(self, stop).await;
        self.feed.stop();
    }

    /// The same market for pages that refresh themselves: their requests have a small share of the budget.
    pub(crate) fn for_pages(&self) -> Self {
        Self {
            rest: self.rest.with_priority(Priority::Page),
            feed: self.feed.clone(),
            clock: self.clock.clone(),
            known: self.known.clone(),
        }
    }

    /// The request budget that every client of this exchange shares.
    pub fn governor(&self) -> &Arc<Governor> {
        self.rest.governor()
    }

    /// Grows with every change of the list of symbols.
    pub fn revision(&self) -> u64 {
        self.known.revision.load(Ordering::Relaxed)
    }

    pub fn known_symbols(&self) -> Option<Arc<SymbolTable>> {
        self.known.table.load_full()
    }

    /// The symbols; waits a little if the server has just started.
    pub async fn symbols(&self) -> Result<Arc<SymbolTable>> {
        if let Some(table) = self.known.table.load_full() {
            return Ok(table);
        }
        let mut tried = self.known.tried.subscribe();
        let _ = tokio::time::timeout(WAIT_FOR_SYMBOLS, tried.wait_for(|tried| *tried > 0)).await;
        if let Some(table) = self.known.table.load_full() {
            return Ok(table);
        }
        let why = self.known.trouble.lock().as_ref().map(ToString::to_string);
        let why = why.unwrap_or_else(|| "the exchange has not answered yet".to_owned());
        Err(Error::unavailable(format!(
            "The list of symbols could not be loaded: {why}. It is tried again by itself; ask again in a few seconds."
        )))
    }

    /// Whether loading the symbols has been tried, successfully or not.
    pub fn has_tried(&self) -> bool {
        *self.known.tried.borrow() > 0
    }

    /// When the exchange last sent its list of symbols.
    pub fn symbols_loaded(&self) -> Moment {
        *self.known.loaded.lock()
    }

    pub fn always_tracked(&self) -> Vec<Arc<str>> {
        let books = self.feed.books();
        let pinned = books.iter().filter(|book| book.is_pinned());
        pinned.map(|book| book.symbol.clone()).collect()
    }

    /// Whether the configuration tracks any symbol.
    pub fn is_to_track(&self) -> bool {
        self.known.settings.track_top > 0 || !self.known.settings.symbols.is_empty()
    }

    /// Whether the configuration names the symbol.
    pub fn is_to_be_tracked(&self, symbol: &str) -> bool {
        self.known.settings.symbols.iter().any(|name| name == symbol)
    }

    /// A symbol of the exchange, in whatever case it is written.
    pub async fn symbol(&self, name: &str) -> Result<Symbol> {
        let table = self.symbols().await?;
        match table.lookup(name) {
            Some(symbol) => Ok(symbol.clone()),
            None => Err(self.unreadable(name).unwrap_or_else(|| unknown(&table, name))),
        }
    }

    /// For a listed symbol whose rules cannot be read.
    fn unreadable(&self, name: &str) -> Option<Error> {
        let unreadable = self.known.unreadable.load();
        let (name, why) = unreadable.get_key_value(&name.trim().to_uppercase())?;
        Some(Error::unavailable(format!(
            "{name} is listed on the exchange, but its entry cannot be read ({why}), so there is no data for it. It is read again every few minutes."
        )))
    }

    pub async fn traded(&self, name: &str) -> Result<Symbol> {
        let symbol = self.symbol(name).await?;
        if symbol.is_traded() {
            return Ok(symbol);
        }
        let Symbol { name, status, .. } = symbol;
        Err(Error::not_found(format!(
            "{name} is listed but not traded now (status {status}): there is no live market data. exchange_info:{name} has its rules, and klines and trades its past."
        )))
    }

    /// The rank of the symbol by turnover; 0 is the most traded.
    fn rank(&self, symbol: &str) -> usize {
        self.known.ranked.load().iter().position(|known| **known == *symbol).unwrap_or(usize::MAX)
    }

    /// The live book of a symbol, kept from now on if it was not; `None` if the live-book limit is reached.
    pub(crate) fn watched(&self, symbol: &Symbol) -> Option<Arc<Published>> {
        let known = self.feed.lookup(&symbol.name);
        known.or_else(|| self.feed.track(&symbol.name, false, self.rank(&symbol.name)))
    }

    /// The live book, else a snapshot, else the last live book marked as stale.
    pub async fn book(&self, symbol: &Symbol) -> Result<BookReading> {
        self.book_of(symbol, 1_000).await
    }

    /// The same, with so many levels if a snapshot is requested.
    pub async fn book_of(&self, symbol: &Symbol, levels: u32) -> Result<BookReading> {
        let Some(tracked) = self.watched(symbol) else {
            let snapshot = self.snapshot_of(symbol, levels).await?;
            let (state, reason) = (BookState::Warming, Some(ASKED_EACH_TIME.to_owned()));
            return Ok(BookReading { state, reason, ..snapshot });
        };
        let status = tracked.status();
        let view = status.view.clone();
        let published = |view, state, reason| {
            let received = self.last_confirmed(&tracked);
            BookReading { view, state, reason, origin: Origin::Stream, received }
        };
        if let Some(view) = view.clone().filter(|_| status.state == BookState::Live) {
            return Ok(published(view, BookState::Live, None));
        }
        match (self.snapshot_of(symbol, levels).await, view) {
            (Ok(snapshot), _) => Ok(BookReading { state: status.state, reason: status.reason.clone(), ..snapshot }),
            (Err(error), None) => Err(error),
            // An old book marked as stale is better than none.
            (Err(error), Some(view)) => {
                let reason = status.reason.as_deref().unwrap_or("updates have stopped");
                let reason = format!("{reason}; fetching a fresh one failed: {error}");
                Ok(published(view, BookState::Stale, Some(reason)))
            }
        }
    }

    /// The live book of a traded symbol if it was confirmed recently enough, else a snapshot; with its age in
    /// milliseconds.
    pub async fn current_book(&self, symbol: &str, max_age_ms: u64) -> Result<(Depth, u64)> {
        let symbol = self.traded(symbol).await?;
        if let Some(tracked) = self.watched(&symbol)
            && let Some(view) = tracked.live()
        {
            let age_ms = self.last_confirmed(&tracked).age_ms(&*self.clock);
            if age_ms <= max_age_ms {
                return Ok((view.depth.clone(), age_ms));
            }
        }
        let view = self.snapshot_of(&symbol, ORDER_LEVELS).await?.view;
        Ok((view.depth.clone(), view.received.age_ms(&*self.clock)))
    }

    pub async fn snapshot_of(&self, symbol: &Symbol, levels: u32) -> Result<BookReading> {
        let answer = self.rest.depth(&symbol.name, levels).await.map_err(exchange_error)?;
        let (depth, name) = (Depth::from(answer.value.clone()), &symbol.name);
        if depth.bids.is_empty() && depth.asks.is_empty() {
            return Err(Error::unavailable(format!("The order book of {name} is empty.")));
        }
        if depth.is_crossed() {
            return Err(Error::unavailable(format!(
                "The exchange's book of {name} is crossed (best bid at or above best ask), which cannot be right: no figures are given. Try again in a moment."
            )));
        }
        let state = self.feed.lookup(&symbol.name).map(|tracked| tracked.status().state);
        Ok(BookReading {
            view: Arc::new(BookView {
                last_update_id: answer.value.last_update_id,
                depth,
                exchange_time: None,
                received: answer.received,
            }),
            state: state.unwrap_or(BookState::Warming),
            reason: None,
            origin: Origin::Rest,
            received: answer.received,
        })
    }

    /// A snapshot with all levels, shared by all callers for a while.
    pub(crate) async fn deep_book(&self, symbol: &Symbol) -> Option<BookReading> {
        let ask = self.snapshot_of(symbol, DEEPEST);
        let look = self.known.deep.get(symbol.name.to_string(), KEEP_DEEP, &*self.clock, ask).await;
        let look = look.ok().map(|(look, _)| BookReading::clone(&look))?;
        Some(match look.received.age_ms(&*self.clock) {
            ..CURRENT_MS => look,
            _ => BookReading { state: BookState::Stale, reason: Some(ONCE_IN_A_WHILE.to_owned()), ..look },
        })
    }

    /// When a symbol's published view was last confirmed.
    pub(crate) fn last_confirmed(&self, tracked: &Published) -> Moment {
        let now = Moment::now(&*self.clock);
        let age = now.monotonic.saturating_duration_since(tracked.confirmed());
        Moment {
            wall: now.wall.saturating_sub(age).unwrap_or(now.wall),
            monotonic: now.monotonic.checked_sub(age).unwrap_or(now.monotonic),
        }
    }

    /// A sentence if this machine's clock and the exchange's differ notably.
    pub fn clock_note(&self) -> Option<String> {
        // A replay's clock is the recording's, and its label says so.
        if self.rest.simulation() == Some(rest::Simulation::Replay) {
            return None;
        }
        let skew = self.rest.clock_skew()?;
        Some(format!("{skew}; ages are measured from receipt by a clock that does not jump"))
    }

    pub fn simulated(&self) -> Option<&'static str> {
        self.rest.simulation().map(|simulation| match simulation {
            rest::Simulation::Simulated => "SIMULATED: from a simulated exchange, not from a real market",
            rest::Simulation::Replay => "SIMULATED: a replay of recorded market data, not the market now",
        })
    }
}

fn unknown(table: &SymbolTable, name: &str) -> Error {
    let near: Vec<&str> = table.near(name, 3).iter().map(|symbol| &*symbol.name).collect();
    let near = match near.is_empty() {
        true => String::new(),
        false => format!(" Near it: {}.", near.join(", ")),
    };
    let name = tribune_core::wire::clip(name, 40);
    Error::not_found(format!(
        "There is no symbol {name} on the exchange.{near} Search for the asset's name to find its symbol."
    ))
}
