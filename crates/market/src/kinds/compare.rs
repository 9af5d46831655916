//! Several markets side by side.

use std::collections::BTreeMap;
use std::sync::Arc;

use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive as _;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tribune_core::Result;
use tribune_page::Headline;

use super::day::DayFigures;
use super::known::{Known, or_unknown};
use super::ticker;
use super::{About, Answer, Figures, Provenance, Time, decimal, signed};
use crate::id::Kind;
use crate::kinds::Page;
use crate::market::Market;
use tribune_analytics::depth::band;
use tribune_analytics::health::BAND_BPS;
use tribune_analytics::quotes::quotes;
use tribune_analytics::volatility::{RealisedVolatility, realised};
use tribune_analytics::{Standing, Unavailable};
use tribune_binance::model::{Candle, Interval, Millis};
use tribune_binance::number::{Notional, Price};
use tribune_binance::rest::KlinesQuery;

/// Returns of an hour each that make a day. A return takes two closes, and the newest candle has none yet.
const RETURNS: usize = 24;
const CANDLES_ASKED: u32 = RETURNS as u32 + 2;

/// One market of a comparison.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Comparison {
    last_price: Option<Price>,
    price_change_pct: Option<f64>,
    high_price: Option<Price>,
    low_price: Option<Price>,
    quote_volume: Option<Notional>,
    #[schemars(skip)]
    trades: Option<u64>,
    #[schemars(skip)]
    window_start: Option<Time>,
    #[schemars(skip)]
    window_end: Option<Time>,
    #[schemars(skip)]
    ticker_age_ms: Option<u64>,
    /// Why the ticker is not the exchange's answer.
    #[schemars(skip)]
    ticker_note: Option<String>,
    #[schemars(with = "Option<String>")]
    mid: Option<Decimal>,
    spread_bps: Option<f64>,
    depth_25_bps: Known<NearMid>,
    realised_volatility_24h_pct: Option<f64>,
    #[schemars(skip)]
    realised_volatility_24h_of: Option<VolatilityOf>,
    /// Why figures are null, by their names.
    reasons: Option<BTreeMap<String, String>>,
    standing: Standing,
    realised_volatility_standing: Standing,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
struct NearMid {
    bid_notional_quote: Notional,
    ask_notional_quote: Notional,
    complete: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
struct VolatilityOf {
    sampling: String,
    returns: usize,
    start_ms: Millis,
    end_ms: Millis,
    complete: bool,
}

pub async fn load(market: &Market, symbol: &str) -> Result<Answer> {
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
            let streamed = ticker::from_streams(market, &symbol, &error).map(Arc::new);
            let why = streamed
                .as_ref()
                .map_or_else(|| error.to_string(), |_| ticker::because(&error));
            (streamed, Some(why))
        }
    };
    let quotes = quotes(&book.view.depth);
    let volatility = klines
        .map_err(|_| Unavailable::Unknown("the past day"))
        .and_then(|klines| last_day(market.closed(&klines)));
    let value = ticker.as_ref().map(|ticker| &ticker.value);
    let last = value.and_then(|value| value.last);
    let unpriced = match (value, &note) {
        (None, Some(why)) => Some(why.clone()),
        _ => last.is_none().then(|| "nothing was ever traded".to_owned()),
    };
    let of_book = match &quotes {
        Ok(quotes) => quotes.reason.clone(),
        Err(reason) => Some(reason.clone()),
    };
    let known = quotes.as_ref().ok();
    let traded = value.filter(|_| last.is_some());
    let figures = Comparison {
        last_price: last,
        price_change_pct: traded.and_then(|value| value.price_change_percent.to_f64()),
        high_price: value.and_then(|value| value.high),
        low_price: value.and_then(|value| value.low),
        quote_volume: value.map(|value| value.quote_volume),
        trades: value.and_then(ticker::counted),
        window_start: value.map(|value| Time::from_millis(value.open_time)),
        window_end: value.map(|value| Time::from_millis(value.close_time)),
        ticker_age_ms: ticker.as_ref().map(|ticker| ticker.received.age_ms(&*market.clock)),
        ticker_note: note,
        mid: known.and_then(|quotes| quotes.mid),
        spread_bps: known.and_then(|quotes| quotes.spread_bps),
        depth_25_bps: band(&book.view.depth, BAND_BPS)
            .map(|near| NearMid {
                bid_notional_quote: near.bid_notional_quote,
                ask_notional_quote: near.ask_notional_quote,
                complete: near.complete,
            })
            .into(),
        realised_volatility_24h_pct: volatility.as_ref().ok().and_then(|volatility| volatility.realised_pct),
        realised_volatility_24h_of: volatility.as_ref().ok().map(|volatility| VolatilityOf {
            sampling: volatility.sampling.to_string(),
            returns: volatility.returns,
            start_ms: volatility.start_ms,
            end_ms: volatility.end_ms,
            complete: volatility.complete && volatility.returns == RETURNS,
        }),
        reasons: reasons([
            ("last_price", unpriced),
            ("mid", of_book.map(|reason| reason.to_string())),
            (
                "realised_volatility_24h_pct",
                volatility.err().map(|reason| reason.to_string()),
            ),
        ]),
        standing: Standing::Exact,
        realised_volatility_standing: Standing::Sound,
    };
    Answer::new(Kind::Ticker, &symbol, Provenance::of_book(market, &book), figures)
}

