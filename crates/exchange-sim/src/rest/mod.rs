//! REST under `/api/v3`: counted, weighed, answered from memory, and spoiled on demand.

mod data;
pub mod error;
pub mod params;
pub mod sim;
mod tickers;
pub mod time_unit;
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
use crate::faults::{BodyFate, Rejection};
use crate::server::Remote;
use crate::venue::{Tally, Venue};
use crate::weight::Verdict;
use error::ApiError;
use params::Params;

/// One request, as the endpoints see it.
pub struct Request<'a> {
    pub method: &'a Method,
    pub endpoint: &'a str,
    pub query: &'a str,
    pub body: &'a str,
    pub key: Option<&'a str>,
    pub params: Params,
}

/// An answer before it is spoiled and sent.
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
    venue.tally.count(&format!("/api/v3/{endpoint}"));
    if venue.faults.refusing() {
        return cut_off();
    }
    // An order is carried out though its answer comes late: that is what clients have to reckon with.
    let changes = method != Method::GET;
    let delay = venue.faults.delay_millis();
    if delay > 0 && !changes {
        tokio::time::sleep(Duration::from_millis(delay)).await;
    }
    let query = query.unwrap_or_default();
    let body = String::from_utf8_lossy(&body);
    let unit = headers
        .get(time_unit::HEADER)
        .map(|unit| unit.to_str().unwrap_or_default());
    let params = time_unit::check(unit).and_then(|()| Params::parse(&query, &body));
    let weight = params.as_ref().map_or(1, |params| weights::weight(&endpoint, params));
    let (verdict, used) = venue.meter.charge(remote.0.ip(), weight, venue.meter_clock.millis());
    Tally::add(&venue.tally.weight_total, u64::from(weight));
    venue.tally.weight_used.store(u64::from(used), Ordering::Relaxed);
    let answer = match (rejected(&venue, verdict, &endpoint), params) {
        (Some(answer), _) => answer,
        (None, Err(error)) => Answer::of(Err(error)),
        (None, Ok(params)) => {
            let request = Request {
                method: &method,
                endpoint: &endpoint,
                query: &query,
                body: &body,
                key: headers.get("x-mbx-apikey").and_then(|key| key.to_str().ok()),
                params,
            };
            Answer::of(answer(&venue, &request))
        }
    };
    let ordering = endpoint == "order" && method == Method::POST;
    let mut response = respond(&venue, answer, used);
    if ordering {
        let (ten_seconds, day) = venue.accounts.order_counts(venue.now());
        let headers = response.headers_mut();
        headers.insert("x-mbx-order-count-10s", HeaderValue::from(ten_seconds));
        headers.insert("x-mbx-order-count-1d", HeaderValue::from(day));
    }
    if delay > 0 && changes {
        tokio::time::sleep(Duration::from_millis(delay)).await;
    }
    response
}

/// A rejection that was earned comes before one that was asked for.
fn rejected(venue: &Venue, verdict: Verdict, endpoint: &str) -> Option<Answer> {
    match verdict {
        Verdict::TooMuch { retry_after_secs } => {
            Tally::add(&venue.tally.organic_429, 1);
            Some(Answer::rejecting(429, Some(retry_after_secs)))
        }
        Verdict::Banned { retry_after_secs } => {
            Tally::add(&venue.tally.organic_418, 1);
            Some(Answer::rejecting(418, Some(retry_after_secs)))
        }
        Verdict::Within if venue.faults.take_failure(endpoint) => {
            Tally::add(&venue.tally.injected, 1);
            Some(Answer::rejecting(503, None))
        }
        Verdict::Within => {
            let Rejection {
                status,
                retry_after_secs,
            } = venue.faults.take_rejection()?;
            Tally::add(&venue.tally.injected, 1);
            Some(Answer::rejecting(status, retry_after_secs))
        }
    }
}

