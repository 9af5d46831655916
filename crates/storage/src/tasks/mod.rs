//! Tasks.

mod changes;
mod listing;

use std::sync::Arc;

use jiff::Timestamp;
use jiff::civil::Date;
use serde::{Deserialize, Serialize};
use tribune_core::{Result, UserId};
use uuid::Uuid;

use crate::connection::Statement;
use crate::database::Database;
use crate::value::{Row, Value, unreadable};
use changes::Update;

/// A task's priority; the most urgent sorts first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Priority {
    High,
    #[default]
    Medium,
    Low,
}

impl Priority {
    pub const ALL: [Self; 3] = [Self::High, Self::Medium, Self::Low];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::High => "high",
            Self::Medium => "medium",
            Self::Low => "low",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Task {
    /// A version 7 UUID: ids grow with the time of creation.
    pub id: Uuid,
    pub title: String,
    pub description: Option<String>,
    pub priority: Priority,
    pub category: Option<String>,
    pub tags: Vec<String>,
    pub due_date: Option<Date>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    /// `None` while it is pending.
    pub completed_at: Option<Timestamp>,
}

/// Changes of a task: `None` leaves a field unchanged, `Some(None)` clears it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TaskChanges {
    pub title: Option<String>,
    pub description: Option<Option<String>>,
    pub priority: Option<Priority>,
    pub category: Option<Option<String>>,
    pub tags: Option<Vec<String>>,
    pub due_date: Option<Option<Date>>,
}

/// Conditions that must all hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TaskFilter {
    pub completed: Option<bool>,
    pub priority: Option<Priority>,
    /// Case-insensitive.
    pub category: Option<String>,
    /// A tag that the task must have; case-insensitive.
    pub tag: Option<String>,
    /// Due on this day or later.
    pub due_from: Option<Date>,
    /// Due on this day or earlier.
    pub due_until: Option<Date>,
    /// Words that must all occur in title, description, category or tags, also inside a word; case-insensitive.
    pub words: Vec<String>,
    pub sort: TaskSort,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TaskSort {
    /// Last created first.
    #[default]
    Newest,
    /// Next due first, those without a due date last; then oldest first.
    Due,
    /// Most important first, then oldest first.
    Priority,
}

/// Where a list continues: the sort keys of the last task returned. Concurrent changes neither repeat nor hide other
/// tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TaskCursor {
    pub priority: Priority,
    pub due_date: Option<Date>,
    pub id: Uuid,
}

impl From<&Task> for TaskCursor {
    fn from(task: &Task) -> Self {
        Self { priority: task.priority, due_date: task.due_date, id: task.id }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskPage {
    pub tasks: Vec<Task>,
    /// The number of all matching tasks.
    pub total: u64,
    pub next: Option<TaskCursor>,
}

/// Stored as the place in [`Priority::ALL`].
impl From<Priority> for Value {
    fn from(priority: Priority) -> Self {
        (priority as i64).into()
    }
}

/// The tasks of all users. Every method takes the owner first and touches only that owner's tasks.
#[derive(Clone)]
pub struct Tasks {
    pub(crate) database: Arc<Database>,
    /// The most tasks of one owner; 0 limits nothing.
    pub(crate) most: u64,
}

impl Tasks {
    /// With at most so many tasks for each owner.
    #[must_use]
    pub fn at_most(self, most: u64) -> Self {
        Self { most, ..self }
    }

    /// Returns the task that the statement returns.
    async fn write(&self, statement: Statement) -> Result<Option<Task>> {
        let row = self.database.write(statement).await?;
        row.as_ref().map(task).transpose()
    }

    pub async fn add(&self, owner: &UserId, task: &Task) -> Result<()> {
        if self.most == 0 {
            return self.database.write(changes::add(owner, task)?).await.map(drop);
        }
        let (owner, task, most) = (owner.clone(), task.clone(), self.most);
        self.database.write(changes::Add { owner, task, most }).await
    }

    pub async fn get(&self, owner: &UserId, id: Uuid) -> Result<Option<Task>> {
        let row = self.database.read_one(by_id(owner, id, "")).await?;
        row.as_ref().map(task).transpose()
    }

    /// At most `limit` tasks after the cursor.
    pub async fn list(
        &self,
        owner: &UserId,
        filter: &TaskFilter,
        limit: usize,
        after: Option<TaskCursor>,
    ) -> Result<TaskPage> {
        let statement = listing::page(owner, filter, limit, after)?;
        listing::read_page(&self.database.read(statement).await?, limit, after)
    }

    /// Returns the changed task; `None` if the owner has no such task.
    pub async fn update(
        &self,
        owner: &UserId,
        id: Uuid,
        changes: &TaskChanges,
        now: Timestamp,
    ) -> Result<Option<Task>> {
        let update = Update { owner: owner.clone(), id, changes: Some(changes.clone()), now };
        self.database.write(update).await
    }

    /// Exchanges a task with what it was before its last update, so that a second undo brings the update back. `None` if
    /// the owner has no such task; an invalid argument if it was never updated.
    pub async fn undo_update(&self, owner: &UserId, id: Uuid, now: Timestamp) -> Result<Option<Task>> {
        self.database.write(Update { owner: owner.clone(), id, changes: None, now }).await
    }

    /// Completes or reopens a task; `wanted` of `None` toggles it.
    pub async fn complete(
        &self,
        owner: &UserId,
        id: Uuid,
        wanted: Option<bool>,
        now: Timestamp,
    ) -> Result<Option<Task>> {
        self.write(changes::complete(owner, id, wanted, now)).await
    }

    /// Returns the deleted task.
    pub async fn delete(&self, owner: &UserId, id: Uuid) -> Result<Option<Task>> {
        self.write(changes::delete(owner, id)).await
    }

    /// At most `limit` tasks, newest first, that contain any of the words as in [`TaskFilter::words`].
    pub async fn find(&self, owner: &UserId, words: &[String], limit: usize) -> Result<Vec<Task>> {
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
    let sql = concat!("SELECT ", columns!(), ", previous FROM tasks WHERE owner = $1 AND id = $2");
    Statement::composed(format!("{sql}{ending}"), vec![owner.into(), id.into()])
}

fn task(row: &Row) -> Result<Task> {
    let place = usize::try_from(row.get::<i64>("priority")?).ok();
    let priority = place.and_then(|place| Priority::ALL.get(place));
    Ok(Task {
        id: row.uuid("id")?,
        title: row.get("title")?,
        description: row.get("description")?,
        priority: priority.copied().ok_or_else(|| unreadable("a priority"))?,
        category: row.get("category")?,
        tags: row.texts("tags")?,
        due_date: row.maybe_date("due_date")?,
        created_at: row.time("created_at")?,
        updated_at: row.time("updated_at")?,
        completed_at: row.maybe_time("completed_at")?,
    })
}
