//! `/data/{id}`: the page behind a citation; JSON for programs.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Query, State};
use axum::response::{IntoResponse, Redirect, Response};
use axum::{Extension, Json};
use http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use jiff::Timestamp;
use minijinja::context;
use tribune_core::{CallContext, Cited, Document, DocumentId, Error, ErrorKind, Hit, JsonObject, Links, Principal};
use tribune_page::View;

use super::{board, reading};
use crate::contract::{FetchedDocument, cited, fetch_document, related};
use crate::identity::Caller;
use crate::request::path_after;
use crate::response::{page, private, wants_json};
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
    let owner = service.owner(id.split(':').next().unwrap_or_default());
    let is_personal = owner.is_some_and(|source| source.is_personal());
    // Live documents are short, and may wait for another server.
    let making = match owner.is_some_and(|source| source.facts().live) {
        true => None,
        false => service.limits.sending.make().await,
    };
    let is_anonymous = caller.principal == Principal::Anonymous;
    let next = if is_personal && is_anonymous { SIGN_IN } else { RENAMED };
    let mut response = show(&service, &parameters, &caller, &id, &headers, next).await;
    if let Some(making) = making {
        response.extensions_mut().insert(making);
    }
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
    caller: &Caller,
    id: &str,
    headers: &HeaderMap,
    next: &str,
) -> Response {
    // A stopping server waits until this is dropped.
    let _running = service.calls.token();
    let mut cx = service.call_context(caller);
    let as_json = wants_json(headers) || parameters.get("format").is_some_and(|format| format == "json");
    let keeps = parameters.get("at").is_some_and(|at| at == NOW);
    if !as_json && !keeps {
        cx = cx.uncited();
    }
    let record = parameters.get("at").filter(|_| !keeps);
    let (document, cited_at) = match find(service, id, record, &cx).await {
        Ok(found) => found,
        Err(failure) => {
            if let Failure::Error(error) = &failure
                && record.is_none()
                && !as_json
                && let Some(last) = last_known(service, id, error, &cx).await
            {
                return last;
            }
            return failed(service, headers, id, &failure, next);
        }
    };
    if keeps && let Some(permalink) = permalink(service, &document) {
        return permalink;
    }
    if as_json {
        return Json(FetchedDocument::complete(&document, &service.links)).into_response();
    }
    let passage = parameters.get("passage").and_then(|passage| passage.parse().ok());
    // A page can do without related documents.
    let (view, like) = tokio::join!(view(service, &document, cited_at, &cx), like(service, &document, cited_at, &cx));
    let view = view.unwrap_or_else(|| View::Reading(Box::new(reading::plain(&document))));
    let page = Page { document, cited_at, passage: passage.filter(|_| cited_at.is_none()), like };
    match view {
        View::Board(board) => board::page(service, &page.document, *board, cited_at),
        View::Reading(reading) => reading::page(service, page, *reading).await,
    }
}

/// Why there is nothing to show.
enum Failure {
    Absent,
    /// The status, what is wrong with the permalink, and why.
    NoRecord(StatusCode, &'static str, String),
    Error(Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
}

/// The document as it is now, or as it was when `record` was made.
async fn find(
    service: &Service,
    id: &str,
    record: Option<&String>,
    cx: &CallContext,
) -> Result<(Document, Option<Timestamp>), Failure> {
    let found = async {
        if let Some(record) = record {
            match cited(service.sources(), id, record).await? {
                Some(Cited::Kept { document, at }) => return Ok((*document, Some(at))),
                Some(Cited::Expired(why)) => {
                    return Err(Failure::NoRecord(StatusCode::GONE, "This permalink has expired", why));
                }
                Some(Cited::Unknown) => {
                    let why = "The address may be incomplete.".to_owned();
                    return Err(Failure::NoRecord(StatusCode::NOT_FOUND, "Unknown permalink", why));
                }
                None => {}
            }
        }
        let document = fetch_document(service.sources(), id, cx).await.map_err(|error| error.told_to(cx.scopes))?;
        document.map(|document| (document, None)).ok_or(Failure::Absent)
    };
    let found = tokio::time::timeout(service.settings.config.call_timeout, found).await;
    found.unwrap_or_else(|_| Err(Error::unavailable(TIMED_OUT).into()))
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

async fn view(service: &Service, document: &Document, cited_at: Option<Timestamp>, cx: &CallContext) -> Option<View> {
    let source = service.owner(document.id.scheme())?;
    match tokio::time::timeout(MAX_WAIT_FOR_VIEW, source.view(document, cited_at, cx)).await {
        Ok(Ok(view)) => view,
        Ok(Err(error)) => {
            tracing::warn!(%error, source = source.name(), "could not make a view; the page shows only the text");
            None
        }
        Err(_) => {
            tracing::warn!(source = source.name(), "the view timed out; the page shows only the text");
            None
        }
    }
}

/// Related documents; none for a permalink.
async fn like(service: &Service, document: &Document, cited_at: Option<Timestamp>, cx: &CallContext) -> Arc<[Hit]> {
    if cited_at.is_some() {
        return Arc::default();
    }
    let like = tokio::time::timeout(MAX_WAIT_FOR_RELATED, related(service.sources(), &document.id, RELATED, cx)).await;
    like.ok().and_then(Result::ok).unwrap_or_default()
}

fn failed(service: &Service, headers: &HeaderMap, id: &str, failure: &Failure, next: &str) -> Response {
    let base = service.links.path_prefix();
    let as_json = wants_json(headers);
    let absent = |next: &str| page::missing(headers, base, &format!("There is no document {id}"), next);
    match failure {
        Failure::Absent => absent(next),
        // The source may know why there is no such document.
        Failure::Error(error) if is_absence(error) => absent(error.message()),
        Failure::Error(error) if as_json => {
            let body = serde_json::json!({"error": error.message()});
            (StatusCode::SERVICE_UNAVAILABLE, Json(body)).into_response()
        }
        Failure::Error(error) => {
            let (what, next) = ("This page is unavailable right now", error.message());
            let page = page::render(StatusCode::SERVICE_UNAVAILABLE, "missing.html", context! { base, what, next });
            // The browser tries again.
            ([(header::REFRESH, "10")], page).into_response()
        }
        Failure::NoRecord(status, what, why) if as_json => {
            let next = "The current values are at the same address without `at`.";
            let body = serde_json::json!({"error": format!("{what}. {why}"), "next": next});
            (*status, Json(body)).into_response()
        }
        Failure::NoRecord(status, what, why) => {
            let current = DocumentId::parse(id).map(|id| Links::new(base).citation(&id, None));
            let values = context! { base, what => *what, next => why, current => current.ok(), id };
            page::render(*status, "missing.html", values)
        }
    }
}

/// Whether the source can answer, and has no such document.
fn is_absence(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::InvalidArgument)
}

/// What an unavailable source still knows, marked as old; the page updates itself later.
async fn last_known(service: &Service, id: &str, error: &Error, cx: &CallContext) -> Option<Response> {
    let id = DocumentId::parse(id).ok().filter(|_| !is_absence(error))?;
    let document = Document {
        title: id.to_string(),
        id,
        text: String::new(),
        url: None,
        as_of: None,
        metadata: JsonObject::new(),
        passages: Vec::new(),
    };
    let Some(View::Board(mut board)) = view(service, &document, None, cx).await else {
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
