//! Reading an MCP message from an HTTP request, before it goes to rmcp.

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use http::{HeaderMap, StatusCode, header};
use serde::Deserialize;
use serde_json::Value;

use super::streamable::{EVENT_STREAM, JSON};
use crate::request::read_limited;
use crate::response::rpc;
use crate::settings::Settings;

/// The part of a message that decides where it goes.
#[derive(Deserialize)]
pub(super) struct Peek {
    #[serde(default)]
    pub(super) id: Value,
    #[serde(default)]
    pub(super) method: String,
}

/// What a client accepts. No header, `*/*` and `application/*` accept JSON; a stream must be named.
pub(super) struct Accept {
    pub(super) json: bool,
    pub(super) stream: bool,
}

impl Accept {
    pub(super) fn new(headers: &HeaderMap) -> Self {
        let mut accept = Self {
            json: !headers.contains_key(header::ACCEPT),
            stream: false,
        };
        for value in headers.get_all(header::ACCEPT) {
            let value = value.to_str().unwrap_or_default();
            accept.stream |= value.contains(EVENT_STREAM);
            accept.json |= value.contains(JSON) || value.contains("*/*") || value.contains("application/*");
        }
        // A client that names neither gets JSON, which it may be able to read.
        accept.json |= !accept.stream;
        accept
    }
}

pub(super) fn refuse_content_type(headers: &HeaderMap) -> Option<Response> {
    let given = headers.get(header::CONTENT_TYPE)?.to_str().unwrap_or_default();
    if given.trim_start().to_ascii_lowercase().starts_with(JSON) {
        return None;
    }
    Some(rpc::error(
        StatusCode::UNSUPPORTED_MEDIA_TYPE,
        rpc::INVALID_REQUEST,
        "MCP messages are JSON: send `Content-Type: application/json`.",
    ))
}

/// Boxed, because it is large and rare.
type Refusal = Box<Response>;

fn refuse(status: StatusCode, code: i32, message: &str) -> Refusal {
    Box::new(rpc::error(status, code, message))
}

pub(super) async fn read_body(body: Body, settings: &Settings) -> Result<Bytes, Refusal> {
    let read = read_limited(body, settings.max_body_bytes, settings.call_timeout).await;
    read.map_err(|(status, message)| refuse(status, rpc::INVALID_REQUEST, &message))
}

pub(super) fn peek(body: &[u8]) -> Result<Peek, Refusal> {
    let refused = |code, message: &str| Err(refuse(StatusCode::BAD_REQUEST, code, message));
    match serde_json::from_slice::<Peek>(body) {
        Ok(peek) => Ok(peek),
        Err(error) if error.is_data() && body.trim_ascii_start().starts_with(b"[") => refused(
            rpc::INVALID_REQUEST,
            "MCP no longer has batches: send each message in its own request.",
        ),
        Err(error) if error.is_data() => refused(
            rpc::INVALID_REQUEST,
            "The body is not a JSON-RPC message: it needs `jsonrpc`, `method` and, for a request, `id`.",
        ),
        Err(error) => refused(rpc::PARSE_ERROR, &format!("The body is not valid JSON: {error}")),
    }
}
