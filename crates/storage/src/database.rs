//! A database that is opened on first use, and retried on each use until it opens.

#![allow(clippy::disallowed_methods, reason = "connections live in real time")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use parking_lot::Mutex;
use tokio::sync::OnceCell;
use tribune_core::{Error, Result};

use crate::connection::{Statement, Write};
use crate::error;
use crate::postgres::{Postgres, PostgresLocation};
use crate::sqlite::{Sqlite, SqliteLocation};
use crate::value::Row;

pub(crate) enum Location {
    Sqlite(SqliteLocation),
    Postgres(Box<PostgresLocation>),
}

enum OpenDatabase {
    Sqlite(Sqlite),
    Postgres(Arc<Postgres>),
}

pub(crate) struct Database {
    location: Location,
    opened: OnceCell<OpenDatabase>,
    last_failure: Mutex<Option<(Instant, Error)>>,
    closed: AtomicBool,
}

impl Database {
    pub(crate) fn new(location: Location) -> Self {
        Self { location, opened: OnceCell::new(), last_failure: Mutex::new(None), closed: AtomicBool::new(false) }
    }

    pub(crate) async fn read(&self, statement: Statement) -> Result<Vec<Row>> {
        match self.opened().await? {
            OpenDatabase::Sqlite(sqlite) => sqlite.read(statement).await,
            OpenDatabase::Postgres(postgres) => postgres.read(statement).await,
        }
    }

    /// At most one row is expected.
    pub(crate) async fn read_one(&self, statement: Statement) -> Result<Option<Row>> {
        Ok(self.read(statement).await?.into_iter().next())
    }

    /// Returns when the change is durable.
    pub(crate) async fn write<W: Write>(&self, write: W) -> Result<W::Output> {
        match self.opened().await? {
            OpenDatabase::Sqlite(sqlite) => sqlite.write(write).await,
            OpenDatabase::Postgres(postgres) => postgres.write(write).await,
        }
    }

    pub(crate) async fn close(&self) {
        self.closed.store(true, Ordering::Release);
        match self.opened.get() {
            Some(OpenDatabase::Sqlite(sqlite)) => sqlite.close().await,
            Some(OpenDatabase::Postgres(postgres)) => postgres.close().await,
            None => {}
        }
    }

    async fn opened(&self) -> Result<&OpenDatabase> {
        if self.closed.load(Ordering::Acquire) {
            return Err(error::closed());
        }
        let asked = Instant::now();
        // Opening is rare and its future large.
        self.opened.get_or_try_init(|| Box::pin(self.open(asked))).await
    }

    /// One caller opens while the others wait and share its failure: with a server that does not answer, trying in turn
    /// would make the last one wait very long.
    async fn open(&self, asked: Instant) -> Result<OpenDatabase> {
        if let Some(failure) = self.failure_since(asked) {
            return Err(failure);
        }
        let opened = match &self.location {
            Location::Sqlite(location) => Sqlite::open(location).await.map(OpenDatabase::Sqlite),
            Location::Postgres(location) => {
                Postgres::open(location).await.map(|opened| OpenDatabase::Postgres(Arc::new(opened)))
            }
        };
        opened.inspect_err(|failure| self.remember(failure))
    }

    fn failure_since(&self, asked: Instant) -> Option<Error> {
        let last = self.last_failure.lock();
        let (failed, failure) = last.as_ref()?;
        (*failed >= asked).then(|| error::copy(failure))
    }

    fn remember(&self, failure: &Error) {
        let cause = error::cause(failure);
        tracing::warn!(cause, "the database could not be opened: {failure}");
        let mut last = self.last_failure.lock();
        *last = Some((Instant::now(), error::copy(failure)));
    }
}
