//! Sends one request and reads its answer: bounded in time and size, counted in metrics, with errors in words.

use std::error::Error;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use reqwest::header::{HeaderMap, RETRY_AFTER};
use reqwest::{Client, Method, Response, StatusCode, Url};
use serde::Deserialize;
use tribune_clock::Clock;

use super::client::Settings;
use super::coalesce::Coalescer;
use super::decode::Wrong;
use super::error::RestError;
use super::governor::{Governor, Permit, Priority};
use super::request::Request;
use crate::moment::{Moment, Stamped};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// Larger than any real answer of its size.
const MAX_SMALL_BYTES: usize = 4 << 20;
const MAX_BULK_BYTES: usize = 64 << 20;
/// How much of the exchange's own message an error repeats.
const MAX_QUOTED_CHARS: usize = 200;
/// For answers about every symbol.
const BULK_TIMEOUT: Duration = Duration::from_secs(30);
/// Background work has more time.
const BACKGROUND_TIMEOUT: Duration = Duration::from_secs(15);
/// More than a minute, so that the request gets into the next one.
const BACKGROUND_PATIENCE: Duration = Duration::from_secs(75);
const SIMULATED: &str = "x-tribune-simulated";

/// The kind of simulator that answers instead of the exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Simulation {
    Simulated,
    Replay,
}

impl Simulation {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Simulated => "simulated",
            Self::Replay => "replay",
        }
    }

    fn from_headers(headers: &HeaderMap) -> Option<Self> {
        let value = headers.get(SIMULATED)?;
        Some(if value.as_bytes().eq_ignore_ascii_case(b"replay") { Self::Replay } else { Self::Simulated })
    }
}

/// What all clones of a client share.
pub(super) struct Inner {
    client: Client,
    /// Up to and with `/api/v3/`.
    base: String,
    /// For errors.
    pub(super) host: String,
    /// Requests cannot be read on the way.
    pub(super) is_private: bool,
    timeout: Duration,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) governor: Arc<Governor>,
    /// Requests under way and fresh answers.
    pub(super) answers: Coalescer,
    pub(super) state: Mutex<State>,
}

/// What answers have said of the exchange.
#[derive(Default)]
pub(super) struct State {
    /// How far the exchange's clock is ahead of this machine's.
    pub(super) offset_ms: Option<i64>,
    pub(super) simulation: Option<Simulation>,
    /// `None` while requests succeed.
    pub(super) failing: Option<Failing>,
}

pub(super) type Raw = Stamped<Vec<u8>>;

/// A series of failed requests, not counting refusals by the exchange's own code.
#[derive(Debug, Clone)]
pub struct Failing {
    pub since: Moment,
    pub last: Moment,
    pub why: RestError,
}

impl Inner {
    /// Checks the settings; nothing is sent.
    pub(super) fn new(settings: &Settings, governor: Arc<Governor>, clock: Arc<dyn Clock>) -> Result<Self, RestError> {
        let url = base(&settings.base_url)?;
        let host = url.host_str().unwrap_or_default().to_owned();
        let client = http_client(&host, CONNECT_TIMEOUT.min(settings.timeout))
            .map_err(|error| RestError::Invalid(format!("cannot create an HTTP client on this machine: {error}")))?;
        Ok(Self {
            client,
            base: format!("{}/api/v3/", url.as_str().trim_end_matches('/')),
            is_private: is_loopback(&host) || url.scheme() == "https",
            host: url.port().map_or_else(|| host.clone(), |port| format!("{host}:{port}")),
            timeout: settings.timeout,
            answers: Coalescer::new(settings.window, &clock),
            clock,
            governor,
            state: Mutex::default(),
        })
    }

    fn note_outcome(&self, answer: &Result<Raw, RestError>, now: Moment) {
        let mut state = self.state.lock();
        match answer {
            // The exchange works if it refuses with a code of its own.
            Err(error) if !matches!(error, RestError::Refused { .. } | RestError::NotRecorded(_)) => {
                let since = state.failing.as_ref().map_or(now, |failing| failing.since);
                state.failing = Some(Failing { since, last: now, why: error.clone() });
            }
            _ => state.failing = None,
        }
    }

    /// Waits for a permit, sends, and reads the answer, all within the timeout; background work waits for its permit
    /// beyond that.
    pub(super) async fn send(&self, request: &Request, priority: Priority) -> Result<Raw, RestError> {
        let whole = if request.is_bulk { BULK_TIMEOUT } else { self.timeout };
        let (patience, whole) = match priority {
            Priority::Interactive | Priority::BesideOrders | Priority::Order => (self.timeout / 3, whole),
            Priority::Page => (Duration::ZERO, whole),
            Priority::Background => (BACKGROUND_PATIENCE, whole.max(BACKGROUND_TIMEOUT)),
        };
        let begun = self.clock.monotonic();
        let permit = self.governor.acquire(request.weight(), priority, patience).await?;
        let sent = Moment::now(&*self.clock);
        let waited = sent.monotonic.saturating_duration_since(begun);
        let left = match priority {
            Priority::Background => whole,
            _ => whole.saturating_sub(waited),
        };
        let answer = self.exchange(request, &permit, sent, left).await;
        self.note_outcome(&answer, sent);
        self.count(request, &answer, sent);
        answer
    }

