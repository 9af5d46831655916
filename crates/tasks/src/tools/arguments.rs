//! Arguments, read strictly. Their types and lengths have been checked by the schema.

use jiff::Timestamp;
use jiff::civil::Date;
use serde_json::Value;
use tribune_core::{Error, JsonObject, Result};
use tribune_storage::{Task, TaskChanges, TaskFilter, TaskSort};
use uuid::Uuid;

pub const MAX_TITLE: usize = 200;
pub const MAX_DESCRIPTION: usize = 1000;
pub const MAX_CATEGORY: usize = 50;
pub const MAX_TAG: usize = 30;
pub const MAX_TAGS: usize = 10;
pub const MAX_LIMIT: u64 = 100;
pub const LIMIT: u64 = 50;
const MAX_WORDS: usize = 16;

/// Trims texts, and accepts ids as `search` returns them (`task:ID`).
pub fn normalise(args: &mut JsonObject) {
    for (name, value) in args.iter_mut() {
        match (name.as_str(), value) {
            ("task_id", Value::String(id)) => {
                let bare = id.trim();
                *id = bare.strip_prefix("task:").unwrap_or(bare).to_lowercase();
            }
            ("status" | "priority" | "sort", Value::String(choice)) => *choice = choice.trim().to_lowercase(),
            (_, Value::String(text)) => *text = text.trim().to_owned(),
            ("tags", Value::Array(tags)) => {
                for tag in tags {
                    if let Value::String(tag) = tag {
                        *tag = tag.trim().to_owned();
                    }
                }
            }
            _ => {}
        }
    }
}

/// Refuses control characters, which terminals and databases interpret.
pub fn check_text(args: &JsonObject) -> Result<()> {
    for (name, value) in args {
        let tags = value.as_array().into_iter().flatten().filter_map(Value::as_str);
        let mut letters = value.as_str().into_iter().chain(tags).flat_map(str::chars);
        if let Some(control) = letters.find(|c| c.is_control() && !matches!(c, '\n' | '\r' | '\t')) {
            return Err(Error::invalid_argument(format!(
                "`{name}` contains the control character U+{:04X}: remove it",
                u32::from(control)
            )));
        }
    }
    Ok(())
}

pub fn task_id(args: &JsonObject) -> Result<Uuid> {
    Uuid::try_parse(text(args, "task_id").unwrap_or_default())
        .map_err(|_| Error::invalid_argument("`task_id` is not the id of a task: take it from list_tasks"))
}

pub fn new_task(args: &JsonObject, id: Uuid, now: Timestamp) -> Result<Task> {
    Ok(Task {
        id,
        title: title(args)?.ok_or_else(|| Error::invalid_argument("the argument `title` is missing"))?,
        description: filled(args, "description"),
        priority: chosen(args, "priority").unwrap_or_default(),
        category: filled(args, "category"),
        tags: tags(args).unwrap_or_default(),
        due_date: date(args, "due_date")?,
        created_at: now,
        updated_at: now,
        completed_at: None,
    })
}

/// A named argument that is empty clears its field.
pub fn changes(args: &JsonObject) -> Result<TaskChanges> {
    let named = |name: &str| args.contains_key(name);
    let changes = TaskChanges {
        title: title(args)?,
        description: named("description").then(|| filled(args, "description")),
        priority: chosen(args, "priority"),
        category: named("category").then(|| filled(args, "category")),
        tags: tags(args),
        due_date: named("due_date").then_some(date(args, "due_date")?),
    };
    if changes == TaskChanges::default() {
        return Err(Error::invalid_argument(
            "nothing to change: give at least one of title, description, priority, category, tags and due_date",
        ));
    }
    Ok(changes)
}

pub fn filter(args: &JsonObject) -> Result<TaskFilter> {
    let (due_from, due_until) = (date(args, "due_from")?, date(args, "due_until")?);
    if let (Some(from), Some(until)) = (due_from, due_until)
        && from > until
    {
        return Err(Error::invalid_argument(format!(
            "`due_from` ({from}) is later than `due_until` ({until}): swap them"
        )));
    }
    let words = text(args, "query").unwrap_or_default().split_whitespace();
    Ok(TaskFilter {
        completed: match text(args, "status") {
            Some("pending") => Some(false),
            Some("completed") => Some(true),
            _ => None,
        },
        priority: chosen(args, "priority"),
        category: text(args, "category").map(str::to_owned),
        tag: text(args, "tag").map(str::to_owned),
        due_from,
        due_until,
        words: words.take(MAX_WORDS).map(str::to_lowercase).collect(),
        sort: chosen(args, "sort").unwrap_or(TaskSort::Newest),
    })
}

pub fn limit(args: &JsonObject) -> usize {
    let limit = args.get("limit").and_then(Value::as_u64).unwrap_or(LIMIT);
    usize::try_from(limit.clamp(1, MAX_LIMIT)).unwrap_or(1)
}

/// A value of an enumeration.
fn chosen<T: for<'de> serde::Deserialize<'de>>(args: &JsonObject, name: &str) -> Option<T> {
    serde_json::from_value(args.get(name)?.clone()).ok()
}

fn title(args: &JsonObject) -> Result<Option<String>> {
    match text(args, "title") {
        Some(title) if title.contains(['\n', '\r']) => {
            Err(Error::invalid_argument("`title` has more than one line: put the rest into `description`"))
        }
        title => Ok(title.map(str::to_owned)),
    }
}

pub fn text<'a>(args: &'a JsonObject, name: &str) -> Option<&'a str> {
    args.get(name)?.as_str()
}

fn filled(args: &JsonObject, name: &str) -> Option<String> {
    text(args, name).filter(|text| !text.is_empty()).map(str::to_owned)
}

/// Of tags that differ only in case, the first is kept.
fn tags(args: &JsonObject) -> Option<Vec<String>> {
    let given = args.get("tags")?.as_array()?;
    let mut tags: Vec<String> = Vec::with_capacity(given.len());
    for tag in given.iter().filter_map(Value::as_str) {
        if !tags.iter().any(|known| known.to_lowercase() == tag.to_lowercase()) {
            tags.push(tag.to_owned());
        }
    }
    Some(tags)
}

fn date(args: &JsonObject, name: &str) -> Result<Option<Date>> {
    let Some(given) = text(args, name) else {
        return Ok(None);
    };
    // The parser also accepts a date with a time.
    let date = Some(given).filter(|given| given.len() == 10);
    match date.and_then(|date| date.parse().ok()) {
        Some(date) => Ok(Some(date)),
        None => {
            Err(Error::invalid_argument(format!("`{name}` is not a date: write it as YYYY-MM-DD, such as 2026-11-30")))
        }
    }
}
