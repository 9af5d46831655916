//! One connection's worth of symbols: the only writer of their books. `link` keeps the connection, `messages` handles
//! what comes on it.

mod link;
mod messages;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tribune_clock::Clock;

use super::Settings;
use super::board::Board;
use super::health::Health;
use super::link::Link;
use super::published::{Observer, Published};
use super::snapshots::{FEWEST, Want, Wanted};
use super::socket::{Frame, Socket};
use super::tracked::Tracked;
use crate::book::Snapshot;
use crate::moment::Moment;
use crate::rest::RestError;

const TICK: Duration = Duration::from_millis(50);
/// Books are stale while events come later than this, and have for this long: by then our estimate of the exchange's
/// clock has been checked.
const LATE: Duration = Duration::from_secs(2);
const LATE_FOR: Duration = Duration::from_secs(6);
/// The exchange is asked for the update id of one book at a time: at a weight of 5 each, that is at most 600 a minute.
const BETWEEN_COMPARISONS: Duration = Duration::from_millis(500);
/// How often a connection is replaced because one symbol's streams stay silent on it.
const RENEW_EVERY: Duration = Duration::from_secs(600);
/// Of so many of the most traded symbols, snapshots with all 5,000 levels are taken.
const DEEP_RANKS: usize = 10;
/// Levels a side that a book keeps.
const MAX_LEVELS: usize = 6_000;
/// Messages read in one go before anything else is done.
const BURST: usize = 64;

pub(super) enum Command<O> {
    Track(Arc<Published<O>>),
    Forget(Arc<str>),
    Snapshot { symbol: Arc<str>, generation: u64, snapshot: Result<Snapshot, RestError> },
}

/// Which connection a message came on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Connection {
    Current,
    Successor,
}

type Connecting = JoinHandle<Result<Socket, String>>;

pub(super) struct Shard<O> {
    pub(super) settings: Settings,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) commands: mpsc::UnboundedReceiver<Command<O>>,
    pub(super) reply: mpsc::UnboundedSender<Command<O>>,
    pub(super) wanted: mpsc::UnboundedSender<Wanted<O>>,
    /// Of the shard that also reads the tickers of all symbols.
    pub(super) board: Option<Arc<Board>>,
    pub(super) health: Arc<Health>,
    pub(super) link: Arc<Link>,
    pub(super) stop: CancellationToken,
    pub(super) symbols: HashMap<Arc<str>, Tracked<O>>,
    pub(super) socket: Option<Socket>,
    /// Opened beside the old one, so that one can end without a gap.
    pub(super) successor: Option<Socket>,
    pub(super) connecting: Option<Connecting>,
    pub(super) connect_at: Instant,
    pub(super) failures: u32,
    pub(super) looked: Instant,
    pub(super) past: Past,
}

#[derive(Debug, Default)]
pub(super) struct Past {
    compared: Option<Instant>,
    complained: Option<Instant>,
    renewed: Option<Instant>,
    /// When events began to come late.
    late_since: Option<Instant>,
}

/// Whether the action is due again; if so, this counts as its run.
fn is_due(last: &mut Option<Instant>, every: Duration, now: Instant) -> bool {
    let may = last.is_none_or(|last| now.duration_since(last) >= every);
    if may {
        *last = Some(now);
    }
    may
}

