//! PostgreSQL: as many changes at once as there are connections, each in a transaction of its own.

use std::str::FromStr as _;
use std::sync::Arc;
use std::time::Duration;

use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{ConnectOptions as _, Connection as _, Executor as _};
use tokio::time::timeout;
use tribune_core::{Error, ErrorKind, Result};

use crate::address;
use crate::connection::{Connection, Statement};
use crate::database::Write;
use crate::error::{self, Failure};
use crate::migrate::migrate;
use crate::spares::{Place, Spares};
use crate::value::Row;

/// How long connecting may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// How long a connection may take to show that it lives. With [`CONNECT_TIMEOUT`], less than [`TIMEOUT`].
const PING_TIMEOUT: Duration = Duration::from_secs(1);
/// How long reading may take, or getting a connection for a change, or then the change.
const TIMEOUT: Duration = Duration::from_secs(5);
/// The server gives up before we do, at [`TIMEOUT`]: otherwise a change that waits for a lock would be made after
/// its caller has heard that it failed. What it gave up, it has undone. Nor does a client that vanished in the
/// middle of a transaction keep its locks.
const LIMITS: &str = "SET statement_timeout = '4s'; SET lock_timeout = '3s'; \
                      SET idle_in_transaction_session_timeout = '10s'";
/// Few enough that several processes fit into the 100 that PostgreSQL takes unless it is told otherwise.
const CONNECTIONS: usize = 16;
/// A connection that was not used for longer is tried before it is trusted.
const TRUSTED_FOR: Duration = Duration::from_millis(500);
/// How often a change is made again that others keep getting in the way of.
const ATTEMPTS: usize = 10;

#[derive(Clone)]
pub(crate) struct PostgresPlace {
    options: PgConnectOptions,
    /// Where it is, for people.
    name: String,
}

impl PostgresPlace {
    pub(crate) fn new(url: &str) -> Result<Self> {
        address::check(url)?;
        // The cause is left out: it might quote from the URL, and so from the password.
        let options = PgConnectOptions::from_str(url).map_err(|_| address::unreadable())?;
        let database = options.get_database().unwrap_or(options.get_username());
        let name = match options.get_socket() {
            Some(socket) => format!("PostgreSQL at {}, database {database}", socket.display()),
            None => format!(
                "PostgreSQL at {}:{}, database {database}",
                options.get_host(),
                options.get_port()
            ),
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
        match timeout(CONNECT_TIMEOUT, connecting).await {
            Ok(Ok(connection)) => Ok(connection),
            Ok(Err(error)) => Err(error::explain_opening(&self.name, error)),
            Err(_) => Err(error::too_slow(&self.name)),
        }
    }
}

pub(crate) struct Postgres(Arc<Shared>);

struct Shared {
    place: PostgresPlace,
    spares: Spares<PgConnection>,
}

impl Postgres {
    pub(crate) async fn open(place: &PostgresPlace) -> Result<Self> {
        let mut connection = place.connect().await?;
        let migrated = timeout(TIMEOUT, migrate(&mut Connection::Postgres(&mut connection))).await;
        match migrated {
            Ok(migrated) => migrated.map_err(Failure::into_error)?,
            Err(_) => return Err(error::too_slow(&place.name)),
        }
        Ok(Self(Arc::new(Shared {
            place: place.clone(),
            spares: Spares::new(CONNECTIONS, connection),
        })))
    }

    pub(crate) async fn read(&self, statement: Statement) -> Result<Vec<Row>> {
        let shared = &*self.0;
        shared.in_time(shared.read(statement)).await
    }

    /// In a task of its own: a caller who goes away leaves a whole change behind, or none.
    pub(crate) async fn write<W: Write>(&self, write: W) -> Result<W::Output> {
        let shared = Arc::clone(&self.0);
        let task = tokio::spawn(async move { shared.write(&write).await });
        task.await
            .map_err(|error| Error::internal("a change to the database failed unexpectedly").caused_by(error))?
    }

