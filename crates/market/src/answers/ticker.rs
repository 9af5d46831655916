//! Price and the last day.

use futures::future::join_all;
use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive;
use serde_json::json;
use tribune_core::{Error, Result};

use super::answer::{Answer, Provenance, exchange_time, or_unknown, pair_name, signed};
use crate::analytics::figure::{Unavailable, rounded_bps};
use crate::analytics::quotes::{Quote, Touch};
use crate::market::{Market, Origin};
use crate::model::{Millis, Symbol};
use crate::moment::Stamped;
use crate::number::Quantity;
use crate::rest::{RestError, Ticker, TickerQuote};
use crate::symbols::Kind;

/// What the ticker is of.
const DAY: Millis = 24 * 3_600 * 1_000;

/// Prices of the streams that are older do not stand in for an answer.
const MAX_STREAMED_AGE_MS: u64 = 60_000;

pub async fn ticker(market: &Market, symbol: &str) -> Result<Answer> {
    let symbol = market.traded(symbol).await?;
    match market.rest.ticker_24h(&symbol.name).await {
        Ok(ticker) => told(market, &symbol, &ticker, Origin::Rest),
        Err(error) => streamed(market, &symbol, &error).unwrap_or_else(|| Err(error.into())),
    }
}

/// What the streams say, where the exchange does not answer: one that asks for a pause still sends them.
fn streamed(market: &Market, symbol: &Symbol, error: &RestError) -> Option<Result<Answer>> {
    let day = market.feed.board.lookup(&symbol.name)?;
    let is_current =
        market.feed.health.trouble().is_none() && day.received.age_ms(&*market.clock) <= MAX_STREAMED_AGE_MS;
    if !error.is_passing() || !is_current {
        return None;
    }
    let close_time = day.exchange_time?;
    let change = day.last.decimal() - day.open.decimal();
    let live = market.feed.lookup(&symbol.name).and_then(|tracked| tracked.live());
    let quote = live.map(|view| TickerQuote {
        previous_close: None,
        last_quantity: Quantity::ZERO,
        bid: view.depth.bids.best(),
        ask: view.depth.asks.best(),
    });
    let ticker = Ticker {
        symbol: symbol.name.clone(),
        price_change: change,
        price_change_percent: change
            .checked_div(day.open.decimal())?
            .checked_mul(Decimal::ONE_HUNDRED)?
            .round_dp(3),
        average: None,
        open: Some(day.open),
        high: Some(day.high),
        low: Some(day.low),
        last: Some(day.last),
        volume: day.volume,
        quote_volume: day.quote_volume,
        open_time: close_time - DAY,
        close_time,
        first_id: None,
        last_id: None,
        trades: 0,
        quote,
    };
    let stamped = Stamped {
        value: ticker,
        exchange_time: Some(close_time),
        sent: day.received,
        received: day.received,
        simulated: market.simulated().is_some(),
    };
    let note = format!("from the exchange's streams, because asking it failed: {error}");
    Some(told(market, symbol, &stamped, Origin::Stream).and_then(|answer| answer.with_field("note", &note)))
}

/// Several with one request; one that fails does not take the others with it.
pub async fn tickers(market: &Market, names: &[String]) -> Vec<Result<Answer>> {
    let symbols = join_all(names.iter().map(|name| market.traded(name))).await;
    let traded: Vec<&str> = symbols.iter().flatten().map(|symbol| &*symbol.name).collect();
    let all = match traded.as_slice() {
        [] => None,
        some => Some(market.rest.tickers_24h(some).await),
    };
    let answer = |symbol: Symbol| match &all {
        Some(Ok(all)) => {
            let own = all.value.iter().find(|ticker| ticker.symbol == symbol.name);
            let own = own.ok_or_else(|| Error::unavailable(format!("the exchange left {} out", symbol.name)))?;
            let stamped = Stamped {
                value: own.clone(),
                exchange_time: Some(own.close_time),
                sent: all.sent,
                received: all.received,
                simulated: all.simulated,
            };
            told(market, &symbol, &stamped, Origin::Rest)
        }
        Some(Err(error)) => Err(error.clone().into()),
        None => Err(Error::internal("nothing was asked")),
    };
    symbols.into_iter().map(|symbol| symbol.and_then(answer)).collect()
}

