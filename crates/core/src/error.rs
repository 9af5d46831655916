//! One error type, with a kind that the edges map to MCP results, HTTP statuses and exit codes.

use std::error::Error as StdError;
use std::fmt;

use crate::scope::{Scope, Scopes};

pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What sort of failure this is: decides who can mend it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// The caller's arguments are wrong; the message says how to put them right.
    InvalidArgument,
    /// Nothing is there under that name.
    NotFound,
    /// The caller may not do this.
    Forbidden,
    /// The caller did this too often; the message says when to try again.
    RateLimited,
    /// A backend is down or not ready; trying again later may work.
    Unavailable,
    /// It took longer than the call may last.
    DeadlineExceeded,
    /// The caller went away.
    Cancelled,
    /// A bug or a broken machine.
    Internal,
}

impl ErrorKind {
    /// Stable name for logs and metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::InvalidArgument => "invalid_argument",
            Self::NotFound => "not_found",
            Self::Forbidden => "forbidden",
            Self::RateLimited => "rate_limited",
            Self::Unavailable => "unavailable",
            Self::DeadlineExceeded => "deadline_exceeded",
            Self::Cancelled => "cancelled",
            Self::Internal => "internal",
        }
    }
}

/// A failure that its reader can act on: what happened, and what to do next.
#[derive(Debug)]
pub struct Error {
    kind: ErrorKind,
    message: String,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

impl Error {
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), source: None }
    }

    pub fn invalid_argument(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::InvalidArgument, message)
    }

    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::NotFound, message)
    }

    pub fn forbidden(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Forbidden, message)
    }

    pub fn rate_limited(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::RateLimited, message)
    }

    pub fn unavailable(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Unavailable, message)
    }

    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Internal, message)
    }

    /// Keeps the cause, for logs; the message stays what its reader needs.
    #[must_use]
    pub fn caused_by(mut self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// With a name that programs know it by, at the beginning of the text.
    #[must_use]
    pub fn coded(mut self, code: &str) -> Self {
        self.message = format!("{code}: {}", self.message);
        self
    }

    pub const fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// For a caller with these scopes. Operators also learn why something is unavailable; the cause may name folders and
    /// addresses.
    #[must_use]
    pub fn told_to(mut self, scopes: Scopes) -> Self {
        let is_told = self.kind == ErrorKind::Unavailable && scopes.contains(Scope::Admin);
        if let Some(cause) = self.source.as_ref().filter(|_| is_told) {
            self.message = format!("{}: {cause}", self.message);
        }
        self
    }

    pub fn message(&self) -> &str {
        &self.message
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}
