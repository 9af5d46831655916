//! Classifies the elements of a transcript.

use super::talk::Kind;

pub(super) fn is_heading(name: &str) -> bool {
    name == "debate" || (name.starts_with("subdebate.") && name != "subdebate.text")
}

/// Elements whose text is a value, not speech.
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

/// Entities that older files use without declaring them.
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