fn told(market: &Market, symbol: &Symbol, stamped: &Stamped<Ticker>, origin: Origin) -> Result<Answer> {
    let ticker = &stamped.value;
    // Something was traded: no trades are not none, but not counted.
    let trades = Some(ticker.trades).filter(|trades| *trades > 0 || ticker.volume.is_zero());
    let provenance = Provenance::new(market, origin, stamped.exchange_time, stamped.received);
    let quote = ticker.quote.as_ref();
    let (bid, ask) = (quote.and_then(|q| q.bid), quote.and_then(|q| q.ask));
    let touch = bid.zip(ask).and_then(|(bid, ask)| Touch::new(bid, ask).ok());
    let spread_bps = touch.as_ref().and_then(Touch::spread_bps).and_then(rounded_bps);
    // Nothing was traded: the exchange's zeros are not figures.
    let change_pct = ticker.last.map(|_| ticker.price_change_percent);
    let mut answer = Answer::new(Kind::Ticker, symbol, "price and last 24 hours", provenance)?
        .figure(format!(
            "{} ({}): last price {} {}, {}% in 24 hours.",
            symbol.name,
            pair_name(symbol),
            or_unknown(ticker.last),
            symbol.quote,
            or_unknown(change_pct.map(signed)),
        ))
        .figure(format!(
            "24 hours: high {}, low {}, volume {} {} worth {} {}, {} trades.",
            or_unknown(ticker.high),
            or_unknown(ticker.low),
            ticker.volume,
            symbol.base,
            ticker.quote_volume,
            symbol.quote,
            or_unknown(trades),
        ));
    if let (Some(bid), Some(ask)) = (bid, ask) {
        answer = answer.figure(format!(
            "Best bid {} for {} {base}, best ask {} for {} {base}; spread {} basis points.",
            bid.price,
            bid.quantity,
            ask.price,
            ask.quantity,
            or_unknown(spread_bps),
            base = symbol.base,
        ));
    }
    if let Some(reason) = missing(ticker) {
        answer = answer.with_field("reason", &reason)?;
    }
    // Where best prices are not known nothing is said of them: null would mean that nobody bids.
    if quote.is_some() {
        answer = answer.with(&json!({
            "best_bid": bid.map(Quote::from),
            "best_ask": ask.map(Quote::from),
            "spread_bps": spread_bps,
        }))?;
    }
    answer.with(&json!({
        "last_price": ticker.last,
        "price_change": ticker.last.map(|_| ticker.price_change.normalize()),
        "price_change_pct": change_pct.as_ref().and_then(Decimal::to_f64),
        "open_price": ticker.open,
        "high_price": ticker.high,
        "low_price": ticker.low,
        "weighted_average_price": ticker.average,
        "volume_base": ticker.volume,
        "quote_volume": ticker.quote_volume,
        "trades": trades,
        "window_start": exchange_time(ticker.open_time),
        "window_end": exchange_time(ticker.close_time),
        "standing": "exact",
    }))
}

/// Why figures of it are null.
fn missing(ticker: &Ticker) -> Option<String> {
    let no_bids = ticker.quote.is_some_and(|quote| quote.bid.is_none());
    let no_asks = ticker.quote.is_some_and(|quote| quote.ask.is_none());
    let reasons = [
        ticker.last.is_none().then(|| "nothing was ever traded".to_owned()),
        (ticker.trades == 0 && !ticker.volume.is_zero()).then(|| "the trades were not counted".to_owned()),
        no_bids.then(|| Unavailable::NoBids.to_string()),
        no_asks.then(|| Unavailable::NoAsks.to_string()),
    ];
    let reasons: Vec<String> = reasons.into_iter().flatten().collect();
    (!reasons.is_empty()).then(|| reasons.join("; "))
}

/// The mean price of the last minutes, as the exchange reckons it.
pub async fn average(market: &Market, symbol: &str) -> Result<Answer> {
    let symbol = market.traded(symbol).await?;
    let average = market.rest.avg_price(&symbol.name).await?;
    let provenance = Provenance::new(market, Origin::Rest, average.exchange_time, average.received);
    let value = &average.value;
    let answer = Answer::new(Kind::Ticker, &symbol, "average price", provenance)?.with(&json!({
        "average_price": value.price,
        "window_minutes": value.minutes,
        "window_end": value.close_time.map(exchange_time),
        "standing": "exact",
    }))?;
    let Some(price) = value.price else {
        return answer
            .figure(format!("{}: no average price: nothing was ever traded.", symbol.name))
            .with_field("reason", &"nothing was ever traded");
    };
    Ok(answer.figure(format!(
        "{}: average price of the last {} minutes {price} {}.",
        symbol.name, value.minutes, symbol.quote
    )))
}
