//! Plays the lines: each to whoever listens to its stream, at its time, after the state has taken it in.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::Instant;

use super::Progress;
use super::lines::{Line, Merged, Pass, Place};
use super::message::{self, Content, Message};
use super::replica::Replica;
use crate::clock::Nanos;
use crate::interval::{Millis, SECOND};
use crate::market::publish::FAST;
use crate::stream::all::AllTickers;
use crate::venue::{Venue, lock};

/// After the first subscription others of the same client may follow: they get the beginning too.
const GRACE: Duration = Duration::from_millis(200);
/// As fast as possible is not faster than a client can ask for a snapshot after its first diff.
const SNAPSHOT_WAIT: Duration = Duration::from_secs(2);
/// A client that takes nothing for so long is not waited for any more.
const STALLED: Duration = Duration::from_secs(10);
/// Lines read ahead.
const READ_AHEAD: usize = 1_024;
/// Longer ones are skipped.
const LONG_SILENCE: Nanos = 3_600_000_000_000;
/// After so many lines others get their turn, and clients that are behind are waited for.
const TURN: u64 = 64;

pub struct Player {
    venue: Arc<Venue>,
    progress: Arc<Progress>,
    replicas: HashMap<String, Replica>,
    owners: HashMap<Place, String>,
    /// Symbols whose first snapshot is yet to be shown, and when; the last one first.
    unbegun: Vec<(Nanos, String)>,
    next_boundary: Millis,
    /// Symbols that somebody had the chance to take a snapshot of.
    offered: HashSet<String>,
    nobody_asks: bool,
}

impl Player {
    pub fn new(
        venue: Arc<Venue>,
        progress: Arc<Progress>,
        replicas: HashMap<String, Replica>,
        owners: HashMap<Place, String>,
    ) -> Self {
        let first = progress.first / 1_000_000;
        let due = |(symbol, replica): (&String, &Replica)| Some((replica.first_due()?, symbol.clone()));
        let mut unbegun: Vec<(Nanos, String)> = replicas.iter().filter_map(due).collect();
        unbegun.sort_unstable_by(|one, other| other.cmp(one));
        Self {
            venue,
            progress,
            replicas,
            owners,
            unbegun,
            next_boundary: first - first.rem_euclid(FAST) + FAST,
            offered: HashSet::new(),
            nobody_asks: false,
        }
    }

    pub async fn run(mut self, files: Vec<PathBuf>, speed: f64) {
        let venue = self.venue.clone();
        tokio::select! {
            () = venue.stopping.cancelled() => {}
            () = self.play(files, speed) => {}
        }
    }

    async fn play(&mut self, files: Vec<PathBuf>, speed: f64) {
        let progress = self.progress.clone();
        progress.wake.notified().await;
        tokio::time::sleep(GRACE).await;
        let fast = !(speed.is_finite() && speed > 0.0);
        if !fast {
            self.venue.clock.set(progress.first, speed);
        }
        let mut lines = read_ahead(files);
        let mut at = progress.first;
        while let Some(line) = lines.recv().await {
            let silent = line.time.saturating_sub(at) > LONG_SILENCE;
            if silent {
                self.publish_remaining(at);
            }
            at = at.max(line.time);
            if silent {
                self.skip_silence(at, if fast { 0.0 } else { speed });
            }
            self.reach(at, fast).await;
            self.play_line(&line, fast).await;
            let played = progress.played.fetch_add(1, Ordering::Relaxed);
            progress.at.store(at, Ordering::Relaxed);
            if played.is_multiple_of(TURN) {
                self.wait_for_slow_clients().await;
            }
        }
        // Nothing is known of later times: the clock stands, and streams made from state are silent once they have said
        // what the state is.
        self.publish_remaining(at);
        self.venue.clock.set(at, 0.0);
        progress.finished.store(true, Ordering::Relaxed);
    }

    /// Recordings of different days may be given together: nobody wants to wait from the one to the other.
    fn skip_silence(&mut self, at: Nanos, pace: f64) {
        tracing::warn!(
            from = self.venue.clock.millis(),
            to = at / 1_000_000,
            "nothing is recorded for more than an hour; it is skipped"
        );
        self.venue.clock.set(at, pace);
        let millis = at / 1_000_000;
        self.next_boundary = millis - millis.rem_euclid(SECOND);
    }

    /// Waits until it is `at`, and sends on the way what is made from state.
    async fn reach(&mut self, at: Nanos, fast: bool) {
        let millis = at / 1_000_000;
        while self.next_boundary <= millis {
            let boundary = self.next_boundary;
            let at = boundary.saturating_mul(1_000_000);
            self.wait_until(at, fast).await;
            self.begin_books(at);
            self.publish_boundary(boundary);
            self.next_boundary += FAST;
            tokio::task::yield_now().await;
        }
        self.wait_until(at, fast).await;
        self.begin_books(at);
    }

