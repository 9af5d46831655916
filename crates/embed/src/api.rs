//! Any endpoint with OpenAI's `/v1/embeddings` API.

#![allow(clippy::disallowed_methods, reason = "queries pause for a while after a failure")]

use std::io::Read;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use reqwest::blocking::{Client, Response};
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use reqwest::{StatusCode, Url};
use serde::Deserialize;
use serde_json::json;
use sha2::{Digest, Sha256};

use crate::folder::short_hex;
use crate::sentence::normalise;
use crate::{EmbedError, Embedder, Role};

const MAX_BATCH: usize = 64;
const MAX_DIMENSIONS: usize = 16_384;
/// More than 64 vectors of the largest size take as JSON.
const MAX_ANSWER_BYTES: u64 = 64 << 20;
const MAX_ATTEMPTS: u32 = 5;
const QUERY_TIMEOUT: Duration = Duration::from_secs(2);
const PAUSE_AFTER_FAILED_QUERY: Duration = Duration::from_secs(10);
const MAX_RETRY_WAIT: Duration = Duration::from_secs(30);
/// Errors quote at most this much of the endpoint's message.
const MAX_QUOTED_CHARS: usize = 200;

pub struct Settings {
    /// The URL up to `/v1`.
    pub base_url: String,
    pub model: String,
    pub key: Option<String>,
    /// Requests vectors of this size; not every model supports it.
    pub dimensions: Option<usize>,
    pub timeout: Duration,
    /// The wait before the first retry; it doubles each time.
    pub first_retry_wait: Duration,
}

impl Settings {
    pub fn new(base_url: impl Into<String>, model: impl Into<String>) -> Self {
        Self {
            base_url: base_url.into(),
            model: model.into(),
            key: None,
            dimensions: None,
            timeout: Duration::from_secs(60),
            first_retry_wait: Duration::from_millis(500),
        }
    }
}

/// An embeddings endpoint. Without configured dimensions, it learns them from the first answer.
pub struct Api {
    name: String,
    fingerprint: String,
    url: Url,
    /// The URL without its query, which may hold secrets.
    shown_url: String,
    settings: Settings,
    client: OnceLock<Client>,
    /// Configured, or learnt from the first answer.
    dimensions: OnceLock<usize>,
    /// When the last query failed; `None` after a success.
    query_failed_at: Mutex<Option<Instant>>,
}

#[derive(Deserialize)]
struct Answer {
    data: Vec<Item>,
}

#[derive(Deserialize)]
struct Item {
    index: Option<usize>,
    embedding: Vec<f32>,
}

struct Failure {
    error: EmbedError,
    /// Whether a retry may succeed.
    is_transient: bool,
    /// How long the endpoint asked us to wait.
    wait: Option<Duration>,
}

impl From<EmbedError> for Failure {
    fn from(error: EmbedError) -> Self {
        Self { error, is_transient: false, wait: None }
    }
}

