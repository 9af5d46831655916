//! A model behind an OpenAI-compatible endpoint.
//!
//! Libraries for this protocol are not used: they log unreadable responses, which may quote users, read events of any
//! size, retry for minutes, and treat a plain JSON response to a streaming request as an empty stream.
//!
//! - [`request`]: what the agent sends;
//! - [`sse`]: the events of a stream;
//! - [`reply`]: assembles the reply from its pieces;
//! - [`failure`]: how it can fail.

pub(crate) mod failure;
pub(crate) mod reply;
pub(crate) mod request;
mod sse;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use reqwest::{Client, Response, Url};
use serde_json::Value;
use tokio::time::timeout;
use tribune_core::{CallContext, Clock, Error, Result};

use crate::settings::Settings;
use crate::toolbox::ToolSet;
use failure::{Cause, Failure};
use reply::{Builder, Reply};
use request::{Body, Message};
use sse::EventReader;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Retries after the first attempt.
const MAX_RETRIES: u32 = 2;
const FIRST_RETRY_AFTER: Duration = Duration::from_millis(500);
/// A longer `Retry-After` is not waited for.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(10);
/// Largest response without streaming.
const MAX_JSON_BYTES: usize = 2 * 1024 * 1024;
/// Largest error body that is read.
const MAX_ERROR_BYTES: usize = 64 * 1024;
/// How long to wait for the end of a stream after the answer, so that the connection can be reused.
const END_OF_STREAM_TIMEOUT: Duration = Duration::from_millis(500);
/// How long to wait for the body of an error, which tells the operator what to do.
const ERROR_BODY_TIMEOUT: Duration = Duration::from_millis(2500);

/// Called with text as it arrives.
pub(crate) type OnText<'a> = &'a (dyn Fn(&str) + Send + Sync);

pub(crate) struct Model {
    client: Client,
    url: Url,
    authorization: Option<HeaderValue>,
    name: String,
    temperature: Option<f32>,
    max_output_tokens: u32,
    is_openai: bool,
    silence: Duration,
    request_timeout: Duration,
    clock: Arc<dyn Clock>,
}

impl Model {
    /// Checks the settings; nothing is sent.
    pub(crate) fn new(settings: &Settings, clock: Arc<dyn Clock>) -> Result<Self> {
        if settings.model.trim().is_empty() {
            return Err(Error::invalid_argument("the agent needs the name of a model"));
        }
        let url = endpoint(&settings.base_url)?;
        let host = url.host_str().unwrap_or_default().to_owned();
        // An error means that the program has chosen its provider already.
        drop(rustls::crypto::ring::default_provider().install_default());
        let mut builder = Client::builder()
            .connect_timeout(CONNECT_TIMEOUT)
            .redirect(reqwest::redirect::Policy::none())
            .user_agent(concat!("tribune/", env!("CARGO_PKG_VERSION")));
        if matches!(host.as_str(), "localhost" | "127.0.0.1" | "[::1]") {
            builder = builder.no_proxy();
        }
        let client =
            builder.build().map_err(|error| Error::internal("cannot create an HTTP client").caused_by(error))?;
        Ok(Self {
            client,
            authorization: settings.api_key.as_deref().map(bearer).transpose()?,
            is_openai: host == "api.openai.com",
            max_output_tokens: settings.max_output_tokens,
            url,
            name: settings.model.clone(),
            temperature: settings.temperature,
            silence: settings.silence,
            request_timeout: settings.request_timeout,
            clock,
        })
    }

    /// Sends the request, with retries while no text has arrived. With `must_answer`, the model may not call tools.
    pub(crate) async fn ask(
        &self,
        messages: Vec<Message>,
        tools: &ToolSet,
        must_answer: bool,
        cx: &CallContext,
        on_text: OnText<'_>,
    ) -> Result<Reply, Failure> {
        let tools = tools.definitions();
        let limit = Some(self.max_output_tokens);
        let body = Body {
            model: &self.name,
            messages,
            stream: true,
            temperature: self.temperature,
            max_tokens: limit.filter(|_| !self.is_openai),
            max_completion_tokens: limit.filter(|_| self.is_openai),
            tools,
            tool_choice: (must_answer && tools.is_some()).then_some("none"),
        };
        let body = Bytes::from(serde_json::to_vec(&body).map_err(|_| Cause::Rejected)?);
        let has_text = AtomicBool::new(false);
        let on_text = |text: &str| {
            if !text.is_empty() {
                has_text.store(true, Ordering::Relaxed);
                on_text(text);
            }
        };
        let mut backoff = FIRST_RETRY_AFTER;
        let mut retries = 0;
        loop {
            let failure = match self.try_once(&body, cx, &on_text).await {
                Ok(reply) => return Ok(reply),
                Err(failure) => failure,
            };
            let wait = failure.retry_after.unwrap_or(backoff);
            let may_help = failure.is_passing() && retries < MAX_RETRIES && wait <= MAX_RETRY_AFTER;
            if !may_help || has_text.load(Ordering::Relaxed) || wait >= cx.time_left(self.clock.monotonic()) {
                return Err(failure);
            }
            tokio::select! {
                () = cx.cancel.cancelled() => return Err(Cause::Cancelled.into()),
                () = tokio::time::sleep(wait) => {}
            }
            retries += 1;
            backoff *= 2;
        }
    }