    fn count(&self, request: &Request, answer: &Result<Raw, RestError>, sent: Moment) {
        let outcome = answer.as_ref().map_or_else(RestError::outcome, |_| "ok");
        let endpoint = request.endpoint.path;
        let took = self.clock.monotonic().saturating_duration_since(sent.monotonic);
        metrics::counter!("tribune_upstream_requests_total", "endpoint" => endpoint, "outcome" => outcome).increment(1);
        metrics::histogram!("tribune_upstream_request_seconds", "endpoint" => endpoint).record(took.as_secs_f64());
        if let Err(error) = answer {
            tracing::debug!(endpoint, outcome, host = self.host, %error, "a request to the exchange failed");
        }
    }

    async fn exchange(
        &self,
        request: &Request,
        permit: &Permit,
        sent: Moment,
        timeout: Duration,
    ) -> Result<Raw, RestError> {
        let response = self.outgoing(request).timeout(timeout).send().await;
        let response = response.map_err(|error| unanswered(&error))?;
        let received = Moment::now(&*self.clock);
        let (status, headers) = (response.status(), response.headers());
        if let Some(counted) = number_in(headers, "x-mbx-used-weight-1m") {
            permit.note_counted(counted);
        }
        let simulation = Simulation::from_headers(headers);
        if simulation.is_some() {
            self.state.lock().simulation = simulation;
        }
        // The exchange sends seconds.
        let retry_after = number_in(headers, RETRY_AFTER.as_str()).map(Duration::from_secs);
        let by_status = self.refused_by_status(status, retry_after);
        let body = self.bounded(response, request).await;
        if let Some(error) = by_status {
            return Err(explained(error, request, status, &body.unwrap_or_default(), simulation));
        }
        let body = body?;
        if status != StatusCode::OK {
            return Err(self.refused_in_body(request, status, &body));
        }
        // An error page of a proxy does not prove that the real exchange is there.
        if simulation.is_none() && matches!(body.trim_ascii_start().first(), Some(b'{' | b'[')) {
            self.state.lock().simulation = None;
        }
        Ok(Stamped { value: body, exchange_time: None, sent, received, simulated: simulation.is_some() })
    }

    fn outgoing(&self, request: &Request) -> reqwest::RequestBuilder {
        let mut url = format!("{}{}", self.base, request.endpoint.path);
        if !request.query.is_empty() {
            url = format!("{url}?{}", request.query);
        }
        let mut outgoing = self.client.request(request.method.clone(), url);
        if let Some(key) = &request.key {
            outgoing = outgoing.header("X-MBX-APIKEY", key.clone());
        }
        if let Some(form) = &request.form {
            outgoing = outgoing.header("Content-Type", "application/x-www-form-urlencoded").body(form.clone());
        }
        outgoing
    }

    fn refused_by_status(&self, status: StatusCode, retry_after: Option<Duration>) -> Option<RestError> {
        match status.as_u16() {
            429 => Some(self.governor.pause(retry_after, false)),
            418 => Some(self.governor.pause(retry_after, true)),
            status @ (403 | 451) => Some(RestError::Firewall { status }),
            status @ 500.. => Some(RestError::Server { status }),
            _ => None,
        }
    }

    fn refused_in_body(&self, request: &Request, status: StatusCode, body: &[u8]) -> RestError {
        let Ok(ErrorBody { code, msg }) = serde_json::from_slice(body) else {
            return RestError::Status { endpoint: request.endpoint.path, status: status.as_u16() };
        };
        if code == -1003 {
            return self.governor.pause(None, false);
        }
        refused(code, &msg, request)
    }

    async fn bounded(&self, mut response: Response, request: &Request) -> Result<Vec<u8>, RestError> {
        let most = if request.is_bulk { MAX_BULK_BYTES } else { MAX_SMALL_BYTES };
        let too_large = || {
            let wrong = Wrong::new("", &format!("has more than {most} bytes"));
            RestError::Shape { endpoint: request.endpoint.path, wrong }
        };
        let announced = usize::try_from(response.content_length().unwrap_or(0)).unwrap_or(usize::MAX);
        if announced > most {
            return Err(too_large());
        }
        let mut body = Vec::with_capacity(announced);
        while let Some(chunk) = response.chunk().await.map_err(|error| unanswered(&error))? {
            if body.len() + chunk.len() > most {
                return Err(too_large());
            }
            body.extend_from_slice(&chunk);
        }
        Ok(body)
    }
}

