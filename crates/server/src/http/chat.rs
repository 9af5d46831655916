//! `/chat`: a question to the agent; its answer as JSON, or as it comes.

use std::convert::Infallible;
use std::time::Duration;

use axum::Extension;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::response::Response;
use futures::stream;
use http::{HeaderMap, Request, StatusCode, header};
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};
use tribune_agent::{Begun, ChatAnswer, ChatRequest, Event, Events, Turn};
use tribune_core::{Error, ErrorKind, Result};

use super::callers::Caller;
use super::{App, problem, read_limited};
use crate::chat::{Chat, Place};
use crate::mcp::rpc;
use crate::service::NoChat;

/// A message of 4,000 characters fits several times over.
const MAX_BODY_BYTES: usize = 64 * 1024;
const BUSY: &str = "as many questions are being answered as may be at once; ask again in a moment";
const SIGN_IN: &str = "a conversation belongs to a user: send `Authorization: Bearer TOKEN`; the operator makes a token with `tribune token create --user NAME`";

pub(super) async fn chat(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    request: Request<Body>,
) -> Response {
    let Some(user) = caller.principal.user() else {
        return problem::unauthorized(SIGN_IN);
    };
    if app.service.stopping.is_cancelled() {
        return problem::of(&cut_off());
    }
    let chat = match &app.service.chat {
        Ok(chat) => chat,
        Err(no_chat) => return not_configured(no_chat),
    };
    let streamed = wants_stream(request.headers());
    let asked = match read(&app, request).await {
        Ok(asked) => asked,
        Err(refusal) => return *refusal,
    };
    let Some(place) = chat.place(&user) else {
        return problem::answer(StatusCode::TOO_MANY_REQUESTS, "busy", BUSY);
    };
    match chat.agent.begin(asked, &user).await {
        Err(error) => problem::of(&error),
        Ok(Begun::Answered(answer)) if streamed => events(&app, answered(answer)),
        Ok(Begun::Answered(answer)) => json_answer(&answer),
        Ok(Begun::Turn(turn)) if streamed => events(&app, run(&app, chat, turn, caller, place).1),
        Ok(Begun::Turn(turn)) => match run(&app, chat, turn, caller, place).0.await {
            Ok(Ok(answer)) => json_answer(&answer),
            Ok(Err(error)) => problem::of(&error),
            Err(_) => problem::of(&cut_off()),
        },
    }
}

/// Runs a turn as a task of its own: whoever asked may go away, and what was begun is finished and kept.
fn run(
    app: &App,
    chat: &Chat,
    turn: Turn,
    caller: Caller,
    place: Place,
) -> (oneshot::Receiver<Result<ChatAnswer>>, mpsc::UnboundedReceiver<Bytes>) {
    let (outcome, waiting) = oneshot::channel();
    let (sender, receiver) = mpsc::unbounded_channel();
    let toolbox = chat.toolbox(&app.service, &caller.principal);
    let cx = chat.call_context(&app.service, caller.principal, caller.correlation_id);
    let under_way = app.service.calls.token();
    tokio::spawn(async move {
        let events = ToClient(sender);
        let answer = turn.run(toolbox, cx, &events).await;
        events.last(&answer);
        // Nobody may be waiting any more.
        drop(outcome.send(answer));
        drop((place, under_way));
    });
    (waiting, receiver)
}

/// The one event of a question that has been answered before.
fn answered(answer: ChatAnswer) -> mpsc::UnboundedReceiver<Bytes> {
    let (sender, receiver) = mpsc::unbounded_channel();
    ToClient(sender).last(&Ok(answer));
    receiver
}

/// Events as they stand on the wire. Unbounded, because what an answer may hold is bounded.
struct ToClient(mpsc::UnboundedSender<Bytes>);

impl ToClient {
    fn send(&self, name: &str, data: &Value) {
        drop(self.0.send(format!("event: {name}\ndata: {data}\n\n").into()));
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
}

fn events(app: &App, receiver: mpsc::UnboundedReceiver<Bytes>) -> Response {
    let keep_alive = app.service.settings.keep_alive;
    let stream = stream::unfold(receiver, move |mut receiver| async move {
        let event = next(&mut receiver, keep_alive).await?;
        Some((Ok::<_, Infallible>(event), receiver))
    });
    rpc::event_stream(Body::from_stream(stream))
}

/// The next event, or a comment that keeps proxies from closing a quiet connection.
async fn next(receiver: &mut mpsc::UnboundedReceiver<Bytes>, keep_alive: Duration) -> Option<Bytes> {
    match tokio::time::timeout(keep_alive, receiver.recv()).await {
        Ok(event) => event,
        Err(_) => Some(Bytes::from_static(b": keep-alive\n\n")),
    }
}

fn wants_stream(headers: &HeaderMap) -> bool {
    let accepts = headers.get_all(header::ACCEPT).iter();
    accepts
        .filter_map(|value| value.to_str().ok())
        .any(|value| value.contains("text/event-stream"))
}

async fn read(app: &App, request: Request<Body>) -> Result<ChatRequest, Box<Response>> {
    let refuse =
        |status, message: &str| Box::new(problem::answer(status, ErrorKind::InvalidArgument.as_str(), message));
    let body = read_limited(request.into_body(), MAX_BODY_BYTES, app).await?;
    if !body.trim_ascii_start().starts_with(b"{") {
        return Err(refuse(
            StatusCode::BAD_REQUEST,
            "the body is not a JSON object; send {\"message\": \"…\"}",
        ));
    }
    serde_json::from_slice(&body).map_err(|error| {
        let message = format!(
            "the body is not a question: {error}; send {{\"message\": \"…\", \"conversation_id\"?: \"…\"}} (who asks comes from the token, not from the body)"
        );
        refuse(StatusCode::BAD_REQUEST, &message)
    })
}

fn json_answer(answer: &ChatAnswer) -> Response {
    rpc::json_response(StatusCode::OK, json!(answer).to_string())
}

fn not_configured(no_chat: &NoChat) -> Response {
    let mut body = match no_chat {
        NoChat::Unconfigured => {
            let message = format!(
                "no model is configured, so nobody answers here; these lines are missing in tribune.toml:\n{}",
                no_chat.remedy()
            );
            problem::body("model_not_configured", &message)
        }
        NoChat::Unusable(reason) => problem::body("model_not_configured", reason),
    };
    if *no_chat == NoChat::Unconfigured {
        body["error"]["missing"] = json!(NoChat::LINES);
    }
    rpc::json_response(StatusCode::SERVICE_UNAVAILABLE, body.to_string())
}

fn cut_off() -> Error {
    Error::unavailable("the server stopped before the answer was there; ask again in a moment")
}

/// What the agent is shown to a person as.
pub(super) fn state(chat: &Result<Chat, NoChat>) -> (Option<String>, Option<String>) {
    match chat {
        Ok(chat) => (Some(chat.agent.settings().model.clone()), None),
        Err(no_chat) => (None, Some(no_chat.remedy())),
    }
}
