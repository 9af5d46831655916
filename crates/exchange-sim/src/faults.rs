//! Faults on demand, set in the process or posted to `/sim/faults` as JSON.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};

use crate::interval::Millis;

/// Queued faults of diffs; a test that needs more is not plausible.
const MAX_QUEUED: usize = 100_000;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
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
    Reject {
        status: u16,
        retry_after_secs: Option<u64>,
        count: Option<u32>,
    },
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

/// What happens to one `SUBSCRIBE`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SubscriptionFault {
    None,
    Refuse,
    Ignore,
}

/// What happens to the body of one REST answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyFault {
    None,
    Half,
    Garbage,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rejection {
    pub status: u16,
    pub retry_after_secs: Option<u64>,
}

#[derive(Debug, Default)]
struct Pending {
    diffs: HashMap<String, VecDeque<DiffFault>>,
    diffs_of_any: VecDeque<DiffFault>,
    rates: [(DiffFault, f64); 3],
    stale_snapshots: u32,
    rejection: Option<(Rejection, Option<u32>)>,
    failing: HashMap<String, u32>,
    delay_millis: u64,
    half_answers: u32,
    garbage_answers: u32,
    garbage_messages: u32,
    refused_subscriptions: u32,
    ignored_subscriptions: u32,
    /// In lower case, as in stream names.
    muted: HashSet<String>,
}

#[derive(Debug)]
pub struct Faults {
    pending: Mutex<Pending>,
    random: Mutex<fastrand::Rng>,
    refusing: AtomicBool,
    silent: AtomicBool,
    skew: AtomicI64,
}

impl Faults {
    pub fn new(seed: u64) -> Self {
        Self {
            pending: Mutex::default(),
            random: Mutex::new(fastrand::Rng::with_seed(seed)),
            refusing: AtomicBool::new(false),
            silent: AtomicBool::new(false),
            skew: AtomicI64::new(0),
        }
    }

    fn pending(&self) -> MutexGuard<'_, Pending> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets a fault; those of connections and their streams are the hub's.
    pub fn set(&self, fault: &Fault) {
        let mut pending = self.pending();
        match fault {
            Fault::DropConnections | Fault::LoseStreams { .. } => {}
            Fault::DropDiffs { symbol, count } => pending.queue(symbol.as_deref(), DiffFault::Drop, *count),
            Fault::DuplicateDiffs { symbol, count } => pending.queue(symbol.as_deref(), DiffFault::Duplicate, *count),
            Fault::SwapDiffs { symbol, count } => pending.queue(symbol.as_deref(), DiffFault::Swap, *count),
            Fault::UnreadableDiffs { symbol, count } => pending.queue(symbol.as_deref(), DiffFault::Corrupt, *count),
            Fault::DiffRates { drop, duplicate, swap } => {
                pending.rates = [
                    (DiffFault::Drop, *drop),
                    (DiffFault::Duplicate, *duplicate),
                    (DiffFault::Swap, *swap),
                ];
            }
            Fault::StaleSnapshots { count } => pending.stale_snapshots = *count,
            Fault::Reject {
                status,
                retry_after_secs,
                count,
            } => {
                let rejection = Rejection {
                    status: *status,
                    retry_after_secs: *retry_after_secs,
                };
                pending.rejection = Some((rejection, *count));
            }
            Fault::FailEndpoint { endpoint, count } => drop(pending.failing.insert(endpoint.clone(), *count)),
            Fault::Delay { millis } => pending.delay_millis = *millis,
            Fault::HalfAnswers { count } => pending.half_answers = *count,
            Fault::GarbageAnswers { count } => pending.garbage_answers = *count,
            Fault::GarbageMessages { count } => pending.garbage_messages = *count,
            Fault::RefuseConnections { on } => self.refusing.store(*on, Ordering::Relaxed),
            Fault::ClockSkew { millis } => self.skew.store(*millis, Ordering::Relaxed),
            Fault::Silence { on } => self.silent.store(*on, Ordering::Relaxed),
            Fault::Mute { symbol, on: true } => drop(pending.muted.insert(symbol.to_lowercase())),
            Fault::Mute { symbol, on: false } => drop(pending.muted.remove(&symbol.to_lowercase())),
            Fault::RefuseSubscriptions { count } => pending.refused_subscriptions = *count,
            Fault::IgnoreSubscriptions { count } => pending.ignored_subscriptions = *count,
            Fault::Clear => {
                *pending = Pending::default();
                self.refusing.store(false, Ordering::Relaxed);
                self.silent.store(false, Ordering::Relaxed);
                self.skew.store(0, Ordering::Relaxed);
            }
        }
    }

    pub fn refuses_connections(&self) -> bool {
        self.refusing.load(Ordering::Relaxed)
    }

    pub fn is_silent(&self) -> bool {
        self.silent.load(Ordering::Relaxed)
    }

