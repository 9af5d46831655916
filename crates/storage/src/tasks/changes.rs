//! Changes of tasks.

use crate::contract::{Task, TaskChanges};
use async_trait::async_trait;
use jiff::Timestamp;
use tribune_core::{Result, UserId};
use uuid::Uuid;

use super::{by_id, columns, task};
use crate::connection::{Connection, Statement, Write};
use crate::error::Failure;
use crate::text::{fold, search_text, tags_key};
use crate::value::{json, truncate_time};

/// The columns by which tasks are compared and searched.
struct Keys {
    category: Option<String>,
    tags: String,
    search: String,
}

impl Keys {
    fn new(task: &Task) -> Self {
        let optional = [task.description.as_deref(), task.category.as_deref()];
        let fields = [task.title.as_str()]
            .into_iter()
            .chain(optional.into_iter().flatten())
            .chain(task.tags.iter().map(String::as_str));
        Self {
            category: task.category.as_deref().map(fold),
            tags: tags_key(&task.tags),
            search: search_text(fields),
        }
    }
}

pub(super) fn add(owner: &UserId, task: &Task) -> Result<Statement> {
    let keys = Keys::new(task);
    let statement = Statement::new(concat!(
        "INSERT INTO tasks (owner, category_key, tags_key, search, ",
        columns!(),
        ") VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)"
    ));
    Ok(statement
        .bind(owner)
        .bind(keys.category)
        .bind(keys.tags)
        .bind(keys.search)
        .bind(task.id)
        .bind(task.title.as_str())
        .bind(task.description.clone())
        .bind(task.priority)
        .bind(task.category.clone())
        .bind(json(&task.tags)?)
        .bind(task.due_date)
        .bind(task.created_at)
        .bind(task.updated_at)
        .bind(task.completed_at))
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
        connection.execute(self.statement(&task)?).await?;
        Ok(Some(task))
    }
}

impl Update {
    fn apply(&self, task: &mut Task) -> Result<()> {
        fn put<T: Clone>(field: &mut T, change: Option<&T>) {
            if let Some(value) = change {
                *field = value.clone();
            }
        }
        put(&mut task.title, self.changes.title.as_ref());
        put(&mut task.description, self.changes.description.as_ref());
        put(&mut task.priority, self.changes.priority.as_ref());
        put(&mut task.category, self.changes.category.as_ref());
        put(&mut task.tags, self.changes.tags.as_ref());
        put(&mut task.due_date, self.changes.due_date.as_ref());
        task.updated_at = truncate_time(self.now)?;
        Ok(())
    }

    fn statement(&self, task: &Task) -> Result<Statement> {
        let keys = Keys::new(task);
        let statement = Statement::new(
            "UPDATE tasks SET title = $3, description = $4, priority = $5, category = $6, tags = $7, due_date = $8, \
             updated_at = $9, category_key = $10, tags_key = $11, search = $12 WHERE owner = $1 AND id = $2",
        );
        Ok(statement
            .bind(&self.owner)
            .bind(self.id)
            .bind(task.title.as_str())
            .bind(task.description.clone())
            .bind(task.priority)
            .bind(task.category.clone())
            .bind(json(&task.tags)?)
            .bind(task.due_date)
            .bind(task.updated_at)
            .bind(keys.category)
            .bind(keys.tags)
            .bind(keys.search))
    }
}

/// One statement, so that concurrent toggles all take effect.
pub(super) fn complete(owner: &UserId, id: Uuid, wanted: Option<bool>, now: Timestamp) -> Statement {
    macro_rules! update {
        ($set:literal) => {
            concat!(
                "UPDATE tasks SET ",
                $set,
                " WHERE owner = $1 AND id = $2 RETURNING ",
                columns!()
            )
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
