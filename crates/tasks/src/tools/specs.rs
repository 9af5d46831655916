//! The tools as hosts see them.

use serde_json::{Value, json};
use tribune_core::wire::object;
use tribune_core::{CallDisplay, Hints, ToolSpec};

use super::arguments::{LIMIT, MAX_CATEGORY, MAX_DESCRIPTION, MAX_LIMIT, MAX_TAG, MAX_TAGS, MAX_TITLE};
use crate::view;

const CHANGES: Hints = Hints { read_only: false, destructive: false, idempotent: false, open_world: false };

pub fn add_task() -> ToolSpec {
    let input = arguments(fields(), &["title"]);
    let description = "Adds a task to the user's own list. Use it when the user wants to remember, plan or get something done. \
        Add one task per call; set a due date only if the user named one. Returns the stored task.";
    let spec = spec("add_task", "Add a task", description, input, one(), CHANGES);
    shown(spec, "Adding a task", "Added a task")
}

pub fn list_tasks() -> ToolSpec {
    let date = |what: &str| json!({"type": "string", "maxLength": 100, "description": what});
    let filters = json!({
            "status": {"type": "string", "enum": ["all", "pending", "completed"], "default": "all", "description": "Only pending or only completed tasks, or all."},
            "priority": {"type": "string", "enum": view::priorities(), "description": "Only tasks with this priority."},
            "category": {"type": "string", "minLength": 1, "maxLength": MAX_CATEGORY, "description": "Only tasks in this category."},
            "tag": {"type": "string", "minLength": 1, "maxLength": MAX_TAG, "description": "Only tasks with this tag."},
            "due_from": date("Only tasks due on this day or later, as YYYY-MM-DD."),
            "due_until": date("Only tasks due on this day or earlier, as YYYY-MM-DD."),
            "query": {"type": "string", "minLength": 1, "maxLength": 200, "description": "Only tasks that contain all these words."},
            "sort": {"type": "string", "enum": ["newest", "due", "priority"], "default": "newest", "description": "The order: last added first, next due first, or highest priority first."},
            "limit": {"type": "integer", "minimum": 1, "maximum": MAX_LIMIT, "default": LIMIT, "description": "The most tasks to return."},
            "cursor": {"type": "string", "minLength": 1, "maxLength": 100, "description": "`next_cursor` of the previous answer, to get the next page with the same filters."},
    });
    let output = json!({
        "type": "object",
        "properties": {
            "tasks": {"type": "array", "description": "The tasks.", "items": {"type": "object", "properties": view::schema()}},
            "total": {"type": "integer", "description": "The number of all matching tasks."},
            "next_cursor": {"type": ["string", "null"], "description": "Pass it as `cursor` to get the next page; null on the last page."},
        },
        "required": ["tasks", "total", "next_cursor"],
    });
    let description = "Lists the user's own tasks, with filters by status, priority, category, tag, due date and words. \
        Use it before changing a task, to find its id; if several tasks fit what the user said, ask which one is meant. \
        `total` is the number of all matching tasks.";
    let mut spec = spec("list_tasks", "List tasks", description, arguments(filters, &[]), output, Hints::READ);
    spec.display.items = Some(("tasks", "task"));
    spec.display.is_uncitable = true;
    shown(spec, "Reading your tasks", "Read your tasks")
}

pub fn complete_task() -> ToolSpec {
    let properties = json!({
            "task_id": task_id(),
            "completed": {"type": "boolean", "description": "true completes it, false reopens it. Default: toggles."},
    });
    let input = arguments(properties, &["task_id"]);
    let description = "Marks one of the user's tasks as completed, or reopens a completed one. \
        Get the id from list_tasks. Returns the changed task.";
    let spec = spec("complete_task", "Complete a task", description, input, one(), CHANGES);
    shown(spec, "Updating a task", "Updated a task")
}

