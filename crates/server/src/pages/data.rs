//! `/data/{id}`: the page behind a citation; JSON for programs.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::extract::{Query, State};
use axum::response::{IntoResponse, Redirect, Response};
use http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use jiff::Timestamp;
use tribune_core::{
    CallContext, Cited, Document, DocumentId, Error, ErrorKind, Hit, JsonObject, Links, Principal, Source,
};
use tribune_page::View;

use super::{board, reading};
use crate::contract::{FetchedDocument, cited, fetch_document, related};
use crate::identity::Caller;
use crate::request::path_after;
use crate::response::{self, page, private, wants_json};
use crate::service::Service;

/// `?at=now` stores the current state, and redirects to its permalink.
pub(super) const NOW: &str = "now";
const RENAMED: &str =
    "It may have been renamed or removed. Search for its title or for words from it on the start page.";
const SIGN_IN: &str = "If it is yours, sign in on the start page and open it again.";
const TIMED_OUT: &str = "The source timed out; try again in a moment.";
/// Related documents on a page, and how long it waits for them.
const RELATED: usize = 5;
const MAX_WAIT_FOR_RELATED: Duration = Duration::from_millis(500);
/// A source may have to ask another server.
const MAX_WAIT_FOR_VIEW: Duration = Duration::from_secs(5);

pub(crate) async fn data(
    State(service): State<Arc<Service>>,
    Query(parameters): Query<HashMap<String, String>>,
    Extension(caller): Extension<Caller>,
    uri: Uri,
    headers: HeaderMap,
) -> Response {
    let id = path_after(&uri, "/data/");
    let scheme = id.split(':').next().unwrap_or_default();
    let is_personal = |source: &Arc<dyn Source>| source.is_personal() && source.owns(scheme);
    let is_personal = service.sources().iter().any(is_personal);
    let is_anonymous = caller.principal == Principal::Anonymous;
    let next = if is_personal && is_anonymous { SIGN_IN } else { RENAMED };
    let mut response = show(&service, &parameters, caller, &id, &headers, next).await;
    // A user may see more than everybody else.
    if is_anonymous {
        let revalidate = HeaderValue::from_static("no-cache");
        response.headers_mut().insert(header::CACHE_CONTROL, revalidate);
    } else {
        response = private(response);
    }
    let headers = response.headers_mut();
    headers.insert(header::VARY, HeaderValue::from_static("Accept, Authorization, Cookie"));
    response
}

async fn show(
    service: &Service,
    parameters: &HashMap<String, String>,
    caller: Caller,
    id: &str,
    headers: &HeaderMap,
    next: &str,
) -> Response {
    // A stopping server waits until this is dropped.
    let _running = service.calls.token();
    let limit = service.settings.call_timeout;
    let mut cx = CallContext::new(caller.principal, service.clock.monotonic() + limit);
    cx.correlation_id = caller.correlation_id;
    let as_json = wants_json(headers) || parameters.get("format").is_some_and(|format| format == "json");
    let keeps = parameters.get("at").is_some_and(|at| at == NOW);
    if !as_json && !keeps {
        cx = cx.uncited();
    }
    let record = match parameters.get("at").filter(|_| !keeps) {
        Some(record) => match tokio::time::timeout(limit, cited(service.sources(), id, record)).await {
            Ok(record) => record,
            Err(_) => return unavailable(service, headers, TIMED_OUT),
        },
        None => Ok(None),
    };
    let (document, cited_at) = match record {
        Ok(Some(Cited::Kept { document, at })) => (*document, Some(at)),
        Ok(Some(Cited::Expired(why))) => return gone(headers, service, id, &why),
        Ok(Some(Cited::Unknown)) => return unknown(headers, service, id),
        Ok(None) => {
            let found = tokio::time::timeout(limit, fetch_document(service.sources(), id, &cx)).await;
            match found {
                Ok(Ok(Some(document))) => (document, None),
                Ok(Ok(None)) => return absent(service, headers, id, next),
                Ok(Err(error)) => {
                    let last = if as_json {
                        None
                    } else {
                        last_known(service, id, &error, &cx).await
                    };
                    return last.unwrap_or_else(|| failed(service, headers, id, &error));
                }
                Err(_) => return unavailable(service, headers, TIMED_OUT),
            }
        }
        Err(error) => return failed(service, headers, id, &error),
    };
    if keeps && let Some(permalink) = permalink(service, &document) {
        return permalink;
    }
    if as_json {
        return json(service, &document);
    }
    let passage = parameters.get("passage").and_then(|passage| passage.parse().ok());
    // A page can do without related documents.
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
        Some(View::Reading(reading)) => reading::page(service, page, *reading).await,
        Some(View::Board(board)) => board::page(service, &page.document, *board, page.cited_at),
        None => {
            let reading = reading::plain(&page.document);
            reading::page(service, page, reading).await
        }
    }
}

