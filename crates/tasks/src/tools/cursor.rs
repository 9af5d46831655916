//! Where a list of tasks goes on, as callers pass it back.

use tribune_core::store::{Priority, TaskCursor};
use tribune_core::{Error, Result};
use uuid::Uuid;

/// `high.2026-11-20.UUID`, or `-` for no date.
pub fn write(cursor: &TaskCursor) -> String {
    let due = cursor.due_date.map_or_else(|| "-".to_owned(), |date| date.to_string());
    format!("{}.{due}.{}", cursor.priority.as_str(), cursor.id)
}

pub fn read(text: &str) -> Result<TaskCursor> {
    parse(text).ok_or_else(|| {
        Error::invalid_argument(
            "`cursor` is not one that list_tasks gave: pass `next_cursor` on as it is, or leave it out to begin",
        )
    })
}

fn parse(text: &str) -> Option<TaskCursor> {
    let mut parts = text.split('.');
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
                let cursor = TaskCursor {
                    priority,
                    due_date,
                    id: Uuid::from_u128(7),
                };
                assert_eq!(read(&write(&cursor)).expect("read"), cursor);
            }
        }
        for wrong in [
            "",
            "high",
            "high.-.x",
            "high.-.00000000-0000-0000-0000-000000000007.x",
            "urgent.-.7",
        ] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
