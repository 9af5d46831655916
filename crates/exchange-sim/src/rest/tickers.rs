//! Price statistics, last prices, best levels and exchangeInfo: of one symbol, several or all.

use serde_json::{Value, json};

use crate::api::error::ApiError;
use crate::api::params::{Params, Symbols};
use crate::interval::{DAY, MINUTE, Millis};
use crate::market::ticker::{DayTicker, Ticker};
use crate::market::{Market, NO_TRADES};
use crate::number;
use crate::simulated::{SharedInstrument, lock};
use crate::venue::Venue;

type Answer = Result<String, ApiError>;

/// Symbols in one request for a rolling window or a trading day.
const MAX_SYMBOLS: usize = 100;

fn find<'a>(venue: &'a Venue, name: &str) -> Result<&'a SharedInstrument, ApiError> {
    venue.markets.lookup(name).ok_or_else(ApiError::invalid_symbol)
}

/// One symbol gives an object, several or all give an array. All leaves out symbols without data.
fn for_each(venue: &Venue, symbols: &Symbols, make: impl Fn(&Market) -> Result<Value, ApiError>) -> Answer {
    let make = |instrument: &SharedInstrument| make(&lock(instrument).market);
    let answer: Value = match symbols {
        Symbols::One(name) => make(find(venue, name)?)?,
        Symbols::Many(names) => {
            let found = names.iter().map(|name| find(venue, name));
            let found = found.collect::<Result<Vec<_>, _>>()?;
            found.into_iter().map(make).collect::<Result<_, _>>()?
        }
        Symbols::All => venue
            .markets
            .instruments
            .values()
            .filter_map(|one| make(one).ok())
            .collect(),
    };
    Ok(answer.to_string())
}

fn require_trades(market: &Market) -> Result<(), ApiError> {
    market
        .has_ticker()
        .then_some(())
        .ok_or_else(|| ApiError::not_recorded(NO_TRADES))
}

pub fn day(venue: &Venue, params: &Params) -> Answer {
    let (symbols, is_mini) = (params.symbols()?, params.is_mini()?);
    params.finish()?;
    let now = venue.markets.now();
    for_each(venue, &symbols, |market| {
        require_trades(market)?;
        Ok(match is_mini {
            true => json!(market.ticker(now).with_skew(&venue.markets.hub).mini),
            false => json!(DayTicker::new(market, now, &venue.markets.hub)),
        })
    })
}

/// A rolling window of any length.
pub fn rolling(venue: &Venue, params: &Params) -> Answer {
    let size = params.window_size()?;
    let now = venue.markets.now();
    window(venue, params, now - now.rem_euclid(MINUTE) - size, now)
}

/// Since midnight, in UTC or another time zone.
pub fn trading_day(venue: &Venue, params: &Params) -> Answer {
    let offset = params.zone_offset()?;
    let now = venue.markets.now();
    window(venue, params, now - (now + offset).rem_euclid(DAY), now)
}

fn window(venue: &Venue, params: &Params, start: Millis, now: Millis) -> Answer {
    let (symbols, is_mini) = (params.symbols()?, params.is_mini()?);
    params.finish()?;
    match &symbols {
        Symbols::All => return Err(ApiError::missing("symbol")),
        Symbols::Many(names) if names.len() > MAX_SYMBOLS => return Err(ApiError::invalid_value("symbols")),
        _ => {}
    }
    for_each(venue, &symbols, |market| {
        require_trades(market)?;
        let ticker = Ticker::since(market, start, now).with_skew(&venue.markets.hub);
        Ok(if is_mini { json!(ticker.mini) } else { json!(ticker) })
    })
}

pub fn price(venue: &Venue, params: &Params) -> Answer {
    let symbols = params.symbols()?;
    params.finish()?;
    for_each(venue, &symbols, |market| {
        require_trades(market)?;
        let price = market.last_price().unwrap_or(0);
        Ok(json!({"symbol": market.symbol.name, "price": number::fixed_price(price)}))
    })
}

pub fn book_ticker(venue: &Venue, params: &Params) -> Answer {
    let symbols = params.symbols()?;
    params.finish()?;
    for_each(venue, &symbols, |market| {
        let (bid, ask) = market.best().map_err(ApiError::not_recorded)?;
        Ok(json!({
            "symbol": market.symbol.name,
            "bidPrice": number::fixed_price(bid.0),
            "bidQty": number::fixed(bid.1),
            "askPrice": number::fixed_price(ask.0),
            "askQty": number::fixed(ask.1)
        }))
    })
}

pub fn exchange_info(venue: &Venue, params: &Params) -> Answer {
    let symbols = params.symbols()?;
    let status = params.get("symbolStatus");
    // Permissions are always shown and always the same.
    let _ = (params.get("showPermissionSets"), params.get("permissions"));
    params.finish()?;
    let instruments: Vec<&SharedInstrument> = match &symbols {
        Symbols::All => venue.markets.instruments.values().collect(),
        Symbols::One(name) => vec![find(venue, name)?],
        Symbols::Many(names) => names.iter().map(|name| find(venue, name)).collect::<Result<_, _>>()?,
    };
    let symbols: Vec<Value> = instruments
        .into_iter()
        .map(|instrument| lock(instrument).market.symbol.clone())
        .filter(|symbol| status.is_none_or(|status| symbol.status() == status))
        .map(|symbol| symbol.json())
        .collect();
    let answer = json!({
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
    });
    Ok(answer.to_string())
}
