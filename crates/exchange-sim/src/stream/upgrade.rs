//! The three ways to open a stream connection: `/ws`, `/ws/<stream>`, `/stream?streams=a/b`.

use std::sync::Arc;

use axum::extract::ws::WebSocketUpgrade;
use axum::extract::{ConnectInfo, Path, RawQuery, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use percent_encoding::percent_decode_str;

use super::{connection, request};
use crate::server::Remote;
use crate::venue::Venue;

/// A client's message may be so long; a thousand stream names fit.
const MAX_INBOUND_BYTES: usize = 128 * 1024;

pub async fn bare(
    State(venue): State<Arc<Venue>>,
    ConnectInfo(remote): ConnectInfo<Remote>,
    upgrade: WebSocketUpgrade,
) -> Response {
    open(venue, remote, upgrade, Vec::new(), false)
}

pub async fn raw(
    State(venue): State<Arc<Venue>>,
    ConnectInfo(remote): ConnectInfo<Remote>,
    Path(streams): Path<String>,
    upgrade: WebSocketUpgrade,
) -> Response {
    open(venue, remote, upgrade, split(&streams), false)
}

pub async fn combined(
    State(venue): State<Arc<Venue>>,
    ConnectInfo(remote): ConnectInfo<Remote>,
    RawQuery(query): RawQuery,
    upgrade: WebSocketUpgrade,
) -> Response {
    let query = query.unwrap_or_default();
    let streams = query
        .split('&')
        .find_map(|pair| pair.strip_prefix("streams="))
        .map(|streams| percent_decode_str(streams).decode_utf8_lossy().into_owned());
    open(venue, remote, upgrade, split(&streams.unwrap_or_default()), true)
}

fn split(streams: &str) -> Vec<String> {
    streams
        .split('/')
        .filter(|name| !name.is_empty())
        .map(str::to_owned)
        .collect()
}

fn open(
    venue: Arc<Venue>,
    remote: Remote,
    upgrade: WebSocketUpgrade,
    streams: Vec<String>,
    combined: bool,
) -> Response {
    if !venue.admit(remote.0.ip()) {
        return (
            StatusCode::TOO_MANY_REQUESTS,
            "too many connections: try again in five minutes",
        )
            .into_response();
    }
    if streams.len() > venue.limits.streams_per_connection || !streams.iter().all(|name| request::valid(name)) {
        return (StatusCode::BAD_REQUEST, "too many streams, or a name that is none").into_response();
    }
    upgrade
        .max_message_size(MAX_INBOUND_BYTES)
        .on_upgrade(move |socket| connection::run(venue, socket, streams, combined))
}