/// Of the last full hours that make a day, as far as there are so many.
fn last_day(closed: &[Candle]) -> std::result::Result<RealisedVolatility, Unavailable> {
    let from = closed.len().saturating_sub(RETURNS + 1);
    realised(&closed[from..], Interval::H1)
}

/// Why figures are null, by their names; null where none is.
fn reasons<const N: usize>(all: [(&'static str, Option<String>); N]) -> Option<BTreeMap<String, String>> {
    let known: BTreeMap<_, _> = all
        .into_iter()
        .filter_map(|(figure, reason)| Some((figure.to_owned(), reason?)))
        .collect();
    (!known.is_empty()).then_some(known)
}

impl Figures for Comparison {
    fn what(&self, _about: &About) -> String {
        "beside other markets".to_owned()
    }

    fn sentences(&self, about: &About) -> Vec<String> {
        let window = self.window_start.zip(self.window_end);
        let window = window.map_or_else(|| "24 hours".to_owned(), |(start, end)| ticker::window(start, end));
        vec![format!(
            "{}: last price {} {quote}, {}% in {window}, {} {quote} traded; spread {} basis points.",
            about.name(),
            or_unknown(self.last_price),
            or_unknown(self.price_change_pct.and_then(decimal).map(signed)),
            or_unknown(self.quote_volume),
            or_unknown(self.spread_bps),
            quote = about.quote(),
        )]
    }

    fn headline(&self, page: &Page<'_>) -> Option<Headline> {
        let day = DayFigures {
            last: self.last_price,
            open: None,
            high: self.high_price,
            low: self.low_price,
            change_pct: self.price_change_pct.and_then(decimal),
            volume: None,
            turnover: self.quote_volume,
            window: self.window_start.zip(self.window_end),
            unknown: self.ticker_note.clone(),
        };
        Some(day.headline(None, page))
    }

    fn shown(&self) -> Vec<&'static str> {
        vec![
            "last_price",
            "price_change_pct",
            "high_price",
            "low_price",
            "quote_volume",
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tribune_binance::testing::minute;

    #[test]
    fn day_has_24_returns() {
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
            let day = last_day(&hours(count)).expect("volatility");
            assert_eq!((day.returns, day.realised_pct), (24, Some(4.87465)));
            assert_eq!(day.end_ms - day.start_ms, 24 * 3_600_000);
            assert_eq!(day.end_ms, count * 3_600_000 - 1);
        }
        assert_eq!(last_day(&hours(12)).expect("volatility").returns, 11);
        assert!(last_day(&[]).is_err());
    }
}
