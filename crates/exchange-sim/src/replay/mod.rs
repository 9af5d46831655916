//! The replay mode: recorded messages go out as they came in, and REST answers from the state they make.
//!
//! What a recording cannot say is not made up, with these choices:
//! - It begins when the first client subscribes to a symbol's stream (or to a recorded one of all symbols), or at
//!   `/sim/start`; until then the clock stands at its first line.
//!   At its end streams made from state say what it is, and the clock stops at the last line: the state and the
//!   connections stay, and streams fall silent. A silence of more than an hour, as between recordings of different days,
//!   is skipped.
//! - Lines of one stream keep the order of the file; lines of several go by their times, if these are not far off. A
//!   trade or an update that comes late is taken in where it belongs.
//! - Times of events in micro- or nanoseconds are told in milliseconds, which is what clients get who do not ask.
//! - What has a stream is passed on even if it is not understood; at the start it is said how many lines are not.
//! - Symbols are as a recorded answer of exchangeInfo says. Without one the exchange lists them as trading, with base and
//!   quote read off the name and the grid off the numbers; bounds of orders are 0, which is none, and the field `unknown`
//!   names what nobody said. Names that can be read in several ways are told at the start.
//! - A snapshot that does not name its symbol is of the file's only one, or of the one whose update ids run through its
//!   id at that moment. If it can be of several, and neither best levels nor prices decide, it is not used.
//! - A symbol's book begins with its first snapshot, up to two seconds (of the recording) before that comes: it is true
//!   at its id, and diffs up to it are passed on but not applied. Before that, and without a snapshot, depth answers
//!   503: partial books are too short to begin one with.
//! - As fast as possible the player waits for two seconds for a listener to take a snapshot, once the book is known and
//!   again when it is known again.
//! - Best levels are recorded ones where they are newer than the book, or where the book is not known; else 503.
//! - A symbol's ticker begins with the first recorded one, however late that comes.
//! - A side of a snapshot with exactly as many levels as clients ask for (5, 10, 20, 50, 100, 500, 1000 or 5000) was
//!   cut there. Beyond its worst price nothing is told, and within it the largest of these numbers of levels; if fewer
//!   than five are left, depth answers 503 until the next snapshot, and streams made from the book fall silent.
//! - After a gap depth answers 503 until the next snapshot. A snapshot that is slightly older than the book when it comes
//!   says how the book goes on where it was cut.
//! - Candles of which a trade may be missing are left out: those that opened before the symbol was first heard of, those
//!   with a jump in the ids of trades, those after the last trade if others tell of later ones, and recorded ones that were
//!   not closed when they should have been.
//! - Tickers made from trades are of the latest time without a missing trade, and say when it begins and ends. The average
//!   price is the recorded one, or that of every trade of 300 seconds, or 503.
//! - What a mini ticker does not say is completed from the last trade and the best levels; the rest is named in the field
//!   `unknown`.
//! - Aggregates of a time are told if every trade of it is known, else 503 with the time of which they are.
//! - With only aggregates recorded, `/trades` answers 503; with only trades, aggregates have the id of their first trade,
//!   and their stream stays silent.

mod lines;
mod lists;
mod message;
mod order;
mod owners;
mod player;
mod replica;
mod scan;
mod symbols;
mod units;
mod wire;

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::clock::Nanos;
use crate::faults::Faults;
use crate::market::Market;
use crate::market::candles::Candles;
use crate::market::coverage::Coverage;
use crate::market::known::Unknown;
use crate::market::levels::Levels;
use crate::market::symbol::Symbol;
use crate::settings::Settings;
use crate::stream::hub::Hub;
use crate::venue::{Label, Listed, Opening, Venue};
use replica::{Replica, Sources};
use scan::{Facts, FirstBook, Recording};

/// How far the playing has come.
#[derive(Debug)]
pub struct Progress {
    begun: AtomicBool,
    finished: AtomicBool,
    wake: Notify,
    played: AtomicU64,
    /// Lines that said nothing that can be understood.
    malformed: u64,
    total: u64,
    first: Nanos,
    last: Nanos,
    at: AtomicI64,
    /// Recorded streams of no single symbol.
    common_streams: HashSet<String>,
    /// Symbols whose depth was asked for and told since the beginning, or since a gap was mended.
    snapshots: Mutex<HashSet<String>>,
    snapshot_taken: Notify,
}

impl Progress {
    fn of(recording: &Recording) -> Self {
        Self {
            begun: AtomicBool::new(false),
            finished: AtomicBool::new(false),
            wake: Notify::new(),
            played: AtomicU64::new(0),
            malformed: recording.malformed,
            total: recording.lines,
            first: recording.first,
            last: recording.last,
            at: AtomicI64::new(recording.first),
            common_streams: recording.common_streams.clone(),
            snapshots: Mutex::default(),
            snapshot_taken: Notify::new(),
        }
    }

    /// A client subscribed. Streams of all symbols are opened by clients that have yet to choose one: if they are only
    /// made from state, nothing of the recording is lost by waiting for the choice.
    pub fn note_subscription(&self, stream: &str) {
        if !stream.starts_with('!') || self.is_recorded(stream) {
            self.begin();
        }
    }

