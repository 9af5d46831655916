//! `find_related(id, passage?, limit?)`: similar documents, and the text around a passage.

use std::sync::Arc;

use async_trait::async_trait;
use serde::Serialize;
use serde_json::{Value, json};
use tribune_core::wire::{MAX_WIRE_BYTES, clip, object, wire_bytes};
use tribune_core::{
    CallContext, CallDisplay, Document, DocumentId, Hints, Hit, JsonObject, Links, Result, Source, SourceFacts, Tool,
    ToolOutput, ToolSpec,
};

use super::fetch::not_found;
use super::{describe, fetch_document};

const DEFAULT_LIMIT: u64 = 5;
const MAX_LIMIT: u64 = 20;
const MAX_TITLE_CHARS: usize = 200;
const MAX_NEIGHBOUR_CHARS: usize = 1_500;
const ITEM_OVERHEAD: usize = 160;

/// Two overlapping sheets.
const ICON: &str = "data:image/svg+xml,%3Csvg%20xmlns='http://www.w3.org/2000/svg'%20viewBox='0%200%2024%2024'%20fill='none'%20stroke='%23456'%20stroke-width='2'%3E%3Cpath%20d='M4%203h10v13H4zM9%2016v5h11V8h-6'/%3E%3C/svg%3E";

pub struct RelatedTool {
    spec: ToolSpec,
    sources: Vec<Arc<dyn Source>>,
    links: Links,
}

#[derive(Serialize)]
struct Answer<'a> {
    id: &'a DocumentId,
    title: std::borrow::Cow<'a, str>,
    url: String,
    results: Vec<Item<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    neighbours: Option<Neighbours>,
}

#[derive(Serialize)]
struct Item<'a> {
    id: &'a DocumentId,
    title: std::borrow::Cow<'a, str>,
    text: &'a str,
    url: String,
    /// Similarity from 0 to 1.
    likeness: f32,
}

/// The passages before and after another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Neighbours {
    pub previous: Option<Neighbour>,
    pub next: Option<Neighbour>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Neighbour {
    pub passage: usize,
    pub text: String,
    pub url: String,
}

/// The neighbours of a passage; `None` if the document has no such passage.
pub fn neighbours(document: &Document, passage: usize, links: &Links) -> Option<Neighbours> {
    document.passages.get(passage)?;
    let neighbour = |passage: usize| {
        let text = document.text.get(document.passages.get(passage)?.clone())?;
        Some(Neighbour {
            passage,
            text: clip(text.trim(), MAX_NEIGHBOUR_CHARS).into_owned(),
            url: links.citation(&document.id, Some(passage)),
        })
    };
    Some(Neighbours {
        previous: passage.checked_sub(1).and_then(neighbour),
        next: neighbour(passage + 1),
    })
}

/// Similar documents of the same source; empty if the source does not compare.
pub async fn related(
    sources: &[Arc<dyn Source>],
    id: &DocumentId,
    limit: usize,
    cx: &CallContext,
) -> Result<Arc<[Hit]>> {
    for source in sources.iter().filter(|source| source.owns(id.scheme())) {
        if let Some(hits) = source.related(id, limit, cx).await? {
            return Ok(hits);
        }
    }
    Ok(Arc::default())
}

impl RelatedTool {
    pub fn new(sources: Vec<Arc<dyn Source>>, facts: &[SourceFacts], links: Links) -> Self {
        Self {
            spec: spec(facts),
            sources,
            links,
        }
    }

    fn items<'a>(&self, hits: &'a [Hit], mut room: usize) -> Vec<Item<'a>> {
        let items = hits.iter().map(|hit| Item {
            id: &hit.id,
            title: clip(&hit.title, MAX_TITLE_CHARS),
            text: &hit.snippet,
            url: hit
                .url
                .clone()
                .unwrap_or_else(|| self.links.citation(&hit.id, hit.passage)),
            likeness: hit.score,
        });
        let fits = |item: &Item<'_>| {
            let parts = [item.id.as_str(), &item.title, item.text, &item.url];
            let takes = parts.map(wire_bytes).iter().sum::<usize>() + ITEM_OVERHEAD;
            let fits = takes <= room;
            room -= if fits { takes } else { 0 };
            fits
        };
        items.filter(fits).collect()
    }
}