impl Api {
    /// Checks the settings without a request.
    pub fn new(settings: Settings) -> Result<Self, EmbedError> {
        let invalid = |what: String| EmbedError::Endpoint(what);
        let base = settings.base_url.trim_end_matches('/');
        let url = Url::parse(&format!("{base}/embeddings"))
            .map_err(|error| invalid(format!("the base URL of the embeddings endpoint is not a URL: {error}")))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(invalid("the base URL of the embeddings endpoint must begin with https:// or http://".into()));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(invalid("give the key of the embeddings endpoint as its key, not in its URL".into()));
        }
        if settings.dimensions.is_some_and(|dimensions| !(1..=MAX_DIMENSIONS).contains(&dimensions)) {
            return Err(invalid(format!("dimensions must be from 1 to {MAX_DIMENSIONS}")));
        }
        if let Some(key) = &settings.key
            && HeaderValue::from_str(key).is_err()
        {
            return Err(invalid(
                "the key of the embeddings endpoint has characters that HTTP headers do not allow".into(),
            ));
        }
        let mut hash = Sha256::new();
        for part in [base, &settings.model, &format!("{:?}", settings.dimensions)] {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part.as_bytes());
        }
        Ok(Self {
            name: format!("{} ({})", settings.model, url.host_str().unwrap_or_default()),
            fingerprint: short_hex(hash),
            shown_url: format!("{}{}", url.origin().ascii_serialization(), url.path()),
            url,
            dimensions: settings.dimensions.map(OnceLock::from).unwrap_or_default(),
            settings,
            client: OnceLock::new(),
            query_failed_at: Mutex::new(None),
        })
    }

    /// Sends one request to learn the dimensions.
    pub fn connect(settings: Settings) -> Result<Self, EmbedError> {
        let api = Self::new(settings)?;
        api.embed(Role::Query, &["dimensions"])?;
        Ok(api)
    }

    /// Created on first use, because a blocking client cannot be created on an async thread.
    fn client(&self) -> Result<&Client, EmbedError> {
        if let Some(client) = self.client.get() {
            return Ok(client);
        }
        // Fails if the program has installed a provider already, which is fine.
        drop(rustls::crypto::ring::default_provider().install_default());
        let client = Client::builder()
            .timeout(self.settings.timeout)
            .redirect(reqwest::redirect::Policy::none())
            .build()
            .map_err(|error| EmbedError::Endpoint(format!("cannot create an HTTP client: {error}")))?;
        Ok(self.client.get_or_init(|| client))
    }

    /// A search waits for a query, so it is sent once with a short timeout, and not at all soon after a failure.
    fn embed_query(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, EmbedError> {
        if self.query_failed_at.lock().is_some_and(|at| at.elapsed() < PAUSE_AFTER_FAILED_QUERY) {
            return Err(self.error("it failed a moment ago and is not used for some seconds"));
        }
        let timeout = QUERY_TIMEOUT.min(self.settings.timeout);
        let result = self.request(self.client()?, texts, timeout);
        *self.query_failed_at.lock() = result.is_err().then(Instant::now);
        result.map_err(|failure| failure.error)
    }

    /// Retries transient failures.
    fn embed_passages(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, EmbedError> {
        let client = self.client()?;
        let mut wait = self.settings.first_retry_wait;
        let mut attempt = 1;
        loop {
            match self.request(client, texts, self.settings.timeout) {
                Err(failure) if failure.is_transient && attempt < MAX_ATTEMPTS => {
                    std::thread::sleep(failure.wait.unwrap_or(wait).min(MAX_RETRY_WAIT));
                    wait *= 2;
                    attempt += 1;
                }
                outcome => return outcome.map_err(|failure| failure.error),
            }
        }
    }

    fn request(&self, client: &Client, texts: &[&str], timeout: Duration) -> Result<Vec<Vec<f32>>, Failure> {
        let mut body = json!({ "model": self.settings.model, "input": texts, "encoding_format": "float" });
        if let Some(dimensions) = self.settings.dimensions {
            body["dimensions"] = dimensions.into();
        }
        let mut request = client
            .post(self.url.clone())
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, "application/json")
            .timeout(timeout)
            .body(body.to_string());
        if let Some(key) = &self.settings.key {
            request = request.bearer_auth(key);
        }
        let transient = |what: String| Failure { is_transient: true, ..self.error(&what).into() };
        let response = request.send().map_err(|error| transient(reason(&error)))?;
        let status = response.status();
        let wait = retry_after(&response);
        let answer = read_bounded(response).map_err(|error| transient(format!("the answer broke off: {error}")))?;
        let Some(answer) = answer else {
            return Err(self.error("the answer is larger than 64 MiB").into());
        };
        if status.is_success() {
            return Ok(self.vectors(&answer, texts.len())?);
        }
        let is_refused = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
        let more = match is_refused {
            // Without the endpoint's message, because some repeat the key in it.
            true => "; check the key".to_owned(),
            false => self.quoted(&answer),
        };
        Err(Failure {
            error: self.error(&format!("it answered {status}{more}")),
            is_transient: status == StatusCode::TOO_MANY_REQUESTS || status.is_server_error(),
            wait,
        })
    }

    fn vectors(&self, answer: &[u8], count: usize) -> Result<Vec<Vec<f32>>, EmbedError> {
        let answer: Answer = serde_json::from_slice(answer)
            .map_err(|error| self.error(&format!("the answer is not a list of embeddings: {error}")))?;
        if answer.data.len() != count {
            return Err(self.error(&format!("it sent {} vectors for {count} texts", answer.data.len())));
        }
        let mut vectors = vec![Vec::new(); count];
        for (at, item) in answer.data.into_iter().enumerate() {
            let vector = vectors.get_mut(item.index.unwrap_or(at)).filter(|vector| vector.is_empty());
            let Some(vector) = vector else {
                return Err(self.error("it sent vectors with wrong indexes"));
            };
            *vector = item.embedding;
            self.check_dimensions(vector.len())?;
            normalise(vector).map_err(|_| self.error("it sent a vector with NaN or infinity"))?;
        }
        Ok(vectors)
    }

    fn check_dimensions(&self, found: usize) -> Result<(), EmbedError> {
        if !(1..=MAX_DIMENSIONS).contains(&found) {
            return Err(self.error(&format!("it sent a vector of {found} dimensions")));
        }
        let expected = *self.dimensions.get_or_init(|| found);
        if found != expected {
            return Err(self.error(&format!(
                "it sent a vector of {found} dimensions instead of {expected}; check the model and its dimensions"
            )));
        }
        Ok(())
    }

    /// The message in an error answer, unless it contains the key.
    fn quoted(&self, answer: &[u8]) -> String {
        let answer: serde_json::Value = serde_json::from_slice(answer).unwrap_or_default();
        match answer.pointer("/error/message").and_then(serde_json::Value::as_str) {
            Some(message) if !self.settings.key.as_ref().is_some_and(|key| message.contains(key)) => {
                format!(": {}", message.chars().take(MAX_QUOTED_CHARS).collect::<String>())
            }
            _ => String::new(),
        }
    }

    fn error(&self, what: &str) -> EmbedError {
        EmbedError::Endpoint(format!("the embeddings endpoint at {}: {what}", self.shown_url))
    }
}

