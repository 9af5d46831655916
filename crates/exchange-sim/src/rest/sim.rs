//! Endpoints that only the simulator has: `/sim/state`, `/sim/faults`, `/sim/start`.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::faults::Fault;
use crate::venue::Venue;

pub async fn state(State(venue): State<Arc<Venue>>) -> axum::Json<Value> {
    axum::Json(json!({
        "mode": venue.label(),
        "serverTime": venue.markets.server_time(),
        "finished": venue.replay.as_ref().map(|replay| replay.is_finished()),
        "symbols": venue.markets.instruments.len(),
        "counts": venue.counts(),
        "replay": venue.replay.as_ref().map(|replay| replay.json())
    }))
}

#[derive(Deserialize)]
#[serde(untagged)]
enum OneOrMany {
    One(Fault),
    Many(Vec<Fault>),
}

pub async fn set_faults(State(venue): State<Arc<Venue>>, body: Bytes) -> Response {
    let faults = match serde_json::from_slice(&body) {
        Ok(OneOrMany::One(fault)) => vec![fault],
        Ok(OneOrMany::Many(faults)) => faults,
        Err(_) => {
            let help = "unknown fault: send one like {\"fault\":\"silence\",\"on\":true}, or an array of them\n";
            return (StatusCode::BAD_REQUEST, help).into_response();
        }
    };
    let answer = json!({"set": faults.len()});
    for fault in faults {
        set_fault(&venue, fault);
    }
    axum::Json(answer).into_response()
}

pub fn set_fault(venue: &Venue, fault: Fault) {
    match &fault {
        Fault::DropConnections => venue.markets.hub.cut_all(),
        Fault::LoseStreams { symbol } => venue.markets.hub.lose_streams(symbol),
        _ => {}
    }
    venue.markets.faults.set(fault);
}

pub async fn start(State(venue): State<Arc<Venue>>) -> Response {
    match &venue.replay {
        Some(replay) => {
            replay.start();
            axum::Json(replay.json()).into_response()
        }
        None => {
            let help = "only a replay can be started; a simulation always runs\n";
            (StatusCode::BAD_REQUEST, help).into_response()
        }
    }
}