#[async_trait]
impl Tool for RelatedTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(&self, args: JsonObject, cx: &CallContext) -> Result<ToolOutput> {
        let given = args.get("id").and_then(Value::as_str).unwrap_or_default();
        let number = |name: &str| args.get(name).and_then(Value::as_f64);
        let limit = number("limit")
            .map_or(DEFAULT_LIMIT, |limit| limit as u64)
            .clamp(1, MAX_LIMIT);
        let document = fetch_document(&self.sources, given, cx).await?;
        let document = document.ok_or_else(|| not_found(given))?;
        let hits = related(&self.sources, &document.id, usize::try_from(limit).unwrap_or(1), cx).await?;
        let neighbours = number("passage").and_then(|passage| neighbours(&document, passage as usize, &self.links));
        let around: usize = neighbours
            .iter()
            .flat_map(|n| [&n.previous, &n.next])
            .flatten()
            .map(|n| wire_bytes(&n.text) + ITEM_OVERHEAD)
            .sum();
        let title = clip(&document.title, MAX_TITLE_CHARS);
        let room = MAX_WIRE_BYTES.saturating_sub(around + wire_bytes(&title) + ITEM_OVERHEAD);
        let results = self.items(&hits, room);
        let count = results.len();
        let answer = Answer {
            id: &document.id,
            title,
            url: document
                .url
                .clone()
                .unwrap_or_else(|| self.links.citation(&document.id, None)),
            results,
            neighbours,
        };
        ToolOutput::structured(&answer, count)
    }
}

fn spec(facts: &[SourceFacts]) -> ToolSpec {
    let neighbour = json!({
        "type": ["object", "null"],
        "properties": {
            "passage": {"type": "integer"},
            "text": {"type": "string"},
            "url": {"type": "string"},
        },
        "required": ["passage", "text", "url"],
    });
    ToolSpec {
        name: "find_related".to_owned(),
        title: "Find related".to_owned(),
        description: describe::related(facts),
        input_schema: object(json!({
            "type": "object",
            "properties": {
                "id": {
                    "type": "string",
                    "minLength": 1,
                    "description": "The id of a search result, exactly as search returned it.",
                },
                "passage": {
                    "type": "integer",
                    "minimum": 0,
                    "description": "Also return the passages before and after this one: the number after passage= in a result's url.",
                },
                "limit": {
                    "type": "integer",
                    "minimum": 1,
                    "maximum": MAX_LIMIT,
                    "default": DEFAULT_LIMIT,
                    "description": "How many related items to return at most (1-20, default 5).",
                },
            },
            "required": ["id"],
        })),
        output_schema: object(json!({
            "type": "object",
            "properties": {
                "id": {"type": "string"},
                "title": {"type": "string"},
                "url": {"type": "string", "description": "Opens for a person; cite it."},
                "results": {
                    "type": "array",
                    "description": "Most similar first; empty if there are none.",
                    "items": {
                        "type": "object",
                        "properties": {
                            "id": {"type": "string", "description": "Pass it to fetch exactly as it is."},
                            "title": {"type": "string"},
                            "text": {"type": "string", "description": "The most similar passage."},
                            "url": {"type": "string", "description": "Opens for a person; cite it."},
                            "likeness": {"type": "number", "description": "From 0 to 1; comparable within one source."},
                        },
                        "required": ["id", "title", "text", "url", "likeness"],
                    },
                },
                "neighbours": {
                    "type": "object",
                    "description": "The text before and after the requested passage, if one was requested.",
                    "properties": {"previous": neighbour, "next": neighbour},
                    "required": ["previous", "next"],
                },
            },
            "required": ["id", "title", "url", "results"],
        })),
        hints: Hints {
            idempotent: false,
            ..Hints::READ
        },
        icon: Some(ICON.to_owned()),
        display: CallDisplay::default(),
        aliases: vec![
            ("url", "id"),
            ("document_id", "id"),
            ("documentId", "id"),
            ("doc_id", "id"),
        ],
    }
}
