//! A database that is opened when it is first needed, and tried again until it can be.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use async_trait::async_trait;
use tokio::sync::OnceCell;
use tribune_core::{Error, Result};

use crate::connection::{Connection, Statement};
use crate::error::{self, Failure};
use crate::postgres::{Postgres, PostgresPlace};
use crate::sqlite::{Sqlite, SqlitePlace};
use crate::value::Row;

/// A change, made as a whole or not at all. It owns what it needs, so that it can be made by a task of its own, and
/// made again after another was in its way.
#[async_trait]
pub(crate) trait Write: Send + Sync + 'static {
    type Output: Send + 'static;

    /// It is one statement, which a database makes as a whole or not at all without being told to.
    const SINGLE: bool;

    async fn run(&self, connection: &mut Connection<'_>) -> Result<Self::Output, Failure>;
}

pub(crate) enum Where {
    Sqlite(SqlitePlace),
    Postgres(Box<PostgresPlace>),
}

enum Opened {
    Sqlite(Sqlite),
    Postgres(Postgres),
}

pub(crate) struct Database {
    place: Where,
    opened: OnceCell<Opened>,
    last_failure: Mutex<Option<(Instant, Error)>>,
    closed: AtomicBool,
}

impl Database {
    pub(crate) fn new(place: Where) -> Self {
        Self {
            place,
            opened: OnceCell::new(),
            last_failure: Mutex::new(None),
            closed: AtomicBool::new(false),
        }
    }

    pub(crate) async fn read(&self, statement: Statement) -> Result<Vec<Row>> {
        match self.opened().await? {
            Opened::Sqlite(sqlite) => sqlite.read(statement).await,
            Opened::Postgres(postgres) => postgres.read(statement).await,
        }
    }

    /// At most one row is expected.
    pub(crate) async fn read_one(&self, statement: Statement) -> Result<Option<Row>> {
        Ok(self.read(statement).await?.into_iter().next())
    }

    /// Returns when the change is safe.
    pub(crate) async fn write<W: Write>(&self, write: W) -> Result<W::Output> {
        match self.opened().await? {
            Opened::Sqlite(sqlite) => sqlite.write(write).await,
            Opened::Postgres(postgres) => postgres.write(write).await,
        }
    }

    pub(crate) async fn close(&self) {
        self.closed.store(true, Ordering::Release);
        match self.opened.get() {
            Some(Opened::Sqlite(sqlite)) => sqlite.close().await,
            Some(Opened::Postgres(postgres)) => postgres.close().await,
            None => {}
        }
    }

    async fn opened(&self) -> Result<&Opened> {
        if self.closed.load(Ordering::Acquire) {
            return Err(error::closed());
        }
        let asked = Instant::now();
        self.opened.get_or_try_init(|| self.open(asked)).await
    }

    /// One caller opens while the others wait. If it fails, it has failed for those who waited too: with a
    /// server that does not answer, each trying in turn would make the last wait very long.
    async fn open(&self, asked: Instant) -> Result<Opened> {
        if let Some(failure) = self.failure_since(asked) {
            return Err(failure);
        }
        let opened = match &self.place {
            Where::Sqlite(place) => Sqlite::open(place).await.map(Opened::Sqlite),
            Where::Postgres(place) => Postgres::open(place).await.map(Opened::Postgres),
        };
        opened.inspect_err(|failure| self.remember(failure))
    }

    fn failure_since(&self, asked: Instant) -> Option<Error> {
        let last = self.last_failure.lock().unwrap_or_else(PoisonError::into_inner);
        let (failed, failure) = last.as_ref()?;
        (*failed >= asked).then(|| error::copy(failure))
    }

    fn remember(&self, failure: &Error) {
        let cause = std::error::Error::source(failure).map(ToString::to_string);
        tracing::warn!(cause, "the database could not be opened: {failure}");
        let mut last = self.last_failure.lock().unwrap_or_else(PoisonError::into_inner);
        *last = Some((Instant::now(), error::copy(failure)));
    }
}
