//! Who sent a request.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use http::Request;
use tribune_core::{Principal, Scopes, Source};

use super::accounts::Accounts;

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
