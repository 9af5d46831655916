//! The fields of a turn, from the elements around it.

use serde_json::Value;
use tribune_core::JsonObject;

use super::talk::Turn;

/// The header of a transcript.
#[derive(Default)]
pub(super) struct Sitting {
    pub(super) date: String,
    pub(super) chamber: String,
    pub(super) parliament: String,
    pub(super) session: String,
    pub(super) period: String,
}

/// A debate or subdebate.
pub(super) struct Heading {
    pub(super) depth: usize,
    pub(super) title: String,
    pub(super) page: String,
}

/// The fields of a turn, under the names of speeches.
pub(super) fn fields(sitting: &Sitting, headings: &[Heading], turn: &Turn, venue: &str, is_senate: bool) -> JsonObject {
    let mut fields = JsonObject::new();
    let mut put = |name: &str, value: &str| {
        if !value.is_empty() {
            fields.insert(name.to_owned(), Value::from(value));
        }
    };
    let talker = &turn.talker;
    put("speaker", &talker.name());
    if talker.name() != talker.indexed {
        put("speaker_as_given", &talker.indexed);
    }
    put("speaker_id", &talker.id);
    put("party", &talker.party);
    put("role", &talker.role);
    put("kind", turn.kind.name());
    put("chamber", &sitting.chamber);
    put("venue", venue);
    put("date", &sitting.date);
    put("time", clock(&talker.time));
    put("parliament_no", &sitting.parliament);
    put("session_no", &sitting.session);
    put("period_no", &sitting.period);
    // A senator's electorate is a state.
    let seat = if is_senate { "state" } else { "electorate" };
    put(seat, &talker.electorate);

    let titles: Vec<&str> = headings
        .iter()
        .map(|h| h.title.as_str())
        .filter(|t| !t.is_empty())
        .collect();
    put("title", titles.get(1).or(titles.first()).unwrap_or(&""));
    put("section", &titles.join(" › "));
    for (name, title) in ["debate", "subdebate", "subdebate_2", "subdebate_3"]
        .iter()
        .zip(&titles)
    {
        put(name, title);
    }
    let pages = headings.iter().rev().map(|heading| heading.page.as_str());
    let page = std::iter::once(talker.page.as_str())
        .chain(pages)
        .find(|page| !page.is_empty());
    if let Some(page) = page {
        let page = page.parse::<u64>().map_or_else(|_| Value::from(page), Value::from);
        fields.insert("page".to_owned(), page);
    }
    for (name, flag) in [
        ("in_government", &talker.in_government),
        ("first_speech", &talker.first_speech),
    ] {
        if !flag.is_empty() {
            fields.insert(name.to_owned(), Value::from(flag == "1"));
        }
    }
    if turn.interjections > 0 {
        fields.insert("interjections".to_owned(), Value::from(turn.interjections));
    }
    fields
}

/// `14:00:00` as `14:00`; empty if it is not a time.
fn clock(time: &str) -> &str {
    let is_clock = |time: &&str| {
        let bytes = time.as_bytes();
        bytes[2] == b':' && [0, 1, 3, 4].iter().all(|at| bytes[*at].is_ascii_digit())
    };
    time.get(..5).filter(is_clock).unwrap_or_default()
}