    /// Whether nothing is sent on a stream.
    pub fn is_muted(&self, stream: &str) -> bool {
        let symbol = stream.split('@').next().unwrap_or_default();
        self.pending().muted.contains(symbol)
    }

    pub fn next_subscription(&self) -> SubscriptionFault {
        let mut pending = self.pending();
        if take(&mut pending.refused_subscriptions) {
            SubscriptionFault::Refuse
        } else if take(&mut pending.ignored_subscriptions) {
            SubscriptionFault::Ignore
        } else {
            SubscriptionFault::None
        }
    }

    pub fn skew_millis(&self) -> Millis {
        self.skew.load(Ordering::Relaxed)
    }

    pub fn delay_millis(&self) -> u64 {
        self.pending().delay_millis
    }

    pub fn next_diff(&self, symbol: &str) -> DiffFault {
        let mut pending = self.pending();
        let queued = pending.diffs.get_mut(symbol).and_then(VecDeque::pop_front);
        let queued = queued.or_else(|| pending.diffs_of_any.pop_front());
        queued.unwrap_or_else(|| self.draw(&pending.rates))
    }

    fn draw(&self, rates: &[(DiffFault, f64); 3]) -> DiffFault {
        let mut random = self.random.lock().unwrap_or_else(PoisonError::into_inner);
        let mut left = random.f64();
        for (fault, rate) in rates {
            if left < *rate {
                return *fault;
            }
            left -= rate.max(0.0);
        }
        DiffFault::None
    }

    pub fn take_stale_snapshot(&self) -> bool {
        take(&mut self.pending().stale_snapshots)
    }

    pub fn take_rejection(&self) -> Option<Rejection> {
        let mut pending = self.pending();
        let (rejection, left) = pending.rejection.as_mut()?;
        let rejection = *rejection;
        if let Some(left) = left
            && !take(left)
        {
            pending.rejection = None;
            return None;
        }
        Some(rejection)
    }

    /// Whether this request to the endpoint fails.
    pub fn take_failure(&self, endpoint: &str) -> bool {
        self.pending().failing.get_mut(endpoint).is_some_and(take)
    }

    pub fn next_body(&self) -> BodyFault {
        let mut pending = self.pending();
        if take(&mut pending.half_answers) {
            BodyFault::Half
        } else if take(&mut pending.garbage_answers) {
            BodyFault::Garbage
        } else {
            BodyFault::None
        }
    }

    pub fn take_garbage_message(&self) -> bool {
        take(&mut self.pending().garbage_messages)
    }
}

impl Pending {
    fn queue(&mut self, symbol: Option<&str>, fault: DiffFault, count: u32) {
        let queue = match symbol {
            Some(symbol) => self.diffs.entry(symbol.to_uppercase()).or_default(),
            None => &mut self.diffs_of_any,
        };
        let room = MAX_QUEUED.saturating_sub(queue.len());
        queue.extend(std::iter::repeat_n(fault, room.min(count as usize)));
    }
}

fn take(left: &mut u32) -> bool {
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
        faults.set(&Fault::DropDiffs {
            symbol: Some("btcusdt".to_owned()),
            count: 1,
        });
        faults.set(&Fault::SwapDiffs { symbol: None, count: 1 });
        assert_eq!(faults.next_diff("BTCUSDT"), DiffFault::Drop);
        assert_eq!(faults.next_diff("ETHUSDT"), DiffFault::Swap);
        assert_eq!(faults.next_diff("BTCUSDT"), DiffFault::None);
    }

    #[test]
    fn rate_is_about_met() {
        let faults = Faults::new(7);
        faults.set(&Fault::DiffRates {
            drop: 0.1,
            duplicate: 0.0,
            swap: 0.0,
        });
        let dropped = (0..10_000).filter(|_| faults.next_diff("X") == DiffFault::Drop).count();
        assert!((800..1_200).contains(&dropped), "{dropped}");
    }

    #[test]
    fn rejections_end_by_count_or_by_clearing() {
        let faults = Faults::new(1);
        let reject = |count| Fault::Reject {
            status: 429,
            retry_after_secs: Some(3),
            count,
        };
        faults.set(&reject(Some(1)));
        assert!(faults.take_rejection().is_some());
        assert!(faults.take_rejection().is_none());
        faults.set(&reject(None));
        assert!((0..9).all(|_| faults.take_rejection().is_some()));
        faults.set(&Fault::Clear);
        assert!(faults.take_rejection().is_none());
    }

    #[test]
    fn fault_is_parsed_from_name_and_fields() {
        let fault: Fault =
            serde_json::from_str(r#"{"fault":"drop_diffs","symbol":"BTCUSDT","count":2}"#).expect("a fault");
        let expected = Fault::DropDiffs {
            symbol: Some("BTCUSDT".to_owned()),
            count: 2,
        };
        assert_eq!(fault, expected);
        assert!(serde_json::from_str::<Fault>(r#"{"fault":"silence","on":true,"more":1}"#).is_err());
    }
}
