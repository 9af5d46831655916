//! API tokens: creating them, and finding the user of one.

#![allow(clippy::disallowed_methods, reason = "a secret must be unpredictable")]

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use jiff::Timestamp;
use parking_lot::Mutex;
use sha2::{Digest, Sha256};
use tribune_core::{Clock, Error, Result, UserId};
use tribune_storage::{Token, Tokens};
use uuid::Uuid;

/// Finds the user of a token.
#[async_trait]
pub trait Authenticator: Send + Sync {
    /// `None` for a token that is unknown, expired or revoked; an error if it cannot be checked now.
    async fn authenticate(&self, token: &str) -> Result<Option<UserId>>;
}

/// Every token begins with this, so that one found in a log or a repository can be recognised.
const PREFIX: &str = "tribune_";
const ID_CHARS: usize = 8;
const MAX_TOKEN_CHARS: usize = 256;

/// A token that was just created: the only time that it can be shown.
pub struct NewToken {
    pub shown: String,
    pub token: Token,
    pub sha256: [u8; 32],
}

/// Creates a token for a user.
pub fn new_token(
    user: UserId,
    label: Option<String>,
    expires_at: Option<Timestamp>,
    now: Timestamp,
) -> Result<NewToken> {
    if user == UserId::admin() {
        return Err(Error::invalid_argument(
            "The name `admin` is reserved for the token of server.admin_token; choose another name",
        ));
    }
    let random = || Uuid::new_v4().simple().to_string();
    let mut id = random();
    id.truncate(ID_CHARS);
    // 244 random bits need no slow hash.
    let shown = format!("{PREFIX}{id}_{}{}", random(), random());
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

pub(crate) fn sha256(text: &str) -> [u8; 32] {
    Sha256::digest(text.as_bytes()).into()
}

/// Checks API tokens against the store, and remembers the result for a moment.
pub struct ApiTokens {
    store: Tokens,
    clock: Arc<dyn Clock>,
    /// Tokens that were valid a moment ago, by digest.
    valid: Mutex<HashMap<[u8; 32], ValidToken>>,
}

#[derive(Clone)]
struct ValidToken {
    user: UserId,
    checked_at: Instant,
    use_recorded_at: Instant,
}

impl ApiTokens {
    /// A revoked token is refused after this long at the latest.
    const TRUSTED_FOR: Duration = Duration::from_secs(1);
    /// The last use is recorded at most this often.
    const USE_RECORDED_EVERY: Duration = Duration::from_secs(60);
    const MAX_REMEMBERED: usize = 10_000;

    pub fn new(store: Tokens, clock: Arc<dyn Clock>) -> Self {
        Self {
            store,
            clock,
            valid: Mutex::default(),
        }
    }

    /// In the background: the caller does not wait for it, and it may fail.
    fn record_use(&self, id: String) {
        let (store, now) = (self.store.clone(), self.clock.now());
        tokio::spawn(async move {
            if let Err(error) = store.record_use(&id, now).await {
                tracing::debug!(%error, "could not record the use of a token");
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
        let known = self.valid.lock().get(&sha256).cloned();
        if let Some(known) = &known
            && moment.saturating_duration_since(known.checked_at) < Self::TRUSTED_FOR
        {
            return Ok(Some(known.user.clone()));
        }
        let found = self.store.find(sha256).await?;
        let now = self.clock.now();
        let valid = found.filter(|token| token.revoked_at.is_none() && token.expires_at.is_none_or(|end| now < end));
        let Some(token) = valid else {
            self.valid.lock().remove(&sha256);
            return Ok(None);
        };
        let recorded_at = known
            .map(|known| known.use_recorded_at)
            .filter(|at| moment.saturating_duration_since(*at) < Self::USE_RECORDED_EVERY);
        if recorded_at.is_none() {
            self.record_use(token.id);
        }
        let mut remembered = self.valid.lock();
        if remembered.len() >= Self::MAX_REMEMBERED {
            remembered.clear();
        }
        remembered.insert(
            sha256,
            ValidToken {
                user: token.user.clone(),
                checked_at: moment,
                use_recorded_at: recorded_at.unwrap_or(moment),
            },
        );
        Ok(Some(token.user))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_long_and_distinct() {
        let make = || {
            let user = UserId::new("ann").expect("name");
            new_token(user, None, None, Timestamp::UNIX_EPOCH).expect("token")
        };
        let (first, second) = (make(), make());
        assert_ne!(first.shown, second.shown);
        assert_eq!(first.shown.len(), PREFIX.len() + ID_CHARS + 1 + 64);
        assert!(first.shown.starts_with(&format!("{PREFIX}{}_", first.token.id)));
        assert_eq!(first.sha256, sha256(&first.shown));
        assert!(new_token(UserId::admin(), None, None, Timestamp::UNIX_EPOCH).is_err());
    }
}
