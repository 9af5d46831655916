//! A server behind a URL: streamable HTTP, with a limit on everything that is read.

use std::collections::HashMap;
use std::error::Error as StdError;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::stream::BoxStream;
use futures::{Stream, StreamExt};
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderName, HeaderValue, StatusCode};
use reqwest::redirect::Policy;
use reqwest::{RequestBuilder, Response};
use rmcp::model::{ClientJsonRpcMessage, ClientRequest, ErrorData, ServerJsonRpcMessage};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::{
    StreamableHttpClient, StreamableHttpClientTransportConfig, StreamableHttpError, StreamableHttpPostResponse,
};
use sse_stream::{Error as SseError, Sse, SseStream};

use crate::sanitize::single_line;
use crate::spec::HttpEndpoint;

const MAX_MESSAGE_BYTES: usize = 16 * 1024 * 1024;
/// Enough for a JSON-RPC error; the rest of an error page is not needed.
const MAX_ERROR_BYTES: usize = 64 * 1024;
const MAX_REDIRECTS: usize = 3;
/// Shorter than the keep-alive of common servers (five seconds), so that no call uses a closing connection.
const IDLE_TIMEOUT: Duration = Duration::from_secs(4);
const MAX_CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const ACCEPTED_TYPES: &str = "text/event-stream, application/json";

type PostResult = Result<StreamableHttpPostResponse, StreamableHttpError<HttpError>>;
type Events = BoxStream<'static, Result<Sse, SseError>>;

/// For the operator. Without the URL, which may hold a key.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HttpError {
    #[error("it cannot be reached: {0}")]
    Unreachable(String),
    #[error("it answered HTTP {0}; it wants a (different) bearer token")]
    Unauthorized(u16),
    #[error("it answered HTTP {0}; is this the address of an MCP server?")]
    ClientError(u16),
    #[error("it answered HTTP {0}")]
    ServerError(u16),
    #[error("it answered with {0}, which is not MCP; is this the address of an MCP server?")]
    ContentType(String),
    #[error("it answered with more than {MAX_MESSAGE_BYTES} bytes")]
    TooLong,
    #[error("its answer is not JSON-RPC")]
    NotJsonRpc,
}

impl HttpError {
    /// Whether a server was there that may accept the other era's handshake.
    pub(crate) fn may_accept_other_handshake(&self) -> bool {
        matches!(self, Self::ClientError(_) | Self::ContentType(_) | Self::NotJsonRpc)
    }

    fn from_status(status: StatusCode) -> Self {
        match status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Self::Unauthorized(status.as_u16()),
            StatusCode::TOO_MANY_REQUESTS => Self::ServerError(status.as_u16()),
            status if status.is_server_error() => Self::ServerError(status.as_u16()),
            status => Self::ClientError(status.as_u16()),
        }
    }
}

impl From<reqwest::Error> for HttpError {
    /// Reports the root cause: reqwest's own message repeats the URL.
    fn from(error: reqwest::Error) -> Self {
        let mut root: &dyn StdError = &error;
        while let Some(cause) = root.source() {
            root = cause;
        }
        if !root.is::<reqwest::Error>() {
            return Self::Unreachable(root.to_string());
        }
        Self::Unreachable(if error.is_timeout() { "timed out" } else { "no answer" }.to_owned())
    }
}

impl From<HttpError> for StreamableHttpError<HttpError> {
    fn from(error: HttpError) -> Self {
        Self::Client(error)
    }
}

pub(crate) fn transport(
    endpoint: &HttpEndpoint,
    timeout: Duration,
) -> Result<StreamableHttpClientTransport<BoundedClient>, String> {
    // Fails if a provider is installed already, which is fine.
    drop(rustls::crypto::ring::default_provider().install_default());
    let mut builder = reqwest::Client::builder()
        .connect_timeout(timeout.min(MAX_CONNECT_TIMEOUT))
        .pool_idle_timeout(IDLE_TIMEOUT)
        .redirect(same_origin_redirects())
        .user_agent(concat!("tribune/", env!("CARGO_PKG_VERSION")));
    if is_local(&endpoint.url) {
        builder = builder.no_proxy();
    }
    let client =
        builder.build().map_err(|error| format!("cannot create an HTTP client: {}", HttpError::from(error)))?;
    let mut config = StreamableHttpClientTransportConfig::with_uri(endpoint.url.as_str());
    if let Some(bearer) = &endpoint.bearer {
        config = config.auth_header(bearer);
    }
    Ok(StreamableHttpClientTransport::with_client(BoundedClient(client), config))
}

