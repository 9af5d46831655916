//! Streamable HTTP in both eras, in front of rmcp's service.
//!
//! It adds a size limit, JSON-RPC errors where rmcp answers in plain text, support for clients that send no `Accept`
//! or lose their session id, and the lean path.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures::future::BoxFuture;
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode, header};
use http_body_util::{BodyExt, Full};
use rmcp::ServerHandler;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::Semaphore;
use tokio_util::task::task_tracker::TaskTrackerToken;
#[cfg(feature = "conformance")]
use tribune_conformance::Conformance;
use tribune_core::{Principal, Scopes};

use super::message::{Accept, check_content_type, peek, read_body};
use super::sessions::{self, Opening, SESSION_HEADER, Sessions};
use super::{Handler, MODERN, collapse, lean};
use crate::identity::Caller;
use crate::response::{Refusal, rpc};
use crate::service::{Profile, Service, call};

const UNKNOWN_SESSION: &str = "Unknown or ended session: send `initialize` to start a new one.";
pub(super) const JSON: &str = "application/json";
pub(super) const EVENT_STREAM: &str = "text/event-stream";
const BOTH: HeaderValue = HeaderValue::from_static("application/json, text/event-stream");

/// rmcp's service with any handler.
trait Rmcp: Send + Sync {
    fn handle(&self, request: Request<Full<Bytes>>) -> BoxFuture<'_, Response>;
}

impl<H: ServerHandler> Rmcp for StreamableHttpService<H, Sessions> {
    fn handle(&self, request: Request<Full<Bytes>>) -> BoxFuture<'_, Response> {
        Box::pin(async move { Self::handle(self, request).await.map(Body::new) })
    }
}

/// The part of a message that says which tool it calls.
#[derive(Deserialize)]
struct NamedCall<'m> {
    #[serde(default)]
    id: Value,
    #[serde(borrow)]
    method: Cow<'m, str>,
    #[serde(borrow)]
    params: NamedParams<'m>,
}

#[derive(Deserialize)]
struct NamedParams<'m> {
    #[serde(borrow)]
    name: Option<Cow<'m, str>>,
}

/// The Streamable HTTP side of one profile.
struct Endpoint {
    /// For the modern era, for `initialize` that opens a session, and for requests with a session id.
    streaming: Box<dyn Rmcp>,
    /// For everything else, with plain JSON unless the tool sends notifications: hosts of the older era drop session ids between batches of calls, and a
    /// stateless answer is better than an error.
    stateless: Box<dyn Rmcp>,
    sessions: Arc<Sessions>,
}

pub struct Streamable {
    service: Arc<Service>,
    /// The sessions that may still be opened, over all profiles.
    slots: Arc<Semaphore>,
    endpoints: HashMap<String, Endpoint>,
}

impl Streamable {
    pub fn new(service: Arc<Service>) -> Self {
        let endpoints = service
            .profiles()
            .map(|profile| {
                let sessions = Arc::new(Sessions::new(service.settings.config.session_idle));
                let handler = Handler {
                    service: service.clone(),
                    profile: profile.clone(),
                    default_principal: Principal::Anonymous,
                };
                let endpoint = match service.settings.conformance {
                    #[cfg(feature = "conformance")]
                    true => Endpoint::new(&service, &Conformance::new(handler), &sessions),
                    _ => Endpoint::new(&service, &handler, &sessions),
                };
                (profile.name().to_owned(), endpoint)
            })
            .collect();
        Self { slots: Arc::new(Semaphore::new(service.settings.config.max_sessions)), service, endpoints }
    }

    pub fn session_count(&self) -> usize {
        self.service.settings.config.max_sessions - self.slots.available_permits()
    }

    pub async fn handle(&self, profile: &Arc<Profile>, request: Request<Body>) -> Response {
        let Some(endpoint) = self.endpoints.get(profile.name()) else {
            return rpc::error(StatusCode::NOT_FOUND, rpc::SERVER_ERROR, "Unknown profile.");
        };
        let caller = request.extensions().get::<Caller>().map(|caller| &caller.principal);
        if endpoint.sessions.is_foreign(request.headers(), caller) {
            return unknown_session();
        }
        if request.method() == Method::POST {
            let answer = self.post(endpoint, profile, request).await;
            answer.unwrap_or_else(IntoResponse::into_response)
        } else {
            Self::stream(endpoint, request).await
        }
    }

