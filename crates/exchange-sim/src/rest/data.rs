//! Order books, trades and candles.

use serde_json::{Value, json};

use crate::api::error::ApiError;
use crate::api::params::Params;
use crate::interval::{Interval, Millis};
use crate::market::Market;
use crate::market::candles::Range;
use crate::market::tape::{Aggregate, Trade};
use crate::number;
use crate::simulated::{SharedInstrument, lock};
use crate::venue::Venue;

type Answer = Result<String, ApiError>;

fn instrument<'a>(venue: &'a Venue, params: &Params) -> Result<&'a SharedInstrument, ApiError> {
    venue
        .markets
        .lookup(params.symbol()?)
        .ok_or_else(ApiError::invalid_symbol)
}

pub fn depth(venue: &Venue, params: &Params) -> Answer {
    let instrument = instrument(venue, params)?;
    let limit = params.limit(100, 5_000)?;
    params.finish()?;
    let market = &lock(instrument).market;
    let depth = market.depth_json(limit).map_err(ApiError::not_recorded)?;
    if let Some(replay) = &venue.replay {
        replay.note_snapshot(&market.symbol.name);
    }
    Ok(match venue.markets.faults.take_stale_snapshot() {
        true => market.origin().json(limit),
        false => depth,
    })
}

/// `trades` and, from an id on, `historicalTrades`.
pub fn trades(venue: &Venue, params: &Params, has_from_id: bool) -> Answer {
    let instrument = instrument(venue, params)?;
    let limit = params.limit(500, 1_000)?;
    let from = if has_from_id {
        params.integer::<u64>("fromId")?
    } else {
        None
    };
    params.finish()?;
    let market = &lock(instrument).market;
    if let Some(reason) = market.trades_unknown {
        return Err(ApiError::not_recorded(reason));
    }
    let row = |trade: &Trade| trade_row(venue, trade);
    Ok(match from {
        Some(id) => rows(market.tape.trades_from_id(id).take(limit).map(row)),
        None => rows(market.tape.newest(limit).map(row)),
    })
}

pub fn aggregates(venue: &Venue, params: &Params) -> Answer {
    let instrument = instrument(venue, params)?;
    let limit = params.limit(500, 1_000)?;
    let from = params.integer::<u64>("fromId")?;
    let (start, end) = times(params)?;
    // Clients ask in the exchange's time, which a fault may have shifted.
    let skew = venue.markets.faults.skew_millis();
    let [start, end] = [start, end].map(|time| time.map(|time| time.saturating_sub(skew)));
    params.finish()?;
    if from.is_some() && start.or(end).is_some() {
        return Err(ApiError::invalid_combination());
    }
    let market = &lock(instrument).market;
    if venue.replay.is_some() {
        require_complete(venue, market, start, end)?;
    }
    let row = |aggregate: &Aggregate| aggregate_row(venue, aggregate);
    Ok(match (from, start) {
        (Some(id), _) => rows(market.tape.aggregates_from_id(id).take(limit).map(row)),
        (None, Some(start)) => {
            let end = end.unwrap_or(Millis::MAX);
            rows(market.tape.aggregates_between(start, end).take(limit).map(row))
        }
        (None, None) => {
            let up_to = market.tape.aggregates_between(Millis::MIN, end.unwrap_or(Millis::MAX));
            let newest: Vec<&Aggregate> = up_to.rev().take(limit).collect();
            rows(newest.into_iter().rev().map(row))
        }
    })
}

/// Refuses a window with missing trades: clients take the answer for everything that traded in it.
fn require_complete(
    venue: &Venue,
    market: &Market,
    start: Option<Millis>,
    end: Option<Millis>,
) -> Result<(), ApiError> {
    let coverage = &market.candles.coverage;
    if !coverage.has_trades {
        return Err(ApiError::not_recorded(crate::market::NO_TRADES));
    }
    let Some(start) = start.or(end) else {
        return Ok(());
    };
    let end = end.unwrap_or_else(|| venue.markets.now());
    let is_complete = start >= market.tape.begins && coverage.is_complete(start, end.saturating_add(1));
    if start > end || is_complete {
        return Ok(());
    }
    let (from, to) = coverage.latest_complete(start.max(market.tape.begins), venue.markets.now().max(end));
    let [from, to] = [from.min(to), to].map(|time| venue.markets.hub.event_time(time));
    Err(ApiError::not_recorded(format!(
        "the recording does not have every trade of this time; it has those from {from} to {to}"
    )))
}

fn times(params: &Params) -> Result<(Option<Millis>, Option<Millis>), ApiError> {
    let (start, end) = (params.integer("startTime")?, params.integer("endTime")?);
    match (start, end) {
        (Some(start), Some(end)) if start > end => Err(ApiError::bad(-1127, "startTime is after endTime.")),
        times => Ok(times),
    }
}

pub fn klines(venue: &Venue, params: &Params) -> Answer {
    let instrument = instrument(venue, params)?;
    let interval: Interval = params
        .required("interval")?
        .parse()
        .map_err(|()| ApiError::bad(-1120, "Invalid interval."))?;
    let limit = params.limit(500, 1_000)?;
    let offset = params.zone_offset()?;
    let (start, end) = times(params)?;
    params.finish()?;
    let market = &lock(instrument).market;
    let range = Range {
        interval,
        offset,
        start,
        end,
        limit,
    };
    let now = market.closed_at.unwrap_or_else(|| venue.markets.now());
    let candles = market.candles.range(&range, now);
    Ok(rows(candles.iter().map(|(candle, close_time)| candle.row(*close_time))))
}

pub fn average_price(venue: &Venue, params: &Params) -> Answer {
    let instrument = instrument(venue, params)?;
    params.finish()?;
    let average = lock(instrument)
        .market
        .average(venue.markets.now())
        .map_err(ApiError::not_recorded)?;
    let (price, time) = (number::fixed(average.price), venue.markets.hub.event_time(average.time));
    Ok(json!({"mins": 5, "price": price, "closeTime": time}).to_string())
}

fn rows(rows: impl Iterator<Item = Value>) -> String {
    Value::Array(rows.collect()).to_string()
}

fn trade_row(venue: &Venue, trade: &Trade) -> Value {
    json!({
        "id": trade.id,
        "price": number::fixed_price(trade.price),
        "qty": number::fixed(trade.quantity),
        "quoteQty": number::fixed_money(trade.money()),
        "time": venue.markets.hub.event_time(trade.time),
        "isBuyerMaker": trade.buyer_is_maker,
        "isBestMatch": true
    })
}

fn aggregate_row(venue: &Venue, aggregate: &Aggregate) -> Value {
    json!({
        "a": aggregate.id,
        "p": number::fixed_price(aggregate.price),
        "q": number::fixed(aggregate.quantity),
        "f": aggregate.first_trade,
        "l": aggregate.last_trade,
        "T": venue.markets.hub.event_time(aggregate.time),
        "m": aggregate.buyer_is_maker,
        "M": true
    })
}
