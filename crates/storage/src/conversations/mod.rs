//! Conversations with the agent.

mod record;

use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use tribune_core::{Result, UserId};
use uuid::Uuid;

use crate::connection::Statement;
use crate::database::Database;
use crate::value::{Row, Value, json, unreadable, with_id};
use crate::{MAX_PAGE, Page, one_more};
use record::Record;

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

/// Every method takes the owner first and touches only that owner's conversations. A trait, so that the agent can be tested
/// without a database.
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

pub(crate) struct Conversations {
    pub(crate) database: Arc<Database>,
}

#[async_trait]
impl ConversationStore for Conversations {
    async fn latest(&self, owner: &UserId, recent: usize) -> Result<Option<ConversationState>> {
        let statement = Statement::new(LATEST).bind(owner).bind(one_more(recent) - 1);
        state(&self.database.read(statement).await?)
    }

    async fn state(&self, owner: &UserId, id: Uuid, recent: usize) -> Result<Option<ConversationState>> {
        let statement = Statement::new(STATE).bind(owner).bind(one_more(recent) - 1).bind(id);
        state(&self.database.read(statement).await?)
    }

    async fn answer_to(&self, owner: &UserId, request_key: &str) -> Result<Option<StoredAnswer>> {
        let row = self.database.read_one(answer_statement(owner, request_key)).await?;
        row.as_ref().map(stored_answer).transpose()
    }

    async fn take_pending(&self, owner: &UserId, id: Uuid, pending: &[String]) -> Result<bool> {
        let statement = Statement::new(
            "UPDATE conversations SET pending = $4 WHERE owner = $1 AND id = $2 AND pending = $3 RETURNING id",
        );
        let statement = statement.bind(owner).bind(id).bind(json(pending)?).bind(json(&[])?);
        Ok(self.database.write(statement).await?.is_some())
    }

    async fn record(&self, owner: &UserId, exchange: &Exchange) -> Result<StoredAnswer> {
        let record = Record::new(owner, exchange)?;
        self.database.write(record).await
    }

    async fn list(
        &self,
        owner: &UserId,
        limit: usize,
        after: Option<(Timestamp, Uuid)>,
    ) -> Result<Page<Conversation, (Timestamp, Uuid)>> {
        let (active, id) = after.unwrap_or((Timestamp::MAX, Uuid::max()));
        let statement = Statement::new(LIST).bind(owner).bind(active).bind(id).bind(one_more(limit));
        let rows = self.database.read(statement).await?;
        let limit = limit.min(MAX_PAGE);
        let items = rows.iter().take(limit).map(conversation).collect::<Result<Vec<_>>>()?;
        let next = match rows.len() > limit {
            true => items.last().map(|last| (last.last_activity, last.id)).or(after),
            false => None,
        };
        Ok(Page { items, next })
    }

    async fn messages(
        &self,
        owner: &UserId,
        id: Uuid,
        limit: usize,
        before: Option<MessageCursor>,
    ) -> Result<Option<Page<Message, MessageCursor>>> {
        let statement = Statement::new(MESSAGES)
            .bind(owner)
            .bind(id)
            .bind(before.unwrap_or(MessageCursor::MAX))
            .bind(one_more(limit));
        let rows = self.database.read(statement).await?;
        if rows.is_empty() {
            return Ok(None);
        }
        message_page(with_id(&rows)?, limit, before).map(Some)
    }
}

/// Both statements give a row for each message, or one without any, or none if there is no such conversation.
macro_rules! state_of {
    ($conversation:literal) => {
        concat!(
            "WITH chosen AS (SELECT id, last_activity, pending FROM conversations WHERE owner = $1 ",
            $conversation,
            ") SELECT chosen.id AS conversation, chosen.last_activity, chosen.pending, \
             said.position, said.id, said.role, said.content, said.created_at \
             FROM chosen LEFT JOIN (SELECT position, id, role, content, created_at FROM messages \
             WHERE conversation = (SELECT id FROM chosen) ORDER BY position DESC LIMIT $2) AS said ON TRUE \
             ORDER BY said.position"
        )
    };
}

const LATEST: &str = state_of!("ORDER BY last_activity DESC, id DESC LIMIT 1");
const STATE: &str = state_of!("AND id = $3");

const MESSAGES: &str = "SELECT said.position, said.id, said.role, said.content, said.created_at FROM conversations \
     LEFT JOIN (SELECT position, id, role, content, created_at FROM messages \
     WHERE conversation = $2 AND position < $3 ORDER BY position DESC LIMIT $4) AS said ON TRUE \
     WHERE conversations.owner = $1 AND conversations.id = $2 ORDER BY said.position";

const LIST: &str = "SELECT id, created_at, last_activity, message_count, preview FROM conversations \
     WHERE owner = $1 AND (last_activity, id) < ($2, $3) ORDER BY last_activity DESC, id DESC LIMIT $4";

fn answer_statement(owner: &UserId, request_key: &str) -> Statement {
    Statement::new(
        "SELECT messages.conversation, messages.id, messages.role, messages.content, messages.created_at \
         FROM requests JOIN messages ON messages.conversation = requests.conversation \
         AND messages.position = requests.position WHERE requests.owner = $1 AND requests.request_key = $2",
    )
    .bind(owner)
    .bind(request_key)
}

fn stored_answer(row: &Row) -> Result<StoredAnswer> {
    Ok(StoredAnswer { conversation: row.uuid("conversation")?, answer: message(row)? })
}

impl From<Role> for Value {
    fn from(role: Role) -> Self {
        match role {
            Role::User => "user".into(),
            Role::Assistant => "assistant".into(),
        }
    }
}

fn message(row: &Row) -> Result<Message> {
    Ok(Message {
        id: row.uuid("id")?,
        role: match row.get::<String>("role")?.as_str() {
            "user" => Role::User,
            "assistant" => Role::Assistant,
            _ => return Err(unreadable("a role")),
        },
        content: row.get("content")?,
        created_at: row.time("created_at")?,
    })
}

fn conversation(row: &Row) -> Result<Conversation> {
    Ok(Conversation {
        id: row.uuid("id")?,
        created_at: row.time("created_at")?,
        last_activity: row.time("last_activity")?,
        message_count: row.count("message_count")?,
        preview: row.get("preview")?,
    })
}

fn state(rows: &[Row]) -> Result<Option<ConversationState>> {
    let Some(first) = rows.first() else {
        return Ok(None);
    };
    let recent = with_id(rows)?;
    Ok(Some(ConversationState {
        id: first.uuid("conversation")?,
        last_activity: first.time("last_activity")?,
        recent: recent.into_iter().map(message).collect::<Result<_>>()?,
        pending: first.texts("pending")?,
    }))
}

/// `rows` are oldest first; if they are more than wanted, the oldest only shows that there are more.
fn message_page(rows: Vec<&Row>, limit: usize, before: Option<MessageCursor>) -> Result<Page<Message, MessageCursor>> {
    let more = rows.len().saturating_sub(limit.min(MAX_PAGE));
    let given = rows.get(more..).unwrap_or_default();
    let next = match (more, given.first()) {
        (0, _) => None,
        (_, Some(oldest)) => Some(oldest.get("position")?),
        (_, None) => before,
    };
    Ok(Page { items: given.iter().map(|row| message(row)).collect::<Result<_>>()?, next })
}
