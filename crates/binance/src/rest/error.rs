//! What can go wrong between us and the exchange, in sentences that say what to do next.

use std::time::Duration;

use super::decode::Wrong;
use super::governor::Priority;

/// A failed request. It can be shared: all who waited for one request get the same.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RestError {
    /// Nothing was sent: the arguments are invalid.
    #[error("{0}")]
    Invalid(String),

    /// Nothing was sent: not enough weight is left in this minute.
    #[error(
        "the request was held back: {used} of this minute's request budget of {budget} is used ({}); try again in {} s",
        .priority.shares().2, seconds(*.wait)
    )]
    HeldBack { wait: Duration, used: u32, budget: u32, priority: Priority },

    /// Nothing was sent: the request weighs more than the whole budget.
    #[error(
        "the request weighs {weight}, more than may be used of the exchange's budget of {budget} a minute; ask for less"
    )]
    TooHeavy { weight: u32, budget: u32 },

    /// The exchange asked for a pause; nothing is sent until it ends.
    #[error(
        "the exchange {}; no requests are sent until it ends: try again in {} s",
        if *.banned { "has banned this address for too many requests" } else { "asked for a pause (too many requests)" },
        seconds(*.wait)
    )]
    Paused { wait: Duration, banned: bool },

    #[error(
        "the exchange's firewall refused the request ({status}): this network or country may be blocked; if you run this server, check market.rest_url"
    )]
    Firewall { status: u16 },

    #[error("the exchange has an internal error ({status}); try again in a moment")]
    Server { status: u16 },

    /// In a replay: the simulator says what the recording does not have.
    #[error("the recording does not have this: {0}")]
    NotRecorded(String),

    /// An error status without the exchange's own error body. A proxy may have sent it after the exchange did what was
    /// asked.
    #[error(
        "{endpoint}: the server answered {status} without the exchange's own error; if you run this server, check market.rest_url"
    )]
    Status { endpoint: &'static str, status: u16 },

    /// Nothing was sent: there was no connection, and why.
    #[error(
        "the exchange cannot be reached ({0}); try again in a moment; if you run this server, check its network, its proxy, its certificates and market.rest_url"
    )]
    Unreachable(String),

    #[error("the exchange did not answer in time; try again in a moment")]
    Timeout,

    #[error("the connection to the exchange broke off before the whole answer was there; try again")]
    BrokenOff,

    /// Nothing was sent: a signed request needs the exchange's time, which is not known.
    #[error("nothing was done: the exchange's time is not known ({0})")]
    NoTime(Box<RestError>),

    /// The exchange's own refusal, by its code.
    #[error("{}", refusal(*.code, .message, .subject.as_deref()))]
    Refused {
        code: i64,
        message: String,
        /// The symbol that was asked for.
        subject: Option<String>,
    },

    #[error("the exchange's answer to {endpoint} is not as documented: {wrong}; try again in a moment")]
    Shape { endpoint: &'static str, wrong: Wrong },

    #[error("too many different requests are under way; try again in a moment")]
    Crowded,

    #[error("the request failed because of a bug in this program; try again")]
    Abandoned,
}

/// The kind of failure: decides who can fix it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// The arguments or the configuration are wrong.
    InvalidArgument,
    NotFound,
    /// The exchange does not accept the key.
    Forbidden,
    /// It may work later.
    Unavailable,
    /// A bug or a broken machine.
    Internal,
}

impl RestError {
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Invalid(_) | Self::TooHeavy { .. } => ErrorKind::InvalidArgument,
            Self::Refused { code, .. } => meaning(*code).0,
            Self::Abandoned => ErrorKind::Internal,
            Self::NoTime(error) => error.kind(),
            _ => ErrorKind::Unavailable,
        }
    }

    /// How long to wait before a retry can succeed, if that is known.
    pub const fn wait(&self) -> Option<Duration> {
        match self {
            Self::HeldBack { wait, .. } | Self::Paused { wait, .. } => Some(*wait),
            Self::NoTime(error) => error.wait(),
            _ => None,
        }
    }

    pub const fn code(&self) -> Option<i64> {
        match self {
            Self::Refused { code, .. } => Some(*code),
            _ => None,
        }
    }

    /// Whether the exchange may have executed the request despite the error.
    pub fn leaves_outcome_unknown(&self) -> bool {
        match self {
            Self::Server { .. }
            | Self::NotRecorded(_)
            | Self::Shape { .. }
            | Self::Abandoned
            | Self::Timeout
            | Self::BrokenOff
            // A proxy answered instead of the exchange, which may have executed the request.
            | Self::Status { .. } => true,
            Self::Refused { code, .. } => matches!(code, -1000 | -1001 | -1006 | -1007),
            _ => false,
        }
    }

    /// Stable name for metrics.
    pub const fn outcome(&self) -> &'static str {
        match self {
            Self::Invalid(_) => "invalid",
            Self::HeldBack { .. } | Self::TooHeavy { .. } => "held_back",
            Self::Paused { banned: false, .. } => "rate_limited",
            Self::Paused { banned: true, .. } => "banned",
            Self::Firewall { .. } => "firewall",
            Self::Server { .. } | Self::NotRecorded(_) => "server_error",
            Self::Status { .. } => "unexpected_status",
            Self::Timeout => "timeout",
            Self::Unreachable(_) | Self::BrokenOff => "unreachable",
            Self::Refused { .. } => "refused",
            Self::NoTime(error) => error.outcome(),
            Self::Shape { .. } => "garbled",
            Self::Crowded => "crowded",
            Self::Abandoned => "abandoned",
        }
    }
}

