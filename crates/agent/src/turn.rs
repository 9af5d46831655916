//! One turn: the model answers a question, with tool calls in between; question and answer are stored.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use jiff::Timestamp;
use tribune_core::{CallContext, Clock, Error, Result, UserId, id_of_time};
use tribune_storage::{ConversationState, ConversationStore, Exchange, Message, Role};
use uuid::Uuid;

use crate::calls::{Caller, Work};
use crate::chat::{ChatAnswer, Event, Events};
use crate::claims::Claim;
use crate::confirm::Confirmations;
use crate::fallback;
use crate::model::Model;
use crate::model::failure::{Cause, Failure};
use crate::prompt::system_prompt;
use crate::results::behind;
use crate::settings::Settings;
use crate::toolbox::Toolbox;
use crate::transcript::Transcript;

/// What all turns share.
pub(crate) struct Shared {
    pub(crate) settings: Settings,
    pub(crate) model: Model,
    pub(crate) conversations: Arc<dyn ConversationStore>,
    pub(crate) clock: Arc<dyn Clock>,
    /// Whether the log has said that the tools take too much of the budget.
    pub(crate) warned: AtomicBool,
}

/// A question to be answered. It owns what it needs, so that it can go on after the caller hangs up.
pub struct Turn {
    pub(crate) shared: Arc<Shared>,
    pub(crate) user: UserId,
    pub(crate) conversation: ConversationState,
    pub(crate) question: String,
    pub(crate) asked_at: Timestamp,
    pub(crate) request_id: Option<Uuid>,
    /// Keeps the same request from being answered twice at once.
    pub(crate) _answering: Option<Claim>,
}

/// How the exchange with the model ended.
enum End {
    Answered(String),
    /// The model kept calling tools.
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
    /// The conversation that will store the exchange.
    pub const fn conversation_id(&self) -> Uuid {
        self.conversation.id
    }

    /// Answers the question. An answer that is returned is stored; after an error nothing is.
    ///
    /// The texts of the [`Event::Delta`]s since the last [`Event::Discard`] are the answer's message, white space
    /// around it aside.
    pub async fn run(mut self, toolbox: Arc<dyn Toolbox>, cx: CallContext, events: &dyn Events) -> Result<ChatAnswer> {
        let shared = Arc::clone(&self.shared);
        let started = shared.clock.monotonic();
        let cx = cx.until(started.checked_add(shared.settings.turn_timeout).unwrap_or(cx.deadline));
        let stream = TextStream::new(events);
        events.emit(Event::Started { conversation_id: self.conversation.id });
        let confirmations = Confirmations::new(&self.conversation.pending, &self.question);
        let mut waiting = Waiting {
            user: self.user.clone(),
            conversation: self.conversation.id,
            notes: std::mem::take(&mut self.conversation.pending),
        };
        if confirmations.is_refused() {
            // At once, so that a no counts even if this turn fails.
            waiting.take(&shared).await;
        }
        let mut transcript = self.transcript(confirmations.notice());
        let max_result_chars = shared.settings.max_result_chars;
        let clock = Arc::clone(&shared.clock);
        let mut caller = Caller::new(toolbox, confirmations, events, clock, max_result_chars);
        let end = converse(&shared, &mut transcript, &mut caller, &mut waiting, &cx, &stream).await;
        let tools = caller.outcomes().count();
        let (outcome, answer) = self.conclude(end, caller, &stream).await;
        account(&shared, started, &cx, outcome, transcript.rounds(), tools);
        answer
    }

