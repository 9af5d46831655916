//! Taking calls that wait for a decision.

use async_trait::async_trait;
use jiff::Timestamp;
use tribune_core::{Error, UserId};
use uuid::Uuid;

use super::{PendingCall, pending_call};
use crate::connection::{Connection, Statement, Write};
use crate::error::Failure;

pub(super) struct Take {
    pub(super) owner: UserId,
    pub(super) conversation: Uuid,
    pub(super) calls: Vec<Uuid>,
    pub(super) now: Timestamp,
}

#[async_trait]
impl Write for Take {
    type Output = Vec<PendingCall>;
    const SINGLE: bool = false;

    async fn run(&self, connection: &mut Connection<'_>) -> Result<Vec<PendingCall>, Failure> {
        let mut taken = Vec::with_capacity(self.calls.len());
        for id in &self.calls {
            let statement = Statement::new(
                "DELETE FROM confirmations WHERE id = $1 AND expires_at > $2 AND conversation = \
                 (SELECT id FROM conversations WHERE id = $3 AND owner = $4) RETURNING id, call, expires_at",
            );
            let statement = statement.bind(*id).bind(self.now).bind(self.conversation).bind(&self.owner);
            let row = connection.fetch_one(statement).await?;
            let row = row.ok_or_else(|| Error::not_found("no such call waits for a decision"))?;
            taken.push(pending_call(&row)?);
        }
        Ok(taken)
    }
}
