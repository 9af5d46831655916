//! Conversations in memory.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use jiff::Timestamp;
use tribune_core::{Error, Result, UserId};
use tribune_storage::{
    Conversation, ConversationState, ConversationStore, Exchange, Message, MessageCursor, Page, PendingCall,
    StoredAnswer,
};
use uuid::Uuid;

#[derive(Default)]
pub struct Memory {
    kept: Mutex<Vec<(UserId, Exchange)>>,
    /// Writes fail from now on.
    pub broken: AtomicBool,
}

impl Memory {
    pub fn exchanges(&self) -> Vec<Exchange> {
        let kept = self.kept.lock().expect("conversations");
        kept.iter().map(|(_, exchange)| exchange.clone()).collect()
    }

    fn find(&self, owner: &UserId, id: Option<Uuid>, recent: usize) -> Option<ConversationState> {
        let kept = self.kept.lock().expect("conversations");
        let own = |(user, _): &&(UserId, Exchange)| user == owner;
        let id = id.or_else(|| kept.iter().rfind(own).map(|(_, exchange)| exchange.conversation))?;
        let exchanges: Vec<&Exchange> = kept
            .iter()
            .filter(own)
            .map(|(_, exchange)| exchange)
            .filter(|exchange| exchange.conversation == id)
            .collect();
        let last = exchanges.last()?;
        let all: Vec<Message> =
            exchanges.iter().flat_map(|exchange| [exchange.question.clone(), exchange.answer.clone()]).collect();
        Some(ConversationState {
            id,
            last_activity: last.answer.created_at,
            recent: all[all.len().saturating_sub(recent)..].to_vec(),
            pending: last.pending.clone(),
        })
    }
}

#[async_trait]
impl ConversationStore for Memory {
    async fn latest(&self, owner: &UserId, recent: usize) -> Result<Option<ConversationState>> {
        Ok(self.find(owner, None, recent))
    }

    async fn state(&self, owner: &UserId, id: Uuid, recent: usize) -> Result<Option<ConversationState>> {
        Ok(self.find(owner, Some(id), recent))
    }

    async fn answer_to(&self, owner: &UserId, request_key: &str) -> Result<Option<StoredAnswer>> {
        let kept = self.kept.lock().expect("conversations");
        let of_key = |(user, exchange): &&(UserId, Exchange)| {
            user == owner && exchange.request_key.as_deref() == Some(request_key)
        };
        Ok(kept
            .iter()
            .find(of_key)
            .map(|(_, exchange)| StoredAnswer { conversation: exchange.conversation, answer: exchange.answer.clone() }))
    }

    async fn take_pending(&self, owner: &UserId, id: Uuid, calls: &[Uuid], now: Timestamp) -> Result<Vec<PendingCall>> {
        let mut kept = self.kept.lock().expect("conversations");
        let own = kept.iter_mut().filter(|(user, exchange)| user == owner && exchange.conversation == id);
        let mut places: Vec<&mut Vec<PendingCall>> = own.map(|(_, exchange)| &mut exchange.pending).collect();
        let is_wanted = |call: &PendingCall| calls.contains(&call.id) && call.expires_at > now;
        if places.iter().flat_map(|place| place.iter()).filter(|call| is_wanted(call)).count() < calls.len() {
            return Err(Error::not_found("no such call waits for a decision"));
        }
        Ok(places.iter_mut().flat_map(|place| place.extract_if(.., |call| is_wanted(call))).collect())
    }

    async fn record(&self, owner: &UserId, exchange: &Exchange) -> Result<StoredAnswer> {
        if self.broken.load(Ordering::SeqCst) {
            return Err(Error::internal("the disk is full"));
        }
        if let Some(key) = &exchange.request_key
            && let Some(answered) = self.answer_to(owner, key).await?
        {
            return Ok(answered);
        }
        let mut kept = self.kept.lock().expect("conversations");
        kept.push((owner.clone(), exchange.clone()));
        Ok(StoredAnswer { conversation: exchange.conversation, answer: exchange.answer.clone() })
    }

    async fn list(
        &self,
        _owner: &UserId,
        _limit: usize,
        _after: Option<(Timestamp, Uuid)>,
    ) -> Result<Page<Conversation, (Timestamp, Uuid)>> {
        Err(Error::internal("no test lists conversations"))
    }

    async fn messages(
        &self,
        _owner: &UserId,
        _id: Uuid,
        _limit: usize,
        _before: Option<MessageCursor>,
    ) -> Result<Option<Page<Message, MessageCursor>>> {
        Err(Error::internal("no test lists messages"))
    }
}
