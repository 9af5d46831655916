//! What can go wrong between us and the exchange, in sentences that say what to do next.

use std::time::Duration;

use tribune_core::{Error, ErrorKind};

use super::governor::Priority;

/// A failed request. It can be shared: all who waited for one request get the same.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RestError {
    /// Nothing was sent: the arguments could not have been right.
    #[error("{0}")]
    Invalid(String),

    /// Nothing was sent: it would have cost more weight than is left in this minute.
    #[error(
        "the request was held back: {used} of this minute's request budget of {budget} is used ({}); try again in {} s",
        .priority.share_in_words(), seconds(*.wait)
    )]
    HeldBack {
        wait: Duration,
        used: u32,
        budget: u32,
        priority: Priority,
    },

    /// Nothing was sent, and never will be.
    #[error(
        "the request weighs {weight}, more than may be used of the exchange's budget of {budget} a minute; ask for less"
    )]
    TooHeavy { weight: u32, budget: u32 },

    /// The exchange told us to wait; until then nothing is sent.
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

    /// What the status means, in words that are not the exchange's own: somebody on the way may have said it, after
    /// the exchange did what it was told. Only of requests that change something.
    #[error("{means}")]
    Page { status: u16, means: Box<RestError> },

    #[error("the exchange has a fault of its own ({status}); try again in a moment")]
    Server { status: u16 },

    /// The simulator's own words: what a recording does not tell, it never will.
    #[error("the recording does not tell: {0}")]
    Untold(String),

    /// An answer that the exchange never gives, such as a redirect or a page.
    #[error(
        "{endpoint}: the server answered {status} without the exchange's own error; if you run this server, check market.rest_url"
    )]
    Status { endpoint: &'static str, status: u16 },

    #[error("{0}")]
    Network(Network),

    /// Nothing was sent: what is signed carries the exchange's time, and that could not be had.
    #[error("nothing was done: the exchange's time could not be had ({0})")]
    NoTime(Box<RestError>),

    /// The exchange's own refusal, by its code.
    #[error("{}", refusal(*.code, .message, .subject.as_deref()))]
    Refused {
        code: i64,
        message: String,
        /// The symbol that was asked for.
        subject: Option<String>,
    },

    #[error("the exchange's answer to {endpoint} is not as documented: {}{why}; try again in a moment", at(.field))]
    Shape {
        endpoint: &'static str,
        field: String,
        why: String,
    },

    #[error("the exchange's answer to {endpoint} has more than {most} bytes and was not read; ask for less")]
    TooLarge { endpoint: &'static str, most: usize },

    #[error("too many different requests are under way; try again in a moment")]
    Crowded,

    #[error("the request was given up by a fault of this program; try again")]
    Abandoned,
}

/// Why the exchange could not be talked to, and at which host: that is for whoever runs the server, and stays out of
/// what callers are told.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Network {
    #[error("the exchange refuses connections; if you run this server, check market.rest_url and whether it is up")]
    Refused(String),
    #[error("the exchange's name cannot be resolved; if you run this server, check market.rest_url and its DNS")]
    Dns(String),
    #[error(
        "no secure connection to the exchange: {why}; if you run this server, check market.rest_url, the clock and the system's certificates"
    )]
    Tls { host: String, why: String },
    #[error("the exchange did not answer in time; try again in a moment")]
    Timeout(String),
    #[error("the connection to the exchange broke off before the whole answer was there; try again")]
    BrokenOff(String),
    #[error("the exchange cannot be reached; if you run this server, check its network, its proxy and market.rest_url")]
    Unreachable(String),
}

