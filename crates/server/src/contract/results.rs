//! Hits as callers get them: what search results and related documents have in common.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::Value;
use tribune_core::wire::{MAX_WIRE_COST, clip, object, wire_bytes};
use tribune_core::{Document, DocumentId, Hit, JsonObject, Links};

const MAX_TITLE_CHARS: usize = 200;
/// Names, quotes and commas of one result, written twice.
pub(super) const ITEM_OVERHEAD: usize = 160;

#[derive(Serialize)]
pub(super) struct Item<'a> {
    id: &'a DocumentId,
    title: Cow<'a, str>,
    text: &'a str,
    url: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<&'a JsonObject>,
    /// Similarity from 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    likeness: Option<f32>,
}

impl<'a> Item<'a> {
    pub(super) fn found(hit: &'a Hit, links: &Links) -> Self {
        let citation = || links.citation(&hit.id, hit.passage);
        Self {
            id: &hit.id,
            title: short_title(&hit.title),
            text: &hit.snippet,
            url: hit.url.clone().unwrap_or_else(citation),
            metadata: hit.metadata.as_ref(),
            likeness: None,
        }
    }

    pub(super) fn related(hit: &'a Hit, links: &Links) -> Self {
        Self { metadata: None, likeness: Some(hit.score), ..Self::found(hit, links) }
    }

    fn texts(&self) -> [&str; 4] {
        [self.id.as_str(), &self.title, self.text, &self.url]
    }

    fn metadata_bytes(&self) -> usize {
        let field = |(name, value): (&String, &Value)| wire_bytes(name) + wire_bytes(&value.to_string()) + 12;
        self.metadata.into_iter().flatten().map(field).sum()
    }
}

/// As many as fit into `room` bytes on the wire. An item that is too large is omitted; later ones may still fit.
pub(super) fn fitting<'a>(items: impl Iterator<Item = Item<'a>>, mut room: usize) -> Vec<Item<'a>> {
    let mut items: Vec<Item<'a>> = items.collect();
    let most = |item: &Item<'_>| {
        let bytes: usize = item.texts().map(str::len).iter().sum();
        bytes * MAX_WIRE_COST + item.metadata_bytes() + ITEM_OVERHEAD
    };
    if items.iter().map(most).sum::<usize>() > room {
        items.retain(|item| {
            let texts: usize = item.texts().map(wire_bytes).iter().sum();
            let takes = texts + item.metadata_bytes() + ITEM_OVERHEAD;
            let fits = takes <= room;
            room -= if fits { takes } else { 0 };
            fits
        });
    }
    items
}

pub(super) fn short_title(title: &str) -> Cow<'_, str> {
    clip(title, MAX_TITLE_CHARS)
}

/// The original of a document, or else its page here.
pub(super) fn address(document: &Document, links: &Links) -> String {
    let page = || links.citation(&document.id, None);
    document.url.clone().unwrap_or_else(page)
}

/// Other names that callers use for `id`.
pub(super) const ID_ALIASES: [(&str, &str); 5] =
    [("url", "id"), ("document_id", "id"), ("documentId", "id"), ("doc_id", "id"), ("uri", "id")];

/// The schemas of a tool's arguments and of its answer.
pub(super) fn schemas(file: &str) -> [JsonObject; 2] {
    // The registry refuses a tool without schemas.
    let mut schemas: Value = serde_json::from_str(file).unwrap_or_default();
    ["input", "output"].map(|name| object(schemas[name].take()))
}