/// The table of endpoints.
fn answer(venue: &Venue, request: &Request<'_>) -> Result<String, ApiError> {
    let params = &request.params;
    if account::ENDPOINTS.contains(&request.endpoint) {
        return account::answer(venue, request);
    }
    if request.method != Method::GET {
        return Err(no_such_path());
    }
    match request.endpoint {
        "ping" => params.finish().map(|()| "{}".to_owned()),
        "time" => params
            .finish()
            .map(|()| json!({"serverTime": venue.told_time()}).to_string()),
        "exchangeInfo" => tickers::exchange_info(venue, params),
        "depth" => data::depth(venue, params),
        "trades" => data::trades(venue, params),
        "historicalTrades" => data::historical_trades(venue, params),
        "aggTrades" => data::aggregates(venue, params),
        "klines" | "uiKlines" => data::klines(venue, params),
        "avgPrice" => data::average_price(venue, params),
        "ticker/24hr" => tickers::day(venue, params),
        "ticker/price" => tickers::price(venue, params),
        "ticker/bookTicker" => tickers::book_ticker(venue, params),
        "ticker" => tickers::rolling(venue, params),
        "ticker/tradingDay" => tickers::trading_day(venue, params),
        _ => Err(no_such_path()),
    }
}

pub fn no_such_path() -> ApiError {
    ApiError {
        status: StatusCode::NOT_FOUND,
        ..ApiError::bad(-1000, "no such path")
    }
}

impl Answer {
    fn of(result: Result<String, ApiError>) -> Self {
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

    fn rejecting(status: u16, retry_after_secs: Option<u64>) -> Self {
        let message = match status {
            418 => {
                "Way too much request weight used; IP banned. Please use WebSocket Streams for live updates to avoid bans."
            }
            429 => {
                "Too much request weight used; please use WebSocket Streams for live updates to avoid polling the API."
            }
            _ => "An unknown error occurred while processing the request.",
        };
        let code = if matches!(status, 418 | 429) { -1003 } else { -1000 };
        Self {
            status: StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR),
            body: ApiError::bad(code, message).body(),
            retry_after_secs,
        }
    }
}

fn respond(venue: &Venue, answer: Answer, used: u32) -> Response {
    let body = match venue.faults.next_body() {
        BodyFate::Whole => Body::from(answer.body),
        BodyFate::Half => return half_sent(venue, &answer, used),
        BodyFate::Garbage => Body::from("<html><body>\u{0}this is not JSON"),
    };
    with_headers(venue, &answer_parts(answer.status, answer.retry_after_secs, used), body)
}

/// Ends a connection that was there before new ones were refused.
fn cut_off() -> Response {
    let nothing = futures::stream::once(std::future::ready(Err::<Bytes, _>(std::io::Error::other(
        "refused on demand",
    ))));
    Response::new(Body::from_stream(nothing))
}

/// Says how long the body is, sends half of it and ends the connection.
fn half_sent(venue: &Venue, answer: &Answer, used: u32) -> Response {
    let length = answer.body.len();
    let half = Bytes::copy_from_slice(&answer.body.as_bytes()[..length / 2]);
    // The half has to be on its way before the end, or nothing is sent at all.
    let ending = async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        Err(std::io::Error::other("half-sent on demand"))
    };
    let chunks = futures::stream::once(std::future::ready(Ok(half))).chain(futures::stream::once(ending));
    let body = Body::from_stream(chunks);
    let parts = answer_parts(answer.status, answer.retry_after_secs, used);
    let mut response = with_headers(venue, &parts, body);
    response
        .headers_mut()
        .insert(header::CONTENT_LENGTH, HeaderValue::from(length));
    response
}

struct Parts {
    status: StatusCode,
    retry_after_secs: Option<u64>,
    used: u32,
}

const fn answer_parts(status: StatusCode, retry_after_secs: Option<u64>, used: u32) -> Parts {
    Parts {
        status,
        retry_after_secs,
        used,
    }
}

fn with_headers(venue: &Venue, parts: &Parts, body: Body) -> Response {
    let mut response = Response::new(body);
    *response.status_mut() = parts.status;
    let headers = response.headers_mut();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/json;charset=UTF-8"),
    );
    headers.insert("x-mbx-used-weight", HeaderValue::from(parts.used));
    headers.insert("x-mbx-used-weight-1m", HeaderValue::from(parts.used));
    headers.insert("x-tribune-simulated", HeaderValue::from_static(venue.label.as_str()));
    if let Some(seconds) = parts.retry_after_secs {
        headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}
