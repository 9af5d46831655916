//! The older HTTP+SSE transport: a stream opened with `GET /sse`, messages sent with
//! `POST /sse/messages?sessionId=…`.

use std::collections::HashMap;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use axum::body::{Body, Bytes};
use axum::response::Response;
use futures::channel::mpsc;
use futures::{SinkExt, Stream, StreamExt};
use http::StatusCode;
use http::request::Parts;
use rmcp::model::{ClientJsonRpcMessage, GetExtensions, ServerJsonRpcMessage};
use serde_json::Value;
use tokio::time::{Instant, Interval};
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::task_tracker::TaskTrackerToken;
use tribune_conformance::Conformance;
use tribune_core::Principal;

use super::{Handler, collapse, rpc};
use crate::http::callers::Caller;
use crate::profile::{Profile, unpoisoned};
use crate::service::Service;

/// Messages waiting in either direction before the sender has to wait too.
const CHANNEL: usize = 16;

/// Requests one stream may have unanswered. Answers wait in memory until they are read, so a client
/// that does not read must not go on asking.
const MAX_UNANSWERED: usize = 64;

/// One for each request of a stream whose answer has not left: a stopping server waits for them.
type Unanswered = Arc<Mutex<Vec<TaskTrackerToken>>>;

/// Where messages for an open connection go.
#[derive(Clone)]
struct Inbox {
    messages: mpsc::Sender<ClientJsonRpcMessage>,
    unanswered: Unanswered,
    /// Whoever opened the connection: nobody else may speak on it.
    owner: Principal,
}

pub struct Sse {
    service: Arc<Service>,
    open: Arc<Mutex<HashMap<String, Inbox>>>,
}

impl Sse {
    pub fn new(service: Arc<Service>) -> Self {
        Self {
            service,
            open: Arc::default(),
        }
    }

    pub fn open_count(&self) -> usize {
        unpoisoned(&self.open).len()
    }

    /// Opens a connection: its first event says where to send messages.
    pub fn connect(&self, profile: &Arc<Profile>, owner: Principal) -> Response {
        let settings = &self.service.settings;
        if self.open_count() >= settings.max_sessions {
            return rpc::error(
                StatusCode::SERVICE_UNAVAILABLE,
                &Value::Null,
                rpc::SERVER_ERROR,
                "the server has as many open streams as it may have; try again in a minute",
            );
        }
        let id = uuid::Uuid::new_v4().to_string();
        let (messages, incoming) = mpsc::channel(CHANNEL);
        let (outgoing, outbox) = mpsc::channel(CHANNEL);
        let unanswered = Unanswered::default();
        let inbox = Inbox {
            messages,
            unanswered: unanswered.clone(),
            owner,
        };
        unpoisoned(&self.open).insert(id.clone(), inbox);

        let ended = self.service.closing.child_token();
        let handler = Handler::new(self.service.clone(), profile.clone());
        if settings.conformance {
            tokio::spawn(serve(Conformance::new(handler), outgoing, incoming, ended.clone()));
        } else {
            tokio::spawn(serve(handler, outgoing, incoming, ended.clone()));
        }

        let endpoint = format!("{}/sse/messages?sessionId={id}", self.service.links.path_prefix());
        let events = Events {
            first: Some(format!("event: endpoint\ndata: {endpoint}\n\n").into()),
            outbox,
            unanswered,
            keep_alive: keep_alive(settings.keep_alive),
            until: Box::pin(tokio::time::sleep(settings.max_sse)),
            closing: Box::pin(ended.clone().cancelled_owned()),
            legacy_results: settings.legacy_results,
            _end: ended.drop_guard(),
            _forget: Forget {
                open: self.open.clone(),
                id,
            },
        };
        rpc::event_stream(Body::from_stream(events))
    }

