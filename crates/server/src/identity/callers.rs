//! From a request to its principal: by a token or a session, and by nothing else.

use std::net::IpAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Request, StatusCode, Uri, header};
use tribune_core::{Links, Principal, Scope, Scopes, Source, UserId};
use tribune_oauth::sha256;

use super::accounts::{Accounts, Identity, Proof, challenge};
use super::needs::{Need, need};
use super::session::Cookie;
use crate::audit::Audit;
use crate::local_proof::LocalProof;
use crate::response::page::SignInPage;
use crate::response::{self, Refusal, page, rpc};
use crate::sender;
use crate::settings::Settings;
use tribune_limits::{Exceeded, Limits};

/// How often it is checked whether the token of an open stream has ended.
const CHECKED_EVERY: Duration = Duration::from_secs(60);

/// Who sent a request; the guard puts it into the request's extensions.
#[derive(Clone)]
pub struct Caller {
    pub principal: Principal,
    /// The groups of this caller.
    pub groups: Arc<[String]>,
    /// What this caller may do.
    pub scopes: Scopes,
    /// The one profile that the caller's token opens; `None` for all.
    pub profile: Option<String>,
    /// Whether a person signed in in this browser, and not with a token: only a person lets programs in.
    pub has_signed_in: bool,
    /// What shows who calls, if it can end.
    pub(crate) token: Option<Arc<str>>,
    pub correlation_id: Arc<str>,
    /// The caller's address, as far as trusted proxies tell.
    pub peer: Option<IpAddr>,
}

impl Caller {
    /// Without a token.
    pub(crate) fn anonymous(correlation_id: Arc<str>) -> Self {
        Self {
            principal: Principal::Anonymous,
            groups: Arc::default(),
            scopes: Scopes::READ,
            profile: None,
            has_signed_in: false,
            token: None,
            correlation_id,
            peer: None,
        }
    }

    /// The person at this machine.
    pub fn local(correlation_id: Arc<str>) -> Self {
        Self { principal: Principal::Local, scopes: Scopes::ALL, ..Self::anonymous(correlation_id) }
    }

    /// Whether a source exists for this caller.
    pub(crate) fn may_use(&self, source: &dyn Source) -> bool {
        source.readers().include(&self.principal, &self.groups)
    }

    /// Returns once what shows who calls has ended, or means something else than before: for streams, which outlive a
    /// request.
    pub(crate) async fn has_ended(self, accounts: Option<Arc<Accounts>>) {
        let (Some(token), Some(accounts)) = (self.token, accounts) else {
            return std::future::pending().await;
        };
        loop {
            tokio::time::sleep(CHECKED_EVERY).await;
            match accounts.authenticate(&token).await {
                Ok(Some(identity)) if identity.groups == self.groups && identity.scopes == self.scopes => {}
                Ok(_) => return,
                // A database that does not answer for a moment ends no stream.
                Err(error) => tracing::warn!(%error, "could not check the token of a stream"),
            }
        }
    }

    /// The caller of a request; anonymous without a guard.
    pub(crate) fn new(request: &Request<Body>) -> Self {
        let caller = request.extensions().get::<Self>();
        caller.cloned().unwrap_or_else(|| Self::anonymous(Arc::from("-")))
    }
}

/// Identifies callers.
pub(crate) struct Callers {
    /// Whether anonymous callers are refused.
    auth_required: bool,
    pub(crate) accounts: Option<Arc<Accounts>>,
    /// How the person at this machine is known.
    pub(crate) local: Option<LocalProof>,
    /// SHA-256 of the admin token: comparing digests reveals nothing about the token through timing.
    admin_token: Option<[u8; 32]>,
    pub(crate) cookie: Cookie,
    /// Holds a sign-in at a provider that has begun.
    pub(crate) pending: Cookie,
    /// The page for signing in, and the path below which all pages are.
    pub(crate) page: SignInPage,
    pub(crate) public_url: String,
    /// The public address, where hosts can get tokens by themselves.
    oauth: Option<String>,
    /// What the tools of the MCP endpoints need.
    mcp_scopes: Scopes,
    /// How long a sign-in may take.
    pub(crate) timeout: Duration,
    pub(super) limits: Arc<Limits>,
    audit: Arc<OnceLock<Audit>>,
}

impl Callers {
    pub(super) fn new(
        settings: &Settings,
        links: &Links,
        accounts: Option<Arc<Accounts>>,
        mcp_scopes: Scopes,
        limits: Arc<Limits>,
        audit: Arc<OnceLock<Audit>>,
    ) -> Self {
        let base = links.path_prefix();
        let page = accounts.as_ref().map_or_else(SignInPage::default, |accounts| accounts.page());
        Self {
            local: settings.local.clone(),
            auth_required: settings.auth_required,
            oauth: accounts.as_ref().filter(|accounts| accounts.offers_oauth()).map(|_| links.base().to_owned()),
            mcp_scopes,
            admin_token: settings.admin_token.as_deref().map(sha256),
            cookie: Cookie::new("session", settings.listen.port(), links),
            pending: Cookie::new("pending", settings.listen.port(), links),
            page: SignInPage { base: base.to_owned(), local: settings.local.is_some(), ..page },
            public_url: links.base().to_owned(),
            timeout: settings.call_timeout,
            limits,
            audit,
            accounts,
        }
    }

