//! The agent: accepts questions and finds their conversations.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tribune_core::{Clock, Error, ErrorKind, Result, UserId, id_of_time};
use tribune_storage::{ConversationState, ConversationStore, MAX_PENDING_CALLS, StoredAnswer};
use uuid::Uuid;

use crate::chat::{ChatAnswer, ChatRequest, Confirmation};
use crate::claims::Claims;
use crate::confirm::{self, Decided, HeldCall, said};
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

    /// Checks the request and finds its conversation. `admit` refuses tools that the caller may not call.
    pub async fn begin(
        &self,
        request: ChatRequest,
        user: &UserId,
        admit: impl Fn(&str) -> Result<()>,
    ) -> Result<Accepted> {
        let mut question = question(&request)?;
        let mut claim = None;
        if let Some(id) = request.request_id {
            claim = self.claims.take(format!("{user} {id}"));
            if claim.is_none() {
                return Err(Error::unavailable("This request is already in progress; try again in a moment"));
            }
            if let Some(stored) = self.shared.conversations.answer_to(user, &id.to_string()).await? {
                return self.answered(stored, user).await.map(Accepted::Answered);
            }
        }
        let asked_at = self.shared.clock.now();
        let state = self.find(&request, user, asked_at).await?;
        let decided = self.decide(&request, state.as_ref(), user, asked_at, admit).await?;
        if question.is_empty() {
            question = said(&decided);
        }
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
            decided,
            asked_at,
            request_id: request.request_id,
            _answering: claim,
        }))
    }

    /// Takes the calls about which the request decides, by their ids or with its whole message.
    async fn decide(
        &self,
        request: &ChatRequest,
        state: Option<&ConversationState>,
        user: &UserId,
        now: Timestamp,
        admit: impl Fn(&str) -> Result<()>,
    ) -> Result<Vec<Decided>> {
        let word = confirm::decision(&request.message).filter(|_| !request.has_decisions());
        let ids: Vec<Uuid> = match (word, state) {
            (Some(_), Some(state)) => {
                state.pending.iter().filter(|call| call.expires_at > now).map(|call| call.id).collect()
            }
            _ => request.confirm.iter().chain(&request.decline).copied().collect(),
        };
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let is_confirmed = |id: &Uuid| word.unwrap_or_else(|| request.confirm.contains(id));
        // A call that is taken and then refused would be lost.
        let pending = state.into_iter().flat_map(|state| &state.pending);
        for call in pending.filter(|call| ids.contains(&call.id) && is_confirmed(&call.id)).filter_map(HeldCall::read) {
            admit(&call.tool)?;
        }
        let unknown = || Error::not_found("Unknown confirmation: it was decided, has expired, or never existed");
        let taken = match state {
            Some(state) => self.shared.conversations.take_pending(user, state.id, &ids, now).await,
            None => Err(unknown()),
        };
        let taken = match taken {
            Ok(taken) => taken,
            // Decided elsewhere meanwhile: the word is a message like any other.
            Err(error) if error.kind() == ErrorKind::NotFound && word.is_some() => Vec::new(),
            Err(error) if error.kind() == ErrorKind::NotFound => return Err(unknown()),
            Err(error) => return Err(error),
        };
        let decided = taken.iter().filter_map(|pending| {
            HeldCall::read(pending).map(|call| Decided { call, confirmed: is_confirmed(&pending.id) })
        });
        Ok(decided.collect())
    }

    /// The answer of an earlier request, with what still waits for a decision.
    async fn answered(&self, stored: StoredAnswer, user: &UserId) -> Result<ChatAnswer> {
        let state = self.shared.conversations.state(user, stored.conversation, 1).await?;
        let state = state.filter(|state| state.recent.iter().any(|last| last.id == stored.answer.id));
        let now = self.shared.clock.now();
        let pending = state.into_iter().flat_map(|state| state.pending).filter(|call| call.expires_at > now);
        Ok(ChatAnswer {
            message: stored.answer.content,
            conversation_id: stored.conversation,
            tool_calls: None,
            confirmations: pending.filter_map(|call| Confirmation::read(&call)).collect(),
            looked_up: stored.answer.looked_up.unwrap_or_default(),
            citations: Vec::new(),
        })
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
        if request.has_decisions() {
            return Ok(latest);
        }
        Ok(latest.filter(|state| !is_idle(state.last_activity, now, self.shared.settings.idle_after)))
    }
}

impl ChatRequest {
    const fn has_decisions(&self) -> bool {
        !(self.confirm.is_empty() && self.decline.is_empty())
    }
}

/// The question, trimmed and without NUL characters, which PostgreSQL refuses. Empty if the request only decides.
fn question(request: &ChatRequest) -> Result<String> {
    if request.new_conversation && request.conversation_id.is_some() {
        return Err(Error::invalid_argument("Send either `new_conversation` or `conversation_id`, not both"));
    }
    let decisions: Vec<&Uuid> = request.confirm.iter().chain(&request.decline).collect();
    if request.new_conversation && !decisions.is_empty() {
        return Err(Error::invalid_argument("Send either `new_conversation` or a decision, not both"));
    }
    if decisions.iter().collect::<HashSet<_>>().len() < decisions.len() || decisions.len() > MAX_PENDING_CALLS {
        return Err(Error::invalid_argument(format!(
            "Send each id once in `confirm` or `decline`, and at most {MAX_PENDING_CALLS}"
        )));
    }
    let message = request.message.replace('\0', "");
    let message = message.trim();
    match message.chars().count() {
        0 if !decisions.is_empty() => Ok(String::new()),
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
        ChatRequest { message: message.into(), ..ChatRequest::default() }
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
