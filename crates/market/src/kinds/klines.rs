//! Candles.

use jiff::Timestamp;
use rust_decimal::prelude::ToPrimitive as _;
use tribune_page::parts::signed;

use super::candle_chart::chart;
use super::day::RATIO_PLACES;
use super::prelude::*;
use tribune_analytics::volatility::{Atr, RealisedVolatility, atr, realised};
use tribune_binance::candles::close_time;
use tribune_binance::rest::KlinesQuery;

/// Candles that one answer shows.
const MAX_SHOWN: usize = 500;
const ATR_PERIOD: usize = 14;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Klines {
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// Over all candles, also those not listed; absent without candles.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    prices: Option<Prices>,
    #[serde(skip_serializing_if = "Option::is_none")]
    klines_unlisted: Option<Unlisted>,
    interval: String,
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
    klines: Table<Kline>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
struct Prices {
    open_price: Price,
    high_price: Price,
    low_price: Price,
    close_price: Price,
    /// Whether the last of all is over.
    close_is_final: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
struct Cover {
    candles: usize,
    start_ms: Millis,
    end_ms: Millis,
}

row! {
    /// One candle.
    pub(crate) struct Kline {
        open_time: Millis = "open_time_ms",
        open: Price = "open",
        high: Price = "high",
        low: Price = "low",
        close: Price = "close",
        volume: Quantity = "volume_base",
        /// How many trades, where they were counted.
        trades: Option<u64> = "trades",
    }
}

impl From<&Candle> for Kline {
    fn from(candle: &Candle) -> Self {
        Self {
            open_time: candle.open_time,
            open: candle.open,
            high: candle.high,
            low: candle.low,
            close: candle.close,
            volume: candle.volume,
            trades: Some(candle.trades),
        }
    }
}

/// Which candles are asked for.
#[derive(Debug, Clone, Copy)]
pub struct Range {
    pub interval: Interval,
    pub limit: usize,
    pub start: Option<Millis>,
    pub end: Option<Millis>,
}

impl Range {
    pub const fn newest(interval: Interval, limit: usize) -> Self {
        Self { interval, limit, start: None, end: None }
    }
}

pub async fn load(market: &Market, symbol: &str, range: Range) -> Result<Answer> {
    if range.start.zip(range.end).is_some_and(|(start, end)| start > end) {
        return Err(Error::invalid_argument("start_time is after end_time: give the earlier one as start_time"));
    }
    let symbol = market.symbol(symbol).await?;
    let query = KlinesQuery {
        interval: range.interval,
        limit: u32::try_from(range.limit).unwrap_or(1_000).clamp(1, 1_000),
        start: range.start,
        end: range.end,
    };
    let klines = market.rest.klines(&symbol.name, &query).await.map_err(exchange_error)?;
    let closed = market.closed(&klines);
    let figures = Klines::new(&klines.value, closed, range, market.exchange_now());
    let provenance = Provenance::new(market, Origin::Rest, klines.exchange_time, klines.received);
    Answer::new(Kind::Klines(range.interval), &symbol, provenance, figures)
}

impl Klines {
    fn new(candles: &[Candle], closed: &[Candle], range: Range, now: Millis) -> Self {
        let (table, listed) = list(candles, range);
        let ends = candles.first().zip(candles.last());
        let reason = match range.start {
            Some(start) if start > now => "start_time is in the future: there are no candles of it yet",
            _ => "the exchange has no candles for these times: it may not have been traded then",
        };
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
            klines_unlisted: Unlisted::new(candles, listed, range.start.is_some()),
            interval: range.interval.as_str().to_owned(),
            candles: candles.len(),
            figures_cover: ends.map(|(first, last)| Cover {
                candles: candles.len(),
                start_ms: first.open_time,
                end_ms: last.close_time,
            }),
            last_closed: listed.last().map(is_closed),
            realised_volatility: realised(closed, range.interval).into(),
            average_true_range: atr(closed, range.interval, ATR_PERIOD).into(),
            standing: Standing::Exact,
            klines_listed: table.rows.len(),
            klines_cut: table.cut(),
            klines: table,
        }
    }

    /// How many are listed.
    pub(crate) const fn listed(&self) -> usize {
        self.klines.rows.len()
    }

    /// Whether there are candles that are not listed.
    const fn is_cut(&self) -> bool {
        self.candles > self.klines.rows.len()
    }

    fn is_open(&self) -> bool {
        self.last_closed == Some(false)
    }
}

/// The rows, and the candles that they are of. Who asks from a time on wants the first; who does not wants the newest.
fn list(candles: &[Candle], range: Range) -> (Table<Kline>, &[Candle]) {
    let (shown, keep) = match range.start {
        Some(_) => (&candles[..candles.len().min(MAX_SHOWN)], Keep::First),
        None => (&candles[candles.len().saturating_sub(MAX_SHOWN)..], Keep::Last),
    };
    let table = Table::fitted(shown.iter().map(Kline::from).collect(), keep, 1);
    let table = table.with_left_out(candles.len() - shown.len());
    let count = table.rows.len();
    let listed = match keep {
        Keep::First => &candles[..count],
        Keep::Last => &candles[candles.len() - count..],
    };
    (table, listed)
}

/// What figures are of and rows are not, and what to ask for to have them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
struct Unlisted {
    listed: End,
    rows: usize,
    candles: usize,
    /// The last of the candles before those listed is of this time.
    #[serde(skip_serializing_if = "Option::is_none")]
    ask_with_end_time: Option<Millis>,
    /// The first of the candles after those listed begins at this time.
    #[serde(skip_serializing_if = "Option::is_none")]
    ask_with_start_time: Option<Millis>,
}

/// Which of all candles are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum End {
    Oldest,
    Newest,
}

