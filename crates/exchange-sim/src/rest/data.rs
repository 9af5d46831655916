//! Books, trades and candles.

use serde_json::{Value, json};

use super::error::ApiError;
use super::params::Params;
use crate::interval::{HOUR, Interval, MINUTE, Millis};
use crate::market::Market;
use crate::market::candles::Range;
use crate::market::known::Unknown;
use crate::market::tape::{Aggregate, Trade};
use crate::number;
use crate::venue::{Shared, Venue, lock};

type Answer = Result<String, ApiError>;

fn market<'a>(venue: &'a Venue, params: &Params) -> Result<&'a Shared, ApiError> {
    venue.lookup(params.symbol()?).ok_or_else(ApiError::invalid_symbol)
}

pub fn depth(venue: &Venue, params: &Params) -> Answer {
    let listed = market(venue, params)?;
    let limit = params.limit(100, 5_000)?;
    params.finish()?;
    let market = &lock(listed).market;
    let depth = market
        .depth_json(limit)
        .map_err(|why| ApiError::unknown(why.as_str()))?;
    if let Some(replay) = &venue.replay {
        replay.note_snapshot(&market.symbol.name);
    }
    if venue.faults.take_stale_snapshot() {
        return Ok(market.origin().json(limit));
    }
    Ok(depth)
}

pub fn trades(venue: &Venue, params: &Params) -> Answer {
    let listed = market(venue, params)?;
    let limit = params.limit(500, 1_000)?;
    params.finish()?;
    let market = &lock(listed).market;
    refuse_unknown(market.trades_unknown)?;
    Ok(rows(market.tape.newest(limit).map(|trade| trade_row(venue, trade))))
}

pub fn historical_trades(venue: &Venue, params: &Params) -> Answer {
    let listed = market(venue, params)?;
    let limit = params.limit(500, 1_000)?;
    let from = params.integer::<u64>("fromId")?;
    params.finish()?;
    let market = &lock(listed).market;
    refuse_unknown(market.trades_unknown)?;
    let tape = &market.tape;
    Ok(match from {
        Some(id) => rows(tape.trades_from_id(id, limit).map(|trade| trade_row(venue, trade))),
        None => rows(tape.newest(limit).map(|trade| trade_row(venue, trade))),
    })
}

pub fn aggregates(venue: &Venue, params: &Params) -> Answer {
    let listed = market(venue, params)?;
    let limit = params.limit(500, 1_000)?;
    let from = params.integer::<u64>("fromId")?;
    let (start, end) = times(params)?;
    // Times are asked for as they are told.
    let skew = venue.faults.skew_millis();
    let [start, end] = [start, end].map(|time| time.map(|time| time.saturating_sub(skew)));
    params.finish()?;
    if from.is_some() && start.or(end).is_some() {
        return Err(ApiError::invalid_combination());
    }
    let market = &lock(listed).market;
    if venue.replay.is_some() {
        refuse_unknown(market.trades_unknown.filter(|why| *why == Unknown::NoTrades))?;
        refuse_unless_whole(venue, market, start, end)?;
    }
    let tape = &market.tape;
    let rows = match (from, start, end) {
        (Some(id), _, _) => rows(
            tape.aggregates_from_id(id, limit)
                .map(|aggregate| aggregate_row(venue, aggregate)),
        ),
        (None, None, None) => rows(
            tape.newest_aggregates(limit)
                .map(|aggregate| aggregate_row(venue, aggregate)),
        ),
        (None, Some(start), end) => {
            let end = end.unwrap_or(Millis::MAX);
            rows(
                tape.aggregates_between(start, end, limit)
                    .map(|aggregate| aggregate_row(venue, aggregate)),
            )
        }
        // The newest up to an end: those between the dawn of time and it, of which the last count.
        (None, None, Some(end)) => {
            let mut up_to: Vec<&Aggregate> = tape.aggregates_between(Millis::MIN, end, usize::MAX).collect();
            rows(
                up_to
                    .split_off(up_to.len().saturating_sub(limit))
                    .into_iter()
                    .map(|aggregate| aggregate_row(venue, aggregate)),
            )
        }
    };
    Ok(rows)
}

fn refuse_unknown(unknown: Option<Unknown>) -> Result<(), ApiError> {
    unknown.map_or(Ok(()), |why| Err(ApiError::unknown(why.as_str())))
}

/// Whoever asks for a time takes what comes for all that traded in it.
fn refuse_unless_whole(
    venue: &Venue,
    market: &Market,
    start: Option<Millis>,
    end: Option<Millis>,
) -> Result<(), ApiError> {
    let Some(start) = start.or(end) else {
        return Ok(());
    };
    let end = end.unwrap_or_else(|| venue.now());
    let coverage = &market.candles.coverage;
    if start > end || start >= market.tape.begins && coverage.is_whole(start, end.saturating_add(1)) {
        return Ok(());
    }
    let (from, to) = coverage.latest_whole(start.max(market.tape.begins), venue.now().max(end));
    let [from, to] = [from.min(to), to].map(|time| venue.hub.event_time(time));
    Err(ApiError::unknown(&format!(
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
    let listed = market(venue, params)?;
    let interval: Interval = params
        .mandatory("interval")?
        .parse()
        .map_err(|()| ApiError::bad(-1120, "Invalid interval."))?;
    let limit = params.limit(500, 1_000)?;
    let offset = params.zone_offset()?;
    let (start, end) = times(params)?;
    params.finish()?;
    let market = &lock(listed).market;
    let range = Range {
        interval,
        offset,
        start,
        end,
        limit,
    };
    let now = market.closed_at.unwrap_or_else(|| venue.now());
    let candles = market.candles.range(&range, now);
    Ok(rows(candles.iter().map(|(candle, close_time)| candle.row(*close_time))))
}

pub fn average_price(venue: &Venue, params: &Params) -> Answer {
    let listed = market(venue, params)?;
    params.finish()?;
    let market = &lock(listed).market;
    let average = market.average(venue.now()).map_err(ApiError::unknown)?;
    let (price, time) = (number::fixed(average.price), venue.hub.event_time(average.time));
    Ok(json!({"mins": 5, "price": price, "closeTime": time}).to_string())
}

/// A rolling window's length: 1m to 59m, 1h to 23h, 1d to 7d.
pub fn window_size(params: &Params) -> Result<Millis, ApiError> {
    let Some(text) = params.get("windowSize") else {
        return Ok(24 * HOUR);
    };
    let invalid = || ApiError::invalid_value("windowSize");
    let (unit, most) = match text.chars().last() {
        Some('m') => (MINUTE, 59),
        Some('h') => (HOUR, 23),
        Some('d') => (24 * HOUR, 7),
        _ => return Err(invalid()),
    };
    let count: Millis = text[..text.len() - 1].parse().map_err(|_| invalid())?;
    if (1..=most).contains(&count) {
        Ok(count * unit)
    } else {
        Err(invalid())
    }
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
        "time": venue.hub.event_time(trade.time),
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
        "T": venue.hub.event_time(aggregate.time),
        "m": aggregate.buyer_is_maker,
        "M": true
    })
}
