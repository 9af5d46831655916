//! Every response that the server makes itself.
//!
//! - [`problem`]: failures as `{"error": {"code", "message"}}`;
//! - [`rpc`]: failures as JSON-RPC errors, for MCP endpoints;
//! - [`page`]: HTML from templates.

pub(crate) mod page;
pub(crate) mod problem;
pub(crate) mod rpc;

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use tribune_limits::Exceeded;

/// A response instead of what was asked for. Boxed, because it is large and rare.
pub(crate) struct Refusal(Box<Response>);

impl From<Response> for Refusal {
    fn from(response: Response) -> Self {
        Self(Box::new(response))
    }
}

impl From<tribune_core::Error> for Refusal {
    fn from(error: tribune_core::Error) -> Self {
        problem::from_error(&error).into()
    }
}

impl From<Exceeded> for Refusal {
    fn from(limit: Exceeded) -> Self {
        exceeded(false, limit).into()
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        *self.0
    }
}

/// `body` is JSON already.
pub(crate) fn json(status: StatusCode, body: impl Into<Body>) -> Response {
    let mut response = Response::new(body.into());
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// Server-sent events; proxies must not buffer them.
pub(crate) fn event_stream(events: Body) -> Response {
    let mut response = Response::new(events);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache, no-transform"));
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

/// For a caller who has reached a limit.
pub(crate) fn exceeded(is_rpc: bool, limit: Exceeded) -> Response {
    retry_later(is_rpc, StatusCode::TOO_MANY_REQUESTS, &limit.message(), limit.retry_after_secs())
}

/// A refusal that ends by itself.
pub(crate) fn retry_later(is_rpc: bool, status: StatusCode, message: &str, retry_after_secs: u64) -> Response {
    let mut response = match is_rpc {
        true => rpc::error(status, rpc::SERVER_ERROR, message),
        false => problem::with_status(status, tribune_core::ErrorKind::RateLimited.as_str(), message),
    };
    response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(retry_after_secs));
    response
}

/// For pages that only one user may see.
pub(crate) fn private(mut response: Response) -> Response {
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("private, no-store"));
    response
}

/// Whether the client prefers JSON to a page.
pub(crate) fn wants_json(headers: &HeaderMap) -> bool {
    accepts(headers, "application/json") && !accepts(headers, "text/html")
}

pub(crate) fn accepts(headers: &HeaderMap, media_type: &str) -> bool {
    let mut values = headers.get_all(header::ACCEPT).iter();
    values.any(|value| value.to_str().is_ok_and(|value| value.contains(media_type)))
}