    pub(crate) async fn close(&self) {
        for connection in self.0.spares.close(TIMEOUT).await {
            let _ = timeout(CONNECT_TIMEOUT, connection.close()).await;
        }
    }
}

impl Shared {
    async fn in_time<T>(&self, work: impl Future<Output = Result<T>>) -> Result<T> {
        match timeout(TIMEOUT, work).await {
            Ok(outcome) => outcome,
            Err(_) => {
                drop(self.spares.forget());
                Err(error::too_slow(&self.place.name))
            }
        }
    }

    /// A connection, and the right to use it.
    async fn lend(&self) -> Result<(Place<'_, PgConnection>, PgConnection)> {
        let seat = self.spares.place().await?;
        let connection = self.connection(&seat).await?;
        Ok((seat, connection))
    }

    /// Tried on a new connection if an old one turns out to be broken: reading twice does no harm.
    async fn read(&self, statement: Statement) -> Result<Vec<Row>> {
        let (seat, connection) = self.lend().await?;
        let rows = match self.fetch(&seat, connection, statement.clone()).await {
            Err(Failure::BrokeOff(_)) => {
                let connection = self.place.connect().await?;
                self.fetch(&seat, connection, statement).await
            }
            outcome => outcome,
        };
        rows.map_err(Failure::into_error)
    }

    async fn fetch(
        &self,
        seat: &Place<'_, PgConnection>,
        mut connection: PgConnection,
        statement: Statement,
    ) -> Result<Vec<Row>, Failure> {
        let rows = Connection::Postgres(&mut connection).fetch(statement).await;
        self.keep(seat, connection, rows.as_ref().err());
        rows
    }

    /// Until there is a connection nothing can have been changed; from then on it can.
    async fn write<W: Write>(&self, write: &W) -> Result<W::Output> {
        let (seat, connection) = self.in_time(self.lend()).await?;
        match timeout(TIMEOUT, self.change(&seat, connection, write)).await {
            Ok(outcome) => outcome,
            Err(_) => {
                drop(self.spares.forget());
                Err(error::unknown_outcome(format!(
                    "{}: no answer in time",
                    self.place.name
                )))
            }
        }
    }

    async fn change<W: Write>(
        &self,
        seat: &Place<'_, PgConnection>,
        mut connection: PgConnection,
        write: &W,
    ) -> Result<W::Output> {
        let mut attempt = 1;
        let outcome = loop {
            match transact(write, &mut Connection::Postgres(&mut connection)).await {
                Err(Failure::Collided(_)) if attempt < ATTEMPTS => attempt += 1,
                outcome => break outcome,
            }
        };
        self.keep(seat, connection, outcome.as_ref().err());
        outcome.map_err(Failure::into_error)
    }

    /// Whoever asked for something wrong has not broken the connection; anything else may have.
    fn keep(&self, seat: &Place<'_, PgConnection>, connection: PgConnection, failure: Option<&Failure>) {
        match failure.map(|failure| failure.error().kind()) {
            None | Some(ErrorKind::InvalidArgument | ErrorKind::NotFound) => seat.give_back(connection),
            Some(ErrorKind::Unavailable) => drop(self.spares.forget()),
            Some(_) => {}
        }
    }

    /// One that was used before and still lives, or a new one. Only one is tried: where it is dead, the others are
    /// likely to be, and finding that out of each would take longer than anybody waits.
    async fn connection(&self, seat: &Place<'_, PgConnection>) -> Result<PgConnection> {
        if let Some((mut connection, idle)) = seat.spare() {
            if idle < TRUSTED_FOR || matches!(timeout(PING_TIMEOUT, connection.ping()).await, Ok(Ok(()))) {
                return Ok(connection);
            }
            drop(self.spares.forget());
        }
        self.place.connect().await
    }
}

/// If undoing fails, so does the change, with an error that closes the connection.
async fn transact<W: Write>(write: &W, connection: &mut Connection<'_>) -> Result<W::Output, Failure> {
    if W::SINGLE {
        return write.run(connection).await.map_err(Failure::of_change);
    }
    connection.script("BEGIN").await?;
    match write.run(connection).await {
        Ok(output) => {
            connection.script("COMMIT").await.map_err(Failure::of_change)?;
            Ok(output)
        }
        Err(failure) => {
            connection.script("ROLLBACK").await?;
            Err(failure)
        }
    }
}
