//! SQLite: one writer that commits for many at once, and readers beside it.

mod files;
mod writer;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection, SqliteJournalMode, SqliteSynchronous};
use sqlx::{ConnectOptions as _, Connection as _};
use tribune_core::{Error, Result};

use crate::connection::{Connection, Statement};
use crate::database::Write;
use crate::error::Failure;
use crate::migrate::migrate;
use crate::spares::Spares;
use crate::value::Row;
use writer::Writer;

/// How long another program's changes are waited for.
const PATIENCE: Duration = Duration::from_secs(5);
/// SQLite's own waiting looks ever less often, and a writer that it makes wait beside a busy one may wait for
/// ever. So it waits only this long, and we ask again until [`PATIENCE`] is over.
const BUSY_TIMEOUT: Duration = Duration::from_millis(10);
const READERS: usize = 4;

#[derive(Clone)]
pub(crate) struct SqlitePlace {
    path: PathBuf,
}

impl SqlitePlace {
    pub(crate) fn new(path: &Path) -> Result<Self> {
        // Absolute, so that no name is taken for a URI or for a database in memory.
        let path = std::path::absolute(path)
            .map_err(|error| Error::invalid_argument("the database needs a file's path").caused_by(error))?;
        if path.to_str().is_none_or(|path| path.contains('\0')) || path.file_name().is_none() {
            return Err(Error::invalid_argument(
                "the database's path must be that of a file, and of Unicode characters: choose another",
            ));
        }
        Ok(Self { path })
    }

    fn options(&self) -> SqliteConnectOptions {
        SqliteConnectOptions::new()
            .filename(&self.path)
            .foreign_keys(true)
            // Every commit is on the disk before anybody hears of it.
            .synchronous(SqliteSynchronous::Full)
            .pragma("fullfsync", "ON")
            // What a burst of changes made large is given back.
            .pragma("journal_size_limit", "67108864")
            .busy_timeout(BUSY_TIMEOUT)
            .disable_statement_logging()
    }

    async fn connect_writer(&self) -> Result<SqliteConnection> {
        let options = self.options().journal_mode(SqliteJournalMode::Wal);
        let patience = Patience::begin();
        loop {
            match options.connect().await.map_err(Failure::from) {
                Err(failure) if patience.lasts(&failure).await => {}
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
            let error = failure.into_error();
            let cause = match std::error::Error::source(&error) {
                Some(cause) => format!("{}: {cause}", self.path.display()),
                None => self.path.display().to_string(),
            };
            Error::new(error.kind(), error.message()).caused_by(cause)
        })
    }
}

/// Asking again while another process is in the way. Not everything waits by itself: going over to WAL does not.
struct Patience {
    begun: Instant,
}

impl Patience {
    fn begin() -> Self {
        Self { begun: Instant::now() }
    }

    /// Whether to ask again; if so, the moment to do it has come.
    async fn lasts(&self, failure: &Failure) -> bool {
        let lasts = matches!(failure, Failure::Collided(_)) && self.begun.elapsed() < PATIENCE;
        if lasts {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        lasts
    }
}

pub(crate) struct Sqlite {
    place: SqlitePlace,
    writer: Writer,
    readers: Spares<SqliteConnection>,
}

impl Sqlite {
    pub(crate) async fn open(place: &SqlitePlace) -> Result<Self> {
        let path = place.path.clone();
        let prepared = tokio::task::spawn_blocking(move || files::prepare(&path)).await;
        if let Ok(Err(error)) = prepared {
            return place.explain(Err(cannot_prepare(error).into()));
        }
        let connection = migrated(place).await?;
        let first_reader = place.connect_reader().await?;
        Ok(Self {
            writer: Writer::start(place.clone(), connection),
            readers: Spares::new(READERS, first_reader),
            place: place.clone(),
        })
    }

    pub(crate) async fn read(&self, statement: Statement) -> Result<Vec<Row>> {
        let seat = self.readers.place().await?;
        let mut connection = match seat.spare() {
            Some((connection, _)) => connection,
            None => self.place.connect_reader().await?,
        };
        let rows = Connection::Sqlite(&mut connection).fetch(statement).await;
        let rows = rows.map_err(Failure::into_error)?;
        seat.give_back(connection);
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

/// A connection to a database of the newest version.
async fn migrated(place: &SqlitePlace) -> Result<SqliteConnection> {
    let patience = Patience::begin();
    loop {
        let mut connection = place.connect_writer().await?;
        match migrate(&mut Connection::Sqlite(&mut connection)).await {
            Ok(()) => return Ok(connection),
            Err(failure) if patience.lasts(&failure).await => {}
            Err(failure) => return place.explain(Err(failure)),
        }
    }
}

fn cannot_prepare(error: std::io::Error) -> Error {
    Error::unavailable("the database file cannot be made: see that its folder may be written to, or choose another")
        .caused_by(error)
}
