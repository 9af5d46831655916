//! `/data/{id}`: the citation. A page for a person, JSON for a program.

use std::collections::HashMap;
use std::sync::Arc;

use axum::Extension;
use axum::extract::{Query, State};
use axum::response::Response;
use http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use jiff::Timestamp;
use tribune_core::{CallContext, Cited, Document, Error, ErrorKind, Hit, Links, Principal, Source};

use super::callers::Caller;
use super::{App, last_part, page};
use crate::contract::{FetchedDocument, cited, fetch_document, neighbours, related};
use crate::mcp::rpc;

/// A page shows this much of a text; the JSON has it all.
const MAX_PAGE_BYTES: usize = 1_000_000;
const RENAMED: &str =
    "It may have been renamed or removed. Search for words from it, or for its title, from the start page.";
const SIGN_IN: &str = "If it is yours, sign in with your token on the start page and open it again.";
/// Related documents a page shows, and how long it waits for them.
const RELATED: usize = 5;
const MAX_WAIT_FOR_RELATED: std::time::Duration = std::time::Duration::from_millis(500);

pub(super) async fn data(
    State(app): State<App>,
    Query(shown): Query<HashMap<String, String>>,
    Extension(caller): Extension<Caller>,
    uri: Uri,
    headers: HeaderMap,
) -> Response {
    let id = last_part(&uri, "/data/");
    let scheme = id.split(':').next().unwrap_or_default();
    let is_personal = |source: &Arc<dyn Source>| source.is_personal() && source.owns(scheme);
    let is_personal = app.service.sources().iter().any(is_personal);
    let is_nobody = caller.principal == Principal::Anonymous;
    let next = if is_personal && is_nobody { SIGN_IN } else { RENAMED };
    let mut response = show(&app, &shown, caller, &id, &headers, next).await;
    if is_personal {
        let nowhere = HeaderValue::from_static("private, no-store");
        response.headers_mut().insert(header::CACHE_CONTROL, nowhere);
    }
    response
}

async fn show(
    app: &App,
    shown: &HashMap<String, String>,
    caller: Caller,
    id: &str,
    headers: &HeaderMap,
    next: &str,
) -> Response {
    let service = &app.service;
    // Held to the end: a stopping server waits for it.
    let _under_way = service.calls.token();
    let limit = service.settings.call_timeout;
    let mut cx = CallContext::new(caller.principal, service.clock.monotonic() + limit);
    cx.correlation_id = caller.correlation_id;
    let record = match shown.get("at") {
        Some(record) => cited(service.sources(), id, record).await,
        None => Ok(None),
    };
    let (document, cited_at) = match record {
        Ok(Some(Cited::Kept { document, at })) => (*document, Some(at)),
        Ok(Some(Cited::Expired(why))) => return gone(headers, app, id, &why),
        Ok(Some(Cited::Unknown)) => return gone(headers, app, id, "There is no record under that address."),
        Ok(None) => {
            let found = tokio::time::timeout(limit, fetch_document(service.sources(), id, &cx)).await;
            match found {
                Ok(Ok(Some(document))) => (document, None),
                Ok(Ok(None)) => return absent(headers, id, next),
                Ok(Err(error)) => return failed(headers, id, &error),
                Err(_) => return unavailable(headers, "the source did not answer in time; try again in a moment"),
            }
        }
        Err(error) => return failed(headers, id, &error),
    };
    if page::wants_json(headers) || shown.get("format").is_some_and(|format| format == "json") {
        return json(app, &document);
    }
    if cited_at.is_some() {
        return html(app, &document, None, &[], cited_at);
    }
    let passage = shown.get("passage").and_then(|passage| passage.parse().ok());
    // The page is about the document: what is like it may be missing.
    let like = tokio::time::timeout(
        MAX_WAIT_FOR_RELATED,
        related(service.sources(), &document.id, RELATED, &cx),
    )
    .await;
    let like = like.ok().and_then(Result::ok).unwrap_or_default();
    html(app, &document, passage, &like, None)
}

fn json(app: &App, document: &Document) -> Response {
    let fetched = FetchedDocument::whole(document, &app.service.links);
    match serde_json::to_string(&fetched) {
        Ok(body) => {
            let mut response = rpc::json_response(StatusCode::OK, body);
            response
                .headers_mut()
                .insert(header::VARY, HeaderValue::from_static("Accept"));
            response
        }
        Err(_) => rpc::json_response(
            StatusCode::INTERNAL_SERVER_ERROR,
            r#"{"error":"the document could not be written as JSON"}"#,
        ),
    }
}

