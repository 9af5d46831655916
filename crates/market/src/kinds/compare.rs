//! Several markets side by side.

use std::collections::BTreeMap;

use super::prelude::*;
use super::ticker;
use tribune_analytics::{BAND_BPS, Band, RealisedVolatility, band, quotes, realised};

/// Returns of an hour each that make a day. A return takes two closes, and the newest candle has none yet.
const RETURNS: usize = 24;
const CANDLES_ASKED: u32 = RETURNS as u32 + 2;

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
    mid: Option<Decimal>,
    spread_bps: Option<f64>,
    depth_25_bps: Known<Band>,
    realised_volatility_24h_pct: Option<f64>,
    #[schemars(skip)]
    realised_volatility_24h_of: Option<RealisedVolatility>,
    /// Why figures are null, by their names.
    reasons: Option<BTreeMap<String, String>>,
    standing: Standing,
    realised_volatility_standing: Standing,
}

pub async fn load(market: &Market, symbol: &str) -> Result<Answer> {
    let symbol = market.traded(symbol).await?;
    let (ticker, book, klines) = futures::join!(
        ticker::read(market, &symbol),
        market.book(&symbol),
        market.newest_candles(&symbol, Interval::H1, CANDLES_ASKED),
    );
    let book = book?;
    let (reading, unknown) = match ticker {
        Ok(reading) => (Some(reading), None),
        Err(error) => (None, Some(error.message().to_owned())),
    };
    let ticker = reading.as_ref().map(|reading| &reading.ticker);
    let last_price = ticker.and_then(|ticker| ticker.last_price);
    let never = || last_price.is_none().then(|| "it was never traded".to_owned());
    let quotes = quotes(&book.view.depth);
    let volatility =
        klines.map_err(|_| Unavailable::Unknown("the past day")).and_then(|klines| last_day(market.closed(&klines)));
    let of_book = match &quotes {
        Ok(quotes) => quotes.reason.clone(),
        Err(reason) => Some(reason.clone()),
    };
    let reasons = [
        ("last_price", unknown.clone().or_else(never)),
        ("mid", of_book.map(|reason| reason.to_string())),
        ("realised_volatility_24h_pct", volatility.as_ref().err().map(ToString::to_string)),
    ];
    let reasons = reasons.into_iter();
    let reasons: BTreeMap<_, _> = reasons.filter_map(|(figure, why)| Some((figure.to_owned(), why?))).collect();
    let known = quotes.as_ref().ok();
    let volatility = volatility.ok();
    let figures = Comparison {
        last_price,
        price_change_pct: ticker.and_then(|ticker| ticker.price_change_pct),
        high_price: ticker.and_then(|ticker| ticker.high_price),
        low_price: ticker.and_then(|ticker| ticker.low_price),
        quote_volume: ticker.map(|ticker| ticker.quote_volume),
        trades: ticker.and_then(|ticker| ticker.trades),
        window_start: ticker.map(|ticker| ticker.window_start),
        window_end: ticker.map(|ticker| ticker.window_end),
        ticker_age_ms: reading.as_ref().map(|reading| reading.received.age_ms(&*market.clock)),
        ticker_note: ticker.and_then(|ticker| ticker.note.clone()).or(unknown),
        mid: known.and_then(|quotes| quotes.mid),
        spread_bps: known.and_then(|quotes| quotes.spread_bps),
        depth_25_bps: band(&book.view.depth, BAND_BPS).into(),
        realised_volatility_24h_pct: volatility.as_ref().and_then(|volatility| volatility.realised_pct),
        realised_volatility_24h_of: volatility,
        reasons: Some(reasons).filter(|reasons| !reasons.is_empty()),
        standing: Standing::Exact,
        realised_volatility_standing: Standing::Sound,
    };
    Answer::new(Kind::Ticker, &symbol, Provenance::of_book(market, &book), figures)
}

/// Of the last 24 full hours, or as many as there are.
fn last_day(closed: &[Candle]) -> std::result::Result<RealisedVolatility, Unavailable> {
    let from = closed.len().saturating_sub(RETURNS + 1);
    let volatility = realised(&closed[from..], Interval::H1)?;
    Ok(RealisedVolatility { complete: volatility.complete && volatility.returns == RETURNS, ..volatility })
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
