//! Whose a session is. Its id alone opens nothing: who shows it must be who began it.

use std::collections::HashMap;
use std::sync::Mutex;

use axum::body::Body;
use http::{HeaderMap, Request};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use tribune_core::Principal;

use super::streamable::SESSION_HEADER;
use crate::http::callers::Caller;
use crate::profile::unpoisoned;

/// The owners of sessions. Those of nobody in particular are nobody's secret.
#[derive(Default)]
pub struct Owners(Mutex<HashMap<String, Principal>>);

impl Owners {
    /// Sessions end without a word: those that have are looked for whenever this many are known.
    const TIDY_EVERY: usize = 512;

    /// Notes whose a session is that has just begun.
    pub async fn note(&self, session: String, owner: Principal, open: &LocalSessionManager) {
        if owner == Principal::Anonymous {
            return;
        }
        let count = {
            let mut owners = unpoisoned(&self.0);
            owners.insert(session, owner);
            owners.len()
        };
        if count.is_multiple_of(Self::TIDY_EVERY) {
            let open = open.sessions.read().await;
            unpoisoned(&self.0).retain(|session, _| open.contains_key(session.as_str()));
        }
    }

    /// Whether a request shows the session of somebody else.
    pub fn refuse(&self, request: &Request<Body>) -> bool {
        let Some(session) = session(request.headers()) else {
            return false;
        };
        let caller = request.extensions().get::<Caller>().map(|caller| &caller.principal);
        unpoisoned(&self.0)
            .get(session)
            .is_some_and(|owner| Some(owner) != caller)
    }
}

pub fn session(headers: &HeaderMap) -> Option<&str> {
    headers.get(SESSION_HEADER)?.to_str().ok()
}