fn html(app: &App, document: &Document, passage: Option<usize>, like: &[Hit], as_cited: Option<Timestamp>) -> Response {
    // Links within the site stay on the address that the reader came by.
    let links = Links::new(app.service.links.path_prefix());
    let around = passage.and_then(|number| neighbours(document, number, &links));
    let like: Vec<(String, String)> = like
        .iter()
        .map(|hit| (hit.title.clone(), links.citation(&hit.id, hit.passage)))
        .collect();
    let marked = passage
        .and_then(|number| document.passages.get(number).cloned())
        .filter(|range| document.text.get(range.clone()).is_some())
        .unwrap_or(0..0);
    let end = document
        .text
        .floor_char_boundary(MAX_PAGE_BYTES.max(marked.end).min(document.text.len()));
    let facts = app
        .service
        .sources()
        .iter()
        .find(|source| source.owns(document.id.scheme()))
        .map(|source| source.facts());
    // What changes under its id is cited by a record of itself.
    let is_live = document
        .url
        .as_deref()
        .is_some_and(|url| Links::cited_record(url).is_some());
    let fields: Vec<(String, String)> = document
        .metadata
        .iter()
        .filter(|(name, _)| *name != "date")
        .map(|(name, value)| {
            (
                name.clone(),
                value.as_str().map_or_else(|| value.to_string(), str::to_owned),
            )
        })
        .collect();
    let mut response = page::render(
        StatusCode::OK,
        "data.html",
        minijinja::context! {
            base => app.service.links.path_prefix(),
            title => document.title.as_str(),
            id => document.id.as_str(),
            json => format!("{}/data/{}?format=json", app.service.links.path_prefix(), document.id.to_path_segment()),
            original => document.url.as_deref().filter(|_| !is_live),
            cited_at => as_cited.map(|at| at.strftime("%-d %B %Y, %H:%M:%S.%3f UTC").to_string()),
            shown_at => document.as_of.filter(|_| is_live && as_cited.is_none()).map(|at| at.strftime("%-d %B %Y, %H:%M:%S.%3f UTC").to_string()),
            current => format!("{}/data/{}", app.service.links.path_prefix(), document.id.to_path_segment()),
            source => facts.map(|facts| facts.title),
            date => document.as_of.map(|as_of| as_of.strftime("%-d %B %Y").to_string()),
            before => &document.text[..marked.start],
            marked => &document.text[marked.clone()],
            after => &document.text[marked.end..end],
            cut => end < document.text.len(),
            previous => around.as_ref().and_then(|around| around.previous.as_ref()).map(|n| n.url.as_str()),
            next => around.as_ref().and_then(|around| around.next.as_ref()).map(|n| n.url.as_str()),
            like,
            fields,
        },
    );
    response
        .headers_mut()
        .insert(header::VARY, HeaderValue::from_static("Accept"));
    response
}

fn absent(headers: &HeaderMap, id: &str, next: &str) -> Response {
    page::missing(headers, &format!("There is no document {id}"), next)
}

/// A source that knows why there is none says so.
fn failed(headers: &HeaderMap, id: &str, error: &Error) -> Response {
    match error.kind() {
        ErrorKind::NotFound | ErrorKind::InvalidArgument => absent(headers, id, error.message()),
        _ => unavailable(headers, error.message()),
    }
}

/// A record that is not there any more: the page says so, and leads to what is current.
fn gone(headers: &HeaderMap, app: &App, id: &str, why: &str) -> Response {
    let next = "The current values are under the same address without `at`.";
    if page::wants_json(headers) {
        let body = serde_json::json!({"error": why, "next": next}).to_string();
        return rpc::json_response(StatusCode::GONE, body);
    }
    let prefix = app.service.links.path_prefix();
    let current = tribune_core::DocumentId::parse(id).map(|id| format!("{prefix}/data/{}", id.to_path_segment()));
    page::render(
        StatusCode::GONE,
        "missing.html",
        minijinja::context! { what => "What was cited is no longer kept", next => why, base => prefix, current => current.ok(), id },
    )
}

fn unavailable(headers: &HeaderMap, message: &str) -> Response {
    if page::wants_json(headers) {
        let body = serde_json::json!({"error": message}).to_string();
        return rpc::json_response(StatusCode::SERVICE_UNAVAILABLE, body);
    }
    page::render(
        StatusCode::SERVICE_UNAVAILABLE,
        "missing.html",
        minijinja::context! { what => "This cannot be shown just now", next => message },
    )
}
