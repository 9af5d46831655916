//! What only a simulator has: `/`, `/sim/state`, `/sim/faults`, `/sim/start`.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use axum::body::Bytes;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::counts::Counts;
use crate::faults::Fault;
use crate::venue::{Label, Venue};

pub async fn welcome(State(venue): State<Arc<Venue>>) -> &'static str {
    match venue.label {
        Label::Simulated => "a simulated exchange: every figure is made up\n",
        Label::Replay => "a recorded exchange, played again: every figure is of the past\n",
    }
}

pub async fn state(State(venue): State<Arc<Venue>>) -> axum::Json<Value> {
    let counts = Counts::of(&venue);
    axum::Json(json!({
        "mode": venue.label.as_str(),
        "serverTime": venue.told_time(),
        "finished": venue.replay.as_ref().map(|replay| replay.finished()),
        "symbols": venue.listed.len(),
        "counts": counts,
        "replay": venue.replay.as_ref().map(|replay| replay.json()),
        "weightUsed": venue.tally.weight_used.load(Ordering::Relaxed)
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
            let help = "not a fault: send one like {\"fault\":\"silence\",\"on\":true}, or an array of them\n";
            return (StatusCode::BAD_REQUEST, help).into_response();
        }
    };
    for fault in &faults {
        set_fault(&venue, fault);
    }
    axum::Json(json!({"set": faults.len()})).into_response()
}

pub fn set_fault(venue: &Venue, fault: &Fault) {
    venue.faults.set(fault);
    match fault {
        Fault::DropConnections => venue.hub.cut_all(),
        Fault::LoseStreams { symbol } => venue.hub.lose(symbol),
        _ => {}
    }
}

pub async fn start(State(venue): State<Arc<Venue>>) -> Response {
    match &venue.replay {
        Some(replay) => {
            replay.begin();
            axum::Json(replay.json()).into_response()
        }
        None => (
            StatusCode::BAD_REQUEST,
            "only a recording can be started; a simulation always runs\n",
        )
            .into_response(),
    }
}
