//! The three ways to open a stream connection: `/ws`, `/ws/<stream>`, `/stream?streams=a/b`.

use std::collections::HashMap;
use std::sync::Arc;

use axum::extract::ws::WebSocketUpgrade;
use axum::extract::{Query, State};
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use percent_encoding::percent_decode_str;

use super::{connection, request};
use crate::api::check_time_unit;
use crate::venue::Venue;

/// A client's longest message; a thousand stream names fit.
const MAX_INBOUND_BYTES: usize = 128 * 1024;

pub async fn open(
    State(venue): State<Arc<Venue>>,
    uri: Uri,
    Query(query): Query<HashMap<String, String>>,
    upgrade: WebSocketUpgrade,
) -> Response {
    if !venue.admit() {
        return (StatusCode::TOO_MANY_REQUESTS, "too many connections; try again in five minutes").into_response();
    }
    if let Err(error) = check_time_unit(query.get("timeUnit").map(String::as_str)) {
        return (error.status, error.body()).into_response();
    }
    let streams = match uri.path().strip_prefix("/ws") {
        Some(path) => percent_decode_str(path).decode_utf8_lossy(),
        None => query.get("streams").map_or("", String::as_str).into(),
    };
    let streams: Vec<String> = streams.split('/').filter(|name| !name.is_empty()).map(str::to_owned).collect();
    let exist = streams.iter().all(|name| request::is_stream(name));
    if streams.len() > venue.limits.streams_per_connection || !exist {
        return (StatusCode::BAD_REQUEST, "too many streams, or an unknown one").into_response();
    }
    let combined = uri.path() == "/stream";
    upgrade
        .max_message_size(MAX_INBOUND_BYTES)
        .on_upgrade(move |socket| connection::run(venue, socket, streams, combined))
}
