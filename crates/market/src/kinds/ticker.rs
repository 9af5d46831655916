//! The price of a market and its last day.

use futures::future::join_all;
use rust_decimal::prelude::ToPrimitive as _;

use super::prelude::*;
use tribune_analytics::{Quote, Touch, rounded_bps};
use tribune_binance::rest::{self, ErrorKind};
use tribune_binance::{Moment, RestError};

const DAY: Millis = 24 * 3_600 * 1_000;
const MINUTE: Millis = 60 * 1_000;
/// Stream prices older than this do not replace an answer of the exchange.
const MAX_STREAMED_AGE_MS: u64 = 60_000;

#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Ticker {
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// Absent if best prices are unknown: null would mean an empty side.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    best: Option<Best>,
    pub(super) last_price: Option<Price>,
    price_change: Option<Decimal>,
    pub(super) price_change_pct: Option<f64>,
    open_price: Option<Price>,
    pub(super) high_price: Option<Price>,
    pub(super) low_price: Option<Price>,
    weighted_average_price: Option<Price>,
    volume_base: Quantity,
    pub(super) quote_volume: Notional,
    pub(super) trades: Option<u64>,
    pub(super) window_start: Time,
    pub(super) window_end: Time,
    standing: Standing,
    /// Why it comes from the streams.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) note: Option<String>,
}

/// Null means an empty side; without the fields, the best prices are unknown.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
struct Best {
    best_bid: Option<Quote>,
    best_ask: Option<Quote>,
    spread_bps: Option<f64>,
}

/// A ticker, and where and when it came from.
pub(super) struct Reading {
    pub(super) ticker: Ticker,
    pub(super) received: Moment,
    origin: Origin,
    close_time: Millis,
}

impl Reading {
    fn new(ticker: &rest::Ticker, received: Moment, origin: Origin, note: Option<String>) -> Self {
        let close_time = ticker.close_time;
        Self { ticker: Ticker { note, ..Ticker::from(ticker) }, received, origin, close_time }
    }

    fn answer(self, market: &Market, symbol: &Symbol) -> Result<Answer> {
        let provenance = Provenance::new(market, self.origin, Some(self.close_time), self.received);
        Answer::new(Kind::Ticker, symbol, provenance, self.ticker)
    }
}

pub async fn load(market: &Market, symbol: &str) -> Result<Answer> {
    let symbol = market.traded(symbol).await?;
    read(market, &symbol).await?.answer(market, &symbol)
}

/// The exchange's answer, or else the figures of the streams with a note.
pub(super) async fn read(market: &Market, symbol: &Symbol) -> Result<Reading> {
    match market.rest.ticker_24h(&symbol.name).await {
        Ok(ticker) => Ok(Reading::new(&ticker.value, ticker.received, Origin::Rest, None)),
        Err(error) => streamed(market, symbol, error),
    }
}

/// Several with one request; a failure affects only its own symbol.
pub async fn load_several(market: &Market, names: &[String]) -> Vec<Result<Answer>> {
    let symbols = join_all(names.iter().map(|name| market.traded(name))).await;
    let traded: Vec<&str> = symbols.iter().flatten().map(|symbol| &*symbol.name).collect();
    let all = match traded.as_slice() {
        [] => Err(RestError::Invalid("no symbol is traded".to_owned())),
        some => market.rest.tickers_24h(some).await,
    };
    let each = |symbol: Symbol| match &all {
        Ok(all) => {
            let own = all.value.iter().find(|ticker| ticker.symbol == symbol.name);
            let own = own.ok_or_else(|| Error::unavailable(format!("the exchange left {} out", symbol.name)))?;
            Reading::new(own, all.received, Origin::Rest, None).answer(market, &symbol)
        }
        Err(error) => streamed(market, &symbol, error.clone())?.answer(market, &symbol),
    };
    symbols.into_iter().map(|symbol| symbol.and_then(each)).collect()
}

