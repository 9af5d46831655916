//! JSON-RPC errors for what fails before or around rmcp.

use axum::response::Response;
use http::StatusCode;
use serde_json::{Value, json};

pub(crate) const PARSE_ERROR: i32 = -32700;
pub(crate) const INVALID_REQUEST: i32 = -32600;
/// From the range that JSON-RPC leaves to servers.
pub(crate) const SERVER_ERROR: i32 = -32000;
pub(crate) const SESSION_UNKNOWN: i32 = -32001;

/// A JSON-RPC error that answers no particular request.
pub(crate) fn error(status: StatusCode, code: i32, message: &str) -> Response {
    error_for(&Value::Null, status, code, message)
}

pub(crate) fn error_for(id: &Value, status: StatusCode, code: i32, message: &str) -> Response {
    let body = json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}});
    super::json(status, body.to_string())
}
