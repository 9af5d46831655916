//! Signing in: people in browsers, and programs that people let in.
//!
//! - [`login`]: passwords, a provider, API tokens, and the end of a session;
//! - [`oauth`]: the endpoints of the built-in issuer, and metadata for hosts.

use tribune_core::Result;

use crate::identity::Caller;
use crate::service::Service;

pub(crate) mod login;
pub(crate) mod oauth;

/// Records in the audit log how somebody's sign-in ended.
fn record<T>(service: &Service, caller: &Caller, action: &str, who: &str, ended: &Result<T>) {
    if let Some(audit) = service.audit.get() {
        let outcome = ended.as_ref().err().map_or("ok", |error| error.kind().as_str());
        audit.action(action, outcome, who, &service.call_context(caller));
    }
}
