//! The router, which reads like a table of contents, and its start and stop.

mod assets;
mod board;
pub mod callers;
mod chat;
mod conversations;
mod data;
mod design;
pub mod guard;
mod home;
mod live;
mod openapi;
mod ops;
mod page;
mod problem;
mod reading;
mod session;
mod sources;
mod try_it;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Query, State};
use axum::response::Response;
use axum::routing::{any, get, post};
use axum::{BoxError, Router};
use http::{Request, StatusCode, Uri};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::server::graceful::{GracefulConnection, GracefulShutdown};
use hyper_util::service::TowerToHyperService;
use metrics_exporter_prometheus::PrometheusHandle;
use serde_json::Value;
use tokio::net::{TcpListener, TcpStream};
use tribune_core::Principal;

use crate::mcp::rpc;
use crate::mcp::sse::Sse;
use crate::mcp::streamable::{Streamable, read_body};
use crate::profile::Profile;
use crate::service::Service;
use guard::Guard;

#[derive(Clone)]
pub struct App {
    pub(crate) service: Arc<Service>,
    pub(crate) streamable: Arc<Streamable>,
    pub(crate) sse: Arc<Sse>,
    pub(crate) guard: Arc<Guard>,
    pub(crate) live: Arc<live::Live>,
    pub(crate) metrics: Option<PrometheusHandle>,
}

pub fn router(service: Arc<Service>, metrics: Option<PrometheusHandle>) -> Router {
    let app = App {
        streamable: Arc::new(Streamable::new(service.clone())),
        sse: Arc::new(Sse::new(service.clone())),
        guard: Arc::new(Guard::new(&service)),
        live: Arc::new(live::Live::new()),
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
        .route("/sse/{profile}", get(sse_profile))
        .route("/sse/messages", post(sse_message))
        .route("/sse/messages/", post(sse_message))
        .route("/data/{*id}", get(data::data))
        .route("/live", get(live::overview))
        .route("/live/{*id}", get(live::document))
        .route("/try", get(try_it::all))
        .route("/try/", get(try_it::all))
        .route("/try/{profile}", get(try_it::profile))
        .route("/try/{profile}/{tool}", get(try_it::show).post(try_it::submit))
        .route("/design", get(design::design))
        .route("/chat", post(chat::chat))
        .route("/conversations", get(conversations::list))
        .route("/conversations/{id}/messages", get(conversations::messages))
        .route("/openapi.json", get(openapi::document))
        .route("/session", post(session::sign_in).delete(session::sign_out))
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
    let connections = GracefulShutdown::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = service.stopping.cancelled() => break,
        };
        match accepted {
            Ok((stream, _)) => {
                let connection = connections.watch(connection(stream, router.clone()));
                tokio::spawn(async move {
                    if let Err(error) = connection.await {
                        tracing::debug!(%error, "a connection broke off");
                    }
                });
            }
            Err(error) => {
                // Most likely no descriptors are left: those of idle connections come back soon.
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
    drop(listener);
    drain(service).await;
    // Streams have been told to end; what is still open after this belongs to clients that do not listen.
    drop(tokio::time::timeout(LAST_CONNECTIONS, connections.shutdown()).await);
    Ok(())
}

/// A client gets this long to send the head of a request, the first or the next.
const HEAD_WITHIN: Duration = Duration::from_secs(60);
const LAST_CONNECTIONS: Duration = Duration::from_secs(5);
const LAST_ANSWERS: Duration = Duration::from_secs(3);
const LAST_WORDS: Duration = Duration::from_secs(3);

fn connection(stream: TcpStream, router: Router) -> impl GracefulConnection<Error = BoxError> + Send {
    // An answer is one write; waiting to fill a packet only delays it.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "could not set TCP_NODELAY");
    }
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_WITHIN);
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(Some(HEAD_WITHIN));
    builder
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router))
        .into_owned()
}

/// Waits for the stop, then for the calls under way and their answers, then ends the streams.
async fn drain(service: Arc<Service>) {
    service.stopping.cancelled().await;
    service.calls.close();
    service.answers.close();
    let answered = async {
        service.calls.wait().await;
        // A call is over before its answer has left: who does not read it cannot hold up the stop.
        drop(tokio::time::timeout(LAST_ANSWERS, service.answers.wait()).await);
    };
    if tokio::time::timeout(service.settings.drain, answered).await.is_err() {
        tracing::warn!(calls = service.calls.len(), "calls still under way are cut off");
    }
    service.closing.cancel();
    // What was told to end writes down how far it has come.
    drop(tokio::time::timeout(LAST_WORDS, service.calls.wait()).await);
}

