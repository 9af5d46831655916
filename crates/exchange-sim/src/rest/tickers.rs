//! Price statistics, last prices, best levels and exchangeInfo: of one symbol, several or all.

use serde_json::{Value, json};

use crate::api::error::ApiError;
use crate::api::params::Params;
use crate::market::{Market, NO_TRADES};
use crate::number;
use crate::simulated::SharedInstrument;
use crate::venue::Venue;

type Answer = Result<Value, ApiError>;

/// One symbol gives an object, several or all give an array. All leaves out symbols without data.
fn for_each(venue: &Venue, params: &Params, make: impl Fn(&Market) -> Answer) -> Answer {
    let symbols = params.symbols()?;
    params.finish()?;
    let make = |instrument: &SharedInstrument| make(&instrument.lock().market);
    let Some(names) = symbols else {
        let instruments = venue.markets.instruments.values();
        return Ok(instruments.filter_map(|one| make(one).ok()).collect());
    };
    let found: Vec<_> = names.iter().map(|name| venue.find(name)).collect::<Result<_, _>>()?;
    match (found.as_slice(), params.get("symbol")) {
        ([one], Some(_)) => make(one),
        _ => found.into_iter().map(make).collect(),
    }
}

fn require_trades(market: &Market) -> Result<(), ApiError> {
    match market.has_ticker() {
        true => Ok(()),
        false => Err(ApiError::not_recorded(NO_TRADES)),
    }
}

pub fn day(venue: &Venue, params: &Params) -> Answer {
    let (now, skew) = (venue.markets.now(), venue.markets.faults.skew());
    for_each(venue, params, |market| {
        require_trades(market)?;
        Ok(market.ticker(now, skew).rest())
    })
}

pub fn price(venue: &Venue, params: &Params) -> Answer {
    for_each(venue, params, |market| {
        require_trades(market)?;
        let price = market.last_price().unwrap_or(0);
        Ok(json!({"symbol": market.symbol.name, "price": number::fixed(price)}))
    })
}

pub fn book_ticker(venue: &Venue, params: &Params) -> Answer {
    for_each(venue, params, |market| {
        let (bid, ask) = market.best().map_err(ApiError::not_recorded)?;
        Ok(json!({
            "symbol": market.symbol.name,
            "bidPrice": number::fixed(bid.0),
            "bidQty": number::fixed(bid.1),
            "askPrice": number::fixed(ask.0),
            "askQty": number::fixed(ask.1)
        }))
    })
}

pub fn exchange_info(venue: &Venue, params: &Params) -> Answer {
    // Permissions are always shown.
    let _ = params.get("showPermissionSets");
    let symbols = match for_each(venue, params, |market| Ok(market.symbol.json()))? {
        Value::Array(symbols) => symbols,
        one => vec![one],
    };
    Ok(json!({
        "timezone": "UTC",
        "serverTime": venue.markets.server_time(),
        "rateLimits": [
            {"rateLimitType": "REQUEST_WEIGHT", "interval": "MINUTE", "intervalNum": 1, "limit": venue.limits.weight_per_minute},
            {"rateLimitType": "ORDERS", "interval": "SECOND", "intervalNum": 10, "limit": 100},
            {"rateLimitType": "ORDERS", "interval": "DAY", "intervalNum": 1, "limit": 200_000},
            {"rateLimitType": "RAW_REQUESTS", "interval": "MINUTE", "intervalNum": 5, "limit": 61_000}
        ],
        "exchangeFilters": [],
        "symbols": symbols
    }))
}
