//! A document set for reading: its text, whose words they are, how to cite them, and what stands beside them.

use std::ops::Range;

use axum::response::Response;
use http::{HeaderValue, StatusCode, header};
use jiff::Timestamp;
use minijinja::{Value, context};
use tribune_core::view::{Neighbour, Reading, TextFormat};
use tribune_core::wire::clip;
use tribune_core::{Document, DocumentId, Links};

use super::App;
use super::data::Page;
use super::page::render;
use crate::contract::neighbours;

/// A page shows this much of a text; the JSON has it all.
const MAX_PAGE_BYTES: usize = 1_000_000;
/// A longer text is set on another thread than those that answer.
const MAX_BYTES_AT_ONCE: usize = 50_000;
/// Fields that a page shows of what has no view of its own.
const MAX_FACTS: usize = 40;
const MAX_FACT_CHARS: usize = 280;
const MAX_TITLE_CHARS: usize = 300;

/// How a document is read of which its source has nothing to say but the text.
pub(super) fn bare(document: &Document) -> Reading {
    let text = |value: &serde_json::Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let facts = document.metadata.iter().filter(|(name, _)| *name != "date");
    Reading {
        date: document
            .as_of
            .map(|as_of| as_of.to_zoned(jiff::tz::TimeZone::UTC).date()),
        facts: facts
            .take(MAX_FACTS)
            .map(|(name, value)| (name.clone(), clip(&text(value), MAX_FACT_CHARS).into_owned()))
            .collect(),
        ..Reading::default()
    }
}

pub(super) async fn page(app: &App, shown: Page, reading: Reading) -> Response {
    let text = Text::of(&shown, reading.format);
    let html = if text.shown.len() > MAX_BYTES_AT_ONCE {
        // Nothing in it panics; if it did, the page would lack its text and not everything.
        tokio::task::spawn_blocking(move || text.html())
            .await
            .unwrap_or_default()
    } else {
        text.html()
    };
    let mut response = render(StatusCode::OK, "reading.html", values(app, &shown, &reading, html));
    response
        .headers_mut()
        .insert(header::VARY, HeaderValue::from_static("Accept"));
    response
}

/// What is shown of a document's text.
struct Text {
    shown: String,
    format: TextFormat,
    title: String,
    cited: Option<Range<usize>>,
}

impl Text {
    fn of(page: &Page, format: TextFormat) -> Self {
        let cited = cited(page);
        Self {
            shown: page.document.text[..end(&page.document, cited.as_ref())].to_owned(),
            format,
            title: page.document.title.clone(),
            cited,
        }
    }

    fn html(&self) -> String {
        let nodes = tribune_draw::reading::text(&self.shown, self.format, &self.title, self.cited.clone());
        nodes.iter().map(ToString::to_string).collect()
    }
}

/// The part of the text that the address names.
fn cited(page: &Page) -> Option<Range<usize>> {
    let range = page.document.passages.get(page.passage?)?;
    page.document.text.get(range.clone()).map(|_| range.clone())
}

/// Where the page's part of the text ends: never before what is cited.
fn end(document: &Document, cited: Option<&Range<usize>>) -> usize {
    let wanted = MAX_PAGE_BYTES.max(cited.map_or(0, |cited| cited.end));
    document.text.floor_char_boundary(wanted)
}

fn values(app: &App, page: &Page, reading: &Reading, html: String) -> Value {
    let document = &page.document;
    // Links within the site stay on the address that the reader came by.
    let here = Links::new(app.service.links.path_prefix());
    let current = here.citation(&document.id, None);
    let is_cut = end(document, cited(page).as_ref()) < document.text.len();
    let groups_hold = |id: &DocumentId| {
        let mut others = reading.groups.iter().flat_map(|(_, others)| others);
        others.any(|other| other.id == *id)
    };
    let like = page
        .like
        .iter()
        .filter(|hit| !groups_hold(&hit.id))
        .map(|hit| link(&here, &hit.id, hit.passage, &hit.title, None));
    let groups = reading.groups.iter().map(|(title, others)| {
        let links: Vec<Value> = others.iter().map(|other| neighbour(&here, other)).collect();
        context! { title, links }
    });
    // What changes under its id is cited by a record of itself.
    let is_live = document
        .url
        .as_deref()
        .is_some_and(|url| Links::cited_record(url).is_some());
    context! {
        base => app.service.links.path_prefix(),
        title => clip(&document.title, MAX_TITLE_CHARS),
        id => document.id.as_str(),
        source => source_title(app, document),
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
        is_cut,
        passages => passages(page, &here),
        previous => reading.previous.as_ref().map(|other| neighbour(&here, other)),
        next => reading.next.as_ref().map(|other| neighbour(&here, other)),
        cite_as => &reading.cite_as,
        address => app.service.links.citation(&document.id, page.passage.filter(|_| cited(page).is_some())),
        json => format!("{current}?format=json"),
        original => document.url.as_deref().filter(|_| !is_live),
        facts => &reading.facts,
        groups => groups.collect::<Vec<Value>>(),
        like => like.collect::<Vec<Value>>(),
    }
}

/// Which passage is cited, of how many, and the ways to those beside it.
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
    link(here, &other.id, None, &other.title, other.note.as_deref())
}

fn link(here: &Links, id: &DocumentId, passage: Option<usize>, title: &str, note: Option<&str>) -> Value {
    let title = if title.trim().is_empty() { id.as_str() } else { title };
    context! { url => here.citation(id, passage), title => clip(title, MAX_TITLE_CHARS), note }
}

fn source_title(app: &App, document: &Document) -> Option<String> {
    let sources = app.service.sources();
    let source = sources.iter().find(|source| source.owns(document.id.scheme()))?;
    Some(source.facts().title)
}

fn moment(at: Timestamp) -> String {
    at.strftime("%-d %B %Y, %H:%M:%S.%3f UTC").to_string()
}