async fn mcp(State(app): State<App>, request: Request<Body>) -> Response {
    let profile = profile_by_host(&app, &request);
    app.streamable.handle(&profile, request).await
}

async fn mcp_profile(State(app): State<App>, mut request: Request<Body>) -> Response {
    match profile_by_path(&app, "/mcp/", &mut request) {
        Ok(profile) => app.streamable.handle(&profile, request).await,
        Err(refusal) => *refusal,
    }
}

/// The profile that the path names, if the caller may have it.
fn profile_by_path(app: &App, before: &str, request: &mut Request<Body>) -> Result<Arc<Profile>, Box<Response>> {
    let name = last_part(request.uri(), before);
    let Some(profile) = app.service.profile(&name).cloned() else {
        let known: Vec<&str> = app.service.profiles().map(|profile| profile.name()).collect();
        let message = format!("there is no profile `{name}`; there are: {}", known.join(", "));
        let refusal = rpc::error(StatusCode::NOT_FOUND, &Value::Null, rpc::SERVER_ERROR, &message);
        return Err(Box::new(refusal));
    };
    if profile.spec().admin {
        app.guard.callers.admit_admin(request)?;
    }
    Ok(profile)
}

async fn sse(State(app): State<App>, request: Request<Body>) -> Response {
    let profile = profile_by_host(&app, &request);
    app.sse.connect(&profile, principal_of(&request))
}

async fn sse_profile(State(app): State<App>, mut request: Request<Body>) -> Response {
    match profile_by_path(&app, "/sse/", &mut request) {
        // Messages come by another request, which would have to prove the same again.
        Ok(profile) if profile.spec().admin => rpc::error(
            StatusCode::FORBIDDEN,
            &Value::Null,
            rpc::SERVER_ERROR,
            "the profile `admin` is not served by this older transport: use /mcp/admin",
        ),
        Ok(profile) => app.sse.connect(&profile, principal_of(&request)),
        Err(refusal) => *refusal,
    }
}

fn principal_of(request: &Request<Body>) -> Principal {
    let caller = request.extensions().get::<callers::Caller>();
    caller.map_or(Principal::Anonymous, |caller| caller.principal.clone())
}

async fn sse_message(
    State(app): State<App>,
    Query(query): Query<HashMap<String, String>>,
    request: Request<Body>,
) -> Response {
    let id = query
        .get("sessionId")
        .or_else(|| query.get("session_id"))
        .cloned()
        .unwrap_or_default();
    let (parts, body) = request.into_parts();
    match read_body(body, &app.service.settings).await {
        Ok(body) => app.sse.message(&id, parts, &body).await,
        Err(refusal) => *refusal,
    }
}

/// A small body, whole and in time.
async fn read_limited(body: Body, most: usize, app: &App) -> Result<axum::body::Bytes, Box<Response>> {
    let refuse = |status, message: &str| {
        let code = tribune_core::ErrorKind::InvalidArgument.as_str();
        Box::new(problem::answer(status, code, message))
    };
    let read = axum::body::to_bytes(body, most);
    match tokio::time::timeout(app.service.settings.call_timeout, read).await {
        Ok(Ok(body)) => Ok(body),
        Ok(Err(_)) => Err(refuse(
            StatusCode::PAYLOAD_TOO_LARGE,
            &format!("the body is larger than {most} bytes, or did not arrive whole; send less"),
        )),
        Err(_) => Err(refuse(
            StatusCode::REQUEST_TIMEOUT,
            "the body did not arrive in time; send it again",
        )),
    }
}

/// What follows `before` in a path, decoded; what is not UTF-8 is shown as such and found nowhere.
fn last_part(uri: &Uri, before: &str) -> String {
    let raw = uri.path().split_once(before).map_or("", |(_, rest)| rest);
    percent_encoding::percent_decode_str(raw)
        .decode_utf8_lossy()
        .into_owned()
}

fn profile_by_host(app: &App, request: &Request<Body>) -> Arc<Profile> {
    match guard::host_name(request.headers(), request.uri()) {
        Some(host) => app.service.profile_for_host(&host).clone(),
        None => app.service.default_profile().clone(),
    }
}
