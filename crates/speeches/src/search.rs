//! `search_hansard_speeches`

use std::sync::Arc;

use async_trait::async_trait;
use jiff::civil::Date;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};
use tribune_core::wire::{MAX_WIRE_BYTES, clip, object};
use tribune_core::{
    CallContext, CallDisplay, Error, Hints, Hit, JsonObject, Links, Result, Tool, ToolOutput, ToolSpec,
};
use tribune_corpus::{Condition, DocumentsSource, Filter};

use crate::describe::{self, MAX_ENUMERATED};
use crate::holdings::{Holdings, ToolNames, output_schema, text};
use crate::speech::SpeechRules;

const DEFAULT_LIMIT: usize = 10;
const MAX_LIMIT: usize = 100;
const MAX_QUERY_CHARS: usize = 1000;
const MAX_TITLE_CHARS: usize = 200;

/// A speech bubble.
const ICON: &str = "data:image/svg+xml,%3Csvg%20xmlns='http://www.w3.org/2000/svg'%20viewBox='0%200%2024%2024'%20fill='none'%20stroke='%23456'%20stroke-width='2'%3E%3Cpath%20d='M3%204h18v12H10l-5%204v-4H3z'/%3E%3C/svg%3E";

pub(crate) struct SearchSpeeches {
    pub(crate) spec: ToolSpec,
    pub(crate) corpus: Arc<DocumentsSource>,
    pub(crate) rules: SpeechRules,
    pub(crate) links: Links,
}

#[derive(Serialize, JsonSchema)]
struct Answer<'a> {
    /// Best first, each speech once, by its best passage; empty when nothing matches.
    speeches: Vec<Speech>,
    /// How many speeches this answer has.
    total_count: usize,
    query: &'a str,
    /// Whether something was left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

#[derive(Serialize, JsonSchema)]
struct Speech {
    chunk_id: String,
    /// Pass it to the fetch tool exactly as it is.
    speech_id: String,
    /// The best passage, whole sentences, at most 500 characters.
    excerpt: String,
    /// From 0 to 1, falling; compares within this answer only.
    relevance_score: f64,
    /// Which passage of the speech, from 0.
    chunk_index: usize,
    speaker: Option<String>,
    party: Option<String>,
    chamber: Option<String>,
    state: Option<String>,
    date: Option<String>,
    hansard_reference: Option<String>,
    title: String,
    word_count: Option<u64>,
    /// Opens at the passage for a person; cite it.
    url: String,
}

impl SearchSpeeches {
    fn filter(&self, args: &JsonObject) -> Result<Filter> {
        let text_of = |name: &str| {
            let text = args.get(name).and_then(Value::as_str);
            text.filter(|text| !text.trim().is_empty()).map(str::to_owned)
        };
        let is = |field: &str| Some(Condition::Is { field: field.to_owned(), value: text_of(field)? });
        let mut conditions: Vec<Condition> = [is("party"), is("chamber")].into_iter().flatten().collect();
        conditions.extend(text_of("speaker").map(|part| Condition::Holds { field: "speaker".to_owned(), part }));
        let date = |name: &str| text_of(name).map(|text| self.date(name, &text)).transpose();
        let (from, until) = (date("start_date")?, date("end_date")?);
        if let (Some(from), Some(until)) = (from, until)
            && from > until
        {
            return Err(Error::invalid_argument(format!(
                "{} was not run: start_date {from} is after end_date {until}. Swap them, or leave one out.",
                self.spec.name
            )));
        }
        if from.is_some() || until.is_some() {
            conditions.push(Condition::Days { from, until });
        }
        Ok(Filter(conditions))
    }

    fn date(&self, name: &str, text: &str) -> Result<Date> {
        text.trim().parse().map_err(|_| {
            Error::invalid_argument(format!(
                "{} was not run: `{name}` is not a date of the calendar: {}. Use YYYY-MM-DD, for example 2024-05-28.",
                self.spec.name,
                clip(text, 40)
            ))
        })
    }
}

#[async_trait]
impl Tool for SearchSpeeches {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    /// Replaces codes and variants by the values in the schema.
    fn normalise(&self, args: &mut JsonObject) {
        for (name, aliases) in [("party", &self.rules.parties), ("chamber", &self.rules.chambers)] {
            let Some(Value::String(given)) = args.get_mut(name) else {
                continue;
            };
            let listed = self.spec.input_schema["properties"][name]["enum"].as_array();
            let mut listed = listed.into_iter().flatten().filter_map(Value::as_str);
            let value = listed.find(|value| value.eq_ignore_ascii_case(given.trim()));
            if let Some(value) = value.or_else(|| aliases.canonical(given)) {
                *given = value.to_owned();
            }
        }
    }