impl RestError {
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Invalid(_) | Self::TooHeavy { .. } => ErrorKind::InvalidArgument,
            Self::Refused { code, .. } => meaning(*code).kind(),
            Self::Abandoned => ErrorKind::Internal,
            Self::NoTime(error) | Self::Page { means: error, .. } => error.kind(),
            _ => ErrorKind::Unavailable,
        }
    }

    /// How long to wait before it can go well, where that is known.
    pub const fn wait(&self) -> Option<Duration> {
        match self {
            Self::HeldBack { wait, .. } | Self::Paused { wait, .. } => Some(*wait),
            Self::NoTime(error) | Self::Page { means: error, .. } => error.wait(),
            _ => None,
        }
    }

    /// The exchange's code, if it gave one.
    pub const fn code(&self) -> Option<i64> {
        match self {
            Self::Refused { code, .. } => Some(*code),
            _ => None,
        }
    }

    /// Whether the exchange was asked, or at least tried to be reached.
    pub const fn was_asked(&self) -> bool {
        !matches!(
            self,
            Self::Invalid(_)
                | Self::HeldBack { .. }
                | Self::TooHeavy { .. }
                | Self::Paused { .. }
                | Self::Crowded
                | Self::Abandoned
        )
    }

    /// Whether the exchange cannot be asked now: nothing was wrong with the request or with an answer.
    pub const fn is_passing(&self) -> bool {
        match self {
            Self::HeldBack { .. }
            | Self::Paused { .. }
            | Self::Firewall { .. }
            | Self::Server { .. }
            | Self::Crowded => true,
            Self::Page { means, .. } => means.is_passing(),
            Self::Network(network) => !matches!(network, Network::BrokenOff(_)),
            _ => false,
        }
    }

    /// Whether the exchange may have done what was asked all the same.
    pub fn leaves_outcome_unknown(&self) -> bool {
        match self {
            Self::Server { .. } | Self::Untold(_) | Self::Shape { .. } | Self::TooLarge { .. } | Self::Abandoned => {
                true
            }
            // Somebody on the way spoke in the exchange's place: what the exchange did is not in it.
            Self::Status { .. } | Self::Page { .. } => true,
            // Without a connection nothing was sent.
            Self::Network(network) => matches!(network, Network::Timeout(_) | Network::BrokenOff(_)),
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
            Self::Server { .. } | Self::Untold(_) => "server_error",
            Self::Status { .. } => "unexpected_status",
            Self::Network(Network::Timeout(_)) => "timeout",
            Self::Network(_) => "unreachable",
            Self::Refused { .. } => "refused",
            Self::NoTime(error) | Self::Page { means: error, .. } => error.outcome(),
            Self::Shape { .. } | Self::TooLarge { .. } => "garbled",
            Self::Crowded => "crowded",
            Self::Abandoned => "abandoned",
        }
    }
}

impl From<RestError> for Error {
    fn from(error: RestError) -> Self {
        Self::new(error.kind(), error.to_string())
    }
}

/// Whole seconds, rounded up: who waits so long has waited enough.
pub(crate) fn seconds(wait: Duration) -> u64 {
    let part = u64::from(wait.subsec_nanos() > 0);
    wait.as_secs().saturating_add(part).max(1)
}

fn at(field: &str) -> String {
    if field.is_empty() {
        String::new()
    } else {
        format!("`{field}` ")
    }
}

/// The codes that have a sentence of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Meaning {
    TooManyRequests,
    BackendTimeout,
    FilterFailure,
    ClockSkew,
    BadSignature,
    IllegalCharacters,
    MissingParameter,
    UnknownInterval,
    UnknownSymbol,
    OrderRejected,
    CancelRejected,
    NoSuchOrder,
    BadKeyFormat,
    KeyRejected,
    /// The exchange is busy or shutting down.
    Passing,
    Other,
}

impl Meaning {
    const fn kind(self) -> ErrorKind {
        match self {
            Self::TooManyRequests | Self::BackendTimeout | Self::ClockSkew | Self::Passing => ErrorKind::Unavailable,
            Self::UnknownSymbol | Self::CancelRejected | Self::NoSuchOrder => ErrorKind::NotFound,
            Self::BadSignature | Self::BadKeyFormat | Self::KeyRejected => ErrorKind::Forbidden,
            _ => ErrorKind::InvalidArgument,
        }
    }
}

