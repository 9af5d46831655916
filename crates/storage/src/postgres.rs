//! PostgreSQL: as many concurrent changes as connections, each in its own transaction.

use std::str::FromStr as _;
use std::sync::Arc;
use std::time::Duration;

use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{ConnectOptions as _, Connection as _, Executor as _};
use tokio::time::timeout;
use tribune_core::{Error, ErrorKind, Result};

use crate::address;
use crate::connection::{Connection, Statement, Write};
use crate::error::{self, Failure, Reason};
use crate::migrate::migrate;
use crate::pool::{ConnectionPool, Permit};
use crate::value::Row;

/// How long connecting may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// How long a ping may take. With [`CONNECT_TIMEOUT`], less than [`TIMEOUT`].
const PING_TIMEOUT: Duration = Duration::from_secs(1);
/// How long a read may take, or getting a connection for a change, or then the change.
const TIMEOUT: Duration = Duration::from_secs(5);
/// The server must time out before we do at [`TIMEOUT`]: otherwise a change that waits for a lock would commit after its
/// caller was told that it failed. A client that vanishes inside a transaction must not keep its locks either.
const LIMITS: &str = "SET statement_timeout = '4s'; SET lock_timeout = '3s'; \
                      SET idle_in_transaction_session_timeout = '10s'";
/// Few enough that several processes fit into PostgreSQL's default of 100.
const CONNECTIONS: usize = 16;
/// A connection that was idle for longer is pinged first.
const TRUSTED_FOR: Duration = Duration::from_millis(500);
/// How often a change is tried if it conflicts with others.
const ATTEMPTS: usize = 10;

#[derive(Clone)]
pub(crate) struct PostgresLocation {
    options: PgConnectOptions,
    /// The address without secrets, for messages.
    name: String,
}

impl PostgresLocation {
    pub(crate) fn new(url: &str) -> Result<Self> {
        address::check(url)?;
        // The cause is omitted: it might quote the URL, and so the password.
        let options = PgConnectOptions::from_str(url).map_err(|_| address::unreadable())?;
        let database = options.get_database().unwrap_or(options.get_username());
        let name = match options.get_socket() {
            Some(socket) => format!("PostgreSQL at {}, database {database}", socket.display()),
            None => format!("PostgreSQL at {}:{}, database {database}", options.get_host(), options.get_port()),
        };
        let options = match options.get_application_name() {
            Some(_) => options,
            None => options.application_name("tribune"),
        };
        let options = options.disable_statement_logging();
        Ok(Self { options, name })
    }

    async fn connect(&self) -> Result<PgConnection> {
        let connecting = async {
            let mut connection = self.options.connect().await?;
            connection.execute(sqlx::raw_sql(LIMITS)).await?;
            Ok(connection)
        };
        // Connecting is rare and its future large.
        match timeout(CONNECT_TIMEOUT, Box::pin(connecting)).await {
            Ok(Ok(connection)) => Ok(connection),
            Ok(Err(error)) => Err(error::explain_opening(&self.name, error)),
            Err(_) => Err(error::timed_out(&self.name)),
        }
    }
}

pub(crate) struct Postgres {
    place: PostgresLocation,
    pool: ConnectionPool<PgConnection>,
}

impl Postgres {
    pub(crate) async fn open(place: &PostgresLocation) -> Result<Self> {
        let mut connection = place.connect().await?;
        timeout(TIMEOUT, migrate(&mut Connection::Postgres(&mut connection)))
            .await
            .map_err(|_| error::timed_out(&place.name))??;
        Ok(Self { place: place.clone(), pool: ConnectionPool::new(CONNECTIONS, connection) })
    }

    pub(crate) async fn read(&self, statement: Statement) -> Result<Vec<Row>> {
        self.in_time(self.read_with_retry(statement)).await
    }

    /// In its own task, so that a caller who goes away leaves a complete change or none.
    pub(crate) async fn write<W: Write>(self: &Arc<Self>, write: W) -> Result<W::Output> {
        let this = Arc::clone(self);
        let task = tokio::spawn(async move { this.write_to_the_end(&write).await });
        task.await.map_err(|error| Error::internal("a change to the database failed unexpectedly").caused_by(error))?
    }

