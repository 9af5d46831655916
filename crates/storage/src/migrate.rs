//! Migrates a database to the version that this program knows: forward only, and atomically.

use tribune_core::{Error, Result};

use crate::connection::{Connection, Statement};
use crate::error::Failure;

struct Migration {
    sqlite: &'static str,
    postgres: &'static str,
}

macro_rules! migration {
    ($number:literal) => {
        Migration {
            sqlite: include_str!(concat!("../migrations/", $number, ".sqlite.sql")),
            postgres: include_str!(concat!("../migrations/", $number, ".postgres.sql")),
        }
    };
}

/// In order; the first makes version 1. A released migration never changes.
const MIGRATIONS: [Migration; 6] = [
    migration!("0001"),
    migration!("0002"),
    migration!("0003"),
    migration!("0004"),
    migration!("0005"),
    migration!("0006"),
];

const NEWEST: i64 = MIGRATIONS.len() as i64;

/// A lock number that nothing else on the server uses: `tribune` in ASCII.
const POSTGRES_LOCK: i64 = 0x0074_7269_6275_6e65;

/// After an error, close the connection: a transaction may be open on it.
pub(crate) async fn migrate(connection: &mut Connection<'_>) -> Result<(), Failure> {
    if version(connection).await? == NEWEST {
        return Ok(());
    }
    begin_exclusive(connection).await?;
    // Another process may have migrated meanwhile.
    let version = version(connection).await?;
    connection.script("CREATE TABLE IF NOT EXISTS tribune_schema (version BIGINT NOT NULL PRIMARY KEY)").await?;
    for (number, migration) in (1..).zip(&MIGRATIONS).filter(|(number, _)| *number > version) {
        connection
            .script(match connection {
                Connection::Sqlite(_) => migration.sqlite,
                Connection::Postgres(_) => migration.postgres,
            })
            .await?;
        let done = Statement::new("INSERT INTO tribune_schema (version) VALUES ($1)").bind(number);
        connection.fetch(done).await?;
    }
    connection.script("COMMIT").await
}

/// Begins a transaction that excludes other migrations.
async fn begin_exclusive(connection: &mut Connection<'_>) -> Result<(), Failure> {
    match connection {
        Connection::Sqlite(_) => connection.script("BEGIN IMMEDIATE").await,
        Connection::Postgres(_) => {
            connection.script("BEGIN").await?;
            let lock = Statement::new("SELECT pg_advisory_xact_lock($1)").bind(POSTGRES_LOCK);
            connection.fetch(lock).await.map(drop)
        }
    }
}

/// 0 for an empty database.
async fn version(connection: &mut Connection<'_>) -> Result<i64, Failure> {
    let table_exists = Statement::new(match connection {
        Connection::Sqlite(_) => "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'tribune_schema'",
        // Not `to_regclass`, which may answer with the state before it waited for the lock.
        Connection::Postgres(_) => {
            "SELECT 1 FROM pg_catalog.pg_tables \
             WHERE tablename = 'tribune_schema' AND schemaname = ANY (current_schemas(false))"
        }
    });
    if connection.fetch_one(table_exists).await?.is_none() {
        return Ok(0);
    }
    let newest = Statement::new("SELECT COALESCE(MAX(version), 0) AS version FROM tribune_schema");
    let newest = connection.fetch_one(newest).await?;
    let version = newest.map_or(Ok(0), |row| row.get::<i64>("version"))?;
    if version > NEWEST {
        return Err(Failure::from(Error::unavailable(format!(
            "the database has version {version}, from a newer Tribune, and this one knows only {NEWEST}: update Tribune, \
             or use another database"
        ))));
    }
    Ok(version)
}
