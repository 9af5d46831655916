//! One turn: the model is asked, calls tools, is asked again, and answers; question and answer are kept.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use jiff::Timestamp;
use tribune_core::store::{ConversationState, Exchange, Message, Role};
use tribune_core::{CallContext, Error, Result, UserId, id_of_time};
use uuid::Uuid;

use crate::agent::Shared;
use crate::calls::{Caller, Work};
use crate::chat::{ChatAnswer, Event, Events};
use crate::claims::Claim;
use crate::confirm::Confirmations;
use crate::fallback;
use crate::model::failure::{Cause, Failure};
use crate::model::request::ToolUse;
use crate::prompt::system_prompt;
use crate::results::behind;
use crate::toolbox::Toolbox;
use crate::transcript::Transcript;

/// A question that is to be answered. Owns what it needs, so that it can go on when whoever asked has gone.
pub struct Turn {
    pub(crate) shared: Arc<Shared>,
    pub(crate) user: UserId,
    pub(crate) conversation: ConversationState,
    pub(crate) question: String,
    pub(crate) asked_at: Timestamp,
    pub(crate) request_id: Option<Uuid>,
    /// Nobody else answers this request meanwhile.
    pub(crate) _answering: Option<Claim>,
}

/// How a conversation with the model ended.
enum End {
    Answered(String),
    /// The model went on calling tools.
    Stopped,
    Failed(Failure),
}

impl End {
    const fn as_str(&self) -> &'static str {
        match self {
            Self::Answered(_) => "answered",
            Self::Stopped => "stopped",
            Self::Failed(failure) => failure.cause.as_str(),
        }
    }
}

impl Turn {
    /// Where the exchange will be kept.
    pub const fn conversation_id(&self) -> Uuid {
        self.conversation.id
    }

    /// Answers the question. When this returns an answer, it has been kept; when it fails, nothing has.
    ///
    /// The texts of the [`Event::Delta`]s since the last [`Event::Discard`] are the answer's message, white space
    /// around it aside.
    pub async fn run(mut self, toolbox: Arc<dyn Toolbox>, cx: CallContext, events: &dyn Events) -> Result<ChatAnswer> {
        let shared = Arc::clone(&self.shared);
        let begun = shared.clock.monotonic();
        let cx = cx.until(begun.checked_add(shared.settings.turn_timeout).unwrap_or(cx.deadline));
        let teller = Teller::new(events);
        events.emit(Event::Started {
            conversation_id: self.conversation.id,
        });
        let asked = self.conversation.recent.last();
        let asked = asked.map_or("", |message| message.content.as_str());
        let confirmations = Confirmations::new(&self.conversation.pending, asked, &self.question);
        let mut waiting = Waiting {
            user: self.user.clone(),
            conversation: self.conversation.id,
            notes: std::mem::take(&mut self.conversation.pending),
        };
        if confirmations.is_refused() {
            // At once: a no counts even if this turn fails.
            waiting.take(&shared).await;
        }
        let mut transcript = self.transcript(confirmations.notice());
        let max_result_chars = shared.settings.max_result_chars;
        let clock = Arc::clone(&shared.clock);
        let mut caller = Caller::new(toolbox, confirmations, events, clock, max_result_chars);
        let end = converse(&shared, &mut transcript, &mut caller, &mut waiting, &cx, &teller).await;
        let tools = caller.outcomes().count();
        let (outcome, answer) = self.conclude(end, caller, &teller).await;
        account(&shared, begun, &cx, outcome, transcript.rounds(), tools);
        answer
    }

    /// The answer, once it is kept, and what the metrics call this end.
    async fn conclude(self, end: End, caller: Caller<'_>, teller: &Teller<'_>) -> (&'static str, Result<ChatAnswer>) {
        let outcome = end.as_str();
        let was_asked = matches!(end, End::Answered(_));
        let message = match written(end, &caller, teller) {
            Ok(message) => message,
            // What waited for the user's word still does, unless it was used up.
            Err(error) => return (outcome, Err(error)),
        };
        let mut work = caller.into_work();
        if !was_asked {
            // An answer of ours names nothing that could be confirmed.
            work.pending.clear();
        }
        match self.keep(message, work, teller).await {
            Ok(answer) => (outcome, Ok(answer)),
            Err(error) => ("not_kept", Err(error)),
        }
    }

    fn transcript(&mut self, notice: Option<String>) -> Transcript {
        let settings = &self.shared.settings;
        Transcript::new(
            system_prompt(self.shared.clock.now(), settings.instructions.as_deref()),
            std::mem::take(&mut self.conversation.recent),
            notice,
            self.question.clone(),
            settings.context_tokens,
        )
    }

    /// Keeps the exchange, and only then gives the answer.
    async fn keep(self, message: String, work: Work, teller: &Teller<'_>) -> Result<ChatAnswer> {
        let answered_at = self.shared.clock.now().max(self.asked_at);
        let said = |role, content, at| Message {
            id: id_of_time(at),
            role,
            content,
            created_at: at,
        };
        let answer = said(Role::Assistant, message, answered_at);
        let exchange = Exchange {
            conversation: self.conversation.id,
            question: said(Role::User, self.question, self.asked_at),
            answer,
            pending: work.pending,
            request_key: self.request_id.map(|id| id.to_string()),
        };
        let did_something = !work.summaries.is_empty();
        let kept = self.shared.conversations.record(&self.user, &exchange).await;
        let kept = kept.map_err(|error| not_kept(error, did_something))?;
        if kept.answer.id != exchange.answer.id {
            // Another process has answered the same request first: its answer is the one that stays.
            teller.replace(&kept.answer.content);
        }
        let citations = behind(&kept.answer.content, work.citations);
        Ok(ChatAnswer {
            message: kept.answer.content,
            conversation_id: kept.conversation,
            tool_calls: did_something.then_some(work.summaries),
            citations,
        })
    }
}

