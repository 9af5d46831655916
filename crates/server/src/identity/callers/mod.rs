//! From a request to its principal: by a token or a session, and by nothing else.
//!
//! - `refusals`: what callers are told who are not let in.

mod refusals;

use std::net::IpAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use http::request::Parts;
use http::{HeaderMap, Uri, header};
use tribune_core::{Links, Principal, Scope, Scopes, UserId};
use tribune_limits::Limits;
use tribune_oauth::sha256;

use super::accounts::{Accounts, Identity, Proof};
use super::caller::Caller;
use super::needs::{Need, need};
use super::session::Cookie;
use crate::audit::Audit;
use crate::local_proof::LocalProof;
use crate::response::page::SignInPage;
use crate::sender;
use crate::settings::Settings;
pub(super) use refusals::Denial;

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
            admin_token: settings.config.admin_token.as_deref().map(sha256),
            cookie: Cookie::new("session", settings.listen.port(), links),
            pending: Cookie::new("pending", settings.listen.port(), links),
            page: SignInPage { base: base.to_owned(), local: settings.local.is_some(), ..page },
            public_url: links.base().to_owned(),
            timeout: settings.config.call_timeout,
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
}

/// The token of `Authorization: Bearer TOKEN`. Other schemes belong to a proxy.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let mut all = headers.get_all(header::AUTHORIZATION).iter();
    let given = all.next()?;
    // An empty or unreadable token is an invalid token, not a missing one; of two, nobody knows which is meant.
    let given = given.to_str().ok().filter(|_| all.next().is_none()).unwrap_or("Bearer ?").trim();
    let (scheme, token) = given.split_once([' ', '\t']).unwrap_or((given, ""));
    scheme.eq_ignore_ascii_case("bearer").then_some(token.trim())
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn bearer_tokens_are_refused_not_ignored() {
        for (given, token) in [
            (vec!["Bearer one"], Some("one")),
            (vec!["bEARER\tone"], Some("one")),
            (vec!["Bearer"], Some("")),
            (vec!["Basic x"], None),
            (vec!["Basic x", "Bearer one"], Some("?")),
            (vec!["Bearer one", "Bearer two"], Some("?")),
            (vec![], None),
        ] {
            let values = given.iter().map(|value| (header::AUTHORIZATION, HeaderValue::from_static(value)));
            assert_eq!(bearer(&values.collect()), token, "{given:?}");
        }
    }
}
