//! Tasks.

mod changes;
mod listing;

use std::sync::Arc;

use crate::contract::{Task, TaskChanges, TaskCursor, TaskFilter, TaskPage, TaskStore};
use async_trait::async_trait;
use jiff::Timestamp;
use tribune_core::{Result, UserId};
use uuid::Uuid;

use crate::connection::Statement;
use crate::database::Database;
use crate::value::Row;
use changes::Update;

pub(crate) struct Tasks {
    database: Arc<Database>,
}

impl Tasks {
    pub(crate) fn new(database: Arc<Database>) -> Self {
        Self { database }
    }

    /// Returns the task that the statement returns.
    async fn write(&self, statement: Statement) -> Result<Option<Task>> {
        let row = self.database.write(statement).await?;
        row.as_ref().map(task).transpose()
    }
}

#[async_trait]
impl TaskStore for Tasks {
    async fn add(&self, owner: &UserId, task: &Task) -> Result<()> {
        self.database.write(changes::add(owner, task)?).await.map(drop)
    }

    async fn get(&self, owner: &UserId, id: Uuid) -> Result<Option<Task>> {
        let row = self.database.read_one(by_id(owner, id, "")).await?;
        row.as_ref().map(task).transpose()
    }

    async fn list(
        &self,
        owner: &UserId,
        filter: &TaskFilter,
        limit: usize,
        after: Option<TaskCursor>,
    ) -> Result<TaskPage> {
        let statement = listing::page(owner, filter, limit, after)?;
        listing::read_page(&self.database.read(statement).await?, limit, after)
    }

    async fn update(&self, owner: &UserId, id: Uuid, changes: &TaskChanges, now: Timestamp) -> Result<Option<Task>> {
        let update = Update {
            owner: owner.clone(),
            id,
            changes: changes.clone(),
            now,
        };
        self.database.write(update).await
    }

    async fn complete(&self, owner: &UserId, id: Uuid, wanted: Option<bool>, now: Timestamp) -> Result<Option<Task>> {
        self.write(changes::complete(owner, id, wanted, now)).await
    }

    async fn delete(&self, owner: &UserId, id: Uuid) -> Result<Option<Task>> {
        self.write(changes::delete(owner, id)).await
    }

    async fn find(&self, owner: &UserId, words: &[String], limit: usize) -> Result<Vec<Task>> {
        if words.is_empty() {
            return Ok(Vec::new());
        }
        let rows = self.database.read(listing::any_word(owner, words, limit)?).await?;
        rows.iter().map(task).collect()
    }
}

/// The columns of a [`Task`].
macro_rules! columns {
    () => {
        "id, title, description, priority, category, tags, due_date, created_at, updated_at, completed_at"
    };
}
use columns;

/// `ending` is SQL, as [`crate::connection::Connection::locking`] gives it.
fn by_id(owner: &UserId, id: Uuid, ending: &'static str) -> Statement {
    let sql = concat!("SELECT ", columns!(), " FROM tasks WHERE owner = $1 AND id = $2");
    Statement::composed(format!("{sql}{ending}"), vec![owner.into(), id.into()])
}

fn task(row: &Row) -> Result<Task> {
    Ok(Task {
        id: row.uuid("id")?,
        title: row.text("title")?,
        description: row.maybe_text("description")?,
        priority: row.priority("priority")?,
        category: row.maybe_text("category")?,
        tags: row.texts("tags")?,
        due_date: row.maybe_date("due_date")?,
        created_at: row.time("created_at")?,
        updated_at: row.time("updated_at")?,
        completed_at: row.maybe_time("completed_at")?,
    })
}
