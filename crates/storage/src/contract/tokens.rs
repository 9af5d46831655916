//! API tokens. Only their SHA-256 is stored.

use async_trait::async_trait;
use jiff::Timestamp;

use tribune_core::Result;
use tribune_core::UserId;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    /// Short, public, and part of the token itself: identifies it in lists and when it is revoked.
    pub id: String,
    pub user: UserId,
    /// A description by its creator.
    pub label: Option<String>,
    pub created_at: Timestamp,
    pub expires_at: Option<Timestamp>,
    pub last_used: Option<Timestamp>,
    pub revoked_at: Option<Timestamp>,
}

/// The one store whose methods take no owner: it finds the owner.
#[async_trait]
pub trait TokenStore: Send + Sync {
    async fn add(&self, token: &Token, sha256: [u8; 32]) -> Result<()>;

    /// Includes revoked and expired tokens; the caller decides.
    async fn find(&self, sha256: [u8; 32]) -> Result<Option<Token>>;

    /// All tokens in order of creation.
    async fn list(&self) -> Result<Vec<Token>>;

    /// Returns the revoked token; a second revocation keeps the first time. `None` if the id is unknown.
    async fn revoke(&self, id: &str, now: Timestamp) -> Result<Option<Token>>;

    /// Records a use; an earlier time than the recorded one changes nothing.
    async fn record_use(&self, id: &str, at: Timestamp) -> Result<()>;
}