pub fn update_task() -> ToolSpec {
    let mut properties = object(json!({"task_id": task_id()}));
    for (name, mut field) in object(fields()) {
        // Null clears an optional field.
        if matches!(name.as_str(), "description" | "category" | "due_date") {
            field["type"] = json!(["string", "null"]);
        }
        if let Some(field) = field.as_object_mut() {
            field.shift_remove("default");
        }
        properties.insert(name, field);
    }
    let input = arguments(properties.into(), &["task_id"]);
    let description = "Changes one of the user's tasks: its title, description, priority, category, tags or due date. \
        Give at least one of them; the others stay as they are. null clears a description, a category or a due date; tags are replaced as a whole. \
        Get the id from list_tasks. undo_task_update restores the previous version.";
    let hints = Hints { idempotent: true, ..CHANGES };
    let spec = spec("update_task", "Change a task", description, input, one(), hints);
    shown(spec, "Changing a task", "Changed a task")
}

pub fn undo_task_update() -> ToolSpec {
    let input = arguments(json!({"task_id": task_id()}), &["task_id"]);
    let description = "Undoes the last update_task of one of the user's tasks: restores its title, description, priority, category, tags and due date. \
        A second call restores the update. Get the id from list_tasks. Returns the changed task.";
    let spec = spec("undo_task_update", "Undo the change of a task", description, input, one(), CHANGES);
    shown(spec, "Undoing a change", "Undid a change")
}

pub fn delete_task() -> ToolSpec {
    let input = arguments(json!({"task_id": task_id()}), &["task_id"]);
    let description = "Deletes one of the user's tasks permanently. Use it only when the user wants it deleted; for something that is done use complete_task. \
        Get the id from list_tasks. Returns the deleted task.";
    let hints = Hints { destructive: true, idempotent: true, ..CHANGES };
    let mut output = one();
    output["properties"]["deleted"] = json!({"type": "boolean", "description": "true: the task is deleted."});
    let mut spec = spec("delete_task", "Delete a task", description, input, output, hints);
    spec.display.is_uncitable = true;
    shown(spec, "Deleting a task", "Deleted a task")
}

fn shown(mut spec: ToolSpec, running: &'static str, done: &'static str) -> ToolSpec {
    spec.display.progress = Some((running, done));
    spec
}

fn spec(name: &str, title: &str, description: &str, input: Value, output: Value, hints: Hints) -> ToolSpec {
    ToolSpec {
        name: name.to_owned(),
        title: title.to_owned(),
        description: description.to_owned(),
        input_schema: object(input),
        output_schema: object(output),
        hints,
        icon: None,
        display: CallDisplay { subject: Some("task_id"), ..CallDisplay::default() },
        aliases: vec![("id", "task_id")],
    }
}

/// The schema of a tool's arguments.
fn arguments(properties: Value, required: &[&str]) -> Value {
    let mut schema = json!({"type": "object", "properties": properties});
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    schema["additionalProperties"] = json!(false);
    schema
}

fn task_id() -> Value {
    json!({"type": "string", "format": "uuid", "maxLength": 100, "description": "The task's id, from list_tasks."})
}

/// The arguments that describe a task.
fn fields() -> Value {
    json!({
        "title": {"type": "string", "minLength": 1, "maxLength": MAX_TITLE, "description": "The title, in one line of 1 to 200 characters."},
        "description": {"type": "string", "maxLength": MAX_DESCRIPTION, "description": "Details, up to 1,000 characters."},
        "priority": {"type": "string", "enum": view::priorities(), "default": "medium", "description": "The priority."},
        "category": {"type": "string", "maxLength": MAX_CATEGORY, "description": "The category, such as work or home."},
        "tags": {"type": "array", "maxItems": MAX_TAGS, "items": {"type": "string", "minLength": 1, "maxLength": MAX_TAG}, "description": "Up to 10 tags."},
        "due_date": {"type": "string", "maxLength": 100, "description": "The day it is due, as YYYY-MM-DD."},
    })
}

fn one() -> Value {
    json!({
        "type": "object",
        "properties": view::schema(),
        "required": ["id", "title", "status", "priority", "tags", "created_at", "updated_at", "url"],
    })
}
