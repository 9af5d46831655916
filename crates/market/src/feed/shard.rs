//! One connection's worth of symbols: the only writer of their books.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tribune_core::Clock;

use super::board::Board;
use super::event::{Event, decode};
use super::heartbeat::Heartbeat;
use super::published::Published;
use super::snapshots::{Unanswered, Wanted};
use super::socket::{Heard, Socket};
use super::tracked::{Next, Tracked};
use super::{Health, Settings};
use crate::book::Snapshot;
use crate::model::Millis;
use crate::moment::Moment;

const TICK: Duration = Duration::from_millis(50);
/// A connection that is silent for this long is asked for a sign of life, and given as long again.
const QUIET: Duration = Duration::from_secs(2);
/// A subscription that is not answered in this time is not heard.
const ANSWERED_WITHIN: Duration = Duration::from_secs(10);
const MAX_BACK_OFF: Duration = Duration::from_secs(30);
/// Both connections are read for this long when one takes over from the other.
const OVERLAP: Duration = Duration::from_secs(2);
/// A connection that held this long was a good one: the next failure is answered at once.
const LASTED: Duration = Duration::from_secs(5);
/// Messages read in one go before anything else is looked at.
const BURST: usize = 64;

/// What a shard is told from outside.
pub(super) enum Order {
    Track(Arc<Published>),
    Forget(Arc<str>),
    Snapshot {
        symbol: Arc<str>,
        generation: u64,
        snapshot: Result<Snapshot, Unanswered>,
    },
}

/// What a message means for the connection that it came on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Said {
    Market,
    /// A subscription was taken, or not.
    Answer {
        is_taken: bool,
    },
    /// It is about to be closed.
    Closing,
}

type Connecting = JoinHandle<io::Result<Socket>>;

pub(super) struct Shard {
    pub(super) settings: Settings,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) orders: mpsc::UnboundedReceiver<Order>,
    pub(super) reply: mpsc::UnboundedSender<Order>,
    pub(super) wanted: mpsc::UnboundedSender<Wanted>,
    /// Of the shard that also reads the tickers of all symbols.
    pub(super) board: Option<Arc<Board>>,
    pub(super) health: Arc<Health>,
    pub(super) heartbeat: Arc<Heartbeat>,
    pub(super) stop: CancellationToken,
    pub(super) symbols: HashMap<Arc<str>, Tracked>,
    pub(super) socket: Option<Socket>,
    /// Opened beside the old one, so that one can end without a gap.
    pub(super) successor: Option<Socket>,
    pub(super) connecting: Option<Connecting>,
    pub(super) connect_at: Instant,
    pub(super) failures: u32,
    pub(super) looked: Instant,
}

