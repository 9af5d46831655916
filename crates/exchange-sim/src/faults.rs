//! What can go wrong on demand. Each fault is a value, given in the process or posted to `/sim/faults` as JSON.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};

use crate::interval::Millis;

/// Diffs that can wait for their fate; more are refused silently, being no plausible test.
const MAX_QUEUED: u32 = 100_000;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "fault", rename_all = "snake_case", deny_unknown_fields)]
pub enum Fault {
    /// Every WebSocket connection ends now, without a closing handshake.
    DropConnections,
    /// The next diffs are not sent: of a symbol, or of whichever comes.
    DropDiffs { symbol: Option<String>, count: u32 },
    /// The next diffs are sent twice.
    DuplicateDiffs { symbol: Option<String>, count: u32 },
    /// The next diffs change places, each with the one after it.
    SwapDiffs { symbol: Option<String>, count: u32 },
    /// The next diffs have data that nobody can read, in an envelope that everybody can.
    UnreadableDiffs { symbol: Option<String>, count: u32 },
    /// From now on each diff meets one of these fates with the given probability.
    DiffRates {
        #[serde(default)]
        drop: f64,
        #[serde(default)]
        duplicate: f64,
        #[serde(default)]
        swap: f64,
    },
    /// The next depth answers are the first book that was known, which is older than all that is streamed.
    StaleSnapshots { count: u32 },
    /// REST answers 429, 418 or another status, `count` times or until cleared.
    Reject {
        status: u16,
        retry_after_secs: Option<u64>,
        count: Option<u32>,
    },
    /// The next requests of one endpoint (`depth`, `ticker/24hr`) are answered with status 503.
    FailEndpoint { endpoint: String, count: u32 },
    /// REST answers come so much later.
    Delay { millis: u64 },
    /// The connection ends in the middle of the next bodies.
    HalfAnswers { count: u32 },
    /// The next REST bodies are not JSON.
    GarbageAnswers { count: u32 },
    /// So many messages that are not JSON go to the streams.
    GarbageMessages { count: u32 },
    /// New connections are closed at once, and those that REST clients kept open at their next request.
    RefuseConnections { on: bool },
    /// `/api/v3/time` and event times are off by so much.
    ClockSkew { millis: Millis },
    /// Connections stay open and nothing is sent.
    Silence { on: bool },
    /// Nothing of one symbol is sent, whoever subscribes.
    Mute { symbol: String, on: bool },
    /// Every connection loses the streams of one symbol without a word; who subscribes anew has them again.
    LoseStreams { symbol: String },
    /// The next `SUBSCRIBE`s are answered with an error.
    RefuseSubscriptions { count: u32 },
    /// The next `SUBSCRIBE`s are neither carried out nor answered.
    IgnoreSubscriptions { count: u32 },
    /// Everything is well again.
    Clear,
}

/// What becomes of one diff.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DiffFate {
    #[default]
    Send,
    Drop,
    Duplicate,
    /// Held back until the next one has been sent.
    Swap,
    /// Sent with data that cannot be read.
    Garble,
}

/// What becomes of one `SUBSCRIBE`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SubscriptionFate {
    Take,
    Refuse,
    Ignore,
}

/// What becomes of one REST answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyFate {
    Whole,
    Half,
    Garbage,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rejection {
    pub status: u16,
    pub retry_after_secs: Option<u64>,
}

#[derive(Debug, Default)]
struct Plan {
    diffs: HashMap<String, VecDeque<DiffFate>>,
    diffs_of_any: VecDeque<DiffFate>,
    rates: [(DiffFate, f64); 3],
    stale_snapshots: u32,
    rejection: Option<(Rejection, Option<u32>)>,
    failing: HashMap<String, u32>,
    delay_millis: u64,
    half_answers: u32,
    garbage_answers: u32,
    garbage_messages: u32,
    refused_subscriptions: u32,
    ignored_subscriptions: u32,
    /// In lower case, as streams are named.
    muted: HashSet<String>,
}

#[derive(Debug)]
pub struct Faults {
    plan: Mutex<Plan>,
    random: Mutex<fastrand::Rng>,
    /// Spares the lock on every message as long as diffs are left alone.
    diffs_at_risk: AtomicBool,
    garbage_waits: AtomicBool,
    refusing: AtomicBool,
    silent: AtomicBool,
    has_muted: AtomicBool,
    skew: AtomicI64,
}

