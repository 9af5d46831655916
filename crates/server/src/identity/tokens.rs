//! API tokens.

#![allow(clippy::disallowed_methods, reason = "a secret must be unpredictable")]

use jiff::Timestamp;
use tribune_core::{Error, Result, Scopes, UserId};
use tribune_oauth::{new_secret, sha256};
use tribune_storage::Token;
use uuid::Uuid;

/// Every token begins with this, so that one found in a log or a repository can be recognised.
pub(super) const PREFIX: &str = "tribune_";
const ID_CHARS: usize = 8;

/// A token that was just created: the only time that it can be shown.
pub struct NewToken {
    pub shown: String,
    pub token: Token,
    pub sha256: [u8; 32],
}

/// What a token is for.
#[derive(Debug, Clone, Default)]
pub struct TokenUse {
    pub label: Option<String>,
    pub scopes: Scopes,
    /// The one profile that it opens; `None` for all.
    pub profile: Option<String>,
    pub expires_at: Option<Timestamp>,
}

/// Creates a token for a user.
pub fn new_token(user: UserId, usage: TokenUse, now: Timestamp) -> Result<NewToken> {
    if user == UserId::admin() {
        return Err(Error::invalid_argument(
            "The name `admin` is reserved for the token of server.admin_token; choose another name",
        ));
    }
    let mut id = Uuid::new_v4().simple().to_string();
    id.truncate(ID_CHARS);
    let shown = new_secret(&format!("{PREFIX}{id}_"));
    Ok(NewToken {
        sha256: sha256(&shown),
        shown,
        token: Token {
            id,
            user,
            label: usage.label,
            scopes: Some(usage.scopes.names()),
            profile: usage.profile,
            created_at: now,
            expires_at: usage.expires_at,
            last_used: None,
            revoked_at: None,
        },
    })
}

/// What a token allows.
pub(crate) fn scopes(token: &Token) -> Scopes {
    match &token.scopes {
        Some(scopes) => Scopes::named(scopes.iter().map(String::as_str)),
        None => Scopes::USUAL,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_long_and_distinct() {
        let make = || {
            let user = UserId::new("ann").expect("name");
            new_token(user, TokenUse::default(), Timestamp::UNIX_EPOCH).expect("token")
        };
        let (first, second) = (make(), make());
        assert_ne!(first.shown, second.shown);
        assert_eq!(first.shown.len(), PREFIX.len() + ID_CHARS + 1 + 64);
        assert!(first.shown.starts_with(&format!("{PREFIX}{}_", first.token.id)));
        assert_eq!(first.sha256, sha256(&first.shown));
        assert!(new_token(UserId::admin(), TokenUse::default(), Timestamp::UNIX_EPOCH).is_err());
    }
}
