//! The older HTTP+SSE transport: a stream opened with `GET /sse`, messages sent with
//! `POST /sse/messages?sessionId=…`.

#![allow(clippy::disallowed_methods, reason = "a session id must be unpredictable")]

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::response::{IntoResponse, Response};
use futures::channel::mpsc;
use futures::future::BoxFuture;
use futures::{FutureExt, SinkExt, StreamExt, stream};
use http::StatusCode;
use http::request::Parts;
use parking_lot::Mutex;
use rmcp::model::{ClientJsonRpcMessage, GetExtensions, ServerJsonRpcMessage};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::task_tracker::TaskTrackerToken;
#[cfg(feature = "conformance")]
use tribune_conformance::Conformance;
use tribune_core::Principal;

use super::streamable::check_scope;
use super::{Handler, collapse, render};
use crate::identity::Caller;
use crate::response::{self, rpc};
use crate::service::{Profile, Service};
use tribune_limits::Place;

/// Messages that may wait in either direction before the sender has to wait.
const CHANNEL: usize = 16;

/// Requests of one stream without a response that was read. Responses wait in memory, so a client that does not read
/// must not send more.
const MAX_UNANSWERED: usize = 64;

/// One for each request of a stream whose response was not sent: a stopping server waits for them.
type Unanswered = Arc<Mutex<Vec<TaskTrackerToken>>>;

/// The receiving end of an open connection.
#[derive(Clone)]
struct Inbox {
    messages: mpsc::Sender<ClientJsonRpcMessage>,
    unanswered: Unanswered,
    /// Who opened the connection: only they may send messages to it.
    owner: Principal,
    profile: Arc<Profile>,
}

impl Inbox {
    /// A token that opens one profile is not for the connections of others.
    fn accepts(&self, caller: &Caller) -> bool {
        let only = caller.profile.as_deref();
        self.owner == caller.principal && only.is_none_or(|only| only == self.profile.name())
    }
}

pub struct Sse {
    service: Arc<Service>,
    slots: Arc<Semaphore>,
    open: Arc<Mutex<HashMap<String, Inbox>>>,
}

impl Sse {
    pub fn new(service: Arc<Service>) -> Self {
        Self { slots: Arc::new(Semaphore::new(service.settings.config.max_sessions)), service, open: Arc::default() }
    }

    pub fn open_count(&self) -> usize {
        self.service.settings.config.max_sessions - self.slots.available_permits()
    }

    /// Opens a connection; its first event is the address for messages.
    pub(crate) fn connect(&self, profile: &Arc<Profile>, caller: &Caller) -> Response {
        let settings = &self.service.settings;
        let owner = caller.principal.clone();
        let place = match self.service.limits.stream(&owner, caller.peer) {
            Ok(place) => place,
            Err(exceeded) => return response::exceeded(true, exceeded),
        };
        let Ok(slot) = self.slots.clone().try_acquire_owned() else {
            return rpc::error(
                StatusCode::SERVICE_UNAVAILABLE,
                rpc::SERVER_ERROR,
                "Too many open streams (server.max_sessions); try again in a minute.",
            );
        };
        let id = uuid::Uuid::new_v4().to_string();
        let (messages, incoming) = mpsc::channel(CHANNEL);
        let (outgoing, outbox) = mpsc::channel(CHANNEL);
        let unanswered = Unanswered::default();
        let inbox = Inbox { messages, unanswered: unanswered.clone(), owner, profile: profile.clone() };
        self.open.lock().insert(id.clone(), inbox);

        let ended = self.service.closing.child_token();
        let handler = Handler {
            service: self.service.clone(),
            profile: profile.clone(),
            default_principal: Principal::Anonymous,
        };
        match settings.conformance {
            #[cfg(feature = "conformance")]
            true => tokio::spawn(serve(Conformance::new(handler), outgoing, incoming, ended.clone())),
            _ => tokio::spawn(serve(handler, outgoing, incoming, ended.clone())),
        };

        let endpoint = format!("{}/sse/messages?sessionId={id}", self.service.links.path_prefix());
        let first = format!("event: endpoint\ndata: {endpoint}\n\n").into();
        let events = Events {
            outbox,
            unanswered,
            keep_alive: settings.config.keep_alive,
            until: Instant::now() + settings.config.max_sse,
            legacy_results: settings.config.legacy_results,
            signed_out: caller.clone().has_ended(self.service.accounts.clone()).boxed(),
            ended: ended.clone(),
            _end: ended.drop_guard(),
            _entry: Entry { open: self.open.clone(), id, _slot: slot, _place: place },
        };
        let later = stream::unfold(events, |mut events| async move { Some((events.next().await?, events)) });
        let events = stream::once(async { first }).chain(later).map(Ok::<Bytes, Infallible>);
        response::event_stream(Body::from_stream(events))
    }

