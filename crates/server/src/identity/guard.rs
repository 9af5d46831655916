//! Checks every request: which host it addresses (Host), which page sent it (Origin, CORS), who sent it
//! ([`Callers`]); and gives it the id that ties it to its log lines.

use std::collections::HashSet;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

use axum::body::Body;
use axum::extract::State;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode, Uri, header};
use tribune_core::{Links, Principal, Scope, Scopes};

use super::Accounts;
use super::caller::Caller;
use super::callers::{Callers, Denial};
use super::needs::is_open_to_pages;
use crate::address::{bare_host, host_name, is_loopback_origin};
use crate::audit::Audit;
use crate::connect::Reach;
use crate::response::{self, Refusal, rpc};
use crate::settings::Settings;
use tribune_limits::{Limits, SocketPeer};

const CORRELATION: HeaderName = HeaderName::from_static("x-correlation-id");
const MAX_CORRELATION_CHARS: usize = 64;

pub struct Guard {
    hosts: HashSet<String>,
    any_host: bool,
    /// `scheme://host:port` of pages that may call.
    origins: HashSet<String>,
    any_origin: bool,
    /// Pages served from this machine may call a server that only this machine reaches.
    loopback_origins: bool,
    callers: Callers,
    /// First half of the correlation ids made here: tells processes apart.
    process: u32,
    next: AtomicU32,
}

impl Guard {
    /// `profile_hosts` are the host names that profiles claim; `mcp_scopes` is what the tools of the MCP endpoints need.
    /// Without accounts every token is refused.
    pub(crate) fn new<'a>(
        settings: &Settings,
        links: &Links,
        profile_hosts: impl Iterator<Item = &'a str>,
        accounts: Option<Arc<Accounts>>,
        mcp_scopes: Scopes,
        limits: Arc<Limits>,
        audit: Arc<OnceLock<Audit>>,
    ) -> Self {
        let is_local = settings.listen.ip().is_loopback() && Reach::of(&settings.public_url) == Reach::ThisMachine;
        let mut hosts: HashSet<String> = ["localhost", "127.0.0.1", "::1"].map(str::to_owned).into();
        if !settings.listen.ip().is_unspecified() {
            hosts.insert(settings.listen.ip().to_string());
        }
        let public: Option<Uri> = settings.public_url.parse().ok();
        hosts.extend(public.as_ref().and_then(|uri| uri.host()).map(bare_host));
        hosts.extend(settings.config.allowed_hosts.iter().map(|host| bare_host(host)));
        hosts.extend(profile_hosts.map(str::to_owned));
        let mut origins: HashSet<String> =
            settings.config.allowed_origins.iter().map(|o| o.trim_end_matches('/').to_ascii_lowercase()).collect();
        origins.extend(public.as_ref().and_then(origin_of));
        Self {
            any_host: settings.config.allowed_hosts.iter().any(|host| host == "*"),
            any_origin: settings.config.allowed_origins.iter().any(|origin| origin == "*"),
            hosts,
            origins,
            loopback_origins: is_local,
            callers: Callers::new(settings, links, accounts, mcp_scopes, limits, audit),
            process: std::process::id().wrapping_mul(0x9e37_79b9) ^ u32::from(settings.listen.port()),
            next: AtomicU32::new(0),
        }
    }

    pub(crate) fn callers(&self) -> &Callers {
        &self.callers
    }

    /// Lets operators see details: callers with the scope `admin`, as the local user has it.
    pub(crate) async fn admit_operator(&self, request: Request<Body>) -> Result<(), Refusal> {
        let (head, body) = request.into_parts();
        let caller = self.callers.identify(&head, self.correlation_id(&head.headers), self.peer(&head)).await;
        let denial = match caller {
            Err(denial) => denial,
            Ok(Caller { principal: Principal::Anonymous, .. }) => Denial::TokenRequired,
            Ok(Caller { profile: Some(profile), .. }) => Denial::OtherProfile(profile),
            Ok(caller) if !caller.scopes.contains(Scope::Admin) => Denial::Scope(Scope::Admin),
            Ok(_) => return Ok(()),
        };
        Err(self.callers.refuse(&denial, &Request::from_parts(head, body)).into())
    }

    fn host_allowed(&self, host: Option<&str>) -> bool {
        self.any_host || host.is_some_and(|host| self.hosts.contains(host))
    }

    fn origin_allowed(&self, origin: &str) -> bool {
        let origin = origin.to_ascii_lowercase();
        self.any_origin || self.origins.contains(&origin) || (self.loopback_origins && is_loopback_origin(&origin))
    }

    /// The address that a request comes from.
    fn peer(&self, request: &Parts) -> Option<IpAddr> {
        let socket = request.extensions.get::<SocketPeer>()?.0;
        Some(self.callers.limits.settings.trusted_proxies.caller(socket, &request.headers))
    }

    /// The caller of a request, if they may go on.
    async fn admit(&self, request: &Parts, correlation_id: Arc<str>, peer: Option<IpAddr>) -> Result<Caller, Denial> {
        let limits = &self.callers.limits;
        if shown(request) == Some(Shown::Password) {
            limits.sign_in(peer)?;
        }
        let caller = self.callers.identify(request, correlation_id, peer).await?;
        limits.request(&caller.principal, peer)?;
        self.callers.admit(&caller, &request.uri)?;
        Ok(caller)
    }

    /// The caller's own id if it is fit to be logged, otherwise a new one.
    fn correlation_id(&self, headers: &HeaderMap) -> Arc<str> {
        let given = headers.get(&CORRELATION).or_else(|| headers.get("x-request-id"));
        let given = given.and_then(|value| value.to_str().ok()).filter(|id| {
            let fit = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
            !id.is_empty() && id.len() <= MAX_CORRELATION_CHARS && id.chars().all(fit)
        });
        match given {
            Some(id) => id.into(),
            None => format!("{:08x}{:08x}", self.process, self.next.fetch_add(1, Ordering::Relaxed)).into(),
        }
    }
}

