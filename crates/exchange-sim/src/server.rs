//! The routes.

use std::sync::Arc;

use axum::Router;
use axum::http::HeaderValue;
use axum::middleware::map_response;
use axum::routing::{any, get, post};

use crate::listener::{FaultyListener, Remote};
use crate::rest::{self, sim};
use crate::stream::upgrade;
use crate::venue::Venue;

pub fn router(venue: Arc<Venue>) -> Router {
    let label = HeaderValue::from_static(venue.label());
    Router::new()
        .route("/", get(sim::welcome))
        .route("/sim/state", get(sim::state))
        .route("/sim/start", any(sim::start))
        .route("/sim/faults", post(sim::set_faults))
        .route("/api/v3/{*endpoint}", any(rest::serve))
        .route("/ws", any(upgrade::open))
        .route("/ws/", any(upgrade::open))
        .route("/ws/{*streams}", any(upgrade::open))
        .route("/stream", any(upgrade::open))
        .layer(map_response(move |mut response: axum::response::Response| {
            response.headers_mut().insert("x-tribune-simulated", label.clone());
            std::future::ready(response)
        }))
        .with_state(venue)
}

pub async fn serve(listener: FaultyListener, venue: Arc<Venue>) {
    let stopping = venue.stopping.clone();
    let service = router(venue).into_make_service_with_connect_info::<Remote>();
    let served = axum::serve(listener, service).with_graceful_shutdown(stopping.cancelled_owned());
    if let Err(error) = served.await {
        tracing::error!(%error, "the exchange's listener failed");
    }
}
