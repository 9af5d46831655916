//! One turn: the model answers a question, with tool calls in between; question and answer are stored.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use jiff::Timestamp;
use parking_lot::Mutex;
use tribune_core::{CallContext, Clock, Error, Result, UserId, id_of_time};
use tribune_storage::{ConversationState, ConversationStore, Exchange, Message, PendingCall, Role};
use uuid::Uuid;

use crate::calls::{Caller, Work};
use crate::chat::{ChatAnswer, Confirmation, Event, Events};
use crate::claims::Claim;
use crate::confirm::{DECIDE_WITHIN, Decided, HeldCall};
use crate::fallback;
use crate::model::Model;
use crate::model::failure::{Cause, Failure};
use crate::prompt::system_prompt;
use crate::raw_call;
use crate::results::behind;
use crate::settings::Settings;
use crate::text::tokens;
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
    /// Taken from the store: they can run in this turn and in no other.
    pub(crate) decided: Vec<Decided>,
    pub(crate) asked_at: Timestamp,
    pub(crate) request_id: Option<Uuid>,
    /// Keeps the same request from being answered twice at once.
    pub(crate) _answering: Option<Claim>,
}

/// How the exchange with the model ended.
enum End {
    Answered(String),
    /// Calls wait for the user's decision.
    Asked(String),
    /// The model kept calling tools.
    Stopped,
    Failed(Failure),
}

impl End {
    const fn as_str(&self) -> &'static str {
        match self {
            Self::Answered(_) => "answered",
            Self::Asked(_) => "asked",
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
        let mut transcript = self.transcript();
        let mut caller = Caller::new(toolbox, events, Arc::clone(&shared.clock), shared.settings.max_result_chars);
        let decided = std::mem::take(&mut self.decided);
        if !decided.is_empty() {
            transcript.add_round(caller.decided(decided, &cx).await);
        }
        let end = match caller.question() {
            Some(question) => End::Asked(question),
            None => converse(&shared, &mut transcript, &mut caller, &cx, &stream).await,
        };
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
        let message = match written(end, &caller, stream) {
            Ok(message) => message,
            Err(error) => return (outcome, Err(error)),
        };
        match self.store(message, caller.into_work(), stream).await {
            Ok(answer) => (outcome, Ok(answer)),
            Err(error) => ("not_kept", Err(error)),
        }
    }

    fn transcript(&mut self) -> Transcript {
        let settings = &self.shared.settings;
        let history = std::mem::take(&mut self.conversation.recent);
        let system = system_prompt(self.shared.clock.now(), settings.instructions.as_deref(), &history);
        Transcript::new(system, history, self.question.clone(), settings.context_tokens)
    }

    /// Stores the exchange, then returns the answer.
    async fn store(self, message: String, work: Work, stream: &TextStream<'_>) -> Result<ChatAnswer> {
        let answered_at = self.shared.clock.now().max(self.asked_at);
        let said = |role, content, at| Message {
            id: id_of_time(at),
            role,
            content,
            created_at: at,
            trace: None,
            looked_up: None,
        };
        let answer = said(Role::Assistant, message, answered_at);
        let exchange = Exchange {
            conversation: self.conversation.id,
            question: said(Role::User, self.question, self.asked_at),
            answer: Message { trace: Some(work.trace), looked_up: Some(work.looked_up), ..answer },
            pending: work.held.iter().filter_map(|held| pending_call(held, answered_at)).collect(),
            request_key: self.request_id.map(|id| id.to_string()),
        };
        let did_something = !work.summaries.is_empty();
        let mut confirmations: Vec<Confirmation> = exchange.pending.iter().filter_map(Confirmation::read).collect();
        let kept = self.shared.conversations.record(&self.user, &exchange).await;
        let kept = kept.map_err(|error| not_stored(error, did_something))?;
        if kept.answer.id != exchange.answer.id {
            // Another process answered the same request first: its answer stays.
            stream.replace(&kept.answer.content);
            confirmations.clear();
        }
        let citations = behind(&kept.answer.content, work.citations);
        Ok(ChatAnswer {
            message: kept.answer.content,
            conversation_id: kept.conversation,
            tool_calls: did_something.then_some(work.summaries),
            confirmations,
            looked_up: kept.answer.looked_up.unwrap_or_default(),
            citations,
        })
    }
}

fn pending_call(held: &HeldCall, asked_at: Timestamp) -> Option<PendingCall> {
    let call = serde_json::to_string(held).ok()?;
    let expires_at = asked_at.checked_add(DECIDE_WITHIN).unwrap_or(Timestamp::MAX);
    Some(PendingCall { id: id_of_time(asked_at), call, expires_at })
}

/// Asks the model and runs its tool calls until it answers.
async fn converse(
    shared: &Shared,
    transcript: &mut Transcript,
    caller: &mut Caller<'_>,
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
        let on_text = |text: &str| stream.push(text);
        let read = definitions + serde_json::to_vec(&messages).map_or(0, |sent| tokens(sent.len()));
        let reply = match shared.model.ask(messages, &tools, last, cx, &on_text).await {
            Ok(reply) => reply,
            Err(failure) if last && max_rounds > 0 && failure.cause == Cause::Nothing => return End::Stopped,
            Err(failure) => return End::Failed(failure),
        };
        let called: usize = reply.calls.iter().map(|call| call.arguments.len()).sum();
        stream.events.used(read + tokens(reply.text.len() + called));
        if reply.calls.is_empty() {
            let mut text = reply.text;
            if raw_call::is_raw_call(&text, &caller.tools()) {
                return End::Failed(Cause::RawCall.into());
            }
            stream.flush();
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
        transcript.add_round(caller.round(reply.calls, cx).await);
        if let Some(question) = caller.question() {
            return End::Asked(question);
        }
    }
}

/// The final text: the model's, or our own if tools ran and the model failed.
fn written(end: End, caller: &Caller<'_>, stream: &TextStream<'_>) -> Result<String> {
    let ours = match end {
        End::Answered(text) => return Ok(text.trim().to_owned()),
        // Without the model's own words, which could make the question look like another one.
        End::Asked(question) => fallback::asking(&question, caller.outcomes()),
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
    /// Text that is not sent yet, because it may become a tool call.
    withheld: Mutex<String>,
}

impl<'a> TextStream<'a> {
    const fn new(events: &'a dyn Events) -> Self {
        Self { events, has_text: AtomicBool::new(false), withheld: Mutex::new(String::new()) }
    }

    /// Sends more of the model's text, unless all of it so far may be a tool call.
    fn push(&self, text: &str) {
        let mut withheld = self.withheld.lock();
        withheld.push_str(text);
        if self.has_text.load(Ordering::Relaxed) || !raw_call::may_become(&withheld) {
            self.send(&std::mem::take(&mut *withheld));
        }
    }

    /// Sends what was withheld: it is an answer.
    fn flush(&self) {
        let withheld = std::mem::take(&mut *self.withheld.lock());
        if !withheld.is_empty() {
            self.send(&withheld);
        }
    }

    fn send(&self, text: &str) {
        self.has_text.store(true, Ordering::Relaxed);
        self.events.emit(Event::Delta { text: text.to_owned() });
    }

    fn discard(&self) {
        self.withheld.lock().clear();
        if self.has_text.swap(false, Ordering::Relaxed) {
            self.events.emit(Event::Discard);
        }
    }

    fn replace(&self, text: &str) {
        self.discard();
        self.send(text);
    }
}
