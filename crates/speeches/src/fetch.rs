//! `fetch_hansard_speech`

use std::sync::Arc;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};
use tribune_core::wire::{MAX_WIRE_BYTES, bound_fields, clip, object, wire_bytes, within_wire};
use tribune_core::{
    CallContext, CallDisplay, Document, DocumentId, Error, Hints, JsonObject, Links, Result, Source, Tool, ToolOutput,
    ToolSpec,
};
use tribune_corpus::DocumentsSource;

use crate::describe;
use crate::holdings::{Holdings, ToolNames, output_schema, text};

const MAX_METADATA_BYTES: usize = 16_000;
/// Ids, URLs and field names.
const OVERHEAD: usize = 8_000;

/// A sheet of paper with a quotation mark.
const ICON: &str = "data:image/svg+xml,%3Csvg%20xmlns='http://www.w3.org/2000/svg'%20viewBox='0%200%2024%2024'%20fill='none'%20stroke='%23456'%20stroke-width='2'%3E%3Cpath%20d='M6%203h8l4%204v14H6zM9%2011v3M12%2011v3'/%3E%3C/svg%3E";

pub(crate) struct FetchSpeech {
    pub(crate) spec: ToolSpec,
    pub(crate) names: ToolNames,
    pub(crate) corpus: Arc<DocumentsSource>,
    pub(crate) links: Links,
}

#[derive(Serialize, JsonSchema)]
struct Speech<'a> {
    speech_id: &'a str,
    title: &'a str,
    /// Exactly as ingested; a part of it only where next_offset is given.
    full_text: &'a str,
    speaker: Option<String>,
    party: Option<String>,
    chamber: Option<String>,
    electorate: Option<String>,
    state: Option<String>,
    date: Option<String>,
    hansard_reference: Option<String>,
    topic_tags: Vec<Value>,
    word_count: Option<u64>,
    /// SHA-256 of the whole text.
    content_hash: Option<String>,
    /// Opens for a person; cite it.
    url: String,
    /// Every other field of the speech.
    metadata: JsonObject,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_offset: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    total_bytes: Option<usize>,
}

impl FetchSpeech {
    /// Accepts the speech's id, the document's id, or a citation.
    async fn find(&self, given: &str, cx: &CallContext) -> Result<Option<Document>> {
        let cited = Links::cited_id(given);
        let scheme = format!("{}:", self.corpus.name());
        let texts = [Some(given), cited.as_deref()].into_iter().flatten();
        let keys: Vec<&str> = texts.flat_map(|text| [Some(text), text.strip_prefix(&scheme)]).flatten().collect();
        for key in keys {
            if let Ok(id) = DocumentId::new(self.corpus.name(), key)
                && let Some(document) = self.corpus.fetch(&id, cx).await?
            {
                return Ok(Some(document));
            }
        }
        Ok(None)
    }
}

#[async_trait]
impl Tool for FetchSpeech {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(&self, args: JsonObject, cx: &CallContext) -> Result<ToolOutput> {
        let given = args.get("speech_id").and_then(Value::as_str).unwrap_or_default().trim();
        let offset = args.get("offset").and_then(Value::as_f64).unwrap_or_default() as usize;
        let Some(document) = self.find(given, cx).await? else {
            return Err(Error::not_found(format!(
                "Speech not found: {}. Ids come from {}: search for words of the speech, then pass on a speech_id of its results exactly as it is.",
                clip(given, 200),
                self.names.search
            )));
        };
        let total = document.text.len();
        if offset > 0 && offset >= total {
            return Err(Error::invalid_argument(format!(
                "`offset` {offset} is past the end: the text has {total} bytes. Call {} with a smaller offset, or without one.",
                self.names.fetch
            )));
        }
        ToolOutput::structured(&speech(&document, offset, &self.links), 1)
    }
}

fn speech<'a>(document: &'a Document, offset: usize, links: &Links) -> Speech<'a> {
    let mut rest = document.metadata.clone();
    rest.shift_remove("speech_id");
    let topic_tags = match rest.shift_remove("topic_tags") {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(tags)) => tags,
        Some(one) => vec![one],
    };
    let word_count = rest.shift_remove("word_count").and_then(|count| count.as_u64());
    let names = ["speaker", "party", "chamber", "electorate", "state", "date", "hansard_reference", "content_hash"];
    let [speaker, party, chamber, electorate, state, date, hansard_reference, content_hash] =
        names.map(|name| text(rest.shift_remove(name).as_ref(), 500));
    let metadata_bytes = bound_fields(&mut rest, MAX_METADATA_BYTES);
    let total = document.text.len();
    let start = document.text.floor_char_boundary(offset);
    let room = MAX_WIRE_BYTES.saturating_sub(metadata_bytes + wire_bytes(&document.title) + OVERHEAD);
    let full_text = within_wire(&document.text[start..], room);
    let end = start + full_text.len();
    Speech {
        speech_id: document.id.key(),
        title: &document.title,
        full_text,
        speaker,
        party,
        chamber,
        electorate,
        state,
        date,
        hansard_reference,
        topic_tags,
        word_count,
        content_hash,
        url: document.url.clone().unwrap_or_else(|| links.citation(&document.id, None)),
        metadata: rest,
        next_offset: (end < total).then_some(end),
        total_bytes: (start > 0 || end < total).then_some(total),
    }
}

pub(crate) fn spec(names: &ToolNames, holdings: &Holdings) -> ToolSpec {
    let search = &names.search;
    ToolSpec {
        name: names.fetch.clone(),
        title: format!("Fetch a speech of {}", clip(&holdings.facts.title, 60)),
        description: describe::fetch(holdings, names),
        input_schema: object(json!({
            "type": "object",
            "properties": {
                "speech_id": {
                    "type": "string",
                    "minLength": 1,
                    "description": format!("The speech_id of a result of {search}, exactly as it is."),
                },
                "offset": {
                    "type": "integer",
                    "minimum": 0,
                    "description": "Where to read on in a long text: the next_offset of the previous answer.",
                },
            },
            "required": ["speech_id"],
        })),
        output_schema: output_schema::<Speech<'_>>(),
        hints: Hints::READ,
        icon: Some(ICON.to_owned()),
        display: CallDisplay {
            progress: Some(("Reading a speech", "Read a speech")),
            subject: Some("speech_id"),
            ..CallDisplay::default()
        },
        aliases: vec![("id", "speech_id"), ("document_id", "speech_id"), ("url", "speech_id")],
    }
}
