//! The listener and the routes.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::connect_info::Connected;
use axum::http::HeaderValue;
use axum::middleware::map_response;
use axum::routing::{any, get, post};
use axum::serve::{IncomingStream, Listener};
use tokio::net::{TcpListener, TcpStream};

use crate::faults::Faults;
use crate::rest::{self, sim};
use crate::stream::upgrade;
use crate::venue::Venue;

/// How long a connection that may have to be refused has to say what it wants.
const FIRST_BYTES: Duration = Duration::from_millis(100);

/// Who is at the other end.
#[derive(Debug, Clone, Copy)]
pub struct Remote(pub SocketAddr);

/// A listener that can refuse on demand.
pub struct Doorman {
    listener: TcpListener,
    faults: Arc<Faults>,
}

impl Doorman {
    pub const fn new(listener: TcpListener, faults: Arc<Faults>) -> Self {
        Self { listener, faults }
    }
}

impl Listener for Doorman {
    type Io = TcpStream;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (TcpStream, SocketAddr) {
        loop {
            let (stream, remote) = Listener::accept(&mut self.listener).await;
            if self.faults.refusing() && !asks_the_simulator(&stream).await {
                continue;
            }
            // Streams of small messages must not wait for one another's acknowledgement.
            let _ = stream.set_nodelay(true);
            return (stream, remote);
        }
    }

    fn local_addr(&self) -> std::io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// Whether a connection begins with a request to the simulator itself: faults can always be cleared.
async fn asks_the_simulator(stream: &TcpStream) -> bool {
    let mut beginning = [0; 16];
    let peek = tokio::time::timeout(FIRST_BYTES, stream.peek(&mut beginning)).await;
    let read = peek.map_or(0, |read| read.unwrap_or(0));
    let target = beginning[..read].splitn(2, |byte| *byte == b' ').nth(1);
    target.is_some_and(|target| target.starts_with(b"/sim/"))
}

impl Connected<IncomingStream<'_, Doorman>> for Remote {
    fn connect_info(stream: IncomingStream<'_, Doorman>) -> Self {
        Self(*stream.remote_addr())
    }
}

pub fn router(venue: Arc<Venue>) -> Router {
    let label = HeaderValue::from_static(venue.label.as_str());
    Router::new()
        .route("/", get(sim::welcome))
        .route("/sim/state", get(sim::state))
        .route("/sim/start", any(sim::start))
        .route("/sim/faults", post(sim::set_faults))
        .route("/api/v3/{*endpoint}", any(rest::serve))
        .route("/ws", any(upgrade::bare))
        .route("/ws/", any(upgrade::bare))
        .route("/ws/{*streams}", any(upgrade::raw))
        .route("/stream", any(upgrade::combined))
        .layer(map_response(move |mut response: axum::response::Response| {
            response.headers_mut().insert("x-tribune-simulated", label.clone());
            std::future::ready(response)
        }))
        .with_state(venue)
}

pub async fn serve(doorman: Doorman, venue: Arc<Venue>) {
    let stopping = venue.stopping.clone();
    let service = router(venue).into_make_service_with_connect_info::<Remote>();
    let served = axum::serve(doorman, service).with_graceful_shutdown(stopping.cancelled_owned());
    if let Err(error) = served.await {
        tracing::error!(%error, "the exchange's listener failed");
    }
}
