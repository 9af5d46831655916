//! Accepts connections, serves each within its limits, and stops.

use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use http::{Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use metrics_exporter_prometheus::PrometheusHandle;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::Service as _;

use crate::identity::{Need, need};
use crate::response;
use crate::router::{App, private, public};
use crate::service::Service;
use tribune_limits::connections::sending::{Sending, Sent};
use tribune_limits::connections::{Admitted, Connections, allowed_by_descriptors};
use tribune_limits::{LimitSettings, Rate, SocketPeer};

const CONNECTIONS_END_WITHIN: Duration = Duration::from_secs(5);
const RESPONSES_SENT_WITHIN: Duration = Duration::from_secs(3);
const CALLS_END_WITHIN: Duration = Duration::from_secs(3);
/// Refused connections are logged at most this often.
const LOG_EVERY: Duration = Duration::from_secs(60);
/// How often a client of HTTP/2 has to show that it is there.
const PING_EVERY: Duration = Duration::from_secs(60);
/// The largest head of a request, and what is buffered of one HTTP/1.1 connection.
const MAX_BUFFER_BYTES: usize = 128 * 1024;
const MAX_STREAMS: u32 = 128;
/// Bytes that clients may send before they are read, on one stream and on one connection.
const STREAM_WINDOW: u32 = 256 * 1024;
const CONNECTION_WINDOW: u32 = 1024 * 1024;
/// Streams that a client has reset before they were accepted.
const MAX_RESET_STREAMS: usize = 32;
const MAX_HEADER_BYTES: u32 = 32 * 1024;
const MAX_SEND_BUFFER_BYTES: usize = 64 * 1024;

/// What the connections share.
struct Listening {
    service: Arc<Service>,
    router: Router,
    connections: Arc<Connections>,
    log: Rate<()>,
    /// Cancelled when connections are to end.
    ending: CancellationToken,
}

/// Serves until `service.stopping` is cancelled; then finishes running calls, ends streams and returns. `operators` is a
/// listener for health, readiness and metrics alone.
pub async fn serve(
    service: Arc<Service>,
    listener: TcpListener,
    operators: Option<TcpListener>,
    metrics: Option<PrometheusHandle>,
) -> std::io::Result<()> {
    let app = App::new(service.clone(), metrics);
    // Ends when this function returns, so that readiness says "stopping" until then.
    let mut for_operators = JoinSet::new();
    if let Some(operators) = operators {
        for_operators.spawn(serve_operators(app.clone(), operators));
    }
    let settings = &service.settings.limits;
    let max = max_connections(settings);
    tracing::debug!(max, "connections are limited");
    let listening = Arc::new(Listening {
        router: public(app),
        connections: Arc::new(Connections::new(max, settings.connections_per_peer)),
        log: Rate::new(1, LOG_EVERY, service.clock.clone()),
        ending: CancellationToken::new(),
        service: service.clone(),
    });
    let tasks = TaskTracker::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = service.stopping.cancelled() => break,
        };
        match accepted {
            Ok((stream, address)) => {
                if let Some(admitted) = listening.admit(address).await {
                    tasks.spawn(Box::pin(connection(listening.clone(), stream, admitted, address)));
                }
            }
            Err(error) => {
                // Most likely there are no file descriptors left; idle connections free some soon.
                tracing::warn!(%error, "could not accept a connection");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
    drop(listener);
    drain(service).await;
    // Streams were told to end; what stays open belongs to clients that do not react.
    listening.ending.cancel();
    tasks.close();
    drop(tokio::time::timeout(CONNECTIONS_END_WITHIN, tasks.wait()).await);
    Ok(())
}

async fn serve_operators(app: App, listener: TcpListener) {
    if let Err(error) = axum::serve(listener, private(app)).await {
        tracing::error!(%error, "server.ops_listen is no longer served");
    }
}

fn max_connections(settings: &LimitSettings) -> usize {
    let configured = if settings.connections == 0 { usize::MAX } else { settings.connections };
    configured.min(allowed_by_descriptors().unwrap_or(usize::MAX)).min(usize::MAX / 4)
}

impl Listening {
    /// A place for a connection; without one it is closed at once.
    async fn admit(&self, address: SocketAddr) -> Option<Admitted> {
        let peer = address.ip().to_canonical();
        let is_shared = peer.is_loopback() || self.service.settings.limits.trusted_proxies.trusts(peer);
        let admitted = self.connections.admit_soon((!is_shared).then_some(peer)).await;
        let reason = match &admitted {
            Ok(admitted) if admitted.evicts => "evicted",
            Ok(_) => return admitted.ok(),
            Err(full) => full.as_str(),
        };
        metrics::counter!("tribune_connections_refused_total", "reason" => reason).increment(1);
        if self.log.take(&()).is_ok() {
            let open = self.connections.count();
            tracing::warn!(reason, open, "too many connections; see [limits]");
        }
        admitted.ok()
    }

    /// Answers a request, or refuses it if the client lets too much wait.
    async fn respond(&self, request: Request<Incoming>, peer: IpAddr, sending: Arc<Sending>) -> Response<Sent> {
        let is_rpc = need(request.uri().path()) == Need::Profile;
        let activity = sending.activity.clone();
        let _page = match is_rpc {
            true => None,
            false => activity.page().await,
        };
        // The answer would be refused too: it is not even made.
        if activity.is_full() {
            return self.refuse(is_rpc, sending);
        }
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(SocketPeer(peer));
        let response = match self.router.clone().call(request).await {
            Ok(response) => response,
            Err(never) => match never {},
        };
        let budget = &self.service.limits.sending;
        Sent::new(response, sending.clone(), budget).unwrap_or_else(|| self.refuse(is_rpc, sending))
    }

    fn refuse(&self, is_rpc: bool, sending: Arc<Sending>) -> Response<Sent> {
        metrics::counter!("tribune_limited_total", "limit" => "sending").increment(1);
        let message = "Too many responses wait to be read. Read them, then try again.";
        let refusal = response::retry_later(is_rpc, StatusCode::SERVICE_UNAVAILABLE, message, 1);
        Sent::short(refusal, sending)
    }
}

async fn connection(listening: Arc<Listening>, stream: TcpStream, admitted: Admitted, address: SocketAddr) {
    // A response is one write: waiting to fill a packet only delays it.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "could not set TCP_NODELAY");
    }
    let (shared, activity) = (listening.clone(), admitted.activity.clone());
    let peer = address.ip().to_canonical();
    let respond = hyper::service::service_fn(move |request| {
        let (shared, sending) = (shared.clone(), activity.begin());
        async move { Ok::<_, Infallible>(shared.respond(request, peer, sending).await) }
    });
    let settings = &listening.service.settings.limits;
    let builder = builder(settings);
    let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), respond));
    let mut overdue = pin!(admitted.activity.overdue(settings));
    let mut ends = false;
    metrics::gauge!("tribune_connections").increment(1.0);
    loop {
        tokio::select! {
            ended = connection.as_mut() => {
                if let Err(error) = ended {
                    tracing::debug!(%error, "connection ended with an error");
                }
                break;
            }
            () = listening.ending.cancelled(), if !ends => {
                ends = true;
                connection.as_mut().graceful_shutdown();
            }
            reason = overdue.as_mut() => {
                metrics::counter!("tribune_connections_closed_total", "reason" => reason).increment(1);
                break;
            }
            () = admitted.activity.evicted.notified() => break,
        }
    }
    metrics::gauge!("tribune_connections").decrement(1.0);
}

