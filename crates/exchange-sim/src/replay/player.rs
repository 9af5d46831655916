//! Plays the lines: each updates the state and goes to its stream's listeners, at its time.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::Progress;
use super::book::RecordedBook;
use super::event::{self, Event, Message};
use super::line::{Line, Lines, RecordingError};
use crate::clock::Nanos;
use crate::interval::{Millis, SECOND};
use crate::market::publish::FAST;
use crate::markets::Markets;
use crate::simulated::lock;

/// A client's further subscriptions may follow its first: they get the beginning too.
const SUBSCRIBE_GRACE: Duration = Duration::from_millis(200);
const LINES_AHEAD: usize = 1_024;
/// Lines between two looks at slow clients.
const LINES_PER_TURN: u64 = 64;

/// How fast a recording is played, and how long the player waits for a client at full speed.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    pub speed: f64,
    pub client_wait: Duration,
}

pub struct Player {
    markets: Arc<Markets>,
    progress: Arc<Progress>,
    books: HashMap<String, RecordedBook>,
    /// The symbol of each file that has exactly one.
    file_symbols: Vec<Option<String>>,
    files: Vec<PathBuf>,
    /// `None` plays at full speed.
    speed: Option<f64>,
    /// At full speed the player waits this long for a client.
    client_wait: Duration,
    next_boundary: Millis,
    /// Symbols whose listeners had time to fetch a snapshot.
    offered: HashSet<String>,
    /// A listener did not fetch a snapshot in time, so the player waits for no other.
    nobody_fetches: bool,
}

impl Player {
    pub fn new(
        markets: Arc<Markets>,
        progress: Arc<Progress>,
        file_symbols: Vec<Option<String>>,
        files: Vec<PathBuf>,
        pace: Pace,
    ) -> Self {
        let first = progress.state().first_nanos / 1_000_000;
        Self {
            markets,
            progress,
            books: HashMap::new(),
            file_symbols,
            files,
            speed: Some(pace.speed).filter(|speed| speed.is_finite() && *speed > 0.0),
            client_wait: pace.client_wait,
            next_boundary: first - first.rem_euclid(FAST) + FAST,
            offered: HashSet::new(),
            nobody_fetches: false,
        }
    }

    pub fn markets(&self) -> Arc<Markets> {
        self.markets.clone()
    }

    pub async fn run(mut self, stopping: CancellationToken) {
        tokio::select! {
            () = stopping.cancelled() => {}
            () = self.play() => {}
        }
    }

    async fn play(&mut self) {
        let progress = self.progress.clone();
        while !progress.state().started {
            progress.changed.notified().await;
        }
        tokio::time::sleep(SUBSCRIBE_GRACE).await;
        let mut at = progress.state().first_nanos;
        self.markets.clock.set(at, self.speed.unwrap_or(0.0));
        let mut lines = read_ahead(std::mem::take(&mut self.files));
        let mut played = 0;
        while let Some(line) = lines.recv().await {
            at = line.time;
            self.reach(at).await;
            self.play_line(&line).await;
            played += 1;
            {
                let mut state = progress.state();
                state.lines_played = played;
                state.at_nanos = at;
            }
            if played % LINES_PER_TURN == 0 {
                self.wait_for_slow_clients().await;
            }
        }
        // Nothing is known of later times: derived streams send what is left, and the clock stops.
        let millis = at / 1_000_000;
        for instrument in self.markets.instruments.values() {
            lock(instrument).market.publish_remaining(&self.markets.hub, millis);
        }
        self.markets.publish_all_tickers(millis);
        self.markets.clock.set(at, 0.0);
        progress.state().finished = true;
    }

    /// Waits until it is `at`, and sends the derived streams on the way.
    async fn reach(&mut self, at: Nanos) {
        while self.next_boundary <= at / 1_000_000 {
            let boundary = self.next_boundary;
            self.wait_until(boundary.saturating_mul(1_000_000)).await;
            for instrument in self.markets.instruments.values() {
                lock(instrument).market.publish_boundary(&self.markets.hub, boundary);
            }
            if boundary % SECOND == 0 {
                self.markets.publish_all_tickers(boundary);
            }
            self.next_boundary += FAST;
            tokio::task::yield_now().await;
        }
        self.wait_until(at).await;
    }

    async fn wait_until(&self, at: Nanos) {
        if self.speed.is_none() {
            self.markets.clock.set(at, 0.0);
            return;
        }
        while let Some(ahead) = self.markets.clock.until(at) {
            // A timer is never early, so neither is a message. It may be late by a millisecond, which the next ones catch up.
            if ahead.is_zero() {
                return;
            }
            tokio::time::sleep(ahead.min(Duration::from_secs(1))).await;
        }
    }

    async fn play_line(&mut self, line: &Line) {
        // Every line was parsed when the recording was checked.
        let Ok(Message { stream, symbol, event }) = event::parse(&line.json) else {
            return;
        };
        let Some(symbol) = symbol.or_else(|| self.file_symbols[line.file].clone()) else {
            return;
        };
        let hub = &self.markets.hub;
        let is_diff = matches!(event, Event::Diff(_));
        if let Some(instrument) = self.markets.lookup(&symbol) {
            let book = self.books.entry(symbol.clone()).or_default();
            book.apply(&mut lock(instrument).market, hub, event);
        }
        let Some(stream) = stream else { return };
        if !is_diff {
            hub.publish(stream.symbol, stream.kind, || Some(stream.data.to_owned()));
            return;
        }
        hub.publish_diff(stream.symbol, stream.kind, || stream.data.to_owned());
        if self.speed.is_none() && hub.has_listeners(stream.symbol, stream.kind) {
            self.offer_snapshot(symbol).await;
        }
    }

    /// Lets a listener fetch a snapshot after its first update, so that it follows the recording from there.
    async fn offer_snapshot(&mut self, symbol: String) {
        if self.nobody_fetches || self.offered.contains(&symbol) {
            return;
        }
        let deadline = Instant::now() + self.client_wait;
        while !self.progress.state().fetched.contains(&symbol) {
            let fetched = self.progress.changed.notified();
            if tokio::time::timeout_at(deadline, fetched).await.is_err() {
                self.nobody_fetches = true;
                break;
            }
        }
        self.offered.insert(symbol);
    }

    async fn wait_for_slow_clients(&self) {
        tokio::task::yield_now().await;
        let deadline = Instant::now() + self.client_wait;
        while self.markets.hub.is_congested() && Instant::now() < deadline {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}

/// Reads on a thread of its own, a little ahead.
fn read_ahead(files: Vec<PathBuf>) -> mpsc::Receiver<Line> {
    let (sender, receiver) = mpsc::channel(LINES_AHEAD);
    tokio::task::spawn_blocking(move || {
        let read = || -> Result<(), RecordingError> {
            for line in Lines::open(&files)? {
                if sender.blocking_send(line?).is_err() {
                    break;
                }
            }
            Ok(())
        };
        if let Err(error) = read() {
            tracing::error!(%error, "the recording changed while it was played; the replay ends here");
        }
    });
    receiver
}
