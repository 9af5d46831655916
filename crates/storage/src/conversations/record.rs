//! Keeping a question and its answer.

use async_trait::async_trait;
use tribune_core::{Error, Result, UserId};

use super::{Exchange, StoredAnswer, answer_statement, stored_answer};
use crate::connection::{Connection, Statement, Write};
use crate::error::{Failure, Reason};
use crate::value::{Value, truncate_time};
use crate::{MAX_PENDING_CALLS, check_key};

const PREVIEW_CHARS: usize = 100;

pub(super) struct Record {
    owner: UserId,
    exchange: Exchange,
    most: u32,
}

impl Record {
    /// Times are truncated here, so that the returned exchange equals the stored one.
    pub(super) fn new(owner: &UserId, exchange: &Exchange, most: u32) -> Result<Self> {
        if let Some(key) = &exchange.request_key {
            check_key("the name of a request", key)?;
        }
        let mut exchange = exchange.clone();
        exchange.question.created_at = truncate_time(exchange.question.created_at)?;
        exchange.answer.created_at = truncate_time(exchange.answer.created_at)?;
        Ok(Self { owner: owner.clone(), exchange, most })
    }

    /// Makes the conversation or goes on with it, and holds it until the transaction ends: exchanges of one
    /// conversation wait for each other here. Gives the number of its messages, these two included; `None` if the
    /// conversation is another user's.
    async fn claim(&self, connection: &mut Connection<'_>) -> Result<Option<i64>, Failure> {
        let Exchange { question, answer, .. } = &self.exchange;
        let statement = Statement::new(
            "INSERT INTO conversations (id, owner, created_at, last_activity, message_count, preview) \
             VALUES ($1, $2, $3, $4, 2, $5) \
             ON CONFLICT (id) DO UPDATE SET message_count = conversations.message_count + 2, \
             last_activity = CASE WHEN excluded.last_activity > conversations.last_activity \
             THEN excluded.last_activity ELSE conversations.last_activity END \
             WHERE conversations.owner = excluded.owner RETURNING message_count",
        )
        .bind(self.exchange.conversation)
        .bind(&self.owner)
        .bind(question.created_at)
        .bind(answer.created_at.max(question.created_at))
        .bind(preview(&question.content));
        let row = connection.fetch_one(statement).await?;
        Ok(row.map(|row| row.get("message_count")).transpose()?)
    }

    async fn add_messages(&self, count: i64, connection: &mut Connection<'_>) -> Result<(), Failure> {
        let mut statement = Statement::new(
            "INSERT INTO messages (conversation, position, id, role, content, created_at, trace, looked_up) \
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8), ($9, $10, $11, $12, $13, $14, $15, $16)",
        );
        let messages = [(count - 1, &self.exchange.question), (count, &self.exchange.answer)];
        for (position, message) in messages {
            statement = statement
                .bind(self.exchange.conversation)
                .bind(position)
                .bind(message.id)
                .bind(message.role)
                .bind(message.content.as_str())
                .bind(message.created_at)
                .bind(message.trace.clone())
                .bind(Value::Integer(message.looked_up.map(i64::from)));
        }
        connection.fetch(statement).await.map(drop)
    }

    /// Also deletes what has expired, and the oldest calls of the conversation beyond the limit.
    async fn add_pending(&self, position: i64, connection: &mut Connection<'_>) -> Result<(), Failure> {
        let Exchange { conversation, pending, answer, .. } = &self.exchange;
        if pending.is_empty() {
            return Ok(());
        }
        for asked in pending {
            let statement = Statement::new(
                "INSERT INTO confirmations (id, conversation, position, call, expires_at) VALUES ($1, $2, $3, $4, $5)",
            );
            let statement = statement.bind(asked.id).bind(*conversation).bind(position);
            connection.fetch(statement.bind(asked.call.as_str()).bind(asked.expires_at)).await?;
        }
        let delete = Statement::new(
            "DELETE FROM confirmations WHERE expires_at <= $1 OR conversation = $2 AND id NOT IN \
             (SELECT id FROM confirmations WHERE conversation = $2 ORDER BY id DESC LIMIT $3)",
        );
        let delete = delete.bind(answer.created_at).bind(*conversation).bind(MAX_PENDING_CALLS as i64);
        connection.fetch(delete).await.map(drop)
    }

    /// Deletes the owner's conversations beyond the limit. Those of earlier versions may be many: not all at once.
    async fn forget_oldest(&self, connection: &mut Connection<'_>) -> Result<(), Failure> {
        let sql = "SELECT id FROM conversations WHERE owner = $1 AND id <> $2 \
             ORDER BY last_activity DESC, id DESC LIMIT 20 OFFSET $3";
        let oldest = Statement::composed(format!("{sql}{}", connection.locking()), Vec::new());
        let oldest = oldest.bind(&self.owner).bind(self.exchange.conversation).bind(i64::from(self.most) - 1);
        for row in connection.fetch(oldest).await? {
            let id = row.uuid("id")?;
            for delete in [
                "DELETE FROM requests WHERE conversation = $1",
                "DELETE FROM confirmations WHERE conversation = $1",
                "DELETE FROM messages WHERE conversation = $1",
                "DELETE FROM conversations WHERE id = $1",
            ] {
                connection.fetch(Statement::new(delete).bind(id)).await?;
            }
        }
        Ok(())
    }

    /// Fails if the same request was answered by another process meanwhile; made again, this one will find that.
    async fn add_request(&self, key: &str, position: i64, connection: &mut Connection<'_>) -> Result<(), Failure> {
        let statement = Statement::new(
            "INSERT INTO requests (owner, request_key, conversation, position) VALUES ($1, $2, $3, $4) \
             ON CONFLICT (owner, request_key) DO NOTHING RETURNING position",
        )
        .bind(&self.owner)
        .bind(key)
        .bind(self.exchange.conversation)
        .bind(position);
        if connection.fetch(statement).await?.is_empty() {
            let error = Error::unavailable("the same request is already in progress: try again in a moment");
            let reason = Reason::Conflict;
            return Err(Failure { error, reason });
        }
        Ok(())
    }
}

#[async_trait]
impl Write for Record {
    type Output = StoredAnswer;
    const SINGLE: bool = false;

    async fn run(&self, connection: &mut Connection<'_>) -> Result<StoredAnswer, Failure> {
        let key = self.exchange.request_key.as_deref();
        if let Some(key) = key
            && let Some(row) = connection.fetch_one(answer_statement(&self.owner, key)).await?
        {
            return Ok(stored_answer(&row)?);
        }
        let Some(count) = self.claim(connection).await? else {
            return Err(Error::not_found("no such conversation: omit the id to start a new one").into());
        };
        self.add_messages(count, connection).await?;
        self.add_pending(count, connection).await?;
        if let Some(key) = key {
            self.add_request(key, count, connection).await?;
        }
        let is_new = count == 2;
        if is_new && self.most > 0 {
            self.forget_oldest(connection).await?;
        }
        Ok(StoredAnswer { conversation: self.exchange.conversation, answer: self.exchange.answer.clone() })
    }
}

fn preview(question: &str) -> String {
    question.chars().take(PREVIEW_CHARS).collect()
}
