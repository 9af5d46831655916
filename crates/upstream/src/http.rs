//! A server behind a URL: streamable HTTP, with a bound on everything that is read.

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

const MAX_MESSAGE_BYTES: usize = 16 * 1024 * 1024;
/// Enough for an error of the protocol; nobody needs the rest of an error page.
const MAX_ERROR_BYTES: usize = 64 * 1024;
const MAX_REDIRECTS: usize = 3;
/// Shorter than servers keep one (five seconds is common): a call never meets one that is being closed.
const IDLE_CONNECTION: Duration = Duration::from_secs(4);
const LONGEST_CONNECT: Duration = Duration::from_secs(10);
const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const EITHER: &str = "text/event-stream, application/json";

type Posted = Result<StreamableHttpPostResponse, StreamableHttpError<Trouble>>;
type Events = BoxStream<'static, Result<Sse, SseError>>;

/// What went wrong, in words for the operator. No address: it may hold a key.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Trouble {
    #[error("it cannot be reached: {0}")]
    Unreachable(String),
    #[error("it answered HTTP {0}; it wants a (different) bearer token")]
    Unauthorized(u16),
    #[error("it answered HTTP {0}; is this the address of an MCP server?")]
    Refused(u16),
    #[error("it answered HTTP {0}")]
    Broken(u16),
    #[error("it answered with {0}, which is not MCP; is this the address of an MCP server?")]
    Foreign(String),
    #[error("it answered with more than {MAX_MESSAGE_BYTES} bytes")]
    TooLong,
    #[error("its answer is not JSON-RPC")]
    Unreadable,
}

impl Trouble {
    /// Whether somebody was there who might answer otherwise to another question.
    pub(crate) fn is_an_answer(&self) -> bool {
        matches!(self, Self::Refused(_) | Self::Foreign(_) | Self::Unreadable)
    }

    fn of(error: &reqwest::Error) -> Self {
        let mut deepest: &dyn StdError = error;
        while let Some(cause) = deepest.source() {
            deepest = cause;
        }
        if deepest.is::<reqwest::Error>() {
            return Self::Unreachable(
                if error.is_timeout() {
                    "it took too long"
                } else {
                    "no answer"
                }
                .to_owned(),
            );
        }
        Self::Unreachable(deepest.to_string())
    }

    fn of_status(status: StatusCode) -> Self {
        match status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Self::Unauthorized(status.as_u16()),
            StatusCode::TOO_MANY_REQUESTS => Self::Broken(status.as_u16()),
            status if status.is_server_error() => Self::Broken(status.as_u16()),
            status => Self::Refused(status.as_u16()),
        }
    }
}

impl From<Trouble> for StreamableHttpError<Trouble> {
    fn from(trouble: Trouble) -> Self {
        Self::Client(trouble)
    }
}

/// The way to one server.
pub(crate) fn transport(
    url: &str,
    bearer: Option<&str>,
    timeout: Duration,
) -> Result<StreamableHttpClientTransport<BoundedClient>, String> {
    // Fails if there is one already, which is as good.
    drop(rustls::crypto::ring::default_provider().install_default());
    let mut builder = reqwest::Client::builder()
        .connect_timeout(timeout.min(LONGEST_CONNECT))
        .pool_idle_timeout(IDLE_CONNECTION)
        .redirect(within_the_server())
        .user_agent(concat!("tribune/", env!("CARGO_PKG_VERSION")));
    if is_local(url) {
        builder = builder.no_proxy();
    }
    let client = builder
        .build()
        .map_err(|error| format!("no HTTP client could be made: {}", Trouble::of(&error)))?;
    let mut config = StreamableHttpClientTransportConfig::with_uri(url).max_sse_event_size(MAX_MESSAGE_BYTES);
    if let Some(bearer) = bearer {
        config = config.auth_header(bearer);
    }
    Ok(StreamableHttpClientTransport::with_client(
        BoundedClient(client),
        config,
    ))
}

fn is_local(url: &str) -> bool {
    let url = reqwest::Url::parse(url).ok();
    let host = url.as_ref().and_then(reqwest::Url::host_str);
    matches!(host, Some("localhost" | "127.0.0.1" | "[::1]"))
}

