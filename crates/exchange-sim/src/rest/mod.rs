//! REST under `/api/v3`: requests are counted and weighed, answered from memory, and broken by faults.

mod data;
pub mod sim;
mod tickers;
mod weights;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{ConnectInfo, Path, RawQuery, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::Response;
use futures::StreamExt as _;
use serde_json::json;

use crate::account;
use crate::api::error::ApiError;
use crate::api::params::Params;
use crate::api::{Request, time_unit};
use crate::faults::{BodyFault, Rejection};
use crate::listener::Remote;
use crate::venue::{Counters, Venue};
use crate::weight::Verdict;

/// An answer before faults are applied to its body.
struct Answer {
    status: StatusCode,
    body: String,
    retry_after_secs: Option<u64>,
}

pub async fn serve(
    State(venue): State<Arc<Venue>>,
    ConnectInfo(remote): ConnectInfo<Remote>,
    method: Method,
    Path(endpoint): Path<String>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    venue.counters.count_request(&format!("/api/v3/{endpoint}"));
    if venue.markets.faults.refuses_connections() {
        return cut_off();
    }
    // An order is executed even if its answer is delayed: clients have to cope with that.
    let is_read = method == Method::GET;
    let delay = Duration::from_millis(venue.markets.faults.delay_millis());
    if is_read && !delay.is_zero() {
        tokio::time::sleep(delay).await;
    }
    let query = query.unwrap_or_default();
    let body = String::from_utf8_lossy(&body);
    let unit = headers
        .get(time_unit::HEADER)
        .map(|unit| unit.to_str().unwrap_or_default());
    let params = time_unit::check(unit).and_then(|()| Params::parse(&query, &body));
    let weight = params.as_ref().map_or(1, |params| weights::weight(&endpoint, params));
    let (verdict, used) = venue.meter.charge(remote.0.ip(), weight, venue.meter_clock.millis());
    Counters::add(&venue.counters.weight_total, u64::from(weight));
    venue.counters.weight_used.store(u64::from(used), Ordering::Relaxed);
    let answer = match (rejection(&venue, verdict, &endpoint), params) {
        (Some(rejected), _) => rejected,
        (None, Err(error)) => Answer::from(Err(error)),
        (None, Ok(params)) => {
            let request = Request {
                method: &method,
                endpoint: &endpoint,
                query: &query,
                body: &body,
                key: headers.get("x-mbx-apikey").and_then(|key| key.to_str().ok()),
                params,
            };
            Answer::from(dispatch(&venue, &request))
        }
    };
    let mut response = respond(&venue, answer, used);
    if endpoint == "order" && method == Method::POST {
        let (ten_seconds, day) = venue.accounts.order_counts(venue.markets.now());
        let headers = response.headers_mut();
        headers.insert("x-mbx-order-count-10s", HeaderValue::from(ten_seconds));
        headers.insert("x-mbx-order-count-1d", HeaderValue::from(day));
    }
    if !is_read && !delay.is_zero() {
        tokio::time::sleep(delay).await;
    }
    response
}

/// Organic rejections come before injected ones.
fn rejection(venue: &Venue, verdict: Verdict, endpoint: &str) -> Option<Answer> {
    let counters = &venue.counters;
    let (counter, status, retry_after_secs) = match verdict {
        Verdict::OverLimit { retry_after_secs } => (&counters.organic_429, 429, Some(retry_after_secs)),
        Verdict::Banned { retry_after_secs } => (&counters.organic_418, 418, Some(retry_after_secs)),
        Verdict::Within if venue.markets.faults.take_failure(endpoint) => (&counters.injected, 503, None),
        Verdict::Within => {
            let Rejection {
                status,
                retry_after_secs,
            } = venue.markets.faults.take_rejection()?;
            (&counters.injected, status, retry_after_secs)
        }
    };
    Counters::add(counter, 1);
    Some(Answer::rejected(status, retry_after_secs))
}

/// The table of endpoints.
fn dispatch(venue: &Venue, request: &Request<'_>) -> Result<String, ApiError> {
    let (markets, params) = (&venue.markets, &request.params);
    if account::ENDPOINTS.contains(&request.endpoint) {
        return venue.accounts.dispatch(markets, request);
    }
    if request.method != Method::GET {
        return Err(ApiError::no_such_path());
    }
    match request.endpoint {
        "ping" => params.finish().map(|()| "{}".to_owned()),
        "time" => params
            .finish()
            .map(|()| json!({"serverTime": markets.server_time()}).to_string()),
        "exchangeInfo" => tickers::exchange_info(venue, params),
        "depth" => data::depth(venue, params),
        "trades" => data::trades(venue, params, false),
        "historicalTrades" => data::trades(venue, params, true),
        "aggTrades" => data::aggregates(venue, params),
        "klines" | "uiKlines" => data::klines(venue, params),
        "avgPrice" => data::average_price(venue, params),
        "ticker/24hr" => tickers::day(venue, params),
        "ticker/price" => tickers::price(venue, params),
        "ticker/bookTicker" => tickers::book_ticker(venue, params),
        "ticker" => tickers::rolling(venue, params),
        "ticker/tradingDay" => tickers::trading_day(venue, params),
        _ => Err(ApiError::no_such_path()),
    }
}

impl From<Result<String, ApiError>> for Answer {
    fn from(result: Result<String, ApiError>) -> Self {
        let (status, body) = match result {
            Ok(body) => (StatusCode::OK, body),
            Err(error) => (error.status, error.body()),
        };
        Self {
            status,
            body,
            retry_after_secs: None,
        }
    }
}

impl Answer {
    fn rejected(status: u16, retry_after_secs: Option<u64>) -> Self {
        let (code, message) = match status {
            418 => (
                -1003,
                "Way too much request weight used; IP banned. Please use WebSocket Streams for live updates to avoid bans.",
            ),
            429 => (
                -1003,
                "Too much request weight used; please use WebSocket Streams for live updates to avoid polling the API.",
            ),
            _ => (-1000, "An unknown error occurred while processing the request."),
        };
        Self {
            status: StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR),
            body: ApiError::bad(code, message).body(),
            retry_after_secs,
        }
    }
}