    /// Whether a stream of all symbols is in the recording.
    pub fn is_recorded(&self, stream: &str) -> bool {
        self.common_streams.contains(stream)
    }

    /// Lets the recording begin, if it has not.
    pub fn begin(&self) {
        if !self.begun.swap(true, Ordering::Relaxed) {
            self.wake.notify_one();
        }
    }

    pub fn note_snapshot(&self, symbol: &str) {
        if self.begun.load(Ordering::Relaxed) {
            let mut snapshots = self.snapshots.lock().unwrap_or_else(PoisonError::into_inner);
            snapshots.insert(symbol.to_owned());
            self.snapshot_taken.notify_one();
        }
    }

    fn has_snapshot(&self, symbol: &str) -> bool {
        self.snapshots
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .contains(symbol)
    }

    fn forget_snapshot(&self, symbol: &str) {
        let mut snapshots = self.snapshots.lock().unwrap_or_else(PoisonError::into_inner);
        snapshots.remove(symbol);
    }

    pub fn finished(&self) -> bool {
        self.finished.load(Ordering::Relaxed)
    }

    pub fn json(&self) -> Value {
        json!({
            "started": self.begun.load(Ordering::Relaxed),
            "finished": self.finished(),
            "lines": self.total,
            "linesPlayed": self.played.load(Ordering::Relaxed),
            "linesMalformed": self.malformed,
            "firstNanos": self.first,
            "lastNanos": self.last,
            "atNanos": self.at.load(Ordering::Relaxed)
        })
    }
}

/// Reads the recording through once, opens the exchange and has the player wait for its first listener.
pub async fn open(settings: &Settings, files: Vec<PathBuf>, speed: f64) -> Result<Arc<Venue>, String> {
    let scanned = files.clone();
    let recording = match tokio::task::spawn_blocking(move || scan::scan(&scanned)).await {
        Ok(recording) => recording?,
        Err(failed) => std::panic::resume_unwind(failed.into_panic()),
    };
    let faults = Arc::new(Faults::new(0));
    let hub = Hub::new(faults.clone());
    let progress = Arc::new(Progress::of(&recording));
    let mut symbols = symbols::symbols(&recording.symbols, &recording.listings);
    warn_of_guesses(&symbols);
    let Recording {
        symbols: facts,
        owners,
        mut first_books,
        first,
        ..
    } = recording;
    let mut replicas = HashMap::new();
    let mut listed = indexmap::IndexMap::new();
    for (name, facts) in facts {
        let Some(symbol) = symbols.remove(&name) else {
            continue;
        };
        let first_book = first_books.remove(&name).filter(|book| book.levels.last_update_id > 0);
        let (mut market, mut replica) = open_market(symbol, facts, first_book);
        replica.begin_book(&mut market, &hub, first);
        let shared = Arc::new(Mutex::new(Listed { market, engine: None }));
        listed.insert(name.clone(), shared);
        replicas.insert(name, replica);
    }
    listed.sort_unstable_keys();
    let opening = Opening {
        label: Label::Replay,
        listed,
        start: first,
        pace: 0.0,
        replay: Some(progress.clone()),
    };
    let venue = Arc::new(Venue::open(opening, hub, faults, settings));
    let player = player::Player::new(venue.clone(), progress, replicas, owners);
    tokio::spawn(player.run(files, speed));
    Ok(venue)
}

/// Base and quote are shown as if they were known: whoever starts it can tell.
fn warn_of_guesses(symbols: &HashMap<String, Symbol>) {
    const NAMED: usize = 20;
    let guessed = symbols.values().filter(|symbol| symbol.source.is_ambiguous());
    let mut guessed: Vec<String> = guessed
        .map(|symbol| format!("{} is taken for {}/{}", symbol.name, symbol.base, symbol.quote))
        .collect();
    if !guessed.is_empty() {
        guessed.sort_unstable();
        let count = guessed.len();
        guessed.truncate(NAMED);
        tracing::warn!(
            count,
            guessed = guessed.join(", "),
            "the names of some symbols can be read in several ways; an exchangeInfo in the recording would decide"
        );
    }
}

fn open_market(symbol: Symbol, facts: Facts, first_book: Option<FirstBook>) -> (Market, Replica) {
    let sources = Sources {
        trades: facts.has_trades(),
        aggregates: facts.has_aggregates(),
        tickers: facts.first_ticker.is_some(),
    };
    let mut candles = Candles::default();
    candles.coverage = Coverage {
        since: facts.heard,
        trades: sources.trades || sources.aggregates,
        holes: facts.holes(),
    };
    let mut market = Market::new(symbol, Levels::default(), candles);
    market.unknown = Some(match first_book {
        Some(_) => Unknown::LaterSnapshot,
        None => Unknown::NoSnapshot,
    });
    market.trades_unknown = match (sources.trades, sources.aggregates) {
        (true, _) => None,
        (false, true) => Some(Unknown::OnlyAggregates),
        (false, false) => Some(Unknown::NoTrades),
    };
    market.recorded = facts.streams;
    market.recorded_ticker = facts.first_ticker;
    (market, Replica::new(sources, first_book))
}
