//! Any endpoint that answers `/v1/embeddings` as OpenAI's does.

use std::io::Read;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use reqwest::blocking::{Client, Response};
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use reqwest::{StatusCode, Url};
use serde::Deserialize;
use serde_json::json;
use sha2::{Digest, Sha256};

use crate::folder::short_hex;
use crate::sentence::normalise;
use crate::{EmbedError, Embedder, Role};

const MAX_BATCH: usize = 64;
const MAX_DIMENSIONS: usize = 16_384;
/// More than 64 vectors of the most dimensions, written out, ever take.
const MAX_ANSWER_BYTES: u64 = 64 << 20;
const MAX_ATTEMPTS: u32 = 5;
const QUERY_TIMEOUT: Duration = Duration::from_secs(2);
const PAUSE_AFTER_FAILED_QUERY: Duration = Duration::from_secs(10);
const MAX_WAIT: Duration = Duration::from_secs(30);
/// As much of an endpoint's own words as an error repeats.
const MAX_QUOTED_CHARS: usize = 200;

/// Where vectors come from.
pub struct Settings {
    /// Up to and with `/v1`.
    pub base_url: String,
    pub model: String,
    pub key: Option<String>,
    /// Asks for vectors of so many dimensions, which not every model has.
    pub dimensions: Option<usize>,
    pub timeout: Duration,
    /// How long the first repetition waits; each later one twice as long.
    pub first_wait: Duration,
}

impl Settings {
    pub fn new(base_url: impl Into<String>, model: impl Into<String>) -> Self {
        Self {
            base_url: base_url.into(),
            model: model.into(),
            key: None,
            dimensions: None,
            timeout: Duration::from_secs(60),
            first_wait: Duration::from_millis(500),
        }
    }
}

