//! `/data/{id}`: the citation. A page for a person, JSON for a program.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::extract::{Query, State};
use axum::response::{IntoResponse, Redirect, Response};
use http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use jiff::Timestamp;
use tribune_core::view::View;
use tribune_core::{
    CallContext, Cited, Document, DocumentId, Error, ErrorKind, Hit, JsonObject, Links, Principal, Source,
};

use super::callers::Caller;
use super::{App, board, last_part, page, reading};
use crate::contract::{FetchedDocument, cited, fetch_document, related};
use crate::mcp::rpc;

/// `?at=now` keeps what changes by itself as it is, and leads to the record.
pub(super) const NOW: &str = "now";
const RENAMED: &str =
    "It may have been renamed or removed. Search for words from it, or for its title, from the start page.";
const SIGN_IN: &str = "If it is yours, sign in with your token on the start page and open it again.";
/// Related documents a page shows, and how long it waits for them.
const RELATED: usize = 5;
const MAX_WAIT_FOR_RELATED: Duration = Duration::from_millis(500);
/// A market may have to be asked.
const MAX_WAIT_FOR_VIEW: Duration = Duration::from_secs(5);

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
    // What somebody known is shown may be for them alone; everybody else sees what everybody may.
    let keeping = if is_nobody { "no-cache" } else { "private, no-store" };
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(keeping));
    headers.insert(header::VARY, HeaderValue::from_static("Accept, Authorization, Cookie"));
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
    let wants_json = page::wants_json(headers) || shown.get("format").is_some_and(|format| format == "json");
    let keeps = shown.get("at").is_some_and(|at| at == NOW);
    if !wants_json && !keeps {
        cx = cx.uncited();
    }
    let record = match shown.get("at").filter(|_| !keeps) {
        Some(record) => cited(service.sources(), id, record).await,
        None => Ok(None),
    };
    let (document, cited_at) = match record {
        Ok(Some(Cited::Kept { document, at })) => (*document, Some(at)),
        Ok(Some(Cited::Expired(why))) => return gone(headers, app, id, &why),
        Ok(Some(Cited::Unknown)) => return unknown(headers, app, id),
        Ok(None) => {
            let found = tokio::time::timeout(limit, fetch_document(service.sources(), id, &cx)).await;
            match found {
                Ok(Ok(Some(document))) => (document, None),
                Ok(Ok(None)) => return absent(app, headers, id, next),
                Ok(Err(error)) => {
                    let last = if wants_json {
                        None
                    } else {
                        last_known(app, id, &error, &cx).await
                    };
                    return last.unwrap_or_else(|| failed(app, headers, id, &error));
                }
                Err(_) => return unavailable(app, headers, "the source did not answer in time; try again in a moment"),
            }
        }
        Err(error) => return failed(app, headers, id, &error),
    };
    if keeps && let Some(kept) = kept(app, &document) {
        return kept;
    }
    if wants_json {
        return json(app, &document);
    }
    let passage = shown.get("passage").and_then(|passage| passage.parse().ok());
    // The page is about the document: what is around it and like it may be missing.
    let (view, like) = tokio::join!(
        view(service.sources(), &document, cited_at, &cx),
        like(service.sources(), &document, cited_at, &cx)
    );
    let page = Page {
        document,
        cited_at,
        passage: passage.filter(|_| cited_at.is_none()),
        like,
    };
    match view {
        Some(View::Reading(reading)) => reading::page(app, page, *reading).await,
        Some(View::Board(board)) => board::page(app, &page.document, *board, page.cited_at),
        None => {
            let reading = reading::bare(&page.document);
            reading::page(app, page, reading).await
        }
    }
}

/// What a page is made of, besides the source's view of it.
pub(super) struct Page {
    pub(super) document: Document,
    /// When it was like this, for a record of something that changes.
    pub(super) cited_at: Option<Timestamp>,
    /// The passage that is cited, counted from 0.
    pub(super) passage: Option<usize>,
    pub(super) like: Arc<[Hit]>,
}

async fn view(
    sources: &[Arc<dyn Source>],
    document: &Document,
    cited_at: Option<Timestamp>,
    cx: &CallContext,
) -> Option<View> {
    for source in sources.iter().filter(|source| source.owns(document.id.scheme())) {
        match tokio::time::timeout(MAX_WAIT_FOR_VIEW, source.view(document, cited_at, cx)).await {
            Ok(Ok(Some(view))) => return Some(view),
            Ok(Ok(None)) => {}
            Ok(Err(error)) => tracing::warn!(%error, source = source.name(), "a page shows the text alone"),
            Err(_) => tracing::warn!(
                source = source.name(),
                "a page shows the text alone: no view came in time"
            ),
        }
    }
    None
}