/// A client for requests to this host; one on this machine is never reached through a proxy.
pub(crate) fn http_client(host: &str, connect_timeout: Duration) -> reqwest::Result<Client> {
    // An error means that the program has chosen its provider already.
    drop(rustls::crypto::ring::default_provider().install_default());
    let mut builder = Client::builder()
        .connect_timeout(connect_timeout)
        .redirect(reqwest::redirect::Policy::none())
        .user_agent(concat!("tribune/", env!("CARGO_PKG_VERSION")));
    if is_loopback(host) {
        builder = builder.no_proxy();
    }
    builder.build()
}

/// Why a request has no answer. Once it was connected it may have arrived, whatever went wrong then.
fn unanswered(error: &reqwest::Error) -> RestError {
    match (error.is_connect(), error.is_timeout()) {
        (true, _) => RestError::Unreachable(root_cause(error)),
        (false, true) => RestError::Timeout,
        (false, false) => RestError::BrokenOff,
    }
}

/// What lies behind an error, without the request's address.
pub(crate) fn root_cause(error: &reqwest::Error) -> String {
    let mut cause: &dyn Error = error;
    loop {
        // The error inside an I/O error is not its source.
        let wrapped = cause.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
        match wrapped.map(|inner| inner as &dyn Error).or_else(|| cause.source()) {
            Some(inner) => cause = inner,
            None => return cause.to_string(),
        }
    }
}

fn base(text: &str) -> Result<Url, RestError> {
    let refuse = |why: &str| RestError::Invalid(format!("the exchange's base URL {why}"));
    let url = Url::parse(text).map_err(|_| refuse("is not a URL; it looks like https://data-api.binance.vision"))?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
        return Err(refuse("must begin with https:// or http:// and name a host"));
    }
    if !url.username().is_empty() || url.password().is_some() || url.query().is_some() || url.fragment().is_some() {
        return Err(refuse("must have no user, password, query or fragment"));
    }
    Ok(url)
}

/// `{"code": -1121, "msg": "Invalid symbol."}`
#[derive(Deserialize)]
struct ErrorBody {
    code: i64,
    msg: String,
}

fn refused(code: i64, message: &str, request: &Request) -> RestError {
    RestError::Refused { code, message: quotable(message, request), subject: request.subject.clone() }
}

/// The exchange's message, unless it repeats a secret.
fn quotable(message: &str, request: &Request) -> String {
    let key = request.key.as_ref().and_then(|key| key.to_str().ok());
    let sent = request.form.as_ref().unwrap_or(&request.query);
    let signature = sent.split_once("signature=").map(|(_, signature)| signature);
    match [key, signature].into_iter().flatten().any(|secret| message.contains(secret)) {
        true => String::new(),
        false => quoted(message),
    }
}

/// What the body adds to an error that follows from the status. A replay's simulator says what the recording does not
/// have. For a request that changes something, only an error in the exchange's own format proves that it was refused.
fn explained(
    error: RestError,
    request: &Request,
    status: StatusCode,
    body: &[u8],
    simulation: Option<Simulation>,
) -> RestError {
    let said: Option<ErrorBody> = serde_json::from_slice(body).ok();
    match said.map(|said| refused(said.code, &said.msg, request)) {
        Some(RestError::Refused { message, .. })
            if simulation == Some(Simulation::Replay) && status.is_server_error() && !message.is_empty() =>
        {
            RestError::NotRecorded(message)
        }
        _ if request.method == Method::GET => error,
        Some(refused) if refused.leaves_outcome_unknown() => refused,
        None if !error.leaves_outcome_unknown() => {
            RestError::Status { endpoint: request.endpoint.path, status: status.as_u16() }
        }
        _ => error,
    }
}

/// One line without control characters, at most [`MAX_QUOTED_CHARS`] long.
fn quoted(text: &str) -> String {
    let plain: String = text.chars().filter(|c| !c.is_control()).collect();
    let plain = plain.trim().trim_end_matches('.');
    match plain.char_indices().nth(MAX_QUOTED_CHARS) {
        Some((at, _)) => format!("{}…", plain[..at].trim_end()),
        None => plain.to_owned(),
    }
}

fn number_in<T: FromStr>(headers: &HeaderMap, name: &str) -> Option<T> {
    headers.get(name)?.to_str().ok()?.trim().parse().ok()
}

fn is_loopback(host: &str) -> bool {
    matches!(host, "localhost" | "127.0.0.1" | "[::1]")
}
