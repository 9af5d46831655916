//! The audit log: who called what, with which outcome.

use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;
use tribune_core::Result;

use crate::MAX_PAGE;
use crate::connection::{Connection, Statement, Write};
use crate::database::Database;
use crate::error::Failure;
use crate::value::{Row, json};

/// One action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditEntry {
    pub at: Timestamp,
    /// The user's name, `local`, `anonymous`, or the name that somebody tried to sign in with.
    pub who: String,
    /// The address that the request came from.
    pub peer: Option<String>,
    /// A tool, or what else was done, such as `sign in`.
    pub action: String,
    pub outcome: String,
    /// Ids of documents and tasks that were touched.
    pub ids: Vec<String>,
    /// The query text, or its digest.
    pub query: Option<String>,
    pub correlation_id: String,
}

/// Which entries to list.
#[derive(Debug, Clone, Default)]
pub struct AuditFilter {
    pub since: Option<Timestamp>,
    pub who: Option<String>,
}

/// The actions of all users, newest last.
#[derive(Clone)]
pub struct Audit {
    pub(crate) database: Arc<Database>,
}

impl Audit {
    /// Stores entries, and deletes those from before `keep_from`.
    pub async fn append(&self, entries: Vec<AuditEntry>, keep_from: Timestamp) -> Result<()> {
        self.database.write(Append { entries, keep_from }).await
    }

    /// The newest entries that meet the filter, oldest first; at most [`MAX_PAGE`].
    pub async fn list(&self, filter: &AuditFilter, limit: usize) -> Result<Vec<AuditEntry>> {
        let statement = Statement::new(
            "SELECT at, who, peer, action, outcome, ids, query, correlation_id FROM audit \
             WHERE at >= $1 AND ($2 IS NULL OR who = $2) ORDER BY at DESC, id DESC LIMIT $3",
        )
        .bind(filter.since.unwrap_or(Timestamp::MIN))
        .bind(filter.who.clone())
        .bind(i64::try_from(limit.min(MAX_PAGE)).unwrap_or(0));
        let mut entries: Vec<AuditEntry> =
            self.database.read(statement).await?.iter().map(entry).collect::<Result<_>>()?;
        entries.reverse();
        Ok(entries)
    }
}

struct Append {
    entries: Vec<AuditEntry>,
    keep_from: Timestamp,
}

#[async_trait]
impl Write for Append {
    type Output = ();
    const SINGLE: bool = false;

    async fn run(&self, connection: &mut Connection<'_>) -> Result<(), Failure> {
        for entry in &self.entries {
            let insert = Statement::new(
                "INSERT INTO audit (at, who, peer, action, outcome, ids, query, correlation_id) \
                 VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
            )
            .bind(entry.at)
            .bind(storable(&entry.who))
            .bind(entry.peer.clone())
            .bind(entry.action.as_str())
            .bind(entry.outcome.as_str())
            .bind(json(&entry.ids)?)
            .bind(entry.query.as_deref().map(storable))
            .bind(entry.correlation_id.as_str());
            connection.fetch(insert).await?;
        }
        let old = Statement::new("DELETE FROM audit WHERE at < $1");
        connection.fetch(old.bind(self.keep_from)).await.map(drop)
    }
}

/// Callers choose names, ids and queries, and no entry may be lost for what is in them.
fn storable(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}

fn entry(row: &Row) -> Result<AuditEntry> {
    Ok(AuditEntry {
        at: row.time("at")?,
        who: row.get("who")?,
        peer: row.get("peer")?,
        action: row.get("action")?,
        outcome: row.get("outcome")?,
        ids: row.texts("ids")?,
        query: row.get("query")?,
        correlation_id: row.get("correlation_id")?,
    })
}
