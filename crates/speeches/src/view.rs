//! The page of a speech: office and seat of the speaker, reference, citation, debate.

use tribune_core::{Document, JsonObject};
use tribune_corpus::engine::Result;
use tribune_corpus::snapshot::Snapshot;
use tribune_corpus::view::words::{author, cited_title, facts, long_date, sentence, text};
use tribune_page::Reading;

/// Fields that a page shows elsewhere, or that mean nothing to people.
const SHOWN_ELSEWHERE: &str = "speaker author authors date title url party chamber electorate state role \
                               hansard_reference speech_id content_hash";

/// Turns the page of a document into the page of a speech.
pub(crate) fn speech(reading: Reading, document: &Document, collection: &str, snapshot: &Snapshot) -> Result<Reading> {
    let fields = &document.metadata;
    let date = reading.date.map(long_date);
    let debate = ["subdebate", "debate"].into_iter().find_map(|name| Some((name, fields.get(name)?.as_str()?)));
    let mut groups = reading.groups;
    if let Some((name, debate)) = debate {
        let others = snapshot.others_of_day(document, name, debate)?;
        if !others.is_empty() {
            groups.push(("In the same debate".to_owned(), others));
        }
    }
    Ok(Reading {
        byline_details: byline_details(fields),
        reference: reference(fields).or(reading.reference),
        cite_as: cite_as(fields, &document.title, date, collection),
        facts: facts(fields, |name| is_shown_elsewhere(fields, name)),
        groups,
        ..reading
    })
}

fn field(fields: &JsonObject, name: &str) -> Option<String> {
    text(fields.get(name)?)
}

/// Office, party, seat and chamber of a speaker, without repetition.
fn byline_details(fields: &JsonObject) -> Vec<String> {
    if author(fields).is_none() {
        return Vec::new();
    }
    let mut details: Vec<String> = Vec::new();
    for name in ["role", "party", "electorate", "state", "chamber"] {
        if let Some(detail) = field(fields, name)
            && !details.iter().any(|known| known.contains(&detail))
        {
            details.push(detail);
        }
    }
    details
}

/// Where the speech is on record.
fn reference(fields: &JsonObject) -> Option<String> {
    let page = field(fields, "page").map(|page| format!("p. {page}"));
    let on_record: Vec<String> = [field(fields, "chamber"), page].into_iter().flatten().collect();
    field(fields, "hansard_reference").or_else(|| (!on_record.is_empty()).then(|| on_record.join(", ")))
}

/// `Jane Citizen, ‘Title’, House of Representatives, 12 June 2019, Hansard p. 4.`, without unknown parts.
fn cite_as(fields: &JsonObject, title: &str, date: Option<String>, collection: &str) -> String {
    let on_record = field(fields, "hansard_reference");
    let mut parts: Vec<String> = Vec::new();
    parts.extend(author(fields).map(|(_, name)| name));
    parts.push(cited_title(title));
    let has_date = |record: &String| date.as_ref().is_some_and(|date| record.contains(date));
    // A reference with the date has the chamber too.
    if !on_record.as_ref().is_some_and(has_date) {
        parts.extend(field(fields, "chamber").or_else(|| on_record.is_none().then(|| collection.to_owned())));
        parts.extend(date);
    }
    parts.extend(on_record);
    sentence(&parts)
}

fn is_shown_elsewhere(fields: &JsonObject, name: &str) -> bool {
    // The section consists of debate and subdebate.
    let is_in_section = fields.contains_key("section") && (name == "debate" || name.starts_with("subdebate"));
    SHOWN_ELSEWHERE.split(' ').any(|shown| shown == name) || is_in_section
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn fields(value: Value) -> JsonObject {
        value.as_object().cloned().expect("fields")
    }

    #[test]
    fn citation_is_made_of_what_is_known() {
        let cite = |value| {
            let date = Some("12 June 2019".to_owned());
            cite_as(&fields(value), "On beans", date, "Garden notes")
        };
        assert_eq!(cite(json!({})), "‘On beans’, Garden notes, 12 June 2019.");
        assert_eq!(
            cite(json!({"speaker": "Jane Citizen", "chamber": "Senate"})),
            "Jane Citizen, ‘On beans’, Senate, 12 June 2019."
        );
        assert_eq!(
            cite(
                json!({"speaker": "Jane Citizen", "chamber": "Senate", "hansard_reference": "Senate Hansard, 12 June 2019, p. 4"})
            ),
            "Jane Citizen, ‘On beans’, Senate Hansard, 12 June 2019, p. 4."
        );
        assert_eq!(
            cite(json!({"author": ["Ann", "Ben"], "chamber": "Senate", "hansard_reference": "Hansard p. 4"})),
            "Ann, Ben, ‘On beans’, Senate, 12 June 2019, Hansard p. 4."
        );
    }

    #[test]
    fn byline_repeats_nothing_and_references_are_not_invented() {
        let speech = fields(json!({
            "speaker": "Jane", "role": "Member for Banksmere", "party": "Labor", "electorate": "Banksmere", "state": "NSW",
        }));
        assert_eq!(byline_details(&speech), ["Member for Banksmere", "Labor", "NSW"]);
        assert_eq!(byline_details(&fields(json!({"party": "Labor"}))), Vec::<String>::new());
        assert_eq!(reference(&speech), None);
        let paged = fields(json!({"chamber": "Senate", "page": 4}));
        assert_eq!(reference(&paged).as_deref(), Some("Senate, p. 4"));
    }
}
