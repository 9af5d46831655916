//! What is kept for users: tasks, conversations and API tokens, in SQLite or PostgreSQL.
//!
//! The contract is that of [`tribune_core::store`]; what it leaves open is alike on both databases:
//!
//! - times are kept to the microsecond, what is finer is cut off;
//! - text with a NUL character in it is refused as an invalid argument, because PostgreSQL cannot keep it;
//! - a page has at most [`MAX_PAGE`] items, however many are asked for;
//! - a request key, like a token's id, has at most [`MAX_KEY_BYTES`] bytes;
//! - at most [`MAX_WORDS`] words are looked for at once, of at most [`MAX_WORD_BYTES`] bytes each;
//! - adding what is there already is an invalid argument;
//! - completing what is complete, and taking back what is not, changes nothing;
//! - a conversation's last activity never goes back.
//!
//! The modules, in the order a reader wants them:
//!
//! - `database`: opened when it is first needed; what a change is;
//! - `sqlite`: one writer that commits for many at once, and readers beside it;
//! - `postgres`: many connections, each change a transaction;
//! - `address`: what the address of PostgreSQL may be like;
//! - `spares`: connections that are used again;
//! - `migrate`: versions of the tables;
//! - `connection`: statements that both databases understand;
//! - `value`: how things are written in columns;
//! - `text`: comparing without regard to case;
//! - `tasks`, `conversations`, `tokens`: the three stores;
//! - `error`: failures in words.

mod address;
mod connection;
mod conversations;
mod database;
mod error;
mod migrate;
mod postgres;
mod spares;
mod sqlite;
mod tasks;
mod text;
mod tokens;
mod value;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use tribune_core::store::{ConversationStore, TaskStore, TokenStore};
use tribune_core::{Error, Result};

use crate::connection::Statement;
use crate::conversations::Conversations;
use crate::database::{Database, Where};
use crate::postgres::PostgresPlace;
use crate::sqlite::SqlitePlace;
use crate::tasks::Tasks;
use crate::tokens::Tokens;

pub const MAX_PAGE: usize = 1_000;
pub const MAX_KEY_BYTES: usize = 512;
pub const MAX_WORDS: usize = 256;
pub const MAX_WORD_BYTES: usize = 10_000;

/// Where everything is kept.
#[derive(Clone, PartialEq, Eq)]
pub enum Place {
    Sqlite(PathBuf),
    /// A URL, which may hold a password. Between Tribune and the server there may be a pooler that keeps a server
    /// connection for each client as long as it is there, as PgBouncer does with `pool_mode = session`; with one that
    /// changes them from transaction to transaction, prepared statements and time limits would be somebody else's.
    Postgres(String),
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite(path) => f.debug_tuple("Sqlite").field(path).finish(),
            Self::Postgres(_) => f.write_str("Postgres(..)"),
        }
    }
}

/// A handle on one database; clones are the same one.
#[derive(Clone)]
pub struct Store {
    database: Arc<Database>,
}

impl Store {
    /// Opens nothing: that is done by the first use, and by each use after it until it works.
    pub fn new(place: Place) -> Result<Self> {
        let place = match place {
            Place::Sqlite(path) => Where::Sqlite(SqlitePlace::new(&path)?),
            Place::Postgres(url) => Where::Postgres(Box::new(PostgresPlace::new(&url)?)),
        };
        Ok(Self {
            database: Arc::new(Database::new(place)),
        })
    }

    /// Whether the database can be used now. Makes or brings up to date its tables, if that was not done before.
    pub async fn ready(&self) -> Result<()> {
        self.database.read(Statement::new("SELECT 1")).await.map(drop)
    }

    pub fn tasks(&self) -> Arc<dyn TaskStore> {
        Arc::new(Tasks::new(Arc::clone(&self.database)))
    }

    pub fn conversations(&self) -> Arc<dyn ConversationStore> {
        Arc::new(Conversations::new(Arc::clone(&self.database)))
    }

    pub fn tokens(&self) -> Arc<dyn TokenStore> {
        Arc::new(Tokens::new(Arc::clone(&self.database)))
    }

    /// Returns when the changes under way are made and the connections closed. Later uses fail.
    pub async fn close(&self) {
        self.database.close().await;
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store").finish_non_exhaustive()
    }
}

/// How many to ask the database for: one more than wanted, which shows whether there are more.
fn one_more(limit: usize) -> i64 {
    i64::try_from(limit.min(MAX_PAGE)).unwrap_or(0) + 1
}

fn check_key(what: &str, key: &str) -> Result<()> {
    if key.len() > MAX_KEY_BYTES {
        return Err(Error::invalid_argument(format!(
            "{what} may have at most {MAX_KEY_BYTES} bytes, and this has {}: use a shorter one",
            key.len()
        )));
    }
    Ok(())
}
