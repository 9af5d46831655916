//! Changes of tasks.

use async_trait::async_trait;
use jiff::Timestamp;
use tribune_core::{Result, UserId};
use uuid::Uuid;

use super::{Task, TaskChanges, by_id, columns, task};
use crate::connection::{Connection, Statement, Write};
use crate::error::Failure;
use crate::text::{fold, search_text, tags_key};
use crate::value::{Value, json, truncate_time};

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

fn replace(owner: &UserId, task: &Task) -> Result<Statement> {
    let sql = "UPDATE tasks SET title = $3, description = $4, priority = $5, category = $6, tags = $7, due_date = $8, \
         created_at = $9, updated_at = $10, completed_at = $11, category_key = $12, tags_key = $13, search = $14 \
         WHERE owner = $1 AND id = $2";
    Ok(Statement::composed(sql, columns_of(owner, task)?))
}

pub(super) struct Update {
    pub(super) owner: UserId,
    pub(super) id: Uuid,
    pub(super) changes: TaskChanges,
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
        self.apply(&mut task)?;
        connection.fetch(replace(&self.owner, &task)?).await?;
        Ok(Some(task))
    }
}

impl Update {
    fn apply(&self, task: &mut Task) -> Result<()> {
        fn put<T>(field: &mut T, change: Option<T>) {
            if let Some(value) = change {
                *field = value;
            }
        }
        let changes = self.changes.clone();
        put(&mut task.title, changes.title);
        put(&mut task.description, changes.description);
        put(&mut task.priority, changes.priority);
        put(&mut task.category, changes.category);
        put(&mut task.tags, changes.tags);
        put(&mut task.due_date, changes.due_date);
        task.updated_at = truncate_time(self.now)?;
        Ok(())
    }
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
