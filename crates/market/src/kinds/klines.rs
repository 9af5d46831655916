//! Candles.

use super::prelude::*;
use tribune_analytics::{Atr, RealisedVolatility, atr, realised};
use tribune_binance::KlinesQuery;

const MAX_SHOWN: usize = 500;
const ATR_PERIOD: usize = 14;

#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Klines {
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// Over all candles, also those not listed; absent without candles.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    prices: Option<Prices>,
    #[serde(skip_serializing_if = "Option::is_none")]
    klines_unlisted: Option<Unlisted>,
    interval: &'static str,
    candles: usize,
    figures_cover: Option<Cover>,
    /// Whether the last that is listed is over.
    last_closed: Option<bool>,
    realised_volatility: Known<RealisedVolatility>,
    average_true_range: Known<Atr>,
    standing: Standing,
    klines_listed: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    klines_cut: Option<String>,
    klines: Table<Candle>,
}

#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
struct Prices {
    open_price: Price,
    high_price: Price,
    low_price: Price,
    close_price: Price,
    /// Whether the last of all is over.
    close_is_final: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
struct Cover {
    candles: usize,
    start_ms: Millis,
    end_ms: Millis,
}

impl Row for Candle {
    const COLUMNS: &'static [&'static str] = &["open_time_ms", "open", "high", "low", "close", "volume_base", "trades"];
    fn cells(&self) -> impl Serialize {
        (self.open_time, self.open, self.high, self.low, self.close, self.volume, self.trades)
    }
}

pub async fn load(market: &Market, symbol: &str, query: KlinesQuery) -> Result<Answer> {
    if query.start.zip(query.end).is_some_and(|(start, end)| start > end) {
        return Err(Error::invalid_argument("start_time is after end_time: give the earlier one as start_time"));
    }
    let symbol = market.symbol(symbol).await?;
    let klines = market.rest.klines(&symbol.name, &query).await.map_err(exchange_error)?;
    let closed = market.closed(&klines);
    let figures = Klines::new(&klines.value, closed, query);
    let provenance = Provenance::new(market, Origin::Rest, klines.exchange_time, klines.received);
    Answer::new(Kind::Klines(query.interval), &symbol, provenance, figures)
}

impl Klines {
    fn new(candles: &[Candle], closed: &[Candle], query: KlinesQuery) -> Self {
        // With start_time the first candles are listed, otherwise the newest.
        let (shown, keep) = match query.start {
            Some(_) => (&candles[..candles.len().min(MAX_SHOWN)], Keep::First),
            None => (&candles[candles.len().saturating_sub(MAX_SHOWN)..], Keep::Last),
        };
        let table = Table::fitted(shown.to_vec(), keep);
        let listed = match keep {
            Keep::First => &candles[..table.0.len()],
            Keep::Last => &candles[candles.len() - table.0.len()..],
        };
        let ends = candles.first().zip(candles.last());
        let reason = "the exchange has no candles for these times; the symbol may not have been traded then";
        let is_closed = |last: &Candle| closed.iter().any(|candle| candle.open_time == last.open_time);
        Self {
            reason: candles.is_empty().then(|| reason.to_owned()),
            prices: ends.and_then(|(first, last)| {
                Some(Prices {
                    open_price: first.open,
                    high_price: candles.iter().map(|candle| candle.high).max()?,
                    low_price: candles.iter().map(|candle| candle.low).min()?,
                    close_price: last.close,
                    close_is_final: candles.len() == closed.len(),
                })
            }),
            klines_unlisted: Unlisted::new(candles, listed, keep),
            interval: query.interval.as_str(),
            candles: candles.len(),
            figures_cover: ends.map(|(first, last)| Cover {
                candles: candles.len(),
                start_ms: first.open_time,
                end_ms: last.close_time,
            }),
            last_closed: listed.last().map(is_closed),
            realised_volatility: realised(closed, query.interval).into(),
            average_true_range: atr(closed, query.interval, ATR_PERIOD).into(),
            standing: Standing::Exact,
            klines_listed: table.0.len(),
            klines_cut: keep.cut(table.0.len(), candles.len()),
            klines: table,
        }
    }
}

/// Candles that are in the figures but not listed, and how to get them.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
struct Unlisted {
    listed: &'static str,
    rows: usize,
    candles: usize,
    /// The last of the candles before those listed is of this time.
    #[serde(skip_serializing_if = "Option::is_none")]
    ask_with_end_time: Option<Millis>,
    /// The first of the candles after those listed begins at this time.
    #[serde(skip_serializing_if = "Option::is_none")]
    ask_with_start_time: Option<Millis>,
}

impl Unlisted {
    fn new(candles: &[Candle], listed: &[Candle], keep: Keep) -> Option<Self> {
        let (first, last) = listed.first().zip(listed.last()).filter(|_| listed.len() < candles.len())?;
        Some(Self {
            listed: if keep == Keep::First { "oldest" } else { "newest" },
            rows: listed.len(),
            candles: candles.len(),
            ask_with_end_time: first.open_time.checked_sub(1).filter(|_| keep == Keep::Last),
            ask_with_start_time: last.close_time.checked_add(1).filter(|_| keep == Keep::First),
        })
    }
}

impl Figures for Klines {
    fn sentences(&self, about: &About) -> Vec<String> {
        let (name, quote) = (about.name(), about.quote());
        let (count, interval) = (self.candles, &self.interval);
        vec![match (&self.prices, &self.figures_cover) {
            (Some(prices), Some(cover)) => {
                let (start, end) = (Time::from_millis(cover.start_ms), Time::from_millis(cover.end_ms));
                let Prices { open_price, high_price, low_price, close_price, close_is_final } = prices;
                let state = if *close_is_final { "closed" } else { "still open" };
                format!(
                    "{name}: {count} {interval} candles, {start} to {end}; first open {open_price}, last close {close_price} {quote} ({state}); highest {high_price}, lowest {low_price}."
                )
            }
            _ => format!("{name}: {}.", or_unknown(self.reason.as_ref())),
        }]
    }

    /// The headline says how old its prices are, which is only right if the last candle is still open.
    fn headline(&self) -> &'static str {
        if self.last_closed == Some(false) { "close_price high_price low_price" } else { "" }
    }
}

#[cfg(test)]
mod tests;