impl Shard {
    pub(super) async fn run(mut self) {
        let stop = self.stop.clone();
        let mut tick = tokio::time::interval(TICK);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => return,
                _ = tick.tick() => self.tick().await,
                order = self.orders.recv() => match order {
                    Some(order) => self.order(order),
                    None => return,
                },
                opened = connected(&mut self.connecting) => self.connected(opened),
                heard = hear(&mut self.socket) => self.heard(heard),
                heard = hear(&mut self.successor) => self.heard_by_successor(heard),
            }
        }
    }

    fn now(&self) -> Moment {
        Moment::now(&*self.clock)
    }

    fn order(&mut self, order: Order) {
        let now = self.now();
        match order {
            Order::Track(published) => {
                let streams = streams(&published.symbol);
                let tracked = Tracked::new(published.clone(), self.settings.max_levels, now.monotonic);
                for socket in [&mut self.socket, &mut self.successor].into_iter().flatten() {
                    socket.subscribe(streams.clone());
                }
                self.symbols.insert(published.symbol.clone(), tracked);
            }
            Order::Forget(symbol) => {
                self.symbols.remove(&symbol);
                let streams = streams(&symbol);
                for socket in [&mut self.socket, &mut self.successor].into_iter().flatten() {
                    socket.unsubscribe(streams.clone());
                }
            }
            Order::Snapshot {
                symbol,
                generation,
                snapshot,
            } => {
                if let Some(tracked) = self.symbols.get_mut(&symbol) {
                    tracked.snapshot(generation, snapshot, now);
                }
            }
        }
    }

    fn heard(&mut self, heard: Vec<Heard>) {
        for heard in heard {
            let now = self.now();
            if let Some(socket) = &mut self.socket {
                socket.note_heard(now.monotonic);
            }
            match heard {
                Heard::Text(text) => {
                    let said = self.message(&text, now);
                    note(said, self.socket.as_mut());
                }
                Heard::Nothing => {}
                Heard::Ended(why) => return self.ended(&why),
            }
        }
    }

    fn heard_by_successor(&mut self, heard: Vec<Heard>) {
        for heard in heard {
            let now = self.now();
            if let Some(socket) = &mut self.successor {
                socket.note_heard(now.monotonic);
            }
            match heard {
                Heard::Text(text) => {
                    let said = self.message(&text, now);
                    note(said, self.successor.as_mut());
                }
                Heard::Nothing => {}
                Heard::Ended(_) => {
                    self.successor = None;
                    return self.back_off(now.monotonic);
                }
            }
        }
    }

    fn message(&mut self, text: &str, now: Moment) -> Said {
        let event = match decode(text) {
            Ok(event) => event,
            Err(error) => {
                metrics::counter!("tribune_feed_unreadable_total").increment(1);
                // The line and column, never the content.
                tracing::debug!(
                    line = error.line(),
                    column = error.column(),
                    "a message of the exchange could not be read"
                );
                return Said::Market;
            }
        };
        match event {
            Event::Depth { symbol, diff } => {
                if let Some(time) = diff.time {
                    self.note_time(time, now);
                }
                if let Some(tracked) = self.symbols.get_mut(symbol) {
                    if !tracked.is_open() {
                        // It comes, whether or not the answer to its subscription did.
                        tracked.opened(now, self.health.exchange_millis(now.wall));
                    }
                    tracked.event(diff, now);
                }
            }
            Event::BestQuote { symbol, quote } => {
                if let Some(tracked) = self.symbols.get_mut(symbol) {
                    tracked.quote(quote, now);
                }
            }
            Event::Trade {
                symbol,
                trade,
                aggregate,
            } => {
                if let Some(tracked) = self.symbols.get(symbol)
                    && tracked.published.tape.push(trade, aggregate)
                {
                    tracked.published.pulse.trade(now.monotonic);
                }
            }
            Event::MiniTickers(tickers) => {
                if let Some(time) = tickers.iter().map(|ticker| ticker.time).max() {
                    self.note_time(time, now);
                }
                if let Some(board) = &self.board {
                    board.update(&tickers, now);
                }
            }
            Event::Answered { error, .. } => return self.answered(error.as_deref(), now),
            Event::ServerShutdown => return Said::Closing,
            Event::Candle { .. } | Event::Other => {}
        }
        self.heartbeat.beat(now.monotonic);
        Said::Market
    }

    fn note_time(&self, time: Millis, now: Moment) {
        self.health.note_event(time, now.wall);
        self.heartbeat.set_lag(self.health.lag());
    }

    fn answered(&self, error: Option<&str>, now: Moment) -> Said {
        if let Some(error) = error {
            tracing::warn!(%error, "the exchange refused a subscription");
            for tracked in self.symbols.values().filter(|tracked| !tracked.is_open()) {
                tracked.refused(error, now);
            }
        }
        Said::Answer {
            is_taken: error.is_none(),
        }
    }

    async fn tick(&mut self) {
        let now = self.now();
        let lasted = |socket: &Socket| now.monotonic.duration_since(socket.opened) >= LASTED;
        if self.socket.as_ref().is_some_and(lasted) {
            self.failures = 0;
        }
        self.speak(now.monotonic).await;
        self.keep_connected(now.monotonic);
        self.open_settled(now);
        self.ask_for_snapshots(now.monotonic);
        let mut broken = false;
        for tracked in self.symbols.values_mut() {
            broken |= tracked.check_silence(now) == Next::Reconnect;
        }
        if broken {
            self.ended("updates stopped coming on an open connection");
        }
        if now.monotonic.duration_since(self.looked) >= Duration::from_secs(1) {
            self.looked = now.monotonic;
            let millis = self.health.exchange_millis(now.wall);
            for tracked in self.symbols.values() {
                tracked.look(now.monotonic, millis);
            }
        }
    }

    async fn speak(&mut self, now: Instant) {
        if let Some(socket) = &mut self.socket {
            let said = socket.speak(now, QUIET).await;
            let dead = socket.is_dead(now, QUIET);
            let ignored = socket.is_ignored(now, ANSWERED_WITHIN);
            if let Err(why) = said {
                self.ended(&why);
            } else if dead {
                self.ended("the exchange gives no sign of life");
            } else if ignored {
                self.ended("the exchange does not answer subscriptions");
            }
        }
        if let Some(socket) = &mut self.successor
            && (socket.speak(now, QUIET).await.is_err() || socket.is_dead(now, QUIET))
        {
            self.successor = None;
            self.back_off(now);
        }
    }

    /// What was subscribed to comes from here on.
    fn open_settled(&mut self, now: Moment) {
        if !self.socket.as_ref().is_some_and(Socket::is_settled) {
            return;
        }
        let millis = self.health.exchange_millis(now.wall);
        for tracked in self.symbols.values_mut().filter(|tracked| !tracked.is_open()) {
            tracked.opened(now, millis);
        }
    }

    fn ask_for_snapshots(&mut self, now: Instant) {
        for (symbol, tracked) in &mut self.symbols {
            if tracked.wants_snapshot(now) {
                let rank = tracked.published.rank;
                let wanted = Wanted {
                    rank,
                    symbol: symbol.clone(),
                    limit: self.settings.snapshot_limit(rank, tracked.published.is_pinned()),
                    generation: tracked.generation,
                    reply: self.reply.clone(),
                };
                // Whoever fetches ends only when everything does.
                let _ = self.wanted.send(wanted);
            }
        }
    }

    fn keep_connected(&mut self, now: Instant) {
        let ready = |socket: &Socket| {
            socket.is_settled() && socket.heard > socket.opened && now.duration_since(socket.opened) >= OVERLAP
        };
        if self.successor.as_ref().is_some_and(ready) {
            self.take_over();
        }
        let wanted = match &self.socket {
            None => true,
            Some(socket) => {
                let aged = now.duration_since(socket.opened) >= self.settings.rotate_after;
                self.successor.is_none() && (aged || socket.closing)
            }
        };
        let needed = !self.symbols.is_empty() || self.board.is_some();
        if wanted && needed && self.connecting.is_none() && now >= self.connect_at {
            let (base, clock) = (self.settings.stream_url.clone(), self.clock.clone());
            self.connecting = Some(tokio::spawn(
                async move { Socket::open(&base, || clock.monotonic()).await },
            ));
        }
    }

    fn take_over(&mut self) {
        self.socket = self.successor.take();
        self.health.connected(true);
        tracing::info!("a new connection to the exchange took over from the old one");
    }

    fn connected(&mut self, opened: io::Result<Socket>) {
        self.connecting = None;
        let now = self.now();
        let mut socket = match opened {
            Ok(socket) => socket,
            Err(error) => {
                self.health.connection_failed(&error.to_string());
                if self.failures == 0 {
                    tracing::warn!(%error, "no connection to the exchange's streams; trying again");
                }
                return self.back_off(now.monotonic);
            }
        };
        let mut all: Vec<String> = self.symbols.keys().flat_map(|symbol| streams(symbol)).collect();
        if self.board.is_some() {
            all.push("!miniTicker@arr".to_owned());
        }
        socket.subscribe(all);
        if self.socket.is_some() {
            self.successor = Some(socket);
            return;
        }
        self.health.connected(true);
        self.socket = Some(socket);
        if self.failures > 0 {
            tracing::info!(attempts = self.failures, "connected to the exchange's streams again");
        }
    }

    fn ended(&mut self, why: &str) {
        let now = self.now();
        self.socket = None;
        if self.successor.as_ref().is_some_and(Socket::is_settled) {
            // It has read beside the old one: what the old one missed is in it, or will show as a gap.
            return self.take_over();
        }
        tracing::warn!(why, "the connection to the exchange's streams ended; connecting again");
        metrics::counter!("tribune_feed_disconnects_total").increment(1);
        self.health.connection_failed(why);
        for tracked in self.symbols.values_mut() {
            tracked.lost(&format!("the connection to the exchange ended: {why}"), now);
        }
        if self.successor.is_some() {
            // It came too late to take over without a gap, but it is there.
            return self.take_over();
        }
        self.back_off(now.monotonic);
    }

    fn back_off(&mut self, now: Instant) {
        let base = Duration::from_millis(100) * 2u32.pow(self.failures.min(12));
        self.failures = self.failures.saturating_add(1);
        let wait = base.min(MAX_BACK_OFF);
        // Half of it by chance, so that many clients do not come back together.
        self.connect_at = now + wait / 2 + wait.mul_f64(fastrand::f64() / 2.0);
    }
}