const fn meaning(code: i64) -> Meaning {
    match code {
        -1003 => Meaning::TooManyRequests,
        -1007 => Meaning::BackendTimeout,
        -1013 => Meaning::FilterFailure,
        -1021 => Meaning::ClockSkew,
        -1022 => Meaning::BadSignature,
        -1100 => Meaning::IllegalCharacters,
        -1102 => Meaning::MissingParameter,
        -1120 => Meaning::UnknownInterval,
        -1121 => Meaning::UnknownSymbol,
        -2010 => Meaning::OrderRejected,
        -2011 => Meaning::CancelRejected,
        -2013 => Meaning::NoSuchOrder,
        -2014 => Meaning::BadKeyFormat,
        -2015 => Meaning::KeyRejected,
        -1000 | -1001 | -1006 | -1008 | -1015 | -1016 => Meaning::Passing,
        _ => Meaning::Other,
    }
}

fn refusal(code: i64, message: &str, subject: Option<&str>) -> String {
    let symbol = subject.map_or_else(|| "such symbol".to_owned(), |symbol| format!("symbol `{symbol}`"));
    let said = if message.is_empty() {
        String::new()
    } else {
        format!(": {message}")
    };
    match meaning(code) {
        Meaning::TooManyRequests => "the exchange counts too many requests; try again in a minute".to_owned(),
        Meaning::BackendTimeout => {
            "the exchange's own backend did not answer in time; of an order the outcome is unknown".to_owned()
        }
        Meaning::FilterFailure => format!("the exchange's rules for the symbol refuse the order{said}"),
        Meaning::ClockSkew => {
            format!("this machine's clock and the exchange's differ by too much{said}; set the clock and try again")
        }
        Meaning::BadSignature => {
            "the exchange does not accept the signature; check the secret of the API key".to_owned()
        }
        Meaning::IllegalCharacters => format!("a parameter has characters that the exchange does not take{said}"),
        Meaning::MissingParameter => format!("a parameter is missing or empty{said}"),
        Meaning::UnknownInterval => "the exchange has no such interval; use one of 1s, 1m, 3m, 5m, 15m, 30m, 1h, 2h, \
             4h, 6h, 8h, 12h, 1d, 3d, 1w, 1M"
            .to_owned(),
        Meaning::UnknownSymbol => {
            format!("the exchange has no {symbol}; search for the asset by name to find its symbols")
        }
        Meaning::OrderRejected => format!("the exchange rejected the order{said}"),
        Meaning::CancelRejected => {
            format!("the exchange did not cancel{said}; look at the order with binance_get_order")
        }
        Meaning::NoSuchOrder => "the exchange has no such order; check the symbol and the order's id".to_owned(),
        Meaning::BadKeyFormat => "the API key is not one of the exchange's; check how it was copied".to_owned(),
        Meaning::KeyRejected => {
            "the exchange refuses the API key: it is wrong, lacks the permission, or this address is not on its list"
                .to_owned()
        }
        Meaning::Passing => format!("the exchange is busy or has a fault (code {code}); try again in a moment"),
        Meaning::Other => format!("the exchange refused the request (code {code}){said}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(code: i64) -> RestError {
        RestError::Refused {
            code,
            message: "Said.".to_owned(),
            subject: Some("FOO".to_owned()),
        }
    }

    #[test]
    fn codes_have_kinds_and_sentences() {
        use ErrorKind::{Forbidden, InvalidArgument, NotFound, Unavailable};
        let cases = [
            (-1003, Unavailable, "try again in a minute"),
            (-1007, Unavailable, "outcome is unknown"),
            (-1013, InvalidArgument, "Said."),
            (-1021, Unavailable, "clock"),
            (-1022, Forbidden, "secret"),
            (-1100, InvalidArgument, "characters"),
            (-1102, InvalidArgument, "missing"),
            (-1120, InvalidArgument, "1h"),
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
            let error = Error::from(refused(code));
            assert_eq!(error.kind(), kind, "{code}");
            assert!(error.message().contains(part), "{code}: {error}");
        }
    }

    #[test]
    fn waits_are_told_in_whole_seconds_rounded_up() {
        let paused = |millis, banned| {
            let wait = Duration::from_millis(millis);
            RestError::Paused { wait, banned }.to_string()
        };
        assert!(paused(1_001, false).ends_with("try again in 2 s"));
        assert!(paused(0, true).ends_with("try again in 1 s"));
        assert!(paused(120_000, true).contains("banned"));
    }
}
