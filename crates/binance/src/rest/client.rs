//! [`Rest`]: the calls.

use std::sync::Arc;
use std::time::Duration;

use reqwest::Method;
use tribune_clock::Clock;

use super::answers::{self, Aggregates, AvgPrice, Decoded, ExchangeInfo, Ticker};
use super::coalesce::Shared;
use super::endpoint::Endpoint;
use super::error::RestError;
use super::governor::{Governor, Priority};
use super::http::{Failing, Inner, Raw, Simulation};
use super::request::Request;
use super::sign::Signer;
use crate::book::Snapshot;
use crate::model::{Candle, Interval, Millis, Trade};
use crate::moment::Stamped;

pub const DEFAULT_BASE_URL: &str = "https://data-api.binance.vision";
/// The exchange's code for a time too far from its own: refused before anything is done.
const CLOCK_SKEW: i64 = -1021;
/// Larger answers are decoded on a blocking thread.
const INLINE_BYTES: usize = 128 << 10;

#[derive(Debug, Clone)]
pub struct Settings {
    pub base_url: String,
    /// For a request that a caller waits for, everything included.
    pub timeout: Duration,
    /// How long an answer is reused for the same request; zero for not at all.
    pub window: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            base_url: DEFAULT_BASE_URL.to_owned(),
            // A `fetch` has three seconds, and does more than this.
            timeout: Duration::from_millis(2_800),
            window: Duration::from_secs(1),
        }
    }
}

/// Which candles: without times the newest; with `start` alone the oldest from there; with `end`
/// alone the newest up to it.
#[derive(Debug, Clone, Copy)]
pub struct KlinesQuery {
    pub interval: Interval,
    pub limit: u32,
    pub start: Option<Millis>,
    pub end: Option<Millis>,
}

impl KlinesQuery {
    pub const fn newest(interval: Interval, limit: u32) -> Self {
        Self { interval, limit, start: None, end: None }
    }
}

/// The client. Clones share everything but their priority.
#[derive(Clone)]
pub struct Rest {
    pub(super) inner: Arc<Inner>,
    pub(super) priority: Priority,
}

impl Rest {
    /// Checks the settings; nothing is sent.
    pub fn new(settings: Settings, clock: Arc<dyn Clock>) -> Result<Self, RestError> {
        let governor = Governor::new(Arc::clone(&clock));
        Self::governed(settings, governor, clock)
    }

    /// With a budget that is shared with other clients.
    pub fn governed(settings: Settings, governor: Arc<Governor>, clock: Arc<dyn Clock>) -> Result<Self, RestError> {
        let inner = Inner::new(&settings, governor, clock)?;
        Ok(Self { inner: Arc::new(inner), priority: Priority::Interactive })
    }

    /// The same client for other callers. With orders, some of the weight is reserved for them from now on.
    #[must_use]
    pub fn with_priority(&self, priority: Priority) -> Self {
        if priority == Priority::Order {
            self.governor().keep_for_orders();
        }
        Self { priority, ..self.clone() }
    }

