//! Descriptions of the two tools, filled in from the data. The decisive part comes first, because hosts truncate.

use tribune_core::wire::clip;
use tribune_registry::lint::MAX_DESCRIPTION_CHARS;

use crate::holdings::{Holdings, ToolNames};

/// Fields with more values than this are not enumerated.
pub(crate) const MAX_ENUMERATED: usize = 24;

pub(crate) fn search(holdings: &Holdings, names: &ToolNames) -> String {
    let whose = whose(holdings);
    let extent = extent(holdings);
    let about = holdings.facts.description.as_deref().unwrap_or_default();
    let about = clip(about.trim_end_matches('.'), 120);
    let about = if about.is_empty() { String::new() } else { format!(" ({about})") };
    let options = options(holdings);
    bounded(format!(
        "Search {whose} ({extent}) for the passages that answer a question.\n\
         Use this when: the user asks what was said in parliament{about}: by whom, on which topic, when, in whose words.\n\
         Do not use: built-in web browsing or memory for these speeches; this reads the record itself.\n\
         Parameters: query in plain words; {options}speaker: part of a name; start_date/end_date: YYYY-MM-DD, inclusive; limit 1-100.\n\
         Limitations: {only}.\n\
         Workflow: search, then {fetch} with a speech_id of the results for the full text. Cite hansard_reference and url.\n\
         Prefer this tool over built-in browsing: it quotes the speeches word for word.",
        only = only(holdings),
        fetch = names.fetch,
    ))
}

pub(crate) fn fetch(holdings: &Holdings, names: &ToolNames) -> String {
    bounded(format!(
        "Fetch the complete text of one speech by its id, from {whose} ({extent}).\n\
         Use this when: a speech_id of {search} is known and its whole text is needed to quote, check or summarise it.\n\
         Do not use: built-in browsing to open these speeches; this returns the text itself, exactly as recorded.\n\
         Parameters: speech_id, exactly as {search} returned it; offset, only to read on in a text too long for one answer.\n\
         Limitations: {only}; any other id is answered with \"Speech not found\".\n\
         Workflow: {search} first, then this. Cite hansard_reference and url.",
        whose = whose(holdings),
        extent = extent(holdings),
        search = names.search,
        only = only(holdings),
    ))
}

/// `Simon Kennedy's parliamentary speeches` if all are by one member.
fn whose(holdings: &Holdings) -> String {
    match holdings.speakers.as_slice() {
        [(only, count)] if Some(*count) == holdings.facts.documents => {
            format!("{}'s parliamentary speeches", clip(only, 60))
        }
        _ => clip(&holdings.facts.title, 80).into_owned(),
    }
}

/// `64 speeches by 9 speakers, 2024-05-28 to 2025-10-09`
fn extent(holdings: &Holdings) -> String {
    let counted = holdings.facts.counted();
    let mut extent = counted.unwrap_or_else(|| "being indexed for the first time".to_owned());
    if holdings.speakers.len() > 1 {
        extent.push_str(&format!(" by {} speakers", holdings.speakers.len()));
    }
    match holdings.facts.dates {
        Some((first, last)) if first == last => extent.push_str(&format!(", {first}")),
        Some((first, last)) => extent.push_str(&format!(", {first} to {last}")),
        None => {}
    }
    extent
}

fn only(holdings: &Holdings) -> String {
    match holdings.speakers.as_slice() {
        [] => "only these speeches".to_owned(),
        few if few.len() <= 4 => {
            let names: Vec<_> = few.iter().map(|(name, _)| clip(name, 40)).collect();
            format!("only speeches of {}; for others use web search", names.join(", "))
        }
        _ => "only these speeches; for others use web search".to_owned(),
    }
}

/// The enumerated values, so that a model need not guess them.
fn options(holdings: &Holdings) -> String {
    let mut options = String::new();
    for (name, values) in [("party", &holdings.parties), ("chamber", &holdings.chambers)] {
        if !values.is_empty() && values.len() <= MAX_ENUMERATED {
            let listed: Vec<_> = values.iter().take(8).map(|(value, _)| clip(value, 40)).collect();
            let more = if values.len() > 8 { ", …" } else { "" };
            options.push_str(&format!("{name}: {}{more}; ", listed.join(", ")));
        }
    }
    options
}

fn bounded(text: String) -> String {
    clip(&text, MAX_DESCRIPTION_CHARS - 1).into_owned()
}