    async fn call(&self, args: JsonObject, cx: &CallContext) -> Result<ToolOutput> {
        let query = args.get("query").and_then(Value::as_str).unwrap_or_default().to_owned();
        if query.trim().chars().count() < 2 {
            return Err(Error::invalid_argument(format!(
                "{} was not run: `query` needs at least 2 characters. Call it again with the words to look for.",
                self.spec.name
            )));
        }
        let limit = args.get("limit").and_then(Value::as_f64);
        let limit = limit.map_or(DEFAULT_LIMIT, |limit| limit as usize).clamp(1, MAX_LIMIT);
        let filter = self.filter(&args)?;
        let hits = self.corpus.find(&query, limit, filter, cx).await?;
        let found = hits.len();
        let speeches = within_room(hits, &self.links);
        let left_out = found - speeches.len();
        let note = (left_out > 0).then(|| {
            format!("{left_out} further results did not fit into one answer; narrow the search or lower limit")
        });
        let count = speeches.len();
        let answer = Answer { speeches, total_count: count, query: &query, note };
        ToolOutput::structured(&answer, count)
    }
}

/// As many of the hits as fit into one answer.
fn within_room(hits: Vec<(Hit, JsonObject)>, links: &Links) -> Vec<Speech> {
    let mut room = MAX_WIRE_BYTES;
    let mut speeches = Vec::with_capacity(hits.len());
    for (hit, fields) in hits {
        let speech = speech(hit, &fields, links);
        let json = serde_json::to_string(&speech).unwrap_or_default();
        // Sent twice, the second time as a string.
        let takes = json.len() * 2 + json.matches(['"', '\\']).count();
        if takes > room {
            break;
        }
        room -= takes;
        speeches.push(speech);
    }
    speeches
}

fn speech(hit: Hit, fields: &JsonObject, links: &Links) -> Speech {
    // Fields come from files, so a long one must not fill the answer.
    let short = |name: &str| text(fields.get(name), 160);
    let chunk_index = hit.passage.unwrap_or(0);
    Speech {
        chunk_id: format!("{}#{chunk_index}", hit.id.key()),
        speech_id: hit.id.key().to_owned(),
        relevance_score: (f64::from(hit.score) * 10_000.0).round() / 10_000.0,
        chunk_index,
        speaker: short("speaker"),
        party: short("party"),
        chamber: short("chamber"),
        state: short("state"),
        date: short("date"),
        hansard_reference: short("hansard_reference"),
        word_count: fields.get("word_count").and_then(Value::as_u64),
        title: clip(&hit.title, MAX_TITLE_CHARS).into_owned(),
        url: links.citation(&hit.id, hit.passage),
        excerpt: hit.snippet,
    }
}

pub(crate) fn spec(names: &ToolNames, holdings: &Holdings) -> ToolSpec {
    ToolSpec {
        name: names.search.clone(),
        title: format!("Search {}", clip(&holdings.facts.title, 60)),
        description: describe::search(holdings, names),
        input_schema: object(json!({
            "type": "object",
            "properties": {
                "query": {
                    "type": "string",
                    "minLength": 2,
                    "maxLength": MAX_QUERY_CHARS,
                    "description": "What to look for, in plain words: a question, topics or keywords.",
                },
                "party": enumerated("political party", &holdings.parties),
                "chamber": enumerated("chamber", &holdings.chambers),
                "speaker": {
                    "type": "string",
                    "minLength": 1,
                    "maxLength": 100,
                    "description": "Only speeches of speakers whose name holds this, whole or in part.",
                },
                "start_date": date("Only speeches on or after this date", holdings.facts.dates.map(|dates| dates.0)),
                "end_date": date("Only speeches on or before this date", holdings.facts.dates.map(|dates| dates.1)),
                "limit": {
                    "type": "integer",
                    "minimum": 1,
                    "maximum": MAX_LIMIT,
                    "default": DEFAULT_LIMIT,
                    "description": "How many speeches to return at most (1-100, default 10).",
                },
            },
            "required": ["query"],
        })),
        output_schema: output_schema::<Answer<'_>>(),
        // Not idempotent: results change when speeches are added.
        hints: Hints { idempotent: false, ..Hints::READ },
        icon: Some(ICON.to_owned()),
        display: CallDisplay {
            progress: Some(("Searching speeches", "Searched speeches")),
            subject: Some("speech_id"),
            ..CallDisplay::default()
        },
        aliases: vec![("q", "query"), ("top_k", "limit"), ("max_results", "limit")],
    }
}

fn enumerated(what: &str, values: &[(String, u64)]) -> Value {
    if values.is_empty() || values.len() > MAX_ENUMERATED {
        return json!({
            "type": "string",
            "minLength": 1,
            "maxLength": 100,
            "description": format!("Only speeches of this {what}, spelt in full."),
        });
    }
    let mut names: Vec<&str> = values.iter().map(|(value, _)| value.as_str()).collect();
    names.sort_unstable();
    json!({
        "type": "string",
        "enum": names,
        "description": format!("Only speeches of this {what}. Options: {}.", clip(&names.join(", "), 400)),
    })
}

fn date(meaning: &str, example: Option<Date>) -> Value {
    let example = example.map(|date| format!(" Example: {date}.")).unwrap_or_default();
    json!({
        "type": "string",
        "pattern": r"^\d{4}-\d{2}-\d{2}$",
        "description": format!("{meaning} (YYYY-MM-DD).{example}"),
    })
}
