//! Failures of the HTTP interface, as programs read them: `{"error": {"code", "message"}}`.

use axum::response::Response;
use http::{HeaderValue, StatusCode, header};
use serde_json::json;
use tribune_core::{Error, ErrorKind};

pub(crate) fn new(kind: ErrorKind, message: &str) -> Response {
    with_status(status(kind), kind.as_str(), message)
}

/// The cause of an error goes to the log, not to the caller.
pub(crate) fn from_error(error: &Error) -> Response {
    if let Some(cause) = std::error::Error::source(error) {
        tracing::warn!(kind = error.kind().as_str(), %error, %cause, "request failed");
    }
    new(error.kind(), error.message())
}

/// `challenge` says how to get a token.
pub(crate) fn unauthorized(message: &str, challenge: HeaderValue) -> Response {
    let mut response = with_status(StatusCode::UNAUTHORIZED, "unauthorized", message);
    response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
    response
}

/// For a request body that could not be read.
pub(crate) fn unreadable((status, message): (StatusCode, String)) -> Response {
    with_status(status, ErrorKind::InvalidArgument.as_str(), &message)
}

pub(crate) fn with_status(status: StatusCode, code: &str, message: &str) -> Response {
    super::json(status, body(code, message).to_string())
}

pub(crate) fn body(code: &str, message: &str) -> serde_json::Value {
    json!({"error": {"code": code, "message": message}})
}

fn status(kind: ErrorKind) -> StatusCode {
    match kind {
        ErrorKind::InvalidArgument => StatusCode::BAD_REQUEST,
        ErrorKind::NotFound => StatusCode::NOT_FOUND,
        ErrorKind::Forbidden => StatusCode::FORBIDDEN,
        ErrorKind::RateLimited => StatusCode::TOO_MANY_REQUESTS,
        ErrorKind::Unavailable | ErrorKind::Cancelled => StatusCode::SERVICE_UNAVAILABLE,
        ErrorKind::DeadlineExceeded => StatusCode::GATEWAY_TIMEOUT,
        ErrorKind::Internal => StatusCode::INTERNAL_SERVER_ERROR,
    }
}