/// Whole seconds, rounded up.
pub fn seconds(wait: Duration) -> u64 {
    let part = u64::from(wait.subsec_nanos() > 0);
    wait.as_secs().saturating_add(part).max(1)
}

/// What the exchange's code means, and what to do. `{said}` stands for the exchange's message, `{symbol}` for the symbol.
const fn meaning(code: i64) -> (ErrorKind, &'static str) {
    use ErrorKind::{Forbidden, InvalidArgument, NotFound, Unavailable};
    match code {
        -1007 => (Unavailable, "the exchange's own backend did not answer in time; of an order the outcome is unknown"),
        -1000 | -1001 | -1006 | -1008 | -1015 | -1016 => {
            (Unavailable, "the exchange is busy or has a fault (code {code}); try again in a moment")
        }
        -1013 => (InvalidArgument, "the exchange's rules for the symbol refuse the order{said}"),
        -1021 => (
            Unavailable,
            "this machine's clock and the exchange's differ by too much{said}; set the clock and try again",
        ),
        -1022 => (Forbidden, "the exchange does not accept the signature; check the secret of the API key"),
        -1121 => (NotFound, "the exchange has no {symbol}; search for the asset by name to find its symbols"),
        -2010 => (InvalidArgument, "the exchange rejected the order{said}"),
        -2011 => (NotFound, "the exchange did not cancel{said}; look at the order with binance_get_order"),
        -2013 => (NotFound, "the exchange has no such order; check the symbol and the order's id"),
        -2014 => (Forbidden, "the API key is not one of the exchange's; check how it was copied"),
        -2015 => (
            Forbidden,
            "the exchange refuses the API key: it is wrong, lacks the permission, or this address is not on its list",
        ),
        _ => (InvalidArgument, "the exchange refused the request (code {code}){said}"),
    }
}

fn refusal(code: i64, message: &str, subject: Option<&str>) -> String {
    let symbol = subject.map_or_else(|| "such symbol".to_owned(), |symbol| format!("symbol `{symbol}`"));
    let said = match message {
        "" => String::new(),
        message => format!(": {message}"),
    };
    // The message comes last: it may contain anything.
    let sentence = meaning(code).1.replace("{code}", &code.to_string());
    match sentence.contains("{symbol}") {
        true => sentence.replace("{symbol}", &symbol),
        false => sentence.replace("{said}", &said),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(code: i64) -> RestError {
        RestError::Refused { code, message: "Said.".to_owned(), subject: Some("FOO".to_owned()) }
    }

    #[test]
    fn codes_have_kinds_and_sentences() {
        use ErrorKind::{Forbidden, InvalidArgument, NotFound, Unavailable};
        let cases = [
            (-1007, Unavailable, "outcome is unknown"),
            (-1013, InvalidArgument, "Said."),
            (-1021, Unavailable, "clock"),
            (-1022, Forbidden, "secret"),
            (-1121, NotFound, "`FOO`"),
            (-2010, InvalidArgument, "rejected the order: Said."),
            (-2011, NotFound, "binance_get_order"),
            (-2013, NotFound, "no such order"),
            (-2014, Forbidden, "API key"),
            (-2015, Forbidden, "permission"),
            (-1008, Unavailable, "-1008"),
            (-9999, InvalidArgument, "-9999"),
        ];
        for (code, kind, part) in cases {
            let error = refused(code);
            assert_eq!(error.kind(), kind, "{code}");
            assert!(error.to_string().contains(part), "{code}: {error}");
        }
    }

    #[test]
    fn waits_are_rounded_up_to_seconds() {
        let paused = |millis, banned| {
            let wait = Duration::from_millis(millis);
            RestError::Paused { wait, banned }.to_string()
        };
        assert!(paused(1_001, false).ends_with("try again in 2 s"));
        assert!(paused(0, true).ends_with("try again in 1 s"));
        assert!(paused(120_000, true).contains("banned"));
    }
}