/// Follows from `/mcp` to `/mcp/`, and nowhere else: the token is for the server that it was given for, and other
/// redirects lose the question.
fn within_the_server() -> Policy {
    Policy::custom(|attempt| {
        let keeps_body = matches!(
            attempt.status(),
            StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT
        );
        let asked = attempt.previous().first();
        let is_same = asked.is_some_and(|asked| asked.origin() == attempt.url().origin());
        if keeps_body && is_same && attempt.previous().len() <= MAX_REDIRECTS {
            attempt.follow()
        } else {
            attempt.stop()
        }
    })
}

/// rmcp's own client reads answers whole, however long they are.
#[derive(Clone)]
pub(crate) struct BoundedClient(reqwest::Client);

impl StreamableHttpClient for BoundedClient {
    type Error = Trouble;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        bearer: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Posted {
        let has_session = session.is_some();
        let request = prepared(self.0.post(uri.as_ref()), session, bearer, headers).json(&message);
        let response = sent(request).await?;
        let status = response.status();
        if matches!(status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT) {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        if status == StatusCode::NOT_FOUND && has_session {
            return Err(StreamableHttpError::SessionExpired);
        }
        if !status.is_success() {
            return refused(response, &message, has_session).await;
        }
        answered(response, &message).await
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session: Arc<str>,
        bearer: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), StreamableHttpError<Trouble>> {
        let response = sent(prepared(self.0.delete(uri.as_ref()), Some(session), bearer, headers)).await?;
        match response.status() {
            // It need not offer this.
            StatusCode::METHOD_NOT_ALLOWED => Ok(()),
            status if status.is_success() => Ok(()),
            status => Err(Trouble::of_status(status).into()),
        }
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last_event: Option<String>,
        bearer: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<Events, StreamableHttpError<Trouble>> {
        let mut request = prepared(self.0.get(uri.as_ref()), session, bearer, headers);
        if let Some(last_event) = last_event {
            request = request.header("last-event-id", last_event);
        }
        let response = sent(request).await?;
        match response.status() {
            StatusCode::METHOD_NOT_ALLOWED => Err(StreamableHttpError::ServerDoesNotSupportSse),
            status if !status.is_success() => Err(Trouble::of_status(status).into()),
            _ if is_of(&response, "text/event-stream") => Ok(events(response)),
            _ => Err(Trouble::Foreign(content_type(&response)).into()),
        }
    }
}

fn prepared(
    request: RequestBuilder,
    session: Option<Arc<str>>,
    bearer: Option<String>,
    headers: HashMap<HeaderName, HeaderValue>,
) -> RequestBuilder {
    let mut request = request.header(ACCEPT, EITHER).headers(headers.into_iter().collect());
    if let Some(session) = session {
        request = request.header(SESSION, session.as_ref());
    }
    match bearer {
        Some(bearer) => request.bearer_auth(bearer),
        None => request,
    }
}

async fn sent(request: RequestBuilder) -> Result<Response, Trouble> {
    request.send().await.map_err(|error| Trouble::of(&error))
}

/// A message, or a stream of them.
async fn answered(response: Response, message: &ClientJsonRpcMessage) -> Posted {
    let session = response
        .headers()
        .get(SESSION)
        .and_then(|id| id.to_str().ok())
        .map(str::to_owned);
    if is_of(&response, "text/event-stream") {
        return Ok(StreamableHttpPostResponse::Sse(events(response), session));
    }
    let expected = matches!(message, ClientJsonRpcMessage::Request(_));
    if !is_of(&response, "application/json") {
        // Some answer what needs no answer with an empty page.
        return match expected {
            true => Err(Trouble::Foreign(content_type(&response)).into()),
            false => Ok(StreamableHttpPostResponse::Accepted),
        };
    }
    let body = body_of(response, MAX_MESSAGE_BYTES).await?;
    match serde_json::from_slice::<ServerJsonRpcMessage>(&body) {
        Ok(answer) => Ok(StreamableHttpPostResponse::Json(answer, session)),
        Err(_) if !expected => Ok(StreamableHttpPostResponse::Accepted),
        Err(_) => Err(Trouble::Unreadable.into()),
    }
}

/// An error of the protocol if the page holds one, else the bare status.
async fn refused(response: Response, message: &ClientJsonRpcMessage, has_session: bool) -> Posted {
    let status = response.status();
    let trouble = Trouble::of_status(status);
    if !matches!(trouble, Trouble::Refused(_)) {
        return Err(trouble.into());
    }
    let body = body_of(response, MAX_ERROR_BYTES).await.unwrap_or_default();
    let said = match serde_json::from_slice::<ServerJsonRpcMessage>(&body) {
        Ok(said @ ServerJsonRpcMessage::Error(_)) => Some(said),
        _ => None,
    };
    match (message, said) {
        // Old servers refuse the modern question before they have read whose it is, some of them in words
        // that are not the protocol's: it is the answer to it all the same.
        (ClientJsonRpcMessage::Request(request), said)
            if !has_session && matches!(request.request, ClientRequest::DiscoverRequest(_)) =>
        {
            let error = match said {
                Some(ServerJsonRpcMessage::Error(said)) => said.error,
                _ => ErrorData::invalid_request(trouble.to_string(), None),
            };
            let answer = ServerJsonRpcMessage::error(error, Some(request.id.clone()));
            Ok(StreamableHttpPostResponse::Json(answer, None))
        }
        (_, Some(said)) => Ok(StreamableHttpPostResponse::Json(said, None)),
        (_, None) => Err(trouble.into()),
    }
}

async fn body_of(mut response: Response, most: usize) -> Result<Vec<u8>, Trouble> {
    let mut body = Vec::new();
    while let Some(part) = response.chunk().await.map_err(|error| Trouble::of(&error))? {
        if body.len() + part.len() > most {
            return Err(Trouble::TooLong);
        }
        body.extend_from_slice(&part);
    }
    Ok(body)
}

fn is_of(response: &Response, kind: &str) -> bool {
    let given = response
        .headers()
        .get(CONTENT_TYPE)
        .map(HeaderValue::as_bytes)
        .unwrap_or_default();
    given.len() >= kind.len() && given[..kind.len()].eq_ignore_ascii_case(kind.as_bytes())
}

fn content_type(response: &Response) -> String {
    match response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()) {
        Some(kind) => format!("`{}`", crate::words::line(kind, 60)),
        None => "something without a content type".to_owned(),
    }
}

fn events(response: Response) -> Events {
    SseStream::from_bytes_stream(bounded(response.bytes_stream(), MAX_MESSAGE_BYTES)).boxed()
}

/// Ends with an error where an event grows longer than `most` bytes.
fn bounded<E: Into<Box<dyn StdError + Send + Sync>>>(
    stream: impl Stream<Item = Result<Bytes, E>>,
    most: usize,
) -> impl Stream<Item = Result<Bytes, io::Error>> {
    let mut event = EventLength::default();
    stream.map(move |part| {
        let part = part.map_err(io::Error::other)?;
        if event.longest_with(&part) > most {
            return Err(io::Error::other(Trouble::TooLong));
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
    /// The longest that any event has been within or until the end of `part`.
    fn longest_with(&mut self, part: &[u8]) -> usize {
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
    fn an_event_ends_at_an_empty_line() {
        let mut event = EventLength::default();
        assert_eq!(event.longest_with(b"data: a\r"), 7);
        assert_eq!(event.longest_with(b"\n\r\ndata: bc\n"), 8);
        assert_eq!(event.longest_with(b"data: d"), 15);
        assert_eq!(event.longest_with(b"\n\n:\n\n"), 1);
    }

    #[tokio::test]
    async fn an_endless_event_is_ended() {
        let part = || Ok::<_, io::Error>(Bytes::from_static(b"data: 0123456789"));
        let parts = futures::stream::repeat_with(part);
        let mut parts = std::pin::pin!(bounded(parts, 40));
        assert!(parts.next().await.expect("a part").is_ok());
        assert!(parts.next().await.expect("a part").is_ok());
        assert!(parts.next().await.expect("a part").is_err());
    }
}
