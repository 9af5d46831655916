//! The fields of a turn, from the elements around it.

use serde_json::Value;
use tribune_core::JsonObject;

use super::names::Values;
use super::talk::Turn;

/// The fields of a turn, under the names of speeches. `session` has the values of the transcript's header.
pub(super) fn fields(session: &Values, headings: &[Values], turn: &Turn, venue: &str, is_senate: bool) -> JsonObject {
    let mut fields = JsonObject::new();
    let mut put = |name: &str, value: &str| {
        if !value.is_empty() {
            fields.insert(name.to_owned(), Value::from(value));
        }
    };
    let talker = &turn.talker;
    let (name, indexed) = (talker.full_name(), talker.get("name"));
    put("speaker", &name);
    if name != indexed {
        put("speaker_as_given", indexed);
    }
    put("speaker_id", talker.get("name.id"));
    put("party", talker.get("party"));
    put("role", talker.get("role"));
    put("kind", turn.kind.name());
    put("chamber", session.get("chamber"));
    put("venue", venue);
    put("date", session.get("date"));
    put("time", clock(talker.get("time.stamp")));
    put("parliament_no", session.get("parliament.no"));
    put("session_no", session.get("session.no"));
    put("period_no", session.get("period.no"));
    // A senator's electorate is a state.
    let seat = if is_senate { "state" } else { "electorate" };
    put(seat, talker.get("electorate"));

    let titles = headings.iter().map(|heading| heading.get("title"));
    let titles: Vec<&str> = titles.filter(|title| !title.is_empty()).collect();
    put("title", titles.get(1).or(titles.first()).unwrap_or(&""));
    put("section", &titles.join(" › "));
    for (name, title) in ["debate", "subdebate", "subdebate_2", "subdebate_3"].iter().zip(&titles) {
        put(name, title);
    }
    let nearest = std::iter::once(talker).chain(headings.iter().rev());
    let page = nearest.map(|values| values.get("page.no")).find(|page| !page.is_empty());
    if let Some(page) = page {
        let page = page.parse::<u64>().map_or_else(|_| Value::from(page), Value::from);
        fields.insert("page".to_owned(), page);
    }
    for (name, element) in [("in_government", "in.gov"), ("first_speech", "first.speech")] {
        if let Some(flag) = talker.0.get(element) {
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
