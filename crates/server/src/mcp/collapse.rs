//! Turns an event stream into one JSON response, for clients that accept only JSON.

use axum::body::Body;
use axum::response::Response;
use futures::StreamExt;
use http::{StatusCode, header};
use serde_json::Value;
use sse_stream::SseStream;

use super::render;
use crate::response::{self, rpc};

pub fn is_event_stream(response: &Response) -> bool {
    response.headers().get(header::CONTENT_TYPE).is_some_and(|value| value.as_bytes().starts_with(b"text/event-stream"))
}

/// Waits for the response to the request and returns it alone. Notifications are dropped: a client that accepts no
/// stream cannot receive them.
pub async fn to_json(response: Response) -> Response {
    let (mut parts, body) = response.into_parts();
    let mut events = SseStream::new(body);
    while let Some(Ok(event)) = events.next().await {
        if let Some(message) = event.data.as_deref().and_then(read_answer) {
            parts.headers.remove(header::CONTENT_LENGTH);
            parts.headers.remove(header::CACHE_CONTROL);
            let answer = response::json(StatusCode::OK, message.to_string());
            parts.headers.extend(answer.headers().clone());
            return Response::from_parts(parts, answer.into_body());
        }
    }
    incomplete()
}

/// The JSON-RPC response in an event; `None` for notifications.
fn read_answer(data: &str) -> Option<Value> {
    let message: Value = serde_json::from_str(data).ok()?;
    (message.get("result").is_some() || message.get("error").is_some()).then_some(message)
}

/// Copies a search's `results` to the top level of the result, where hosts of 2025 look.
pub fn add_legacy_results(message: &mut Value) {
    let results = message.pointer("/result/structuredContent/results").cloned();
    if let (Some(results), Some(result)) = (results, message.get_mut("result").and_then(Value::as_object_mut)) {
        result.insert("results".to_owned(), results);
    }
}

/// [`add_legacy_results`] for a response that is JSON already.
pub async fn with_legacy_results(response: Response) -> Response {
    changed(response, add_legacy_results).await
}

/// Adds to a list of tools what hosts need for a sign-in.
pub async fn with_security(response: Response) -> Response {
    let response = match is_event_stream(&response) {
        true => to_json(response).await,
        false => response,
    };
    changed(response, |message| {
        if let Some(result) = message.get_mut("result") {
            render::add_security(result);
        }
    })
    .await
}

/// A JSON response with changes.
async fn changed(response: Response, change: impl FnOnce(&mut Value)) -> Response {
    let (mut parts, body) = response.into_parts();
    let Ok(bytes) = axum::body::to_bytes(body, usize::MAX).await else {
        return incomplete();
    };
    let Ok(mut message) = serde_json::from_slice::<Value>(&bytes) else {
        return Response::from_parts(parts, Body::from(bytes));
    };
    change(&mut message);
    parts.headers.remove(header::CONTENT_LENGTH);
    Response::from_parts(parts, Body::from(message.to_string()))
}

fn incomplete() -> Response {
    rpc::error(
        StatusCode::INTERNAL_SERVER_ERROR,
        rpc::SERVER_ERROR,
        "The response is incomplete; send the request again.",
    )
}
