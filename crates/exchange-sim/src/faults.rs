//! Faults on demand, set in the process or posted to `/sim/faults` as JSON.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Mutex;
use std::time::Duration;

use serde::Deserialize;

use crate::interval::Millis;
use crate::lock::lock;

/// Queued faults of diffs; a test that needs more is not plausible.
const MAX_QUEUED: usize = 100_000;

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(tag = "fault", rename_all = "snake_case", deny_unknown_fields)]
pub enum Fault {
    /// Every WebSocket connection ends now, without a closing handshake.
    DropConnections,
    /// The next diffs are not sent: of one symbol, or of any.
    DropDiffs { symbol: Option<String>, count: u32 },
    /// The next diffs are sent twice.
    DuplicateDiffs { symbol: Option<String>, count: u32 },
    /// The next diffs are each sent after their successor.
    SwapDiffs { symbol: Option<String>, count: u32 },
    /// The next diffs have malformed data in a well-formed envelope.
    UnreadableDiffs { symbol: Option<String>, count: u32 },
    /// From now on each diff is dropped, duplicated or swapped with these probabilities.
    DiffRates {
        #[serde(default)]
        drop: f64,
        #[serde(default)]
        duplicate: f64,
        #[serde(default)]
        swap: f64,
    },
    /// The next depth answers are the first book, which is older than the stream.
    StaleSnapshots { count: u32 },
    /// REST answers 429, 418 or another status, `count` times or until cleared.
    Reject { status: u16, retry_after_secs: Option<u64>, count: Option<u32> },
    /// The next requests of one endpoint (`depth`, `ticker/24hr`) are answered with status 503.
    FailEndpoint { endpoint: String, count: u32 },
    /// REST answers are delayed.
    Delay { millis: u64 },
    /// The connection ends in the middle of the next bodies.
    HalfAnswers { count: u32 },
    /// The next REST bodies are not JSON.
    GarbageAnswers { count: u32 },
    /// The next stream messages are not JSON.
    GarbageMessages { count: u32 },
    /// New connections are closed at once, and kept-alive ones at their next request.
    RefuseConnections { on: bool },
    /// `/api/v3/time` and event times are off by this much.
    ClockSkew { millis: Millis },
    /// Connections stay open and nothing is sent.
    Silence { on: bool },
    /// Nothing of one symbol is sent.
    Mute { symbol: String, on: bool },
    /// Every connection silently loses the streams of one symbol until it subscribes again.
    LoseStreams { symbol: String },
    /// The next `SUBSCRIBE`s are answered with an error.
    RefuseSubscriptions { count: u32 },
    /// The next `SUBSCRIBE`s are neither executed nor answered.
    IgnoreSubscriptions { count: u32 },
    /// Clears all faults.
    Clear,
}

/// What happens to one diff.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DiffFault {
    #[default]
    None,
    Drop,
    Duplicate,
    /// Held back until the next one was sent.
    Swap,
    /// Sent with malformed data.
    Corrupt,
}

