//! Conversations with the agent.

use async_trait::async_trait;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::Page;
use crate::error::Result;
use crate::user::UserId;

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

/// What a next question in a conversation needs of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConversationState {
    pub id: Uuid,
    pub last_activity: Timestamp,
    /// The last messages, oldest first.
    pub recent: Vec<Message>,
    /// What the last answer asked the user to confirm, as the agent noted it down.
    pub pending: Vec<String>,
}

/// A question and its answer: kept together or not at all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exchange {
    /// Made, with the question's time as its beginning, if it is not there yet.
    pub conversation: Uuid,
    pub question: Message,
    pub answer: Message,
    /// Replaces what was noted before.
    pub pending: Vec<String>,
    /// What the caller named the request, so that sending it twice does not keep it twice.
    pub request_key: Option<String>,
}

/// The answer that a request was given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answered {
    pub conversation: Uuid,
    pub answer: Message,
}

/// The place of a message among all of its conversation.
pub type MessageCursor = i64;

#[async_trait]
pub trait ConversationStore: Send + Sync {
    /// The conversation in which something was last said, with its last `recent` messages.
    async fn latest(&self, owner: &UserId, recent: usize) -> Result<Option<ConversationState>>;

    /// `None` if the owner has no such conversation.
    async fn state(&self, owner: &UserId, id: Uuid, recent: usize) -> Result<Option<ConversationState>>;

    /// What a request of this key was answered with, if it was.
    async fn answered(&self, owner: &UserId, request_key: &str) -> Result<Option<Answered>>;

    /// Takes off a conversation what waits there for the user's word, if it is still exactly this. Of all who try,
    /// in however many processes, one succeeds.
    async fn take_pending(&self, owner: &UserId, id: Uuid, pending: &[String]) -> Result<bool>;

    /// Keeps an exchange in one transaction. Exchanges of one conversation never interleave. Gives back what
    /// was kept: this exchange, or the one that was kept under its request key before. Fails with `NotFound` if
    /// the conversation is another user's.
    async fn record(&self, owner: &UserId, exchange: &Exchange) -> Result<Answered>;

    /// Last active first; `after` is the last one that was given.
    async fn list(
        &self,
        owner: &UserId,
        limit: usize,
        after: Option<(Timestamp, Uuid)>,
    ) -> Result<Page<Conversation, (Timestamp, Uuid)>>;

    /// The last `limit` messages before the cursor, oldest first; `next` leads to those before them. `None` if
    /// the owner has no such conversation.
    async fn messages(
        &self,
        owner: &UserId,
        id: Uuid,
        limit: usize,
        before: Option<MessageCursor>,
    ) -> Result<Option<Page<Message, MessageCursor>>>;
}
