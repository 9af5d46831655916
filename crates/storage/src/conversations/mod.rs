//! Conversations with the agent.

mod record;
mod take;

use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use tribune_core::{Result, UserId};
use uuid::Uuid;

use crate::connection::Statement;
use crate::database::Database;
use crate::value::{Row, Value, unreadable, with_id};
use crate::{MAX_PAGE, Page, one_more};
use record::Record;
use take::Take;

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
    /// What tools did for this answer, in lines for the model.
    #[serde(skip)]
    pub trace: Option<String>,
    /// Whether a tool answered. `None` for questions, and for answers of older versions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub looked_up: Option<bool>,
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
    /// The calls that the last message asks about, except those that were decided.
    pub pending: Vec<PendingCall>,
}

/// A call that waits for the user's decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingCall {
    /// A version 7 UUID: ids grow with time.
    pub id: Uuid,
    /// As the agent wrote it.
    pub call: String,
    pub expires_at: Timestamp,
}

/// A question and its answer, stored together or not at all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exchange {
    /// Created at the question's time if it does not exist.
    pub conversation: Uuid,
    pub question: Message,
    pub answer: Message,
    /// The calls that the answer asks about.
    pub pending: Vec<PendingCall>,
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

    /// Removes calls that wait for a decision, and returns them. Fails with `NotFound`, and
    /// removes none, unless all of them wait in this conversation at this time. Of all callers, in any number of
    /// processes, one succeeds.
    async fn take_pending(&self, owner: &UserId, id: Uuid, calls: &[Uuid], now: Timestamp) -> Result<Vec<PendingCall>>;

    /// Stores an exchange in one transaction. Exchanges of one conversation never interleave. A conversation beyond the
    /// owner's limit replaces the one that was inactive for the longest time. Returns what is stored: this exchange, or an
    /// earlier one with the same request key. Fails with `NotFound` if the conversation belongs to
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
    /// The most conversations of one owner; 0 limits nothing.
    pub(crate) most: u32,
}

#[async_trait]
impl ConversationStore for Conversations {
    async fn latest(&self, owner: &UserId, recent: usize) -> Result<Option<ConversationState>> {
        let statement = Statement::new(LATEST).bind(owner).bind(one_more(recent) - 1);
        self.read_state(statement).await
    }

    async fn state(&self, owner: &UserId, id: Uuid, recent: usize) -> Result<Option<ConversationState>> {
        let statement = Statement::new(STATE).bind(owner).bind(one_more(recent) - 1).bind(id);
        self.read_state(statement).await
    }

    async fn answer_to(&self, owner: &UserId, request_key: &str) -> Result<Option<StoredAnswer>> {
        let row = self.database.read_one(answer_statement(owner, request_key)).await?;
        row.as_ref().map(stored_answer).transpose()
    }

    async fn take_pending(&self, owner: &UserId, id: Uuid, calls: &[Uuid], now: Timestamp) -> Result<Vec<PendingCall>> {
        let mut calls = calls.to_vec();
        // In the same order everywhere, so that two that overlap cannot wait for each other.
        calls.sort_unstable();
        self.database.write(Take { owner: owner.clone(), conversation: id, calls, now }).await
    }

    async fn record(&self, owner: &UserId, exchange: &Exchange) -> Result<StoredAnswer> {
        let record = Record::new(owner, exchange, self.most)?;
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

impl Conversations {
    async fn read_state(&self, statement: Statement) -> Result<Option<ConversationState>> {
        let rows = self.database.read(statement).await?;
        let Some(first) = rows.first() else {
            return Ok(None);
        };
        let id = first.uuid("conversation")?;
        let asked = Statement::new(
            "SELECT id, call, expires_at FROM confirmations WHERE conversation = $1 AND position = $2 ORDER BY id",
        );
        let asked = asked.bind(id).bind(first.get::<i64>("message_count")?);
        let pending = self.database.read(asked).await?;
        Ok(Some(ConversationState {
            id,
            last_activity: first.time("last_activity")?,
            recent: with_id(&rows)?.into_iter().map(message).collect::<Result<_>>()?,
            pending: pending.iter().map(pending_call).collect::<Result<_>>()?,
        }))
    }
}

fn pending_call(row: &Row) -> Result<PendingCall> {
    Ok(PendingCall { id: row.uuid("id")?, call: row.get("call")?, expires_at: row.time("expires_at")? })
}

/// Both statements give a row for each message, or one without any, or none if there is no such conversation.
macro_rules! columns {
    () => {
        "messages.position, messages.id, messages.role, messages.content, messages.created_at, messages.trace, \
         messages.looked_up"
    };
}

macro_rules! state_of {
    ($conversation:literal) => {
        concat!(
            "WITH chosen AS (SELECT id, last_activity, message_count FROM conversations WHERE owner = $1 ",
            $conversation,
            ") SELECT chosen.id AS conversation, chosen.last_activity, chosen.message_count, said.* \
             FROM chosen LEFT JOIN (SELECT ",
            columns!(),
            " FROM messages \
             WHERE conversation = (SELECT id FROM chosen) ORDER BY position DESC LIMIT $2) AS said ON TRUE \
             ORDER BY said.position"
        )
    };
}

const LATEST: &str = state_of!("ORDER BY last_activity DESC, id DESC LIMIT 1");
const STATE: &str = state_of!("AND id = $3");

const MESSAGES: &str = concat!(
    "SELECT said.* FROM conversations LEFT JOIN (SELECT ",
    columns!(),
    " FROM messages WHERE conversation = $2 AND position < $3 ORDER BY position DESC LIMIT $4) AS said ON TRUE \
     WHERE conversations.owner = $1 AND conversations.id = $2 ORDER BY said.position"
);

const LIST: &str = "SELECT id, created_at, last_activity, message_count, preview FROM conversations \
     WHERE owner = $1 AND (last_activity, id) < ($2, $3) ORDER BY last_activity DESC, id DESC LIMIT $4";

fn answer_statement(owner: &UserId, request_key: &str) -> Statement {
    Statement::new(concat!(
        "SELECT messages.conversation, ",
        columns!(),
        " FROM requests JOIN messages ON messages.conversation = requests.conversation \
         AND messages.position = requests.position WHERE requests.owner = $1 AND requests.request_key = $2"
    ))
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
        trace: row.get("trace")?,
        looked_up: row.get::<Option<i64>>("looked_up")?.map(|number| number != 0),
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
