//! `/chat`: asks the agent; the answer comes as JSON or as a stream of events.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::Extension;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::response::Response;
use futures::stream;
use http::{HeaderValue, Request, StatusCode};
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};
use tribune_agent::{Accepted, ChatAnswer, ChatRequest, Event, Events, Turn};
use tribune_core::{Error, ErrorKind, Result, Scope};

use crate::identity::Caller;
use crate::request::read_limited;
use crate::response::{self, Refusal, problem};
use crate::service::chat::TurnSlot;
use crate::service::{Chat, NoChat, Service};

/// Several times a message of 4,000 characters.
const MAX_BODY_BYTES: usize = 64 * 1024;
const BUSY: &str = "Too many chats in progress; try again shortly";
const SIGN_IN: &str = "The chat needs a user: send `Authorization: Bearer TOKEN`. The operator creates a token with `tribune token create --user NAME`.";

/// What a refusal of the chat says about getting a token.
pub(super) fn chat_challenge(service: &Service) -> HeaderValue {
    service.challenge("/mcp", "default", [Scope::Chat].into_iter().collect(), None)
}

pub(crate) async fn chat(
    State(service): State<Arc<Service>>,
    Extension(caller): Extension<Caller>,
    request: Request<Body>,
) -> Result<Response, Refusal> {
    let user = caller.principal.user();
    let user = user.ok_or_else(|| problem::unauthorized(SIGN_IN, chat_challenge(&service)))?;
    if service.stopping.is_cancelled() {
        return Err(interrupted().into());
    }
    let chat = service.chat.as_ref().map_err(not_configured)?;
    let streamed = response::accepts(request.headers(), "text/event-stream");
    let question = read(&service, request).await?;
    service.limits.chat(&caller.principal)?;
    let busy = || problem::with_status(StatusCode::TOO_MANY_REQUESTS, "busy", BUSY);
    let slot = chat.reserve_turn(&user).ok_or_else(busy)?;
    let admit = |tool: &str| chat.admit(&service, &caller, tool);
    Ok(match chat.agent.begin(question, &user, admit).await? {
        Accepted::Answered(answer) if streamed => events(&service, answered(answer)),
        Accepted::Answered(answer) => json_answer(&answer),
        Accepted::Turn(turn) => {
            let (answer, receiver) = run(&service, chat, turn, caller, slot);
            if streamed { events(&service, receiver) } else { json_answer(&answer.await.map_err(|_| interrupted())??) }
        }
    })
}

/// Runs a turn in its own task: if the caller hangs up, the turn is still finished and stored.
fn run(
    service: &Arc<Service>,
    chat: &Chat,
    turn: Turn,
    caller: Caller,
    slot: TurnSlot,
) -> (oneshot::Receiver<Result<ChatAnswer>>, mpsc::UnboundedReceiver<Bytes>) {
    let (outcome, waiting) = oneshot::channel();
    let (sender, receiver) = mpsc::unbounded_channel();
    let toolbox = chat.toolbox(service, &caller);
    let cx = chat.call_context(service, &caller);
    let running = service.calls.token();
    let limits = service.limits.clone();
    tokio::spawn(async move {
        let events = ToClient::new(sender);
        let answer = turn.run(toolbox, cx, &events).await;
        limits.chatted(&caller.principal, events.tokens.load(Ordering::Relaxed));
        events.last(&answer);
        // The caller may have hung up.
        drop(outcome.send(answer));
        drop((slot, running));
    });
    (waiting, receiver)
}

/// The single event of a question that was answered before.
fn answered(answer: ChatAnswer) -> mpsc::UnboundedReceiver<Bytes> {
    let (sender, receiver) = mpsc::unbounded_channel();
    ToClient::new(sender).last(&Ok(answer));
    receiver
}

/// Events on the wire. The channel is unbounded because an answer is bounded.
struct ToClient {
    sender: mpsc::UnboundedSender<Bytes>,
    /// What the turn has used.
    tokens: AtomicU64,
}

impl ToClient {
    const fn new(sender: mpsc::UnboundedSender<Bytes>) -> Self {
        Self { sender, tokens: AtomicU64::new(0) }
    }

    fn send(&self, name: &str, data: &Value) {
        drop(self.sender.send(format!("event: {name}\ndata: {data}\n\n").into()));
    }

    fn last(&self, answer: &Result<ChatAnswer>) {
        match answer {
            Ok(answer) => self.send("answer", &json!(answer)),
            Err(error) => self.send("error", &problem::body(error.kind().as_str(), error.message())),
        }
    }
}

impl Events for ToClient {
    fn emit(&self, event: Event) {
        let mut data = serde_json::to_value(&event).unwrap_or_default();
        let name = data.as_object_mut().and_then(|data| data.shift_remove("type"));
        if let Some(Value::String(name)) = name {
            self.send(&name, &data);
        }
    }

    fn used(&self, tokens: usize) {
        self.tokens.fetch_add(tokens as u64, Ordering::Relaxed);
    }
}

fn events(service: &Service, receiver: mpsc::UnboundedReceiver<Bytes>) -> Response {
    let keep_alive = service.settings.config.keep_alive;
    let stream = stream::unfold(receiver, move |mut receiver| async move {
        let event = match tokio::time::timeout(keep_alive, receiver.recv()).await {
            Ok(event) => event?,
            // A comment keeps proxies from closing an idle connection.
            Err(_) => Bytes::from_static(b": keep-alive\n\n"),
        };
        Some((Ok::<_, Infallible>(event), receiver))
    });
    response::event_stream(Body::from_stream(stream))
}

async fn read(service: &Service, request: Request<Body>) -> Result<ChatRequest, Refusal> {
    let body = read_limited(request.into_body(), MAX_BODY_BYTES, service.settings.config.call_timeout).await;
    let body = body.map_err(problem::unreadable)?;
    // An array would be read as the fields in their order.
    let is_object = body.trim_ascii_start().starts_with(b"{");
    let error = match serde_json::from_slice(&body) {
        Ok(question) if is_object => return Ok(question),
        Ok(_) => "not an object".to_owned(),
        Err(error) => error.to_string(),
    };
    let message = format!(
        "Invalid request body: {error}; send {{\"message\": \"…\", \"conversation_id\"?: \"…\", \"confirm\"?: [\"…\"]}} (the user comes from the token)"
    );
    Err(problem::new(ErrorKind::InvalidArgument, &message).into())
}

fn json_answer(answer: &ChatAnswer) -> Response {
    response::json(StatusCode::OK, json!(answer).to_string())
}

fn not_configured(no_chat: &NoChat) -> Response {
    let message = match no_chat {
        NoChat::Unconfigured => format!("Chat needs a model. Add this to tribune.toml:\n{}", no_chat.remedy()),
        NoChat::Unusable(reason) => reason.clone(),
    };
    let mut body = problem::body("model_not_configured", &message);
    if *no_chat == NoChat::Unconfigured {
        body["error"]["missing"] = json!(NoChat::LINES);
    }
    response::json(StatusCode::SERVICE_UNAVAILABLE, body.to_string())
}

fn interrupted() -> Error {
    Error::unavailable("The server stopped before the answer was complete; ask again in a moment")
}
