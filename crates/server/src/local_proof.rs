//! The person at this machine, who is known by a secret that only their account on the system can read. Where a request
//! comes from says nothing: proxies, other accounts and pages of other servers all come from loopback.

use std::fmt;

use tribune_oauth::{new_secret, sha256};

/// What shows that a caller is the person at this machine.
#[derive(Clone)]
pub struct LocalProof {
    secret: String,
    key: String,
}

impl LocalProof {
    /// Every secret begins with this, so that one found in a log or a repository can be recognised.
    pub const PREFIX: &str = "tribune_local_";

    /// A new secret, to be stored where only its owner can read it.
    pub fn new_secret() -> String {
        new_secret(Self::PREFIX)
    }

    /// `secret` is the bearer token of programs on this machine. The key of the sign-in link is new with every start.
    pub fn new(secret: String) -> Self {
        Self { secret, key: new_secret("") }
    }

    /// The bearer token.
    pub fn secret(&self) -> &str {
        &self.secret
    }

    /// The address that signs a browser in.
    pub fn link(&self, base: &str) -> String {
        format!("{base}/login/local?key={}", self.key)
    }

    pub(crate) fn is_secret(&self, given: &str) -> bool {
        sha256(given) == sha256(&self.secret)
    }

    pub(crate) fn is_key(&self, given: &str) -> bool {
        sha256(given) == sha256(&self.key)
    }
}

/// Without the secrets.
impl fmt::Debug for LocalProof {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalProof").finish_non_exhaustive()
    }
}
