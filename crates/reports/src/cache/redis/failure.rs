//! Failures of Redis, with messages for the operator.

use std::time::Duration;

use redis::{ErrorKind, RedisError, ServerError};

use super::super::Unavailable;

/// Characters of foreign text that a message repeats.
const MAX_QUOTED: usize = 200;

pub(super) enum Failure {
    /// No answer within the deadline.
    Late(Duration),
    /// Connecting failed, or the connection broke.
    Connection(RedisError),
    /// Redis answered with an error.
    Refused(ServerError),
    /// The answer has another form than our scripts give.
    Unexpected,
}

impl Failure {
    /// Whether Redis did not answer at all, which counts for the circuit breaker.
    pub(super) fn is_silence(&self) -> bool {
        matches!(self, Self::Late(_) | Self::Connection(_))
    }

    /// For metrics.
    pub(super) fn outcome(&self) -> &'static str {
        match self {
            Self::Late(_) => "late",
            Self::Connection(_) => "no_connection",
            Self::Refused(_) => "refused",
            Self::Unexpected => "unexpected",
        }
    }

    pub(super) fn sentence(&self, place: &str) -> Unavailable {
        Unavailable(match self {
            Self::Late(within) => format!(
                "{place} did not answer within {} ms; it is tried again by itself",
                within.as_millis()
            ),
            Self::Connection(error) => connection(place, error),
            Self::Refused(error) => refused(place, error),
            Self::Unexpected => format!(
                "{place} answered something that no script of ours gives; is it a Redis of version 6.2 or later?"
            ),
        })
    }
}

fn connection(place: &str, error: &RedisError) -> String {
    match error.kind() {
        ErrorKind::AuthenticationFailed => wrong_credentials(place),
        _ if error.is_timeout() => format!("{place} takes no connection; it is tried again by itself"),
        _ => format!(
            "there is no connection to {place} ({}); it is tried again by itself",
            quoted(&error.to_string())
        ),
    }
}

fn wrong_credentials(place: &str) -> String {
    format!("{place} wants another user or password; correct them in the Redis URL and start again")
}

fn refused(place: &str, error: &ServerError) -> String {
    match error.code() {
        "OOM" => format!(
            "{place} is out of memory and takes no writes; raise its maxmemory or free some; reading goes on, and \
             writing is tried again by itself"
        ),
        "NOAUTH" | "WRONGPASS" => wrong_credentials(place),
        "NOPERM" => format!(
            "{place} does not allow what reports need ({}); allow EVAL, EVALSHA and the keys report:*",
            quoted(error.details().unwrap_or_default())
        ),
        "READONLY" => format!("{place} is a replica that takes no writes; use the address of its primary"),
        code => format!(
            "{place} answered {} {}; it is tried again by itself",
            quoted(code),
            quoted(error.details().unwrap_or_default())
        ),
    }
}

/// Foreign text, shortened and on one line.
pub(super) fn quoted(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .take(MAX_QUOTED)
        .collect()
}
