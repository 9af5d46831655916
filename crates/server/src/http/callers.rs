//! Who calls: by a token, or by the way a request came.

use std::sync::Arc;

use axum::body::Body;
use axum::response::Response;
use http::{HeaderMap, HeaderValue, Request, StatusCode, Uri, Version, header};
use serde_json::Value;
use tribune_core::{Principal, UserId};

use super::guard::{bare_host, host_name, is_loopback_name};
use super::{page, session};
use crate::identity::{Authenticator, sha256};
use crate::mcp::rpc;
use crate::service::Service;

/// Headers by which proxies and tunnels say that they hand on what somebody else sent.
const HANDED_ON: [&str; 9] = [
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

/// Who sends a request, put into its extensions.
#[derive(Clone)]
pub struct Caller {
    pub principal: Principal,
    pub correlation_id: Arc<str>,
}

/// Tells callers apart.
pub struct Callers {
    /// Whether whoever reaches the server directly may be the person at this machine.
    is_local: bool,
    /// Whether nobody is served who has not said who they are.
    auth_required: bool,
    authenticator: Option<Arc<dyn Authenticator>>,
    /// SHA-256 of the administrator's token: comparing digests tells nothing about the token by its time.
    admin_token: Option<[u8; 32]>,
    cookie: session::Cookie,
    /// The path under which the pages are.
    base: String,
}

impl Callers {
    pub fn new(service: &Service, public: Option<&Uri>) -> Self {
        let settings = &service.settings;
        let public_host = public.and_then(Uri::host).map(bare_host);
        Self {
            // Behind a public address a proxy or a tunnel hands on what comes from anywhere.
            is_local: settings.listen.ip().is_loopback() && public_host.is_some_and(|host| is_loopback_name(&host)),
            auth_required: settings.auth_required,
            authenticator: service.authenticator.clone(),
            admin_token: settings.admin_token.as_deref().map(sha256),
            cookie: session::Cookie::of(service),
            base: service.links.path_prefix().to_owned(),
        }
    }

    /// Who sends a request. A token that is not valid is refused and never taken for none.
    pub async fn identify(&self, headers: &HeaderMap, from_here: bool) -> Result<Principal, Refusal> {
        let Some(token) = bearer(headers).or_else(|| self.cookie.read(headers)) else {
            let is_local = self.is_local && !self.auth_required && from_here;
            return Ok(if is_local {
                Principal::Local
            } else {
                Principal::Anonymous
            });
        };
        if self.admin_token == Some(sha256(token)) {
            return Ok(Principal::User(UserId::admin()));
        }
        let known = match &self.authenticator {
            Some(authenticator) => authenticator.authenticate(token).await,
            None => Ok(None),
        };
        match known {
            Ok(Some(user)) => Ok(Principal::User(user)),
            Ok(None) => Err(Refusal::Token),
            Err(error) => {
                tracing::error!(%error, "a token could not be checked");
                Err(Refusal::Unchecked)
            }
        }
    }

    /// Whether a caller is let in to a path at all.
    pub fn admit(&self, principal: &Principal, path: &str) -> bool {
        // What a person needs to say who they are.
        let open = path == "/" || path == "/session" || path.starts_with("/assets/");
        !self.auth_required || open || *principal != Principal::Anonymous
    }

    /// Lets a request with the administrator's token through, as the administrator's.
    pub fn admit_admin(&self, request: &mut Request<Body>) -> Result<(), Box<Response>> {
        let token = bearer(request.headers()).map(sha256);
        if self.admin_token.is_none() || token != self.admin_token {
            return Err(Box::new(self.refuse_admin(request.headers())));
        }
        if let Some(caller) = request.extensions_mut().get_mut::<Caller>() {
            caller.principal = Principal::User(UserId::admin());
        }
        Ok(())
    }

    fn refuse_admin(&self, headers: &HeaderMap) -> Response {
        if self.admin_token.is_none() {
            let message = "the profile `admin` is closed to the network: set server.admin_token (for example \"env:TRIBUNE_ADMIN_TOKEN\"), or use it on this machine with `tribune stdio --profile admin`";
            return rpc::error(StatusCode::FORBIDDEN, &Value::Null, rpc::SERVER_ERROR, message);
        }
        let message = if headers.contains_key(header::AUTHORIZATION) {
            "that is not the token of server.admin_token"
        } else {
            "the profile `admin` needs the header `Authorization: Bearer TOKEN` with the token of server.admin_token"
        };
        let mut refusal = rpc::error(StatusCode::UNAUTHORIZED, &Value::Null, rpc::SERVER_ERROR, message);
        let challenge = HeaderValue::from_static("Bearer realm=\"tribune admin\"");
        refusal.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
        refusal
    }

    /// The answer to somebody who is not let in.
    pub fn refuse(&self, refusal: Refusal, request: &Request<Body>) -> Response {
        // A user's token, even a valid one, would not do there.
        let is_admins = request.uri().path() == "/mcp/admin";
        if refusal == Refusal::Token && is_admins && bearer(request.headers()).is_some() {
            return self.refuse_admin(request.headers());
        }
        let mut response = refusal.response(request, &self.base);
        // A browser that keeps showing a token that is no longer valid could never sign in again.
        if refusal == Refusal::Token && self.cookie.read(request.headers()).is_some() {
            self.cookie.forget(&mut response);
        }
        response
    }

    pub(super) fn cookie(&self) -> &session::Cookie {
        &self.cookie
    }
}

/// Whether a request that reached a loopback listener was sent on this machine, as far as it can tell: addressed to
/// it by name, by a page of it if by any, and not handed on. A forwarder that hides all of this cannot be seen through.
pub fn came_from_here(request: &Request<Body>) -> bool {
    let headers = request.headers();
    let handed_on = HANDED_ON.iter().any(|name| headers.contains_key(*name));
    let addressed_here = host_name(headers, request.uri()).is_some_and(|host| is_loopback_name(&host));
    let of_a_page_here = headers.get(header::ORIGIN).is_none_or(|origin| {
        let host = origin.to_str().ok().and_then(|origin| origin.parse::<Uri>().ok());
        host.as_ref()
            .and_then(Uri::host)
            .map(bare_host)
            .is_some_and(|host| is_loopback_name(&host))
    });
    // What proxies speak when they are not told better, and no client of today.
    let is_old = request.version() < Version::HTTP_11;
    addressed_here && of_a_page_here && !handed_on && !is_old
}

/// Why somebody is not let in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// The token is not known, has expired or was revoked.
    Token,
    /// Whether it is cannot be told now.
    Unchecked,
    /// There is none, and there has to be.
    Unknown,
}

