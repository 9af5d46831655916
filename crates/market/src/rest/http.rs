//! Sends one request and reads its answer: bounded in time and size, counted, explained.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::fmt::rfc2822;
use reqwest::header::{DATE, HeaderMap, RETRY_AFTER};
use reqwest::{Client, Method, Response, StatusCode, Url};
use tribune_core::wire::clip;
use tribune_core::{Clock, Error};

use super::client::Settings;
use super::decode;
use super::error::RestError;
use super::governor::{Governor, Permit, Priority, Told};
use super::network::explain;
use super::request::{Request, Size};
use crate::model::Millis;
use crate::moment::Moment;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// More than the longest of each ever is.
const MAX_SMALL_BYTES: usize = 4 << 20;
const MAX_BULK_BYTES: usize = 64 << 20;
/// As much of the exchange's own words as an error repeats.
const MAX_QUOTED_CHARS: usize = 200;
/// Nobody waits for background work, but it must end.
const BACKGROUND_TIMEOUT: Duration = Duration::from_secs(15);
/// Over a whole minute: it comes through in the next one.
const BACKGROUND_PATIENCE: Duration = Duration::from_secs(75);
const SIMULATED: &str = "x-tribune-simulated";

/// What stands in for the exchange, if it is not the exchange.
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

    fn of(headers: &HeaderMap) -> Option<Self> {
        let value = headers.get(SIMULATED)?;
        Some(if value.as_bytes().eq_ignore_ascii_case(b"replay") {
            Self::Replay
        } else {
            Self::Simulated
        })
    }
}

/// An answer as it came.
pub(crate) struct Raw {
    pub(crate) body: Vec<u8>,
    pub(super) sent: Moment,
    /// When its first bytes were there: ages count from then.
    pub(crate) received: Moment,
    pub(crate) simulated: bool,
}

pub(super) struct Transport {
    client: Client,
    /// Up to and with `/api/v3/`.
    base: String,
    /// For errors.
    host: String,
    private: bool,
    timeout: Duration,
    bulk_timeout: Duration,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) governor: Arc<Governor>,
    simulation: Mutex<Option<Simulation>>,
    /// `None` while requests go well.
    failing: Mutex<Option<Failing>>,
}

/// Requests that fail one after another, by no fault of their own.
#[derive(Debug, Clone)]
pub(crate) struct Failing {
    pub(crate) since: Moment,
    pub(crate) last: Moment,
    pub(crate) why: RestError,
}

impl Transport {
    /// Checks the settings; nothing is sent.
    pub(super) fn new(settings: &Settings, governor: Arc<Governor>, clock: Arc<dyn Clock>) -> Result<Self, Error> {
        let url = base(&settings.base_url)?;
        let host = url.host_str().unwrap_or_default().to_owned();
        // An error means that the program has chosen its provider already.
        drop(rustls::crypto::ring::default_provider().install_default());
        let mut builder = Client::builder()
            .connect_timeout(CONNECT_TIMEOUT.min(settings.timeout))
            .redirect(reqwest::redirect::Policy::none())
            .user_agent(concat!("tribune/", env!("CARGO_PKG_VERSION")));
        let local = is_loopback(&host);
        if local {
            builder = builder.no_proxy();
        }
        let client = builder
            .build()
            .map_err(|error| Error::internal("no HTTP client can be made on this machine").caused_by(error))?;
        Ok(Self {
            client,
            base: format!("{}/api/v3/", url.as_str().trim_end_matches('/')),
            private: local || url.scheme() == "https",
            host: url.port().map_or_else(|| host.clone(), |port| format!("{host}:{port}")),
            timeout: settings.timeout,
            bulk_timeout: settings.bulk_timeout,
            clock,
            governor,
            simulation: Mutex::new(None),
            failing: Mutex::new(None),
        })
    }

