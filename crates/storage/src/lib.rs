//! Users, what gives access as one, and their tasks and conversations, in SQLite or PostgreSQL.
//!
//! Every method about a user's data takes the owner first and touches only that owner's rows; another user's id is answered
//! like an id that does not exist. A write returns only when it would survive the process being killed. Errors have the kind
//! `Unavailable` when the database cannot be reached or is busy, `InvalidArgument` when it cannot store or look up what it is
//! given (text with a NUL character, an id that is taken), and `Internal` otherwise.
//!
//! Both databases also guarantee:
//!
//! - times are truncated to the microsecond;
//! - text with a NUL character is an invalid argument, because PostgreSQL cannot store it;
//! - a page has at most [`MAX_PAGE`] items;
//! - a request key and a token's id have at most [`MAX_KEY_BYTES`] bytes;
//! - a search has at most [`MAX_WORDS`] words of at most [`MAX_WORD_BYTES`] bytes each;
//! - adding an existing id is an invalid argument;
//! - completing a completed task, or reopening an open one, changes nothing;
//! - a conversation's last activity never goes back.
//!
//! Modules in reading order:
//!
//! - `database`: opened on first use;
//! - `sqlite`: one writer that commits many changes at once, and several readers;
//! - `postgres`: many connections, each change a transaction;
//! - `address`: checks the address of PostgreSQL;
//! - `pool`: a connection pool;
//! - `migrate`: migrations of the tables;
//! - `connection`: statements and changes for both databases;
//! - `value`: how values are stored in columns;
//! - `text`: case-insensitive comparison;
//! - `tasks`, `conversations`, `tokens`, `users`, `grants`, `audit`: the stores;
//! - `error`: database errors as messages.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests use the machine's clock"))]

mod address;
mod audit;
pub mod config;
mod connection;
mod conversations;
mod database;
mod error;
mod grants;
mod migrate;
mod pool;
mod postgres;
mod sqlite;
mod tasks;
mod text;
mod tokens;
mod users;
mod value;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use tribune_core::{Error, Result};

use crate::connection::Statement;
use crate::conversations::Conversations;
use crate::database::{Database, Location};
use crate::postgres::PostgresLocation;
use crate::sqlite::SqliteLocation;

pub use audit::{Audit, AuditEntry, AuditFilter};
pub use config::Config;
pub use conversations::{
    Conversation, ConversationState, ConversationStore, Exchange, Message, MessageCursor, PendingCall, Role,
    StoredAnswer,
};
pub use grants::{Exchange as SecretExchange, Grant, GrantSecret, Grants, SecretKind};
pub use tasks::{Priority, Task, TaskChanges, TaskCursor, TaskFilter, TaskPage, TaskSort, Tasks};
pub use tokens::{Token, Tokens};
pub use users::{BrowserSession, BrowserSessions, User, Users};

pub const MAX_PAGE: usize = 1_000;
pub const MAX_KEY_BYTES: usize = 512;
/// Calls of one conversation that wait for a decision; a newer one replaces the oldest.
pub const MAX_PENDING_CALLS: usize = 8;
pub const MAX_WORDS: usize = 256;
pub const MAX_WORD_BYTES: usize = 10_000;

/// Some of a longer list, and where the rest begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page<T, C> {
    pub items: Vec<T>,
    /// `None` when these are the last.
    pub next: Option<C>,
}

/// Which database holds the data.
#[derive(Clone, PartialEq, Eq)]
pub enum Backend {
    Sqlite(PathBuf),
    /// A URL, which may contain a password. A pooler in between must keep one server connection per client, as PgBouncer
    /// does with `pool_mode = session`; otherwise prepared statements and timeouts would apply to other clients.
    Postgres(String),
}

impl fmt::Debug for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite(path) => f.debug_tuple("Sqlite").field(path).finish(),
            Self::Postgres(_) => f.write_str("Postgres(..)"),
        }
    }
}

/// A handle on one database; clones share it.
#[derive(Clone)]
pub struct Store {
    database: Arc<Database>,
}

impl Store {
    /// Does not open the database; the first use does, and each further use until it succeeds.
    pub fn new(backend: Backend) -> Result<Self> {
        let location = match backend {
            Backend::Sqlite(path) => Location::Sqlite(SqliteLocation::new(&path)?),
            Backend::Postgres(url) => Location::Postgres(Box::new(PostgresLocation::new(&url)?)),
        };
        Ok(Self { database: Arc::new(Database::new(location)) })
    }

    /// Checks that the database can be used. Creates or migrates its tables first if needed.
    pub async fn ready(&self) -> Result<()> {
        self.database.read(Statement::new("SELECT 1")).await.map(drop)
    }

    pub fn tasks(&self) -> Tasks {
        Tasks { database: self.database.clone(), most: 0 }
    }

    pub fn conversations(&self) -> Arc<dyn ConversationStore> {
        self.conversations_at_most(0)
    }

    /// With at most so many conversations for each owner; 0 limits nothing.
    pub fn conversations_at_most(&self, most: u32) -> Arc<dyn ConversationStore> {
        Arc::new(Conversations { database: self.database.clone(), most })
    }

    pub fn tokens(&self) -> Tokens {
        Tokens { database: self.database.clone() }
    }

    pub fn users(&self) -> Users {
        Users { database: self.database.clone() }
    }

    pub fn browser_sessions(&self) -> BrowserSessions {
        BrowserSessions { database: self.database.clone() }
    }

    pub fn grants(&self) -> Grants {
        Grants { database: self.database.clone() }
    }

    pub fn audit(&self) -> Audit {
        Audit { database: self.database.clone() }
    }

    /// Returns when running changes are done and the connections closed. Later uses fail.
    pub async fn close(&self) {
        self.database.close().await;
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store").finish_non_exhaustive()
    }
}

/// The number of rows to request: one more than wanted, to see whether there are more.
fn one_more(limit: usize) -> i64 {
    i64::try_from(limit.min(MAX_PAGE)).unwrap_or(0) + 1
}

fn check_key(what: &str, key: &str) -> Result<()> {
    if key.len() > MAX_KEY_BYTES {
        return Err(Error::invalid_argument(format!(
            "{what} can have at most {MAX_KEY_BYTES} bytes, and this has {}: use a shorter one",
            key.len()
        )));
    }
    Ok(())
}
