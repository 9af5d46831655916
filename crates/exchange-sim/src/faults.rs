//! Faults on demand, set in the process or posted to `/sim/faults` as JSON.

use std::mem::discriminant;
use std::time::Duration;

use parking_lot::Mutex;
use serde::Deserialize;

use crate::interval::Millis;

/// Faults at a time; a test that needs more is not plausible.
const MAX_FAULTS: usize = 1_000;

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
    /// Connections are closed at their next request, new ones at their first.
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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiffFault {
    Drop,
    Duplicate,
    /// Held back until the next one was sent.
    Swap,
    /// Sent with malformed data.
    Corrupt,
}

impl Fault {
    /// How often it still happens, for faults with a count.
    fn left(&mut self) -> Option<&mut u32> {
        match self {
            Self::DropDiffs { count, .. }
            | Self::DuplicateDiffs { count, .. }
            | Self::SwapDiffs { count, .. }
            | Self::UnreadableDiffs { count, .. }
            | Self::StaleSnapshots { count }
            | Self::Reject { count: Some(count), .. }
            | Self::FailEndpoint { count, .. }
            | Self::HalfAnswers { count }
            | Self::GarbageAnswers { count }
            | Self::GarbageMessages { count }
            | Self::RefuseSubscriptions { count }
            | Self::IgnoreSubscriptions { count } => Some(count),
            _ => None,
        }
    }

    /// What it does to the next diff, and the symbol; `None` is any symbol.
    fn of_diff(&self) -> Option<(DiffFault, &Option<String>)> {
        match self {
            Self::DropDiffs { symbol, .. } => Some((DiffFault::Drop, symbol)),
            Self::DuplicateDiffs { symbol, .. } => Some((DiffFault::Duplicate, symbol)),
            Self::SwapDiffs { symbol, .. } => Some((DiffFault::Swap, symbol)),
            Self::UnreadableDiffs { symbol, .. } => Some((DiffFault::Corrupt, symbol)),
            _ => None,
        }
    }

    /// Whether it replaces an active fault without a count: one of the same kind, and for `mute` of the same symbol.
    fn replaces(&self, other: &Self) -> bool {
        let is_apart = matches!((self, other), (Self::Mute { symbol, .. }, Self::Mute { symbol: muted, .. }) if !symbol.eq_ignore_ascii_case(muted));
        discriminant(self) == discriminant(other) && !is_apart
    }
}

#[derive(Debug)]
pub struct Faults {
    /// Oldest first.
    active: Mutex<Vec<Fault>>,
    random: Mutex<fastrand::Rng>,
}

impl Faults {
    pub fn new(seed: u64) -> Self {
        Self { active: Mutex::default(), random: Mutex::new(fastrand::Rng::with_seed(seed)) }
    }

    /// Sets a fault; those of connections and their streams are the hub's.
    pub fn set(&self, fault: Fault) {
        let mut active = self.active.lock();
        match fault {
            Fault::DropConnections | Fault::LoseStreams { .. } => {}
            Fault::Clear => active.clear(),
            fault => {
                active.retain_mut(|other| match other.left() {
                    Some(left) => *left > 0,
                    None => !fault.replaces(other),
                });
                if active.len() < MAX_FAULTS {
                    active.push(fault);
                }
            }
        }
    }

    /// What `choose` returns for the first active fault that it accepts.
    fn find<T>(&self, choose: impl Fn(&Fault) -> Option<T>) -> Option<T> {
        self.active.lock().iter().find_map(choose)
    }

    /// The same, and counts the fault down.
    fn take_next<T>(&self, choose: impl Fn(&Fault) -> Option<T>) -> Option<T> {
        self.active.lock().iter_mut().find_map(|fault| {
            let chosen = choose(fault)?;
            if let Some(left) = fault.left() {
                *left = left.checked_sub(1)?;
            }
            Some(chosen)
        })
    }

    /// Whether a fault happens this time.
    pub fn take(&self, is_meant: impl Fn(&Fault) -> bool) -> bool {
        self.take_next(|fault| is_meant(fault).then_some(())).is_some()
    }

