//! What the elements of a transcript are.

use super::talk::Kind;

pub(super) fn is_heading(name: &str) -> bool {
    name == "debate" || (name.starts_with("subdebate.") && name != "subdebate.text")
}

/// Elements whose text is a value, and not something said.
pub(super) fn is_value(name: &str) -> bool {
    matches!(
        name,
        "date"
            | "chamber"
            | "parliament.no"
            | "session.no"
            | "period.no"
            | "title"
            | "page.no"
            | "name"
            | "name.id"
            | "electorate"
            | "party"
            | "role"
            | "time.stamp"
            | "in.gov"
            | "first.speech"
    )
}

/// Elements that begin and end a paragraph.
pub(super) fn is_block(name: &str) -> bool {
    matches!(
        name,
        "para"
            | "p"
            | "body"
            | "talk.start"
            | "talk.text"
            | "motion"
            | "motionnospeech"
            | "quote"
            | "list"
            | "item"
            | "table"
            | "tr"
            | "td"
            | "th"
            | "row"
            | "entry"
            | "li"
            | "division"
    ) || Kind::of_element(name).is_some()
}

/// The few that occur in older files without being declared.
pub(super) fn html_entity(name: &str) -> Option<&'static str> {
    Some(match name {
        "nbsp" => "\u{a0}",
        "ndash" => "–",
        "mdash" => "—",
        "lsquo" => "‘",
        "rsquo" => "’",
        "ldquo" => "“",
        "rdquo" => "”",
        "hellip" => "…",
        "pound" => "£",
        "eacute" => "é",
        "frac12" => "½",
        "deg" => "°",
        _ => return None,
    })
}
