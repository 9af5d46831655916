//! Several markets side by side.

use std::collections::BTreeMap;

use rust_decimal::prelude::ToPrimitive as _;

use super::prelude::*;
use super::ticker;
use tribune_analytics::depth::band;
use tribune_analytics::health::BAND_BPS;
use tribune_analytics::quotes::quotes;
use tribune_analytics::volatility::{RealisedVolatility, realised};

/// Returns of an hour each that make a day. A return takes two closes, and the newest candle has none yet.
const RETURNS: usize = 24;
const CANDLES_ASKED: u32 = RETURNS as u32 + 2;

/// One market of a comparison.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
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

#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
struct NearMid {
    bid_notional_quote: Notional,
    ask_notional_quote: Notional,
    complete: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
struct VolatilityOf {
    sampling: String,
    returns: usize,
    start_ms: Millis,
    end_ms: Millis,
    complete: bool,
}

pub async fn load(market: &Market, symbol: &str) -> Result<Answer> {
    let symbol = market.traded(symbol).await?;
    let (ticker, book, klines) = futures::join!(
        market.rest.ticker_24h(&symbol.name),
        market.book(&symbol),
        market.newest_candles(&symbol, Interval::H1, CANDLES_ASKED),
    );
    let book = book?;
    let (ticker, note) = match ticker {
        Ok(ticker) => (Some((ticker.value.clone(), ticker.received)), None),
        Err(error) => {
            let streamed = ticker::from_streams(market, &symbol, &error);
            let why = match streamed {
                Some(_) => ticker::because(&error),
                None => error.to_string(),
            };
            (streamed, Some(why))
        }
    };
    let quotes = quotes(&book.view.depth);
    let volatility =
        klines.map_err(|_| Unavailable::Unknown("the past day")).and_then(|klines| last_day(market.closed(&klines)));
    let value = ticker.as_ref().map(|(value, _)| value);
    let last = value.and_then(|value| value.last);
    let unpriced = match (value, &note) {
        (None, Some(why)) => Some(why.clone()),
        _ => last.is_none().then(|| "it was never traded".to_owned()),
    };
    let of_book = match &quotes {
        Ok(quotes) => quotes.reason.clone(),
        Err(reason) => Some(reason.clone()),
    };
    let reasons = [
        ("last_price", unpriced),
        ("mid", of_book.map(|reason| reason.to_string())),
        ("realised_volatility_24h_pct", volatility.as_ref().err().map(ToString::to_string)),
    ];
    let reasons = reasons.into_iter();
    let reasons: BTreeMap<_, _> = reasons.filter_map(|(figure, why)| Some((figure.to_owned(), why?))).collect();
    let known = quotes.as_ref().ok();
    let volatility = volatility.as_ref().ok();
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
        ticker_age_ms: ticker.as_ref().map(|(_, received)| received.age_ms(&*market.clock)),
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
        realised_volatility_24h_pct: volatility.and_then(|volatility| volatility.realised_pct),
        realised_volatility_24h_of: volatility.map(|volatility| VolatilityOf {
            sampling: volatility.sampling.to_string(),
            returns: volatility.returns,
            start_ms: volatility.start_ms,
            end_ms: volatility.end_ms,
            complete: volatility.complete && volatility.returns == RETURNS,
        }),
        reasons: Some(reasons).filter(|reasons| !reasons.is_empty()),
        standing: Standing::Exact,
        realised_volatility_standing: Standing::Sound,
    };
    Answer::new(Kind::Ticker, &symbol, Provenance::of_book(market, &book), figures)
}

/// Of the last 24 full hours, or as many as there are.
fn last_day(closed: &[Candle]) -> std::result::Result<RealisedVolatility, Unavailable> {
    let from = closed.len().saturating_sub(RETURNS + 1);
    realised(&closed[from..], Interval::H1)
}

impl Figures for Comparison {
    fn sentences(&self, about: &About) -> Vec<String> {
        let (name, quote) = (about.name(), about.quote());
        let window = self.window_start.zip(self.window_end);
        let window = window.map_or_else(|| "24 hours".to_owned(), |(start, end)| ticker::window(start, end));
        let (last, change) = (or_unknown(self.last_price), change_word(self.price_change_pct));
        let (traded, spread) = (or_unknown(self.quote_volume), or_unknown(self.spread_bps));
        vec![format!(
            "{name}: last price {last} {quote}, {change}% in {window}, {traded} {quote} traded; spread {spread} basis points."
        )]
    }

    fn headline(&self) -> &'static str {
        "last_price +price_change_pct high_price low_price quote_volume"
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
