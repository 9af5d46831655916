//! The router, which reads like a table of contents, and its start and stop.

mod assets;
mod data;
pub mod guard;
mod home;
mod ops;
mod page;

use std::future::IntoFuture;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Path, Query, State};
use axum::response::Response;
use axum::routing::{any, get, post};
use axum::serve::ListenerExt;
use http::{Request, StatusCode};
use metrics_exporter_prometheus::PrometheusHandle;
use serde::Deserialize;
use serde_json::Value;
use tokio::net::TcpListener;

use crate::mcp::rpc;
use crate::mcp::sse::Sse;
use crate::mcp::streamable::Streamable;
use crate::profile::Profile;
use crate::service::Service;
use guard::Guard;

#[derive(Clone)]
pub struct App {
    pub(crate) service: Arc<Service>,
    pub(crate) streamable: Arc<Streamable>,
    pub(crate) sse: Arc<Sse>,
    pub(crate) guard: Arc<Guard>,
    pub(crate) metrics: Option<PrometheusHandle>,
}

pub fn router(service: Arc<Service>, metrics: Option<PrometheusHandle>) -> Router {
    let app = App {
        streamable: Arc::new(Streamable::new(service.clone())),
        sse: Arc::new(Sse::new(service.clone())),
        guard: Arc::new(Guard::new(&service)),
        service,
        metrics,
    };
    let guarded = Router::new()
        .route("/", get(home::home))
        .route("/mcp", any(mcp))
        .route("/mcp/", any(mcp))
        .route("/mcp/{profile}", any(mcp_profile))
        .route("/sse", get(sse))
        .route("/sse/", get(sse))
        .route("/sse/messages", post(sse_message))
        .route("/sse/messages/", post(sse_message))
        .route("/data/{*id}", get(data::data))
        .route("/assets/{name}", get(assets::asset))
        .fallback(page::not_found)
        .layer(axum::middleware::from_fn_with_state(app.clone(), guard::check));
    Router::new()
        .route("/healthz", get(ops::healthz))
        .route("/readyz", get(ops::readyz))
        .route("/metrics", get(ops::metrics))
        .merge(guarded)
        .with_state(app)
}

/// Serves until `service.stopping` is cancelled; then finishes the calls under way, ends streams and returns.
pub async fn serve(
    service: Arc<Service>,
    listener: TcpListener,
    metrics: Option<PrometheusHandle>,
) -> std::io::Result<()> {
    let router = router(service.clone(), metrics);
    let listener = listener.tap_io(|stream| {
        // An answer is one write; waiting to fill a packet only delays it.
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "could not set TCP_NODELAY");
        }
    });
    let stop_accepting = service.stopping.clone().cancelled_owned();
    let server = axum::serve(listener, router)
        .with_graceful_shutdown(stop_accepting)
        .into_future();
    let drain = drain(service.clone());
    tokio::pin!(server);
    tokio::select! {
        result = &mut server => return result,
        () = drain => {}
    }
    // Streams have been told to end; what is still open after this belongs to clients that do not listen.
    tokio::time::timeout(std::time::Duration::from_secs(5), server)
        .await
        .unwrap_or(Ok(()))
}

/// Waits for the stop, then for the calls under way, then ends the streams.
async fn drain(service: Arc<Service>) {
    service.stopping.cancelled().await;
    service.calls.close();
    let drain = service.settings.drain;
    if tokio::time::timeout(drain, service.calls.wait()).await.is_err() {
        tracing::warn!(calls = service.calls.len(), "calls still under way are cut off");
    }
    service.closing.cancel();
}

async fn mcp(State(app): State<App>, request: Request<Body>) -> Response {
    let profile = profile_by_host(&app, &request);
    app.streamable.handle(&profile, request).await
}

async fn mcp_profile(State(app): State<App>, Path(name): Path<String>, request: Request<Body>) -> Response {
    match app.service.profile(&name).cloned() {
        Some(profile) => app.streamable.handle(&profile, request).await,
        None => {
            let known: Vec<&str> = app.service.profiles().map(|profile| profile.name()).collect();
            let message = format!("there is no profile `{name}`; there are: {}", known.join(", "));
            rpc::error(StatusCode::NOT_FOUND, &Value::Null, rpc::SERVER_ERROR, &message)
        }
    }
}

async fn sse(State(app): State<App>, request: Request<Body>) -> Response {
    app.sse.connect(&profile_by_host(&app, &request))
}

#[derive(Deserialize)]
struct SseSession {
    #[serde(rename = "sessionId", alias = "session_id", default)]
    id: String,
}

async fn sse_message(State(app): State<App>, Query(session): Query<SseSession>, request: Request<Body>) -> Response {
    let (parts, body) = request.into_parts();
    match axum::body::to_bytes(body, app.service.settings.max_body_bytes).await {
        Ok(body) => app.sse.message(&session.id, parts, &body).await,
        Err(_) => rpc::error(
            StatusCode::PAYLOAD_TOO_LARGE,
            &Value::Null,
            rpc::INVALID_REQUEST,
            "the message is too large or did not arrive whole",
        ),
    }
}

fn profile_by_host(app: &App, request: &Request<Body>) -> Arc<Profile> {
    match guard::host_name(request.headers(), request.uri()) {
        Some(host) => app.service.profile_for_host(&host).clone(),
        None => app.service.default_profile().clone(),
    }
}
