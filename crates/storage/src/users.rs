//! People who sign in, and the browsers in which they have.

use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;
use tribune_core::{Error, Result, UserId};

use crate::check_key;
use crate::connection::{Connection, Statement, Write};
use crate::database::Database;
use crate::error::Failure;
use crate::value::{Row, hex, json};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    pub name: UserId,
    /// An Argon2id hash in the PHC string format; `None` for a user who signs in elsewhere.
    pub password: Option<String>,
    /// The issuer and the subject of a user who signs in elsewhere.
    pub login: Option<String>,
    pub groups: Vec<String>,
    pub created_at: Timestamp,
}

/// All users. Adding a reserved name, or an existing name or login, is an invalid argument.
#[derive(Clone)]
pub struct Users {
    pub(crate) database: Arc<Database>,
}

macro_rules! columns {
    () => {
        "name, password, login, user_groups, created_at"
    };
}

impl Users {
    pub async fn add(&self, user: &User) -> Result<()> {
        if user.name.is_reserved() {
            let name = &user.name;
            return Err(Error::invalid_argument(format!("the name `{name}` is reserved; choose another one")));
        }
        if let Some(login) = &user.login {
            check_key("the name of a login", login)?;
        }
        let statement = Statement::new(concat!("INSERT INTO users (", columns!(), ") VALUES ($1, $2, $3, $4, $5)"))
            .bind(&user.name)
            .bind(user.password.clone())
            .bind(user.login.clone())
            .bind(json(&user.groups)?)
            .bind(user.created_at);
        self.database.write(statement).await.map(drop)
    }

    pub async fn find(&self, name: &UserId) -> Result<Option<User>> {
        let statement = Statement::new(concat!("SELECT ", columns!(), " FROM users WHERE name = $1"));
        self.one(statement.bind(name)).await
    }

    /// The user who signs in elsewhere with this login.
    pub async fn find_login(&self, login: &str) -> Result<Option<User>> {
        let statement = Statement::new(concat!("SELECT ", columns!(), " FROM users WHERE login = $1"));
        self.one(statement.bind(login)).await
    }

    /// All users by name.
    pub async fn list(&self) -> Result<Vec<User>> {
        let statement = Statement::new(concat!("SELECT ", columns!(), " FROM users ORDER BY name"));
        self.database.read(statement).await?.iter().map(user).collect()
    }

    /// Replaces the groups of a user.
    pub async fn set_groups(&self, name: &UserId, groups: &[String]) -> Result<()> {
        let statement = Statement::new("UPDATE users SET user_groups = $2 WHERE name = $1");
        self.database.write(statement.bind(name).bind(json(groups)?)).await.map(drop)
    }

    /// Changes the password, and ends everything that the old one opened. Returns whether there is such a user.
    pub async fn set_password(&self, name: &UserId, password: String) -> Result<bool> {
        let set = Statement::new("UPDATE users SET password = $2 WHERE name = $1 RETURNING name");
        self.end_access(name, set.bind(name).bind(password)).await
    }

    /// Removes the user and everything that gives access as this user. Tasks and conversations stay.
    pub async fn remove(&self, name: &UserId) -> Result<bool> {
        let remove = Statement::new("DELETE FROM users WHERE name = $1 RETURNING name");
        self.end_access(name, remove.bind(name)).await
    }

    async fn end_access(&self, name: &UserId, first: Statement) -> Result<bool> {
        let name = name.clone();
        self.database.write(EndAccess { name, first }).await
    }

    async fn one(&self, statement: Statement) -> Result<Option<User>> {
        self.database.read_one(statement).await?.as_ref().map(user).transpose()
    }
}

/// Changes a user, then ends the user's sessions, grants and API tokens.
struct EndAccess {
    name: UserId,
    first: Statement,
}

#[async_trait]
impl Write for EndAccess {
    type Output = bool;
    const SINGLE: bool = false;

    async fn run(&self, connection: &mut Connection<'_>) -> Result<bool, Failure> {
        if connection.fetch_one(self.first.clone()).await?.is_none() {
            return Ok(false);
        }
        for sql in [
            "DELETE FROM browser_sessions WHERE owner = $1",
            "DELETE FROM grant_secrets WHERE grant_id IN (SELECT id FROM grants WHERE owner = $1)",
            "DELETE FROM grants WHERE owner = $1",
            "DELETE FROM tokens WHERE owner = $1",
        ] {
            connection.fetch(Statement::new(sql).bind(&self.name)).await?;
        }
        Ok(true)
    }
}

fn user(row: &Row) -> Result<User> {
    Ok(User {
        name: row.user("name")?,
        password: row.get("password")?,
        login: row.get("login")?,
        groups: row.texts("user_groups")?,
        created_at: row.time("created_at")?,
    })
}

/// A browser in which somebody signed in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrowserSession {
    pub owner: UserId,
    pub scopes: Vec<String>,
    /// The id of the API token that it was opened with, if it was: the session ends with the token.
    pub token: Option<String>,
    pub created_at: Timestamp,
    pub expires_at: Timestamp,
}

/// Browsers in which people have signed in. Only the SHA-256 of a session's secret is stored.
#[derive(Clone)]
pub struct BrowserSessions {
    pub(crate) database: Arc<Database>,
}

impl BrowserSessions {
    /// Also deletes sessions that have expired.
    pub async fn begin(&self, sha256: [u8; 32], session: &BrowserSession) -> Result<()> {
        let old = Statement::new("DELETE FROM browser_sessions WHERE expires_at <= $1");
        self.database.write(old.bind(session.created_at)).await?;
        let statement = Statement::new(
            "INSERT INTO browser_sessions (sha256, owner, scopes, token, created_at, expires_at) \
             VALUES ($1, $2, $3, $4, $5, $6)",
        )
        .bind(hex(sha256))
        .bind(&session.owner)
        .bind(json(&session.scopes)?)
        .bind(session.token.clone())
        .bind(session.created_at)
        .bind(session.expires_at);
        self.database.write(statement).await.map(drop)
    }

    /// The session, unless it or the token that opened it has ended.
    pub async fn find(&self, sha256: [u8; 32], now: Timestamp) -> Result<Option<BrowserSession>> {
        let statement = Statement::new(
            "SELECT s.owner, s.scopes, s.token, s.created_at, s.expires_at FROM browser_sessions s \
             LEFT JOIN tokens t ON t.id = s.token \
             WHERE s.sha256 = $1 AND s.expires_at > $2 AND (s.token IS NULL OR (t.id IS NOT NULL \
             AND t.revoked_at IS NULL AND (t.expires_at IS NULL OR t.expires_at > $2)))",
        );
        let row = self.database.read_one(statement.bind(hex(sha256)).bind(now)).await?;
        row.as_ref().map(session).transpose()
    }

    pub async fn end(&self, sha256: [u8; 32]) -> Result<()> {
        let statement = Statement::new("DELETE FROM browser_sessions WHERE sha256 = $1");
        self.database.write(statement.bind(hex(sha256))).await.map(drop)
    }
}

fn session(row: &Row) -> Result<BrowserSession> {
    Ok(BrowserSession {
        owner: row.user("owner")?,
        scopes: row.texts("scopes")?,
        token: row.get("token")?,
        created_at: row.time("created_at")?,
        expires_at: row.time("expires_at")?,
    })
}