    /// One request within its timeout; counted, and logged if it fails.
    async fn try_once(&self, body: &Bytes, cx: &CallContext, on_text: OnText<'_>) -> Result<Reply, Failure> {
        let started = self.clock.monotonic();
        let left = cx.time_left(started);
        let out_of_time = if left <= self.request_timeout { Cause::TurnTimeout } else { Cause::RequestTimeout };
        let answered = tokio::select! {
            () = cx.cancel.cancelled() => Err(Cause::Cancelled.into()),
            answered = timeout(left.min(self.request_timeout), self.exchange(body, on_text)) =>
                answered.unwrap_or_else(|_| Err(out_of_time.into())),
        };
        self.account(started, answered.as_ref(), cx);
        answered
    }

    fn account(&self, started: Instant, answered: Result<&Reply, &Failure>, cx: &CallContext) {
        let took = self.clock.monotonic().saturating_duration_since(started);
        let outcome = answered.map_or_else(|failure| failure.cause.as_str(), |_| "ok");
        metrics::counter!("tribune_model_requests_total", "outcome" => outcome).increment(1);
        metrics::histogram!("tribune_model_request_seconds").record(took.as_secs_f64());
        if let Err(failure) = answered {
            tracing::warn!(
                cause = outcome,
                status = failure.status,
                code = failure.code.as_deref(),
                ms = took.as_millis(),
                correlation_id = &*cx.correlation_id,
                "{}",
                match failure.cause {
                    Cause::KeyRefused => "the model's endpoint refused the API key: check the agent's key",
                    Cause::UnknownModel => "the model's endpoint does not know the model: check its name and address",
                    Cause::OutOfCredit => "the account at the model's endpoint has no credit left",
                    _ => "a request to the model failed",
                }
            );
        }
    }