    pub fn refuses_connections(&self) -> bool {
        self.find(|fault| matches!(fault, Fault::RefuseConnections { on: true }).then_some(())).is_some()
    }

    pub fn is_silent(&self) -> bool {
        self.find(|fault| matches!(fault, Fault::Silence { on: true }).then_some(())).is_some()
    }

    /// Whether nothing of a symbol, as in stream names, is sent.
    pub fn is_muted(&self, name: &str) -> bool {
        let muted = |fault: &Fault| matches!(fault, Fault::Mute { symbol, on: true } if symbol.to_lowercase() == name);
        self.find(|fault| muted(fault).then_some(())).is_some()
    }

    pub fn skew(&self) -> Millis {
        self.find(|fault| if let Fault::ClockSkew { millis } = fault { Some(*millis) } else { None }).unwrap_or(0)
    }

    pub fn delay(&self) -> Duration {
        let millis = self.find(|fault| if let Fault::Delay { millis } = fault { Some(*millis) } else { None });
        Duration::from_millis(millis.unwrap_or(0))
    }

    /// The status of a rejected answer and its `Retry-After`.
    pub fn take_rejection(&self, endpoint: &str) -> Option<(u16, Option<u64>)> {
        self.take_next(|fault| match fault {
            Fault::FailEndpoint { endpoint: failing, .. } => (failing == endpoint).then_some((503, None)),
            Fault::Reject { status, retry_after_secs, .. } => Some((*status, *retry_after_secs)),
            _ => None,
        })
    }

    /// What happens to the next diff of a symbol, as in stream names.
    pub fn next_diff(&self, name: &str) -> Option<DiffFault> {
        let queued = self.take_next(|fault| {
            let (fault, symbol) = fault.of_diff()?;
            symbol.as_ref().is_none_or(|symbol| symbol.to_lowercase() == name).then_some(fault)
        });
        queued.or_else(|| self.draw())
    }

    fn draw(&self) -> Option<DiffFault> {
        let rates = self.find(|fault| match fault {
            Fault::DiffRates { drop, duplicate, swap } => Some([*drop, *duplicate, *swap]),
            _ => None,
        })?;
        let mut left = self.random.lock().f64();
        for (fault, rate) in [DiffFault::Drop, DiffFault::Duplicate, DiffFault::Swap].into_iter().zip(rates) {
            if left < rate {
                return Some(fault);
            }
            left -= rate.max(0.0);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queued_faults_come_in_order_and_end() {
        let faults = Faults::new(1);
        faults.set(Fault::DropDiffs { symbol: Some("BTCUSDT".to_owned()), count: 1 });
        faults.set(Fault::SwapDiffs { symbol: None, count: 1 });
        assert_eq!(faults.next_diff("btcusdt"), Some(DiffFault::Drop));
        assert_eq!(faults.next_diff("ethusdt"), Some(DiffFault::Swap));
        assert_eq!(faults.next_diff("btcusdt"), None);
    }

    #[test]
    fn rate_is_about_met() {
        let faults = Faults::new(7);
        faults.set(Fault::DiffRates { drop: 0.1, duplicate: 0.0, swap: 0.0 });
        let dropped = (0..10_000).filter(|_| faults.next_diff("x") == Some(DiffFault::Drop)).count();
        assert!((800..1_200).contains(&dropped), "{dropped}");
    }

    #[test]
    fn rejections_end_by_count_or_by_clearing() {
        let faults = Faults::new(1);
        let reject = |count| Fault::Reject { status: 429, retry_after_secs: Some(3), count };
        faults.set(reject(Some(1)));
        assert!(faults.take_rejection("time").is_some());
        assert!(faults.take_rejection("time").is_none());
        faults.set(reject(None));
        assert!((0..9).all(|_| faults.take_rejection("time").is_some()));
        faults.set(Fault::Clear);
        assert!(faults.take_rejection("time").is_none());
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