    /// Accepts a message for an open connection; the response comes on its stream.
    pub async fn message(&self, id: &str, parts: Parts, body: &[u8]) -> Response {
        let inbox = self.open.lock().get(id).cloned();
        let caller = parts.extensions.get::<Caller>();
        let invalid = |code, message: &str| rpc::error(StatusCode::BAD_REQUEST, code, message);
        let Some(mut inbox) = inbox.filter(|inbox| caller.is_some_and(|caller| inbox.accepts(caller))) else {
            return rpc::error(
                StatusCode::NOT_FOUND,
                rpc::SESSION_UNKNOWN,
                "Unknown stream: it has ended or was opened with another token. Open a new one with GET /sse.",
            );
        };
        if let Err(refusal) = check_scope(&self.service, "/sse", &inbox.profile, &parts, body) {
            return refusal.into_response();
        }
        let mut message = match serde_json::from_slice::<ClientJsonRpcMessage>(body) {
            Ok(message) => message,
            Err(error) if error.is_data() => return invalid(rpc::INVALID_REQUEST, "The body is not an MCP message."),
            Err(error) => return invalid(rpc::PARSE_ERROR, &format!("The body is not valid JSON: {error}")),
        };
        if let ClientJsonRpcMessage::Request(request) = &mut message {
            let mut unanswered = inbox.unanswered.lock();
            if unanswered.len() >= MAX_UNANSWERED {
                return rpc::error(
                    StatusCode::TOO_MANY_REQUESTS,
                    rpc::SERVER_ERROR,
                    "Too many unread responses on this stream; read them before sending more requests.",
                );
            }
            unanswered.push(self.service.answers.token());
            request.request.extensions_mut().insert(parts);
        }
        if inbox.messages.send(message).await.is_err() {
            return rpc::error(
                StatusCode::GONE,
                rpc::SESSION_UNKNOWN,
                "This stream has just ended. Open a new one with GET /sse.",
            );
        }
        let mut response = Response::new(Body::from("Accepted"));
        *response.status_mut() = StatusCode::ACCEPTED;
        response
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
        Err(error) => tracing::debug!(%error, "an SSE client left before `initialize`"),
    }
}

/// The events of one connection. It is dropped when the client disconnects, which ends everything behind it.
struct Events {
    outbox: mpsc::Receiver<ServerJsonRpcMessage>,
    unanswered: Unanswered,
    keep_alive: Duration,
    until: Instant,
    legacy_results: bool,
    signed_out: BoxFuture<'static, ()>,
    ended: CancellationToken,
    _end: DropGuard,
    _entry: Entry,
}

impl Events {
    async fn next(&mut self) -> Option<Bytes> {
        let message = tokio::select! {
            biased;
            () = tokio::time::sleep_until(self.until) => return None,
            () = self.ended.cancelled() => return None,
            () = &mut self.signed_out => return None,
            message = self.outbox.next() => message?,
            () = tokio::time::sleep(self.keep_alive) => return Some(Bytes::from_static(b": keep-alive\n\n")),
        };
        if matches!(message, ServerJsonRpcMessage::Response(_) | ServerJsonRpcMessage::Error(_)) {
            self.unanswered.lock().pop();
        }
        let mut value = serde_json::to_value(message).unwrap_or_default();
        if self.legacy_results {
            collapse::add_legacy_results(&mut value);
        }
        if let Some(result) = value.get_mut("result") {
            render::add_security(result);
        }
        Some(format!("event: message\ndata: {value}\n\n").into())
    }
}

/// Removes the connection from the map when it ends.
struct Entry {
    open: Arc<Mutex<HashMap<String, Inbox>>>,
    id: String,
    _slot: OwnedSemaphorePermit,
    _place: Place,
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.open.lock().remove(&self.id);
    }
}
