//! From a request to its principal: by a token, or by where the request comes from.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use http::{HeaderMap, HeaderValue, Request, StatusCode, Uri, Version, header};
use tribune_core::{Links, Principal, UserId};

use super::session::Cookie;
use super::tokens::{Authenticator, sha256};
use crate::address::{bare_host, host_name, is_loopback_name, is_loopback_origin};
use crate::response::{Refusal, page, rpc};
use crate::settings::Settings;

/// Headers that proxies and tunnels add to requests they forward.
const FORWARDED: [&str; 9] = [
    "forwarded",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-proto",
    "x-real-ip",
    "x-client-ip",
    "via",
    "cf-connecting-ip",
    "true-client-ip",
];

/// Who sent a request; the guard puts it into the request's extensions.
#[derive(Clone)]
pub struct Caller {
    pub principal: Principal,
    pub correlation_id: Arc<str>,
}

impl Caller {
    /// The principal of a request; anonymous without a guard.
    pub(crate) fn principal(request: &Request<Body>) -> Principal {
        let caller = request.extensions().get::<Self>();
        caller.map_or(Principal::Anonymous, |caller| caller.principal.clone())
    }
}

/// Identifies callers.
pub(crate) struct Callers {
    /// Whether a direct request can be the person at this machine.
    trusts_loopback: bool,
    /// Whether anonymous callers are refused.
    auth_required: bool,
    authenticator: Option<Arc<dyn Authenticator>>,
    /// SHA-256 of the admin token: comparing digests reveals nothing about the token through timing.
    admin_token: Option<[u8; 32]>,
    pub(super) cookie: Cookie,
    /// The path below which the pages are.
    pub(super) base: String,
    /// How long a sign-in may take.
    pub(super) timeout: Duration,
}

impl Callers {
    pub(super) fn new(
        settings: &Settings,
        links: &Links,
        public: Option<&Uri>,
        authenticator: Option<Arc<dyn Authenticator>>,
    ) -> Self {
        let public_host = public.and_then(Uri::host).map(bare_host);
        Self {
            // Behind a public address a proxy or a tunnel forwards requests from anywhere.
            trusts_loopback: settings.listen.ip().is_loopback()
                && public_host.is_some_and(|host| is_loopback_name(&host)),
            auth_required: settings.auth_required,
            authenticator,
            admin_token: settings.admin_token.as_deref().map(sha256),
            cookie: Cookie::new(settings.listen.port(), links),
            base: links.path_prefix().to_owned(),
            timeout: settings.call_timeout,
        }
    }

    /// The principal of a request. An invalid token is refused, never ignored.
    pub(super) async fn identify(&self, headers: &HeaderMap, is_local: bool) -> Result<Principal, Denial> {
        let Some(token) = bearer(headers).or_else(|| self.cookie.read(headers)) else {
            return Ok(if is_local && self.trusts_loopback && !self.auth_required {
                Principal::Local
            } else {
                Principal::Anonymous
            });
        };
        if self.admin_token == Some(sha256(token)) {
            return Ok(Principal::User(UserId::admin()));
        }
        match self.user(token).await {
            Ok(Some(user)) => Ok(Principal::User(user)),
            Ok(None) => Err(Denial::InvalidToken),
            Err(error) => {
                tracing::error!(%error, "could not check a token");
                Err(Denial::Unchecked)
            }
        }
    }

    /// The user of a token; `None` if it is not valid.
    pub(super) async fn user(&self, token: &str) -> tribune_core::Result<Option<UserId>> {
        match &self.authenticator {
            Some(authenticator) => authenticator.authenticate(token).await,
            None => Ok(None),
        }
    }

    /// Whether a caller may see a path at all.
    pub(super) fn admit(&self, principal: &Principal, path: &str) -> bool {
        // What a person needs to sign in.
        let open = path == "/" || path == "/session" || path.starts_with("/assets/");
        !self.auth_required || open || *principal != Principal::Anonymous
    }

    /// Makes a request with the admin token one of the administrator; refuses any other.
    pub(crate) fn admit_admin(&self, request: &mut Request<Body>) -> Result<(), Refusal> {
        let token = bearer(request.headers()).map(sha256);
        if self.admin_token.is_none() || token != self.admin_token {
            return Err(self.refuse_admin(request.headers()).into());
        }
        if let Some(caller) = request.extensions_mut().get_mut::<Caller>() {
            caller.principal = Principal::User(UserId::admin());
        }
        Ok(())
    }

