//! Order books, trades and candles of one symbol.

use serde_json::{Value, json};

use crate::api::error::ApiError;
use crate::api::params::Params;
use crate::faults::Fault;
use crate::interval::{Interval, Millis};
use crate::market::candles::Range;
use crate::market::tape::{Aggregate, Trade};
use crate::market::{Market, NO_TRADES};
use crate::number;
use crate::venue::Venue;

type Answer = Result<Value, ApiError>;

/// Deep books are too large to be written twice, so this is text.
pub fn depth(venue: &Venue, params: &Params) -> Result<String, ApiError> {
    let instrument = venue.find(params.symbol()?)?;
    let limit = params.limit(100, 5_000)?;
    params.finish()?;
    let market = &instrument.lock().market;
    let depth = market.depth_json(limit).map_err(ApiError::not_recorded)?;
    if let Some(replay) = &venue.replay {
        replay.note_snapshot(&market.symbol.name);
    }
    Ok(match venue.markets.faults.take(|fault| matches!(fault, Fault::StaleSnapshots { .. })) {
        true => market.origin.json(limit, limit),
        false => depth,
    })
}

pub fn trades(venue: &Venue, params: &Params) -> Answer {
    let instrument = venue.find(params.symbol()?)?;
    let limit = params.limit(500, 1_000)?;
    params.finish()?;
    let market = &instrument.lock().market;
    if market.candles.known_since.is_none() {
        return Err(ApiError::not_recorded(NO_TRADES));
    }
    let row = |trade: &Trade| {
        json!({
            "id": trade.id,
            "price": number::fixed(trade.price),
            "qty": number::fixed(trade.quantity),
            "quoteQty": number::fixed_money(trade.money()),
            "time": venue.markets.hub.event_time(trade.time),
            "isBuyerMaker": trade.buyer_is_maker,
            "isBestMatch": true
        })
    };
    Ok(market.tape.newest(limit).map(row).collect())
}

pub fn aggregates(venue: &Venue, params: &Params) -> Answer {
    let instrument = venue.find(params.symbol()?)?;
    let limit = params.limit(500, 1_000)?;
    let from = params.integer::<u64>("fromId")?;
    let (start, end) = params.times()?;
    // Clients ask in the exchange's time, which a fault may have shifted.
    let hub = &venue.markets.hub;
    let [start, end] = [start, end].map(|time| time.map(|time| time.saturating_sub(hub.faults.skew())));
    params.finish()?;
    if from.is_some() && start.or(end).is_some() {
        return Err(ApiError::invalid_combination());
    }
    let market = &instrument.lock().market;
    if venue.replay.is_some() {
        require_complete(venue, market, start, end)?;
    }
    let row = |aggregate: &Aggregate| {
        let time = hub.event_time(aggregate.time);
        let mut row = json!(Aggregate { time, ..*aggregate });
        row["M"] = true.into();
        row
    };
    if let Some(id) = from {
        return Ok(market.tape.aggregates_from_id(id).take(limit).map(row).collect());
    }
    let within = market.tape.aggregates_between(start.unwrap_or(Millis::MIN), end.unwrap_or(Millis::MAX));
    if start.is_some() {
        return Ok(within.take(limit).map(row).collect());
    }
    let mut newest: Vec<Value> = within.rev().take(limit).map(row).collect();
    newest.reverse();
    Ok(Value::Array(newest))
}

/// Refuses a window with missing trades: clients take the answer for everything that traded in it.
fn require_complete(
    venue: &Venue,
    market: &Market,
    start: Option<Millis>,
    end: Option<Millis>,
) -> Result<(), ApiError> {
    let Some(since) = market.candles.known_since else {
        return Err(ApiError::not_recorded(NO_TRADES));
    };
    let since = since.max(market.tape.begins);
    if start.or(end).is_none_or(|start| start >= since) {
        return Ok(());
    }
    Err(ApiError::not_recorded(format!(
        "the recording does not have every trade of this time; it has those from {} on",
        venue.markets.hub.event_time(since)
    )))
}

pub fn klines(venue: &Venue, params: &Params) -> Answer {
    let instrument = venue.find(params.symbol()?)?;
    let interval: Result<Interval, ()> = params.required("interval")?.parse();
    let interval = interval.map_err(|()| ApiError::bad(-1120, "Invalid interval."))?;
    let limit = params.limit(500, 1_000)?;
    let (start, end) = params.times()?;
    params.finish()?;
    let market = &instrument.lock().market;
    let range = Range { interval, start, end, limit };
    let now = market.closed_at.unwrap_or_else(|| venue.markets.now());
    let candles = market.candles.range(&range, now);
    Ok(candles.iter().map(|(candle, close_time)| candle.row(*close_time)).collect())
}

pub fn average_price(venue: &Venue, params: &Params) -> Answer {
    let instrument = venue.find(params.symbol()?)?;
    params.finish()?;
    let average = instrument.lock().market.average(venue.markets.now());
    let (price, time) = average.map_err(ApiError::not_recorded)?;
    let close_time = venue.markets.hub.event_time(time);
    Ok(json!({"mins": 5, "price": number::fixed(price), "closeTime": close_time}))
}