impl Faults {
    pub fn new(seed: u64) -> Self {
        Self {
            plan: Mutex::default(),
            random: Mutex::new(fastrand::Rng::with_seed(seed)),
            diffs_at_risk: AtomicBool::new(false),
            garbage_waits: AtomicBool::new(false),
            refusing: AtomicBool::new(false),
            silent: AtomicBool::new(false),
            has_muted: AtomicBool::new(false),
            skew: AtomicI64::new(0),
        }
    }

    fn plan(&self) -> MutexGuard<'_, Plan> {
        self.plan.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All but what ends connections or takes streams from them, which are not ours.
    pub fn set(&self, fault: &Fault) {
        let mut plan = self.plan();
        match fault {
            Fault::DropConnections | Fault::LoseStreams { .. } => {}
            Fault::DropDiffs { symbol, count } => plan.queue(symbol.as_deref(), DiffFate::Drop, *count),
            Fault::DuplicateDiffs { symbol, count } => plan.queue(symbol.as_deref(), DiffFate::Duplicate, *count),
            Fault::SwapDiffs { symbol, count } => plan.queue(symbol.as_deref(), DiffFate::Swap, *count),
            Fault::UnreadableDiffs { symbol, count } => plan.queue(symbol.as_deref(), DiffFate::Garble, *count),
            Fault::DiffRates { drop, duplicate, swap } => {
                plan.rates = [
                    (DiffFate::Drop, *drop),
                    (DiffFate::Duplicate, *duplicate),
                    (DiffFate::Swap, *swap),
                ];
            }
            Fault::StaleSnapshots { count } => plan.stale_snapshots = *count,
            Fault::Reject {
                status,
                retry_after_secs,
                count,
            } => {
                let rejection = Rejection {
                    status: *status,
                    retry_after_secs: *retry_after_secs,
                };
                plan.rejection = Some((rejection, *count));
            }
            Fault::FailEndpoint { endpoint, count } => drop(plan.failing.insert(endpoint.clone(), *count)),
            Fault::Delay { millis } => plan.delay_millis = *millis,
            Fault::HalfAnswers { count } => plan.half_answers = *count,
            Fault::GarbageAnswers { count } => plan.garbage_answers = *count,
            Fault::GarbageMessages { count } => plan.garbage_messages = *count,
            Fault::RefuseConnections { on } => self.refusing.store(*on, Ordering::Relaxed),
            Fault::ClockSkew { millis } => self.skew.store(*millis, Ordering::Relaxed),
            Fault::Silence { on } => self.silent.store(*on, Ordering::Relaxed),
            Fault::Mute { symbol, on: true } => drop(plan.muted.insert(symbol.to_lowercase())),
            Fault::Mute { symbol, on: false } => drop(plan.muted.remove(&symbol.to_lowercase())),
            Fault::RefuseSubscriptions { count } => plan.refused_subscriptions = *count,
            Fault::IgnoreSubscriptions { count } => plan.ignored_subscriptions = *count,
            Fault::Clear => {
                *plan = Plan::default();
                self.refusing.store(false, Ordering::Relaxed);
                self.silent.store(false, Ordering::Relaxed);
                self.skew.store(0, Ordering::Relaxed);
            }
        }
        self.diffs_at_risk.store(plan.threatens_diffs(), Ordering::Relaxed);
        self.garbage_waits.store(plan.garbage_messages > 0, Ordering::Relaxed);
        self.has_muted.store(!plan.muted.is_empty(), Ordering::Relaxed);
    }

    pub fn refusing(&self) -> bool {
        self.refusing.load(Ordering::Relaxed)
    }

    pub fn silent(&self) -> bool {
        self.silent.load(Ordering::Relaxed)
    }

    /// Whether nothing is to be sent on a stream.
    pub fn is_muted(&self, stream: &str) -> bool {
        let symbol = stream.split('@').next().unwrap_or_default();
        self.has_muted.load(Ordering::Relaxed) && self.plan().muted.contains(symbol)
    }

