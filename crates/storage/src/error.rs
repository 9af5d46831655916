//! Database errors as messages.
//!
//! The message says what to do and may be shown to any caller. The database's address and its own message go into the
//! cause, for the log and the command line. Neither ever contains a password.

use sqlx::error::DatabaseError;
use tribune_core::Error;

/// Why a statement or a change failed.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) error: Error,
    pub(crate) reason: Reason,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reason {
    /// A concurrent change was in the way; a retry may succeed.
    Conflict,
    /// The connection was lost before an answer arrived.
    ConnectionLost,
    Other,
}

impl Failure {
    /// For a commit: if the connection was lost, it is unknown whether it succeeded.
    pub(crate) fn outcome_unknown_if_lost(self) -> Self {
        match self.reason {
            Reason::ConnectionLost => unknown_outcome(cause(&self.error).unwrap_or_default()).into(),
            _ => self,
        }
    }
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        failure.error
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let reason = Reason::Other;
        Self { error, reason }
    }
}

impl From<sqlx::Error> for Failure {
    fn from(error: sqlx::Error) -> Self {
        let code = error.as_database_error().map(code).unwrap_or_default();
        let reason = if matches!(&*code, "40001" | "40P01") || matches!(sqlite_code(&code), Some(5 | 6)) {
            Reason::Conflict
        } else if is_broken_connection(&error) || ends_connection(&code) {
            Reason::ConnectionLost
        } else {
            Reason::Other
        };
        let error = explain(error);
        Self { error, reason }
    }
}

/// An error while using a database.
fn explain(error: sqlx::Error) -> Error {
    let explained = match &error {
        sqlx::Error::Database(cause) if cause.is_unique_violation() => {
            Error::invalid_argument("this id is taken: use another one")
        }
        sqlx::Error::Database(cause) => advice(&**cause).unwrap_or_else(|| {
            Error::internal("the database refused the request, which is a bug; the log has the details")
        }),
        broken if is_broken_connection(broken) => unavailable("the connection to the database was lost"),
        _ => Error::internal("invalid database request, which is a bug; the log has the details"),
    };
    explained.caused_by(error)
}

/// An error while opening a database. Always `Unavailable`: the next attempt may succeed.
pub(crate) fn explain_opening(place: &str, error: sqlx::Error) -> Error {
    let explained = match &error {
        sqlx::Error::Database(cause) => advice(&**cause)
            .unwrap_or_else(|| Error::unavailable(format!("the database refused the connection: {}", cause.message()))),
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

/// The database's own message.
pub(crate) fn cause(error: &Error) -> Option<String> {
    std::error::Error::source(error).map(ToString::to_string)
}

/// A copy for each caller that shares the failure.
pub(crate) fn copy(error: &Error) -> Error {
    let copy = Error::new(error.kind(), error.message());
    match cause(error) {
        Some(cause) => copy.caused_by(cause),
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

fn code(error: &dyn DatabaseError) -> String {
    error.code().unwrap_or_default().into_owned()
}

/// SQLite's codes are numbers, PostgreSQL's have five characters.
fn sqlite_code(code: &str) -> Option<i32> {
    let code = Some(code).filter(|code| code.len() < 5)?;
    Some(code.parse::<i32>().ok()? & 0xff)
}

/// What an operator can do.
fn advice(error: &dyn DatabaseError) -> Option<Error> {
    let code = code(error);
    let message = match sqlite_code(&code) {
        Some(code) => sqlite_advice(code),
        None => postgres_advice(&code),
    };
    message.map(Error::unavailable)
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
