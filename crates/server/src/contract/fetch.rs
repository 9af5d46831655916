//! `fetch(id)` → `{"id", "title", "text", "url", "metadata"}`.

use std::sync::Arc;

use async_trait::async_trait;
use serde::Serialize;
use serde_json::{Value, json};
use tribune_core::wire::{MAX_WIRE_BYTES, bound_fields, clip, wire_bytes, within_wire};
use tribune_core::{
    CallContext, CallDisplay, Cited, Document, DocumentId, Error, ErrorKind, Hints, JsonObject, Links, Result, Source,
    SourceFacts, Tool, ToolOutput, ToolSpec,
};

use super::describe;
use super::results::{ID_ALIASES, address, schemas};

const MAX_TITLE_CHARS: usize = 500;
const MAX_METADATA_BYTES: usize = 10_000;
/// Ids, addresses, field names and the note about a cut.
const OVERHEAD: usize = 14_000;

/// A sheet of paper.
const ICON: &str = "data:image/svg+xml,%3Csvg%20xmlns='http://www.w3.org/2000/svg'%20viewBox='0%200%2024%2024'%20fill='none'%20stroke='%23456'%20stroke-width='2'%3E%3Cpath%20d='M6%203h8l4%204v14H6zM9%2012h6M9%2016h6'/%3E%3C/svg%3E";

pub struct FetchTool {
    spec: ToolSpec,
    sources: Vec<Arc<dyn Source>>,
    links: Links,
}

/// A document as callers get it.
#[derive(Serialize)]
pub struct FetchedDocument<'a> {
    pub id: &'a DocumentId,
    pub title: std::borrow::Cow<'a, str>,
    pub text: std::borrow::Cow<'a, str>,
    pub url: String,
    pub metadata: JsonObject,
}

impl<'a> FetchedDocument<'a> {
    /// The complete document.
    pub fn complete(document: &'a Document, links: &Links) -> Self {
        Self {
            id: &document.id,
            title: document.title.as_str().into(),
            text: document.text.as_str().into(),
            url: address(document, links),
            metadata: metadata(document),
        }
    }

    /// The part from `offset` that fits one tool result.
    fn part(document: &'a Document, links: &Links, offset: usize) -> Result<Self> {
        let total = document.text.len();
        if offset > 0 && offset >= total {
            return Err(Error::invalid_argument(format!(
                "`offset` {offset} is past the end: the text has {total} bytes. Call fetch with a smaller offset or none."
            )));
        }
        let mut part = Self::complete(document, links);
        part.title = clip(&document.title, MAX_TITLE_CHARS);
        let metadata_bytes = bound_fields(&mut part.metadata, MAX_METADATA_BYTES);
        let start = document.text.floor_char_boundary(offset);
        let rest = &document.text[start..];
        let shown = cut(rest, MAX_WIRE_BYTES - metadata_bytes - wire_bytes(&part.title) - OVERHEAD);
        if start == 0 && shown.len() == total {
            return Ok(part);
        }
        let next = start + shown.len();
        part.text = if next < total {
            part.metadata.insert("next_offset".to_owned(), json!(next));
            format!("{shown}\n\n[Cut here: bytes {start} to {next} of {total}. For the rest call fetch with the same id and offset {next}.]").into()
        } else {
            shown.into()
        };
        part.metadata.insert("total_bytes".to_owned(), json!(total));
        Ok(part)
    }
}

/// As much as fits, cut at a paragraph or word if one is near.
fn cut(text: &str, budget: usize) -> &str {
    let head = within_wire(text, budget);
    if head.len() == text.len() {
        return text;
    }
    let near = head.len() - head.len() / 10;
    let end = head
        .rfind("\n\n")
        .filter(|at| *at > near)
        .or_else(|| head.rfind(char::is_whitespace).filter(|at| *at > near))
        .unwrap_or(head.len());
    &text[..end]
}

fn metadata(document: &Document) -> JsonObject {
    let mut metadata = JsonObject::new();
    metadata.insert("source".to_owned(), Value::from(document.id.scheme()));
    if let Some(as_of) = document.as_of {
        metadata.insert("as_of".to_owned(), Value::from(as_of.to_string()));
    }
    for (name, value) in &document.metadata {
        metadata.entry(name.clone()).or_insert_with(|| value.clone());
    }
    metadata
}

