//! Changes of tasks.

use async_trait::async_trait;
use jiff::Timestamp;
use jiff::civil::Date;
use serde::{Deserialize, Serialize};
use tribune_core::{Error, Result, UserId};
use uuid::Uuid;

use super::{Priority, Task, TaskChanges, by_id, columns, task};
use crate::connection::{Connection, Statement, Write};
use crate::error::Failure;
use crate::text::{fold, search_text, tags_key};
use crate::value::{Row, Value, json, truncate_time, unreadable};

/// All columns of a task, in the order in which both statements below number them.
fn columns_of(owner: &UserId, task: &Task) -> Result<Vec<Value>> {
    let optional = [task.description.as_deref(), task.category.as_deref()];
    let searched = [task.title.as_str()]
        .into_iter()
        .chain(optional.into_iter().flatten())
        .chain(task.tags.iter().map(String::as_str));
    Ok(vec![
        owner.into(),
        task.id.into(),
        task.title.as_str().into(),
        task.description.clone().into(),
        task.priority.into(),
        task.category.clone().into(),
        json(&task.tags)?.into(),
        task.due_date.into(),
        task.created_at.into(),
        task.updated_at.into(),
        task.completed_at.into(),
        // By these, tasks are compared and searched.
        task.category.as_deref().map(fold).into(),
        tags_key(&task.tags).into(),
        search_text(searched).into(),
    ])
}

pub(super) fn add(owner: &UserId, task: &Task) -> Result<Statement> {
    let sql = concat!(
        "INSERT INTO tasks (owner, ",
        columns!(),
        ", category_key, tags_key, search) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)"
    );
    Ok(Statement::composed(sql, columns_of(owner, task)?))
}

/// Counts the owner's tasks in the same transaction.
pub(super) struct Add {
    pub(super) owner: UserId,
    pub(super) task: Task,
    pub(super) most: u64,
}

#[async_trait]
impl Write for Add {
    type Output = ();
    const SINGLE: bool = false;

    async fn run(&self, connection: &mut Connection<'_>) -> Result<(), Failure> {
        let count = Statement::new("SELECT COUNT(*) AS stored FROM tasks WHERE owner = $1").bind(&self.owner);
        let row = connection.fetch_one(count).await?;
        let stored: i64 = row.map(|row| row.get("stored")).transpose()?.unwrap_or(0);
        if u64::try_from(stored).is_ok_and(|stored| stored >= self.most) {
            return Err(Failure::from(Error::rate_limited(format!(
                "you have {stored} tasks, and a user may have {} (limits.tasks_per_user): delete some first",
                self.most
            ))));
        }
        connection.fetch(add(&self.owner, &self.task)?).await.map(drop)
    }
}

/// `previous` of `None` leaves the previous version as it is.
fn replace(owner: &UserId, task: &Task, previous: Option<&Version>) -> Result<Statement> {
    let sql = "UPDATE tasks SET title = $3, description = $4, priority = $5, category = $6, tags = $7, due_date = $8, \
         created_at = $9, updated_at = $10, completed_at = $11, category_key = $12, tags_key = $13, search = $14, \
         previous = COALESCE($15, previous) WHERE owner = $1 AND id = $2";
    let previous = previous.map(serde_json::to_string).transpose();
    let previous = previous.map_err(|error| Error::internal("a task could not be written as JSON").caused_by(error))?;
    Ok(Statement::composed(sql, columns_of(owner, task)?).bind(previous))
}

/// What an update changes of a task, stored as JSON.
#[derive(PartialEq, Eq, Serialize, Deserialize)]
struct Version {
    title: String,
    description: Option<String>,
    priority: Priority,
    category: Option<String>,
    tags: Vec<String>,
    due_date: Option<Date>,
}

impl Version {
    fn of(task: &Task) -> Self {
        let Task { title, description, priority, category, tags, due_date, .. } = task.clone();
        Self { title, description, priority, category, tags, due_date }
    }

    fn put_into(self, task: &mut Task) {
        let Self { title, description, priority, category, tags, due_date } = self;
        *task = Task { title, description, priority, category, tags, due_date, ..task.clone() };
    }
}

pub(super) struct Update {
    pub(super) owner: UserId,
    pub(super) id: Uuid,
    /// `None` brings the previous version back.
    pub(super) changes: Option<TaskChanges>,
    pub(super) now: Timestamp,
}

/// The search text needs all fields, so the task is read first and locked until it is written.
#[async_trait]
impl Write for Update {
    type Output = Option<Task>;
    const SINGLE: bool = false;

    async fn run(&self, connection: &mut Connection<'_>) -> Result<Option<Task>, Failure> {
        let before = by_id(&self.owner, self.id, connection.locking());
        let Some(row) = connection.fetch_one(before).await? else {
            return Ok(None);
        };
        let mut task = task(&row)?;
        let previous = Version::of(&task);
        match &self.changes {
            Some(changes) => apply(changes.clone(), &mut task),
            None => stored_version(&row)?.put_into(&mut task),
        }
        task.updated_at = truncate_time(self.now)?;
        // Updated to what it is already, it would lose the version before.
        let previous = Some(&previous).filter(|previous| **previous != Version::of(&task));
        connection.fetch(replace(&self.owner, &task, previous)?).await?;
        Ok(Some(task))
    }
}

fn apply(changes: TaskChanges, task: &mut Task) {
    fn put<T>(field: &mut T, change: Option<T>) {
        if let Some(value) = change {
            *field = value;
        }
    }
    put(&mut task.title, changes.title);
    put(&mut task.description, changes.description);
    put(&mut task.priority, changes.priority);
    put(&mut task.category, changes.category);
    put(&mut task.tags, changes.tags);
    put(&mut task.due_date, changes.due_date);
}

fn stored_version(row: &Row) -> Result<Version> {
    let stored: Option<String> = row.get("previous")?;
    let stored =
        stored.ok_or_else(|| Error::invalid_argument("this task was never updated: there is nothing to undo"))?;
    serde_json::from_str(&stored).map_err(|error| unreadable("a task").caused_by(error))
}

/// One statement, so that concurrent toggles all take effect.
pub(super) fn complete(owner: &UserId, id: Uuid, wanted: Option<bool>, now: Timestamp) -> Statement {
    macro_rules! update {
        ($set:literal) => {
            concat!("UPDATE tasks SET ", $set, " WHERE owner = $1 AND id = $2 RETURNING ", columns!())
        };
    }
    let sql = match wanted {
        None => update!("completed_at = CASE WHEN completed_at IS NULL THEN $3 END, updated_at = $3"),
        Some(true) => update!(
            "completed_at = COALESCE(completed_at, $3), \
             updated_at = CASE WHEN completed_at IS NULL THEN $3 ELSE updated_at END"
        ),
        Some(false) => {
            update!("completed_at = NULL, updated_at = CASE WHEN completed_at IS NULL THEN updated_at ELSE $3 END")
        }
    };
    Statement::new(sql).bind(owner).bind(id).bind(now)
}

pub(super) fn delete(owner: &UserId, id: Uuid) -> Statement {
    let sql = concat!("DELETE FROM tasks WHERE owner = $1 AND id = $2 RETURNING ", columns!());
    Statement::new(sql).bind(owner).bind(id)
}