/// An embeddings endpoint. Its dimensions are known after the first answer, which [`Api::connect`] asks for.
pub struct Api {
    name: String,
    fingerprint: String,
    url: Url,
    /// The URL for errors: without what may be secret in its query.
    place: String,
    key: Option<HeaderValue>,
    settings: Settings,
    client: OnceLock<Client>,
    learnt: OnceLock<usize>,
    /// When a query last went wrong, unless one has gone well since.
    query_failed: Mutex<Option<Instant>>,
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

/// Why one request brought nothing, and whether the next may.
enum Failure {
    Final(EmbedError),
    Passing { error: EmbedError, wait: Option<Duration> },
}

impl Api {
    /// Checks the settings; nothing is sent.
    pub fn new(mut settings: Settings) -> Result<Self, EmbedError> {
        let fault = |what: String| EmbedError::Endpoint(what);
        let base = settings.base_url.trim_end_matches('/');
        let url = Url::parse(&format!("{base}/embeddings"))
            .map_err(|error| fault(format!("the base URL of the embeddings endpoint is not one: {error}")))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(fault(
                "the base URL of the embeddings endpoint must begin with https:// or http://".into(),
            ));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(fault(
                "give the key of the embeddings endpoint as its key, not in its URL".into(),
            ));
        }
        if settings
            .dimensions
            .is_some_and(|dimensions| !(1..=MAX_DIMENSIONS).contains(&dimensions))
        {
            return Err(fault(format!("dimensions must be from 1 to {MAX_DIMENSIONS}")));
        }
        let key = match settings.key.take() {
            Some(key) => {
                let mut value = HeaderValue::from_str(&format!("Bearer {key}")).map_err(|_| {
                    fault("the key of the embeddings endpoint has characters no header can carry".into())
                })?;
                value.set_sensitive(true);
                Some(value)
            }
            None => None,
        };
        let mut hash = Sha256::new();
        for part in [base, &settings.model, &format!("{:?}", settings.dimensions)] {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part.as_bytes());
        }
        Ok(Self {
            name: format!("{} ({})", settings.model, url.host_str().unwrap_or_default()),
            fingerprint: short_hex(hash),
            place: format!("{}{}", url.origin().ascii_serialization(), url.path()),
            url,
            key,
            settings,
            client: OnceLock::new(),
            learnt: OnceLock::new(),
            query_failed: Mutex::new(None),
        })
    }

    /// An endpoint that has answered: its dimensions are known.
    pub fn connect(settings: Settings) -> Result<Self, EmbedError> {
        let api = Self::new(settings)?;
        api.embed(Role::Query, &["dimensions"])?;
        Ok(api)
    }

    /// Made when first needed: it cannot be made where nothing may block.
    fn client(&self) -> Result<&Client, EmbedError> {
        if let Some(client) = self.client.get() {
            return Ok(client);
        }
        // An error means that the program has chosen its provider already.
        drop(rustls::crypto::ring::default_provider().install_default());
        let client = Client::builder()
            .timeout(self.settings.timeout)
            .redirect(reqwest::redirect::Policy::none())
            .build()
            .map_err(|error| EmbedError::Endpoint(format!("no HTTP client can be made: {error}")))?;
        Ok(self.client.get_or_init(|| client))
    }

    /// A query has somebody waiting for it: asked once, for a short time, and not at all soon after a
    /// failure, so that whoever asks can go on without.
    fn query(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, EmbedError> {
        let failed_at = || self.query_failed.lock().unwrap_or_else(PoisonError::into_inner);
        if failed_at().is_some_and(|at| at.elapsed() < PAUSE_AFTER_FAILED_QUERY) {
            return Err(self.error("it failed just now and is left alone for a moment"));
        }
        let timeout = QUERY_TIMEOUT.min(self.settings.timeout);
        let asked = self.request(self.client()?, texts, timeout);
        *failed_at() = asked.is_err().then(Instant::now);
        asked.map_err(|failure| match failure {
            Failure::Final(error) | Failure::Passing { error, .. } => error,
        })
    }

    fn patiently(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, EmbedError> {
        let client = self.client()?;
        let mut wait = self.settings.first_wait;
        for attempt in 1.. {
            match self.request(client, texts, self.settings.timeout) {
                Ok(vectors) => return Ok(vectors),
                Err(Failure::Final(error)) => return Err(error),
                Err(Failure::Passing { error, .. }) if attempt == MAX_ATTEMPTS => return Err(error),
                Err(Failure::Passing { wait: asked, .. }) => {
                    std::thread::sleep(asked.unwrap_or(wait).min(MAX_WAIT));
                    wait *= 2;
                }
            }
        }
        Ok(Vec::new())
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
        if let Some(key) = &self.key {
            request = request.header(AUTHORIZATION, key.clone());
        }
        let passing = |what: String| Failure::Passing {
            error: self.error(&what),
            wait: None,
        };
        let response = request.send().map_err(|error| passing(reason(&error)))?;
        let status = response.status();
        let wait = retry_after(&response);
        let answer = bounded(response).map_err(|error| passing(format!("the answer broke off: {error}")))?;
        let Some(answer) = answer else {
            return Err(Failure::Final(self.error("the answer is larger than any should be")));
        };
        if matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
            // Not in its own words: some repeat the key.
            return Err(Failure::Final(
                self.error(&format!("it answered {status}; check the key")),
            ));
        }
        if status == StatusCode::TOO_MANY_REQUESTS || status.is_server_error() {
            let error = self.error(&format!("it answered {status}{}", self.quoted(&answer)));
            return Err(Failure::Passing { error, wait });
        }
        if !status.is_success() {
            return Err(Failure::Final(
                self.error(&format!("it answered {status}{}", self.quoted(&answer))),
            ));
        }
        self.vectors(&answer, texts.len()).map_err(Failure::Final)
    }

    fn vectors(&self, answer: &[u8], count: usize) -> Result<Vec<Vec<f32>>, EmbedError> {
        let answer: Answer = serde_json::from_slice(answer)
            .map_err(|error| self.error(&format!("the answer is not a list of embeddings: {error}")))?;
        if answer.data.len() != count {
            return Err(self.error(&format!("it sent {} vectors for {count} texts", answer.data.len())));
        }
        let mut vectors = vec![Vec::new(); count];
        for (at, item) in answer.data.into_iter().enumerate() {
            let place = vectors
                .get_mut(item.index.unwrap_or(at))
                .filter(|place| place.is_empty());
            let Some(place) = place else {
                return Err(self.error("the vectors it sent are numbered wrongly"));
            };
            *place = item.embedding;
            self.check_dimensions(place.len())?;
            normalise(place).map_err(|_| self.error("it sent a vector that is no numbers"))?;
        }
        Ok(vectors)
    }

    fn check_dimensions(&self, found: usize) -> Result<(), EmbedError> {
        if !(1..=MAX_DIMENSIONS).contains(&found) {
            return Err(self.error(&format!("it sent a vector of {found} dimensions")));
        }
        let expected = self
            .settings
            .dimensions
            .unwrap_or_else(|| *self.learnt.get_or_init(|| found));
        if found != expected {
            return Err(self.error(&format!(
                "it sent a vector of {found} dimensions instead of {expected}; check the model and its dimensions"
            )));
        }
        Ok(())
    }

    /// What an endpoint says about an error, if it says it the usual way and without the key.
    fn quoted(&self, answer: &[u8]) -> String {
        let message = serde_json::from_slice::<serde_json::Value>(answer).ok();
        let message = message
            .as_ref()
            .and_then(|value| value.pointer("/error/message")?.as_str());
        let key = self
            .key
            .as_ref()
            .and_then(|key| key.to_str().ok()?.strip_prefix("Bearer "));
        match message {
            Some(message) if !key.is_some_and(|key| message.contains(key)) => {
                format!(": {}", message.chars().take(MAX_QUOTED_CHARS).collect::<String>())
            }
            _ => String::new(),
        }
    }

    fn error(&self, what: &str) -> EmbedError {
        EmbedError::Endpoint(format!("the embeddings endpoint at {}: {what}", self.place))
    }
}

impl Embedder for Api {
    fn name(&self) -> &str {
        &self.name
    }

    fn fingerprint(&self) -> &str {
        &self.fingerprint
    }

    /// 0 until the first answer, if the settings do not say.
    fn dimensions(&self) -> usize {
        self.settings
            .dimensions
            .or_else(|| self.learnt.get().copied())
            .unwrap_or_default()
    }

    fn batch(&self) -> usize {
        MAX_BATCH
    }

    fn embed(&self, role: Role, texts: &[&str]) -> Result<Vec<Vec<f32>>, EmbedError> {
        let mut vectors = Vec::with_capacity(texts.len());
        for batch in texts.chunks(MAX_BATCH) {
            vectors.append(&mut match role {
                Role::Query => self.query(batch)?,
                Role::Passage => self.patiently(batch)?,
            });
        }
        Ok(vectors)
    }
}

/// Seconds, as endpoints send them; a date is as good as nothing.
fn retry_after(response: &Response) -> Option<Duration> {
    let value = response.headers().get(RETRY_AFTER)?.to_str().ok()?;
    value.trim().parse().ok().map(Duration::from_secs)
}

/// `None` when there is more of it than there may be.
fn bounded(response: Response) -> std::io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    response.take(MAX_ANSWER_BYTES + 1).read_to_end(&mut bytes)?;
    Ok((bytes.len() as u64 <= MAX_ANSWER_BYTES).then_some(bytes))
}

/// The innermost cause, which is the one that says something.
fn reason(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    if error.is_timeout() {
        "it did not answer in time".into()
    } else {
        format!("it cannot be reached: {cause}")
    }
}
