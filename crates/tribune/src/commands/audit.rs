//! `tribune audit`: who called what, with which outcome.

#![allow(clippy::disallowed_methods, reason = "a command runs in real time")]

use std::process::ExitCode;

use anyhow::Context;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use tribune_core::escape_controls;
use tribune_server::audit::line;
use tribune_storage::{AuditEntry, AuditFilter};

use super::{print, table, with_store};
use crate::cli::{Audit, Common};

pub fn run(common: &Common, args: &Audit) -> anyhow::Result<ExitCode> {
    let since = args.since.as_deref().map(|text| since(text, Timestamp::now())).transpose()?;
    let filter = AuditFilter { since, who: args.user.clone() };
    with_store(common, "audit logs", async |store, _| {
        let entries = store.audit().list(&filter, args.limit.into()).await?;
        if args.json {
            let lines: Vec<String> = entries.iter().map(line).collect();
            return print(&lines.join("\n"));
        }
        if entries.is_empty() {
            return print("No entries. Anonymous reads are recorded only with `anonymous = true` in [audit].");
        }
        let mut rows = vec![["TIME", "WHO", "FROM", "ACTION", "OUTCOME", "TOUCHED"].map(str::to_owned).to_vec()];
        rows.extend(entries.iter().map(row));
        print(&table(&rows, usize::MAX))
    })
}

fn row(entry: &AuditEntry) -> Vec<String> {
    let touched = match entry.ids.as_slice() {
        [] => String::new(),
        [one] => one.clone(),
        [first, more @ ..] => format!("{first} and {} more", more.len()),
    };
    let row = [
        entry.at.strftime("%Y-%m-%d %H:%M:%S").to_string(),
        entry.who.clone(),
        entry.peer.clone().unwrap_or_default(),
        entry.action.clone(),
        entry.outcome.clone(),
        touched,
    ];
    // Callers choose some of these: they must not control the terminal.
    row.map(|cell| escape_controls(&cell).into_owned()).to_vec()
}

/// A moment: `2026-11-19`, `2026-11-19T10:00:00Z`, or how long ago: `90m`, `12h`, `7d`.
fn since(text: &str, now: Timestamp) -> anyhow::Result<Timestamp> {
    let ago = |number: &str, secs: i64| -> Option<Timestamp> {
        let secs = number.parse::<i64>().ok()?.checked_mul(secs)?;
        now.checked_sub(SignedDuration::from_secs(secs)).ok()
    };
    let units = [("m", 60), ("h", 3_600), ("d", 86_400)];
    let relative = units.into_iter().find_map(|(unit, secs)| ago(text.strip_suffix(unit)?, secs));
    let day = || text.parse::<Date>().ok()?.to_zoned(TimeZone::system()).ok().map(|day| day.timestamp());
    let found = relative.or_else(|| text.parse().ok()).or_else(day);
    found.with_context(|| format!("--since {text} is not a time: write 12h, 7d, 2026-11-19 or 2026-11-19T10:00:00Z"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn since_takes_moments_and_durations() {
        let now: Timestamp = "2026-11-19T12:00:00Z".parse().expect("a time");
        for (text, moment) in [
            ("90m", "2026-11-19T10:30:00Z"),
            ("7d", "2026-11-12T12:00:00Z"),
            ("2026-11-18T01:02:03Z", "2026-11-18T01:02:03Z"),
        ] {
            assert_eq!(since(text, now).expect(text), moment.parse().expect("a time"), "{text}");
        }
        assert!(since("2026-11-18", now).expect("a day") < now);
        for wrong in ["yesterday", "-", "9999999999999999999d", "7w"] {
            assert!(since(wrong, now).is_err(), "{wrong}");
        }
    }
}