    pub fn governor(&self) -> &Arc<Governor> {
        &self.inner.governor
    }

    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.inner.clock
    }

    pub fn failing(&self) -> Option<Failing> {
        self.inner.state.lock().failing.clone()
    }

    /// The simulator that sent the last answer; `None` for the real exchange.
    pub fn simulation(&self) -> Option<Simulation> {
        self.inner.state.lock().simulation
    }

    /// How far the exchange's clock is ahead of this machine's, once [`Rest::server_time`] has been called.
    pub fn clock_offset_ms(&self) -> Option<i64> {
        self.inner.state.lock().offset_ms
    }

    /// How far this machine's clock is from the exchange's, in words, if a second or more.
    pub fn clock_skew(&self) -> Option<String> {
        let offset = self.clock_offset_ms().filter(|offset| offset.unsigned_abs() >= 1_000)?;
        let side = if offset > 0 { "behind" } else { "ahead of" };
        let (whole, tenth) = (offset.unsigned_abs() / 1_000, offset.unsigned_abs() % 1_000 / 100);
        Some(format!("this machine's clock is {whole}.{tenth} s {side} the exchange's"))
    }

    pub fn host(&self) -> &str {
        &self.inner.host
    }

    /// Whether requests cannot be read on the way: by TLS, or because the host is this machine.
    pub fn is_private(&self) -> bool {
        self.inner.is_private
    }

    /// Asks for the exchange's time and learns the offset of the clocks: the answer was right half a round trip before it
    /// came.
    pub async fn server_time(&self) -> Result<Stamped<Millis>, RestError> {
        let request = Request::new(Endpoint::TIME);
        let raw = self.inner.send(&request, self.priority).await?;
        let round_trip = raw.received.monotonic.saturating_duration_since(raw.sent.monotonic);
        let half = i64::try_from(round_trip.as_millis() / 2).unwrap_or(i64::MAX);
        let stamped = decoded(raw, request.endpoint, answers::server_time)?;
        let offset = stamped.value.saturating_add(half).saturating_sub(stamped.received.wall.as_millisecond());
        self.inner.state.lock().offset_ms = Some(offset);
        Ok(stamped)
    }

    /// Symbols and limits; sets the governor's budget.
    pub async fn exchange_info(&self) -> Shared<ExchangeInfo> {
        let request = Request::new(Endpoint::EXCHANGE_INFO).bulk();
        let info = self.shared(request, answers::exchange_info).await?;
        if let Some(budget) = info.value.weight_per_minute {
            self.governor().set_budget(budget);
        }
        Ok(info)
    }

    pub async fn depth(&self, symbol: &str, limit: u32) -> Shared<Snapshot> {
        let request = Request::new(Endpoint::DEPTH).symbol(symbol)?.limit(limit);
        let read = move |body: &[u8]| answers::depth(body, limit);
        self.shared(request, read).await
    }

    /// A snapshot for a local book: never a reused answer.
    pub async fn fresh_depth(&self, symbol: &str, limit: u32) -> Result<Stamped<Snapshot>, RestError> {
        let request = Request::new(Endpoint::DEPTH).symbol(symbol)?.limit(limit);
        let raw = self.inner.send(&request, self.priority).await?;
        decoded(raw, request.endpoint, |body| answers::depth(body, limit))
    }

    /// The newest trades, oldest first.
    pub async fn trades(&self, symbol: &str, limit: u32) -> Shared<Vec<Trade>> {
        let request = Request::new(Endpoint::TRADES).symbol(symbol)?.limit(limit);
        self.shared(request, answers::trades).await
    }

    /// The newest aggregates, or those from an id on.
    pub async fn agg_trades(&self, symbol: &str, limit: u32, from_id: Option<u64>) -> Shared<Aggregates> {
        let request = Request::new(Endpoint::AGG_TRADES).symbol(symbol)?.limit(limit);
        self.shared(request.with_some("fromId", from_id), answers::agg_trades).await
    }

    pub async fn klines(&self, symbol: &str, query: &KlinesQuery) -> Shared<Vec<Candle>> {
        let request = Request::new(Endpoint::KLINES)
            .symbol(symbol)?
            .with("interval", query.interval.as_str())
            .limit(query.limit)
            .with_some("startTime", query.start)
            .with_some("endTime", query.end);
        self.shared(request, answers::klines).await
    }

    pub async fn avg_price(&self, symbol: &str) -> Shared<AvgPrice> {
        let request = Request::new(Endpoint::AVG_PRICE).symbol(symbol)?;
        self.shared(request, answers::avg_price).await
    }

    pub async fn ticker_24h(&self, symbol: &str) -> Shared<Ticker> {
        let request = Request::new(Endpoint::TICKER_24H).symbol(symbol)?;
        self.shared(request, answers::ticker).await
    }

    /// Of 1 to 100 symbols, those that can be read; an unknown symbol fails the whole request.
    pub async fn tickers_24h(&self, symbols: &[&str]) -> Shared<Vec<Ticker>> {
        let request = Request::new(Endpoint::TICKER_24H).symbols(symbols)?;
        self.shared(request, answers::tickers).await
    }

    /// Of every symbol whose ticker can be read.
    pub async fn all_tickers_24h(&self) -> Shared<Vec<Ticker>> {
        let request = Request::new(Endpoint::TICKER_24H).bulk();
        self.shared(request, answers::tickers).await
    }

    /// A call of an account. It is never shared, and sent again only if the exchange refused its time before anything else.
    pub async fn signed<T>(
        &self,
        signer: &Signer,
        method: Method,
        request: Request,
        read: fn(&[u8]) -> Decoded<T>,
    ) -> Result<Stamped<T>, RestError> {
        if self.clock_offset_ms().is_none() {
            self.learn_time().await?;
        }
        let first = self.signed_once(signer, &method, &request, read).await;
        if first.as_ref().err().and_then(RestError::code) != Some(CLOCK_SKEW) {
            return first;
        }
        self.learn_time().await?;
        self.signed_once(signer, &method, &request, read).await
    }

    /// If this fails, nothing was sent.
    async fn learn_time(&self) -> Result<(), RestError> {
        let time = self.server_time().await;
        time.map(drop).map_err(|error| RestError::NoTime(Box::new(error)))
    }

    async fn signed_once<T>(
        &self,
        signer: &Signer,
        method: &Method,
        request: &Request,
        read: fn(&[u8]) -> Decoded<T>,
    ) -> Result<Stamped<T>, RestError> {
        let exchange_now = self.clock().now().as_millisecond().saturating_add(self.clock_offset_ms().unwrap_or(0));
        let request = signer.sign(request.clone(), method.clone(), exchange_now);
        let raw = self.inner.send(&request, self.priority).await?;
        decoded(raw, request.endpoint, read)
    }

    /// One request for all callers who ask the same with the same priority, so that none waits for background work.
    async fn shared<T: Send + Sync + 'static>(
        &self,
        request: Request,
        read: impl FnOnce(&[u8]) -> Decoded<T> + Send + 'static,
    ) -> Shared<T> {
        let (inner, priority) = (Arc::clone(&self.inner), self.priority);
        let key = format!("{priority:?} {}", request.key());
        let fetch = async move {
            let raw = inner.send(&request, priority).await?;
            if raw.value.len() <= INLINE_BYTES {
                return decoded(raw, request.endpoint, read);
            }
            let reading = tokio::task::spawn_blocking(move || decoded(raw, request.endpoint, read));
            reading.await.unwrap_or(Err(RestError::Abandoned))
        };
        self.inner.answers.get(key, fetch).await
    }
}

/// Decodes an answer; the error names the endpoint.
pub(super) fn decoded<T>(
    raw: Raw,
    endpoint: Endpoint,
    read: impl FnOnce(&[u8]) -> Decoded<T>,
) -> Result<Stamped<T>, RestError> {
    let endpoint = endpoint.path;
    let (value, exchange_time) = read(&raw.value).map_err(|wrong| RestError::Shape { endpoint, wrong })?;
    Ok(Stamped { exchange_time, ..raw.map(|_| value) })
}
