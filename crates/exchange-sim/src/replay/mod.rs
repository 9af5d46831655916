//! The replay mode: recorded messages are sent again as they were received, and REST answers from the state they make.
//!
//! A recording is one or more files, plain or gzipped, with one message per line: `<receive_ns> <json>`. Lines are
//! - messages of combined streams, `{"stream":…,"data":…}`, of `depth`, `depth@100ms`, `trade`, `aggTrade`,
//!   `bookTicker` and `kline_<interval>`;
//! - answers of `GET /api/v3/depth`, with `"symbol"` added where a file has several symbols;
//! - answers of `GET /api/v3/exchangeInfo`, needed where a symbol's assets cannot be read off its name;
//! - answers to `SUBSCRIBE`, which are skipped.
//!
//! Every symbol needs depth updates and a snapshot taken within ten seconds of its first message, and no trade between
//! two others may be missing. Anything else is refused before the exchange opens, with the file, the line, the problem
//! and what to record instead.
//!
//! What is played:
//! - The replay begins with the first subscription to a symbol's stream, or with `/sim/start`; until then the clock
//!   stands at the first line. At the end the clock stops, and the state stays.
//! - Recorded streams are passed on byte for byte. Other streams are derived from the state.
//! - Books begin with the first snapshot. After a gap in the update ids depth answers 503 until the next snapshot.
//! - Candles, tickers and averages are made from trades. Of the time before the first message there are none.

mod book;
mod contents;
mod event;
mod line;
mod player;

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use indexmap::IndexMap;
use serde::Serialize;
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::clock::{Clock, Nanos};
use crate::faults::Faults;
use crate::hub::Hub;
use crate::markets::Markets;
use crate::simulated::Instrument;
pub use line::RecordingError;
pub use player::{Pace, Player};

/// How far the replay has come, as `/sim/state` shows it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct State {
    started: bool,
    finished: bool,
    lines: u64,
    lines_played: u64,
    first_nanos: Nanos,
    last_nanos: Nanos,
    at_nanos: Nanos,
    /// Symbols whose depth a client has fetched since the start.
    #[serde(skip)]
    fetched: HashSet<String>,
}

#[derive(Debug)]
pub struct Progress {
    state: Mutex<State>,
    /// A client started the replay or fetched a snapshot.
    changed: Notify,
}

impl Progress {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn start(&self) {
        self.state().started = true;
        self.changed.notify_one();
    }

    pub fn note_snapshot(&self, symbol: &str) {
        let mut state = self.state();
        if state.started {
            state.fetched.insert(symbol.to_owned());
            self.changed.notify_one();
        }
    }

    pub fn is_finished(&self) -> bool {
        self.state().finished
    }

    pub fn json(&self) -> Value {
        json!(&*self.state())
    }
}

/// Checks the recording and opens its markets. The player waits for the first subscription.
pub async fn open(files: Vec<PathBuf>, pace: Pace) -> Result<(Player, Arc<Progress>), RecordingError> {
    let checked = files.clone();
    let contents = match tokio::task::spawn_blocking(move || contents::check(&checked)).await {
        Ok(contents) => contents?,
        Err(failed) => std::panic::resume_unwind(failed.into_panic()),
    };
    let progress = Arc::new(Progress {
        state: Mutex::new(State {
            started: false,
            finished: false,
            lines: contents.lines,
            lines_played: 0,
            first_nanos: contents.first,
            last_nanos: contents.last,
            at_nanos: contents.first,
            fetched: HashSet::new(),
        }),
        changed: Notify::new(),
    });
    let instruments: IndexMap<_, _> = contents
        .markets
        .into_iter()
        .map(|market| {
            let name = market.symbol.name.clone();
            (name, Arc::new(Mutex::new(Instrument { market, engine: None })))
        })
        .collect();
    let faults = Arc::new(Faults::new(0));
    let markets = Arc::new(Markets {
        instruments,
        hub: Hub::new(faults.clone()),
        faults,
        clock: Clock::starting_at(contents.first, 0.0),
    });
    let player = Player::new(markets, progress.clone(), contents.file_symbols, files, pace);
    Ok((player, progress))
}
