//! Price statistics, last prices and best levels, of one symbol, of several or of all.

use serde_json::{Value, json};

use super::data::window_size;
use super::error::ApiError;
use super::params::{Params, Symbols};
use crate::interval::{DAY, MINUTE, Millis};
use crate::market::Market;
use crate::number;
use crate::venue::{Shared, Venue, lock};

type Answer = Result<String, ApiError>;

/// Symbols that the rolling window and the trading day take in one request.
const MAX_SYMBOLS: usize = 100;

/// One symbol gives an object, several or all an array. Of all those are left out of which nothing is known.
fn each(venue: &Venue, symbols: &Symbols, make: impl Fn(&Market) -> Result<Value, ApiError>) -> Answer {
    let find = |name: &String| venue.lookup(name).ok_or_else(ApiError::invalid_symbol);
    let make = |listed: &Shared| make(&lock(listed).market);
    let answer = match symbols {
        Symbols::One(name) => make(find(name)?)?,
        Symbols::Many(names) => {
            let found: Vec<&Shared> = names.iter().map(find).collect::<Result<_, _>>()?;
            found.into_iter().map(make).collect::<Result<_, _>>()?
        }
        Symbols::All => venue.listed.values().filter_map(|listed| make(listed).ok()).collect(),
    };
    Ok(answer.to_string())
}

fn nothing_traded() -> ApiError {
    ApiError::unknown("the recording has no ticker, no candle and no trade of this symbol so far")
}

pub fn day(venue: &Venue, params: &Params) -> Answer {
    let (symbols, mini) = (params.symbols()?, params.mini()?);
    params.finish()?;
    let now = venue.now();
    each(venue, &symbols, |market| {
        if !market.knows_ticker() {
            return Err(nothing_traded());
        }
        let ticker = market.ticker(now).told(&venue.hub);
        Ok(if mini { ticker.mini() } else { ticker.full() })
    })
}

/// The rolling window of any length.
pub fn rolling(venue: &Venue, params: &Params) -> Answer {
    let size = window_size(params)?;
    let now = venue.now();
    windowed(venue, params, now - now.rem_euclid(MINUTE) - size, now)
}

/// Since midnight, in UTC or in another zone.
pub fn trading_day(venue: &Venue, params: &Params) -> Answer {
    let offset = params.zone_offset()?;
    let now = venue.now();
    let midnight = now - (now + offset).rem_euclid(DAY);
    windowed(venue, params, midnight, now)
}

fn windowed(venue: &Venue, params: &Params, start: Millis, now: Millis) -> Answer {
    let (symbols, mini) = (params.symbols()?, params.mini()?);
    params.finish()?;
    match &symbols {
        Symbols::All => return Err(ApiError::missing("symbol")),
        Symbols::Many(names) if names.len() > MAX_SYMBOLS => return Err(ApiError::invalid_value("symbols")),
        _ => {}
    }
    each(venue, &symbols, |market| {
        if !market.knows_windows() {
            return Err(ApiError::unknown(
                "the recording has no candle and no trade of this symbol so far",
            ));
        }
        let ticker = market.ticker_since(start, now).told(&venue.hub);
        Ok(if mini { ticker.mini() } else { ticker.rolling() })
    })
}

pub fn price(venue: &Venue, params: &Params) -> Answer {
    let symbols = params.symbols()?;
    params.finish()?;
    each(venue, &symbols, |market| {
        if !market.knows_ticker() {
            return Err(nothing_traded());
        }
        let price = market.last_price().unwrap_or(0);
        Ok(json!({"symbol": market.symbol.name, "price": number::fixed_price(price)}))
    })
}

pub fn book_ticker(venue: &Venue, params: &Params) -> Answer {
    let symbols = params.symbols()?;
    params.finish()?;
    each(venue, &symbols, |market| {
        let (bid, ask) = market.best().map_err(|why| ApiError::unknown(why.as_str()))?;
        Ok(json!({
            "symbol": market.symbol.name,
            "bidPrice": number::fixed_price(bid.0),
            "bidQty": number::fixed(bid.1),
            "askPrice": number::fixed_price(ask.0),
            "askQty": number::fixed(ask.1)
        }))
    })
}

/// Symbols and limits: the truth of which clients begin.
pub fn exchange_info(venue: &Venue, params: &Params) -> Answer {
    let symbols = params.symbols()?;
    let status = params.get("symbolStatus");
    // Permissions are always shown and always the same.
    let _ = (params.get("showPermissionSets"), params.get("permissions"));
    params.finish()?;
    let listed: Vec<&Shared> = match &symbols {
        Symbols::All => venue.listed.values().collect(),
        Symbols::One(name) => vec![venue.lookup(name).ok_or_else(ApiError::invalid_symbol)?],
        Symbols::Many(names) => names
            .iter()
            .map(|name| venue.lookup(name).ok_or_else(ApiError::invalid_symbol))
            .collect::<Result<_, _>>()?,
    };
    let symbols: Vec<Value> = listed
        .into_iter()
        .map(|listed| lock(listed).market.symbol.clone())
        .filter(|symbol| status.is_none_or(|status| symbol.status() == status))
        .map(|symbol| symbol.json())
        .collect();
    let answer = json!({
        "timezone": "UTC",
        "serverTime": venue.told_time(),
        "rateLimits": [
            {"rateLimitType": "REQUEST_WEIGHT", "interval": "MINUTE", "intervalNum": 1, "limit": venue.limits.weight_per_minute},
            {"rateLimitType": "ORDERS", "interval": "SECOND", "intervalNum": 10, "limit": 100},
            {"rateLimitType": "ORDERS", "interval": "DAY", "intervalNum": 1, "limit": 200_000},
            {"rateLimitType": "RAW_REQUESTS", "interval": "MINUTE", "intervalNum": 5, "limit": 61_000}
        ],
        "exchangeFilters": [],
        "symbols": symbols
    });
    Ok(answer.to_string())
}