/// What goes wrong a given number of times.
#[derive(Debug, PartialEq, Eq, Hash)]
pub enum Countdown {
    StaleSnapshot,
    HalfAnswer,
    GarbageAnswer,
    GarbageMessage,
    RefusedSubscription,
    IgnoredSubscription,
    /// A request of this endpoint.
    Endpoint(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rejection {
    pub status: u16,
    pub retry_after_secs: Option<u64>,
}

#[derive(Debug, Default)]
struct Pending {
    /// By symbol, as in stream names; `None` is any.
    diffs: HashMap<Option<String>, VecDeque<DiffFault>>,
    rates: [(DiffFault, f64); 3],
    countdowns: HashMap<Countdown, u32>,
    rejection: Option<(Rejection, Option<u32>)>,
    delay: Duration,
    refuses_connections: bool,
    is_silent: bool,
    skew: Millis,
    /// Symbols, as in stream names.
    muted: HashSet<String>,
}

#[derive(Debug)]
pub struct Faults {
    pending: Mutex<Pending>,
    random: Mutex<fastrand::Rng>,
}

impl Faults {
    pub fn new(seed: u64) -> Self {
        Self { pending: Mutex::default(), random: Mutex::new(fastrand::Rng::with_seed(seed)) }
    }

    /// Sets a fault; those of connections and their streams are the hub's.
    pub fn set(&self, fault: Fault) {
        let mut pending = lock(&self.pending);
        match fault {
            Fault::DropConnections | Fault::LoseStreams { .. } => {}
            Fault::DropDiffs { symbol, count } => pending.queue(symbol, DiffFault::Drop, count),
            Fault::DuplicateDiffs { symbol, count } => pending.queue(symbol, DiffFault::Duplicate, count),
            Fault::SwapDiffs { symbol, count } => pending.queue(symbol, DiffFault::Swap, count),
            Fault::UnreadableDiffs { symbol, count } => pending.queue(symbol, DiffFault::Corrupt, count),
            Fault::DiffRates { drop, duplicate, swap } => {
                let faults = [DiffFault::Drop, DiffFault::Duplicate, DiffFault::Swap];
                pending.rates = std::array::from_fn(|index| (faults[index], [drop, duplicate, swap][index]));
            }
            Fault::StaleSnapshots { count } => pending.count_down(Countdown::StaleSnapshot, count),
            Fault::Reject { status, retry_after_secs, count } => {
                let rejection = Rejection { status, retry_after_secs };
                pending.rejection = Some((rejection, count));
            }
            Fault::FailEndpoint { endpoint, count } => pending.count_down(Countdown::Endpoint(endpoint), count),
            Fault::Delay { millis } => pending.delay = Duration::from_millis(millis),
            Fault::HalfAnswers { count } => pending.count_down(Countdown::HalfAnswer, count),
            Fault::GarbageAnswers { count } => pending.count_down(Countdown::GarbageAnswer, count),
            Fault::GarbageMessages { count } => pending.count_down(Countdown::GarbageMessage, count),
            Fault::RefuseConnections { on } => pending.refuses_connections = on,
            Fault::ClockSkew { millis } => pending.skew = millis,
            Fault::Silence { on } => pending.is_silent = on,
            Fault::Mute { symbol, on } => {
                let symbol = symbol.to_lowercase();
                pending.muted.retain(|muted| *muted != symbol);
                pending.muted.extend(on.then_some(symbol));
            }
            Fault::RefuseSubscriptions { count } => pending.count_down(Countdown::RefusedSubscription, count),
            Fault::IgnoreSubscriptions { count } => pending.count_down(Countdown::IgnoredSubscription, count),
            Fault::Clear => *pending = Pending::default(),
        }
    }

    pub fn refuses_connections(&self) -> bool {
        lock(&self.pending).refuses_connections
    }

    pub fn is_silent(&self) -> bool {
        lock(&self.pending).is_silent
    }

    /// Whether nothing of a symbol, as in stream names, is sent.
    pub fn is_muted(&self, symbol: &str) -> bool {
        lock(&self.pending).muted.contains(symbol)
    }

    pub fn skew(&self) -> Millis {
        lock(&self.pending).skew
    }

    pub fn delay(&self) -> Duration {
        lock(&self.pending).delay
    }

    /// Whether it goes wrong this time.
    pub fn take(&self, countdown: &Countdown) -> bool {
        lock(&self.pending).countdowns.get_mut(countdown).is_some_and(take_one)
    }

    /// What happens to the next diff of a symbol, as in stream names.
    pub fn next_diff(&self, symbol: &str) -> DiffFault {
        let mut pending = lock(&self.pending);
        let queues = [Some(symbol.to_owned()), None];
        let queued = queues.iter().find_map(|queue| pending.diffs.get_mut(queue)?.pop_front());
        queued.unwrap_or_else(|| self.draw(&pending.rates))
    }

    fn draw(&self, rates: &[(DiffFault, f64); 3]) -> DiffFault {
        let mut random = lock(&self.random);
        let mut left = random.f64();
        for (fault, rate) in rates {
            if left < *rate {
                return *fault;
            }
            left -= rate.max(0.0);
        }
        DiffFault::None
    }

    pub fn take_rejection(&self) -> Option<Rejection> {
        let mut pending = lock(&self.pending);
        let (rejection, left) = pending.rejection.as_mut()?;
        let is_rejected = left.as_mut().is_none_or(take_one);
        is_rejected.then_some(*rejection)
    }
}

impl Pending {
    fn queue(&mut self, symbol: Option<String>, fault: DiffFault, count: u32) {
        let symbol = symbol.map(|symbol| symbol.to_lowercase());
        let queue = self.diffs.entry(symbol).or_default();
        let room = MAX_QUEUED.saturating_sub(queue.len());
        queue.extend(std::iter::repeat_n(fault, room.min(count as usize)));
    }

    fn count_down(&mut self, countdown: Countdown, count: u32) {
        self.countdowns.insert(countdown, count);
    }
}

fn take_one(left: &mut u32) -> bool {
    let taken = *left > 0;
    *left = left.saturating_sub(1);
    taken
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queued_faults_come_in_order_and_end() {
        let faults = Faults::new(1);
        faults.set(Fault::DropDiffs { symbol: Some("BTCUSDT".to_owned()), count: 1 });
        faults.set(Fault::SwapDiffs { symbol: None, count: 1 });
        assert_eq!(faults.next_diff("btcusdt"), DiffFault::Drop);
        assert_eq!(faults.next_diff("ethusdt"), DiffFault::Swap);
        assert_eq!(faults.next_diff("btcusdt"), DiffFault::None);
    }

    #[test]
    fn rate_is_about_met() {
        let faults = Faults::new(7);
        faults.set(Fault::DiffRates { drop: 0.1, duplicate: 0.0, swap: 0.0 });
        let dropped = (0..10_000).filter(|_| faults.next_diff("x") == DiffFault::Drop).count();
        assert!((800..1_200).contains(&dropped), "{dropped}");
    }

    #[test]
    fn rejections_end_by_count_or_by_clearing() {
        let faults = Faults::new(1);
        let reject = |count| Fault::Reject { status: 429, retry_after_secs: Some(3), count };
        faults.set(reject(Some(1)));
        assert!(faults.take_rejection().is_some());
        assert!(faults.take_rejection().is_none());
        faults.set(reject(None));
        assert!((0..9).all(|_| faults.take_rejection().is_some()));
        faults.set(Fault::Clear);
        assert!(faults.take_rejection().is_none());
    }

    #[test]
    fn fault_is_parsed_from_name_and_fields() {
        let fault: Fault =
            serde_json::from_str(r#"{"fault":"drop_diffs","symbol":"BTCUSDT","count":2}"#).expect("a fault");
        let expected = Fault::DropDiffs { symbol: Some("BTCUSDT".to_owned()), count: 2 };
        assert_eq!(fault, expected);
        assert!(serde_json::from_str::<Fault>(r#"{"fault":"silence","on":true,"more":1}"#).is_err());
    }
}