/// What waits in the store for the user's word. A word is good for one turn: whoever acts on it takes what waits away
/// first, so that no other turn, in this process or another, finds it there again.
struct Waiting {
    user: UserId,
    conversation: Uuid,
    /// Empty when it has been taken.
    notes: Vec<String>,
}

impl Waiting {
    /// Whether it was still there, or was taken by this turn before. If that cannot be told, it was not: the user is
    /// asked again.
    async fn take(&mut self, shared: &Shared) -> bool {
        let notes = std::mem::take(&mut self.notes);
        if notes.is_empty() {
            return true;
        }
        let store = &shared.conversations;
        let taken = store.take_pending(&self.user, self.conversation, &notes).await;
        taken.unwrap_or_else(|error| {
            tracing::warn!(%error, "whether a confirmation was used cannot be told");
            false
        })
    }
}

/// Asks the model and runs what it calls until it answers.
async fn converse(
    shared: &Shared,
    transcript: &mut Transcript,
    caller: &mut Caller<'_>,
    waiting: &mut Waiting,
    cx: &CallContext,
    teller: &Teller<'_>,
) -> End {
    let max_rounds = shared.settings.max_rounds;
    let tools = match max_rounds {
        0 => Arc::default(),
        _ => caller.tools(),
    };
    let definitions = tools.tokens();
    warn_of_definitions(shared, tools.specs().len(), definitions);
    loop {
        let last = transcript.rounds() >= max_rounds;
        let tool_use = if last { ToolUse::Over } else { ToolUse::Allowed };
        let messages = transcript.messages(definitions);
        let on_text = |text: &str| teller.tell(text);
        let reply = match shared.model.ask(messages, &tools, tool_use, cx, &on_text).await {
            Ok(reply) => reply,
            Err(failure) if last && max_rounds > 0 && failure.cause == Cause::Nothing => return End::Stopped,
            Err(failure) => return End::Failed(failure),
        };
        if reply.calls.is_empty() {
            let mut text = reply.text;
            if reply.cut {
                teller.tell(fallback::CUT_SHORT);
                text.push_str(fallback::CUT_SHORT);
            }
            return End::Answered(text);
        }
        teller.discard();
        if last {
            return End::Stopped;
        }
        if caller.uses_yes(&reply.calls) && !waiting.take(shared).await {
            caller.lose_yes();
        }
        let answered = caller.round(reply.calls, cx).await;
        transcript.add_round(answered);
    }
}

/// The answer that is kept: the model's, or one of ours if something was done that must be told.
fn written(end: End, caller: &Caller<'_>, teller: &Teller<'_>) -> Result<String> {
    let ours = match end {
        End::Answered(mut text) => {
            if let Some(question) = fallback::missing_question(&text, &caller.asked_titles()) {
                teller.tell(&question);
                text.push_str(&question);
            }
            return Ok(text.trim().to_owned());
        }
        End::Stopped => fallback::stopped(caller.outcomes()),
        End::Failed(failure) if caller.outcomes().any(|outcome| outcome.ran) => {
            fallback::failed(&failure, caller.outcomes())
        }
        End::Failed(failure) => {
            teller.discard();
            return Err(failure.into_error());
        }
    };
    teller.replace(&ours);
    Ok(ours)
}

/// Tells the operator, once, that the model is left little room for anything but tools.
fn warn_of_definitions(shared: &Shared, tools: usize, definitions: usize) {
    let budget = shared.settings.context_tokens as usize;
    if definitions > budget / 2 && !shared.warned.swap(true, Ordering::Relaxed) {
        tracing::warn!(
            tools,
            tokens = definitions,
            budget,
            "the definitions of the tools take more than half of what the model may be sent: give the agent fewer \
             tools, or raise context_tokens if the model takes more"
        );
    }
}

fn not_kept(error: Error, did_something: bool) -> Error {
    let message = if did_something {
        "the answer could not be kept, though some of what you asked may have been done: look before you ask again"
    } else {
        "the answer could not be kept; try again in a moment"
    };
    Error::unavailable(message).caused_by(error)
}

fn account(shared: &Shared, begun: Instant, cx: &CallContext, outcome: &'static str, rounds: usize, tools: usize) {
    let took = shared.clock.monotonic().saturating_duration_since(begun);
    metrics::counter!("tribune_chat_turns_total", "outcome" => outcome).increment(1);
    metrics::histogram!("tribune_chat_turn_seconds").record(took.as_secs_f64());
    tracing::info!(
        ms = took.as_millis(),
        rounds,
        tools,
        outcome,
        correlation_id = &*cx.correlation_id,
        "chat turn"
    );
}

/// Passes text on, and takes it back.
struct Teller<'a> {
    events: &'a dyn Events,
    /// Text was told that has not been taken back.
    told: AtomicBool,
}

impl<'a> Teller<'a> {
    const fn new(events: &'a dyn Events) -> Self {
        Self {
            events,
            told: AtomicBool::new(false),
        }
    }

    fn tell(&self, text: &str) {
        self.told.store(true, Ordering::Relaxed);
        self.events.emit(Event::Delta { text: text.to_owned() });
    }

    fn discard(&self) {
        if self.told.swap(false, Ordering::Relaxed) {
            self.events.emit(Event::Discard);
        }
    }

    fn replace(&self, text: &str) {
        self.discard();
        self.tell(text);
    }
}
