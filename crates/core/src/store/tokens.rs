//! API tokens. What is shown to the user is never kept: only its SHA-256.

use async_trait::async_trait;
use jiff::Timestamp;

use crate::error::Result;
use crate::user::UserId;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    /// Short, public, and part of the token itself: names it in lists and for revoking.
    pub id: String,
    pub user: UserId,
    /// What it is for, in the words of whoever made it.
    pub label: Option<String>,
    pub created_at: Timestamp,
    pub expires_at: Option<Timestamp>,
    pub last_used: Option<Timestamp>,
    pub revoked_at: Option<Timestamp>,
}

/// The one store whose methods have no owner: it says who the owner is.
#[async_trait]
pub trait TokenStore: Send + Sync {
    async fn add(&self, token: &Token, sha256: [u8; 32]) -> Result<()>;

    /// Also those that are revoked or have expired: the caller decides what they are worth.
    async fn find(&self, sha256: [u8; 32]) -> Result<Option<Token>>;

    /// All, in the order they were made.
    async fn list(&self) -> Result<Vec<Token>>;

    /// The token as it is then; revoking twice keeps the first time. `None` if there is none of that id.
    async fn revoke(&self, id: &str, now: Timestamp) -> Result<Option<Token>>;

    /// Notes a use; an earlier one than is known changes nothing.
    async fn used(&self, id: &str, at: Timestamp) -> Result<()>;
}
