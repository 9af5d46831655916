//! `/mcp`: Streamable HTTP in both eras, in front of rmcp's service.
//!
//! What is ours here: one size limit, JSON-RPC errors for what rmcp answers in plain text, clients
//! that send no or a narrow `Accept`, clients that lose their session id, and the lean path.

use std::collections::HashMap;
use std::sync::Arc;

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use futures::future::BoxFuture;
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode, header};
use http_body_util::{BodyExt, Full};
use rmcp::ServerHandler;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use serde::Deserialize;
use serde_json::Value;
use tokio_util::task::task_tracker::TaskTrackerToken;
use tribune_conformance::Conformance;

use super::owners::{self, Owners};
use super::{Handler, MODERN, collapse, lean, rpc};
use crate::http::callers::Caller;
use crate::profile::Profile;
use crate::service::Service;
use crate::settings::Settings;

pub(super) const SESSION_HEADER: &str = "mcp-session-id";
const SESSION_UNKNOWN: i32 = -32001;
const SESSION_IS_UNKNOWN: &str = "this session is unknown or has ended: send `initialize` again to start a new one";
const JSON: &str = "application/json";
const EVENT_STREAM: &str = "text/event-stream";
const BOTH: HeaderValue = HeaderValue::from_static("application/json, text/event-stream");

/// rmcp's service, whatever handler is behind it.
trait Rmcp: Send + Sync {
    fn handle(&self, request: Request<Full<Bytes>>) -> BoxFuture<'_, Response>;
}

impl<H: ServerHandler> Rmcp for StreamableHttpService<H, LocalSessionManager> {
    fn handle(&self, request: Request<Full<Bytes>>) -> BoxFuture<'_, Response> {
        Box::pin(async move { Self::handle(self, request).await.map(Body::new) })
    }
}

/// The Streamable HTTP side of one profile.
struct Endpoint {
    /// Answers the modern era, `initialize` where it starts a session, and everything that carries a session id.
    streaming: Box<dyn Rmcp>,
    /// Answers everything else with plain JSON: hosts of the older era drop session ids between
    /// batches of calls, and a stateless answer is better than an error.
    stateless: Box<dyn Rmcp>,
    sessions: Arc<LocalSessionManager>,
    owners: Owners,
}

pub struct Streamable {
    service: Arc<Service>,
    endpoints: HashMap<String, Endpoint>,
}

/// What is looked at of a message before it goes to rmcp.
#[derive(Deserialize)]
struct Peek {
    #[serde(default)]
    id: Value,
    #[serde(default)]
    method: String,
}

impl Streamable {
    pub fn new(service: Arc<Service>) -> Self {
        let endpoints = service
            .profiles()
            .map(|profile| {
                // Sessions belong to the profile they were opened on: another must not know them.
                let mut sessions = LocalSessionManager::default();
                sessions.session_config.keep_alive = Some(service.settings.session_idle);
                let sessions = Arc::new(sessions);
                let handler = Handler::new(service.clone(), profile.clone());
                let endpoint = if service.settings.conformance {
                    Endpoint::new(&service, &Conformance::new(handler), &sessions)
                } else {
                    Endpoint::new(&service, &handler, &sessions)
                };
                (profile.name().to_owned(), endpoint)
            })
            .collect();
        Self { service, endpoints }
    }

    pub async fn session_count(&self) -> usize {
        let mut count = 0;
        for endpoint in self.endpoints.values() {
            count += endpoint.sessions.sessions.read().await.len();
        }
        count
    }

    pub async fn handle(&self, profile: &Arc<Profile>, request: Request<Body>) -> Response {
        let Some(endpoint) = self.endpoints.get(profile.name()) else {
            return rpc::error(
                StatusCode::NOT_FOUND,
                &Value::Null,
                rpc::SERVER_ERROR,
                "no such profile",
            );
        };
        if endpoint.owners.refuse(&request) {
            return unknown_session();
        }
        if request.method() == Method::POST {
            self.post(endpoint, profile, request).await
        } else {
            Self::stream(endpoint, request).await
        }
    }