    fn begin_books(&mut self, at: Nanos) {
        while let Some((_, symbol)) = self.unbegun.pop_if(|(due, _)| *due <= at) {
            if let (Some(listed), Some(replica)) = (self.venue.listed.get(&symbol), self.replicas.get_mut(&symbol)) {
                replica.begin_book(&mut lock(listed).market, &self.venue.hub, at);
            }
        }
    }

    async fn wait_until(&self, at: Nanos, fast: bool) {
        if fast {
            self.venue.clock.set(at, 0.0);
            return;
        }
        while let Some(ahead) = self.venue.clock.until(at) {
            // Timers have a grain of a millisecond; less is not worth a sleep.
            if ahead < Duration::from_millis(1) {
                return;
            }
            tokio::time::sleep(ahead.min(Duration::from_secs(1))).await;
        }
    }

    fn publish_boundary(&self, boundary: Millis) {
        for listed in self.venue.listed.values() {
            lock(listed).market.publish_boundary(&self.venue.hub, boundary);
        }
        if boundary % SECOND == 0 {
            self.publish_all_tickers(boundary);
        }
    }

    fn publish_remaining(&self, at: Nanos) {
        let at = at / 1_000_000;
        for listed in self.venue.listed.values() {
            lock(listed).market.publish_remaining(&self.venue.hub, at);
        }
        self.publish_all_tickers(at);
    }

    fn publish_all_tickers(&self, at: Millis) {
        for all in AllTickers::BOTH {
            if !self.progress.is_recorded(all.stream()) {
                all.publish(&self.venue, at);
            }
        }
    }

    async fn play_line(&mut self, line: &Line, fast: bool) {
        // Malformed lines were counted and named when the recording was first read.
        let Ok(message) = message::parse(&line.json) else {
            return;
        };
        let Message {
            stream,
            symbol,
            data,
            content,
            ..
        } = message;
        let is_diff = matches!(content, Content::Diff(_));
        let owner = symbol.or_else(|| self.owners.get(&line.place).cloned());
        match (content, &owner) {
            (Content::Tickers { read, .. }, _) => self.apply_tickers(read),
            (content, Some(owner)) => self.apply(owner, content),
            (_, None) => {}
        }
        let (hub, Some(stream)) = (&self.venue.hub, stream) else {
            return;
        };
        match owner {
            Some(symbol) if is_diff => {
                hub.publish_diff(&symbol, &stream, || data.into_owned());
                if fast {
                    self.offer_snapshot(symbol, &stream).await;
                }
            }
            _ => hub.publish(&stream, || data.into_owned()),
        }
    }

    fn apply(&mut self, symbol: &str, content: Content) {
        let (Some(listed), Some(replica)) = (self.venue.listed.get(symbol), self.replicas.get_mut(symbol)) else {
            return;
        };
        let market = &mut lock(listed).market;
        let may_mend = matches!(content, Content::Snapshot(_) | Content::Diff(_)) && !market.knows_depth();
        replica.apply(market, &self.venue.hub, content);
        if may_mend && market.knows_depth() {
            self.offered.remove(symbol);
            self.progress.forget_snapshot(symbol);
        }
    }

    fn apply_tickers(&mut self, tickers: Vec<Content>) {
        for content in tickers {
            if let Content::Ticker(ticker) | Content::MiniTicker(ticker) = &content {
                let symbol = ticker.symbol.clone();
                self.apply(&symbol, content);
            }
        }
    }

    /// After a symbol's first diff its listener wants a snapshot, and should not get one of the end. While there is
    /// none to take nobody is waited for.
    async fn offer_snapshot(&mut self, symbol: String, stream: &str) {
        let skip = self.nobody_asks || self.offered.contains(&symbol) || !self.venue.hub.has_listeners(stream);
        if skip || !self.knows_depth(&symbol) {
            return;
        }
        let deadline = Instant::now() + SNAPSHOT_WAIT;
        while !self.progress.has_snapshot(&symbol) {
            let taken = self.progress.snapshot_taken.notified();
            if tokio::time::timeout_at(deadline, taken).await.is_err() {
                self.nobody_asks = true;
                break;
            }
        }
        self.offered.insert(symbol);
    }

    fn knows_depth(&self, symbol: &str) -> bool {
        let listed = self.venue.listed.get(symbol);
        listed.is_some_and(|listed| lock(listed).market.knows_depth())
    }

    async fn wait_for_slow_clients(&self) {
        tokio::task::yield_now().await;
        let deadline = Instant::now() + STALLED;
        while self.venue.hub.congested() && Instant::now() < deadline {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}

/// Reads on a thread of its own, a little ahead.
fn read_ahead(files: Vec<PathBuf>) -> mpsc::Receiver<Line> {
    let (sender, receiver) = mpsc::channel(READ_AHEAD);
    tokio::task::spawn_blocking(move || match Merged::open(&files, Pass::Again) {
        Ok(lines) => {
            for line in lines {
                if sender.blocking_send(line).is_err() {
                    return;
                }
            }
        }
        Err(error) => tracing::error!(error, "the recording can no longer be read"),
    });
    receiver
}
