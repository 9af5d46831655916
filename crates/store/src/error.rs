//! Failures of a database, in words for whoever can mend them.
//!
//! The message says what to do and is fit for any caller; where the database is and what it said goes into the
//! cause, for the log and the command line. Neither ever holds a password.

use sqlx::error::{DatabaseError, ErrorKind as Violation};
use tribune_core::{Error, ErrorKind};

/// Why a change was not made.
#[derive(Debug)]
pub(crate) enum Failure {
    /// A change at the same time was in the way; made again, this one may work.
    Collided(Error),
    /// The connection is lost, and with it the answer.
    BrokeOff(Error),
    Failed(Error),
}

impl Failure {
    pub(crate) const fn error(&self) -> &Error {
        match self {
            Self::Collided(error) | Self::BrokeOff(error) | Self::Failed(error) => error,
        }
    }

    pub(crate) fn into_error(self) -> Error {
        match self {
            Self::Collided(error) | Self::BrokeOff(error) | Self::Failed(error) => error,
        }
    }

    /// For a failure of what makes a change last: without an answer, nobody knows whether it did.
    pub(crate) fn of_change(self) -> Self {
        match self {
            Self::BrokeOff(error) => Self::Failed(unknown_outcome(cause(&error))),
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
            Self::Collided(error)
        } else if broke_off {
            Self::BrokeOff(error)
        } else {
            Self::Failed(error)
        }
    }
}

/// What happened while a database was being used.
pub(crate) fn explain(error: sqlx::Error) -> Error {
    let told = match &error {
        sqlx::Error::Database(told) if told.kind() == Violation::UniqueViolation => {
            Error::invalid_argument("there is one of that id already: add it under an id of its own")
        }
        sqlx::Error::Database(told) => database(&**told),
        broken if is_broken_connection(broken) => unavailable("the connection to the database broke off"),
        _ => Error::internal("the database was asked for something wrong, which is a bug; the log has the details"),
    };
    told.caused_by(error)
}

/// What happened while a database was being opened. Whatever it is, it may have gone away by the next attempt.
pub(crate) fn explain_opening(place: &str, error: sqlx::Error) -> Error {
    let told = match &error {
        sqlx::Error::Database(told) => opening(&**told),
        _ => unavailable("the database cannot be reached"),
    };
    told.caused_by(format!("{place}: {error}"))
}

/// For a database that gives no answer in time.
pub(crate) fn too_slow(place: &str) -> Error {
    unavailable("the database does not answer").caused_by(format!("{place}: no answer in time"))
}

/// For a change that was begun and never answered.
pub(crate) fn unknown_outcome(cause: String) -> Error {
    Error::unavailable(
        "the database did not say whether it made the change, which may or may not have been made: \
         look before trying again",
    )
    .caused_by(cause)
}

/// For whoever shared a transaction with a change that panicked.
pub(crate) fn panicked() -> Error {
    Error::internal("keeping the change failed unexpectedly, which is a bug, and nothing was changed; the log has more")
}

pub(crate) fn closed() -> Error {
    Error::unavailable("the database has been closed because Tribune is stopping; ask again when it runs")
}

fn cause(error: &Error) -> String {
    std::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string)
}

/// The same failure for each of several who share it.
pub(crate) fn copy(error: &Error) -> Error {
    let copy = Error::new(error.kind(), error.message());
    match std::error::Error::source(error) {
        Some(cause) => copy.caused_by(cause.to_string()),
        None => copy,
    }
}

fn unavailable(what: &str) -> Error {
    Error::unavailable(format!(
        "{what}: try again in a moment; if it stays so, see that it runs and that Tribune's settings lead to it"
    ))
}

fn is_broken_connection(error: &sqlx::Error) -> bool {
    use sqlx::Error::{Io, Protocol, Tls, WorkerCrashed};
    matches!(error, Io(_) | Tls(_) | Protocol(_) | WorkerCrashed)
}

/// Whether PostgreSQL says that it ends the connection, which it may do after having made a change.
fn ends_connection(code: &str) -> bool {
    code.starts_with("08") || matches!(code, "57P01" | "57P02" | "57P05")
}

/// Whether SQLite says that another connection is in the way.
fn is_busy(code: &str) -> bool {
    code.len() < 5 && code.parse::<i32>().is_ok_and(|code| matches!(code & 0xff, 5 | 6))
}

fn code(error: &dyn DatabaseError) -> String {
    error.code().unwrap_or_default().into_owned()
}

fn database(error: &dyn DatabaseError) -> Error {
    match told(error) {
        Some(told) => told,
        None => Error::new(
            ErrorKind::Internal,
            "the database refused what it was asked, which is a bug; the log has the details",
        ),
    }
}

fn opening(error: &dyn DatabaseError) -> Error {
    told(error).unwrap_or_else(|| Error::unavailable(format!("the database refused to be used: {}", error.message())))
}

/// What an operator can do something about. SQLite's codes are numbers, PostgreSQL's five characters.
fn told(error: &dyn DatabaseError) -> Option<Error> {
    let code = code(error);
    let message = match code.parse::<i32>() {
        Ok(number) if code.len() < 5 => sqlite_advice(number & 0xff)?,
        _ => postgres_advice(&code)?,
    };
    Some(Error::unavailable(message))
}

fn sqlite_advice(code: i32) -> Option<&'static str> {
    Some(match code {
        5 | 6 => "the database is busy with another program's changes: try again in a moment",
        3 | 8 | 23 => "the database file may not be written to: give Tribune's user the right to, or choose another",
        7 => "there is not enough memory for the database: try again in a moment",
        9 => "the database stopped in the middle: try again",
        10 => "the database file could not be read or written: see whether the disk is well, then try again",
        11 => "the database file is damaged: put back a copy from before, or move it away to begin anew",
        13 => "the disk is full: make room, then try again",
        14 => "the database file cannot be opened: see that its folder is there and may be written to",
        26 => "the database file is not one of SQLite: move it away, or choose another",
        _ => return None,
    })
}

fn postgres_advice(code: &str) -> Option<&'static str> {
    Some(match code {
        "25006" => "the database takes no changes, as a standby does: see that Tribune's settings lead to the primary",
        "3D000" => "PostgreSQL has no such database: create it, or correct its name in Tribune's settings",
        "3F000" => "PostgreSQL has no such schema: create it, or correct the search path in Tribune's settings",
        "42501" => "PostgreSQL does not let this user do that: grant it the right to create and use tables",
        "57014" | "25P03" => "PostgreSQL gave up because it took too long: try again in a moment",
        _ => match code.get(..2)? {
            "08" | "57" => "PostgreSQL is stopping or starting, or ended the connection: try again in a moment",
            "28" => "PostgreSQL does not let this user in: correct the name or the password in Tribune's settings",
            "40" => "another change was in the way: try again",
            "53" => "PostgreSQL has no room left for this (connections, memory or disk): try again in a moment",
            "55" => "another change is holding what this one needs: try again in a moment",
            "58" => "PostgreSQL could not read or write its files: see whether its disk is well, then try again",
            _ => return None,
        },
    })
}