/// The figures of the streams, if the request failed for now: during a pause the exchange still sends them.
fn streamed(market: &Market, symbol: &Symbol, error: RestError) -> Result<Reading> {
    let is_current = |received: &Moment| {
        market.feed.health.trouble().is_none() && received.age_ms(&*market.clock) <= MAX_STREAMED_AGE_MS
    };
    match last_day(market, symbol) {
        Some((day, received)) if is_passing(&error) && is_current(&received) => {
            let note = format!("from the exchange's streams, because the request failed: {error}");
            Ok(Reading::new(&day, received, Origin::Stream, Some(note)))
        }
        _ => Err(exchange_error(error)),
    }
}

/// A wrong answer does not pass: it is shown as the error that it is.
fn is_passing(error: &RestError) -> bool {
    use RestError::{BrokenOff, NotRecorded, Shape, Status};
    let is_wrong_answer = matches!(error, BrokenOff | NotRecorded(_) | Shape { .. } | Status { .. });
    error.kind() == ErrorKind::Unavailable && !is_wrong_answer
}

/// Price and 24-hour figures from the streams, however old.
pub(crate) fn at_hand(market: &Market, symbol: &Symbol) -> Option<Answer> {
    let (day, received) = last_day(market, symbol)?;
    Reading::new(&day, received, Origin::Stream, None).answer(market, symbol).ok()
}

fn last_day(market: &Market, symbol: &Symbol) -> Option<(rest::Ticker, Moment)> {
    let day = market.feed.board.lookup(&symbol.name)?;
    let close_time = day.exchange_time.unwrap_or_else(|| day.received.wall.as_millisecond());
    let change = day.last.decimal() - day.open.decimal();
    let live = market.feed.lookup(&symbol.name).and_then(|tracked| tracked.live());
    let (bid, ask) = live.map(|view| (view.depth.bids.best(), view.depth.asks.best())).unzip();
    let ticker = rest::Ticker {
        symbol: symbol.name.clone(),
        price_change: change,
        price_change_percent: change.checked_div(day.open.decimal())?.checked_mul(Decimal::ONE_HUNDRED)?.round_dp(3),
        average: None,
        open: Some(day.open),
        high: Some(day.high),
        low: Some(day.low),
        last: Some(day.last),
        volume: day.volume,
        quote_volume: day.quote_volume,
        open_time: close_time - DAY,
        close_time,
        trades: 0,
        bid_price: bid.flatten().map(|best| best.price),
        bid_qty: bid.map(|best| best.map_or(Quantity::ZERO, |level| level.quantity)),
        ask_price: ask.flatten().map(|best| best.price),
        ask_qty: ask.map(|best| best.map_or(Quantity::ZERO, |level| level.quantity)),
    };
    Some((ticker, day.received))
}

impl From<&rest::Ticker> for Ticker {
    fn from(ticker: &rest::Ticker) -> Self {
        let best = ticker.quote().map(|(bid, ask)| {
            let touch = bid.zip(ask).and_then(|(bid, ask)| Touch::new(bid, ask).ok());
            Best {
                best_bid: bid.map(Quote::from),
                best_ask: ask.map(Quote::from),
                spread_bps: touch.as_ref().and_then(Touch::spread_bps).and_then(rounded_bps),
            }
        });
        // Without a trade the exchange sends zeros.
        let change_pct = ticker.last.map(|_| ticker.price_change_percent);
        Self {
            reason: missing(ticker),
            best,
            last_price: ticker.last,
            price_change: ticker.last.map(|_| ticker.price_change.normalize()),
            price_change_pct: change_pct.as_ref().and_then(Decimal::to_f64),
            open_price: ticker.open,
            high_price: ticker.high,
            low_price: ticker.low,
            weighted_average_price: ticker.average,
            volume_base: ticker.volume,
            quote_volume: ticker.quote_volume,
            trades: counted(ticker),
            window_start: Time::from_millis(ticker.open_time),
            window_end: Time::from_millis(ticker.close_time),
            standing: Standing::Exact,
            note: None,
        }
    }
}

