//! The agent: accepts questions and finds their conversations.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tribune_core::{Clock, Error, Result, UserId, id_of_time};
use tribune_storage::{ConversationState, ConversationStore};

use crate::chat::{ChatAnswer, ChatRequest};
use crate::claims::Claims;
use crate::model::Model;
use crate::settings::Settings;
use crate::turn::{Shared, Turn};

/// The longest question.
pub const MAX_MESSAGE_CHARS: usize = 4000;

/// A chat agent. Turns own what they need of it.
pub struct Agent {
    shared: Arc<Shared>,
    claims: Claims,
}

/// An accepted question.
pub enum Accepted {
    Turn(Turn),
    /// The same request id was answered before.
    Answered(ChatAnswer),
}

impl Agent {
    /// Checks the settings; nothing is sent.
    pub fn new(settings: Settings, conversations: Arc<dyn ConversationStore>, clock: Arc<dyn Clock>) -> Result<Self> {
        let model = Model::new(&settings, Arc::clone(&clock))?;
        Ok(Self {
            shared: Arc::new(Shared { settings, model, conversations, clock, warned: AtomicBool::new(false) }),
            claims: Claims::default(),
        })
    }

    pub fn settings(&self) -> &Settings {
        &self.shared.settings
    }

    /// Checks the request and finds its conversation.
    pub async fn begin(&self, request: ChatRequest, user: &UserId) -> Result<Accepted> {
        let question = question(&request)?;
        let mut claim = None;
        if let Some(id) = request.request_id {
            claim = self.claims.take(format!("{user} {id}"));
            if claim.is_none() {
                return Err(Error::unavailable("This request is already in progress; try again in a moment"));
            }
            if let Some(stored) = self.shared.conversations.answer_to(user, &id.to_string()).await? {
                return Ok(Accepted::Answered(ChatAnswer {
                    message: stored.answer.content,
                    conversation_id: stored.conversation,
                    tool_calls: None,
                    citations: Vec::new(),
                }));
            }
        }
        let asked_at = self.shared.clock.now();
        let state = self.find(&request, user, asked_at).await?;
        let state = state.unwrap_or_else(|| ConversationState {
            id: id_of_time(asked_at),
            last_activity: asked_at,
            recent: Vec::new(),
            pending: Vec::new(),
        });
        Ok(Accepted::Turn(Turn {
            shared: Arc::clone(&self.shared),
            user: user.clone(),
            conversation: state,
            question,
            asked_at,
            request_id: request.request_id,
            _answering: claim,
        }))
    }

    /// The conversation that the question continues; `None` for a new one.
    async fn find(&self, request: &ChatRequest, user: &UserId, now: Timestamp) -> Result<Option<ConversationState>> {
        let store = &self.shared.conversations;
        let recent = self.shared.settings.history;
        if let Some(id) = request.conversation_id {
            let state = store.state(user, id, recent).await?;
            return state.map(Some).ok_or_else(|| Error::not_found("Unknown conversation"));
        }
        if request.new_conversation {
            return Ok(None);
        }
        let latest = store.latest(user, recent).await?;
        Ok(latest.filter(|state| !is_idle(state.last_activity, now, self.shared.settings.idle_after)))
    }
}

/// The question, trimmed and without NUL characters, which PostgreSQL refuses.
fn question(request: &ChatRequest) -> Result<String> {
    if request.new_conversation && request.conversation_id.is_some() {
        return Err(Error::invalid_argument("Send either `new_conversation` or `conversation_id`, not both"));
    }
    let message = request.message.replace('\0', "");
    let message = message.trim();
    match message.chars().count() {
        0 => Err(Error::invalid_argument("The message is empty")),
        1..=MAX_MESSAGE_CHARS => Ok(message.to_owned()),
        chars => Err(Error::invalid_argument(format!(
            "The message has {chars} characters; the limit is {MAX_MESSAGE_CHARS}"
        ))),
    }
}

fn is_idle(last_activity: Timestamp, now: Timestamp, idle_after: Duration) -> bool {
    let idle_after = SignedDuration::try_from(idle_after).unwrap_or(SignedDuration::MAX);
    now.duration_since(last_activity) > idle_after
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(message: &str) -> ChatRequest {
        ChatRequest { message: message.into(), conversation_id: None, new_conversation: false, request_id: None }
    }

    #[test]
    fn question_length_is_limited() {
        assert_eq!(question(&request("  hé\0llo\n")).expect("a question"), "héllo");
        let longest = "é".repeat(MAX_MESSAGE_CHARS);
        assert_eq!(question(&request(&format!(" {longest} "))).expect("a question"), longest);
        for wrong in ["", " \n\t", "\0", &"é".repeat(MAX_MESSAGE_CHARS + 1)] {
            assert!(question(&request(wrong)).is_err());
        }
    }

    #[test]
    fn conversation_is_idle_after_its_timeout() {
        let at = |text: &str| text.parse::<Timestamp>().expect("a time");
        let half_an_hour = Duration::from_secs(1800);
        let last = at("2026-01-01T12:00:00Z");
        assert!(!is_idle(last, at("2026-01-01T12:30:00Z"), half_an_hour));
        assert!(is_idle(last, at("2026-01-01T12:30:00.000000001Z"), half_an_hour));
        assert!(!is_idle(last, at("2026-01-01T11:00:00Z"), half_an_hour));
        assert!(!is_idle(last, at("2999-01-01T00:00:00Z"), Duration::MAX));
    }
}