impl Embedder for Api {
    fn name(&self) -> &str {
        &self.name
    }

    fn fingerprint(&self) -> &str {
        &self.fingerprint
    }

    /// 0 until the first answer, unless configured.
    fn dimensions(&self) -> usize {
        self.dimensions.get().copied().unwrap_or_default()
    }

    fn batch(&self) -> usize {
        MAX_BATCH
    }

    fn is_remote(&self) -> bool {
        true
    }

    fn embed(&self, role: Role, texts: &[&str]) -> Result<Vec<Vec<f32>>, EmbedError> {
        let mut vectors = Vec::with_capacity(texts.len());
        for batch in texts.chunks(MAX_BATCH) {
            vectors.append(&mut match role {
                Role::Query => self.embed_query(batch)?,
                Role::Passage => self.embed_passages(batch)?,
            });
        }
        Ok(vectors)
    }
}

/// In seconds, as endpoints send it; a date is ignored.
fn retry_after(response: &Response) -> Option<Duration> {
    let value = response.headers().get(RETRY_AFTER)?.to_str().ok()?;
    value.trim().parse().ok().map(Duration::from_secs)
}

/// `None` if the body is larger than `MAX_ANSWER_BYTES`.
fn read_bounded(response: Response) -> std::io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    response.take(MAX_ANSWER_BYTES + 1).read_to_end(&mut bytes)?;
    Ok((bytes.len() as u64 <= MAX_ANSWER_BYTES).then_some(bytes))
}

/// The root cause, which is the specific one.
fn reason(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    if error.is_timeout() { "it did not answer in time".into() } else { format!("it cannot be reached: {cause}") }
}
