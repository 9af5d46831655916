//! Makes a speech of a draft.
//!
//! Only a missing text or an impossible date refuses one. Unambiguous values are normalised, and a warning reports
//! the rest. The original of a changed value is kept (`party_as_given`), and an unknown value stays as it is.

use jiff::civil::Date;
use serde_json::{Value, json};
use tribune_core::JsonObject;
use tribune_core::wire::clip;
use tribune_corpus::content_hash;
use tribune_corpus::format::{
    Draft, FieldMap, Record, Rules, as_given, take_id, take_text, title_from_text, web_address,
};
use tribune_corpus::view::words::{self, long_date};

use super::dates::{self, Day};
use super::parliament::{Aliases, HOUSE, SENATE, SpeechRules};

/// Known fields, in the order in which they are returned before all others.
const KNOWN: &str = "speech_id speaker party chamber state electorate date hansard_reference section page topic_tags \
                     word_count content_hash debate subdebate summary title";

impl Rules for SpeechRules {
    fn assumes_windows_1252(&self) -> bool {
        true
    }

    fn requires_front_matter(&self) -> bool {
        true
    }

    fn record(&self, mut draft: Draft, _: &FieldMap) -> Result<(Record, Vec<String>), String> {
        tidy_names(&mut draft.fields);
        let text = draft.take_body()?;
        let mut speech = Speech { fields: draft.fields, warnings: Vec::new() };
        let date = speech.date()?;
        let key = speech.id(draft.place);
        speech.speaker();
        speech.name("party", &self.parties);
        speech.name("chamber", &self.chambers);
        speech.state(&self.states);
        speech.seat(&self.states);
        speech.section();
        speech.tags();
        let title = speech.title(draft.heading, &text);
        speech.reference(date);
        speech.set("speech_id", key.clone().into());
        speech.set("word_count", text.split_whitespace().count().into());
        speech.set("content_hash", content_hash(&text).into());
        let url = speech.text("url").and_then(web_address);
        let record = Record { key, title, date, url, fields: in_order(speech.fields), text, ..Record::default() };
        Ok((record, speech.warnings))
    }
}

/// A speech while it is being checked.
struct Speech {
    fields: JsonObject,
    warnings: Vec<String>,
}

impl Speech {
    /// The text of a field, unless it is empty.
    fn text(&self, name: &str) -> Option<&str> {
        let text = self.fields.get(name)?.as_str()?.trim();
        (!text.is_empty()).then_some(text)
    }

    /// Sets a field, and keeps the old value as `…_as_given`.
    fn set(&mut self, name: &str, value: Value) {
        match self.fields.insert(name.to_owned(), value.clone()) {
            Some(old) if old != value && !is_blank(&old) => {
                self.fields.entry(as_given(name)).or_insert(old);
            }
            _ => {}
        }
    }

    fn warn(&mut self, warning: String) {
        self.warnings.push(warning);
    }

    fn date(&mut self) -> Result<Option<Date>, String> {
        let Some(given) = self.fields.get("date").and_then(words::text) else {
            self.warn("has no `date`: indexed without one, so searches between two dates do not find it".to_owned());
            return Ok(None);
        };
        let shown = shown(&given);
        let advice = "write it as YYYY-MM-DD, such as 2024-05-28";
        let problem = match dates::day(&given) {
            Day::Certain(date) => {
                self.set("date", date.to_string().into());
                return Ok(Some(date));
            }
            Day::Impossible => return Err(format!("the `date` {shown} is not a day of the calendar: {advice}")),
            Day::Ambiguous => "could be either of two days",
            Day::NotADate => "cannot be understood",
        };
        self.warn(format!("the `date` {shown} {problem}: indexed without one; {advice}"));
        self.set("date", Value::Null);
        Ok(None)
    }

    /// The speech's own id, or else its path.
    fn id(&mut self, place: String) -> String {
        match take_id(&mut self.fields, &["speech_id", "id", "_id"]) {
            Ok(Some(id)) => id,
            Ok(None) => place,
            Err(problem) => {
                self.warn(format!("{problem}: `{place}` is its id instead"));
                place
            }
        }
    }

    /// A speaker may be a name, several names, or a map that also has party and electorate.
    fn speaker(&mut self) {
        let given = self.fields.get("speaker").cloned();
        if let Some(names @ Value::Array(_)) = &given {
            self.set("speaker", words::text(names).unwrap_or_default().into());
        } else if let Some(Value::Object(who)) = given {
            for name in ["party", "electorate", "state", "chamber"] {
                if let Some(value) = who.get(name)
                    && self.fields.get(name).is_none_or(is_blank)
                {
                    self.fields.insert(name.to_owned(), value.clone());
                }
            }
            let name = who.get("name").or_else(|| who.get("full_name")).and_then(Value::as_str);
            self.set("speaker", name.unwrap_or_default().into());
        }
        if self.text("speaker").is_none() {
            self.warn("has no `speaker`: indexed without one, so a search by speaker does not find it".to_owned());
        }
    }

    /// Normalises a party or chamber. An unknown one stays as it is.
    fn name(&mut self, field: &str, known: &Aliases) {
        let Some(given) = self.text(field).map(str::to_owned) else {
            return;
        };
        match known.canonical(&given) {
            Some(name) => self.set(field, name.into()),
            None if known.is_empty() => {}
            None => {
                self.warn(format!(
                    "the {field} {} is not one of {}: kept as it is; add other names in the configuration",
                    shown(&given),
                    known.names().join(", ")
                ));
            }
        }
    }

