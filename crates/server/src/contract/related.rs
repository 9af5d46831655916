//! `find_related(id, passage?, limit?)`: similar documents, and the text around a passage.

use std::sync::Arc;

use async_trait::async_trait;
use serde::Serialize;
use serde_json::Value;
use tribune_core::wire::{MAX_WIRE_BYTES, clip, wire_bytes};
use tribune_core::{
    CallContext, CallDisplay, Document, DocumentId, Hints, Hit, JsonObject, Links, Result, Source, SourceFacts, Tool,
    ToolOutput, ToolSpec,
};

use super::fetch::not_found;
use super::results::{ID_ALIASES, ITEM_OVERHEAD, Item, address, fitting, schemas, short_title};
use super::{describe, fetch_document};

const DEFAULT_LIMIT: usize = 5;
const MAX_LIMIT: usize = 20;
const MAX_NEIGHBOUR_CHARS: usize = 1_500;

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
    Some(Neighbours { previous: passage.checked_sub(1).and_then(neighbour), next: neighbour(passage + 1) })
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
        Self { spec: spec(facts), sources, links }
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
        let limit = number("limit").map_or(DEFAULT_LIMIT, |limit| limit as usize);
        let document = fetch_document(&self.sources, given, cx).await?;
        let document = document.ok_or_else(|| not_found(given))?;
        let hits = related(&self.sources, &document.id, limit.clamp(1, MAX_LIMIT), cx).await?;
        let neighbours = number("passage").and_then(|passage| neighbours(&document, passage as usize, &self.links));
        let around: usize = neighbours
            .iter()
            .flat_map(|n| [&n.previous, &n.next])
            .flatten()
            .map(|n| wire_bytes(&n.text) + ITEM_OVERHEAD)
            .sum();
        let title = short_title(&document.title);
        let room = MAX_WIRE_BYTES.saturating_sub(around + wire_bytes(&title) + ITEM_OVERHEAD);
        let results = fitting(hits.iter().map(|hit| Item::related(hit, &self.links)), room);
        let count = results.len();
        let answer = Answer { id: &document.id, title, url: address(&document, &self.links), results, neighbours };
        ToolOutput::structured(&answer, count)
    }
}

fn spec(facts: &[SourceFacts]) -> ToolSpec {
    let [input_schema, output_schema] = schemas(include_str!("related.json"));
    ToolSpec {
        name: "find_related".to_owned(),
        title: "Find related".to_owned(),
        description: describe::describe(describe::RELATED, facts),
        input_schema,
        output_schema,
        hints: Hints { idempotent: false, ..Hints::READ },
        icon: Some(ICON.to_owned()),
        display: CallDisplay::default(),
        aliases: ID_ALIASES.to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schema_has_the_limits() {
        let limit = &spec(&[]).input_schema["properties"]["limit"];
        assert_eq!(limit["maximum"], MAX_LIMIT);
        assert_eq!(limit["default"], DEFAULT_LIMIT);
    }
}
