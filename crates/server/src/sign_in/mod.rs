//! Signing in: people in browsers, and programs that people let in.
//!
//! - [`login`]: passwords, a provider, API tokens, and the end of a session;
//! - [`oauth`]: the endpoints of the built-in issuer, and metadata for hosts.

pub(crate) mod login;
pub(crate) mod oauth;