    fn refuse_admin(&self, headers: &HeaderMap) -> Response {
        if self.admin_token.is_none() {
            let message = "The profile `admin` is closed to the network. Set server.admin_token (for example \"env:TRIBUNE_ADMIN_TOKEN\"), or use `tribune stdio --profile admin` on this machine.";
            return rpc::error(StatusCode::FORBIDDEN, rpc::SERVER_ERROR, message);
        }
        let message = if headers.contains_key(header::AUTHORIZATION) {
            "This is not the token of server.admin_token."
        } else {
            "The profile `admin` needs the header `Authorization: Bearer TOKEN` with the token of server.admin_token."
        };
        let mut refusal = rpc::error(StatusCode::UNAUTHORIZED, rpc::SERVER_ERROR, message);
        let challenge = HeaderValue::from_static("Bearer realm=\"tribune admin\"");
        refusal.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
        refusal
    }

    /// The response to a caller who is not let in.
    pub(super) fn refuse(&self, denial: Denial, request: &Request<Body>) -> Response {
        // There not even a valid user token is enough.
        let is_admin_path = request.uri().path() == "/mcp/admin";
        if denial == Denial::InvalidToken && is_admin_path && bearer(request.headers()).is_some() {
            return self.refuse_admin(request.headers());
        }
        let mut response = denial.response(request, &self.base);
        // A browser that keeps sending an expired token could never sign in again.
        if denial == Denial::InvalidToken && self.cookie.read(request.headers()).is_some() {
            self.cookie.forget(&mut response);
        }
        response
    }
}

/// Whether a request to a loopback listener was sent on this machine, as far as its headers tell: it addresses a
/// loopback name, comes from no page of another origin, and was not forwarded. A proxy that hides all of this cannot
/// be recognised.
pub(super) fn is_from_this_machine(request: &Request<Body>) -> bool {
    let headers = request.headers();
    let is_forwarded = FORWARDED.iter().any(|name| headers.contains_key(*name));
    let addresses_loopback = host_name(headers, request.uri()).is_some_and(|host| is_loopback_name(&host));
    let is_own_page = headers
        .get(header::ORIGIN)
        .is_none_or(|origin| origin.to_str().is_ok_and(is_loopback_origin));
    // The default of some proxies, and of no current client.
    let is_old = request.version() < Version::HTTP_11;
    addresses_loopback && is_own_page && !is_forwarded && !is_old
}

/// Why a caller is not let in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Denial {
    /// The token is unknown, expired or revoked.
    InvalidToken,
    /// The token could not be checked.
    Unchecked,
    /// There is no token, and `auth.required` is set.
    TokenRequired,
}

impl Denial {
    fn response(self, request: &Request<Body>, base: &str) -> Response {
        let (status, message) = match self {
            Self::InvalidToken => (
                StatusCode::UNAUTHORIZED,
                "Invalid token: it is mistyped, expired or revoked. The operator creates a new one with `tribune token create --user NAME`.",
            ),
            Self::Unchecked => (
                StatusCode::SERVICE_UNAVAILABLE,
                "The token could not be checked because the database does not answer. Try again in a moment.",
            ),
            Self::TokenRequired => (
                StatusCode::UNAUTHORIZED,
                "This server requires a token: send `Authorization: Bearer TOKEN`. The operator creates one with `tribune token create --user NAME`.",
            ),
        };
        let path = request.uri().path();
        let mut response = if path.starts_with("/mcp") || path.starts_with("/sse") {
            rpc::error(status, rpc::SERVER_ERROR, message)
        } else {
            let back = request.uri().path_and_query().map_or("/", |path| path.as_str());
            page::refused(request.headers(), base, back, status, message)
        };
        if status == StatusCode::UNAUTHORIZED {
            let challenge = match self {
                Self::InvalidToken => "Bearer realm=\"tribune\", error=\"invalid_token\"",
                _ => "Bearer realm=\"tribune\"",
            };
            let challenge = HeaderValue::from_static(challenge);
            response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
        }
        response
    }
}

/// The token of `Authorization: Bearer TOKEN`. Other schemes belong to a proxy.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let given = headers.get(header::AUTHORIZATION)?;
    // An empty or unreadable token is an invalid token, not a missing one.
    let given = given.to_str().unwrap_or("Bearer ?").trim();
    let (scheme, token) = given.split_once(' ').unwrap_or((given, ""));
    scheme.eq_ignore_ascii_case("bearer").then_some(token.trim())
}