impl Refusal {
    fn response(self, request: &Request<Body>, base: &str) -> Response {
        let (status, message) = match self {
            Self::Token => (
                StatusCode::UNAUTHORIZED,
                "the token is not valid here: it may be mistyped, expired or revoked; the operator makes another with `tribune token create --user NAME`",
            ),
            Self::Unchecked => (
                StatusCode::SERVICE_UNAVAILABLE,
                "the token could not be checked because the database does not answer; try again in a moment",
            ),
            Self::Unknown => (
                StatusCode::UNAUTHORIZED,
                "this server serves known users alone: send `Authorization: Bearer TOKEN`; the operator makes a token with `tribune token create --user NAME`",
            ),
        };
        let path = request.uri().path();
        let mut response = if path.starts_with("/mcp") || path.starts_with("/sse") {
            rpc::error(status, &Value::Null, rpc::SERVER_ERROR, message)
        } else {
            let back = request.uri().path_and_query().map_or("/", |path| path.as_str());
            page::refused(request.headers(), base, back, status, message)
        };
        if status == StatusCode::UNAUTHORIZED {
            let challenge = match self {
                Self::Token => "Bearer realm=\"tribune\", error=\"invalid_token\"",
                _ => "Bearer realm=\"tribune\"",
            };
            let challenge = HeaderValue::from_static(challenge);
            response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
        }
        response
    }
}

/// The token of `Authorization: Bearer TOKEN`. Other schemes are somebody else's: a proxy's, say.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let given = headers.get(header::AUTHORIZATION)?;
    // One that is empty or unreadable is a token too, and not a valid one.
    let given = given.to_str().unwrap_or("Bearer ?").trim();
    let (scheme, token) = given.split_once(' ').unwrap_or((given, ""));
    scheme.eq_ignore_ascii_case("bearer").then_some(token.trim())
}
