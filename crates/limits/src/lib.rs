//! Limits of callers and connections. Each process counts for itself, and rates also for all nodes.
//!
//! - [`peer`]: which address a request comes from, and whom a limit counts for;
//! - [`rate`]: how often something may happen;
//! - [`shared`]: what several nodes count together;
//! - [`places`]: how many streams, or running chats, one caller may have at once;
//! - [`connections`]: how many connections there may be, which are silent, and what their clients have not taken yet.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests use the machine's clock"))]

pub mod connections;
mod peer;
mod places;
mod rate;
pub mod shared;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use tribune_config::check_range;
use tribune_config::units::{MIB, mebibytes, secs};
use tribune_core::{CallContext, Clock, Error, Principal, ToolSpec, UserId};

pub use peer::{Proxies, SocketPeer, Subject};
pub use places::{Place, Places};
pub use rate::Rate;

use connections::sending::Budget;
use shared::SharedCounts;

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3_600);
const DAY: Duration = Duration::from_secs(24 * 3_600);
/// Chat tokens are counted in thousands.
const CHAT_UNIT: u64 = 1_000;

/// `[limits]`; 0 switches a number off.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LimitSettings {
    pub connections: usize,
    pub connections_per_peer: usize,
    /// How long a new connection may take to send a complete request head.
    #[serde(rename = "head_secs", deserialize_with = "secs")]
    pub head: Duration,
    /// How long a connection is kept without a request.
    #[serde(rename = "idle_secs", deserialize_with = "secs")]
    pub idle: Duration,
    /// How long a response may wait for a client that does not read.
    #[serde(rename = "stall_secs", deserialize_with = "secs")]
    pub stall: Duration,
    /// Bytes of responses that wait for clients.
    #[serde(rename = "sending_mb", deserialize_with = "mebibytes")]
    pub sending_bytes: usize,
    /// Tool calls of one user; twice as many requests.
    pub calls_per_minute: u32,
    /// The same for anonymous callers of one address.
    pub anonymous_calls_per_minute: u32,
    /// Tool calls of one user that change something.
    pub changes_per_hour: u32,
    pub chat_tokens_per_day: u32,
    /// Wrong passwords from one address, and as many wrong tokens.
    pub failed_sign_ins_per_minute: u32,
    /// Stored tasks of one user.
    pub tasks_per_user: u64,
    /// Stored conversations of one user; a further one replaces the oldest.
    pub conversations_per_user: u32,
    /// Open `/sse` and `/live` streams of one user, or of the anonymous callers of one address.
    pub streams_per_caller: usize,
    pub trusted_proxies: Proxies,
}

impl Default for LimitSettings {
    fn default() -> Self {
        Self {
            connections: 10_000,
            connections_per_peer: 256,
            head: Duration::from_secs(10),
            idle: Duration::from_secs(60),
            stall: Duration::from_secs(30),
            sending_bytes: 256 * MIB,
            calls_per_minute: 6_000,
            anonymous_calls_per_minute: 3_000,
            changes_per_hour: 1_000,
            chat_tokens_per_day: 5_000_000,
            failed_sign_ins_per_minute: 60,
            tasks_per_user: 100_000,
            conversations_per_user: 10_000,
            streams_per_caller: 64,
            trusted_proxies: Proxies::default(),
        }
    }
}

impl LimitSettings {
    pub fn check(&self) -> tribune_core::Result<()> {
        check_range("limits.head_secs", self.head.as_secs(), 1, 3_600)?;
        check_range("limits.idle_secs", self.idle.as_secs(), 1, 3_600)?;
        check_range("limits.stall_secs", self.stall.as_secs(), 1, 3_600)?;
        check_range("limits.sending_mb", (self.sending_bytes / MIB) as u64, 0, 1_000_000)
    }
}

/// A refusal: which limit, and how long to wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exceeded {
    limit: &'static str,
    what: &'static str,
    pub wait: Duration,
}

impl Exceeded {
    fn new(limit: &'static str, what: &'static str, wait: Duration) -> Self {
        metrics::counter!("tribune_limited_total", "limit" => limit).increment(1);
        Self { limit, what, wait }
    }

    /// Whole seconds, for `Retry-After`.
    pub fn retry_after_secs(self) -> u64 {
        (self.wait.as_secs() + u64::from(self.wait.subsec_nanos() > 0)).max(1)
    }

    pub fn message(self) -> String {
        let wait = match self.retry_after_secs() {
            secs @ ..=120 => format!("{secs} s"),
            secs @ ..=7_200 => format!("{} min", secs.div_ceil(60)),
            secs => format!("{} h", secs.div_ceil(3_600)),
        };
        format!("{}. Try again in {wait}.", self.what)
    }
}

impl From<Exceeded> for Error {
    fn from(exceeded: Exceeded) -> Self {
        Self::rate_limited(exceeded.message())
    }
}

/// A rate for users and one for anonymous callers.
struct Rates {
    users: Rate<Subject>,
    anonymous: Rate<Subject>,
}

impl Rates {
    fn new(max: (u32, u32), clock: &Arc<dyn Clock>, name: &'static str, shared: Option<&Arc<SharedCounts>>) -> Self {
        let rate = |max| Rate::new(max, MINUTE, clock.clone()).shared(name, shared);
        Self { users: rate(max.0), anonymous: rate(max.1) }
    }

    fn take(&self, subject: Option<Subject>) -> Result<(), Duration> {
        match &subject {
            None => Ok(()),
            Some(user @ Subject::User(_)) => self.users.take(user),
            Some(peer @ Subject::Peer(_)) => self.anonymous.take(peer),
        }
    }
}