    async fn post(
        &self,
        endpoint: &Endpoint,
        profile: &Arc<Profile>,
        request: Request<Body>,
    ) -> Result<Response, Refusal> {
        let (mut parts, body) = request.into_parts();
        check_content_type(&parts.headers)?;
        let settings = &self.service.settings;
        let body = read_body(body, settings).await?;
        check_scope(&self.service, "/mcp", profile, &parts, &body)?;
        let accept = Accept::new(&parts.headers);
        if accept.json
            && let Some(caller) = parts.extensions.get::<Caller>()
            && let Some(answer) = lean::answer(&self.service, profile, &parts.headers, caller, &body).await
        {
            return Ok(if settings.config.legacy_results {
                collapse::with_legacy_results(answer).await
            } else {
                answer
            });
        }
        let peek = peek(&body)?;
        let opens = peek.method == "initialize" && settings.config.sessions;
        let opening = opens.then(|| self.opening(&parts)).flatten();
        let streaming = opening.is_some() || parts.headers.contains_key(SESSION_HEADER) || is_modern(&parts.headers);
        let rmcp = if streaming { endpoint.streaming.as_ref() } else { endpoint.stateless.as_ref() };
        // rmcp requires both content types in `Accept` and a `Content-Type`; clients need not send them.
        parts.headers.insert(header::ACCEPT, BOTH);
        parts.headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(JSON));
        // A stopping server waits until the response is sent.
        let unwritten = self.service.answers.token();
        let answer = forward(rmcp, parts, Full::new(body), &peek.id);
        let answer = match opening {
            Some(opening) => sessions::open(opening, answer).await,
            None => answer.await,
        };
        let mut answer = held_while_streamed(answer, unwritten);
        let legacy_results = settings.config.legacy_results && peek.method == "tools/call";
        if collapse::is_event_stream(&answer) && (!accept.stream || legacy_results) {
            answer = collapse::to_json(answer).await;
        }
        if legacy_results {
            answer = collapse::with_legacy_results(answer).await;
        }
        if settings.offers_oauth && peek.method == "tools/list" {
            answer = collapse::with_security(answer).await;
        }
        Ok(answer)
    }

    /// A slot for a new session. Without one the client is served statelessly instead of being refused.
    fn opening(&self, parts: &Parts) -> Option<Opening> {
        let caller = parts.extensions.get::<Caller>();
        Some(Opening {
            _slot: self.slots.clone().try_acquire_owned().ok()?,
            owner: caller.map_or(Principal::Anonymous, |caller| caller.principal.clone()),
        })
    }

    /// GET opens a session's stream, DELETE ends a session.
    async fn stream(endpoint: &Endpoint, request: Request<Body>) -> Response {
        let (mut parts, _) = request.into_parts();
        let has_session = parts.headers.contains_key(SESSION_HEADER);
        if parts.method == Method::GET && !has_session {
            return not_a_page();
        }
        if parts.method == Method::GET {
            parts.headers.insert(header::ACCEPT, HeaderValue::from_static(EVENT_STREAM));
        }
        let ends_session = parts.method == Method::DELETE;
        let mut answer = forward(endpoint.streaming.as_ref(), parts, Full::default(), &Value::Null).await;
        if ends_session && answer.status() == StatusCode::ACCEPTED {
            // Python clients warn about rmcp's 202 at every close; they expect 204.
            *answer.status_mut() = StatusCode::NO_CONTENT;
        }
        answer
    }
}

impl Endpoint {
    fn new<H: ServerHandler + Clone>(service: &Service, handler: &H, sessions: &Arc<Sessions>) -> Self {
        let settings = &service.settings;
        let rmcp = |with_sessions, as_json| {
            let config = StreamableHttpServerConfig::default()
                // The guard checks hosts and origins for all paths.
                .disable_allowed_hosts()
                .disable_allowed_origins()
                .with_sse_keep_alive(Some(settings.config.keep_alive))
                .with_max_request_body_bytes(settings.config.max_body_bytes)
                .with_legacy_session_mode(with_sessions)
                .with_json_response(as_json)
                .with_cancellation_token(service.closing.child_token());
            let handler = handler.clone();
            Box::new(StreamableHttpService::new(move || Ok(handler.clone()), sessions.clone(), config))
        };
        Self {
            streaming: rmcp(settings.config.sessions, false),
            stateless: rmcp(false, true),
            sessions: sessions.clone(),
        }
    }
}