    /// Takes a message for an open connection; the answer comes on its stream.
    pub async fn message(&self, id: &str, parts: Parts, body: &[u8]) -> Response {
        let inbox = unpoisoned(&self.open).get(id).cloned();
        let caller = parts.extensions.get::<Caller>().map(|caller| &caller.principal);
        let Some(mut inbox) = inbox.filter(|inbox| Some(&inbox.owner) == caller) else {
            return rpc::error(
                StatusCode::NOT_FOUND,
                &Value::Null,
                -32001,
                "this stream is unknown, has ended or was opened with another token: open a new one with GET /sse",
            );
        };
        let mut message = match serde_json::from_slice::<ClientJsonRpcMessage>(body) {
            Ok(message) => message,
            Err(error) if error.is_data() => {
                return rpc::error(
                    StatusCode::BAD_REQUEST,
                    &Value::Null,
                    rpc::INVALID_REQUEST,
                    "the body is not a JSON-RPC message of this protocol",
                );
            }
            Err(error) => {
                let message = format!("the body is not valid JSON: {error}");
                return rpc::error(StatusCode::BAD_REQUEST, &Value::Null, rpc::PARSE_ERROR, &message);
            }
        };
        if let ClientJsonRpcMessage::Request(request) = &mut message {
            if !self.expect_answer(&inbox) {
                return rpc::error(
                    StatusCode::TOO_MANY_REQUESTS,
                    &Value::Null,
                    rpc::SERVER_ERROR,
                    "too many requests of this stream wait for their answer to be read: read the stream, then go on",
                );
            }
            request.request.extensions_mut().insert(parts);
        }
        if inbox.messages.send(message).await.is_err() {
            return rpc::error(
                StatusCode::GONE,
                &Value::Null,
                -32001,
                "this stream has just ended: open a new one with GET /sse",
            );
        }
        let mut response = Response::new(Body::from("Accepted"));
        *response.status_mut() = StatusCode::ACCEPTED;
        response
    }
}

impl Sse {
    /// Whether one more request may wait for its answer.
    fn expect_answer(&self, inbox: &Inbox) -> bool {
        let mut unanswered = unpoisoned(&inbox.unanswered);
        let has_room = unanswered.len() < MAX_UNANSWERED;
        if has_room {
            unanswered.push(self.service.answers.token());
        }
        has_room
    }
}

async fn serve<H: rmcp::ServerHandler>(
    handler: H,
    outgoing: mpsc::Sender<ServerJsonRpcMessage>,
    incoming: mpsc::Receiver<ClientJsonRpcMessage>,
    ended: CancellationToken,
) {
    match rmcp::service::serve_server_with_ct(handler, (outgoing, incoming), ended).await {
        Ok(running) => drop(running.waiting().await),
        Err(error) => tracing::debug!(%error, "an SSE client left before it had introduced itself"),
    }
}

fn keep_alive(period: std::time::Duration) -> Interval {
    let mut interval = tokio::time::interval_at(Instant::now() + period, period);
    interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    interval
}

/// The events of one connection. Dropped when the client goes away, which ends everything behind it.
struct Events {
    first: Option<Bytes>,
    outbox: mpsc::Receiver<ServerJsonRpcMessage>,
    unanswered: Unanswered,
    keep_alive: Interval,
    until: Pin<Box<tokio::time::Sleep>>,
    closing: Pin<Box<tokio_util::sync::WaitForCancellationFutureOwned>>,
    legacy_results: bool,
    _end: DropGuard,
    _forget: Forget,
}

struct Forget {
    open: Arc<Mutex<HashMap<String, Inbox>>>,
    id: String,
}

impl Drop for Forget {
    fn drop(&mut self) {
        unpoisoned(&self.open).remove(&self.id);
    }
}

impl Stream for Events {
    type Item = Result<Bytes, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if let Some(first) = self.first.take() {
            return Poll::Ready(Some(Ok(first)));
        }
        if self.until.as_mut().poll(cx).is_ready() || self.closing.as_mut().poll(cx).is_ready() {
            return Poll::Ready(None);
        }
        if let Poll::Ready(message) = self.outbox.poll_next_unpin(cx) {
            if let Some(ServerJsonRpcMessage::Response(_) | ServerJsonRpcMessage::Error(_)) = &message {
                unpoisoned(&self.unanswered).pop();
            }
            let event = message.map(|message| Ok(event(&message, self.legacy_results)));
            return Poll::Ready(event);
        }
        if self.keep_alive.poll_tick(cx).is_ready() {
            return Poll::Ready(Some(Ok(Bytes::from_static(b": keep-alive\n\n"))));
        }
        Poll::Pending
    }
}

fn event(message: &ServerJsonRpcMessage, legacy_results: bool) -> Bytes {
    let mut value = serde_json::to_value(message).unwrap_or_default();
    if legacy_results {
        collapse::add_legacy_results(&mut value);
    }
    format!("event: message\ndata: {value}\n\n").into()
}
