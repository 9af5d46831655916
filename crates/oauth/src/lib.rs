//! Signing in: the built-in issuer of OAuth tokens, tokens of other issuers, and people who sign in at a provider.
//!
//! Knows no web framework: requests are queries and forms, answers are addresses and JSON. Modules in reading order:
//!
//! - `refused`: errors as OAuth writes them; `secret`: codes, tokens and digests; `password`: hashes of passwords;
//! - `redirect`: which addresses a program may name;
//! - `fetch`: documents of other servers, with a guard against addresses of this network;
//! - `client`: programs that ask for access, by registration or by a document at their id;
//! - [`issuer`]: requests for access, grants, tokens;
//! - `keys`, [`jwt`]: tokens that another issuer signed;
//! - [`login`]: people who sign in at a provider.

use std::collections::HashMap;

mod client;
mod fetch;
pub mod issuer;
pub mod jwt;
mod keys;
pub mod login;
mod password;
mod redirect;
mod refused;
mod secret;

pub use client::Client;
pub use issuer::{Authorization, AuthorizeError, Issuer};
pub use password::{hash_password, verify_password};
pub use refused::Refused;
pub use secret::{new_secret, sha256};

/// The addresses that a token may be for, each with the one profile that it then opens; `None` for all of this server.
pub type Resources = HashMap<String, Option<String>>;
