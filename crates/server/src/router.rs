//! Which path leads where.

use std::sync::Arc;

use axum::extract::FromRef;
use axum::routing::{MethodRouter, any, get, post};
use axum::{Extension, Router};
use metrics_exporter_prometheus::PrometheusHandle;

use crate::api::{chat, conversations, openapi};
use crate::identity::{self, Guard};
use crate::mcp::{Sse, Streamable, endpoints};
use crate::ops;
use crate::pages::{assets, data, design, home, live, not_found, try_it};
use crate::request::read_rest;
use crate::service::Service;
use crate::sign_in::{login, oauth};

/// What handlers share; each takes the parts that it needs.
#[derive(Clone)]
pub(crate) struct App {
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
    pub(crate) fn new(service: Arc<Service>, metrics: Option<PrometheusHandle>) -> Self {
        let guard = Guard::new(
            &service.settings,
            &service.links,
            service.profile_hosts(),
            service.accounts.clone(),
            service.mcp_scopes(),
            service.limits.clone(),
            service.audit.clone(),
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
        .route("/.well-known/oauth-protected-resource/", get(oauth::resource))
        .route("/.well-known/oauth-protected-resource/{*path}", get(oauth::resource))
        .route("/.well-known/oauth-authorization-server", get(oauth::server))
        .route("/.well-known/oauth-authorization-server/", get(oauth::server))
        .route("/.well-known/oauth-authorization-server/{*path}", get(oauth::server))
        .route("/.well-known/openid-configuration", get(oauth::server))
        .route("/.well-known/openid-configuration/", get(oauth::server))
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

/// What the public listener serves.
pub fn router(service: Arc<Service>, metrics: Option<PrometheusHandle>) -> Router {
    public(App::new(service, metrics))
}

pub(crate) fn public(app: App) -> Router {
    let guard = axum::middleware::from_fn_with_state(app.guard.clone(), identity::check);
    let guarded = guarded().router.fallback(not_found).layer(guard);
    let router = operations().router.merge(guarded);
    router.layer(axum::middleware::from_fn(read_rest)).with_state(app)
}

/// What the listener for operators serves.
pub(crate) fn private(app: App) -> Router {
    operations().router.layer(Extension(ops::PrivateListener)).with_state(app)
}
