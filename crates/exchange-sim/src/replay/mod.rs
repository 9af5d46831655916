//! The replay mode: recorded messages are sent again as they were received, and REST answers from the state they make.
//!
//! A recording is one or more files, plain or gzipped, with one message per line: `<receive_ns> <json>`. Lines are
//! - messages of combined streams, `{"stream":…,"data":…}`, of `depth`, `depth@100ms`, `trade`, `aggTrade`,
//!   `bookTicker` and `kline_<interval>`;
//! - answers of `GET /api/v3/depth`, with `"symbol"` added where a file has several symbols;
//! - answers of `GET /api/v3/exchangeInfo`, needed where a symbol's assets cannot be read off its name;
//! - answers to `SUBSCRIBE`, which are skipped.
//!
//! Every symbol needs depth updates and a snapshot taken within ten seconds of its first message. Anything else is
//! refused before the exchange opens, with the file, the line, the problem and what to record instead.
//!
//! What is played:
//! - The replay begins with the first subscription to a symbol's stream, or with `/sim/start`; until then the clock
//!   stands at the first line. At the end the clock stops, and the state stays.
//! - Recorded streams are passed on byte for byte. Other streams are derived from the state.
//! - Books begin with the first snapshot. After a gap in the update ids depth answers 503 until the next snapshot.
//! - Candles, tickers and averages are made from trades. Of a time with missing trade ids there are none.

mod book;
mod contents;
mod event;
mod line;
mod player;

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use indexmap::IndexMap;
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::clock::{Clock, Nanos};
use crate::faults::Faults;
use crate::hub::Hub;
use crate::market::candles::Candles;
use crate::market::{Market, NO_TRADES};
use crate::markets::Markets;
use crate::simulated::Instrument;
use book::RecordedBook;
use contents::{Contents, SymbolContents};
pub use line::RecordingError;
pub use player::{Pace, Player};

const ONLY_AGGREGATES: &str = "the recording has only aggregates of this symbol's trades; ask for aggTrades";

/// How far the replay has come.
#[derive(Debug)]
pub struct Progress {
    started: AtomicBool,
    finished: AtomicBool,
    wake: Notify,
    played: AtomicU64,
    total: u64,
    first: Nanos,
    last: Nanos,
    at: AtomicI64,
    /// Symbols whose depth a client has fetched since the start.
    snapshots: Mutex<HashSet<String>>,
    snapshot_taken: Notify,
}

impl Progress {
    fn new(contents: &Contents) -> Self {
        Self {
            started: AtomicBool::new(false),
            finished: AtomicBool::new(false),
            wake: Notify::new(),
            played: AtomicU64::new(0),
            total: contents.lines,
            first: contents.first,
            last: contents.last,
            at: AtomicI64::new(contents.first),
            snapshots: Mutex::default(),
            snapshot_taken: Notify::new(),
        }
    }

    /// A subscription to a symbol starts the replay. Streams of all symbols do not: such a client has yet to choose one.
    pub fn note_subscription(&self, stream: &str) {
        if !stream.starts_with('!') {
            self.start();
        }
    }

    pub fn start(&self) {
        if !self.started.swap(true, Ordering::Relaxed) {
            self.wake.notify_one();
        }
    }

    pub fn note_snapshot(&self, symbol: &str) {
        if self.started.load(Ordering::Relaxed) {
            let mut snapshots = self.snapshots.lock().unwrap_or_else(PoisonError::into_inner);
            snapshots.insert(symbol.to_owned());
            self.snapshot_taken.notify_one();
        }
    }

    fn has_snapshot(&self, symbol: &str) -> bool {
        let snapshots = self.snapshots.lock().unwrap_or_else(PoisonError::into_inner);
        snapshots.contains(symbol)
    }

    pub fn is_finished(&self) -> bool {
        self.finished.load(Ordering::Relaxed)
    }

    pub fn json(&self) -> Value {
        json!({
            "started": self.started.load(Ordering::Relaxed),
            "finished": self.is_finished(),
            "lines": self.total,
            "linesPlayed": self.played.load(Ordering::Relaxed),
            "firstNanos": self.first,
            "lastNanos": self.last,
            "atNanos": self.at.load(Ordering::Relaxed)
        })
    }
}

/// Checks the recording and opens its markets. The player waits for the first subscription.
pub async fn open(files: Vec<PathBuf>, pace: Pace) -> Result<(Player, Arc<Progress>), RecordingError> {
    let checked = files.clone();
    let contents = match tokio::task::spawn_blocking(move || contents::check(&checked)).await {
        Ok(contents) => contents?,
        Err(failed) => std::panic::resume_unwind(failed.into_panic()),
    };
    let progress = Arc::new(Progress::new(&contents));
    let faults = Arc::new(Faults::new(0));
    let mut books = HashMap::new();
    let mut instruments = IndexMap::new();
    for (name, contents) in contents.symbols {
        let book = RecordedBook::new(contents.has_trades, contents.has_aggregates);
        books.insert(name.clone(), book);
        let market = open_market(contents);
        instruments.insert(name, Arc::new(Mutex::new(Instrument { market, engine: None })));
    }
    let markets = Arc::new(Markets {
        instruments,
        hub: Hub::new(faults.clone()),
        faults,
        clock: Clock::starting_at(contents.first, 0.0),
    });
    let player = Player::new(markets, progress.clone(), books, contents.file_symbols, files, pace);
    Ok((player, progress))
}

fn open_market(contents: SymbolContents) -> Market {
    let levels = contents.first_snapshot;
    let candles = Candles::new(Vec::new(), contents.coverage);
    let mut market = Market::new(contents.symbol, levels.clone(), candles);
    market.replace_levels(levels);
    market.trades_unknown = match (contents.has_trades, contents.has_aggregates) {
        (true, _) => None,
        (false, true) => Some(ONLY_AGGREGATES),
        (false, false) => Some(NO_TRADES),
    };
    market.recorded_streams = contents.streams;
    market
}
