//! Conversations.

mod record;

use std::sync::Arc;

use crate::contract::{
    Conversation, ConversationState, ConversationStore, Exchange, Message, MessageCursor, Page, StoredAnswer,
};
use async_trait::async_trait;
use jiff::Timestamp;
use tribune_core::{Result, UserId};
use uuid::Uuid;

use crate::connection::Statement;
use crate::database::Database;
use crate::value::{Row, json};
use crate::{MAX_PAGE, one_more};
use record::Record;

pub(crate) struct Conversations {
    database: Arc<Database>,
}

impl Conversations {
    pub(crate) fn new(database: Arc<Database>) -> Self {
        Self { database }
    }
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
        let rows = self.database.read(list_statement(owner, limit, after)).await?;
        let limit = limit.min(MAX_PAGE);
        let items = rows.iter().take(limit).map(conversation).collect::<Result<Vec<_>>>()?;
        let next = if rows.len() > limit {
            items.last().map(|last| (last.last_activity, last.id)).or(after)
        } else {
            None
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
        message_page(with_message(&rows)?, limit, before).map(Some)
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

fn list_statement(owner: &UserId, limit: usize, after: Option<(Timestamp, Uuid)>) -> Statement {
    macro_rules! listing {
        ($rest:literal) => {
            concat!(
                "SELECT id, created_at, last_activity, message_count, preview FROM conversations WHERE owner = $1 ",
                $rest,
                "ORDER BY last_activity DESC, id DESC LIMIT $2"
            )
        };
    }
    match after {
        None => Statement::new(listing!("")).bind(owner).bind(one_more(limit)),
        Some((active, id)) => Statement::new(listing!("AND (last_activity, id) < ($3, $4) "))
            .bind(owner)
            .bind(one_more(limit))
            .bind(active)
            .bind(id),
    }
}

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
    Ok(StoredAnswer {
        conversation: row.uuid("conversation")?,
        answer: message(row)?,
    })
}

fn message(row: &Row) -> Result<Message> {
    Ok(Message {
        id: row.uuid("id")?,
        role: row.role("role")?,
        content: row.text("content")?,
        created_at: row.time("created_at")?,
    })
}

fn conversation(row: &Row) -> Result<Conversation> {
    Ok(Conversation {
        id: row.uuid("id")?,
        created_at: row.time("created_at")?,
        last_activity: row.time("last_activity")?,
        message_count: row.count("message_count")?,
        preview: row.maybe_text("preview")?,
    })
}

fn state(rows: &[Row]) -> Result<Option<ConversationState>> {
    let Some(first) = rows.first() else {
        return Ok(None);
    };
    let recent = with_message(rows)?;
    Ok(Some(ConversationState {
        id: first.uuid("conversation")?,
        last_activity: first.time("last_activity")?,
        recent: recent.into_iter().map(message).collect::<Result<_>>()?,
        pending: first.texts("pending")?,
    }))
}

fn with_message(rows: &[Row]) -> Result<Vec<&Row>> {
    let mut found = Vec::with_capacity(rows.len());
    for row in rows {
        if row.maybe_text("id")?.is_some() {
            found.push(row);
        }
    }
    Ok(found)
}

/// `rows` are oldest first; if they are more than wanted, the oldest only shows that there are more.
fn message_page(rows: Vec<&Row>, limit: usize, before: Option<MessageCursor>) -> Result<Page<Message, MessageCursor>> {
    let more = rows.len().saturating_sub(limit.min(MAX_PAGE));
    let given = rows.get(more..).unwrap_or_default();
    let next = match (more, given.first()) {
        (0, _) => None,
        (_, Some(oldest)) => Some(oldest.integer("position")?),
        (_, None) => before,
    };
    Ok(Page {
        items: given.iter().map(|row| message(row)).collect::<Result<_>>()?,
        next,
    })
}
