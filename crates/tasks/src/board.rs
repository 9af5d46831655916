//! A task as its page shows it.

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use tribune_page::parts::panel;
use tribune_page::time::minute;
use tribune_page::{Amount, Badge, Board, Content, Figure, Tone, Width};
use tribune_storage::{Priority, Task};

use crate::view;

/// `now` decides what is overdue, by the day in UTC: the server does not know the user's time zone.
pub fn board(task: &Task, now: Timestamp) -> Board {
    let description = task.description.as_ref().filter(|text| !text.trim().is_empty());
    let description = description.map(|text| {
        let text = Content::Markdown(text.clone());
        panel("description", "Description", Width::Whole, text)
    });
    let today = now.to_zoned(TimeZone::UTC).date();
    let facts = Content::Figures(facts(task, today));
    let facts = panel("facts", "Facts", Width::Whole, facts);
    Board {
        title: task.title.clone(),
        badges: badges(task, today),
        panels: description.into_iter().chain([facts]).collect(),
        ..Board::default()
    }
}

fn is_overdue(task: &Task, today: Date) -> bool {
    task.completed_at.is_none() && task.due_date.is_some_and(|due| due < today)
}

fn badges(task: &Task, today: Date) -> Vec<Badge> {
    let status = match task.completed_at {
        Some(_) => badge(view::status(task), Tone::Good, "The task is completed."),
        None => badge(view::status(task), Tone::Plain, "The task is not completed."),
    };
    let (label, tone) = match task.priority {
        Priority::High => ("high priority", Tone::Warning),
        Priority::Medium => ("medium priority", Tone::Plain),
        Priority::Low => ("low priority", Tone::Plain),
    };
    let priority = badge(label, tone, "The task's priority.");
    let overdue = badge("overdue", Tone::Bad, "The due date has passed (UTC).");
    let overdue = is_overdue(task, today).then_some(overdue);
    [status, priority].into_iter().chain(overdue).collect()
}

fn badge(label: &str, tone: Tone, meaning: &str) -> Badge {
    Badge { label: label.to_owned(), tone, meaning: Some(meaning.to_owned()) }
}

fn facts(task: &Task, today: Date) -> Vec<Figure> {
    let words = |label: &str, text: String| Figure::new(label, Amount::plain(text));
    let due = match task.due_date {
        Some(due) => Figure {
            tone: match is_overdue(task, today) {
                true => Tone::Bad,
                false => Tone::Plain,
            },
            note: days(today, due).filter(|_| task.completed_at.is_none()),
            ..words("Due", due.to_string())
        },
        None => Figure::unknown("Due", "no due date is set"),
    };
    let mut facts = vec![due];
    facts.extend(task.category.clone().map(|category| words("Category", category)));
    facts.extend((!task.tags.is_empty()).then(|| words("Tags", task.tags.join(", "))));
    facts.push(words("Added", minute(task.created_at)));
    facts.push(words("Changed", minute(task.updated_at)));
    facts.extend(task.completed_at.map(|at| words("Completed", minute(at))));
    facts
}

/// `in 3 days`, `yesterday`; `None` if the difference overflows.
fn days(today: Date, due: Date) -> Option<String> {
    let days = today.until(due).ok()?.get_days();
    Some(match days {
        0 => "today".to_owned(),
        1 => "tomorrow".to_owned(),
        -1 => "yesterday".to_owned(),
        days if days > 0 => format!("in {days} days"),
        days => format!("{} days ago", days.unsigned_abs()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    const NOW: &str = "2026-03-10T23:30:00Z";

    fn time(text: &str) -> Timestamp {
        text.parse().expect("a time")
    }

    fn task() -> Task {
        Task {
            id: Uuid::nil(),
            title: "Water the <b>tomatoes</b>".to_owned(),
            description: Some("Twice a *day*.".to_owned()),
            priority: Priority::High,
            category: Some("garden".to_owned()),
            tags: vec!["green".to_owned(), "red".to_owned()],
            due_date: Some("2026-03-09".parse().expect("a date")),
            created_at: time("2026-03-01T08:00:00Z"),
            updated_at: time("2026-03-02T09:05:00Z"),
            completed_at: None,
        }
    }

    fn labels(board: &Board) -> Vec<&str> {
        board.badges.iter().map(|badge| &*badge.label).collect()
    }

    fn due(board: &Board) -> Figure {
        let facts = board.panels.last().expect("facts");
        match &facts.content {
            Content::Figures(figures) => figures[0].clone(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn page_shows_badges_and_facts() {
        let board = board(&task(), time(NOW));
        assert_eq!(board.title, "Water the <b>tomatoes</b>");
        assert_eq!(labels(&board), ["pending", "high priority", "overdue"]);
        assert_eq!(board.panels[0].content, Content::Markdown("Twice a *day*.".to_owned()));
        assert_eq!(due(&board).note.as_deref(), Some("yesterday"));
        let Content::Figures(facts) = &board.panels[1].content else { panic!("facts") };
        let facts: Vec<_> =
            facts.iter().map(|fact| (&*fact.label, fact.value.as_ref().map(|value| &*value.text))).collect();
        assert_eq!(
            facts,
            [
                ("Due", Some("2026-03-09")),
                ("Category", Some("garden")),
                ("Tags", Some("green, red")),
                ("Added", Some("2026-03-01 08:00 UTC")),
                ("Changed", Some("2026-03-02 09:05 UTC")),
            ]
        );
        assert!(!board.is_live && !board.shows_text && board.links.is_empty() && board.headline.is_none());
    }

    #[test]
    fn days_end_at_midnight_utc() {
        let mut task = task();
        task.due_date = Some("2026-03-10".parse().expect("a date"));
        assert_eq!(labels(&board(&task, time(NOW))), ["pending", "high priority"]);
        assert_eq!(due(&board(&task, time(NOW))).note.as_deref(), Some("today"));
        let midnight = board(&task, time("2026-03-11T00:00:00Z"));
        assert_eq!(labels(&midnight)[2], "overdue");
        task.due_date = Some("2026-03-20".parse().expect("a date"));
        assert_eq!(due(&board(&task, time(NOW))).note.as_deref(), Some("in 10 days"));
    }

    #[test]
    fn completed_task_is_not_overdue() {
        let mut task = task();
        task.completed_at = Some(time("2026-03-10T10:00:00Z"));
        task.description = Some(" \n".to_owned());
        let done = board(&task, time(NOW));
        assert_eq!(labels(&done), ["completed", "high priority"]);
        assert_eq!((done.panels.len(), due(&done).note), (1, None));
        task.due_date = None;
        let free = due(&board(&task, time(NOW)));
        assert_eq!((free.value, free.note.as_deref()), (None, Some("no due date is set")));
        task.due_date = Some(Date::MIN);
        assert!(!labels(&board(&task, Timestamp::MAX)).contains(&"overdue"), "it is done");
        task.completed_at = None;
        assert!(labels(&board(&task, Timestamp::MAX)).contains(&"overdue"));
    }
}
