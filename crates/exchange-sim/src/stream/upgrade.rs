//! The three ways to open a stream connection: `/ws`, `/ws/<stream>`, `/stream?streams=a/b`.

use std::sync::Arc;

use axum::extract::ws::WebSocketUpgrade;
use axum::extract::{ConnectInfo, Path, RawQuery, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use percent_encoding::percent_decode_str;

use super::{connection, names};
use crate::rest::time_unit;
use crate::server::Remote;
use crate::venue::Venue;

/// A client's message may be so long; a thousand stream names fit.
const MAX_INBOUND_BYTES: usize = 128 * 1024;

pub async fn bare(
    State(venue): State<Arc<Venue>>,
    ConnectInfo(remote): ConnectInfo<Remote>,
    RawQuery(query): RawQuery,
    upgrade: WebSocketUpgrade,
) -> Response {
    let asked = Asked::of(query, Vec::new(), false);
    open(venue, remote, upgrade, asked)
}

pub async fn raw(
    State(venue): State<Arc<Venue>>,
    ConnectInfo(remote): ConnectInfo<Remote>,
    Path(streams): Path<String>,
    RawQuery(query): RawQuery,
    upgrade: WebSocketUpgrade,
) -> Response {
    let asked = Asked::of(query, split(&streams), false);
    open(venue, remote, upgrade, asked)
}

pub async fn combined(
    State(venue): State<Arc<Venue>>,
    ConnectInfo(remote): ConnectInfo<Remote>,
    RawQuery(query): RawQuery,
    upgrade: WebSocketUpgrade,
) -> Response {
    let streams = parameter(query.as_deref(), "streams").unwrap_or_default();
    let asked = Asked::of(query, split(&streams), true);
    open(venue, remote, upgrade, asked)
}

/// What a connection is opened for.
struct Asked {
    streams: Vec<String>,
    combined: bool,
    time_unit: Option<String>,
}

impl Asked {
    fn of(query: Option<String>, streams: Vec<String>, combined: bool) -> Self {
        Self {
            streams,
            combined,
            time_unit: parameter(query.as_deref(), "timeUnit"),
        }
    }
}

fn parameter(query: Option<&str>, name: &str) -> Option<String> {
    let mut pairs = query?.split('&').filter_map(|pair| pair.split_once('='));
    let (_, value) = pairs.find(|(other, _)| *other == name)?;
    Some(percent_decode_str(value).decode_utf8_lossy().into_owned())
}

fn split(streams: &str) -> Vec<String> {
    streams
        .split('/')
        .filter(|name| !name.is_empty())
        .map(str::to_owned)
        .collect()
}

fn open(venue: Arc<Venue>, remote: Remote, upgrade: WebSocketUpgrade, asked: Asked) -> Response {
    if !venue.admit(remote.0.ip()) {
        return (
            StatusCode::TOO_MANY_REQUESTS,
            "too many connections: try again in five minutes",
        )
            .into_response();
    }
    if let Err(error) = time_unit::check(asked.time_unit.as_deref()) {
        return (error.status, error.body()).into_response();
    }
    let Asked { streams, combined, .. } = asked;
    let served = |name: &String| names::is_name(name) && names::is_served(&venue, name);
    if streams.len() > venue.limits.streams_per_connection || !streams.iter().all(served) {
        return (StatusCode::BAD_REQUEST, "too many streams, or one that there is not").into_response();
    }
    upgrade
        .max_message_size(MAX_INBOUND_BYTES)
        .on_upgrade(move |socket| connection::run(venue, socket, streams, combined))
}
