//! Tasks.

use async_trait::async_trait;
use jiff::Timestamp;
use jiff::civil::Date;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::error::Result;
use crate::user::UserId;

/// How much a task matters; the most urgent first in order.
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

#[derive(Debug, Clone, PartialEq, Eq)]
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

/// What to change: `None` leaves a field as it is, `Some(None)` clears it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TaskChanges {
    pub title: Option<String>,
    pub description: Option<Option<String>>,
    pub priority: Option<Priority>,
    pub category: Option<Option<String>>,
    pub tags: Option<Vec<String>>,
    pub due_date: Option<Option<Date>>,
}

/// Which tasks; everything that is set must hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TaskFilter {
    pub completed: Option<bool>,
    pub priority: Option<Priority>,
    /// Compared without regard to case.
    pub category: Option<String>,
    /// A tag that must be there, compared without regard to case.
    pub tag: Option<String>,
    /// Due on this day or later.
    pub due_from: Option<Date>,
    /// Due on this day or earlier.
    pub due_until: Option<Date>,
    /// Words that must each occur in title, description, category or tags, as part of a word and
    /// without regard to case.
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

/// Where a list goes on: the last task that was given, by what it was sorted by. What is added or
/// changed in between neither repeats nor hides the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TaskCursor {
    pub priority: Priority,
    pub due_date: Option<Date>,
    pub id: Uuid,
}

impl From<&Task> for TaskCursor {
    fn from(task: &Task) -> Self {
        Self {
            priority: task.priority,
            due_date: task.due_date,
            id: task.id,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskPage {
    pub tasks: Vec<Task>,
    /// How many the filter lets through in all.
    pub total: u64,
    pub next: Option<TaskCursor>,
}

#[async_trait]
pub trait TaskStore: Send + Sync {
    async fn add(&self, owner: &UserId, task: &Task) -> Result<()>;

    async fn get(&self, owner: &UserId, id: Uuid) -> Result<Option<Task>>;

    /// At most `limit` tasks after the cursor.
    async fn list(
        &self,
        owner: &UserId,
        filter: &TaskFilter,
        limit: usize,
        after: Option<TaskCursor>,
    ) -> Result<TaskPage>;

    /// The task as it is then; `None` if the owner has no such task.
    async fn update(&self, owner: &UserId, id: Uuid, changes: &TaskChanges, now: Timestamp) -> Result<Option<Task>>;

    /// Completes a task or takes that back; `wanted` of `None` turns it round, whatever it was.
    async fn complete(&self, owner: &UserId, id: Uuid, wanted: Option<bool>, now: Timestamp) -> Result<Option<Task>>;

    /// The task as it was.
    async fn delete(&self, owner: &UserId, id: Uuid) -> Result<Option<Task>>;

    /// At most `limit` tasks, newest first, in which any of the words occurs as [`TaskFilter::words`] says.
    async fn find(&self, owner: &UserId, words: &[String], limit: usize) -> Result<Vec<Task>>;
}
