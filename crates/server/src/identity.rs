//! Who is calling: from the token that a request carries to a [`Principal`](tribune_core::Principal).
//!
//! [`Authenticator`] is the seam: API tokens come through it today, and access tokens of an
//! authorisation server can come through it beside them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use jiff::Timestamp;
use sha2::{Digest, Sha256};
use tribune_core::store::{Token, TokenStore};
use tribune_core::{Clock, Error, Result, UserId};

use crate::profile::unpoisoned;

/// Tells whose a token is.
#[async_trait]
pub trait Authenticator: Send + Sync {
    /// `None` for a token that is not known, has expired or was revoked; an error if that cannot be told now.
    async fn authenticate(&self, token: &str) -> Result<Option<UserId>>;
}

/// What every token begins with: found in a log or a repository, it says what it opens.
const PREFIX: &str = "tribune_";
const ID_CHARS: usize = 8;
/// 256 bits, which need no slow hash to be safe.
const SECRET_BYTES: usize = 32;
const MAX_TOKEN_CHARS: usize = 256;

/// A token that has just been made: this is the only time that it can be shown.
pub struct NewToken {
    pub shown: String,
    pub token: Token,
    pub sha256: [u8; 32],
}

/// Makes a token for a user.
pub fn new_token(
    user: UserId,
    label: Option<String>,
    expires_at: Option<Timestamp>,
    now: Timestamp,
) -> Result<NewToken> {
    if user == UserId::admin() {
        return Err(Error::invalid_argument(
            "`admin` is whoever shows the token of server.admin_token; choose another name for a user",
        ));
    }
    let id = random_hex(ID_CHARS / 2);
    let shown = format!("{PREFIX}{id}_{}", random_hex(SECRET_BYTES));
    Ok(NewToken {
        sha256: sha256(&shown),
        shown,
        token: Token {
            id,
            user,
            label,
            created_at: now,
            expires_at,
            last_used: None,
            revoked_at: None,
        },
    })
}

fn random_hex(bytes: usize) -> String {
    use std::fmt::Write as _;
    let mut text = String::with_capacity(bytes * 2);
    while text.len() < bytes * 2 {
        // Of the system's own randomness, 122 bits each; the fixed ones are left out.
        for byte in uuid::Uuid::new_v4()
            .into_bytes()
            .into_iter()
            .enumerate()
            .filter(|(at, _)| *at != 6 && *at != 8)
        {
            let _ = write!(text, "{:02x}", byte.1);
        }
    }
    text.truncate(bytes * 2);
    text
}

pub(crate) fn sha256(text: &str) -> [u8; 32] {
    Sha256::digest(text.as_bytes()).into()
}

/// API tokens, as they are kept in the store.
pub struct ApiTokens {
    store: Arc<dyn TokenStore>,
    clock: Arc<dyn Clock>,
    /// Tokens that were fine a moment ago.
    known: Mutex<HashMap<[u8; 32], Known>>,
}

#[derive(Clone)]
struct Known {
    user: UserId,
    checked: Instant,
    noted: Instant,
}

impl ApiTokens {
    /// A revoked token is refused after this long at the latest.
    const TRUSTED_FOR: Duration = Duration::from_secs(1);
    /// The last use is noted this often at most.
    const NOTED_EVERY: Duration = Duration::from_secs(60);
    const MAX_KNOWN: usize = 10_000;

    pub fn new(store: Arc<dyn TokenStore>, clock: Arc<dyn Clock>) -> Self {
        Self {
            store,
            clock,
            known: Mutex::default(),
        }
    }

    fn remember(&self, sha256: [u8; 32], known: Known) {
        let mut all = unpoisoned(&self.known);
        if all.len() >= Self::MAX_KNOWN {
            all.clear();
        }
        all.insert(sha256, known);
    }

    /// In the background: nobody should wait for it, and it may fail.
    fn note_use(&self, id: String) {
        let (store, now) = (self.store.clone(), self.clock.now());
        tokio::spawn(async move {
            if let Err(error) = store.used(&id, now).await {
                tracing::debug!(%error, "the use of a token could not be noted");
            }
        });
    }
}

#[async_trait]
impl Authenticator for ApiTokens {
    async fn authenticate(&self, token: &str) -> Result<Option<UserId>> {
        if !token.starts_with(PREFIX) || token.len() > MAX_TOKEN_CHARS {
            return Ok(None);
        }
        let (sha256, moment) = (sha256(token), self.clock.monotonic());
        let known = unpoisoned(&self.known).get(&sha256).cloned();
        if let Some(known) = &known
            && moment.saturating_duration_since(known.checked) < Self::TRUSTED_FOR
        {
            return Ok(Some(known.user.clone()));
        }
        let found = self.store.find(sha256).await?;
        let now = self.clock.now();
        let valid = found.filter(|token| token.revoked_at.is_none() && token.expires_at.is_none_or(|end| now < end));
        let Some(token) = valid else {
            unpoisoned(&self.known).remove(&sha256);
            return Ok(None);
        };
        let noted = known
            .map(|known| known.noted)
            .filter(|noted| moment.saturating_duration_since(*noted) < Self::NOTED_EVERY);
        if noted.is_none() {
            self.note_use(token.id);
        }
        let user = token.user;
        self.remember(
            sha256,
            Known {
                user: user.clone(),
                checked: moment,
                noted: noted.unwrap_or(moment),
            },
        );
        Ok(Some(user))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_long_different_and_kept_as_a_digest() {
        let make = || {
            let user = UserId::new("ann").expect("name");
            new_token(user, None, None, Timestamp::UNIX_EPOCH).expect("token")
        };
        let (first, second) = (make(), make());
        assert_ne!(first.shown, second.shown);
        assert_eq!(first.shown.len(), PREFIX.len() + ID_CHARS + 1 + SECRET_BYTES * 2);
        assert!(first.shown.starts_with(&format!("{PREFIX}{}_", first.token.id)));
        assert_eq!(first.sha256, sha256(&first.shown));
        assert!(new_token(UserId::admin(), None, None, Timestamp::UNIX_EPOCH).is_err());
    }
}