/// How often callers may do what.
pub struct Limits {
    pub settings: LimitSettings,
    requests: Rates,
    calls: Rates,
    changes: Rate<UserId>,
    chat: Rate<UserId>,
    sign_ins: Rate<Subject>,
    wrong_tokens: Rate<Subject>,
    /// Refusals that leave a trace.
    traced: Rate<String>,
    /// The same for failed sign-ins.
    traced_sign_ins: Rate<Option<IpAddr>>,
    streams: Arc<Places>,
    /// Bytes of responses that wait for clients.
    pub sending: Arc<Budget>,
}

impl Limits {
    /// `shared` has the counts of all nodes, if there are several.
    pub fn new(settings: LimitSettings, clock: &Arc<dyn Clock>, shared: Option<&Arc<SharedCounts>>) -> Self {
        let (users, anonymous) = (settings.calls_per_minute, settings.anonymous_calls_per_minute);
        let chat = settings.chat_tokens_per_day.div_ceil(CHAT_UNIT as u32);
        let failures =
            |name| Rate::new(settings.failed_sign_ins_per_minute, MINUTE, clock.clone()).shared(name, shared);
        Self {
            requests: Rates::new((users.saturating_mul(2), anonymous.saturating_mul(2)), clock, "requests", shared),
            calls: Rates::new((users, anonymous), clock, "calls", shared),
            changes: Rate::new(settings.changes_per_hour, HOUR, clock.clone()).shared("changes", shared),
            chat: Rate::new(chat, DAY, clock.clone()).shared("chat", shared),
            sign_ins: failures("sign_ins"),
            wrong_tokens: failures("wrong_tokens"),
            traced: Rate::new(1, MINUTE, clock.clone()),
            traced_sign_ins: Rate::new(settings.failed_sign_ins_per_minute, MINUTE, clock.clone()),
            streams: Arc::new(Places::new(settings.streams_per_caller)),
            sending: Arc::new(Budget::new(settings.sending_bytes)),
            settings,
        }
    }

    /// Counts a request.
    pub fn request(&self, principal: &Principal, peer: Option<IpAddr>) -> Result<(), Exceeded> {
        let taken = self.requests.take(Subject::new(principal, peer));
        taken.map_err(|wait| Exceeded::new("requests", "Too many requests", wait))
    }

    /// Counts a tool call.
    pub fn call(&self, tool: &ToolSpec, cx: &CallContext) -> Result<(), Exceeded> {
        let taken = self.calls.take(Subject::new(&cx.principal, cx.peer));
        taken.map_err(|wait| Exceeded::new("calls", "Too many calls", wait))?;
        match &cx.principal {
            Principal::User(user) if !tool.hints.read_only => {
                let taken = self.changes.take(user);
                taken.map_err(|wait| Exceeded::new("changes", "Too many changes", wait))
            }
            _ => Ok(()),
        }
    }

    /// Whether an address may try another password.
    pub fn sign_in(&self, peer: Option<IpAddr>) -> Result<(), Exceeded> {
        let checked = Subject::peer(peer).map_or(Ok(()), |peer| self.sign_ins.check(&peer));
        checked.map_err(|wait| Exceeded::new("sign_ins", "Too many failed sign-ins from your address", wait))
    }

    pub fn sign_in_failed(&self, peer: Option<IpAddr>) {
        if let Some(peer) = Subject::peer(peer) {
            self.sign_ins.charge(&peer, 1);
        }
    }

    /// Counts a wrong token of an address. Right ones are never refused for it: ChatGPT and Claude send those of all their
    /// users from few addresses.
    pub fn wrong_token(&self, peer: Option<IpAddr>) -> Result<(), Exceeded> {
        let taken = Subject::peer(peer).map_or(Ok(()), |peer| self.wrong_tokens.take(&peer));
        taken.map_err(|wait| Exceeded::new("sign_ins", "Too many wrong tokens from your address", wait))
    }

    /// Whether a refusal is to leave a trace: the first of its kind within a minute, so that a flood does not flood the log.
    pub fn is_traced(&self, kind: String) -> bool {
        self.traced.take(&kind).is_ok()
    }

    /// Whether a failed sign-in is to leave a trace: as many of an address as may fail, because refused attempts go on.
    pub fn is_sign_in_traced(&self, peer: Option<IpAddr>) -> bool {
        self.traced_sign_ins.take(&peer.map(peer::subscriber)).is_ok()
    }

    /// Whether a user may chat.
    pub fn chat(&self, principal: &Principal) -> Result<(), Exceeded> {
        let Principal::User(user) = principal else {
            return Ok(());
        };
        let checked = self.chat.check(user);
        checked.map_err(|wait| Exceeded::new("chat_tokens", "You have used your chat tokens of today", wait))
    }

    pub fn chatted(&self, principal: &Principal, tokens: u64) {
        if let Principal::User(user) = principal {
            self.chat.charge(user, u32::try_from(tokens.div_ceil(CHAT_UNIT)).unwrap_or(u32::MAX));
        }
    }

    /// A place for a stream.
    pub fn stream(&self, principal: &Principal, peer: Option<IpAddr>) -> Result<Place, Exceeded> {
        let place = self.streams.take(Subject::new(principal, peer));
        place.ok_or_else(|| Exceeded::new("streams", "You have too many open streams; close one", MINUTE))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_say_how_long_to_wait() {
        for (wait, text) in [
            (Duration::from_millis(10), "Too many calls. Try again in 1 s."),
            (Duration::from_millis(12_300), "Too many calls. Try again in 13 s."),
            (Duration::from_secs(300), "Too many calls. Try again in 5 min."),
            (Duration::from_secs(40_000), "Too many calls. Try again in 12 h."),
        ] {
            assert_eq!(Exceeded::new("calls", "Too many calls", wait).message(), text);
        }
    }
}
