//! Tasks.

use async_trait::async_trait;
use jiff::Timestamp;
use jiff::civil::Date;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use tribune_core::Result;
use tribune_core::UserId;

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
    /// The number of all matching tasks.
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

    /// Returns the changed task; `None` if the owner has no such task.
    async fn update(&self, owner: &UserId, id: Uuid, changes: &TaskChanges, now: Timestamp) -> Result<Option<Task>>;

    /// Completes or reopens a task; `wanted` of `None` toggles it.
    async fn complete(&self, owner: &UserId, id: Uuid, wanted: Option<bool>, now: Timestamp) -> Result<Option<Task>>;

    /// Returns the deleted task.
    async fn delete(&self, owner: &UserId, id: Uuid) -> Result<Option<Task>>;

    /// At most `limit` tasks, newest first, that contain any of the words as in [`TaskFilter::words`].
    async fn find(&self, owner: &UserId, words: &[String], limit: usize) -> Result<Vec<Task>>;
}