impl<O: Observer> Shard<O> {
    pub(super) async fn run(mut self) {
        let stop = self.stop.clone();
        let mut tick = tokio::time::interval(TICK);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => return,
                _ = tick.tick() => self.tick(),
                command = self.commands.recv() => match command {
                    Some(command) => self.command(command),
                    None => return,
                },
                opened = connected(&mut self.connecting) => self.connected(opened),
                frames = frames(&mut self.socket) => self.receive(frames, Connection::Current),
                frames = frames(&mut self.successor) => self.receive(frames, Connection::Successor),
            }
        }
    }

    fn now(&self) -> Moment {
        Moment::now(&*self.clock)
    }

    fn command(&mut self, command: Command<O>) {
        let now = self.now();
        match command {
            Command::Track(published) => {
                let tracked = Tracked::new(published.clone(), MAX_LEVELS, now.monotonic);
                for socket in [&mut self.socket, &mut self.successor].into_iter().flatten() {
                    socket.subscriptions.subscribe(&published.symbol);
                }
                self.symbols.insert(published.symbol.clone(), tracked);
            }
            Command::Forget(symbol) => {
                self.symbols.remove(&symbol);
                for socket in [&mut self.socket, &mut self.successor].into_iter().flatten() {
                    socket.subscriptions.unsubscribe(&symbol);
                }
            }
            Command::Snapshot { symbol, generation, snapshot } => {
                if let Some(tracked) = self.symbols.get_mut(&symbol) {
                    tracked.answered(generation, snapshot, now);
                }
            }
        }
    }

    fn receive(&mut self, frames: Vec<Frame>, by: Connection) {
        for frame in frames {
            let now = self.now();
            if let Some(socket) = self.connection(by) {
                socket.note_frame(now.monotonic);
            }
            match (frame, by) {
                (Frame::Text(text), _) => self.message(&text, by, now),
                (Frame::Other, _) => {}
                (Frame::Ended(why), Connection::Current) => return self.ended(&why),
                (Frame::Ended(_), Connection::Successor) => {
                    self.successor = None;
                    return self.back_off(now.monotonic);
                }
            }
        }
    }

    fn connection(&mut self, which: Connection) -> Option<&mut Socket> {
        match which {
            Connection::Current => self.socket.as_mut(),
            Connection::Successor => self.successor.as_mut(),
        }
    }

    fn tick(&mut self) {
        let now = self.now();
        self.keep_link(now);
        self.open_confirmed(now);
        self.check_lag(now);
        self.ask_the_exchange(now.monotonic);
        self.check_silence(now);
        if now.monotonic.duration_since(self.looked) >= Duration::from_secs(1) {
            self.looked = now.monotonic;
            let millis = self.health.exchange_millis(now.wall);
            for tracked in self.symbols.values() {
                tracked.look(now.monotonic, millis);
            }
        }
    }

    /// Opens the symbols whose subscriptions the exchange has confirmed.
    fn open_confirmed(&mut self, now: Moment) {
        let Some(socket) = &self.socket else { return };
        let millis = self.health.exchange_millis(now.wall);
        for (symbol, tracked) in &mut self.symbols {
            if !tracked.is_open() && socket.subscriptions.is_confirmed(symbol) {
                tracked.opened(now, millis);
            }
        }
    }

    /// No book is current while everything comes late.
    fn check_lag(&mut self, now: Moment) {
        let is_late = self.link.lag() >= LATE;
        self.past.late_since = is_late.then(|| self.past.late_since.unwrap_or(now.monotonic));
        let is_late = self.past.late_since.is_some_and(|since| now.monotonic.duration_since(since) >= LATE_FOR);
        for tracked in self.symbols.values_mut() {
            tracked.set_late(is_late, now);
        }
    }

    /// Resubscribes to silent streams, which harms no other. If that does not help, another connection is opened beside
    /// this one.
    fn check_silence(&mut self, now: Moment) {
        let Some(socket) = &mut self.socket else { return };
        for (symbol, tracked) in self.symbols.iter_mut().filter(|(_, tracked)| tracked.is_silent(now)) {
            tracing::warn!(%symbol, "updates of a symbol stopped coming; subscribing to it again");
            metrics::counter!("tribune_feed_resubscriptions_total").increment(1);
            let tried = tracked.resubscribed(now);
            socket.subscriptions.unsubscribe(symbol);
            socket.subscriptions.subscribe(symbol);
            if tried > 0 && is_due(&mut self.past.renewed, RENEW_EVERY, now.monotonic) {
                socket.closing = true;
            }
        }
    }

    /// Requests what the symbols want; of the books that are to be compared, the one that has waited longest.
    fn ask_the_exchange(&mut self, now: Instant) {
        let due = self.symbols.iter().filter_map(|(symbol, tracked)| Some((tracked.due(now)?, symbol)));
        let compared = due.filter(|((want, _), _)| *want == Want::UpdateId).min_by_key(|((_, since), _)| *since);
        let compared = compared.map(|(_, symbol)| symbol.clone());
        let compared = compared.filter(|_| is_due(&mut self.past.compared, BETWEEN_COMPARISONS, now));
        for (symbol, tracked) in &mut self.symbols {
            let (rank, is_pinned) = (tracked.published.rank(), tracked.published.is_pinned());
            let (want, limit) = match tracked.due(now) {
                Some((Want::Book, _)) => (Want::Book, if is_pinned && rank < DEEP_RANKS { 5_000 } else { 1_000 }),
                Some((Want::UpdateId, _)) if compared.as_ref() == Some(symbol) => (Want::UpdateId, FEWEST),
                _ => continue,
            };
            let generation = tracked.requested(want);
            let wanted = Wanted { rank, symbol: symbol.clone(), limit, generation, reply: self.reply.clone() };
            // The fetching task ends only with the feed.
            let _ = self.wanted.send(wanted);
        }
    }
}

async fn connected(connecting: &mut Option<Connecting>) -> Result<Socket, String> {
    match connecting {
        Some(handle) => handle.await.unwrap_or_else(|error| Err(error.to_string())),
        None => std::future::pending().await,
    }
}

/// The frames that have come; waits for the first.
async fn frames(socket: &mut Option<Socket>) -> Vec<Frame> {
    let Some(socket) = socket else {
        return std::future::pending().await;
    };
    let mut frames = vec![socket.next_frame().await];
    while frames.len() < BURST && !matches!(frames.last(), Some(Frame::Ended(_))) {
        match futures::FutureExt::now_or_never(socket.next_frame()) {
            Some(more) => frames.push(more),
            None => break,
        }
    }
    frames
}
