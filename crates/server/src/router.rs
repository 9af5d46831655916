//! Which path leads where, and the server's start and stop.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::FromRef;
use axum::routing::{MethodRouter, any, get, post};
use axum::{BoxError, Extension, Router};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::server::graceful::{GracefulConnection, GracefulShutdown};
use hyper_util::service::TowerToHyperService;
use metrics_exporter_prometheus::PrometheusHandle;
use tokio::net::{TcpListener, TcpStream};

use crate::api::{chat, conversations, openapi};
use crate::identity::{self, Guard};
use crate::mcp::{Sse, Streamable, endpoints};
use crate::ops;
use crate::pages::{assets, data, design, home, live, not_found, try_it};
use crate::service::Service;
use crate::sign_in::{login, oauth};

/// What handlers share; each takes the parts that it needs.
#[derive(Clone)]
struct App {
    service: Arc<Service>,
    guard: Arc<Guard>,
    streamable: Arc<Streamable>,
    sse: Arc<Sse>,
    live: Arc<live::Live>,
    metrics: Option<PrometheusHandle>,
}

macro_rules! parts {
    ($($field:ident: $part:ty),* $(,)?) => {
        $(impl FromRef<App> for $part {
            fn from_ref(app: &App) -> Self {
                app.$field.clone()
            }
        })*
    };
}
parts! {
    service: Arc<Service>,
    guard: Arc<Guard>,
    streamable: Arc<Streamable>,
    sse: Arc<Sse>,
    live: Arc<live::Live>,
    metrics: Option<PrometheusHandle>,
}

impl App {
    fn new(service: Arc<Service>, metrics: Option<PrometheusHandle>) -> Self {
        let guard = Guard::new(
            &service.settings,
            &service.links,
            service.profile_hosts(),
            service.accounts.clone(),
            service.mcp_scopes(),
        );
        Self {
            guard: Arc::new(guard),
            streamable: Arc::new(Streamable::new(service.clone())),
            sse: Arc::new(Sse::new(service.clone())),
            live: Arc::new(live::Live::new()),
            service,
            metrics,
        }
    }
}

/// Paths with what answers them, and a list of them: a test asks what each caller may do at every one.
#[derive(Default)]
struct Paths {
    router: Router<App>,
    list: Vec<&'static str>,
}

impl Paths {
    fn route(mut self, path: &'static str, handler: MethodRouter<App>) -> Self {
        self.list.push(path);
        self.router = self.router.route(path, handler);
        self
    }
}

/// What the guard protects.
fn guarded() -> Paths {
    Paths::default()
        // MCP
        .route("/mcp", any(endpoints::mcp))
        .route("/mcp/", any(endpoints::mcp))
        .route("/mcp/{profile}", any(endpoints::mcp))
        .route("/sse", get(endpoints::sse))
        .route("/sse/", get(endpoints::sse))
        .route("/sse/{profile}", get(endpoints::sse))
        .route("/sse/messages", post(endpoints::sse_message))
        .route("/sse/messages/", post(endpoints::sse_message))
        // Pages
        .route("/", get(home::home))
        .route("/data/{*id}", get(data::data))
        .route("/live", get(live::overview))
        .route("/live/{*id}", get(live::document))
        .route("/try", get(try_it::all))
        .route("/try/", get(try_it::all))
        .route("/try/{profile}", get(try_it::profile))
        .route("/try/{profile}/{tool}", get(try_it::tool).post(try_it::tool))
        .route("/design", get(design::design))
        .route("/assets/{name}", get(assets::asset))
        // JSON
        .route("/chat", post(chat::chat))
        .route("/conversations", get(conversations::list))
        .route("/conversations/{id}/messages", get(conversations::messages))
        .route("/openapi.json", get(openapi::document))
        // Identity
        .route("/session", post(login::use_token).delete(login::sign_out))
        .route("/login", get(login::form).post(login::sign_in))
        .route("/login/local", get(login::local))
        .route("/login/provider", get(login::begin))
        .route("/login/callback", get(login::finish))
        .route("/oauth/authorize", get(oauth::authorize).post(oauth::decide))
        .route("/oauth/token", post(oauth::token))
        .route("/oauth/register", post(oauth::register))
        .route("/oauth/revoke", post(oauth::revoke))
        .route("/oauth/jwks", get(oauth::keys))
        .route("/.well-known/oauth-protected-resource", get(oauth::resource))
        .route("/.well-known/oauth-protected-resource/{*path}", get(oauth::resource))
        .route("/.well-known/oauth-authorization-server", get(oauth::server))
        .route("/.well-known/oauth-authorization-server/{*path}", get(oauth::server))
        .route("/.well-known/openid-configuration", get(oauth::server))
        .route("/.well-known/openid-configuration/{*path}", get(oauth::server))
}

/// For operators; these paths accept any host name.
fn operations() -> Paths {
    Paths::default()
        .route("/healthz", get(ops::healthz))
        .route("/readyz", get(ops::readyz))
        .route("/metrics", get(ops::metrics))
}

/// Every path of the server, with `{parameters}`.
pub fn paths() -> Vec<&'static str> {
    [guarded().list, operations().list].concat()
}

pub fn router(service: Arc<Service>, metrics: Option<PrometheusHandle>) -> Router {
    route(App::new(service, metrics))
}

fn route(app: App) -> Router {
    let guard = axum::middleware::from_fn_with_state(app.guard.clone(), identity::check);
    let guarded = guarded().router.fallback(not_found).layer(guard);
    operations().router.merge(guarded).with_state(app)
}

/// Serves operators at an address that only they reach.
async fn serve_operators(app: App, listener: TcpListener) {
    let router = operations().router.layer(Extension(ops::PrivateListener)).with_state(app);
    if let Err(error) = axum::serve(listener, router).await {
        tracing::error!(%error, "server.ops_listen is no longer served");
    }
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
    let mut for_operators = tokio::task::JoinSet::new();
    if let Some(operators) = operators {
        for_operators.spawn(serve_operators(app.clone(), operators));
    }
    let router = route(app);
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
                        tracing::debug!(%error, "connection ended with an error");
                    }
                });
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
    drop(tokio::time::timeout(CONNECTIONS_END_WITHIN, connections.shutdown()).await);
    Ok(())
}

/// How long a client may take to send the head of a request.
const HEAD_TIMEOUT: Duration = Duration::from_secs(60);
const CONNECTIONS_END_WITHIN: Duration = Duration::from_secs(5);
const RESPONSES_SENT_WITHIN: Duration = Duration::from_secs(3);
const CALLS_END_WITHIN: Duration = Duration::from_secs(3);

fn connection(stream: TcpStream, router: Router) -> impl GracefulConnection<Error = BoxError> + Send {
    // A response is one write: waiting to fill a packet only delays it.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "could not set TCP_NODELAY");
    }
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT);
    builder.http2().timer(TokioTimer::new()).keep_alive_interval(Some(HEAD_TIMEOUT));
    builder.serve_connection(TokioIo::new(stream), TowerToHyperService::new(router)).into_owned()
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
    if tokio::time::timeout(service.settings.drain, answered).await.is_err() {
        tracing::warn!(calls = service.calls.len(), "stopping with running calls");
    }
    service.closing.cancel();
    // Cancelled calls may still store how far they got.
    drop(tokio::time::timeout(CALLS_END_WITHIN, service.calls.wait()).await);
}
