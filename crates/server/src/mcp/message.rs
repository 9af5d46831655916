//! Reading an MCP message from an HTTP request, before it goes to rmcp.

use axum::body::Body;
use bytes::Bytes;
use http::{HeaderMap, StatusCode, header};
use serde::Deserialize;
use serde_json::Value;

use super::streamable::{EVENT_STREAM, JSON};
use crate::request::read_limited;
use crate::response::{Refusal, rpc};
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
        let mut accept = Self { json: !headers.contains_key(header::ACCEPT), stream: false };
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

pub(super) fn check_content_type(headers: &HeaderMap) -> Result<(), Refusal> {
    let given = headers.get(header::CONTENT_TYPE);
    let given = given.map(|given| given.to_str().unwrap_or_default().trim_start().to_ascii_lowercase());
    if given.is_none_or(|given| given.starts_with(JSON)) {
        return Ok(());
    }
    Err(rpc::error(
        StatusCode::UNSUPPORTED_MEDIA_TYPE,
        rpc::INVALID_REQUEST,
        "MCP messages are JSON: send `Content-Type: application/json`.",
    )
    .into())
}

pub(super) async fn read_body(body: Body, settings: &Settings) -> Result<Bytes, Refusal> {
    let read = read_limited(body, settings.config.max_body_bytes, settings.config.call_timeout).await;
    read.map_err(|(status, message)| rpc::error(status, rpc::INVALID_REQUEST, &message).into())
}

pub(super) fn peek(body: &[u8]) -> Result<Peek, Refusal> {
    let error = match serde_json::from_slice::<Peek>(body) {
        Ok(peek) => return Ok(peek),
        Err(error) => error,
    };
    let not_json = format!("The body is not valid JSON: {error}");
    let (code, message) = if !error.is_data() {
        (rpc::PARSE_ERROR, not_json.as_str())
    } else if body.trim_ascii_start().starts_with(b"[") {
        let message = "MCP no longer has batches: send each message in its own request.";
        (rpc::INVALID_REQUEST, message)
    } else {
        let message = "The body is not a JSON-RPC message: it needs `jsonrpc`, `method` and, for a request, `id`.";
        (rpc::INVALID_REQUEST, message)
    };
    Err(rpc::error(StatusCode::BAD_REQUEST, code, message).into())
}
