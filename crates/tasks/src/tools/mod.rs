//! The six tools. None has an argument for the owner.

mod arguments;
mod cursor;
mod specs;

use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;
use tribune_core::wire::{MAX_WIRE_BYTES, wire_bytes};
use tribune_core::{
    CallContext, Clock, Error, ErrorKind, JsonObject, Links, Result, Scope, Tool, ToolOutput, ToolSpec, UserId,
    id_of_time,
};
use tribune_storage::{Task, TaskCursor, TaskPage, TaskSort};

use crate::view::TaskView;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verb {
    Add,
    List,
    Complete,
    Update,
    Undo,
    Delete,
}

/// The store, the links and the clock of all six tools.
#[derive(Clone)]
pub struct Tasks {
    pub store: tribune_storage::Tasks,
    pub links: Links,
    pub clock: Arc<dyn Clock>,
}

struct TaskTool {
    verb: Verb,
    spec: ToolSpec,
    tasks: Tasks,
}

pub fn all(tasks: &Tasks) -> Vec<Arc<dyn Tool>> {
    let tool = |verb, spec| -> Arc<dyn Tool> { Arc::new(TaskTool { verb, spec, tasks: tasks.clone() }) };
    vec![
        tool(Verb::Add, specs::add_task()),
        tool(Verb::List, specs::list_tasks()),
        tool(Verb::Complete, specs::complete_task()),
        tool(Verb::Update, specs::update_task()),
        tool(Verb::Undo, specs::undo_task_update()),
        tool(Verb::Delete, specs::delete_task()),
    ]
}

#[async_trait]
impl Tool for TaskTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn scope(&self) -> Scope {
        Scope::Tasks
    }

    fn error_code(&self, kind: ErrorKind) -> Option<&'static str> {
        Some(match kind {
            ErrorKind::InvalidArgument => "VALIDATION_ERROR",
            ErrorKind::NotFound => "TASK_NOT_FOUND",
            ErrorKind::Forbidden => "UNAUTHORIZED",
            ErrorKind::Unavailable => "DATABASE_ERROR",
            ErrorKind::Internal => "INTERNAL_ERROR",
            ErrorKind::RateLimited | ErrorKind::DeadlineExceeded | ErrorKind::Cancelled => return None,
        })
    }

    fn normalise(&self, args: &mut JsonObject) {
        arguments::normalise(args);
    }

    async fn question(&self, args: &JsonObject, cx: &CallContext) -> Result<Option<String>> {
        if self.verb != Verb::Delete {
            return Ok(None);
        }
        let task = self.tasks.store.get(&owner(cx)?, arguments::task_id(args)?).await?.ok_or_else(no_such_task)?;
        // A quotation mark in the title would seem to end it.
        Ok(Some(format!("Delete the task \"{}\"?", task.title.replace('"', "'"))))
    }

    async fn call(&self, args: JsonObject, cx: &CallContext) -> Result<ToolOutput> {
        let owner = owner(cx)?;
        arguments::check_text(&args)?;
        match self.verb {
            Verb::Add => self.add(&owner, &args).await,
            Verb::List => self.list(&owner, &args).await,
            Verb::Complete => {
                let wanted = args.get("completed").and_then(Value::as_bool);
                let id = arguments::task_id(&args)?;
                self.answer(self.tasks.store.complete(&owner, id, wanted, self.now()).await?, false)
            }
            Verb::Update => {
                let (id, changes) = (arguments::task_id(&args)?, arguments::changes(&args)?);
                let updated = self.tasks.store.update(&owner, id, &changes, self.now()).await?;
                self.answer(updated, false)
            }
            Verb::Undo => {
                let id = arguments::task_id(&args)?;
                self.answer(self.tasks.store.undo_update(&owner, id, self.now()).await?, false)
            }
            Verb::Delete => {
                let id = arguments::task_id(&args)?;
                self.answer(self.tasks.store.delete(&owner, id).await?, true)
            }
        }
    }
}

impl TaskTool {
    /// Truncated to microseconds, as in the database, so that every answer shows the same time.
    fn now(&self) -> Timestamp {
        let now = self.tasks.clock.now();
        Timestamp::from_microsecond(now.as_microsecond()).unwrap_or(now)
    }

    async fn add(&self, owner: &UserId, args: &JsonObject) -> Result<ToolOutput> {
        let now = self.now();
        let task = arguments::new_task(args, id_of_time(now), now)?;
        self.tasks.store.add(owner, &task).await?;
        self.answer(Some(task), false)
    }

    async fn list(&self, owner: &UserId, args: &JsonObject) -> Result<ToolOutput> {
        let filter = arguments::filter(args)?;
        let limit = arguments::limit(args);
        let cursor = arguments::text(args, "cursor");
        let after = cursor.map(|cursor| cursor::read(cursor, filter.sort)).transpose()?;
        let page = self.tasks.store.list(owner, &filter, limit, after).await?;
        self.list_of(&page, filter.sort)
    }

    /// As many tasks as fit into one answer; the cursor leads to the rest.
    fn list_of(&self, page: &TaskPage, sort: TaskSort) -> Result<ToolOutput> {
        #[derive(Serialize)]
        struct List {
            tasks: Vec<Value>,
            total: u64,
            next_cursor: Option<String>,
        }
        let (mut tasks, mut room) = (Vec::with_capacity(page.tasks.len()), MAX_WIRE_BYTES - 1000);
        let mut next = page.next;
        for (at, task) in page.tasks.iter().enumerate() {
            let view = serde_json::to_value(TaskView::of(task, &self.tasks.links))
                .map_err(|e| Error::internal("a task could not be written as JSON").caused_by(e))?;
            let takes = wire_bytes(&view.to_string());
            let Some(left) = room.checked_sub(takes) else {
                next = at.checked_sub(1).map(|last| TaskCursor::from(&page.tasks[last]));
                break;
            };
            room = left;
            tasks.push(view);
        }
        let count = tasks.len();
        let list = List { tasks, total: page.total, next_cursor: next.as_ref().map(|next| cursor::write(next, sort)) };
        ToolOutput::structured(&list, count)
    }

    fn answer(&self, task: Option<Task>, deleted: bool) -> Result<ToolOutput> {
        #[derive(Serialize)]
        struct Answer<'a> {
            #[serde(flatten)]
            task: TaskView<'a>,
            #[serde(skip_serializing_if = "std::ops::Not::not")]
            deleted: bool,
        }
        let task = task.ok_or_else(no_such_task)?;
        let task = TaskView::of(&task, &self.tasks.links);
        ToolOutput::structured(&Answer { task, deleted }, 1)
    }
}

fn no_such_task() -> Error {
    Error::not_found("there is no such task; list_tasks lists the tasks with their ids")
}

/// The user whose tasks a call reads or changes.
fn owner(cx: &CallContext) -> Result<UserId> {
    cx.owner().ok_or_else(|| {
        Error::forbidden("tasks belong to users, and this call has no user: send an API token as `Authorization: Bearer TOKEN` (the operator creates one with `tribune token create --user NAME`)")
    })
}
