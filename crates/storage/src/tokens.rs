//! API tokens. Only their SHA-256 is stored.

use std::sync::Arc;

use jiff::Timestamp;
use tribune_core::{Result, UserId};

use crate::check_key;
use crate::connection::Statement;
use crate::database::Database;
use crate::value::{Row, hex, json};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    /// Short, public, and part of the token itself: identifies it in lists and when it is revoked.
    pub id: String,
    pub user: UserId,
    /// A description by its creator.
    pub label: Option<String>,
    /// What it may be used for; `None` for a token that is older than scopes.
    pub scopes: Option<Vec<String>>,
    /// The one profile that it opens; `None` for all.
    pub profile: Option<String>,
    pub created_at: Timestamp,
    pub expires_at: Option<Timestamp>,
    pub last_used: Option<Timestamp>,
    pub revoked_at: Option<Timestamp>,
}

/// The tokens of all users. Its methods take no owner: they find the owner.
#[derive(Clone)]
pub struct Tokens {
    pub(crate) database: Arc<Database>,
}

macro_rules! columns {
    () => {
        "id, owner, label, scopes, profile, created_at, expires_at, last_used, revoked_at"
    };
}

impl Tokens {
    pub async fn add(&self, token: &Token, sha256: [u8; 32]) -> Result<()> {
        check_key("the id of a token", &token.id)?;
        let statement = Statement::new(concat!(
            "INSERT INTO tokens (sha256, ",
            columns!(),
            ") VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)"
        ))
        .bind(hex(sha256))
        .bind(token.id.as_str())
        .bind(&token.user)
        .bind(token.label.clone())
        .bind(token.scopes.as_deref().map(json).transpose()?)
        .bind(token.profile.clone())
        .bind(token.created_at)
        .bind(token.expires_at)
        .bind(token.last_used)
        .bind(token.revoked_at);
        self.database.write(statement).await.map(drop)
    }

    /// Includes revoked and expired tokens; the caller decides.
    pub async fn find(&self, sha256: [u8; 32]) -> Result<Option<Token>> {
        let statement = Statement::new(concat!("SELECT ", columns!(), " FROM tokens WHERE sha256 = $1"));
        let row = self.database.read_one(statement.bind(hex(sha256))).await?;
        row.as_ref().map(token).transpose()
    }

    /// All tokens in order of creation.
    pub async fn list(&self) -> Result<Vec<Token>> {
        let statement = Statement::new(concat!("SELECT ", columns!(), " FROM tokens ORDER BY created_at, id"));
        self.database.read(statement).await?.iter().map(token).collect()
    }

    /// Returns the revoked token; a second revocation keeps the first time. `None` if the id is unknown.
    pub async fn revoke(&self, id: &str, now: Timestamp) -> Result<Option<Token>> {
        let statement = Statement::new(concat!(
            "UPDATE tokens SET revoked_at = COALESCE(revoked_at, $2) WHERE id = $1 RETURNING ",
            columns!()
        ));
        let row = self.database.write(statement.bind(id).bind(now)).await?;
        row.as_ref().map(token).transpose()
    }

    /// Records a use; an earlier time than the recorded one changes nothing.
    pub async fn record_use(&self, id: &str, at: Timestamp) -> Result<()> {
        let statement =
            Statement::new("UPDATE tokens SET last_used = $2 WHERE id = $1 AND (last_used IS NULL OR last_used < $2)");
        self.database.write(statement.bind(id).bind(at)).await.map(drop)
    }
}

fn token(row: &Row) -> Result<Token> {
    Ok(Token {
        id: row.get("id")?,
        user: row.user("owner")?,
        label: row.get("label")?,
        scopes: row.maybe_texts("scopes")?,
        profile: row.get("profile")?,
        created_at: row.time("created_at")?,
        expires_at: row.maybe_time("expires_at")?,
        last_used: row.maybe_time("last_used")?,
        revoked_at: row.maybe_time("revoked_at")?,
    })
}
