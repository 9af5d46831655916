//! Price and the last day.

use futures::future::join_all;
use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive;
use serde_json::json;
use tribune_core::{Error, Result};

use super::answer::{Answer, Provenance, exchange_time, or_unknown, pair_name, signed};
use crate::analytics::figure::rounded_bps;
use crate::analytics::quotes::{Quote, Touch};
use crate::market::{Market, Origin};
use crate::model::Symbol;
use crate::moment::Stamped;
use crate::rest::Ticker;
use crate::symbols::Kind;

pub async fn ticker(market: &Market, symbol: &str) -> Result<Answer> {
    let symbol = market.traded(symbol).await?;
    let ticker = market.rest.ticker_24h(&symbol.name).await?;
    told(market, &symbol, &ticker)
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
                received: all.received,
                simulated: all.simulated,
            };
            told(market, &symbol, &stamped)
        }
        Some(Err(error)) => Err(error.clone().into()),
        None => Err(Error::internal("nothing was asked")),
    };
    symbols.into_iter().map(|symbol| symbol.and_then(answer)).collect()
}

pub(super) fn told(market: &Market, symbol: &Symbol, stamped: &Stamped<Ticker>) -> Result<Answer> {
    let ticker = &stamped.value;
    let provenance = Provenance::new(market, Origin::Rest, stamped.exchange_time, stamped.received);
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
            ticker.trades,
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
        "trades": ticker.trades,
        "best_bid": bid.map(Quote::from),
        "best_ask": ask.map(Quote::from),
        "spread_bps": spread_bps,
        "window_start": exchange_time(ticker.open_time),
        "window_end": exchange_time(ticker.close_time),
        "standing": "exact",
    }))
}

/// The mean price of the last minutes, as the exchange reckons it.
pub async fn average(market: &Market, symbol: &str) -> Result<Answer> {
    let symbol = market.traded(symbol).await?;
    let average = market.rest.avg_price(&symbol.name).await?;
    let provenance = Provenance::new(market, Origin::Rest, average.exchange_time, average.received);
    let value = &average.value;
    Answer::new(Kind::Ticker, &symbol, "average price", provenance)?
        .figure(format!(
            "{}: average price of the last {} minutes {} {}.",
            symbol.name, value.minutes, value.price, symbol.quote
        ))
        .with(&json!({
            "average_price": value.price,
            "window_minutes": value.minutes,
            "window_end": exchange_time(value.close_time),
            "standing": "exact",
        }))
}
