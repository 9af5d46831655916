//! What people allowed programs to do: grants, with their codes and tokens, and the programs that registered themselves.
//! Only the SHA-256 of a secret is stored.

use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;
use tribune_core::{Result, UserId};

use crate::check_key;
use crate::connection::{Connection, Statement, Write};
use crate::database::Database;
use crate::error::Failure;
use crate::value::{Row, hex, json, unreadable};

/// What a person allowed a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    pub id: String,
    pub user: UserId,
    pub client: String,
    pub client_name: String,
    pub scopes: Vec<String>,
    /// The one profile that it opens; `None` for all.
    pub profile: Option<String>,
    pub created_at: Timestamp,
    pub expires_at: Timestamp,
    /// When the program last got tokens.
    pub used_at: Option<Timestamp>,
    pub revoked_at: Option<Timestamp>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SecretKind {
    Code,
    Access,
    Refresh,
}

impl SecretKind {
    const ALL: [Self; 3] = [Self::Code, Self::Access, Self::Refresh];

    const fn as_str(self) -> &'static str {
        match self {
            Self::Code => "code",
            Self::Access => "access",
            Self::Refresh => "refresh",
        }
    }
}

/// A code or a token of a grant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GrantSecret {
    pub sha256: [u8; 32],
    pub kind: SecretKind,
    /// What must be proved to use a code, as JSON.
    pub proof: Option<String>,
    /// What an access token allows; `None` for what its grant allows.
    pub scopes: Option<Vec<String>>,
    pub expires_at: Timestamp,
    /// When a code was redeemed or a refresh token replaced.
    pub used_at: Option<Timestamp>,
}

/// The grants of all users.
#[derive(Clone)]
pub struct Grants {
    pub(crate) database: Arc<Database>,
}

macro_rules! columns {
    () => {
        "grants.id, grants.owner, grants.client, grants.client_name, grants.scopes, grants.profile, \
         grants.created_at, grants.expires_at, grants.used_at, grants.revoked_at"
    };
}

impl Grants {
    /// Also deletes grants that have expired.
    pub async fn begin(&self, grant: &Grant, code: &GrantSecret) -> Result<()> {
        check_key("the id of a client", &grant.client)?;
        let (grant, code) = (grant.clone(), code.clone());
        self.database.write(Begin { grant, code }).await
    }

    /// The grant of a secret, with the secret as it is stored. Includes what has expired or was revoked; the caller decides.
    pub async fn find(&self, sha256: [u8; 32]) -> Result<Option<(Grant, GrantSecret)>> {
        let row = self.database.read_one(by_secret(sha256, "")).await?;
        row.map(|row| Ok((grant(&row)?, secret(&row, sha256)?))).transpose()
    }

    /// Returns false, and changes nothing, if the secret is unknown, was used too long ago or too often, or its grant was
    /// revoked.
    pub async fn exchange(&self, exchange: Exchange) -> Result<bool> {
        self.database.write(exchange).await
    }

    /// A revocation keeps the first time. Returns whether there is such a grant.
    pub async fn revoke(&self, id: &str, now: Timestamp) -> Result<bool> {
        let statement =
            Statement::new("UPDATE grants SET revoked_at = COALESCE(revoked_at, $2) WHERE id = $1 RETURNING id");
        Ok(self.database.write(statement.bind(id).bind(now)).await?.is_some())
    }

    /// Ends one secret; the others of its grant stay.
    pub async fn end_secret(&self, sha256: [u8; 32]) -> Result<()> {
        let statement = Statement::new("DELETE FROM grant_secrets WHERE sha256 = $1");
        self.database.write(statement.bind(hex(sha256))).await.map(drop)
    }

    /// The grants of a user that are in force, in order of creation.
    pub async fn list(&self, owner: &UserId, now: Timestamp) -> Result<Vec<Grant>> {
        let statement = Statement::new(concat!(
            "SELECT ",
            columns!(),
            " FROM grants WHERE owner = $1 AND expires_at > $2 AND revoked_at IS NULL ORDER BY created_at, id"
        ));
        let rows = self.database.read(statement.bind(owner).bind(now)).await?;
        rows.iter().map(grant).collect()
    }

    /// Stores a program that registered itself, or the use of one that did before. Of programs without a grant, those
    /// beyond `most` are forgotten that were not used for the longest time.
    pub async fn register(&self, id: &str, metadata: &str, now: Timestamp, most: u32) -> Result<()> {
        check_key("the id of a client", id)?;
        let statement = Statement::new(
            "INSERT INTO oauth_clients (id, metadata, used_at) VALUES ($1, $2, $3) \
             ON CONFLICT (id) DO UPDATE SET used_at = excluded.used_at",
        );
        self.database.write(statement.bind(id).bind(metadata).bind(now)).await?;
        let forget = Statement::new(
            "DELETE FROM oauth_clients WHERE id IN \
             (SELECT id FROM oauth_clients WHERE NOT EXISTS (SELECT 1 FROM grants WHERE client = oauth_clients.id) \
             ORDER BY used_at DESC, id LIMIT 100 OFFSET $1)",
        );
        self.database.write(forget.bind(i64::from(most))).await.map(drop)
    }

    /// The metadata of a program that registered itself.
    pub async fn registered(&self, id: &str) -> Result<Option<String>> {
        let statement = Statement::new("SELECT metadata FROM oauth_clients WHERE id = $1");
        let row = self.database.read_one(statement.bind(id)).await?;
        row.map(|row| row.get("metadata")).transpose()
    }
}

