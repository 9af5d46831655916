//! A task as answers show it.

use serde::Serialize;
use serde_json::{Value, json};
use tribune_core::wire::object;
use tribune_core::{DocumentId, JsonObject, Links};
use tribune_storage::Task;
use uuid::Uuid;

/// The scheme of task ids.
pub const SCHEME: &str = "task";

#[derive(Debug, Serialize)]
pub struct TaskView<'a> {
    #[serde(flatten)]
    task: &'a Task,
    status: &'static str,
    url: String,
}

impl<'a> TaskView<'a> {
    pub fn of(task: &'a Task, links: &Links) -> Self {
        Self { task, status: status(task), url: links.citation(&document_id(task.id), None) }
    }
}

pub fn status(task: &Task) -> &'static str {
    if task.completed_at.is_some() { "completed" } else { "pending" }
}

pub fn document_id(id: Uuid) -> DocumentId {
    DocumentId::new(SCHEME, &id.to_string()).expect("a scheme and a UUID make an id")
}

/// The schema of a [`TaskView`].
pub fn schema() -> JsonObject {
    let text = |what: &str| json!({"type": "string", "description": what});
    let maybe = |what: &str| json!({"type": ["string", "null"], "description": what});
    object(json!({
        "id": text("The id, which the other task tools take as `task_id`."),
        "title": text("The title."),
        "description": maybe("Details."),
        "status": {"type": "string", "enum": ["pending", "completed"], "description": "Whether it is completed."},
        "priority": {"type": "string", "enum": priorities(), "description": "The priority."},
        "category": maybe("The category."),
        "tags": {"type": "array", "items": {"type": "string"}, "description": "The tags."},
        "due_date": maybe("The due date, as YYYY-MM-DD."),
        "created_at": text("When it was added."),
        "updated_at": text("When it was last changed."),
        "completed_at": maybe("When it was completed."),
        "url": text("The task's page; cite it."),
    }))
}

pub fn priorities() -> Value {
    json!(["low", "medium", "high"])
}

/// A task as a text to read.
pub fn text(task: &Task) -> String {
    let mut lines = vec![task.title.clone(), String::new()];
    if let Some(description) = &task.description {
        lines.extend([description.clone(), String::new()]);
    }
    let mut fact = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            lines.push(format!("{name}: {value}"));
        }
    };
    fact("Status", Some(status(task).to_owned()));
    fact("Priority", Some(task.priority.as_str().to_owned()));
    fact("Due", task.due_date.map(|date| date.to_string()));
    fact("Category", task.category.clone());
    fact("Tags", (!task.tags.is_empty()).then(|| task.tags.join(", ")));
    fact("Added", Some(task.created_at.to_string()));
    fact("Completed", task.completed_at.map(|at| at.to_string()));
    lines.join("\n")
}
