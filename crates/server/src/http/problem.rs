//! Failures of the HTTP interface, as programs read them: `{"error": {"code", "message"}}`.

use axum::response::Response;
use http::{HeaderValue, StatusCode, header};
use serde_json::json;
use tribune_core::{Error, ErrorKind};

use crate::mcp::rpc;

/// Nothing but its kind and its sentence: causes are for the log.
pub(super) fn problem(kind: ErrorKind, message: &str) -> Response {
    answer(status_of(kind), kind.as_str(), message)
}

/// Its cause, if there is one, is for the log.
pub(super) fn of(error: &Error) -> Response {
    if let Some(cause) = std::error::Error::source(error) {
        tracing::warn!(kind = error.kind().as_str(), %error, %cause, "a request failed");
    }
    problem(error.kind(), error.message())
}

pub(super) fn unauthorized(message: &str) -> Response {
    let mut response = answer(StatusCode::UNAUTHORIZED, "unauthorized", message);
    let challenge = HeaderValue::from_static("Bearer realm=\"tribune\"");
    response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
    response
}

pub(super) fn answer(status: StatusCode, code: &str, message: &str) -> Response {
    rpc::json_response(status, body(code, message).to_string())
}

pub(super) fn body(code: &str, message: &str) -> serde_json::Value {
    json!({"error": {"code": code, "message": message}})
}

fn status_of(kind: ErrorKind) -> StatusCode {
    match kind {
        ErrorKind::InvalidArgument => StatusCode::BAD_REQUEST,
        ErrorKind::NotFound => StatusCode::NOT_FOUND,
        ErrorKind::Forbidden => StatusCode::FORBIDDEN,
        ErrorKind::Unavailable | ErrorKind::Cancelled => StatusCode::SERVICE_UNAVAILABLE,
        ErrorKind::DeadlineExceeded => StatusCode::GATEWAY_TIMEOUT,
        ErrorKind::Internal => StatusCode::INTERNAL_SERVER_ERROR,
    }
}
