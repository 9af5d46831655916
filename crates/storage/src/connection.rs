//! A connection to either database, and statements for both.

use std::borrow::Cow;

use async_trait::async_trait;
use sqlx::postgres::PgConnection;
use sqlx::sqlite::SqliteConnection;
use sqlx::{AssertSqlSafe, Executor as _};
use tribune_core::Error;

use crate::error::Failure;
use crate::value::{Row, Value};

/// SQL with its bound values.
#[derive(Debug, Clone)]
pub(crate) struct Statement {
    sql: Cow<'static, str>,
    values: Vec<Value>,
}

impl Statement {
    pub(crate) fn new(sql: &'static str) -> Self {
        Self::composed(sql, Vec::new())
    }

    /// SQL composed from constants; it must contain no external text.
    pub(crate) fn composed(sql: impl Into<Cow<'static, str>>, values: Vec<Value>) -> Self {
        let sql = sql.into();
        Self { sql, values }
    }

    #[must_use]
    pub(crate) fn bind(mut self, value: impl Into<Value>) -> Self {
        self.values.push(value.into());
        self
    }

    /// PostgreSQL cannot store NUL, so both databases refuse it.
    fn check(&self) -> Result<(), Error> {
        let has_nul = |value: &Value| matches!(value, Value::Text(Some(text)) if text.contains('\0'));
        if self.values.iter().any(has_nul) {
            return Err(Error::invalid_argument(
                "the text contains a NUL character, which cannot be stored: remove it",
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

    /// One or several statements without values.
    pub(crate) async fn script(&mut self, sql: &'static str) -> Result<(), Failure> {
        match self {
            Self::Sqlite(connection) => connection.execute(sqlx::raw_sql(sql)).await.map(|_| ())?,
            Self::Postgres(connection) => connection.execute(sqlx::raw_sql(sql)).await.map(|_| ())?,
        }
        Ok(())
    }

    /// The end of a `SELECT` that locks its rows until the transaction ends. SQLite has one writer and needs none.
    pub(crate) const fn locking(&self) -> &'static str {
        match self {
            Self::Sqlite(_) => "",
            Self::Postgres(_) => " FOR UPDATE",
        }
    }
}

/// An atomic change. It owns its data, so that it can run in its own task and be retried after a conflict.
#[async_trait]
pub(crate) trait Write: Send + Sync + 'static {
    type Output: Send + 'static;

    /// Whether it is one statement, which is atomic without a transaction.
    const SINGLE: bool;

    async fn run(&self, connection: &mut Connection<'_>) -> Result<Self::Output, Failure>;
}

/// One statement; returns the row that it gives, if it gives one.
#[async_trait]
impl Write for Statement {
    type Output = Option<Row>;
    const SINGLE: bool = true;

    async fn run(&self, connection: &mut Connection<'_>) -> Result<Option<Row>, Failure> {
        connection.fetch_one(self.clone()).await
    }
}
