//! The replay mode: recorded messages are sent again as they were received, and REST answers from the state they make.
//! docs/markets.md says what a recording is, and what is refused before the exchange opens. Until the first subscription to
//! a symbol the clock stands at the first line; at the end it stops, and the state stays.

mod book;
mod contents;
mod event;
mod line;
mod player;

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde::Serialize;
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::clock::{Clock, Nanos};
use crate::markets::Markets;
use crate::simulated::Instrument;
pub use line::RecordingError;
pub use player::Player;

/// How far the replay has come, as `/sim/state` shows it.
#[derive(Debug, Default, Serialize)]
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
    pub fn start(&self) {
        self.state.lock().started = true;
        self.changed.notify_one();
    }

    pub fn note_snapshot(&self, symbol: &str) {
        let mut state = self.state.lock();
        if state.started {
            state.fetched.insert(symbol.to_owned());
            self.changed.notify_one();
        }
    }

    pub fn is_finished(&self) -> bool {
        self.state.lock().finished
    }

    pub fn json(&self) -> Value {
        json!(&*self.state.lock())
    }
}

/// Checks the recording, which may take a while, and opens its markets. The player waits for the first subscription.
pub fn open(files: Vec<PathBuf>, speed: f64, client_wait: Duration) -> Result<Player, RecordingError> {
    let contents = contents::check(&files)?;
    let first = contents.state.first_nanos;
    let progress = Arc::new(Progress { state: Mutex::new(contents.state), changed: Notify::new() });
    let instruments = contents.markets.into_iter().map(|market| Instrument { market, engine: None });
    let clock = Clock::starting_at(first, 0.0);
    let markets = Arc::new(Markets::new(0, clock, |_| instruments.collect()));
    Ok(Player {
        markets,
        progress,
        file_symbols: contents.file_symbols,
        files,
        speed,
        client_wait,
        offered: HashSet::new(),
    })
}