    async fn post(&self, endpoint: &Endpoint, profile: &Arc<Profile>, request: Request<Body>) -> Response {
        let (mut parts, body) = request.into_parts();
        if let Some(refusal) = refuse_content_type(&parts.headers) {
            return refusal;
        }
        let settings = &self.service.settings;
        let body = match read_body(body, settings).await {
            Ok(body) => body,
            Err(refusal) => return *refusal,
        };
        let accept = Accept::of(&parts.headers);
        if accept.json
            && let Some(caller) = parts.extensions.get::<Caller>()
            && let Some(answer) = lean::answer(&self.service, profile, &parts.headers, caller, &body).await
        {
            return self.with_legacy_results(answer).await;
        }
        let peek = match peek(&body) {
            Ok(peek) => peek,
            Err(refusal) => return *refusal,
        };
        let is_initialize = peek.method == "initialize";
        // With as many sessions as there may be, a newcomer is served without one and not turned away.
        let opens_session = is_initialize && settings.sessions && self.session_count().await < settings.max_sessions;
        let streaming = opens_session
            || parts.headers.contains_key(SESSION_HEADER)
            || parts
                .headers
                .get("mcp-protocol-version")
                .is_some_and(|version| version == MODERN);
        let rmcp = if streaming {
            endpoint.streaming.as_ref()
        } else {
            endpoint.stateless.as_ref()
        };
        normalise(&mut parts);
        let caller = parts.extensions.get::<Caller>().cloned();
        // From before the call is counted to after the answer has left: a stopping server waits for both.
        let unwritten = self.service.answers.token();
        let answer = forward(rmcp, parts, Full::new(body), &peek.id).await;
        let answer = held_while_streamed(answer, unwritten);
        let begun = owners::session(answer.headers())
            .filter(|_| is_initialize)
            .map(str::to_owned);
        if let (Some(session), Some(caller)) = (begun, caller) {
            endpoint
                .owners
                .note(session, caller.principal, &endpoint.sessions)
                .await;
        }
        if collapse::is_event_stream(&answer) && (!accept.stream || self.wants_legacy_results(&peek)) {
            collapse::to_json(answer, |message| self.change(message)).await
        } else if self.wants_legacy_results(&peek) {
            self.with_legacy_results(answer).await
        } else {
            answer
        }
    }

    fn wants_legacy_results(&self, peek: &Peek) -> bool {
        self.service.settings.legacy_results && peek.method == "tools/call"
    }

    fn change(&self, message: &mut Value) {
        if self.service.settings.legacy_results {
            collapse::add_legacy_results(message);
        }
    }

    async fn with_legacy_results(&self, answer: Response) -> Response {
        if self.service.settings.legacy_results {
            return collapse::change_json(answer, usize::MAX, collapse::add_legacy_results).await;
        }
        answer
    }

