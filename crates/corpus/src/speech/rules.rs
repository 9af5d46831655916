//! A draft becomes a speech.
//!
//! Only a missing text or an impossible date refuses one. Everything else is put right where that is
//! certain, and told as a warning where it is odd: what was found, and what was done about it. What is
//! changed is kept beside its better self (`party_as_given`), and what is not known here stays as it was.

use std::collections::BTreeMap;

use jiff::civil::Date;
use serde_json::{Value, json};
use tribune_core::JsonObject;

use super::aliases::Aliases;
use super::dates::{self, Day};
use crate::duplicates::content_hash;
use crate::read::mapping::as_given;
use crate::read::{Draft, Record, take_id, take_text, title_from_text, web_address};

pub(super) const HOUSE: &str = "House of Representatives";
pub(super) const SENATE: &str = "Senate";

/// Fields with a meaning, in the order in which they are returned before all others.
const KNOWN: [&str; 17] = [
    "speech_id",
    "speaker",
    "party",
    "chamber",
    "state",
    "electorate",
    "date",
    "hansard_reference",
    "section",
    "page",
    "topic_tags",
    "word_count",
    "content_hash",
    "debate",
    "subdebate",
    "summary",
    "title",
];

/// What is known about a parliament.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpeechRules {
    pub parties: Aliases,
    pub chambers: Aliases,
    pub states: Aliases,
}

impl Default for SpeechRules {
    fn default() -> Self {
        Self::australia()
    }
}

type Table = BTreeMap<String, Vec<String>>;

impl SpeechRules {
    /// The Commonwealth of Australia. Members of Queensland's LNP sit with the Liberals or with the
    /// Nationals, and a speech does not say with which: LNP stays what it is.
    pub fn australia() -> Self {
        Self {
            parties: Aliases::built_in(
                &[
                    (
                        "Liberal",
                        &["LIB", "LP", "Liberals", "Liberal Party", "Liberal Party of Australia"],
                    ),
                    ("Labor", &["ALP", "Labour", "Labor Party", "Australian Labor Party"]),
                    (
                        "Greens",
                        &[
                            "AG",
                            "GRN",
                            "Green",
                            "The Greens",
                            "Australian Greens",
                            "The Australian Greens",
                        ],
                    ),
                    (
                        "National",
                        &[
                            "NATS",
                            "NAT",
                            "NP",
                            "NPA",
                            "Nationals",
                            "The Nationals",
                            "National Party",
                            "National Party of Australia",
                        ],
                    ),
                    ("Independent", &["IND", "Ind"]),
                ],
                &[(
                    "LNP",
                    &["Liberal National Party", "Liberal National Party of Queensland"],
                )],
            ),
            chambers: Aliases::built_in(
                &[
                    (
                        HOUSE,
                        &["REPS", "HoR", "House", "House of Reps", "The House of Representatives"],
                    ),
                    (SENATE, &["Sen", "The Senate"]),
                ],
                &[],
            ),
            states: Aliases::built_in(
                &[
                    ("NSW", &["New South Wales"]),
                    ("VIC", &["Victoria"]),
                    ("QLD", &["Queensland"]),
                    ("WA", &["Western Australia"]),
                    ("SA", &["South Australia"]),
                    ("TAS", &["Tasmania"]),
                    ("ACT", &["Australian Capital Territory"]),
                    ("NT", &["Northern Territory"]),
                ],
                &[],
            ),
        }
    }

    /// A parliament of which nothing is known but what its owner says.
    pub fn unknown() -> Self {
        Self {
            parties: Aliases::default(),
            chambers: Aliases::default(),
            states: Aliases::default(),
        }
    }

    /// Adds what an owner says.
    #[must_use]
    pub fn with(self, parties: &Table, chambers: &Table, states: &Table) -> Self {
        Self {
            parties: self.parties.with(parties),
            chambers: self.chambers.with(chambers),
            states: self.states.with(states),
        }
    }

    /// The speech, with warnings; or why it is not taken.
    pub(crate) fn judge(&self, mut draft: Draft) -> Result<(Record, Vec<String>), String> {
        tidy_names(&mut draft.fields);
        let text = draft.take_body()?;
        let mut speech = Speech {
            fields: draft.fields,
            warnings: Vec::new(),
        };
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
        let record = Record {
            key,
            title,
            date,
            url,
            fields: in_order(speech.fields),
            text,
        };
        Ok((record, speech.warnings))
    }
}

/// A speech being judged.
struct Speech {
    fields: JsonObject,
    warnings: Vec<String>,
}

