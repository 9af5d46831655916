//! API tokens.

use std::fmt::Write as _;
use std::sync::Arc;

use crate::contract::{Token, TokenStore};
use async_trait::async_trait;
use jiff::Timestamp;
use tribune_core::Result;

use crate::check_key;
use crate::connection::Statement;
use crate::database::Database;
use crate::value::Row;

pub(crate) struct Tokens {
    database: Arc<Database>,
}

impl Tokens {
    pub(crate) fn new(database: Arc<Database>) -> Self {
        Self { database }
    }
}

macro_rules! columns {
    () => {
        "id, owner, label, created_at, expires_at, last_used, revoked_at"
    };
}

#[async_trait]
impl TokenStore for Tokens {
    async fn add(&self, token: &Token, sha256: [u8; 32]) -> Result<()> {
        check_key("the id of a token", &token.id)?;
        let statement = Statement::new(concat!(
            "INSERT INTO tokens (sha256, ",
            columns!(),
            ") VALUES ($1, $2, $3, $4, $5, $6, $7, $8)"
        ))
        .bind(hex(sha256))
        .bind(token.id.as_str())
        .bind(&token.user)
        .bind(token.label.clone())
        .bind(token.created_at)
        .bind(token.expires_at)
        .bind(token.last_used)
        .bind(token.revoked_at);
        self.database.write(statement).await.map(drop)
    }

    async fn find(&self, sha256: [u8; 32]) -> Result<Option<Token>> {
        let statement = Statement::new(concat!("SELECT ", columns!(), " FROM tokens WHERE sha256 = $1"));
        let row = self.database.read_one(statement.bind(hex(sha256))).await?;
        row.as_ref().map(token).transpose()
    }

    async fn list(&self) -> Result<Vec<Token>> {
        let statement = Statement::new(concat!("SELECT ", columns!(), " FROM tokens ORDER BY created_at, id"));
        self.database.read(statement).await?.iter().map(token).collect()
    }

    async fn revoke(&self, id: &str, now: Timestamp) -> Result<Option<Token>> {
        let statement = Statement::new(concat!(
            "UPDATE tokens SET revoked_at = COALESCE(revoked_at, $2) WHERE id = $1 RETURNING ",
            columns!()
        ));
        let row = self.database.write(statement.bind(id).bind(now)).await?;
        row.as_ref().map(token).transpose()
    }

    async fn record_use(&self, id: &str, at: Timestamp) -> Result<()> {
        let statement =
            Statement::new("UPDATE tokens SET last_used = $2 WHERE id = $1 AND (last_used IS NULL OR last_used < $2)");
        self.database.write(statement.bind(id).bind(at)).await.map(drop)
    }
}

fn token(row: &Row) -> Result<Token> {
    Ok(Token {
        id: row.text("id")?,
        user: row.user("owner")?,
        label: row.maybe_text("label")?,
        created_at: row.time("created_at")?,
        expires_at: row.maybe_time("expires_at")?,
        last_used: row.maybe_time("last_used")?,
        revoked_at: row.maybe_time("revoked_at")?,
    })
}

fn hex(sha256: [u8; 32]) -> String {
    let mut text = String::with_capacity(64);
    for byte in sha256 {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}