/// How many trades there were. Zero trades with volume means that they were not counted.
fn counted(ticker: &rest::Ticker) -> Option<u64> {
    Some(ticker.trades).filter(|trades| *trades > 0 || ticker.volume.is_zero())
}

fn missing(ticker: &rest::Ticker) -> Option<String> {
    let quote = ticker.quote();
    let reasons = [
        ticker.last.is_none().then(|| "it was never traded".to_owned()),
        counted(ticker).is_none().then(|| "the ticker stream has no average price and no number of trades".to_owned()),
        quote.filter(|(bid, _)| bid.is_none()).map(|_| Unavailable::NoBids.to_string()),
        quote.filter(|(_, ask)| ask.is_none()).map(|_| Unavailable::NoAsks.to_string()),
    ];
    reasons.into_iter().flatten().reduce(|all, one| format!("{all}; {one}"))
}

/// The window in words; a recording may cover less than a day.
pub(super) fn window(start: Time, end: Time) -> String {
    let millis = end.millis().saturating_sub(start.millis()).max(0);
    match (DAY - millis).abs() {
        ..=MINUTE => "24 hours".to_owned(),
        _ if millis < 2 * MINUTE => format!("{} seconds", (millis + 500) / 1_000),
        _ if millis < 120 * MINUTE => format!("{} minutes", millis / MINUTE),
        _ => format!("{} hours", millis / (60 * MINUTE)),
    }
}

impl Figures for Ticker {
    fn what(&self, _about: &About) -> Option<String> {
        Some(format!("price and last {}", window(self.window_start, self.window_end)))
    }

    fn sentences(&self, about: &About) -> Vec<String> {
        let (name, pair, base, quote) = (about.name(), pair_name(about), about.base(), about.quote());
        let window = window(self.window_start, self.window_end);
        let (last, change) = (or_unknown(self.last_price), change_word(self.price_change_pct));
        let (high, low) = (or_unknown(self.high_price), or_unknown(self.low_price));
        let (volume, worth, trades) = (self.volume_base, self.quote_volume, or_unknown(self.trades));
        let traded = short(worth.decimal());
        let mut sentences = vec![
            format!(
                "{name}: last price {last} {quote}, {change}% in {window}; high {high}, low {low}, {traded} {quote} traded."
            ),
            format!("{pair}: volume {volume} {base} worth {worth} {quote}, {trades} trades."),
        ];
        if let Some(best) = &self.best
            && let Some((bid, ask)) = best.best_bid.zip(best.best_ask)
        {
            let side = |best: Quote| format!("{} for {} {base}", best.price, best.quantity_base);
            let (bid, ask, spread) = (side(bid), side(ask), or_unknown(best.spread_bps));
            sentences.push(format!("Best bid {bid}, best ask {ask}; spread {spread} basis points."));
        }
        sentences
    }

    fn headline(&self) -> &'static str {
        "last_price +price_change_pct high_price low_price volume_base quote_volume best_bid best_ask spread_bps"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticker_names_the_time_it_covers() {
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
            assert_eq!(window(Time::from_millis(0), Time::from_millis(millis)), told);
        }
    }

    /// Null is an empty side; a missing field is unknown.
    #[test]
    fn unknown_best_prices_are_absent() {
        let mut ticker = Ticker {
            reason: None,
            best: None,
            last_price: None,
            price_change: None,
            price_change_pct: None,
            open_price: None,
            high_price: None,
            low_price: None,
            weighted_average_price: None,
            volume_base: Quantity::ZERO,
            quote_volume: Notional::ZERO,
            trades: None,
            window_start: Time::from_millis(0),
            window_end: Time::from_millis(DAY),
            standing: Standing::Exact,
            note: None,
        };
        let best_bid = |ticker: &Ticker| serde_json::json!(ticker).get("best_bid").cloned();
        assert_eq!(best_bid(&ticker), None);
        ticker.best = Some(Best { best_bid: None, best_ask: None, spread_bps: None });
        assert_eq!(best_bid(&ticker), Some(serde_json::Value::Null));
    }
}