/// Documents like it; none for a record, which is of the past.
async fn like(
    sources: &[Arc<dyn Source>],
    document: &Document,
    cited_at: Option<Timestamp>,
    cx: &CallContext,
) -> Arc<[Hit]> {
    if cited_at.is_some() {
        return Arc::default();
    }
    let like = tokio::time::timeout(MAX_WAIT_FOR_RELATED, related(sources, &document.id, RELATED, cx)).await;
    like.ok().and_then(Result::ok).unwrap_or_default()
}

fn json(app: &App, document: &Document) -> Response {
    let fetched = FetchedDocument::whole(document, &app.service.links);
    match serde_json::to_string(&fetched) {
        Ok(body) => rpc::json_response(StatusCode::OK, body),
        Err(_) => rpc::json_response(
            StatusCode::INTERNAL_SERVER_ERROR,
            r#"{"error":"the document could not be written as JSON"}"#,
        ),
    }
}

fn absent(app: &App, headers: &HeaderMap, id: &str, next: &str) -> Response {
    page::missing(
        headers,
        app.service.links.path_prefix(),
        &format!("There is no document {id}"),
        next,
    )
}

/// A source that knows why there is none says so.
fn failed(app: &App, headers: &HeaderMap, id: &str, error: &Error) -> Response {
    match error.kind() {
        ErrorKind::NotFound | ErrorKind::InvalidArgument => absent(app, headers, id, error.message()),
        _ => unavailable(app, headers, error.message()),
    }
}

/// A record that is not there any more: the page says so, and leads to what is current.
fn gone(headers: &HeaderMap, app: &App, id: &str, why: &str) -> Response {
    no_record(
        headers,
        app,
        id,
        StatusCode::GONE,
        "What was cited is no longer kept",
        why,
    )
}

fn unknown(headers: &HeaderMap, app: &App, id: &str) -> Response {
    let why = "The address may have been cut short.";
    no_record(headers, app, id, StatusCode::NOT_FOUND, "There is no such record", why)
}

fn no_record(headers: &HeaderMap, app: &App, id: &str, status: StatusCode, what: &str, why: &str) -> Response {
    if page::wants_json(headers) {
        let next = "The current values are under the same address without `at`.";
        let body = serde_json::json!({"error": format!("{what}. {why}"), "next": next}).to_string();
        return rpc::json_response(status, body);
    }
    let base = app.service.links.path_prefix();
    let current = DocumentId::parse(id).map(|id| Links::new(base).citation(&id, None));
    page::render(
        status,
        "missing.html",
        minijinja::context! { base, what, next => why, current => current.ok(), id },
    )
}

/// What a source that cannot be asked now still knows, said to be old; the page goes on from there by itself.
async fn last_known(app: &App, id: &str, error: &Error, cx: &CallContext) -> Option<Response> {
    let id = DocumentId::parse(id).ok()?;
    if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::InvalidArgument) {
        return None;
    }
    let document = Document {
        title: id.to_string(),
        id,
        text: String::new(),
        url: None,
        as_of: None,
        metadata: JsonObject::new(),
        passages: Vec::new(),
    };
    let Some(View::Board(mut board)) = view(app.service.sources(), &document, None, cx).await else {
        return None;
    };
    board.notes.insert(0, error.message().to_owned());
    board.shows_text = false;
    Some(board::page(app, &document, *board, None))
}

/// Leads to the record that was made of a document; `None` if it does not change by itself.
fn kept(app: &App, document: &Document) -> Option<Response> {
    let here = Links::new(app.service.links.path_prefix());
    Some(Redirect::to(&here.record(&document.id, document.record()?)).into_response())
}

fn unavailable(app: &App, headers: &HeaderMap, message: &str) -> Response {
    if page::wants_json(headers) {
        let body = serde_json::json!({"error": message}).to_string();
        return rpc::json_response(StatusCode::SERVICE_UNAVAILABLE, body);
    }
    let mut response = page::render(
        StatusCode::SERVICE_UNAVAILABLE,
        "missing.html",
        minijinja::context! { base => app.service.links.path_prefix(), what => "This cannot be shown just now", next => message },
    );
    // It comes back by itself.
    response
        .headers_mut()
        .insert(header::REFRESH, HeaderValue::from_static("10"));
    response
}
