//! The routes, and a listener that refuses connections while a fault says so.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::http::HeaderValue;
use axum::middleware::map_response;
use axum::routing::{any, get, post};
use axum::serve::Listener;
use tokio::net::{TcpListener, TcpStream};

use crate::faults::Faults;
use crate::rest::{self, sim};
use crate::stream::upgrade;
use crate::venue::Venue;

/// While connections are refused, a new one has this long to show that it is for `/sim/…`.
const FIRST_BYTES_WAIT: Duration = Duration::from_millis(100);

fn router(venue: Arc<Venue>) -> Router {
    let label = HeaderValue::from_static(venue.label());
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
        .layer(map_response(move |mut response: axum::response::Response| {
            response.headers_mut().insert("x-tribune-simulated", label.clone());
            std::future::ready(response)
        }))
        .with_state(venue)
}

pub async fn serve(listener: TcpListener, venue: Arc<Venue>) {
    let stopping = venue.stopping.clone();
    let listener = FaultyListener { listener, faults: venue.markets.faults.clone() };
    let served = axum::serve(listener, router(venue)).with_graceful_shutdown(stopping.cancelled_owned());
    if let Err(error) = served.await {
        tracing::error!(%error, "the exchange's listener failed");
    }
}

struct FaultyListener {
    listener: TcpListener,
    faults: Arc<Faults>,
}

impl Listener for FaultyListener {
    type Io = TcpStream;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (TcpStream, SocketAddr) {
        loop {
            let (stream, remote) = Listener::accept(&mut self.listener).await;
            if self.faults.refuses_connections() && !is_for_simulator(&stream).await {
                continue;
            }
            // Small messages must not wait for the acknowledgement of earlier ones.
            let _ = stream.set_nodelay(true);
            return (stream, remote);
        }
    }

    fn local_addr(&self) -> std::io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// Whether a connection begins with a request to `/sim/…`: faults can always be cleared.
async fn is_for_simulator(stream: &TcpStream) -> bool {
    let mut beginning = [0; 16];
    let peek = tokio::time::timeout(FIRST_BYTES_WAIT, stream.peek(&mut beginning)).await;
    let read = peek.map_or(0, |read| read.unwrap_or(0));
    let target = beginning[..read].splitn(2, |byte| *byte == b' ').nth(1);
    target.is_some_and(|target| target.starts_with(b"/sim/"))
}