impl Speech {
    /// A field's text, if it has any.
    fn text(&self, name: &str) -> Option<&str> {
        let text = self.fields.get(name)?.as_str()?.trim();
        (!text.is_empty()).then_some(text)
    }

    /// Sets a field; what it was before is kept beside it.
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
        let given = match self.fields.get("date") {
            None => String::new(),
            Some(Value::String(text)) => text.trim().to_owned(),
            Some(Value::Null) => String::new(),
            Some(other) => other.to_string(),
        };
        if given.is_empty() {
            self.warn("has no `date`: taken without one, so searches between two dates do not find it".to_owned());
            return Ok(None);
        }
        let shown = shown(&given);
        let advice = "write it as YYYY-MM-DD, such as 2024-05-28";
        match dates::day(&given) {
            Day::Certain(date) => {
                self.set("date", date.to_string().into());
                return Ok(Some(date));
            }
            Day::Impossible => return Err(format!("the `date` {shown} is not a day of the calendar: {advice}")),
            Day::Ambiguous => self.warn(format!(
                "the `date` {shown} could be either of two days: taken without one; {advice}"
            )),
            Day::NotADate => self.warn(format!(
                "the `date` {shown} cannot be understood: taken without one; {advice}"
            )),
        }
        self.set("date", Value::Null);
        Ok(None)
    }

    /// The speech's own id, or the place where it stands.
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
        let named = match self.fields.get("speaker") {
            Some(Value::Array(names)) => {
                let names: Vec<&str> = names.iter().filter_map(Value::as_str).collect();
                Some(names.join(", "))
            }
            Some(Value::Object(who)) => {
                let who = who.clone();
                for name in ["party", "electorate", "state", "chamber"] {
                    if let Some(value) = who.get(name)
                        && self.fields.get(name).is_none_or(is_blank)
                    {
                        self.fields.insert(name.to_owned(), value.clone());
                    }
                }
                let name = who.get("name").or_else(|| who.get("full_name"));
                Some(name.and_then(Value::as_str).unwrap_or_default().to_owned())
            }
            _ => None,
        };
        if let Some(name) = named {
            self.set("speaker", name.into());
        }
        if self.text("speaker").is_none() {
            self.warn("has no `speaker`: taken without one, so a search by speaker does not find it".to_owned());
        }
    }

    /// One name for a party or a chamber. What is not known stays as it stands.
    fn name(&mut self, field: &str, known: &Aliases) {
        let Some(given) = self.text(field).map(str::to_owned) else {
            return;
        };
        match known.canonical(&given) {
            Some(name) => self.set(field, name.into()),
            None if known.is_empty() => {}
            None => {
                let names: Vec<&str> = known.offered().collect();
                self.warn(format!(
                    "the {field} {} is not one of {}: kept as it stands; other names are told in the configuration",
                    shown(&given),
                    names.join(", ")
                ));
            }
        }
    }

    /// A `state` that is none is most often the electorate.
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
        let states: Vec<&str> = known.offered().collect();
        let found = format!("the `state` {} is not one of {}", shown(&given), states.join(", "));
        let done = match self.text("electorate") {
            None => "moved to `electorate`".to_owned(),
            Some(seat) if seat.eq_ignore_ascii_case(&given) => "left out, because it is the electorate".to_owned(),
            Some(seat) => format!("left out, and the electorate stays {}", shown(seat)),
        };
        if self.text("electorate").is_none() {
            self.fields.insert("electorate".to_owned(), given.into());
        }
        self.set("state", Value::Null);
        self.warn(format!("{found}: {done}"));
    }

    /// Members of the House have electorates, senators have states.
    fn seat(&mut self, states: &Aliases) {
        let seat = self.text("electorate").map(str::to_owned);
        match (self.text("chamber"), seat) {
            (Some(HOUSE), None) if !self.text("speaker").is_some_and(is_office) => {
                self.warn("a House speech without `electorate`: taken without one".to_owned());
            }
            (Some(SENATE), Some(seat)) => {
                let state = states.canonical(&seat).map(str::to_owned);
                let done = match state {
                    Some(state) if self.text("state").is_none() => {
                        self.fields.insert("state".to_owned(), state.clone().into());
                        format!("{state} is taken for the state, and the electorate is kept as it stands")
                    }
                    _ => "kept as it stands, though senators stand for states".to_owned(),
                };
                self.warn(format!(
                    "a Senate speech with the `electorate` {}: {done}",
                    shown(&seat)
                ));
            }
            _ => {}
        }
    }

    /// Debate and subdebate as one line.
    fn section(&mut self) {
        if self.text("section").is_some() {
            return;
        }
        let mut steps: Vec<&str> = Vec::new();
        for step in ["debate", "subdebate"].iter().filter_map(|name| self.text(name)) {
            if !steps.contains(&step) {
                steps.push(step);
            }
        }
        if !steps.is_empty() {
            let section = steps.join(" › ");
            self.set("section", section.into());
        }
    }

    /// Topics as a list, whether they came as one or as words between commas.
    fn tags(&mut self) {
        let given = ["topic_tags", "tags", "topics", "keywords"]
            .iter()
            .find_map(|name| self.fields.get(*name).filter(|value| !is_blank(value)));
        let tags: Vec<String> = match given {
            Some(Value::String(text)) => text.split([',', ';']).map(|tag| tag.trim().to_owned()).collect(),
            Some(Value::Array(items)) => items
                .iter()
                .filter_map(Value::as_str)
                .map(|tag| tag.trim().to_owned())
                .collect(),
            _ => return,
        };
        let tags: Vec<String> = tags.into_iter().filter(|tag| !tag.is_empty()).collect();
        self.set("topic_tags", json!(tags));
    }

    fn title(&mut self, heading: Option<String>, text: &str) -> String {
        if let Some(title) = take_text(&mut self.fields, "title") {
            return title;
        }
        let stand_in = ["subdebate", "debate", "summary"]
            .iter()
            .find_map(|name| Some((*name, title_from_text(self.text(name)?))));
        let (title, from) = match (stand_in, heading) {
            (Some((name, title)), _) => (title, format!("its `{name}` stands")),
            (None, Some(heading)) => (heading, "its first heading stands".to_owned()),
            (None, None) => (title_from_text(text), "its first words stand".to_owned()),
        };
        self.warn(format!("has no `title`: {from} for it"));
        title
    }

    /// Where it is printed: `House Hansard, 28 May 2024, p. 41`.
    fn reference(&mut self, date: Option<Date>) {
        if self.text("hansard_reference").is_some() {
            return;
        }
        let (Some(chamber), Some(date)) = (self.text("chamber"), date) else {
            return;
        };
        let chamber = if chamber == HOUSE { "House" } else { chamber };
        let mut reference = format!("{chamber} Hansard, {}", dates::long(date));
        let page = match self.fields.get("page") {
            Some(Value::String(page)) => page.trim().to_owned(),
            Some(Value::Number(page)) => page.to_string(),
            _ => String::new(),
        };
        if !page.is_empty() {
            reference.push_str(&format!(", p. {page}"));
        }
        self.set("hansard_reference", reference.into());
    }
}

