//! What callers are told who are not let in, and how their programs get a token.

use axum::body::Body;
use axum::response::Response;
use http::{HeaderMap, HeaderValue, Request, StatusCode, header};
use tribune_core::{Principal, Scope, Scopes};
use tribune_limits::Exceeded;

use super::super::accounts::challenge;
use super::super::needs::{Need, need};
use super::{Caller, Callers, bearer};
use crate::response::{self, Refusal, page, rpc};
use crate::sender;

/// Why a caller is not let in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::identity) enum Denial {
    /// The token is unknown, expired or revoked.
    InvalidToken,
    /// The token could not be checked.
    Unchecked,
    /// There is no token, and `auth.required` is set.
    TokenRequired,
    /// The token does not allow this.
    Scope(Scope),
    /// The token opens only this profile.
    OtherProfile(String),
    /// A page of another origin wants to change something with the reader's session.
    ForeignPage,
    /// The caller did something too often.
    Limited(Exceeded),
}

impl From<Exceeded> for Denial {
    fn from(exceeded: Exceeded) -> Self {
        Self::Limited(exceeded)
    }
}

impl Denial {
    fn explain(&self) -> (StatusCode, String) {
        match self {
            Self::InvalidToken => (
                StatusCode::UNAUTHORIZED,
                "Invalid token: it is mistyped, expired or revoked. The operator creates a new one with `tribune token create --user NAME`.".to_owned(),
            ),
            Self::Unchecked => (
                StatusCode::SERVICE_UNAVAILABLE,
                "The token could not be checked because the database does not answer. Try again in a moment.".to_owned(),
            ),
            Self::TokenRequired => (
                StatusCode::UNAUTHORIZED,
                "This server requires a token: send `Authorization: Bearer TOKEN`. The operator creates one with `tribune token create --user NAME`.".to_owned(),
            ),
            Self::Scope(scope) => (
                StatusCode::FORBIDDEN,
                format!("This needs the scope `{}`, which your token does not have. Sign in again and allow it, or ask the operator for a token with it.", scope.as_str()),
            ),
            Self::Limited(exceeded) => (StatusCode::TOO_MANY_REQUESTS, exceeded.message()),
            Self::ForeignPage => (StatusCode::FORBIDDEN, sender::REFUSED.to_owned()),
            Self::OtherProfile(profile) => (
                StatusCode::FORBIDDEN,
                format!("This token opens only the profile `{profile}`, at /mcp/{profile}."),
            ),
        }
    }
}

impl Callers {
    /// What a refusal says about getting a token for a path.
    pub(crate) fn challenge(&self, path: &str, scopes: Scopes, error: Option<&str>) -> HeaderValue {
        let resource = match need(path) {
            // Messages are a part of the stream's endpoint.
            Need::Profile if path.starts_with("/sse/messages") => "/sse",
            Need::Profile => path.trim_end_matches('/'),
            _ => "/mcp",
        };
        challenge(self.oauth.as_deref(), resource, scopes, error)
    }

    /// The same with everything that the path may need.
    pub(crate) fn challenge_for(&self, path: &str, error: Option<&str>) -> HeaderValue {
        let scopes = match need(path) {
            Need::Profile if path.ends_with("/admin") => Scopes::named(["admin"]),
            Need::Profile => self.mcp_scopes,
            Need::Scope(scope) => [scope].into_iter().collect(),
            Need::Nothing | Need::Home => Scopes::USUAL,
        };
        self.challenge(path, scopes, error)
    }

    /// Lets administrators through: by the admin token, or by a token that allows it.
    pub(crate) fn admit_admin(&self, request: &Request<Body>) -> Result<(), Refusal> {
        let caller = request.extensions().get::<Caller>();
        let user = caller.filter(|caller| matches!(caller.principal, Principal::User(_)));
        let may = |scope| user.is_some_and(|user| user.scopes.contains(scope));
        if may(Scope::Admin) || may(Scope::Trade) {
            return Ok(());
        }
        Err(self.refuse_admin(request.headers(), user.is_some()).into())
    }

    /// The response to a caller who is not an administrator; `is_user` says whether their token is valid.
    fn refuse_admin(&self, headers: &HeaderMap, is_user: bool) -> Response {
        let (status, error, message) = match (&self.oauth, self.admin_token) {
            (Some(_), _) if is_user => (
                StatusCode::FORBIDDEN,
                Some("insufficient_scope"),
                "The profile `admin` needs the scope `admin`, which this token does not have. Members of the group `admin` can allow it.",
            ),
            (Some(_), None) => (
                StatusCode::UNAUTHORIZED,
                None,
                "The profile `admin` needs a token with the scope `admin`: sign in as a member of the group `admin`.",
            ),
            (None, None) => {
                let message = "The profile `admin` is closed to the network. Set server.admin_token (for example \"env:TRIBUNE_ADMIN_TOKEN\"), or use `tribune stdio --profile admin` on this machine.";
                return rpc::error(StatusCode::FORBIDDEN, rpc::SERVER_ERROR, message);
            }
            (_, Some(_)) if headers.contains_key(header::AUTHORIZATION) => {
                (StatusCode::UNAUTHORIZED, Some("invalid_token"), "This is not the token of server.admin_token.")
            }
            (_, Some(_)) => (
                StatusCode::UNAUTHORIZED,
                None,
                "The profile `admin` needs the header `Authorization: Bearer TOKEN` with the token of server.admin_token.",
            ),
        };
        let mut refusal = rpc::error(status, rpc::SERVER_ERROR, message);
        let challenge = self.challenge_for("/mcp/admin", error);
        refusal.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
        refusal
    }

    /// The response to a caller who is not let in.
    pub(in crate::identity) fn refuse(&self, denial: &Denial, request: &Request<Body>) -> Response {
        let path = request.uri().path();
        // Without an issuer, only the admin token opens it.
        let is_admin_token_wrong = *denial == Denial::InvalidToken && path == "/mcp/admin" && self.oauth.is_none();
        if is_admin_token_wrong && bearer(request.headers()).is_some() {
            return self.refuse_admin(request.headers(), false);
        }
        let is_rpc = need(path) == Need::Profile;
        if let Denial::Limited(exceeded) = denial {
            return response::exceeded(is_rpc, *exceeded);
        }
        let (status, message) = denial.explain();
        let mut response = if is_rpc {
            rpc::error(status, rpc::SERVER_ERROR, &message)
        } else {
            let back = request.uri().path_and_query().map_or("/", |path| path.as_str());
            page::refused(request.headers(), &self.page, back, status, &message)
        };
        let challenge = match denial {
            Denial::InvalidToken => Some(self.challenge_for(path, Some("invalid_token"))),
            Denial::TokenRequired => Some(self.challenge_for(path, None)),
            Denial::Scope(scope) => {
                Some(self.challenge(path, [*scope].into_iter().collect(), Some("insufficient_scope")))
            }
            Denial::Unchecked | Denial::OtherProfile(_) | Denial::ForeignPage | Denial::Limited(_) => None,
        };
        if let Some(challenge) = challenge {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
        }
        // A browser that keeps sending an expired token could never sign in again.
        if *denial == Denial::InvalidToken && self.cookie.read(request.headers()).is_some() {
            self.cookie.forget(&mut response);
        }
        response
    }
}