fn note(said: Said, socket: Option<&mut Socket>) {
    match (said, socket) {
        (Said::Answer { is_taken }, Some(socket)) => socket.note_answer(is_taken),
        (Said::Closing, Some(socket)) => socket.closing = true,
        _ => {}
    }
}

fn streams(symbol: &str) -> Vec<String> {
    let name = symbol.to_lowercase();
    ["depth@100ms", "bookTicker", "trade", "aggTrade"]
        .iter()
        .map(|kind| format!("{name}@{kind}"))
        .collect()
}

async fn connected(connecting: &mut Option<Connecting>) -> io::Result<Socket> {
    match connecting {
        Some(handle) => handle.await.unwrap_or_else(|error| Err(io::Error::other(error))),
        None => std::future::pending().await,
    }
}

/// What has come, at least one thing, without waiting for more than that.
async fn hear(socket: &mut Option<Socket>) -> Vec<Heard> {
    let Some(socket) = socket else {
        return std::future::pending().await;
    };
    let mut heard = vec![socket.hear().await];
    while heard.len() < BURST && !matches!(heard.last(), Some(Heard::Ended(_))) {
        match futures::FutureExt::now_or_never(socket.hear()) {
            Some(more) => heard.push(more),
            None => break,
        }
    }
    heard
}