fn builder(settings: &LimitSettings) -> auto::Builder<TokioExecutor> {
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        // Also without a request; before the first one, the connection's own timeout is shorter.
        .header_read_timeout(settings.idle)
        .max_buf_size(MAX_BUFFER_BYTES);
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(Some(PING_EVERY))
        .max_concurrent_streams(MAX_STREAMS)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_pending_accept_reset_streams(MAX_RESET_STREAMS)
        .max_header_list_size(MAX_HEADER_BYTES)
        .max_send_buf_size(MAX_SEND_BUFFER_BYTES);
    builder
}

/// Waits for the stop, then for running calls and their responses, then ends the streams.
async fn drain(service: Arc<Service>) {
    service.stopping.cancelled().await;
    service.calls.close();
    service.answers.close();
    let answered = async {
        service.calls.wait().await;
        // A call ends before its response is sent; a client that does not read must not delay the stop.
        drop(tokio::time::timeout(RESPONSES_SENT_WITHIN, service.answers.wait()).await);
    };
    if tokio::time::timeout(service.settings.config.drain, answered).await.is_err() {
        tracing::warn!(calls = service.calls.len(), "stopping with running calls");
    }
    service.closing.cancel();
    // Cancelled calls may still store how far they got.
    drop(tokio::time::timeout(CALLS_END_WITHIN, service.calls.wait()).await);
}