fn respond(venue: &Venue, answer: Answer, used_weight: u32) -> Response {
    let length = answer.body.len();
    let fault = venue.markets.faults.next_body();
    let body = match fault {
        BodyFault::None => Body::from(answer.body),
        BodyFault::Half => half_of(&answer.body),
        BodyFault::Garbage => Body::from("<html><body>\u{0}this is not JSON"),
    };
    let mut response = Response::new(body);
    *response.status_mut() = answer.status;
    let headers = response.headers_mut();
    let json = HeaderValue::from_static("application/json;charset=UTF-8");
    headers.insert(header::CONTENT_TYPE, json);
    headers.insert("x-mbx-used-weight", HeaderValue::from(used_weight));
    headers.insert("x-mbx-used-weight-1m", HeaderValue::from(used_weight));
    if let Some(seconds) = answer.retry_after_secs {
        headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    if fault == BodyFault::Half {
        headers.insert(header::CONTENT_LENGTH, HeaderValue::from(length));
    }
    response
}

/// Ends a connection that was open before new ones were refused.
fn cut_off() -> Response {
    let error = Err::<Bytes, _>(std::io::Error::other("refused by a fault"));
    Response::new(Body::from_stream(futures::stream::once(std::future::ready(error))))
}

/// Half of a body and then an error, which ends the connection.
fn half_of(body: &str) -> Body {
    let half = Bytes::copy_from_slice(&body.as_bytes()[..body.len() / 2]);
    // The pause lets the half be flushed; with an error right behind it nothing would be sent.
    let ending = async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        Err(std::io::Error::other("cut off by a fault"))
    };
    let chunks = futures::stream::once(std::future::ready(Ok(half))).chain(futures::stream::once(ending));
    Body::from_stream(chunks)
}
