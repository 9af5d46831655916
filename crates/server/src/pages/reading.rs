//! A document as text: author, passages, how to cite it, and related documents.

use std::ops::Range;

use axum::response::Response;
use http::StatusCode;
use minijinja::{Value, context};
use tribune_core::wire::clip;
use tribune_core::{Document, DocumentId, Links};
use tribune_page::{Neighbour, Reading};

use super::data::Page;
use crate::contract::neighbours;
use crate::response::page::{moment, render};
use crate::service::Service;

/// How much of a text a page shows; the JSON has all of it.
const MAX_PAGE_BYTES: usize = 1_000_000;
/// Longer texts are rendered on a blocking thread.
const MAX_BYTES_INLINE: usize = 50_000;
/// Fields shown of a document without a view.
const MAX_FACTS: usize = 40;
const MAX_FACT_CHARS: usize = 280;
const MAX_TITLE_CHARS: usize = 300;

/// The page of a document whose source has no view of it.
pub(super) fn plain(document: &Document) -> Reading {
    let text = |value: &serde_json::Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let facts = document.metadata.iter().filter(|(name, _)| *name != "date");
    Reading {
        date: document.as_of.map(|as_of| as_of.to_zoned(jiff::tz::TimeZone::UTC).date()),
        facts: facts
            .take(MAX_FACTS)
            .map(|(name, value)| (name.clone(), clip(&text(value), MAX_FACT_CHARS).into_owned()))
            .collect(),
        ..Reading::default()
    }
}

pub(crate) async fn page(service: &Service, shown: Page, reading: Reading) -> Response {
    let window = window(&shown);
    let cited = cited(&shown).map(|cited| cited.start - window.start..cited.end - window.start);
    let text = shown.document.text[window].to_owned();
    let (format, title) = (reading.format, shown.document.title.clone());
    let is_long = text.len() > MAX_BYTES_INLINE;
    let html = move || -> String {
        let nodes = tribune_page::reading::text(&text, format, &title, cited);
        nodes.iter().map(ToString::to_string).collect()
    };
    let html = if is_long {
        // After a panic the page lacks its text and shows the rest.
        tokio::task::spawn_blocking(html).await.unwrap_or_default()
    } else {
        html()
    };
    render(StatusCode::OK, "reading.html", values(service, &shown, &reading, html))
}

/// The cited passage.
fn cited(page: &Page) -> Option<Range<usize>> {
    let range = page.document.passages.get(page.passage?)?;
    page.document.text.get(range.clone()).map(|_| range.clone())
}

/// The part of the text that a page shows: its beginning, or the surroundings of a later passage.
fn window(page: &Page) -> Range<usize> {
    let text = &page.document.text;
    let cited = cited(page).unwrap_or(0..0);
    if cited.end <= MAX_PAGE_BYTES {
        return 0..text.floor_char_boundary(MAX_PAGE_BYTES);
    }
    let around = MAX_PAGE_BYTES / 2;
    let start = text.floor_char_boundary(cited.start.saturating_sub(around));
    start..text.floor_char_boundary(cited.end.saturating_add(around))
}

fn values(service: &Service, page: &Page, reading: &Reading, html: String) -> Value {
    let document = &page.document;
    // Links stay on the address that the reader used.
    let here = Links::new(service.links.path_prefix());
    let current = here.citation(&document.id, None);
    let window = window(page);
    let groups_hold = |id: &DocumentId| {
        let mut others = reading.groups.iter().flat_map(|(_, others)| others);
        others.any(|other| other.id == id.as_str())
    };
    let like = page
        .like
        .iter()
        .filter(|hit| !groups_hold(&hit.id))
        .map(|hit| link(here.citation(&hit.id, hit.passage), hit.id.as_str(), &hit.title, None));
    let groups = reading.groups.iter().map(|(title, others)| {
        let links: Vec<Value> = others.iter().map(|other| neighbour(&here, other)).collect();
        context! { title, links }
    });
    let facts = service.owner(document.id.scheme()).map(|source| source.facts());
    let is_live = facts.as_ref().is_some_and(|facts| facts.live);
    let (json, address) = match document.record() {
        Some(record) => {
            (format!("{}&format=json", here.record(&document.id, record)), service.links.record(&document.id, record))
        }
        None => {
            let passage = page.passage.filter(|_| cited(page).is_some());
            (format!("{current}?format=json"), service.links.citation(&document.id, passage))
        }
    };
    context! {
        base => service.links.path_prefix(),
        title => clip(&document.title, MAX_TITLE_CHARS),
        id => document.id.as_str(),
        source => facts.map(|facts| facts.title),
        byline => &reading.byline,
        byline_details => &reading.byline_details,
        date => reading.date.map(|date| date.strftime("%-d %B %Y").to_string()),
        day => reading.date.map(|date| date.to_string()),
        reference => &reading.reference,
        cited_at => page.cited_at.map(moment),
        shown_at => document.as_of.filter(|_| is_live && page.cited_at.is_none()).map(moment),
        current => &current,
        is_marked => html.contains("<mark id=\"passage\">"),
        text => Value::from_safe_string(html),
        begins_later => window.start > 0,
        is_cut => window.end < document.text.len(),
        passages => passages(page, &here),
        previous => reading.previous.as_ref().map(|other| neighbour(&here, other)),
        next => reading.next.as_ref().map(|other| neighbour(&here, other)),
        cite_as => &reading.cite_as,
        address,
        json,
        original => document.url.as_deref().filter(|_| !is_live),
        facts => &reading.facts,
        groups => groups.collect::<Vec<Value>>(),
        like => like.collect::<Vec<Value>>(),
    }
}

/// The number of the cited passage, and links to its neighbours.
fn passages(page: &Page, here: &Links) -> Option<Value> {
    let passage = page.passage?;
    let around = neighbours(&page.document, passage, here)?;
    Some(context! {
        number => passage + 1,
        count => page.document.passages.len(),
        previous => around.previous.map(|beside| beside.url),
        next => around.next.map(|beside| beside.url),
    })
}

fn neighbour(here: &Links, other: &Neighbour) -> Value {
    link(here.href(&other.id), &other.id, &other.title, other.note.as_deref())
}

fn link(url: String, id: &str, title: &str, note: Option<&str>) -> Value {
    let title = if title.trim().is_empty() { id } else { title };
    context! { url, title => clip(title, MAX_TITLE_CHARS), note }
}