impl Unlisted {
    fn new(candles: &[Candle], rows: &[Candle], are_oldest: bool) -> Option<Self> {
        if rows.len() == candles.len() {
            return None;
        }
        let (first, last) = rows.first().zip(rows.last())?;
        let end = if are_oldest { End::Oldest } else { End::Newest };
        Some(Self {
            listed: end,
            rows: rows.len(),
            candles: candles.len(),
            ask_with_end_time: first.open_time.checked_sub(1).filter(|_| !are_oldest),
            ask_with_start_time: last.close_time.checked_add(1).filter(|_| are_oldest),
        })
    }

    fn sentence(&self) -> String {
        let how = match (self.ask_with_start_time, self.ask_with_end_time) {
            (Some(start), _) => format!("start_time {start}"),
            (None, Some(end)) => format!("end_time {end}"),
            (None, None) => "fewer at a time".to_owned(),
        };
        let end = match self.listed {
            End::Oldest => "oldest",
            End::Newest => "newest",
        };
        let (all, rows) = (self.candles, self.rows);
        format!("Figures are of all {all}; the {end} {rows} are listed: for the others ask with {how}.")
    }
}

impl Figures for Klines {
    fn what(&self, _about: &About) -> Option<String> {
        Some(format!("{} candles", self.interval))
    }

    fn sentences(&self, about: &About) -> Vec<String> {
        let (name, quote) = (about.name(), about.quote());
        let (count, interval) = (self.candles, &self.interval);
        let all = match (&self.prices, &self.figures_cover) {
            (Some(prices), Some(cover)) => {
                let (start, end) = (Time::from_millis(cover.start_ms), Time::from_millis(cover.end_ms));
                let (open, close) = (prices.open_price, prices.close_price);
                let (high, low) = (prices.high_price, prices.low_price);
                let state = match prices.close_is_final {
                    true => "closed",
                    false => "still open: it will change",
                };
                format!(
                    "{name}: {count} candles of {interval}, {start} to {end}; first open {open}, last close {close} {quote} ({state}); highest {high}, lowest {low}."
                )
            }
            _ => format!("{name}: {}.", or_unknown(self.reason.as_ref())),
        };
        let unlisted = self.klines_unlisted.as_ref().map(Unlisted::sentence);
        std::iter::once(all).chain(unlisted).collect()
    }

    fn headline(&self, page: &Page<'_>) -> Option<Headline> {
        let rows = &self.klines.rows;
        let (first, last) = rows.first().zip(rows.last())?;
        let highest = rows.iter().map(|row| row.high).max()?;
        let lowest = rows.iter().map(|row| row.low).min()?;
        let label = if self.is_open() { "Last price" } else { "Last close" };
        let figures = vec![Figure::new("Highest", page.money(highest)), Figure::new("Lowest", page.money(lowest))];
        let mut headline = page.headline(label, page.money(last.close), figures);
        headline.change = change(first.open, last.close, format!("% over {}", counted(rows.len())));
        // A price of the past is not as young as the answer that has it.
        let ended = self.interval.parse().ok();
        let ended = ended.and_then(|interval| close_time(interval, last.open_time));
        let ended = ended.and_then(|millis| Timestamp::from_millisecond(millis).ok());
        if let Some(ended) = ended.filter(|_| !self.is_open()) {
            (headline.as_of, headline.age_ms) = (Some(ended), None);
        }
        Some(headline)
    }

    fn panels(&self, page: &Page<'_>) -> Vec<Panel> {
        vec![self.chart(page)]
    }

    /// If the list is cut, the headline describes the list, and the panel shows the figures of the whole answer.
    fn shown(&self) -> &'static str {
        match self.is_cut() {
            true => "close_is_final",
            false => "open_price high_price low_price close_price close_is_final candles",
        }
    }
}

impl Klines {
    pub(crate) fn chart(&self, page: &Page<'_>) -> Panel {
        let listed = self.klines.rows.len();
        let count = match self.is_cut() {
            true => format!("{listed} of {} candles", self.candles),
            false => counted(listed),
        };
        let missing = self.reason.as_deref().unwrap_or("the exchange has no candles of it");
        chart(&self.klines.rows, &self.interval, self.is_open(), &count, missing, page)
    }
}

/// `1 candle`, `60 candles`
pub(super) fn counted(candles: usize) -> String {
    match candles {
        1 => "1 candle".to_owned(),
        several => format!("{several} candles"),
    }
}

/// From one price to another, in percent.
pub(super) fn change(from: Price, to: Price, unit: String) -> Option<(Amount, Tone)> {
    let (from, to) = (from.decimal(), to.decimal());
    let share = to.checked_sub(from)?.checked_div(from)?;
    let percent = share.checked_mul(Decimal::ONE_HUNDRED)?;
    let percent = percent.round_dp(RATIO_PLACES).normalize();
    Some((Amount::new(signed(&percent.to_string()), unit), tone_of(percent.to_f64())))
}

#[cfg(test)]
mod tests;