    /// GET opens a session's stream, DELETE ends a session.
    async fn stream(endpoint: &Endpoint, request: Request<Body>) -> Response {
        let (mut parts, _) = request.into_parts();
        let has_session = parts.headers.contains_key(SESSION_HEADER);
        if parts.method == Method::GET && !has_session {
            return not_a_page();
        }
        if parts.method == Method::GET {
            parts
                .headers
                .insert(header::ACCEPT, HeaderValue::from_static(EVENT_STREAM));
        }
        let ends_session = parts.method == Method::DELETE;
        let mut answer = forward(endpoint.streaming.as_ref(), parts, Full::default(), &Value::Null).await;
        if ends_session && answer.status() == StatusCode::ACCEPTED {
            // rmcp's 202 makes the Python clients warn at every close: to them 204 means done.
            *answer.status_mut() = StatusCode::NO_CONTENT;
        }
        answer
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Answers {
    Streamed,
    /// JSON unless the tool has something to say on the way.
    Plain,
}

impl Endpoint {
    fn new<H: ServerHandler + Clone>(service: &Service, handler: &H, sessions: &Arc<LocalSessionManager>) -> Self {
        Self {
            streaming: Box::new(rmcp_service(
                service,
                handler,
                sessions,
                service.settings.sessions,
                Answers::Streamed,
            )),
            stateless: Box::new(rmcp_service(service, handler, sessions, false, Answers::Plain)),
            sessions: sessions.clone(),
            owners: Owners::default(),
        }
    }
}

fn rmcp_service<H: ServerHandler + Clone>(
    service: &Service,
    handler: &H,
    sessions: &Arc<LocalSessionManager>,
    with_sessions: bool,
    answers: Answers,
) -> StreamableHttpService<H, LocalSessionManager> {
    let settings = &service.settings;
    let config = StreamableHttpServerConfig::default()
        // Hosts and origins are checked for all paths at once, in front of the router.
        .disable_allowed_hosts()
        .disable_allowed_origins()
        .with_sse_keep_alive(Some(settings.keep_alive))
        .with_max_request_body_bytes(settings.max_body_bytes)
        .with_legacy_session_mode(with_sessions)
        .with_json_response(answers == Answers::Plain)
        .with_cancellation_token(service.closing.child_token());
    let handler = handler.clone();
    StreamableHttpService::new(move || Ok(handler.clone()), sessions.clone(), config)
}

/// What a client says it takes. None, `*/*` and `application/*` take JSON; a stream must be named.
struct Accept {
    json: bool,
    stream: bool,
}

impl Accept {
    fn of(headers: &HeaderMap) -> Self {
        let mut accept = Self {
            json: !headers.contains_key(header::ACCEPT),
            stream: false,
        };
        for value in headers.get_all(header::ACCEPT) {
            let value = value.to_str().unwrap_or_default();
            accept.stream |= value.contains(EVENT_STREAM);
            accept.json |= value.contains(JSON) || value.contains("*/*") || value.contains("application/*");
        }
        // Whoever asks for neither gets JSON: an answer they may be able to read.
        accept.json |= !accept.stream;
        accept
    }
}

fn refuse_content_type(headers: &HeaderMap) -> Option<Response> {
    let given = headers.get(header::CONTENT_TYPE)?.to_str().unwrap_or_default();
    if given.trim_start().to_ascii_lowercase().starts_with(JSON) {
        return None;
    }
    Some(rpc::error(
        StatusCode::UNSUPPORTED_MEDIA_TYPE,
        &Value::Null,
        rpc::INVALID_REQUEST,
        "MCP messages are JSON: send them with `Content-Type: application/json`",
    ))
}

/// An answer given instead of going on; boxed, because it is large and rare.
pub(crate) type Refusal = Box<Response>;

fn refuse(status: StatusCode, code: i32, message: &str) -> Refusal {
    Box::new(rpc::error(status, &Value::Null, code, message))
}

pub(crate) async fn read_body(body: Body, settings: &Settings) -> Result<Bytes, Refusal> {
    let limited = http_body_util::Limited::new(body, settings.max_body_bytes);
    match tokio::time::timeout(settings.call_timeout, limited.collect()).await {
        Ok(Ok(collected)) => Ok(collected.to_bytes()),
        Ok(Err(error)) if error.is::<http_body_util::LengthLimitError>() => Err(refuse(
            StatusCode::PAYLOAD_TOO_LARGE,
            rpc::INVALID_REQUEST,
            &format!(
                "the message is larger than {} bytes; send less at once",
                settings.max_body_bytes
            ),
        )),
        Ok(Err(_)) => Err(refuse(
            StatusCode::BAD_REQUEST,
            rpc::INVALID_REQUEST,
            "the message did not arrive whole; send it again",
        )),
        Err(_) => Err(refuse(
            StatusCode::REQUEST_TIMEOUT,
            rpc::INVALID_REQUEST,
            "the message did not arrive in time; send it again",
        )),
    }
}

fn peek(body: &[u8]) -> Result<Peek, Refusal> {
    let refused = |code, message: &str| Err(refuse(StatusCode::BAD_REQUEST, code, message));
    match serde_json::from_slice::<Peek>(body) {
        Ok(peek) => Ok(peek),
        Err(error) if error.is_data() && body.trim_ascii_start().starts_with(b"[") => refused(
            rpc::INVALID_REQUEST,
            "batches are not part of this protocol any more: send each message in a request of its own",
        ),
        Err(error) if error.is_data() => refused(
            rpc::INVALID_REQUEST,
            "the body is not a JSON-RPC message: it needs `jsonrpc`, `method` and, for a request, `id`",
        ),
        Err(error) => refused(rpc::PARSE_ERROR, &format!("the body is not valid JSON: {error}")),
    }
}

/// rmcp wants both content types accepted and the content type named; clients need not say so.
fn normalise(parts: &mut Parts) {
    parts.headers.insert(header::ACCEPT, BOTH);
    parts
        .headers
        .insert(header::CONTENT_TYPE, HeaderValue::from_static(JSON));
}

async fn forward(rmcp: &dyn Rmcp, parts: Parts, body: Full<Bytes>, id: &Value) -> Response {
    let modern = parts
        .headers
        .get("mcp-protocol-version")
        .is_some_and(|version| version == MODERN);
    let answer = rmcp.handle(Request::from_parts(parts, body)).await;
    if answer.status().is_client_error() || answer.status().is_server_error() {
        return explain(answer, id, modern).await;
    }
    answer
}

/// An answer that is still streamed counts until its stream has ended, or its reader has gone; one that is whole needs
/// rmcp no more.
fn held_while_streamed(answer: Response, unwritten: TaskTrackerToken) -> Response {
    if !collapse::is_event_stream(&answer) {
        return answer;
    }
    answer.map(|body| {
        Body::new(body.map_frame(move |frame| {
            let _held_with_the_body = &unwritten;
            frame
        }))
    })
}

/// rmcp's plain-text refusals as JSON-RPC errors that say what to do.
async fn explain(answer: Response, id: &Value, modern: bool) -> Response {
    let status = answer.status();
    let is_json = answer
        .headers()
        .get(header::CONTENT_TYPE)
        .is_some_and(|value| value.as_bytes().starts_with(JSON.as_bytes()));
    if is_json {
        return answer;
    }
    let allow = answer.headers().get(header::ALLOW).cloned();
    let reason = axum::body::to_bytes(answer.into_body(), 4096).await.unwrap_or_default();
    let reason = String::from_utf8_lossy(&reason).into_owned();
    let (status, code, message) = match status {
        // Rmcp's word for JSON that is not a message of the protocol.
        StatusCode::UNSUPPORTED_MEDIA_TYPE => (
            StatusCode::BAD_REQUEST,
            rpc::INVALID_REQUEST,
            "the body is not a JSON-RPC message of this protocol: check `jsonrpc`, `id`, `method` and `params`"
                .to_owned(),
        ),
        StatusCode::NOT_FOUND => (status, SESSION_UNKNOWN, SESSION_IS_UNKNOWN.to_owned()),
        StatusCode::METHOD_NOT_ALLOWED if modern => (
            status,
            rpc::SERVER_ERROR,
            "this protocol version has no sessions and no stream to open: send each request as a POST".to_owned(),
        ),
        _ => (status, rpc::SERVER_ERROR, reason),
    };
    let mut response = rpc::error(status, id, code, &message);
    if let Some(allow) = allow {
        response.headers_mut().insert(header::ALLOW, allow);
    }
    response
}

fn unknown_session() -> Response {
    rpc::error(StatusCode::NOT_FOUND, &Value::Null, SESSION_UNKNOWN, SESSION_IS_UNKNOWN)
}

fn not_a_page() -> Response {
    let mut response = rpc::error(
        StatusCode::METHOD_NOT_ALLOWED,
        &Value::Null,
        rpc::SERVER_ERROR,
        "this is an MCP endpoint: add its address to ChatGPT, Claude or another MCP client, or POST JSON-RPC to it; the page for people is at /",
    );
    response
        .headers_mut()
        .insert(header::ALLOW, HeaderValue::from_static("POST"));
    response
}
