//! Plays the lines: each updates the state and goes to its stream's listeners, at its time.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::event::{self, Event, Message};
use super::line::{Line, Lines, RecordingError};
use super::{Progress, book};
use crate::clock::Nanos;
use crate::interval::{Millis, SECOND};
use crate::market::publish::FAST;
use crate::markets::Markets;

/// A client's further subscriptions may follow its first: they get the beginning too.
const SUBSCRIBE_GRACE: Duration = Duration::from_millis(200);
const LINES_AHEAD: usize = 1_024;
/// Lines between two looks at slow clients.
const LINES_PER_TURN: u64 = 64;

pub struct Player {
    pub markets: Arc<Markets>,
    pub progress: Arc<Progress>,
    /// The symbol of each file that has exactly one.
    pub file_symbols: Vec<Option<String>>,
    pub files: Vec<PathBuf>,
    /// 0 and infinity are full speed.
    pub speed: f64,
    /// At full speed the player waits this long for a client.
    pub client_wait: Duration,
    /// Symbols whose listeners had time to fetch a snapshot.
    pub offered: HashSet<String>,
}

impl Player {
    fn is_at_full_speed(&self) -> bool {
        !self.speed.is_finite() || self.speed <= 0.0
    }

    pub async fn run(mut self, stopping: CancellationToken) {
        tokio::select! {
            () = stopping.cancelled() => {}
            () = self.play() => {}
        }
    }

    async fn play(&mut self) {
        let progress = self.progress.clone();
        while !progress.state.lock().started {
            progress.changed.notified().await;
        }
        tokio::time::sleep(SUBSCRIBE_GRACE).await;
        let mut at = progress.state.lock().first_nanos;
        if !self.is_at_full_speed() {
            self.markets.clock.set(at, self.speed);
        }
        let first = at / 1_000_000;
        let mut boundary = first - first.rem_euclid(FAST) + FAST;
        let mut lines = read_ahead(std::mem::take(&mut self.files));
        let mut played = 0;
        while let Some(line) = lines.recv().await {
            at = line.time;
            while boundary <= at / 1_000_000 {
                self.pass(boundary).await;
                boundary += FAST;
            }
            self.wait_until(at).await;
            self.play_line(&line).await;
            played += 1;
            {
                let mut state = progress.state.lock();
                state.lines_played = played;
                state.at_nanos = at;
            }
            if played % LINES_PER_TURN == 0 {
                self.wait_for_slow_clients().await;
            }
        }
        // Nothing is known of later times: derived streams send what is left, and the clock stops.
        let millis = at / 1_000_000;
        self.publish_due(millis, true);
        self.markets.clock.set(at, 0.0);
        progress.state.lock().finished = true;
    }

    /// Sends the derived streams that are due at `boundary`.
    async fn pass(&self, boundary: Millis) {
        self.wait_until(boundary.saturating_mul(1_000_000)).await;
        self.publish_due(boundary, false);
        tokio::task::yield_now().await;
    }

    fn publish_due(&self, at: Millis, is_end: bool) {
        for instrument in self.markets.instruments.values() {
            instrument.lock().market.publish_due(&self.markets.hub, at, is_end);
        }
        if is_end || at % SECOND == 0 {
            self.markets.publish_all_tickers(at);
        }
    }

    async fn wait_until(&self, at: Nanos) {
        if self.is_at_full_speed() {
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
            book::apply(&mut instrument.lock().market, hub, event);
        }
        let Some(stream) = stream else { return };
        if !is_diff {
            hub.publish(stream.name, || Some(stream.data.to_owned()));
            return;
        }
        hub.publish_diff(stream.name, || stream.data.to_owned());
        if self.is_at_full_speed() && hub.has_listeners(stream.name) {
            self.offer_snapshot(symbol).await;
        }
    }

    /// Lets a listener fetch a snapshot after its first update, so that it follows the recording from there.
    async fn offer_snapshot(&mut self, symbol: String) {
        if self.offered.contains(&symbol) {
            return;
        }
        let deadline = Instant::now() + self.client_wait;
        while !self.progress.state.lock().fetched.contains(&symbol) {
            let fetched = self.progress.changed.notified();
            if tokio::time::timeout_at(deadline, fetched).await.is_err() {
                // After one timeout the player waits for no other symbol.
                self.offered.extend(self.markets.instruments.keys().cloned());
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
            let mut lines = Lines::open(&files)?;
            while let Some(line) = lines.read()? {
                if sender.blocking_send(line).is_err() {
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