    /// Who sent a request. An invalid token is refused, never ignored; a browser that has to sign in again is let through
    /// to where it can.
    pub(super) async fn identify(
        &self,
        request: &Parts,
        correlation_id: Arc<str>,
        peer: Option<IpAddr>,
    ) -> Result<Caller, Denial> {
        let (headers, path) = (&request.headers, request.uri.path());
        let mut caller = Caller { peer, ..Caller::anonymous(correlation_id) };
        let (token, is_cookie) = match bearer(headers) {
            Some(token) => (Some(token), false),
            None => (self.cookie.read(headers), true),
        };
        let Some(token) = token else {
            return Ok(caller);
        };
        // Browsers send cookies with whatever page asks: one of another server on this machine is "same site".
        if is_cookie && !request.method.is_safe() && sender::is_foreign(headers, &self.public_url) {
            return Err(Denial::ForeignPage);
        }
        if !is_cookie && self.local.as_ref().is_some_and(|local| local.is_secret(token)) {
            (caller.principal, caller.scopes) = (Principal::Local, Scopes::ALL);
            return Ok(caller);
        }
        if !is_cookie && self.admin_token == Some(sha256(token)) {
            (caller.principal, caller.scopes) = (Principal::User(UserId::admin()), Scopes::ALL);
            return Ok(caller);
        }
        match self.authenticate(token, is_cookie).await {
            Ok(Some(identity)) => {
                caller.has_signed_in = identity.proof != Proof::Token;
                caller.principal = match identity.proof {
                    Proof::LocalLink => Principal::Local,
                    Proof::SignIn | Proof::Token => Principal::User(identity.user),
                };
                caller.groups = identity.groups;
                caller.scopes = identity.scopes;
                caller.profile = identity.profile;
                caller.token = Some(token.into());
                Ok(caller)
            }
            // Where people sign in again.
            Ok(None) if is_cookie && need(path) == Need::Nothing => Ok(caller),
            // Counts as a request, and no more.
            Ok(None) if self.has_ended(token).await => match self.limits.request(&Principal::Anonymous, peer) {
                Ok(()) => Err(Denial::InvalidToken),
                Err(exceeded) => Err(exceeded.into()),
            },
            Ok(None) => Err(self.wrong_token(peer, &caller.correlation_id)),
            Err(error) => {
                tracing::error!(%error, "could not check a token");
                Err(Denial::Unchecked)
            }
        }
    }

    /// A session's secret is only taken from a cookie, and only that.
    async fn authenticate(&self, token: &str, is_cookie: bool) -> tribune_core::Result<Option<Identity>> {
        match &self.accounts {
            Some(accounts) if is_cookie == Accounts::is_session(token) => accounts.authenticate(token).await,
            _ => Ok(None),
        }
    }

    /// A token that was valid once is no guess: its program has to be told so, however often it asks.
    async fn has_ended(&self, token: &str) -> bool {
        match &self.accounts {
            Some(accounts) => accounts.has_ended(token).await.unwrap_or(false),
            None => false,
        }
    }

    /// Counts a token that never was valid, or a code or a key like that; says how to refuse it.
    pub(super) fn wrong_token(&self, peer: Option<IpAddr>, correlation_id: &str) -> Denial {
        let address = peer.map(|peer| peer.to_string()).unwrap_or_default();
        if self.limits.is_traced(format!("token {address}")) {
            tracing::warn!(peer = address, correlation_id, "a wrong token was refused");
            if let Some(audit) = self.audit.get() {
                audit.action("use a token", "forbidden", "?", &[], peer, correlation_id);
            }
        }
        match self.limits.wrong_token(peer) {
            Ok(()) => Denial::InvalidToken,
            Err(exceeded) => exceeded.into(),
        }
    }

    /// Where a provider sends browsers back to.
    pub(crate) fn callback(&self) -> String {
        format!("{}/login/callback", self.public_url)
    }

    /// Whether a caller may go on to an address, or why not.
    pub(super) fn admit(&self, caller: &Caller, uri: &Uri) -> Result<(), Denial> {
        let is_anonymous = caller.principal == Principal::Anonymous;
        let needed = match need(uri.path()) {
            Need::Nothing => return Ok(()),
            Need::Home if is_anonymous => return Ok(()),
            _ if self.auth_required && is_anonymous => return Err(Denial::TokenRequired),
            Need::Profile => return Ok(()),
            // With a query it searches.
            Need::Home => uri.query().map(|_| Scope::Read),
            Need::Scope(scope) => Some(scope),
        };
        if let Some(profile) = &caller.profile {
            return Err(Denial::OtherProfile(profile.clone()));
        }
        // Anonymous callers pass: handlers that need a user ask them to sign in.
        match needed.filter(|needed| !is_anonymous && !caller.scopes.contains(*needed)) {
            Some(missing) => Err(Denial::Scope(missing)),
            None => Ok(()),
        }
    }

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

    /// The response to somebody who is no administrator; `is_user` if they showed a valid token.
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
    pub(super) fn refuse(&self, denial: &Denial, request: &Request<Body>) -> Response {
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

/// Why a caller is not let in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Denial {
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

/// The token of `Authorization: Bearer TOKEN`. Other schemes belong to a proxy.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let given = headers.get(header::AUTHORIZATION)?;
    // An empty or unreadable token is an invalid token, not a missing one.
    let given = given.to_str().unwrap_or("Bearer ?").trim();
    let (scheme, token) = given.split_once(' ').unwrap_or((given, ""));
    scheme.eq_ignore_ascii_case("bearer").then_some(token.trim())
}