/// Known fields under their exact names, however they are capitalised: `Hansard Reference` as `hansard_reference`.
fn tidy_names(fields: &mut JsonObject) {
    let odd: Vec<(String, &str)> = fields
        .keys()
        .filter_map(|key| {
            let tidy = key.trim().to_lowercase().replace([' ', '-'], "_");
            let known = KNOWN.iter().find(|name| **name == tidy)?;
            (key != known && !fields.contains_key(*known)).then(|| (key.clone(), *known))
        })
        .collect();
    for (key, known) in odd {
        if let Some(value) = fields.shift_remove(&key)
            && let Some(taken) = fields.insert(known.to_owned(), value)
        {
            // Two spellings of one name in one file: the later one keeps its own.
            let ours = fields.insert(known.to_owned(), taken);
            fields.insert(key, ours.unwrap_or_default());
        }
    }
}

/// What a reader looks for first comes first.
fn in_order(mut fields: JsonObject) -> JsonObject {
    let mut ordered = JsonObject::new();
    for name in KNOWN {
        if let Some(value) = fields.shift_remove(name) {
            ordered.insert(name.to_owned(), value);
        }
    }
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

/// Whoever presides speaks for no electorate: `The Speaker`, `Deputy Speaker`, `The Clerk`.
fn is_office(speaker: &str) -> bool {
    let lower = speaker.to_lowercase();
    lower.starts_with("the ") || lower.ends_with("speaker")
}

/// A value as a warning shows it.
fn shown(value: &str) -> String {
    const MAX_CHARS: usize = 60;
    if value.chars().count() <= MAX_CHARS {
        return format!("`{value}`");
    }
    let cut: String = value.chars().take(MAX_CHARS).collect();
    format!("`{cut}…`")
}

#[cfg(test)]
mod tests;
