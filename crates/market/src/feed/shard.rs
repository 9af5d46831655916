//! One connection's worth of symbols: the only writer of their books. `link` keeps the connection, `messages` is what is
//! made of what comes on it.

mod link;
mod messages;

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tribune_core::Clock;

use super::board::Board;
use super::health::{Health, Link};
use super::heartbeat::Heartbeat;
use super::published::Published;
use super::settings::Settings;
use super::snapshots::{Kind, Unanswered, Wanted};
use super::socket::{Heard, Socket};
use super::subscriptions::Verdict;
use super::tracked::{Next, Tracked, Want};
use crate::book::Snapshot;
use crate::moment::Moment;
use messages::note;

const TICK: Duration = Duration::from_millis(50);
/// How often all books are doubted for a message of which nobody knows what it was.
const DOUBT_EVERY: Duration = Duration::from_secs(10);
/// Events that come later than this leave no book current.
const LATE: Duration = Duration::from_secs(2);
/// How often a connection is replaced because one symbol's streams stay silent on it.
const RENEW_EVERY: Duration = Duration::from_secs(600);
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
    pub(super) link: Arc<Link>,
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
    pub(super) past: Past,
}

/// When things were last done that are not to be done often.
#[derive(Debug, Default)]
pub(super) struct Past {
    compared: Option<Instant>,
    complained: Option<Instant>,
    doubted: Option<Instant>,
    /// Something came since of which nobody knows what it was.
    is_doubtful: bool,
    renewed: Option<Instant>,
    /// How often the exchange's clock had been told when the last event came, and when events began to come late.
    lag_learned: u64,
    late_since: Option<u64>,
}

/// Whether it may be done again, which is noted.
fn may_again(last: &mut Option<Instant>, every: Duration, now: Instant) -> bool {
    let may = last.is_none_or(|last| now.duration_since(last) >= every);
    if may {
        *last = Some(now);
    }
    may
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
                _ = tick.tick() => self.tick(),
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
                let tracked = Tracked::new(published.clone(), self.settings.max_levels);
                for socket in [&mut self.socket, &mut self.successor].into_iter().flatten() {
                    socket.subscriptions.subscribe(&published.symbol);
                }
                self.symbols.insert(published.symbol.clone(), tracked);
            }
            Order::Forget(symbol) => {
                self.symbols.remove(&symbol);
                for socket in [&mut self.socket, &mut self.successor].into_iter().flatten() {
                    socket.subscriptions.unsubscribe(&symbol);
                }
            }
            Order::Snapshot {
                symbol,
                generation,
                snapshot,
            } => {
                if let Some(tracked) = self.symbols.get_mut(&symbol) {
                    tracked.answered(generation, snapshot, now);
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
                    let verdict = note(said, self.socket.as_mut(), now.monotonic);
                    self.judged(verdict, now);
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
                    // What it does not bring still comes on the other one.
                    let _ = note(said, self.successor.as_mut(), now.monotonic);
                }
                Heard::Nothing => {}
                Heard::Ended(_) => {
                    self.successor = None;
                    return self.back_off(now.monotonic);
                }
            }
        }
    }

    /// What the connection that is read does not bring.
    fn judged(&mut self, verdict: Option<Verdict>, now: Moment) {
        match verdict {
            Some(Verdict::Refused { topics, why }) => {
                tracing::warn!(count = topics.len(), %why, "the exchange refused a subscription; it is tried again");
                for topic in topics {
                    if let Some(tracked) = self.symbols.get(&topic).filter(|tracked| !tracked.is_open()) {
                        tracked.refused(&why, now);
                    }
                }
            }
            Some(Verdict::Deaf) => self.ended("the exchange does not answer subscriptions"),
            Some(Verdict::Taken) | None => {}
        }
    }

    fn tick(&mut self) {
        let now = self.now();
        self.keep_link(now);
        self.open_taken(now);
        if self.past.is_doubtful && may_again(&mut self.past.doubted, DOUBT_EVERY, now.monotonic) {
            self.past.is_doubtful = false;
            for tracked in self.symbols.values_mut() {
                tracked.doubt(now.monotonic);
            }
        }
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

    /// What the exchange has agreed to send comes from here on.
    fn open_taken(&mut self, now: Moment) {
        let Some(socket) = &self.socket else { return };
        let millis = self.health.exchange_millis(now.wall);
        for (symbol, tracked) in &mut self.symbols {
            if !tracked.is_open() && socket.subscriptions.has_taken(symbol) {
                tracked.opened(now, millis);
            }
        }
    }

    /// No book is current while everything comes late. It may be the notion of the exchange's clock that is wrong, so
    /// that is told anew first.
    fn check_lag(&mut self, now: Moment) {
        let (lag, learned) = (self.heartbeat.lag(), self.past.lag_learned);
        let is_late = lag >= LATE;
        self.past.late_since = is_late.then(|| self.past.late_since.unwrap_or(learned));
        let late = self.past.late_since.filter(|before| learned > *before).map(|_| lag);
        for tracked in self.symbols.values_mut() {
            tracked.set_late(late, now);
        }
    }

    /// Streams that are silent are subscribed to again, which harms no other. If that is in vain, another connection
    /// is opened beside this one.
    fn check_silence(&mut self, now: Moment) {
        for (symbol, tracked) in &mut self.symbols {
            let Next::Resubscribe { tried } = tracked.check_silence(now) else {
                continue;
            };
            let Some(socket) = &mut self.socket else { return };
            tracing::warn!(%symbol, tried, "updates of a symbol stopped coming; subscribing to it again");
            metrics::counter!("tribune_feed_resubscriptions_total").increment(1);
            tracked.resubscribed(now);
            socket.subscriptions.unsubscribe(symbol);
            socket.subscriptions.subscribe(symbol);
            if tried > 0 && may_again(&mut self.past.renewed, RENEW_EVERY, now.monotonic) {
                socket.closing = true;
            }
        }
    }

    fn ask_the_exchange(&mut self, now: Instant) {
        let waiting = self
            .symbols
            .iter()
            .filter_map(|(symbol, tracked)| Some((tracked.compare_due()?, symbol)));
        // Who has waited longest is compared first; the others' turn comes.
        let next = waiting
            .min_by_key(|(since, _)| *since)
            .map(|(_, symbol)| symbol.clone());
        for (symbol, tracked) in &mut self.symbols {
            let is_next = next.as_ref() == Some(symbol);
            let (rank, is_pinned) = (tracked.published.rank(), tracked.published.is_pinned());
            let limit = self.settings.snapshot_limit(rank, is_pinned);
            let kind = match tracked.wants(now, if is_next { self.past.compared } else { Some(now) }, limit) {
                Some(Want::Book) => Kind::Book { limit },
                Some(Want::Deeper) => Kind::Deeper { limit },
                Some(Want::Place(_)) => {
                    self.past.compared = Some(now);
                    Kind::Place
                }
                None => continue,
            };
            let wanted = Wanted {
                rank,
                symbol: symbol.clone(),
                kind,
                generation: tracked.generation,
                reply: self.reply.clone(),
            };
            // Whoever fetches ends only when everything does.
            let _ = self.wanted.send(wanted);
        }
    }
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