    pub(super) fn simulation(&self) -> Option<Simulation> {
        *self.simulation.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn failing(&self) -> Option<Failing> {
        self.failing.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn note_outcome(&self, answer: &Result<Raw, RestError>, now: Moment) {
        let mut failing = self.failing.lock().unwrap_or_else(PoisonError::into_inner);
        match answer {
            // The exchange is there if it refuses by a code of its own.
            Err(error) if !matches!(error, RestError::Refused { .. } | RestError::Untold(_)) => {
                *failing = Some(Failing {
                    since: failing.as_ref().map_or(now, |failing| failing.since),
                    last: now,
                    why: error.clone(),
                });
            }
            _ => *failing = None,
        }
    }

    pub(super) fn host(&self) -> &str {
        &self.host
    }

    pub(super) const fn is_private(&self) -> bool {
        self.private
    }

    /// Waits for leave, sends, and reads the answer. All of it takes no longer than the timeout, the
    /// waiting of background work aside.
    pub(super) async fn send(&self, request: &Request, priority: Priority) -> Result<Raw, RestError> {
        let whole = match request.size {
            Size::Bulk => self.bulk_timeout,
            Size::Small => self.timeout,
        };
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
        let endpoint = request.endpoint.as_str();
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
        let response = response.map_err(|error| self.network(&error))?;
        let received = Moment::now(&*self.clock);
        let (status, headers) = (response.status(), response.headers());
        permit.told(told(headers));
        let simulation = Simulation::of(headers);
        if simulation.is_some() {
            self.set_simulation(simulation);
        }
        let retry_after = retry_after(headers);
        if let Some(error) = self.refused_by_status(status, retry_after) {
            // The exchange's own faults have no words worth repeating; a recording's gaps have.
            if simulation == Some(Simulation::Replay) && matches!(error, RestError::Server { .. }) {
                let body = self.bounded(response, request).await;
                return Err(body.ok().and_then(|body| untold(&body)).unwrap_or(error));
            }
            return Err(self.in_own_words(error, status, response, request).await);
        }
        let body = self.bounded(response, request).await?;
        if status != StatusCode::OK {
            return Err(self.refused_in_body(request, status, &body));
        }
        // Who stands in between and answers for the exchange cannot say that it is the real one.
        if simulation.is_none() && matches!(body.trim_ascii_start().first(), Some(b'{' | b'[')) {
            self.set_simulation(None);
        }
        Ok(Raw {
            body,
            sent,
            received,
            simulated: simulation.is_some(),
        })
    }

    fn set_simulation(&self, simulation: Option<Simulation>) {
        *self.simulation.lock().unwrap_or_else(PoisonError::into_inner) = simulation;
    }

    fn outgoing(&self, request: &Request) -> reqwest::RequestBuilder {
        let mut url = format!("{}{}", self.base, request.endpoint.as_str());
        if !request.query.is_empty() {
            url = format!("{url}?{}", request.query);
        }
        let mut outgoing = self.client.request(request.method.clone(), url);
        if let Some(key) = &request.key {
            outgoing = outgoing.header("X-MBX-APIKEY", key.clone());
        }
        if let Some(form) = &request.form {
            outgoing = outgoing
                .header("Content-Type", "application/x-www-form-urlencoded")
                .body(form.clone());
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

    /// Of a request that changes something only the exchange's own words say that it was refused.
    async fn in_own_words(
        &self,
        error: RestError,
        status: StatusCode,
        response: Response,
        request: &Request,
    ) -> RestError {
        let is_question = request.method == Method::GET;
        if is_question || error.leaves_outcome_unknown() {
            return error;
        }
        let body = self.bounded(response, request).await.unwrap_or_default();
        let Ok((code, message)) = own_words(&body) else {
            return RestError::Page {
                status: status.as_u16(),
                means: Box::new(error),
            };
        };
        let refused = refused(code, &message, request);
        if refused.leaves_outcome_unknown() {
            refused
        } else {
            error
        }
    }

    fn refused_in_body(&self, request: &Request, status: StatusCode, body: &[u8]) -> RestError {
        let Ok((code, message)) = own_words(body) else {
            return RestError::Status {
                endpoint: request.endpoint.as_str(),
                status: status.as_u16(),
            };
        };
        if code == -1003 {
            return self.governor.pause(None, false);
        }
        refused(code, &message, request)
    }

    async fn bounded(&self, mut response: Response, request: &Request) -> Result<Vec<u8>, RestError> {
        let most = match request.size {
            Size::Small => MAX_SMALL_BYTES,
            Size::Bulk => MAX_BULK_BYTES,
        };
        let too_large = || RestError::TooLarge {
            endpoint: request.endpoint.as_str(),
            most,
        };
        let announced = usize::try_from(response.content_length().unwrap_or(0)).unwrap_or(usize::MAX);
        if announced > most {
            return Err(too_large());
        }
        let mut body = Vec::with_capacity(announced);
        while let Some(chunk) = response.chunk().await.map_err(|error| self.network(&error))? {
            if body.len() + chunk.len() > most {
                return Err(too_large());
            }
            body.extend_from_slice(&chunk);
        }
        Ok(body)
    }

    fn network(&self, error: &reqwest::Error) -> RestError {
        RestError::Network(explain(error, self.host.clone()))
    }
}

fn base(text: &str) -> Result<Url, Error> {
    let refuse = |why: &str| Error::invalid_argument(format!("the exchange's base URL {why}"));
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
fn own_words(body: &[u8]) -> decode::Read<(i64, String)> {
    let fields = decode::object(body)?;
    Ok((fields.integer("code")?, fields.text("msg")?.into_owned()))
}

fn refused(code: i64, message: &str, request: &Request) -> RestError {
    RestError::Refused {
        code,
        message: quotable(message, request),
        subject: request.subject.clone(),
    }
}

/// What a recording does not tell, in the simulator's words.
fn untold(body: &[u8]) -> Option<RestError> {
    let fields = decode::object(body).ok()?;
    let said = fields.text("msg").ok()?;
    let plain: String = said.chars().filter(|c| !c.is_control()).collect();
    let said = clip(plain.trim().trim_end_matches('.'), MAX_QUOTED_CHARS).into_owned();
    (!said.is_empty()).then_some(RestError::Untold(said))
}

/// The exchange's words, unless they repeat what is secret.
fn quotable(message: &str, request: &Request) -> String {
    let key = request.key.as_ref().and_then(|key| key.to_str().ok());
    let sent = [Some(request.query.as_str()), request.form.as_deref()];
    let signature = sent
        .into_iter()
        .flatten()
        .find_map(|sent| sent.split_once("signature="));
    let secrets = [key, signature.map(|(_, signature)| signature)];
    if secrets.into_iter().flatten().any(|secret| message.contains(secret)) {
        return String::new();
    }
    let plain: String = message.chars().filter(|c| !c.is_control()).collect();
    clip(plain.trim().trim_end_matches('.'), MAX_QUOTED_CHARS).into_owned()
}

fn told(headers: &HeaderMap) -> Told {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let date = text(DATE.as_str()).and_then(|date| rfc2822::DateTimeParser::new().parse_timestamp(date).ok());
    Told {
        used_weight: text("x-mbx-used-weight-1m").and_then(|used| used.trim().parse().ok()),
        date: date.map(|date| date.as_millisecond() as Millis),
    }
}

/// Seconds, as the exchange sends them.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let value = headers.get(RETRY_AFTER)?.to_str().ok()?;
    value.trim().parse().ok().map(Duration::from_secs)
}

/// This machine itself, which is not reached through a proxy.
pub(crate) fn is_loopback(host: &str) -> bool {
    matches!(host, "localhost" | "127.0.0.1" | "[::1]")
}
