//! Signing in: people in browsers, and programs that people let in.
//!
//! - [`login`]: passwords, a provider, API tokens, and the end of a session;
//! - [`oauth`]: the endpoints of the built-in issuer, and metadata for hosts.

use tribune_core::Result;

use crate::identity::Caller;
use crate::service::Service;

pub(crate) mod login;
pub(crate) mod oauth;

const MAX_LOGGED_CHARS: usize = 64;

/// Records a sign-in in the audit log; a failed one is logged too.
fn record<T>(service: &Service, caller: &Caller, action: &str, who: &str, ended: &Result<T>) {
    record_about(service, caller, action, who, &[], ended);
}

/// The same with more ids for the audit log: a program, and its scopes.
fn record_about<T>(service: &Service, caller: &Caller, action: &str, who: &str, about: &[&str], ended: &Result<T>) {
    let (peer, correlation_id) = (caller.peer, &*caller.correlation_id);
    if let Err(error) = ended {
        if !service.limits.is_sign_in_traced(peer) {
            return;
        }
        let who: String = who.chars().take(MAX_LOGGED_CHARS).collect();
        let peer = peer.map(|peer| peer.to_string()).unwrap_or_default();
        tracing::warn!(action, who, peer, correlation_id, %error, "a sign-in failed");
    }
    if let Some(audit) = service.audit.get() {
        let outcome = ended.as_ref().err().map_or("ok", |error| error.kind().as_str());
        audit.action(action, outcome, who, about, peer, correlation_id);
    }
}