/// A document with what its page shows beside the source's view.
pub(super) struct Page {
    pub(super) document: Document,
    /// When it was cited, for a permalink.
    pub(super) cited_at: Option<Timestamp>,
    /// The cited passage, counted from 0.
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
            Ok(Err(error)) => {
                tracing::warn!(%error, source = source.name(), "could not make a view; the page shows only the text");
            }
            Err(_) => tracing::warn!(
                source = source.name(),
                "the view timed out; the page shows only the text"
            ),
        }
    }
    None
}

/// Related documents; none for a permalink.
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

fn json(service: &Service, document: &Document) -> Response {
    let fetched = FetchedDocument::complete(document, &service.links);
    match serde_json::to_string(&fetched) {
        Ok(body) => response::json(StatusCode::OK, body),
        Err(_) => response::json(
            StatusCode::INTERNAL_SERVER_ERROR,
            r#"{"error":"The document could not be written as JSON"}"#,
        ),
    }
}

fn absent(service: &Service, headers: &HeaderMap, id: &str, next: &str) -> Response {
    page::missing(
        headers,
        service.links.path_prefix(),
        &format!("There is no document {id}"),
        next,
    )
}

/// The source may know why there is no such document.
fn failed(service: &Service, headers: &HeaderMap, id: &str, error: &Error) -> Response {
    match error.kind() {
        ErrorKind::NotFound | ErrorKind::InvalidArgument => absent(service, headers, id, error.message()),
        _ => unavailable(service, headers, error.message()),
    }
}

/// For a permalink that has expired: leads to the current document.
fn gone(headers: &HeaderMap, service: &Service, id: &str, why: &str) -> Response {
    no_record(
        headers,
        service,
        id,
        StatusCode::GONE,
        "This permalink has expired",
        why,
    )
}

fn unknown(headers: &HeaderMap, service: &Service, id: &str) -> Response {
    let why = "The address may be incomplete.";
    no_record(headers, service, id, StatusCode::NOT_FOUND, "Unknown permalink", why)
}

fn no_record(headers: &HeaderMap, service: &Service, id: &str, status: StatusCode, what: &str, why: &str) -> Response {
    if wants_json(headers) {
        let next = "The current values are at the same address without `at`.";
        let body = serde_json::json!({"error": format!("{what}. {why}"), "next": next}).to_string();
        return response::json(status, body);
    }
    let base = service.links.path_prefix();
    let current = DocumentId::parse(id).map(|id| Links::new(base).citation(&id, None));
    page::render(
        status,
        "missing.html",
        minijinja::context! { base, what, next => why, current => current.ok(), id },
    )
}

/// What an unavailable source still knows, marked as old; the page updates itself later.
async fn last_known(service: &Service, id: &str, error: &Error, cx: &CallContext) -> Option<Response> {
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
    let Some(View::Board(mut board)) = view(service.sources(), &document, None, cx).await else {
        return None;
    };
    board.notes.insert(0, error.message().to_owned());
    board.shows_text = false;
    Some(board::page(service, &document, *board, None))
}

/// Redirects to the permalink of a document; `None` if it has none.
fn permalink(service: &Service, document: &Document) -> Option<Response> {
    let here = Links::new(service.links.path_prefix());
    Some(Redirect::to(&here.record(&document.id, document.record()?)).into_response())
}

fn unavailable(service: &Service, headers: &HeaderMap, message: &str) -> Response {
    if wants_json(headers) {
        let body = serde_json::json!({"error": message}).to_string();
        return response::json(StatusCode::SERVICE_UNAVAILABLE, body);
    }
    let mut response = page::render(
        StatusCode::SERVICE_UNAVAILABLE,
        "missing.html",
        minijinja::context! { base => service.links.path_prefix(), what => "This page is unavailable right now", next => message },
    );
    // The browser tries again.
    response
        .headers_mut()
        .insert(header::REFRESH, HeaderValue::from_static("10"));
    response
}
