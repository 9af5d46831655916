//! REST under `/api/v3`: requests are counted and weighed, answered from memory, and broken by faults.

mod data;
pub mod sim;
mod tickers;
mod weights;

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{Path, RawQuery, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::Response;
use futures::StreamExt as _;
use serde_json::{Value, json};

use crate::api::error::ApiError;
use crate::api::params::Params;
use crate::api::{Request, check_time_unit};
use crate::faults::Fault;
use crate::venue::Venue;
use crate::weight::Refusal;

pub async fn serve(
    State(venue): State<Arc<Venue>>,
    method: Method,
    Path(endpoint): Path<String>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let faults = &venue.markets.faults;
    venue.count(|counts| counts.add_request(format!("/api/v3/{endpoint}")));
    // An order is executed even if its answer is delayed: clients have to cope with that.
    let is_read = method == Method::GET;
    let delay = faults.delay();
    if is_read {
        tokio::time::sleep(delay).await;
    }
    let query = query.unwrap_or_default();
    let body = String::from_utf8_lossy(&body);
    let header = |name: &str| headers.get(name).map(|value| value.to_str().unwrap_or_default());
    let params = check_time_unit(header("x-mbx-time-unit")).and_then(|()| Params::parse(&query, &body));
    let weight = params.as_ref().map_or(1, |params| weights::weight(&endpoint, params));
    let (charged, used) = {
        let mut meter = venue.meter.lock();
        (meter.charge(&venue.limits, weight, venue.meter_clock.millis()), meter.used)
    };
    venue.count(|counts| counts.weight += u64::from(weight));
    let answer = rejection(&venue, charged, &endpoint).and(params).and_then(|params| {
        let request = Request {
            method: &method,
            endpoint: &endpoint,
            query: &query,
            body: &body,
            key: header("x-mbx-apikey"),
            params,
        };
        dispatch(&venue, &request)
    });
    let response = respond(&venue, answer, used);
    if !is_read {
        tokio::time::sleep(delay).await;
    }
    response
}

/// Organic rejections come before injected ones.
fn rejection(venue: &Venue, charged: Result<(), Refusal>, endpoint: &str) -> Result<(), ApiError> {
    let (status, retry_after_secs) = match charged {
        Err((status, retry_after_secs)) => {
            venue.count(|counts| match status {
                418 => counts.organic_418 += 1,
                _ => counts.organic_429 += 1,
            });
            (status, Some(retry_after_secs))
        }
        Ok(()) => {
            let Some(injected) = venue.markets.faults.take_rejection(endpoint) else { return Ok(()) };
            venue.count(|counts| counts.injected_rejections += 1);
            injected
        }
    };
    Err(ApiError::rejected(status, retry_after_secs))
}

/// The table of endpoints that need no key.
fn dispatch(venue: &Venue, request: &Request<'_>) -> Result<String, ApiError> {
    let (markets, params) = (&venue.markets, &request.params);
    let endpoint = (request.method == Method::GET).then_some(request.endpoint);
    let answer: Result<Value, ApiError> = match endpoint {
        Some("depth") => return data::depth(venue, params),
        Some("ping") => params.finish().map(|()| json!({})),
        Some("time") => params.finish().map(|()| json!({"serverTime": markets.server_time()})),
        Some("exchangeInfo") => tickers::exchange_info(venue, params),
        Some("trades") => data::trades(venue, params),
        Some("aggTrades") => data::aggregates(venue, params),
        Some("klines") => data::klines(venue, params),
        Some("avgPrice") => data::average_price(venue, params),
        Some("ticker/24hr") => tickers::day(venue, params),
        Some("ticker/price") => tickers::price(venue, params),
        Some("ticker/bookTicker") => tickers::book_ticker(venue, params),
        _ => venue.accounts.dispatch(markets, request),
    };
    answer.map(|answer| answer.to_string())
}

fn respond(venue: &Venue, answer: Result<String, ApiError>, used_weight: u32) -> Response {
    let faults = &venue.markets.faults;
    let (status, retry_after_secs) = match &answer {
        Ok(_) => (StatusCode::OK, None),
        Err(error) => (error.status, error.retry_after_secs),
    };
    let text = answer.unwrap_or_else(|error| error.body());
    let length = text.len();
    let is_half = faults.take(|fault| matches!(fault, Fault::HalfAnswers { .. }));
    let body = if is_half {
        half_of(&text)
    } else if faults.take(|fault| matches!(fault, Fault::GarbageAnswers { .. })) {
        Body::from("<html><body>\u{0}this is not JSON")
    } else {
        Body::from(text)
    };
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let headers = response.headers_mut();
    let json = HeaderValue::from_static("application/json;charset=UTF-8");
    headers.insert(header::CONTENT_TYPE, json);
    headers.insert("x-mbx-used-weight", HeaderValue::from(used_weight));
    headers.insert("x-mbx-used-weight-1m", HeaderValue::from(used_weight));
    if let Some(seconds) = retry_after_secs {
        headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    if is_half {
        headers.insert(header::CONTENT_LENGTH, HeaderValue::from(length));
    }
    response
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