/// `ending` is SQL, as [`Connection::locking`] gives it.
fn by_secret(sha256: [u8; 32], ending: &'static str) -> Statement {
    let sql = concat!(
        "SELECT ",
        columns!(),
        ", kind, proof, grant_secrets.scopes AS secret_scopes, grant_secrets.expires_at AS secret_expires_at, \
         grant_secrets.used_at AS secret_used_at, uses \
         FROM grant_secrets JOIN grants ON grants.id = grant_secrets.grant_id WHERE sha256 = $1"
    );
    Statement::composed(format!("{sql}{ending}"), vec![hex(sha256).into()])
}

fn insert(grant: &str, secret: &GrantSecret) -> Result<Statement> {
    let statement = Statement::new(
        "INSERT INTO grant_secrets (sha256, grant_id, kind, proof, scopes, expires_at, used_at) \
         VALUES ($1, $2, $3, $4, $5, $6, $7)",
    )
    .bind(hex(secret.sha256))
    .bind(grant)
    .bind(secret.kind.as_str())
    .bind(secret.proof.clone())
    .bind(secret.scopes.as_deref().map(json).transpose()?)
    .bind(secret.expires_at)
    .bind(secret.used_at);
    Ok(statement)
}

struct Begin {
    grant: Grant,
    code: GrantSecret,
}

#[async_trait]
impl Write for Begin {
    type Output = ();
    const SINGLE: bool = false;

    async fn run(&self, connection: &mut Connection<'_>) -> Result<(), Failure> {
        let grant = &self.grant;
        for sql in [
            "DELETE FROM grant_secrets WHERE grant_id IN (SELECT id FROM grants WHERE expires_at <= $1)",
            "DELETE FROM grants WHERE expires_at <= $1",
        ] {
            connection.fetch(Statement::new(sql).bind(grant.created_at)).await?;
        }
        let begin = Statement::new(
            "INSERT INTO grants (id, owner, client, client_name, scopes, profile, created_at, expires_at, used_at, \
             revoked_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
        )
        .bind(grant.id.as_str())
        .bind(&grant.user)
        .bind(grant.client.as_str())
        .bind(grant.client_name.as_str())
        .bind(json(&grant.scopes)?)
        .bind(grant.profile.clone())
        .bind(grant.created_at)
        .bind(grant.expires_at)
        .bind(grant.used_at)
        .bind(grant.revoked_at);
        connection.fetch(begin).await?;
        let used = Statement::new("UPDATE oauth_clients SET used_at = $2 WHERE id = $1");
        connection.fetch(used.bind(grant.client.as_str()).bind(grant.created_at)).await?;
        connection.fetch(insert(&grant.id, &self.code)?).await.map(drop)
    }
}

/// A secret is used, and others take its place, in one change.
#[derive(Debug, Clone)]
pub struct Exchange {
    pub used: [u8; 32],
    pub now: Timestamp,
    /// A secret that was used at this time or later may be used again.
    pub reusable_from: Timestamp,
    /// How often a secret may be used at all.
    pub most_uses: u32,
    pub new: Vec<GrantSecret>,
    /// When the grant now ends at the earliest.
    pub expires_at: Timestamp,
}

#[async_trait]
impl Write for Exchange {
    type Output = bool;
    const SINGLE: bool = false;

    async fn run(&self, connection: &mut Connection<'_>) -> Result<bool, Failure> {
        let Some(row) = connection.fetch_one(by_secret(self.used, connection.locking())).await? else {
            return Ok(false);
        };
        let (grant, before) = (grant(&row)?, secret(&row, self.used)?);
        let is_late = before.used_at.is_some_and(|used| used < self.reusable_from);
        if grant.revoked_at.is_some() || is_late || row.get::<i64>("uses")? >= i64::from(self.most_uses) {
            return Ok(false);
        }
        let mark = "UPDATE grant_secrets SET used_at = COALESCE(used_at, $2), uses = uses + 1 WHERE sha256 = $1";
        let mark = Statement::new(mark);
        connection.fetch(mark.bind(hex(self.used)).bind(self.now)).await?;
        let old = Statement::new("DELETE FROM grant_secrets WHERE grant_id = $1 AND expires_at <= $2");
        connection.fetch(old.bind(grant.id.as_str()).bind(self.now)).await?;
        let expires_at = grant.expires_at.max(self.expires_at);
        let extend = Statement::new("UPDATE grants SET expires_at = $2, used_at = $3 WHERE id = $1");
        connection.fetch(extend.bind(grant.id.as_str()).bind(expires_at).bind(self.now)).await?;
        for new in &self.new {
            connection.fetch(insert(&grant.id, new)?).await?;
        }
        Ok(true)
    }
}

fn grant(row: &Row) -> Result<Grant> {
    Ok(Grant {
        id: row.get("id")?,
        user: row.user("owner")?,
        client: row.get("client")?,
        client_name: row.get("client_name")?,
        scopes: row.texts("scopes")?,
        profile: row.get("profile")?,
        created_at: row.time("created_at")?,
        expires_at: row.time("expires_at")?,
        used_at: row.maybe_time("used_at")?,
        revoked_at: row.maybe_time("revoked_at")?,
    })
}

fn secret(row: &Row, sha256: [u8; 32]) -> Result<GrantSecret> {
    let stored: String = row.get("kind")?;
    let kind = SecretKind::ALL.into_iter().find(|kind| kind.as_str() == stored);
    Ok(GrantSecret {
        sha256,
        kind: kind.ok_or_else(|| unreadable("a kind of token"))?,
        proof: row.get("proof")?,
        scopes: row.maybe_texts("secret_scopes")?,
        expires_at: row.time("secret_expires_at")?,
        used_at: row.maybe_time("secret_used_at")?,
    })
}
