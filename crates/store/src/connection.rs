//! A connection to either database, and statements that both understand.

use std::borrow::Cow;

use sqlx::postgres::PgConnection;
use sqlx::sqlite::SqliteConnection;
use sqlx::{AssertSqlSafe, Executor as _};
use tribune_core::Error;

use crate::error::Failure;
use crate::value::{Row, Value};

/// SQL, with its values apart from it.
#[derive(Debug, Clone)]
pub(crate) struct Statement {
    sql: Cow<'static, str>,
    values: Vec<Value>,
}

impl Statement {
    pub(crate) fn new(sql: &'static str) -> Self {
        Self {
            sql: Cow::Borrowed(sql),
            values: Vec::new(),
        }
    }

    /// SQL that was put together from constants; nothing that came from outside may be in it.
    pub(crate) fn composed(sql: String, values: Vec<Value>) -> Self {
        Self {
            sql: Cow::Owned(sql),
            values,
        }
    }

    #[must_use]
    pub(crate) fn bind(mut self, value: impl Into<Value>) -> Self {
        self.values.push(value.into());
        self
    }

    /// PostgreSQL keeps no NUL character; so that both databases are alike, SQLite is not asked to either.
    fn check(&self) -> Result<(), Error> {
        let has_nul = |value: &Value| matches!(value, Value::Text(Some(text)) if text.contains('\0'));
        if self.values.iter().any(has_nul) {
            return Err(Error::invalid_argument(
                "the text has a NUL character in it, which cannot be kept: take it out",
            ));
        }
        Ok(())
    }
}

macro_rules! prepared {
    ($statement:expr) => {{
        let mut query = sqlx::query(AssertSqlSafe($statement.sql));
        for value in $statement.values {
            query = match value {
                Value::Text(text) => query.bind(text),
                Value::Integer(number) => query.bind(number),
            };
        }
        query
    }};
}

pub(crate) enum Connection<'c> {
    Sqlite(&'c mut SqliteConnection),
    Postgres(&'c mut PgConnection),
}

impl Connection<'_> {
    pub(crate) async fn fetch(&mut self, statement: Statement) -> Result<Vec<Row>, Failure> {
        statement.check()?;
        Ok(match self {
            Self::Sqlite(connection) => {
                let rows = prepared!(statement).fetch_all(&mut **connection).await?;
                rows.into_iter().map(Row::Sqlite).collect()
            }
            Self::Postgres(connection) => {
                let rows = prepared!(statement).fetch_all(&mut **connection).await?;
                rows.into_iter().map(Row::Postgres).collect()
            }
        })
    }

    /// At most one row is expected.
    pub(crate) async fn fetch_one(&mut self, statement: Statement) -> Result<Option<Row>, Failure> {
        Ok(self.fetch(statement).await?.into_iter().next())
    }

    /// How many rows it concerned.
    pub(crate) async fn execute(&mut self, statement: Statement) -> Result<u64, Failure> {
        statement.check()?;
        Ok(match self {
            Self::Sqlite(connection) => prepared!(statement).execute(&mut **connection).await?.rows_affected(),
            Self::Postgres(connection) => prepared!(statement).execute(&mut **connection).await?.rows_affected(),
        })
    }

    /// One or several statements without values.
    pub(crate) async fn script(&mut self, sql: &'static str) -> Result<(), Failure> {
        match self {
            Self::Sqlite(connection) => connection.execute(sqlx::raw_sql(sql)).await.map(|_| ())?,
            Self::Postgres(connection) => connection.execute(sqlx::raw_sql(sql)).await.map(|_| ())?,
        }
        Ok(())
    }

    /// What to end a `SELECT` with so that its rows stay as they are until the transaction ends. SQLite has one
    /// writer at a time, and needs nothing.
    pub(crate) const fn locking(&self) -> &'static str {
        match self {
            Self::Sqlite(_) => "",
            Self::Postgres(_) => " FOR UPDATE",
        }
    }
}
