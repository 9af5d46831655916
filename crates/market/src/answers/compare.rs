//! Several markets side by side.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::json;
use tribune_core::Result;

use crate::analytics::Unavailable;
use crate::analytics::depth::band;
use crate::analytics::health::BAND_BPS;
use crate::analytics::quotes::quotes;
use crate::analytics::volatility::{RealisedVolatility, realised};
use crate::market::Market;
use crate::model::{Candle, Interval};
use crate::rest::KlinesQuery;
use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive;

use super::answer::{Answer, Provenance, exchange_time, or_reason, or_unknown, signed};
use super::ticker;
use crate::symbols::Kind;

/// Returns of an hour each that make a day. A return takes two closes, and the newest candle has none yet.
const RETURNS: usize = 24;
const CANDLES_ASKED: u32 = RETURNS as u32 + 2;

/// One market of a comparison, to be cited as it stands beside the others.
pub async fn row(market: &Market, symbol: &str) -> Result<Answer> {
    let symbol = market.traded(symbol).await?;
    let query = KlinesQuery {
        interval: Interval::H1,
        limit: CANDLES_ASKED,
        start: None,
        end: None,
    };
    let (ticker, book, klines) = futures::join!(
        market.rest.ticker_24h(&symbol.name),
        market.book(&symbol),
        market.rest.klines(&symbol.name, &query),
    );
    let book = book?;
    // One that asks for a pause still sends its streams.
    let (ticker, note) = match ticker {
        Ok(ticker) => (Some(ticker), None),
        Err(error) => {
            let streamed = ticker::of_streams(market, &symbol, &error).map(Arc::new);
            let why = streamed
                .as_ref()
                .map_or_else(|| error.to_string(), |_| ticker::because(&error));
            (streamed, Some(why))
        }
    };
    let quotes = quotes(&book.view.depth);
    let near = band(&book.view.depth, BAND_BPS);
    let volatility = klines
        .map_err(|_| Unavailable::Unknown("the past day"))
        .and_then(|klines| of_day(market.closed(&klines)));
    let value = ticker.as_ref().map(|ticker| &ticker.value);
    let last = value.and_then(|value| value.last);
    let change_pct = value.filter(|_| last.is_some()).map(|value| value.price_change_percent);
    let unpriced = match (value, &note) {
        (None, Some(why)) => Some(why.clone()),
        _ => last.is_none().then(|| "nothing was ever traded".to_owned()),
    };
    let (mid, spread_bps) = quotes
        .as_ref()
        .map_or((None, None), |quotes| (quotes.mid, quotes.spread_bps));
    let of_book = quotes
        .as_ref()
        .map_or_else(|reason| Some(*reason), |quotes| quotes.reason);
    Answer::new(
        Kind::Ticker,
        &symbol,
        "beside other markets",
        Provenance::of_book(market, &book),
    )?
    .figure(format!(
        "{}: last price {} {quote}, {}% in {}, {} {quote} traded; spread {} basis points.",
        symbol.name,
        or_unknown(last),
        or_unknown(change_pct.map(signed)),
        value.map_or_else(|| "24 hours".to_owned(), ticker::window),
        or_unknown(value.map(|value| value.quote_volume)),
        or_unknown(spread_bps),
        quote = symbol.quote,
    ))
    .with(&json!({
        "last_price": last,
        "price_change_pct": change_pct.as_ref().and_then(Decimal::to_f64),
        "high_price": value.and_then(|value| value.high),
        "low_price": value.and_then(|value| value.low),
        "quote_volume": value.map(|value| value.quote_volume),
        "trades": value.and_then(ticker::counted),
        "window_start": value.map(|value| exchange_time(value.open_time)),
        "window_end": value.map(|value| exchange_time(value.close_time)),
        "ticker_age_ms": ticker.as_ref().map(|ticker| ticker.received.age_ms(&*market.clock)),
        "ticker_note": note,
        "mid": mid,
        "spread_bps": spread_bps,
        "depth_25_bps": or_reason(&near.map(|near| json!({
            "bid_notional_quote": near.bid_notional_quote,
            "ask_notional_quote": near.ask_notional_quote,
            "complete": near.complete,
        }))),
        "realised_volatility_24h_pct": volatility.as_ref().ok().and_then(|volatility| volatility.realised_pct),
        "realised_volatility_24h_of": volatility.as_ref().ok().map(|volatility| json!({
            "sampling": volatility.sampling,
            "returns": volatility.returns,
            "start_ms": volatility.start_ms,
            "end_ms": volatility.end_ms,
            "complete": volatility.complete && volatility.returns == RETURNS,
        })),
        "reasons": reasons([
            ("last_price", unpriced),
            ("mid", of_book.map(|reason| reason.to_string())),
            ("realised_volatility_24h_pct", volatility.err().map(|reason| reason.to_string())),
        ]),
        "standing": "exact",
        "realised_volatility_standing": "sound",
    }))
}

/// Of the last full hours that make a day, as far as there are so many.
fn of_day(closed: &[Candle]) -> std::result::Result<RealisedVolatility, Unavailable> {
    let from = closed.len().saturating_sub(RETURNS + 1);
    realised(&closed[from..], Interval::H1)
}

/// Why figures are null, by their names; null where none is.
fn reasons<const N: usize>(all: [(&'static str, Option<String>); N]) -> Option<BTreeMap<&'static str, String>> {
    let told: BTreeMap<_, _> = all
        .into_iter()
        .filter_map(|(figure, reason)| Some((figure, reason?)))
        .collect();
    (!told.is_empty()).then_some(told)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analytics::fixture::minute;

    #[test]
    fn a_day_is_24_returns() {
        let hours = |count: i64| -> Vec<Candle> {
            let price = |at: i64| if at % 2 == 0 { "100" } else { "101" };
            let hour = |at| Candle {
                open_time: at * 3_600_000,
                close_time: (at + 1) * 3_600_000 - 1,
                ..minute(at, [price(at); 4], "1")
            };
            (0..count).map(hour).collect()
        };
        // √24 · ln(1.01) = 4.898979 · 0.00995033 = 0.0487465: 4.87465 %. The 26th of those that are closed is not of it.
        for count in [25, 26] {
            let told = of_day(&hours(count)).expect("volatility");
            assert_eq!((told.returns, told.realised_pct), (24, Some(4.87465)));
            assert_eq!(told.end_ms - told.start_ms, 24 * 3_600_000);
            assert_eq!(told.end_ms, count * 3_600_000 - 1);
        }
        assert_eq!(of_day(&hours(12)).expect("volatility").returns, 11);
        assert!(of_day(&[]).is_err());
    }
}