fn is_local(url: &str) -> bool {
    let url = reqwest::Url::parse(url).ok();
    let host = url.as_ref().and_then(reqwest::Url::host_str);
    matches!(host, Some("localhost" | "127.0.0.1" | "[::1]"))
}

/// Follows redirects such as `/mcp` to `/mcp/`. Other origins must not get the token, and other statuses drop the body.
fn same_origin_redirects() -> Policy {
    Policy::custom(|attempt| {
        let keeps_body = matches!(attempt.status(), StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT);
        let original = attempt.previous().first();
        let same_origin = original.is_some_and(|original| original.origin() == attempt.url().origin());
        if keeps_body && same_origin && attempt.previous().len() <= MAX_REDIRECTS {
            attempt.follow()
        } else {
            attempt.stop()
        }
    })
}

/// rmcp's own client has no limit on the length of JSON answers.
#[derive(Clone)]
pub(crate) struct BoundedClient(reqwest::Client);

impl StreamableHttpClient for BoundedClient {
    type Error = HttpError;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        bearer: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> PostResult {
        let has_session = session.is_some();
        let request = with_headers(self.0.post(uri.as_ref()), session, bearer, headers).json(&message);
        let response = request.send().await.map_err(HttpError::from)?;
        let status = response.status();
        if matches!(status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT) {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        if status == StatusCode::NOT_FOUND && has_session {
            return Err(StreamableHttpError::SessionExpired);
        }
        if !status.is_success() {
            return read_error(response, &message, has_session).await;
        }
        read_answer(response, &message).await
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session: Arc<str>,
        bearer: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), StreamableHttpError<HttpError>> {
        let request = with_headers(self.0.delete(uri.as_ref()), Some(session), bearer, headers);
        let response = request.send().await.map_err(HttpError::from)?;
        match response.status() {
            // A server need not support this.
            StatusCode::METHOD_NOT_ALLOWED => Ok(()),
            status if status.is_success() => Ok(()),
            status => Err(HttpError::from_status(status).into()),
        }
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last_event: Option<String>,
        bearer: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<Events, StreamableHttpError<HttpError>> {
        let mut request = with_headers(self.0.get(uri.as_ref()), session, bearer, headers);
        if let Some(last_event) = last_event {
            request = request.header("last-event-id", last_event);
        }
        let response = request.send().await.map_err(HttpError::from)?;
        match response.status() {
            StatusCode::METHOD_NOT_ALLOWED => Err(StreamableHttpError::ServerDoesNotSupportSse),
            status if !status.is_success() => Err(HttpError::from_status(status).into()),
            _ if has_type(&response, "text/event-stream") => Ok(events(response)),
            _ => Err(wrong_type(&response).into()),
        }
    }
}

fn with_headers(
    request: RequestBuilder,
    session: Option<Arc<str>>,
    bearer: Option<String>,
    headers: HashMap<HeaderName, HeaderValue>,
) -> RequestBuilder {
    let mut request = request.header(ACCEPT, ACCEPTED_TYPES).headers(headers.into_iter().collect());
    if let Some(session) = session {
        request = request.header(SESSION, session.as_ref());
    }
    match bearer {
        Some(bearer) => request.bearer_auth(bearer),
        None => request,
    }
}

/// Reads a message, or a stream of them.
async fn read_answer(response: Response, message: &ClientJsonRpcMessage) -> PostResult {
    let session = response.headers().get(SESSION).and_then(|id| id.to_str().ok()).map(str::to_owned);
    if has_type(&response, "text/event-stream") {
        return Ok(StreamableHttpPostResponse::Sse(events(response), session));
    }
    let expected = matches!(message, ClientJsonRpcMessage::Request(_));
    if !has_type(&response, "application/json") {
        // Some servers answer notifications with an empty page.
        return match expected {
            true => Err(wrong_type(&response).into()),
            false => Ok(StreamableHttpPostResponse::Accepted),
        };
    }
    let body = read_body(response, MAX_MESSAGE_BYTES).await?;
    match serde_json::from_slice::<ServerJsonRpcMessage>(&body) {
        Ok(answer) => Ok(StreamableHttpPostResponse::Json(answer, session)),
        Err(_) if !expected => Ok(StreamableHttpPostResponse::Accepted),
        Err(_) => Err(HttpError::NotJsonRpc.into()),
    }
}

/// The JSON-RPC error in the body if there is one, else the HTTP status.
async fn read_error(response: Response, message: &ClientJsonRpcMessage, has_session: bool) -> PostResult {
    let status_error = HttpError::from_status(response.status());
    if !matches!(status_error, HttpError::ClientError(_)) {
        return Err(status_error.into());
    }
    let body = read_body(response, MAX_ERROR_BYTES).await.unwrap_or_default();
    let answer = match serde_json::from_slice(&body) {
        Ok(ServerJsonRpcMessage::Error(error)) => Some(error),
        _ => None,
    };
    // Legacy servers reject `server/discover` without its request id, or without JSON-RPC at all. rmcp needs an answer
    // to that id to fall back to `initialize`.
    if let ClientJsonRpcMessage::Request(request) = message
        && !has_session
        && matches!(request.request, ClientRequest::DiscoverRequest(_))
    {
        let error =
            answer.map_or_else(|| ErrorData::invalid_request(status_error.to_string(), None), |answer| answer.error);
        return Ok(StreamableHttpPostResponse::Json(
            ServerJsonRpcMessage::error(error, Some(request.id.clone())),
            None,
        ));
    }
    match answer {
        Some(error) => Ok(StreamableHttpPostResponse::Json(ServerJsonRpcMessage::Error(error), None)),
        None => Err(status_error.into()),
    }
}

async fn read_body(mut response: Response, max_bytes: usize) -> Result<Vec<u8>, HttpError> {
    let mut body = Vec::new();
    while let Some(part) = response.chunk().await? {
        if body.len() + part.len() > max_bytes {
            return Err(HttpError::TooLong);
        }
        body.extend_from_slice(&part);
    }
    Ok(body)
}

fn content_type(response: &Response) -> Option<&str> {
    response.headers().get(CONTENT_TYPE)?.to_str().ok()
}

fn has_type(response: &Response, media_type: &str) -> bool {
    let start = content_type(response).and_then(|value| value.get(..media_type.len()));
    start.is_some_and(|start| start.eq_ignore_ascii_case(media_type))
}

fn wrong_type(response: &Response) -> HttpError {
    HttpError::ContentType(match content_type(response) {
        Some(value) => format!("`{}`", single_line(value, 60)),
        None => "something without a content type".to_owned(),
    })
}

fn events(response: Response) -> Events {
    SseStream::from_bytes_stream(limit_events(response.bytes_stream(), MAX_MESSAGE_BYTES)).boxed()
}

/// Yields an error when an event grows longer than `max_bytes`.
fn limit_events<E: Into<Box<dyn StdError + Send + Sync>>>(
    stream: impl Stream<Item = Result<Bytes, E>>,
    max_bytes: usize,
) -> impl Stream<Item = Result<Bytes, io::Error>> {
    let mut event = EventLength::default();
    stream.map(move |part| {
        let part = part.map_err(io::Error::other)?;
        if event.add(&part) > max_bytes {
            return Err(io::Error::other(HttpError::TooLong));
        }
        Ok(part)
    })
}

/// Counts the bytes since the last empty line.
#[derive(Default)]
struct EventLength {
    bytes: usize,
    at_line_start: bool,
}

impl EventLength {
    /// The greatest length that an event had within `part`.
    fn add(&mut self, part: &[u8]) -> usize {
        let mut longest = 0;
        for byte in part {
            match byte {
                b'\n' if self.at_line_start => self.bytes = 0,
                b'\n' => self.at_line_start = true,
                b'\r' => {}
                _ => {
                    self.at_line_start = false;
                    self.bytes += 1;
                    longest = longest.max(self.bytes);
                }
            }
        }
        longest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_line_ends_an_event() {
        let mut event = EventLength::default();
        assert_eq!(event.add(b"data: a\r"), 7);
        assert_eq!(event.add(b"\n\r\ndata: bc\n"), 8);
        assert_eq!(event.add(b"data: d"), 15);
        assert_eq!(event.add(b"\n\n:\n\n"), 1);
    }

    #[tokio::test]
    async fn endless_event_is_an_error() {
        let part = || Ok::<_, io::Error>(Bytes::from_static(b"data: 0123456789"));
        let parts = futures::stream::repeat_with(part);
        let mut parts = std::pin::pin!(limit_events(parts, 40));
        assert!(parts.next().await.expect("a part").is_ok());
        assert!(parts.next().await.expect("a part").is_ok());
        assert!(parts.next().await.expect("a part").is_err());
    }
}
