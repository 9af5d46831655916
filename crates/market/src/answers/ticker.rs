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

/// What the ticker is of, unless it says otherwise.
const DAY: Millis = 24 * 3_600 * 1_000;
const MINUTE: Millis = 60 * 1_000;

/// Prices of the streams that are older do not stand in for an answer.
const MAX_STREAMED_AGE_MS: u64 = 60_000;

pub async fn ticker(market: &Market, symbol: &str) -> Result<Answer> {
    let symbol = market.traded(symbol).await?;
    match market.rest.ticker_24h(&symbol.name).await {
        Ok(ticker) => told(market, &symbol, &ticker, Origin::Rest),
        Err(error) => streamed(market, &symbol, &error).unwrap_or_else(|| Err(error.into())),
    }
}

fn streamed(market: &Market, symbol: &Symbol, error: &RestError) -> Option<Result<Answer>> {
    let stamped = of_streams(market, symbol, error)?;
    let note = because(error);
    Some(told(market, symbol, &stamped, Origin::Stream).and_then(|answer| answer.with_field("note", &note)))
}

pub(super) fn because(error: &RestError) -> String {
    format!("from the exchange's streams, because asking it failed: {error}")
}

/// What the streams say, where the exchange does not answer: one that asks for a pause still sends them.
pub(super) fn of_streams(market: &Market, symbol: &Symbol, error: &RestError) -> Option<Stamped<Ticker>> {
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
    Some(Stamped {
        value: ticker,
        exchange_time: Some(close_time),
        sent: day.received,
        received: day.received,
        simulated: market.simulated().is_some(),
    })
}

/// How many trades there were. Something was traded: no trades are not none, but not counted.
pub(super) fn counted(ticker: &Ticker) -> Option<u64> {
    Some(ticker.trades).filter(|trades| *trades > 0 || ticker.volume.is_zero())
}

/// Of how long a time a ticker is: a recording may know less than a day.
pub(super) fn window(ticker: &Ticker) -> String {
    let millis = ticker.close_time.saturating_sub(ticker.open_time).max(0);
    match (DAY - millis).abs() {
        ..=MINUTE => "24 hours".to_owned(),
        _ if millis < 2 * MINUTE => format!("{} seconds", (millis + 500) / 1_000),
        _ if millis < 120 * MINUTE => format!("{} minutes", millis / MINUTE),
        _ => format!("{} hours", millis / (60 * MINUTE)),
    }
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
        Some(Err(error)) => streamed(market, &symbol, error).unwrap_or_else(|| Err(error.clone().into())),
        None => Err(Error::internal("nothing was asked")),
    };
    symbols.into_iter().map(|symbol| symbol.and_then(answer)).collect()
}

fn told(market: &Market, symbol: &Symbol, stamped: &Stamped<Ticker>, origin: Origin) -> Result<Answer> {
    let ticker = &stamped.value;
    let (trades, window) = (counted(ticker), window(ticker));
    let provenance = Provenance::new(market, origin, stamped.exchange_time, stamped.received);
    let quote = ticker.quote.as_ref();
    let (bid, ask) = (quote.and_then(|q| q.bid), quote.and_then(|q| q.ask));
    let touch = bid.zip(ask).and_then(|(bid, ask)| Touch::new(bid, ask).ok());
    let spread_bps = touch.as_ref().and_then(Touch::spread_bps).and_then(rounded_bps);
    // Nothing was traded: the exchange's zeros are not figures.
    let change_pct = ticker.last.map(|_| ticker.price_change_percent);
    let mut answer = Answer::new(Kind::Ticker, symbol, &format!("price and last {window}"), provenance)?
        .figure(format!(
            "{} ({}): last price {} {}, {}% in {window}.",
            symbol.name,
            pair_name(symbol),
            or_unknown(ticker.last),
            symbol.quote,
            or_unknown(change_pct.map(signed)),
        ))
        .figure(format!(
            "Last {window}: high {}, low {}, volume {} {} worth {} {}, {} trades.",
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ticker_says_of_how_long_a_time_it_is() {
        let mut ticker = Ticker {
            symbol: "BTCUSDT".into(),
            price_change: Decimal::ZERO,
            price_change_percent: Decimal::ZERO,
            average: None,
            open: None,
            high: None,
            low: None,
            last: None,
            volume: Quantity::ZERO,
            quote_volume: crate::number::Notional::ZERO,
            open_time: 0,
            close_time: 0,
            first_id: None,
            last_id: None,
            trades: 0,
            quote: None,
        };
        for (millis, told) in [
            (DAY, "24 hours"),
            (DAY - 1, "24 hours"),
            (38_400, "38 seconds"),
            (20 * MINUTE, "20 minutes"),
            (5 * 60 * MINUTE, "5 hours"),
            (7 * DAY, "168 hours"),
            (0, "0 seconds"),
            (-5, "0 seconds"),
        ] {
            ticker.close_time = millis;
            assert_eq!(window(&ticker), told);
        }
    }
}