/// A token that does not allow a tool is refused here, so that the client can ask the person for more.
pub(super) fn check_scope(
    service: &Service,
    endpoint: &str,
    profile: &Profile,
    parts: &Parts,
    body: &[u8],
) -> Result<(), Refusal> {
    let caller = parts.extensions.get::<Caller>();
    let limited =
        caller.filter(|caller| matches!(caller.principal, Principal::User(_)) && caller.scopes != Scopes::ALL);
    let (Some(caller), Ok(named)) = (limited, serde_json::from_slice::<NamedCall<'_>>(body)) else {
        return Ok(());
    };
    let state = profile.state_for(caller);
    let tool = named.params.name.and_then(|name| state.registry.lookup(&name));
    let Some(tool) = tool.filter(|_| named.method == "tools/call") else {
        return Ok(());
    };
    let tool = &**tool.tool();
    let Err(error) = call::admit(tool, &caller.principal, caller.scopes) else {
        return Ok(());
    };
    let mut refusal = rpc::error_for(&named.id, StatusCode::FORBIDDEN, rpc::SERVER_ERROR, error.message());
    let missing = [tool.scope()].into_iter().collect();
    let challenge = service.challenge(endpoint, profile.name(), missing, Some("insufficient_scope"));
    refusal.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
    Err(refusal.into())
}

fn is_modern(headers: &HeaderMap) -> bool {
    headers.get("mcp-protocol-version").is_some_and(|version| version == MODERN)
}

async fn forward(rmcp: &dyn Rmcp, parts: Parts, body: Full<Bytes>, id: &Value) -> Response {
    let modern = is_modern(&parts.headers);
    let answer = rmcp.handle(Request::from_parts(parts, body)).await;
    if answer.status().is_client_error() || answer.status().is_server_error() {
        return explain(answer, id, modern).await;
    }
    answer
}

/// Keeps `unwritten` until a streamed response has ended or its reader is gone; a complete one does not need rmcp.
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

/// Turns rmcp's plain-text errors into JSON-RPC errors that say what to do.
async fn explain(answer: Response, id: &Value, modern: bool) -> Response {
    let status = answer.status();
    let is_json =
        answer.headers().get(header::CONTENT_TYPE).is_some_and(|value| value.as_bytes().starts_with(JSON.as_bytes()));
    if is_json {
        return answer;
    }
    let allow = answer.headers().get(header::ALLOW).cloned();
    let reason = axum::body::to_bytes(answer.into_body(), 4096).await.unwrap_or_default();
    let reason = String::from_utf8_lossy(&reason).into_owned();
    let (status, code, message) = match status {
        // rmcp's status for JSON that is not an MCP message.
        StatusCode::UNSUPPORTED_MEDIA_TYPE => (
            StatusCode::BAD_REQUEST,
            rpc::INVALID_REQUEST,
            "The body is not an MCP message: check `jsonrpc`, `id`, `method` and `params`.".to_owned(),
        ),
        StatusCode::NOT_FOUND => (status, rpc::SESSION_UNKNOWN, UNKNOWN_SESSION.to_owned()),
        StatusCode::METHOD_NOT_ALLOWED if modern => (
            status,
            rpc::SERVER_ERROR,
            "This protocol version has no sessions and no stream to open: send each request as a POST.".to_owned(),
        ),
        _ => (status, rpc::SERVER_ERROR, reason),
    };
    let mut response = rpc::error_for(id, status, code, &message);
    if let Some(allow) = allow {
        response.headers_mut().insert(header::ALLOW, allow);
    }
    response
}

fn unknown_session() -> Response {
    rpc::error(StatusCode::NOT_FOUND, rpc::SESSION_UNKNOWN, UNKNOWN_SESSION)
}

fn not_a_page() -> Response {
    let mut response = rpc::error(
        StatusCode::METHOD_NOT_ALLOWED,
        rpc::SERVER_ERROR,
        "This is an MCP endpoint: add its address to ChatGPT, Claude or another MCP client, or POST JSON-RPC to it. The page for people is /.",
    );
    response.headers_mut().insert(header::ALLOW, HeaderValue::from_static("POST"));
    response
}