    /// The stored answer, and the outcome for the metrics.
    async fn conclude(
        self,
        end: End,
        caller: Caller<'_>,
        stream: &TextStream<'_>,
    ) -> (&'static str, Result<ChatAnswer>) {
        let outcome = end.as_str();
        let was_asked = matches!(end, End::Answered(_));
        let message = match written(end, &caller, stream) {
            Ok(message) => message,
            // Pending confirmations stay, unless they were used.
            Err(error) => return (outcome, Err(error)),
        };
        let mut work = caller.into_work();
        if !was_asked {
            // Our own answer asks for no confirmation.
            work.pending.clear();
        }
        match self.store(message, work, stream).await {
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

    /// Stores the exchange, then returns the answer.
    async fn store(self, message: String, work: Work, stream: &TextStream<'_>) -> Result<ChatAnswer> {
        let answered_at = self.shared.clock.now().max(self.asked_at);
        let said = |role, content, at| Message { id: id_of_time(at), role, content, created_at: at };
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
        let kept = kept.map_err(|error| not_stored(error, did_something))?;
        if kept.answer.id != exchange.answer.id {
            // Another process answered the same request first: its answer stays.
            stream.replace(&kept.answer.content);
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

/// The confirmations that are pending in the store. A yes is good for one turn: a turn removes them from the store
/// before it acts, so that no other turn, in this process or another, can act on the same yes.
struct Waiting {
    user: UserId,
    conversation: Uuid,
    /// Empty once they are removed.
    notes: Vec<String>,
}

impl Waiting {
    /// Whether they were still there, or this turn removed them before. If the store fails, the user is asked again.
    async fn take(&mut self, shared: &Shared) -> bool {
        let notes = std::mem::take(&mut self.notes);
        if notes.is_empty() {
            return true;
        }
        let store = &shared.conversations;
        let taken = store.take_pending(&self.user, self.conversation, &notes).await;
        taken.unwrap_or_else(|error| {
            tracing::warn!(%error, "could not check whether a confirmation was used");
            false
        })
    }
}

/// Asks the model and runs its tool calls until it answers.
async fn converse(
    shared: &Shared,
    transcript: &mut Transcript,
    caller: &mut Caller<'_>,
    waiting: &mut Waiting,
    cx: &CallContext,
    stream: &TextStream<'_>,
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
        let messages = transcript.messages(definitions);
        let on_text = |text: &str| stream.send(text);
        let reply = match shared.model.ask(messages, &tools, last, cx, &on_text).await {
            Ok(reply) => reply,
            Err(failure) if last && max_rounds > 0 && failure.cause == Cause::Nothing => return End::Stopped,
            Err(failure) => return End::Failed(failure),
        };
        if reply.calls.is_empty() {
            let mut text = reply.text;
            if reply.cut {
                stream.send(fallback::CUT_SHORT);
                text.push_str(fallback::CUT_SHORT);
            }
            return End::Answered(text);
        }
        stream.discard();
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

/// The final text: the model's, or our own if tools ran and the model failed.
fn written(end: End, caller: &Caller<'_>, stream: &TextStream<'_>) -> Result<String> {
    let ours = match end {
        End::Answered(mut text) => {
            if let Some(question) = fallback::missing_question(&text, &caller.questions()) {
                stream.send(&question);
                text.push_str(&question);
            }
            return Ok(text.trim().to_owned());
        }
        End::Stopped => fallback::stopped(caller.outcomes()),
        End::Failed(failure) if caller.outcomes().any(|outcome| outcome.ran) => {
            fallback::failed(&failure, caller.outcomes())
        }
        End::Failed(failure) => {
            stream.discard();
            return Err(failure.into_error());
        }
    };
    stream.replace(&ours);
    Ok(ours)
}

/// Warns the operator, once, that tool definitions leave the model little room.
fn warn_of_definitions(shared: &Shared, tools: usize, definitions: usize) {
    let budget = shared.settings.context_tokens as usize;
    if definitions > budget / 2 && !shared.warned.swap(true, Ordering::Relaxed) {
        tracing::warn!(
            tools,
            tokens = definitions,
            budget,
            "tool definitions take more than half of agent.context_tokens: select fewer tools, or raise it if the \
             model allows"
        );
    }
}

fn not_stored(error: Error, did_something: bool) -> Error {
    let message = if did_something {
        "The answer could not be stored, but tools may have run: check before you ask again"
    } else {
        "The answer could not be stored; try again in a moment"
    };
    Error::unavailable(message).caused_by(error)
}

fn account(shared: &Shared, started: Instant, cx: &CallContext, outcome: &'static str, rounds: usize, tools: usize) {
    let took = shared.clock.monotonic().saturating_duration_since(started);
    metrics::counter!("tribune_chat_turns_total", "outcome" => outcome).increment(1);
    metrics::histogram!("tribune_chat_turn_seconds").record(took.as_secs_f64());
    tracing::info!(ms = took.as_millis(), rounds, tools, outcome, correlation_id = &*cx.correlation_id, "chat turn");
}

/// Sends text to the client, and takes it back.
struct TextStream<'a> {
    events: &'a dyn Events,
    /// Whether the client has text that was not taken back.
    has_text: AtomicBool,
}

impl<'a> TextStream<'a> {
    const fn new(events: &'a dyn Events) -> Self {
        Self { events, has_text: AtomicBool::new(false) }
    }

    fn send(&self, text: &str) {
        self.has_text.store(true, Ordering::Relaxed);
        self.events.emit(Event::Delta { text: text.to_owned() });
    }

    fn discard(&self) {
        if self.has_text.swap(false, Ordering::Relaxed) {
            self.events.emit(Event::Discard);
        }
    }

    fn replace(&self, text: &str) {
        self.discard();
        self.send(text);
    }
}