    pub(crate) async fn close(&self) {
        for connection in self.pool.close(TIMEOUT).await {
            let _ = timeout(CONNECT_TIMEOUT, connection.close()).await;
        }
    }

    async fn in_time<T>(&self, work: impl Future<Output = Result<T>>) -> Result<T> {
        match timeout(TIMEOUT, work).await {
            Ok(outcome) => outcome,
            Err(_) => {
                drop(self.pool.drain());
                Err(error::timed_out(&self.place.name))
            }
        }
    }

    /// A connection, and the permit to use it.
    async fn acquire(&self) -> Result<(Permit<'_, PgConnection>, PgConnection)> {
        let permit = self.pool.acquire().await?;
        let connection = self.connection(&permit).await?;
        Ok((permit, connection))
    }

    /// Retried on a new connection if an old one is broken: reading twice does no harm.
    async fn read_with_retry(&self, statement: Statement) -> Result<Vec<Row>> {
        let (permit, connection) = self.acquire().await?;
        let rows = match self.fetch(&permit, connection, statement.clone()).await {
            Err(failure) if failure.reason == Reason::ConnectionLost => {
                let connection = self.place.connect().await?;
                self.fetch(&permit, connection, statement).await
            }
            outcome => outcome,
        };
        Ok(rows?)
    }

    async fn fetch(
        &self,
        permit: &Permit<'_, PgConnection>,
        mut connection: PgConnection,
        statement: Statement,
    ) -> Result<Vec<Row>, Failure> {
        let rows = Connection::Postgres(&mut connection).fetch(statement).await;
        self.release(permit, connection, rows.as_ref().err());
        rows
    }

    /// Without a connection nothing can have changed; after that, a timeout leaves the outcome unknown.
    async fn write_to_the_end<W: Write>(&self, write: &W) -> Result<W::Output> {
        let (permit, connection) = self.in_time(self.acquire()).await?;
        match timeout(TIMEOUT, self.change(&permit, connection, write)).await {
            Ok(outcome) => outcome,
            Err(_) => {
                drop(self.pool.drain());
                Err(error::unknown_outcome(format!("{}: no answer in time", self.place.name)))
            }
        }
    }

    async fn change<W: Write>(
        &self,
        permit: &Permit<'_, PgConnection>,
        mut connection: PgConnection,
        write: &W,
    ) -> Result<W::Output> {
        let mut attempt = 1;
        let outcome = loop {
            match transact(write, &mut Connection::Postgres(&mut connection)).await {
                Err(failure) if failure.reason == Reason::Conflict && attempt < ATTEMPTS => attempt += 1,
                outcome => break outcome,
            }
        };
        self.release(permit, connection, outcome.as_ref().err());
        Ok(outcome?)
    }

    /// Reuses the connection unless the failure may have broken it.
    fn release(&self, permit: &Permit<'_, PgConnection>, connection: PgConnection, failure: Option<&Failure>) {
        match failure.map(|failure| failure.error.kind()) {
            None | Some(ErrorKind::InvalidArgument | ErrorKind::NotFound) => permit.release(connection),
            Some(ErrorKind::Unavailable) => drop(self.pool.drain()),
            Some(_) => {}
        }
    }

    /// An idle connection that still works, or a new one. Only one idle connection is tried: if it is dead the others
    /// probably are, and pinging each would take too long.
    async fn connection(&self, permit: &Permit<'_, PgConnection>) -> Result<PgConnection> {
        if let Some((mut connection, idle)) = permit.idle_connection() {
            if idle < TRUSTED_FOR || matches!(timeout(PING_TIMEOUT, connection.ping()).await, Ok(Ok(()))) {
                return Ok(connection);
            }
            drop(self.pool.drain());
        }
        self.place.connect().await
    }
}

/// If the rollback fails, its error is returned, which closes the connection.
async fn transact<W: Write>(write: &W, connection: &mut Connection<'_>) -> Result<W::Output, Failure> {
    if W::SINGLE {
        return write.run(connection).await.map_err(Failure::outcome_unknown_if_lost);
    }
    connection.script("BEGIN").await?;
    match write.run(connection).await {
        Ok(output) => {
            connection.script("COMMIT").await.map_err(Failure::outcome_unknown_if_lost)?;
            Ok(output)
        }
        Err(failure) => {
            connection.script("ROLLBACK").await?;
            Err(failure)
        }
    }
}
