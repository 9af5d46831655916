//! A document as figures and charts, as they are now or as they were cited.

use axum::response::Response;
use http::StatusCode;
use jiff::Timestamp;
use minijinja::context;
use tribune_core::{Document, Links};
use tribune_page::Board;

use super::data::NOW;
use crate::response::page;
use crate::service::Service;

/// How much of the text for models a page shows.
const MAX_TEXT_BYTES: usize = 200_000;

pub(super) fn page(service: &Service, document: &Document, mut board: Board, cited: Option<Timestamp>) -> Response {
    if let (Some(_), Some(headline)) = (cited, &mut board.headline) {
        // Its age when it was cited says nothing about now.
        headline.age_ms = None;
    }
    // Links stay on the address that the reader used.
    let links = Links::new(service.links.path_prefix());
    let mut regions = tribune_page::regions(&board, &|id| links.href(id)).into_iter();
    let head = regions.next().map(|region| region.element.to_string());
    let panels: String = regions.map(|region| region.element.to_string()).collect();
    let current = links.citation(&document.id, None);
    let is_live = board.is_live && cited.is_none();
    let siblings: Vec<_> = board
        .links
        .iter()
        .map(|link| {
            context! {
                title => &link.title,
                note => &link.note,
                url => links.href(&link.id),
                is_here => cited.is_none() && link.id == document.id.as_str(),
            }
        })
        .collect();
    let end = document.text.floor_char_boundary(MAX_TEXT_BYTES);
    page::render(
        StatusCode::OK,
        "board.html",
        context! {
            base => links.base(),
            title => &board.title,
            subtitle => &board.subtitle,
            name => &document.title,
            address => cited.and(document.url.as_deref()),
            id => document.id.as_str(),
            head => head.map(minijinja::Value::from_safe_string),
            panels => minijinja::Value::from_safe_string(panels),
            siblings,
            current => &current,
            json => match document.record() {
                Some(record) => format!("{}&format=json", links.record(&document.id, record)),
                None => format!("{current}?format=json"),
            },
            live => is_live.then(|| format!("{}/live/{}", links.base(), document.id.to_path_segment())),
            cited_at => cited.map(page::moment),
            keep => is_live.then(|| links.record(&document.id, NOW)),
            text => board.shows_text.then(|| &document.text[..end]),
            cut => end < document.text.len(),
        },
    )
}