    /// An unknown `state` is mostly an electorate.
    fn state(&mut self, known: &Aliases) {
        let Some(given) = self.text("state").map(str::to_owned) else {
            return;
        };
        if let Some(name) = known.canonical(&given) {
            self.set("state", name.into());
            return;
        }
        if known.is_empty() {
            return;
        }
        let done = match self.text("electorate") {
            None => "moved to `electorate`".to_owned(),
            Some(seat) if seat.eq_ignore_ascii_case(&given) => "left out, because it is the electorate".to_owned(),
            Some(seat) => format!("left out, and the electorate stays {}", shown(seat)),
        };
        self.warn(format!("the `state` {} is not one of {}: {done}", shown(&given), known.names().join(", ")));
        if self.text("electorate").is_none() {
            self.fields.insert("electorate".to_owned(), given.into());
        }
        self.set("state", Value::Null);
    }

    /// Members of the House have electorates, senators have states.
    fn seat(&mut self, states: &Aliases) {
        let seat = self.text("electorate").map(str::to_owned);
        match (self.text("chamber"), seat) {
            (Some(HOUSE), None) if !self.text("speaker").is_some_and(is_office) => {
                self.warn("a House speech without `electorate`: indexed without one".to_owned());
            }
            (Some(SENATE), Some(seat)) => {
                let state = states.canonical(&seat).map(str::to_owned);
                let done = match state {
                    Some(state) if self.text("state").is_none() => {
                        self.fields.insert("state".to_owned(), state.clone().into());
                        format!("{state} is used as the state, and the electorate is kept as it is")
                    }
                    _ => "kept as it is, though senators represent states".to_owned(),
                };
                self.warn(format!("a Senate speech with the `electorate` {}: {done}", shown(&seat)));
            }
            _ => {}
        }
    }

    /// Joins debate and subdebate.
    fn section(&mut self) {
        let mut steps: Vec<&str> = [self.text("debate"), self.text("subdebate")].into_iter().flatten().collect();
        steps.dedup();
        if self.text("section").is_none() && !steps.is_empty() {
            self.set("section", steps.join(" › ").into());
        }
    }

    /// Topics as a list, from a list or a comma-separated text.
    fn tags(&mut self) {
        let given = ["topic_tags", "tags", "topics", "keywords"]
            .iter()
            .find_map(|name| self.fields.get(*name).filter(|value| !is_blank(value)));
        let tags: Vec<&str> = match given {
            Some(Value::String(text)) => text.split([',', ';']).collect(),
            Some(Value::Array(items)) => items.iter().filter_map(Value::as_str).collect(),
            _ => return,
        };
        let tags = tags.into_iter().map(str::trim).filter(|tag| !tag.is_empty());
        self.set("topic_tags", json!(tags.collect::<Vec<_>>()));
    }

    fn title(&mut self, heading: Option<String>, text: &str) -> String {
        if let Some(title) = take_text(&mut self.fields, "title") {
            return title;
        }
        let stand_in = ["subdebate", "debate", "summary"]
            .iter()
            .find_map(|name| Some((title_from_text(self.text(name)?), format!("its `{name}` is"))))
            .or_else(|| Some((heading?, "its first heading is".to_owned())));
        let (title, from) = stand_in.unwrap_or_else(|| (title_from_text(text), "its first words are".to_owned()));
        self.warn(format!("has no `title`: {from} used instead"));
        title
    }

    /// The printed source: `House Hansard, 28 May 2024, p. 41`.
    fn reference(&mut self, date: Option<Date>) {
        if self.text("hansard_reference").is_some() {
            return;
        }
        let (Some(chamber), Some(date)) = (self.text("chamber"), date) else {
            return;
        };
        let chamber = if chamber == HOUSE { "House" } else { chamber };
        let mut reference = format!("{chamber} Hansard, {}", long_date(date));
        if let Some(page) = self.fields.get("page").and_then(words::text) {
            reference.push_str(&format!(", p. {page}"));
        }
        self.set("hansard_reference", reference.into());
    }
}

/// Renames known fields in any spelling: `Hansard Reference` to `hansard_reference`. Of two spellings of one name, the
/// later one keeps its own.
fn tidy_names(fields: &mut JsonObject) {
    let keys: Vec<String> = fields.keys().cloned().collect();
    for key in keys {
        let tidy = key.trim().to_lowercase().replace([' ', '-'], "_");
        if KNOWN.split(' ').any(|known| known == tidy)
            && !fields.contains_key(&tidy)
            && let Some(value) = fields.shift_remove(&key)
        {
            fields.insert(tidy, value);
        }
    }
}

/// Puts known fields first.
fn in_order(mut fields: JsonObject) -> JsonObject {
    let known = KNOWN.split(' ').filter_map(|name| fields.shift_remove_entry(name));
    let mut ordered: JsonObject = known.collect();
    ordered.extend(fields);
    ordered
}

fn is_blank(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.trim().is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => false,
    }
}

/// Presiding officers have no electorate: `The Speaker`, `Deputy Speaker`, `The Clerk`.
fn is_office(speaker: &str) -> bool {
    let lower = speaker.to_lowercase();
    lower.starts_with("the ") || lower.ends_with("speaker")
}

/// A value in a warning, truncated.
fn shown(value: &str) -> String {
    format!("`{}`", clip(value, 60))
}

#[cfg(test)]
mod tests;
