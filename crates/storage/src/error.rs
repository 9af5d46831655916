//! Database errors as messages.
//!
//! The message says what to do and may be shown to any caller. The database's address and its own message go into the
//! cause, for the log and the command line. Neither ever contains a password.

use sqlx::error::{DatabaseError, ErrorKind as Violation};
use tribune_core::{Error, ErrorKind};

/// Why a change was not made.
#[derive(Debug)]
pub(crate) enum Failure {
    /// A concurrent change was in the way; a retry may succeed.
    Conflict(Error),
    /// The connection was lost before an answer arrived.
    ConnectionLost(Error),
    Failed(Error),
}

impl Failure {
    pub(crate) const fn error(&self) -> &Error {
        match self {
            Self::Conflict(error) | Self::ConnectionLost(error) | Self::Failed(error) => error,
        }
    }

    pub(crate) fn into_error(self) -> Error {
        match self {
            Self::Conflict(error) | Self::ConnectionLost(error) | Self::Failed(error) => error,
        }
    }

    /// For a commit: if the connection was lost, it is unknown whether it succeeded.
    pub(crate) fn outcome_unknown_if_lost(self) -> Self {
        match self {
            Self::ConnectionLost(error) => Self::Failed(unknown_outcome(cause(&error))),
            known => known,
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

impl From<sqlx::Error> for Failure {
    fn from(error: sqlx::Error) -> Self {
        let code = error.as_database_error().map(code).unwrap_or_default();
        let collided = matches!(&*code, "40001" | "40P01") || is_busy(&code);
        let broke_off = is_broken_connection(&error) || ends_connection(&code);
        let error = explain(error);
        if collided {
            Self::Conflict(error)
        } else if broke_off {
            Self::ConnectionLost(error)
        } else {
            Self::Failed(error)
        }
    }
}

/// An error while using a database.
pub(crate) fn explain(error: sqlx::Error) -> Error {
    let explained = match &error {
        sqlx::Error::Database(cause) if cause.kind() == Violation::UniqueViolation => {
            Error::invalid_argument("this id is taken: use another one")
        }
        sqlx::Error::Database(cause) => using(&**cause),
        broken if is_broken_connection(broken) => unavailable("the connection to the database was lost"),
        _ => Error::internal("invalid database request, which is a bug; the log has the details"),
    };
    explained.caused_by(error)
}

/// An error while opening a database. Always `Unavailable`: the next attempt may succeed.
pub(crate) fn explain_opening(place: &str, error: sqlx::Error) -> Error {
    let explained = match &error {
        sqlx::Error::Database(cause) => opening(&**cause),
        _ => unavailable("the database cannot be reached"),
    };
    explained.caused_by(format!("{place}: {error}"))
}

/// For a database that does not answer in time.
pub(crate) fn timed_out(place: &str) -> Error {
    unavailable("the database does not answer").caused_by(format!("{place}: no answer in time"))
}

/// For a change that started and was never answered.
pub(crate) fn unknown_outcome(cause: String) -> Error {
    Error::unavailable(
        "the database did not answer, so the change may or may not have been made: check before you retry",
    )
    .caused_by(cause)
}

/// For callers that shared a transaction with a change that panicked.
pub(crate) fn panicked() -> Error {
    Error::internal("the change was not stored because of a bug; the log has the details")
}

pub(crate) fn closed() -> Error {
    Error::unavailable("the database is closed because Tribune is stopping; retry when it runs again")
}

fn cause(error: &Error) -> String {
    std::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string)
}

/// A copy for each caller that shares the failure.
pub(crate) fn copy(error: &Error) -> Error {
    let copy = Error::new(error.kind(), error.message());
    match std::error::Error::source(error) {
        Some(cause) => copy.caused_by(cause.to_string()),
        None => copy,
    }
}

fn unavailable(what: &str) -> Error {
    Error::unavailable(format!(
        "{what}: try again in a moment; if this persists, check that it runs and that `[store]` has its address"
    ))
}

fn is_broken_connection(error: &sqlx::Error) -> bool {
    use sqlx::Error::{Io, Protocol, Tls, WorkerCrashed};
    matches!(error, Io(_) | Tls(_) | Protocol(_) | WorkerCrashed)
}

/// Whether PostgreSQL ended the connection, possibly after making the change.
fn ends_connection(code: &str) -> bool {
    code.starts_with("08") || matches!(code, "57P01" | "57P02" | "57P05")
}

/// Whether another SQLite connection holds the lock.
fn is_busy(code: &str) -> bool {
    code.len() < 5 && code.parse::<i32>().is_ok_and(|code| matches!(code & 0xff, 5 | 6))
}

fn code(error: &dyn DatabaseError) -> String {
    error.code().unwrap_or_default().into_owned()
}

fn using(error: &dyn DatabaseError) -> Error {
    match advice(error) {
        Some(advice) => advice,
        None => Error::new(
            ErrorKind::Internal,
            "the database refused the request, which is a bug; the log has the details",
        ),
    }
}

fn opening(error: &dyn DatabaseError) -> Error {
    advice(error)
        .unwrap_or_else(|| Error::unavailable(format!("the database refused the connection: {}", error.message())))
}

/// What an operator can do. SQLite's codes are numbers, PostgreSQL's have five characters.
fn advice(error: &dyn DatabaseError) -> Option<Error> {
    let code = code(error);
    let message = match code.parse::<i32>() {
        Ok(number) if code.len() < 5 => sqlite_advice(number & 0xff)?,
        _ => postgres_advice(&code)?,
    };
    Some(Error::unavailable(message))
}

fn sqlite_advice(code: i32) -> Option<&'static str> {
    Some(match code {
        5 | 6 => "another program is writing to the database: try again in a moment",
        3 | 8 | 23 => "the database file is not writable: give Tribune's user permission, or choose another file",
        7 => "not enough memory for the database: try again in a moment",
        9 => "the database operation was interrupted: try again",
        10 => "the database file could not be read or written: check the disk, then try again",
        11 => "the database file is damaged: restore a backup, or move it away to start with an empty one",
        13 => "the disk is full: free some space, then try again",
        14 => "the database file cannot be opened: check that its folder exists and is writable",
        26 => "the database file is not an SQLite file: move it away, or choose another",
        _ => return None,
    })
}

fn postgres_advice(code: &str) -> Option<&'static str> {
    Some(match code {
        "25006" => "the database is read-only, like a standby: set `url` in `[store]` to the primary",
        "3D000" => "PostgreSQL has no such database: create it, or correct `url` in `[store]`",
        "3F000" => "PostgreSQL has no such schema: create it, or correct the search path in `url` in `[store]`",
        "42501" => "PostgreSQL denied permission: grant this user the right to create and use tables",
        "57014" | "25P03" => "PostgreSQL timed out: try again in a moment",
        _ => match code.get(..2)? {
            "08" | "57" => "PostgreSQL is stopping or starting, or ended the connection: try again in a moment",
            "28" => "PostgreSQL refused this user: correct the name or password in `url` in `[store]`",
            "40" => "a concurrent change was in the way: try again",
            "53" => "PostgreSQL has no resources left (connections, memory or disk): try again in a moment",
            "55" => "a concurrent change holds a lock: try again in a moment",
            "58" => "PostgreSQL could not read or write its files: check its disk, then try again",
            _ => return None,
        },
    })
}