fn origin_of(uri: &Uri) -> Option<String> {
    Some(format!("{}://{}", uri.scheme_str()?, uri.authority()?.as_str().to_ascii_lowercase()))
}

/// What a request shows in place of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shown {
    /// It can be guessed, so an address has few attempts, right or wrong.
    Password,
    /// A token, a code or a key: too long to be guessed, so only wrong ones count.
    Secret,
}

fn shown(request: &Parts) -> Option<Shown> {
    let is_post = request.method == Method::POST;
    match request.uri.path() {
        "/login" if is_post => Some(Shown::Password),
        "/session" | "/oauth/token" if is_post => Some(Shown::Secret),
        "/login/local" => Some(Shown::Secret),
        _ => None,
    }
}

/// Lets a request through with its [`Caller`], or refuses it.
pub async fn check(State(guard): State<Arc<Guard>>, mut request: Request<Body>, next: Next) -> Response {
    let correlation_id = guard.correlation_id(request.headers());
    let host = host_name(request.headers(), request.uri());
    let origin = request.headers().get(header::ORIGIN).cloned();

    let origin_is_fine = is_open_to_pages(request.uri().path())
        || origin.as_ref().is_none_or(|o| o.to_str().is_ok_and(|o| guard.origin_allowed(o)));

    let response = if !guard.host_allowed(host.as_deref()) {
        refuse_host(host.as_deref(), &correlation_id)
    } else if !origin_is_fine {
        refuse_origin(origin.as_ref(), &correlation_id)
    } else if request.method() == Method::OPTIONS {
        preflight(request.headers())
    } else {
        let (head, body) = request.into_parts();
        let peer = guard.peer(&head);
        let shown = shown(&head);
        let admitted = guard.admit(&head, correlation_id.clone(), peer).await;
        request = Request::from_parts(head, body);
        match admitted {
            Ok(caller) => {
                request.extensions_mut().insert(caller);
                let mut response = next.run(request).await;
                let has_failed = matches!(response.status(), StatusCode::UNAUTHORIZED | StatusCode::BAD_REQUEST);
                match shown.filter(|_| has_failed) {
                    Some(Shown::Password) => guard.callers.limits.sign_in_failed(peer),
                    Some(Shown::Secret) => {
                        if let Denial::Limited(exceeded) = guard.callers.wrong_token(peer, &correlation_id) {
                            response = response::exceeded(false, exceeded);
                        }
                    }
                    None => {}
                }
                return finish(response, &correlation_id, origin);
            }
            Err(denial) => guard.callers.refuse(&denial, &request),
        }
    };

    finish(response, &correlation_id, origin.filter(|_| origin_is_fine))
}

/// Adds the headers of every response; pages of `origin` may read it.
fn finish(mut response: Response, correlation_id: &str, origin: Option<HeaderValue>) -> Response {
    let headers = response.headers_mut();
    if let Ok(id) = HeaderValue::from_str(correlation_id) {
        headers.insert(CORRELATION, id);
    }
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    if let Some(origin) = origin {
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        headers.append(header::VARY, HeaderValue::from_static("Origin"));
        headers.insert(
            header::ACCESS_CONTROL_EXPOSE_HEADERS,
            HeaderValue::from_static(
                "Mcp-Session-Id, MCP-Protocol-Version, X-Correlation-ID, WWW-Authenticate, Retry-After",
            ),
        );
    }
    response
}

fn preflight(asked: &HeaderMap) -> Response {
    let wanted = asked.get(header::ACCESS_CONTROL_REQUEST_HEADERS).cloned().unwrap_or(HeaderValue::from_static(
        "Content-Type, Accept, Authorization, Mcp-Session-Id, MCP-Protocol-Version, Mcp-Method, Mcp-Name, Last-Event-ID, X-Correlation-ID",
    ));
    let allowed = [
        (header::ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("GET, POST, DELETE, OPTIONS")),
        (header::ACCESS_CONTROL_ALLOW_HEADERS, wanted),
        (header::ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600")),
    ];
    (StatusCode::NO_CONTENT, allowed).into_response()
}

fn refuse_host(host: Option<&str>, correlation_id: &str) -> Response {
    let host = host.unwrap_or("none");
    tracing::warn!(host, correlation_id, "refused a request for an unknown host name");
    let message = format!(
        "Unknown host name `{host}`. Set server.public_url to the address of this server, or add the name to server.allowed_hosts."
    );
    rpc::error(StatusCode::FORBIDDEN, rpc::SERVER_ERROR, &message)
}

fn refuse_origin(origin: Option<&HeaderValue>, correlation_id: &str) -> Response {
    let origin = origin.map(|origin| String::from_utf8_lossy(origin.as_bytes())).unwrap_or_default();
    tracing::warn!(%origin, correlation_id, "refused a request from a page of another origin");
    let message =
        format!("Pages of `{origin}` may not call this server. Add the origin to server.allowed_origins to allow it.");
    rpc::error(StatusCode::FORBIDDEN, rpc::SERVER_ERROR, &message)
}
