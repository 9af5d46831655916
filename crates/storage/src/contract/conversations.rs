//! Conversations with the agent.

use async_trait::async_trait;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::Page;
use tribune_core::Result;
use tribune_core::UserId;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    User,
    Assistant,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Message {
    pub id: Uuid,
    pub role: Role,
    pub content: String,
    pub created_at: Timestamp,
}

/// A conversation in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Conversation {
    pub id: Uuid,
    pub created_at: Timestamp,
    pub last_activity: Timestamp,
    pub message_count: u64,
    /// The beginning of the first question, at most 100 characters.
    pub preview: Option<String>,
}

/// What the next question in a conversation needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConversationState {
    pub id: Uuid,
    pub last_activity: Timestamp,
    /// The last messages, oldest first.
    pub recent: Vec<Message>,
    /// Calls that wait for the user's confirmation, as the agent wrote them.
    pub pending: Vec<String>,
}

/// A question and its answer, stored together or not at all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exchange {
    /// Created at the question's time if it does not exist.
    pub conversation: Uuid,
    pub question: Message,
    pub answer: Message,
    /// Replaces the calls that waited before.
    pub pending: Vec<String>,
    /// The caller's name for the request, so that sending it twice does not store it twice.
    pub request_key: Option<String>,
}

/// The stored answer to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredAnswer {
    pub conversation: Uuid,
    pub answer: Message,
}

/// The position of a message in its conversation.
pub type MessageCursor = i64;

#[async_trait]
pub trait ConversationStore: Send + Sync {
    /// The most recently active conversation, with its last `recent` messages.
    async fn latest(&self, owner: &UserId, recent: usize) -> Result<Option<ConversationState>>;

    /// `None` if the owner has no such conversation.
    async fn state(&self, owner: &UserId, id: Uuid, recent: usize) -> Result<Option<ConversationState>>;

    /// The stored answer to a request with this key.
    async fn answer_to(&self, owner: &UserId, request_key: &str) -> Result<Option<StoredAnswer>>;

    /// Removes the calls that wait for confirmation, if they are still exactly these. Of all callers, in any number of
    /// processes, one succeeds.
    async fn take_pending(&self, owner: &UserId, id: Uuid, pending: &[String]) -> Result<bool>;

    /// Stores an exchange in one transaction. Exchanges of one conversation never interleave. Returns what is stored:
    /// this exchange, or an earlier one with the same request key. Fails with `NotFound` if the conversation belongs to
    /// another user.
    async fn record(&self, owner: &UserId, exchange: &Exchange) -> Result<StoredAnswer>;

    /// Most recently active first, after the cursor.
    async fn list(
        &self,
        owner: &UserId,
        limit: usize,
        after: Option<(Timestamp, Uuid)>,
    ) -> Result<Page<Conversation, (Timestamp, Uuid)>>;

    /// The last `limit` messages before the cursor, oldest first; `next` leads to earlier ones. `None` if the owner has
    /// no such conversation.
    async fn messages(
        &self,
        owner: &UserId,
        id: Uuid,
        limit: usize,
        before: Option<MessageCursor>,
    ) -> Result<Option<Page<Message, MessageCursor>>>;
}