/// Finds a document by its id, its citation address or its bare key; `None` if no source has it.
pub async fn fetch_document(sources: &[Arc<dyn Source>], given: &str, cx: &CallContext) -> Result<Option<Document>> {
    let Some(id) = Links::cited_id(given) else {
        return by_id_or_key(sources, given, cx).await;
    };
    if let Some(record) = Links::cited_record(given) {
        match cited(sources, &id, record).await? {
            Some(Cited::Kept { document, .. }) => return Ok(Some(*document)),
            // Never answer a permalink with current values.
            Some(Cited::Expired(why)) => {
                return Err(Error::not_found(format!("{why} Fetch {id} for the current values.")));
            }
            Some(Cited::Unknown) => {
                return Err(Error::not_found(format!("Unknown permalink. Fetch {id} for the current values.")));
            }
            None => {}
        }
    }
    match by_id_or_key(sources, &id, cx).await? {
        Some(document) => Ok(Some(document)),
        None => by_id_or_key(sources, given, cx).await,
    }
}

/// The document behind a permalink, from the source that owns it.
pub async fn cited(sources: &[Arc<dyn Source>], id: &str, record: &str) -> Result<Option<Cited>> {
    let Ok(id) = DocumentId::parse(id) else {
        return Ok(None);
    };
    match sources.iter().find(|source| source.owns(id.scheme())) {
        Some(source) => source.cited(&id, record).await,
        None => Ok(None),
    }
}

async fn by_id_or_key(sources: &[Arc<dyn Source>], given: &str, cx: &CallContext) -> Result<Option<Document>> {
    let mut is_owned = false;
    if let Ok(id) = &DocumentId::parse(given) {
        for source in sources.iter().filter(|source| source.owns(id.scheme())) {
            is_owned = true;
            if let Some(document) = source.fetch(id, cx).await? {
                return Ok(Some(document));
            }
            // No other source has data of users.
            if source.is_personal() {
                return Ok(None);
            }
        }
    }
    // Callers of older servers pass the key alone (`x-coredata://A/ICNote/p12`, `garden.md`).
    let mut unanswered = Vec::new();
    for source in sources {
        let Ok(id) = DocumentId::new(source.name(), given) else {
            continue;
        };
        match source.fetch(&id, cx).await {
            Ok(Some(document)) => return Ok(Some(document)),
            Ok(None) => {}
            // The caller may have meant another source.
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::InvalidArgument) => {}
            Err(_) => unanswered.push(format!("`{}`", source.name())),
        }
    }
    if unanswered.is_empty() || is_owned {
        return Ok(None);
    }
    Err(Error::not_found(format!(
        "No source that answers now has this document, and {} cannot answer: try again in a moment.",
        unanswered.join(", ")
    )))
}

/// Tells a model what to do next.
pub(super) fn not_found(given: &str) -> Error {
    let given = clip(given, 200);
    Error::not_found(format!(
        "Document not found: {given}. Ids come from search results and must be passed exactly as they are: call search with words from the document, then fetch the id it returns."
    ))
}

impl FetchTool {
    pub fn new(sources: Vec<Arc<dyn Source>>, facts: &[SourceFacts], links: Links) -> Self {
        Self { spec: spec(facts), sources, links }
    }
}

#[async_trait]
impl Tool for FetchTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(&self, args: JsonObject, cx: &CallContext) -> Result<ToolOutput> {
        let given = args.get("id").and_then(Value::as_str).unwrap_or_default();
        let offset = args.get("offset").and_then(Value::as_f64).map_or(0, |offset| offset as usize);
        let document = fetch_document(&self.sources, given, cx).await?;
        let document = document.ok_or_else(|| not_found(given))?;
        ToolOutput::structured(&FetchedDocument::part(&document, &self.links, offset)?, 1)
    }
}

fn spec(facts: &[SourceFacts]) -> ToolSpec {
    let [input_schema, output_schema] = schemas(include_str!("fetch.json"));
    ToolSpec {
        name: "fetch".to_owned(),
        title: "Fetch".to_owned(),
        description: describe::describe(describe::FETCH, facts),
        input_schema,
        output_schema,
        hints: Hints::READ,
        icon: Some(ICON.to_owned()),
        display: CallDisplay { progress: Some(("Reading a document", "Read a document")), ..CallDisplay::default() },
        aliases: ID_ALIASES.to_vec(),
    }
}