    async fn exchange(&self, body: &Bytes, on_text: OnText<'_>) -> Result<Reply, Failure> {
        let mut request = self
            .client
            .post(self.url.clone())
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, "text/event-stream, application/json")
            .body(body.clone());
        if let Some(authorization) = &self.authorization {
            request = request.header(AUTHORIZATION, authorization.clone());
        }
        let response =
            timeout(self.silence, request.send()).await.map_err(|_| Cause::Silence)?.map_err(|_| Cause::Unreachable)?;
        if !response.status().is_success() {
            return Err(self.refused(response).await);
        }
        let reply = if is_json(&response) {
            self.read_json(response, on_text).await?
        } else {
            self.read_stream(response, on_text).await?
        };
        if reply.text.trim().is_empty() && reply.calls.is_empty() {
            return Err(Cause::Nothing.into());
        }
        Ok(reply)
    }

    async fn refused(&self, response: Response) -> Failure {
        let status = response.status().as_u16();
        let retry_after = response
            .headers()
            .get(RETRY_AFTER)
            .and_then(|value| value.to_str().ok()?.trim().parse::<u32>().ok())
            .map(|seconds| Duration::from_secs(seconds.into()));
        let body = timeout(ERROR_BODY_TIMEOUT, self.read_whole(response, MAX_ERROR_BYTES)).await;
        let body = body.ok().and_then(Result::ok).unwrap_or_default();
        let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
        Failure { retry_after, ..Failure::from_status(status, &body) }
    }

    /// A complete response: some servers do not stream.
    async fn read_json(&self, response: Response, on_text: OnText<'_>) -> Result<Reply, Failure> {
        let body = self.read_whole(response, MAX_JSON_BYTES).await?;
        if body.is_empty() {
            return Err(Cause::Nothing.into());
        }
        let answer: Value = serde_json::from_slice(&body).map_err(|_| Cause::Garbage)?;
        let mut builder = Builder::default();
        on_text(&builder.add(&answer)?);
        Ok(builder.build())
    }

    async fn read_whole(&self, mut response: Response, limit: usize) -> Result<Vec<u8>, Cause> {
        let mut body = Vec::new();
        while let Some(chunk) = self.next_chunk(&mut response).await? {
            if body.len() + chunk.len() > limit {
                return Err(Cause::Garbage);
            }
            body.extend_from_slice(&chunk);
        }
        Ok(body)
    }

    async fn read_stream(&self, mut response: Response, on_text: OnText<'_>) -> Result<Reply, Failure> {
        let (mut events, mut reply) = (EventReader::default(), Builder::default());
        while let Some(chunk) = self.next_chunk(&mut response).await? {
            for event in events.push(&chunk)? {
                on_text(&reply.add_event(&event)?);
            }
            if reply.is_full() {
                return Ok(reply.build());
            }
            if reply.is_over() {
                // Read to its end, so that the connection can be used again.
                let _ = timeout(END_OF_STREAM_TIMEOUT, self.read_whole(response, MAX_ERROR_BYTES)).await;
                return Ok(reply.build());
            }
        }
        if let Some(event) = events.finish() {
            on_text(&reply.add_event(&event)?);
        }
        match (reply.is_over(), reply.has_begun, events.strange) {
            (true, ..) => Ok(reply.build()),
            (false, true, _) => Err(Cause::HalfAnAnswer.into()),
            (false, false, true) => Err(Cause::Garbage.into()),
            (false, false, false) => Err(Cause::Nothing.into()),
        }
    }

    /// Any byte resets the timeout, also a keep-alive comment.
    async fn next_chunk(&self, response: &mut Response) -> Result<Option<Bytes>, Cause> {
        timeout(self.silence, response.chunk()).await.map_err(|_| Cause::Silence)?.map_err(|_| Cause::HalfAnAnswer)
    }
}

/// The text of a streamed reply that came in these chunks, for the fuzzer; `None` if it is refused.
#[doc(hidden)]
pub fn text_of_stream<'c>(chunks: impl Iterator<Item = &'c [u8]>) -> Option<String> {
    let (mut events, mut reply) = (EventReader::default(), Builder::default());
    for chunk in chunks {
        for event in events.push(chunk).ok()? {
            reply.add_event(&event).ok()?;
        }
    }
    if let Some(event) = events.finish() {
        reply.add_event(&event).ok()?;
    }
    Some(reply.build().text)
}

fn is_json(response: &Response) -> bool {
    let content_type = response.headers().get(CONTENT_TYPE);
    content_type.is_some_and(|value| value.as_bytes().to_ascii_lowercase().starts_with(b"application/json"))
}

fn endpoint(base_url: &str) -> Result<Url> {
    let wrong = || {
        Error::invalid_argument(format!(
            "`{base_url}` is not the address of a model server; use one like https://openrouter.ai/api/v1"
        ))
    };
    let mut url = Url::parse(base_url.trim()).map_err(|_| wrong())?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() || url.query().is_some() {
        return Err(wrong());
    }
    url.path_segments_mut().map_err(|()| wrong())?.pop_if_empty().extend(["chat", "completions"]);
    Ok(url)
}

fn bearer(key: &str) -> Result<HeaderValue> {
    let mut value = HeaderValue::from_str(&format!("Bearer {}", key.trim())).map_err(|_| {
        Error::invalid_argument("agent.api_key has characters that are not allowed in an HTTP header; check it")
    })?;
    value.set_sensitive(true);
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoint_must_be_http() {
        let url = |base: &str| endpoint(base).map(String::from).ok();
        let whole = Some("http://localhost:8080/v1/chat/completions".to_owned());
        assert_eq!(url("http://localhost:8080/v1"), whole);
        assert_eq!(url("http://localhost:8080/v1/"), whole);
        for wrong in ["", "localhost:8080", "ftp://example.org/v1", "/v1", "http://", "http://a/?x="] {
            assert_eq!(url(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn key_cannot_inject_header() {
        assert!(bearer("sk-abc\r\nX: y").is_err());
        assert!(bearer(" sk-abc\n").is_ok_and(|value| value.is_sensitive()));
    }
}
