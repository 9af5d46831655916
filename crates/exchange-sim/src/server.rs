//! The routes, and what every answer has.

use std::sync::Arc;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::HeaderValue;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use axum::routing::{any, get, post};
use axum::serve::ListenerExt as _;
use tokio::net::TcpListener;

use crate::rest::{self, sim};
use crate::stream::upgrade;
use crate::venue::Venue;

fn router(venue: Arc<Venue>) -> Router {
    Router::new()
        .route("/sim/state", get(sim::state))
        .route("/sim/start", any(sim::start))
        .route("/sim/faults", post(sim::set_faults))
        .route("/api/v3/{*endpoint}", any(rest::serve))
        .route("/sapi/v1/account/{endpoint}", any(rest::serve))
        .route("/ws", any(upgrade::open))
        .route("/ws/", any(upgrade::open))
        .route("/ws/{*streams}", any(upgrade::open))
        .route("/stream", any(upgrade::open))
        .layer(from_fn_with_state(venue.clone(), label))
        .with_state(venue)
}

/// Labels every answer. While a fault refuses connections, only the simulator's own requests, which clear it, are answered.
async fn label(State(venue): State<Arc<Venue>>, request: Request, next: Next) -> Response {
    if venue.markets.faults.refuses_connections() && !request.uri().path().starts_with("/sim/") {
        // An error before the first byte ends the connection without an answer.
        let refusal = Err::<Bytes, _>(std::io::Error::other("refused by a fault"));
        return Response::new(Body::from_stream(futures::stream::once(std::future::ready(refusal))));
    }
    let mut response = next.run(request).await;
    response.headers_mut().insert("x-tribune-simulated", HeaderValue::from_static(venue.label()));
    response
}

pub async fn serve(listener: TcpListener, venue: Arc<Venue>) {
    let stopping = venue.stopping.clone();
    // Small messages must not wait for the acknowledgement of earlier ones.
    let listener = listener.tap_io(|stream| drop(stream.set_nodelay(true)));
    let served = axum::serve(listener, router(venue)).with_graceful_shutdown(stopping.cancelled_owned());
    if let Err(error) = served.await {
        tracing::error!(%error, "the exchange's listener failed");
    }
}
