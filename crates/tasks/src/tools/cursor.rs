//! Cursors of task lists as text.

use tribune_core::{Error, Result};
use tribune_storage::{Priority, TaskCursor, TaskSort};
use uuid::Uuid;

/// `due.high.2026-11-20.UUID`: what the list is sorted by, and its last task, with `-` for no date.
pub fn write(cursor: &TaskCursor, sort: TaskSort) -> String {
    let due = cursor.due_date.map_or_else(|| "-".to_owned(), |date| date.to_string());
    format!("{}.{}.{due}.{}", name(sort), cursor.priority.as_str(), cursor.id)
}

/// Refuses a cursor of another sort order, which would skip tasks.
pub fn read(text: &str, sort: TaskSort) -> Result<TaskCursor> {
    parse(text, sort).ok_or_else(|| {
        Error::invalid_argument(
            "`cursor` is not one that list_tasks returned for this `sort`: pass `next_cursor` unchanged, with the same arguments, or omit it for the first page",
        )
    })
}

fn name(sort: TaskSort) -> &'static str {
    match sort {
        TaskSort::Newest => "newest",
        TaskSort::Due => "due",
        TaskSort::Priority => "priority",
    }
}

fn parse(text: &str, sort: TaskSort) -> Option<TaskCursor> {
    let mut parts = text.strip_prefix(name(sort))?.strip_prefix('.')?.split('.');
    let (priority, due, id) = (parts.next()?, parts.next()?, parts.next()?);
    if parts.next().is_some() {
        return None;
    }
    Some(TaskCursor {
        priority: Priority::ALL.into_iter().find(|known| known.as_str() == priority)?,
        due_date: match due {
            "-" => None,
            date => Some(date.parse().ok()?),
        },
        id: Uuid::try_parse(id).ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_comes_back_as_it_was_given() {
        for due_date in [None, Some(jiff::civil::date(2026, 11, 20))] {
            for priority in Priority::ALL {
                let cursor = TaskCursor { priority, due_date, id: Uuid::from_u128(7) };
                assert_eq!(read(&write(&cursor, TaskSort::Due), TaskSort::Due).expect("read"), cursor);
            }
        }
        let cursor = write(&TaskCursor { priority: Priority::Low, due_date: None, id: Uuid::nil() }, TaskSort::Newest);
        assert!(read(&cursor, TaskSort::Due).is_err(), "sorted otherwise");
        for wrong in ["", "high", "high.-.x", "high.-.00000000-0000-0000-0000-000000000007.x", "urgent.-.7"] {
            assert!(read(wrong, TaskSort::Newest).is_err(), "{wrong}");
        }
    }
}
