//! SQLite: one writer that commits many changes at once, and several readers.

#![allow(clippy::disallowed_methods, reason = "another writer is waited for")]

mod files;
mod writer;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection, SqliteJournalMode, SqliteSynchronous};
use sqlx::{ConnectOptions as _, Connection as _};
use tribune_core::{Error, Result};

use crate::connection::{Connection, Statement, Write};
use crate::error::{self, Failure, Reason};
use crate::migrate::migrate;
use crate::pool::ConnectionPool;
use crate::value::Row;
use writer::Writer;

/// How long to wait while another program writes.
const PATIENCE: Duration = Duration::from_secs(5);
/// SQLite retries ever less often, so beside a busy writer it may wait for ever. It waits only this long, and we retry
/// until [`PATIENCE`] is over.
const BUSY_TIMEOUT: Duration = Duration::from_millis(10);
const READERS: usize = 4;

#[derive(Clone)]
pub(crate) struct SqliteLocation {
    path: PathBuf,
}

impl SqliteLocation {
    pub(crate) fn new(path: &Path) -> Result<Self> {
        // Absolute, so that no name is taken for a URI or for a database in memory.
        let path = std::path::absolute(path)
            .map_err(|error| Error::invalid_argument("the database needs a file path").caused_by(error))?;
        if path.to_str().is_none_or(|path| path.contains('\0')) || path.file_name().is_none() {
            return Err(Error::invalid_argument("the database path must be a file path in Unicode: choose another"));
        }
        Ok(Self { path })
    }

    fn options(&self) -> SqliteConnectOptions {
        SqliteConnectOptions::new()
            .filename(&self.path)
            .foreign_keys(true)
            // Every commit is flushed before it is acknowledged.
            .synchronous(SqliteSynchronous::Full)
            .pragma("fullfsync", "ON")
            // Shrink the journal again after a burst of changes.
            .pragma("journal_size_limit", "67108864")
            .busy_timeout(BUSY_TIMEOUT)
            .disable_statement_logging()
    }

    async fn connect_writer(&self) -> Result<SqliteConnection> {
        let options = self.options().journal_mode(SqliteJournalMode::Wal);
        let patience = Patience::start();
        loop {
            match options.connect().await.map_err(Failure::from) {
                Err(failure) if patience.allows_retry(&failure).await => {}
                outcome => return self.explain(outcome),
            }
        }
    }

    async fn connect_reader(&self) -> Result<SqliteConnection> {
        let options = self.options().busy_timeout(PATIENCE).pragma("query_only", "ON");
        self.explain(options.connect().await.map_err(Failure::from))
    }

    fn explain<T>(&self, outcome: Result<T, Failure>) -> Result<T> {
        outcome.map_err(|failure| {
            let (error, path) = (failure.error, self.path.display());
            let cause = error::cause(&error).map_or_else(|| path.to_string(), |cause| format!("{path}: {cause}"));
            Error::new(error.kind(), error.message()).caused_by(cause)
        })
    }
}

/// Retries while another process holds the lock. SQLite does not do this by itself everywhere, for example when it
/// switches to WAL.
struct Patience(Instant);

impl Patience {
    fn start() -> Self {
        Self(Instant::now())
    }

    /// Whether to retry; waits before it says yes.
    async fn allows_retry(&self, failure: &Failure) -> bool {
        let allowed = failure.reason == Reason::Conflict && self.0.elapsed() < PATIENCE;
        if allowed {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        allowed
    }
}

pub(crate) struct Sqlite {
    place: SqliteLocation,
    writer: Writer,
    readers: ConnectionPool<SqliteConnection>,
}

impl Sqlite {
    pub(crate) async fn open(place: &SqliteLocation) -> Result<Self> {
        let path = place.path.clone();
        let prepared = tokio::task::spawn_blocking(move || files::prepare(&path)).await;
        if let Ok(Err(error)) = prepared {
            let advice = "the database file cannot be created: check that its folder is writable, or choose another";
            return place.explain(Err(Error::unavailable(advice).caused_by(error).into()));
        }
        let connection = connect_migrated(place).await?;
        let first_reader = place.connect_reader().await?;
        Ok(Self {
            writer: Writer::start(place.clone(), connection),
            readers: ConnectionPool::new(READERS, first_reader),
            place: place.clone(),
        })
    }

    pub(crate) async fn read(&self, statement: Statement) -> Result<Vec<Row>> {
        let permit = self.readers.acquire().await?;
        let mut connection = match permit.idle_connection() {
            Some((connection, _)) => connection,
            None => self.place.connect_reader().await?,
        };
        let rows = Connection::Sqlite(&mut connection).fetch(statement).await?;
        permit.release(connection);
        Ok(rows)
    }

    pub(crate) async fn write<W: Write>(&self, write: W) -> Result<W::Output> {
        self.writer.write(write).await
    }

    pub(crate) async fn close(&self) {
        for connection in self.readers.close(PATIENCE).await {
            let _ = connection.close().await;
        }
        self.writer.close().await;
    }
}

/// Connects, and migrates to the newest version.
async fn connect_migrated(place: &SqliteLocation) -> Result<SqliteConnection> {
    let patience = Patience::start();
    loop {
        let mut connection = place.connect_writer().await?;
        match migrate(&mut Connection::Sqlite(&mut connection)).await {
            Ok(()) => return Ok(connection),
            Err(failure) if patience.allows_retry(&failure).await => {}
            Err(failure) => return place.explain(Err(failure)),
        }
    }
}