    pub fn next_subscription(&self) -> SubscriptionFate {
        let mut plan = self.plan();
        if take(&mut plan.refused_subscriptions) {
            SubscriptionFate::Refuse
        } else if take(&mut plan.ignored_subscriptions) {
            SubscriptionFate::Ignore
        } else {
            SubscriptionFate::Take
        }
    }

    pub fn skew_millis(&self) -> Millis {
        self.skew.load(Ordering::Relaxed)
    }

    pub fn delay_millis(&self) -> u64 {
        self.plan().delay_millis
    }

    pub fn next_diff(&self, symbol: &str) -> DiffFate {
        if !self.diffs_at_risk.load(Ordering::Relaxed) {
            return DiffFate::Send;
        }
        let mut plan = self.plan();
        let queued = plan.diffs.get_mut(symbol).and_then(VecDeque::pop_front);
        let queued = queued.or_else(|| plan.diffs_of_any.pop_front());
        let fate = queued.unwrap_or_else(|| self.drawn(&plan.rates));
        self.diffs_at_risk.store(plan.threatens_diffs(), Ordering::Relaxed);
        fate
    }

    fn drawn(&self, rates: &[(DiffFate, f64); 3]) -> DiffFate {
        let mut random = self.random.lock().unwrap_or_else(PoisonError::into_inner);
        let mut left = random.f64();
        for (fate, rate) in rates {
            if left < *rate {
                return *fate;
            }
            left -= rate.max(0.0);
        }
        DiffFate::Send
    }

    pub fn take_stale_snapshot(&self) -> bool {
        take(&mut self.plan().stale_snapshots)
    }

    pub fn take_rejection(&self) -> Option<Rejection> {
        let mut plan = self.plan();
        let (rejection, left) = plan.rejection.as_mut()?;
        let rejection = *rejection;
        if let Some(left) = left
            && !take(left)
        {
            plan.rejection = None;
            return None;
        }
        Some(rejection)
    }

    /// Whether a request to the endpoint is to fail.
    pub fn take_failure(&self, endpoint: &str) -> bool {
        self.plan().failing.get_mut(endpoint).is_some_and(take)
    }

    pub fn next_body(&self) -> BodyFate {
        let mut plan = self.plan();
        if take(&mut plan.half_answers) {
            BodyFate::Half
        } else if take(&mut plan.garbage_answers) {
            BodyFate::Garbage
        } else {
            BodyFate::Whole
        }
    }

    pub fn take_garbage_message(&self) -> bool {
        if !self.garbage_waits.load(Ordering::Relaxed) {
            return false;
        }
        let mut plan = self.plan();
        let taken = take(&mut plan.garbage_messages);
        self.garbage_waits.store(plan.garbage_messages > 0, Ordering::Relaxed);
        taken
    }
}

impl Plan {
    fn queue(&mut self, symbol: Option<&str>, fate: DiffFate, count: u32) {
        let queue = match symbol {
            Some(symbol) => self.diffs.entry(symbol.to_uppercase()).or_default(),
            None => &mut self.diffs_of_any,
        };
        queue.extend((0..count.min(MAX_QUEUED)).map(|_| fate));
    }

    fn threatens_diffs(&self) -> bool {
        !self.diffs_of_any.is_empty()
            || self.diffs.values().any(|queue| !queue.is_empty())
            || self.rates.iter().any(|(_, rate)| *rate > 0.0)
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
    fn queued_fates_come_in_order_and_end() {
        let faults = Faults::new(1);
        faults.set(&Fault::DropDiffs {
            symbol: Some("btcusdt".to_owned()),
            count: 1,
        });
        faults.set(&Fault::SwapDiffs { symbol: None, count: 1 });
        assert_eq!(faults.next_diff("BTCUSDT"), DiffFate::Drop);
        assert_eq!(faults.next_diff("ETHUSDT"), DiffFate::Swap);
        assert_eq!(faults.next_diff("BTCUSDT"), DiffFate::Send);
    }

    #[test]
    fn a_rate_is_about_met() {
        let faults = Faults::new(7);
        faults.set(&Fault::DiffRates {
            drop: 0.1,
            duplicate: 0.0,
            swap: 0.0,
        });
        let dropped = (0..10_000).filter(|_| faults.next_diff("X") == DiffFate::Drop).count();
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
    fn the_json_of_a_fault_is_its_name_and_fields() {
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
