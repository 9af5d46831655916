//! Failures of Redis, with messages for the operator.

use std::time::Duration;

use redis::{ErrorKind, RedisError};

use super::super::Unavailable;

/// Characters of foreign text that a message repeats.
const MAX_QUOTED: usize = 200;

pub(super) enum Failure {
    /// No answer within the deadline.
    Late(Duration),
    Redis(RedisError),
}

impl Failure {
    /// Redis is reachable and refused the call: the connection stays, and the circuit breaker stays closed.
    pub(super) fn is_refusal(&self) -> bool {
        let Self::Redis(error) = self else { return false };
        // Without a login nothing works, so calls are paused.
        let is_answer = matches!(error.kind(), ErrorKind::Server(_) | ErrorKind::Extension);
        is_answer && error.code() != Some("NOAUTH")
    }

    /// For metrics.
    pub(super) fn outcome(&self) -> &'static str {
        match self {
            Self::Late(_) => "late",
            Self::Redis(_) if self.is_refusal() => "refused",
            Self::Redis(error) if is_unexpected(error) => "unexpected",
            Self::Redis(_) => "no_connection",
        }
    }

    pub(super) fn describe(&self, place: &str) -> Unavailable {
        Unavailable(match self {
            Self::Late(within) => {
                format!("{place} did not answer within {} ms; it is tried again by itself", within.as_millis())
            }
            Self::Redis(error) => describe(place, error),
        })
    }
}

impl From<RedisError> for Failure {
    fn from(error: RedisError) -> Self {
        Self::Redis(error)
    }
}

fn is_unexpected(error: &RedisError) -> bool {
    matches!(error.kind(), ErrorKind::Parse | ErrorKind::UnexpectedReturnType)
}

fn describe(place: &str, error: &RedisError) -> String {
    let details = quoted(error.detail().unwrap_or_default());
    let wrong_credentials =
        || format!("{place} wants another user or password; correct them in the Redis URL and start again");
    match error.code() {
        _ if error.kind() == ErrorKind::AuthenticationFailed => wrong_credentials(),
        Some("NOAUTH" | "WRONGPASS") => wrong_credentials(),
        Some("OOM") => format!(
            "{place} is out of memory and takes no writes; raise its maxmemory or free some; reading goes on, and \
             writing is tried again by itself"
        ),
        Some("NOPERM") => {
            format!("{place} does not allow what reports need ({details}); allow EVAL, EVALSHA and the keys report:*")
        }
        Some("READONLY") => format!("{place} is a replica that takes no writes; use the address of its primary"),
        Some(code) => format!("{place} answered {} {details}; it is tried again by itself", quoted(code)),
        None if is_unexpected(error) => {
            format!("{place} answered something that no script of ours gives; is it a Redis of version 6.2 or later?")
        }
        None if error.is_timeout() => format!("{place} takes no connection; it is tried again by itself"),
        None => {
            format!("there is no connection to {place} ({}); it is tried again by itself", quoted(&error.to_string()))
        }
    }
}

/// Foreign text, shortened and on one line.
pub(super) fn quoted(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(MAX_QUOTED).collect()
}
