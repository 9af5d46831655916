//! Codes and tokens: unpredictable, and stored as digests.

#![allow(clippy::disallowed_methods, reason = "a secret must be unpredictable")]

use data_encoding::BASE64URL_NOPAD;
use sha2::{Digest, Sha256};
use uuid::Uuid;

pub fn sha256(text: &str) -> [u8; 32] {
    Sha256::digest(text.as_bytes()).into()
}

/// A secret with 244 random bits, which need no slow hash.
pub fn new_secret(prefix: &str) -> String {
    let random = || Uuid::new_v4().simple().to_string();
    format!("{prefix}{}{}", random(), random())
}

/// The challenge of a PKCE verifier, by the method S256.
pub(crate) fn challenge(verifier: &str) -> String {
    BASE64URL_NOPAD.encode(&sha256(verifier))
}

/// Takes the same time wherever two secrets differ.
pub(crate) fn is_same(a: &str, b: &str) -> bool {
    sha256(a) == sha256(b)
}
