//! The price of a market and its last day.

use futures::future::join_all;
use rust_decimal::prelude::ToPrimitive as _;

use super::book::Bests;
use super::change_word;
use super::day::DayFigures;
use super::prelude::*;
use tribune_analytics::figure::rounded_bps;
use tribune_analytics::quotes::{Quote, Touch};
use tribune_binance::book::Level;
use tribune_binance::moment::Stamped;
use tribune_binance::rest::{self, RestError};

/// What the ticker is of, unless it says otherwise.
const DAY: Millis = 24 * 3_600 * 1_000;
const MINUTE: Millis = 60 * 1_000;
/// Stream prices older than this do not replace an answer of the exchange.
const MAX_STREAMED_AGE_MS: u64 = 60_000;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Ticker {
    /// Why figures are null.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// Absent if best prices are unknown: null would mean an empty side.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    best: Option<Best>,
    pub(crate) last_price: Option<Price>,
    #[schemars(with = "Option<String>")]
    price_change: Option<Decimal>,
    price_change_pct: Option<f64>,
    pub(crate) open_price: Option<Price>,
    pub(crate) high_price: Option<Price>,
    pub(crate) low_price: Option<Price>,
    weighted_average_price: Option<Price>,
    pub(crate) volume_base: Quantity,
    pub(crate) quote_volume: Notional,
    trades: Option<u64>,
    window_start: Time,
    window_end: Time,
    standing: Standing,
    /// Why it comes from the streams.
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

/// Null means an empty side; without the fields, the best prices are unknown.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
struct Best {
    #[serde(deserialize_with = "Option::deserialize")]
    best_bid: Option<Quote>,
    #[serde(deserialize_with = "Option::deserialize")]
    best_ask: Option<Quote>,
    #[serde(deserialize_with = "Option::deserialize")]
    spread_bps: Option<f64>,
}

pub async fn load(market: &Market, symbol: &str) -> Result<Answer> {
    let symbol = market.traded(symbol).await?;
    match market.rest.ticker_24h(&symbol.name).await {
        Ok(ticker) => answer(market, &symbol, &ticker, Origin::Rest, None),
        Err(error) => streamed(market, &symbol, &error).unwrap_or_else(|| Err(exchange_error(error))),
    }
}

/// Several with one request; one that fails does not take the others with it.
pub async fn load_several(market: &Market, names: &[String]) -> Vec<Result<Answer>> {
    let symbols = join_all(names.iter().map(|name| market.traded(name))).await;
    let traded: Vec<&str> = symbols.iter().flatten().map(|symbol| &*symbol.name).collect();
    let all = match traded.as_slice() {
        [] => None,
        some => Some(market.rest.tickers_24h(some).await),
    };
    let each = |symbol: Symbol| match &all {
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
            answer(market, &symbol, &stamped, Origin::Rest, None)
        }
        Some(Err(error)) => streamed(market, &symbol, error).unwrap_or_else(|| Err(exchange_error(error.clone()))),
        None => Err(Error::internal("nothing was asked")),
    };
    symbols.into_iter().map(|symbol| symbol.and_then(each)).collect()
}

fn streamed(market: &Market, symbol: &Symbol, error: &RestError) -> Option<Result<Answer>> {
    let stamped = from_streams(market, symbol, error)?;
    Some(answer(market, symbol, &stamped, Origin::Stream, Some(because(error))))
}

pub(super) fn because(error: &RestError) -> String {
    format!("from the exchange's streams, because asking it failed: {error}")
}

/// What the streams say, where the exchange does not answer: one that asks for a pause still sends them.
pub(super) fn from_streams(market: &Market, symbol: &Symbol, error: &RestError) -> Option<Stamped<rest::Ticker>> {
    let stamped = last_day(market, symbol)?;
    let is_current =
        market.feed.health.trouble().is_none() && stamped.received.age_ms(&*market.clock) <= MAX_STREAMED_AGE_MS;
    (error.is_passing() && is_current).then_some(stamped)
}

/// The price and the last day without asking the exchange, however old that is.
pub(super) fn at_hand(market: &Market, symbol: &Symbol) -> Option<Answer> {
    answer(market, symbol, &last_day(market, symbol)?, Origin::Stream, None).ok()
}

fn last_day(market: &Market, symbol: &Symbol) -> Option<Stamped<rest::Ticker>> {
    let day = market.feed.board.lookup(&symbol.name)?;
    let close_time = day.exchange_time.unwrap_or_else(|| day.received.wall.as_millisecond());
    let change = day.last.decimal() - day.open.decimal();
    let live = market.feed.lookup(&symbol.name).and_then(|tracked| tracked.live());
    let bid = live.as_ref().map(|view| view.depth.bids.best());
    let ask = live.as_ref().map(|view| view.depth.asks.best());
    let price = |best: Option<Level>| best.map(|level| level.price);
    let quantity = |best: Option<Level>| best.map_or(Quantity::ZERO, |level| level.quantity);
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
        bid_price: bid.and_then(price),
        bid_qty: bid.map(quantity),
        ask_price: ask.and_then(price),
        ask_qty: ask.map(quantity),
    };
    Some(Stamped {
        value: ticker,
        exchange_time: day.exchange_time,
        sent: day.received,
        received: day.received,
        simulated: market.simulated().is_some(),
    })
}

fn answer(
    market: &Market,
    symbol: &Symbol,
    stamped: &Stamped<rest::Ticker>,
    origin: Origin,
    note: Option<String>,
) -> Result<Answer> {
    let provenance = Provenance::new(market, origin, stamped.exchange_time, stamped.received);
    let figures = Ticker { note, ..Ticker::from(&stamped.value) };
    Answer::new(Kind::Ticker, symbol, provenance, figures)
}

impl From<&rest::Ticker> for Ticker {
    fn from(ticker: &rest::Ticker) -> Self {
        let best = ticker.quote().map(|quote| {
            let touch = quote.bid.zip(quote.ask);
            let touch = touch.and_then(|(bid, ask)| Touch::new(bid, ask).ok());
            Best {
                best_bid: quote.bid.map(Quote::from),
                best_ask: quote.ask.map(Quote::from),
                spread_bps: touch.as_ref().and_then(Touch::spread_bps).and_then(rounded_bps),
            }
        });
        // Nothing was traded: the exchange's zeros are not figures.
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
pub(super) fn counted(ticker: &rest::Ticker) -> Option<u64> {
    Some(ticker.trades).filter(|trades| *trades > 0 || ticker.volume.is_zero())
}

/// Why figures of it are null.
fn missing(ticker: &rest::Ticker) -> Option<String> {
    let no_bids = ticker.quote().is_some_and(|quote| quote.bid.is_none());
    let no_asks = ticker.quote().is_some_and(|quote| quote.ask.is_none());
    let reasons = [
        ticker.last.is_none().then(|| "nothing was ever traded".to_owned()),
        counted(ticker).is_none().then(|| "the trades were not counted".to_owned()),
        no_bids.then(|| Unavailable::NoBids.to_string()),
        no_asks.then(|| Unavailable::NoAsks.to_string()),
    ];
    reasons.into_iter().flatten().reduce(|all, one| format!("{all}; {one}"))
}

/// How long a time figures are of: a recording may know less than a day.
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
        let mut sentences = vec![
            format!("{name} ({pair}): last price {last} {quote}, {change}% in {window}."),
            format!(
                "Last {window}: high {high}, low {low}, volume {volume} {base} worth {worth} {quote}, {trades} trades."
            ),
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

    fn snippet(&self, about: &About) -> Option<String> {
        let (name, quote) = (about.name(), about.quote());
        let (last, high, low) = (self.last_price?, self.high_price?, self.low_price?);
        let volume = self.quote_volume.decimal().round_dp(0);
        let change = self.exact_change_pct();
        let change = or_unknown(change.map(|change| format!("{:+}", change.round_dp(2))));
        Some(format!(
            "{name}: last price {last} {quote}, {change}% in 24 hours; high {high}, low {low}, volume {volume} {quote}."
        ))
    }

    fn headline(&self, page: &Page<'_>) -> Option<Headline> {
        Some(self.day().headline(self.bests().as_ref(), page))
    }

    fn shown(&self) -> &'static str {
        "last_price price_change_pct high_price low_price volume_base quote_volume best_bid best_ask spread_bps"
    }
}

impl Ticker {
    fn exact_change_pct(&self) -> Option<Decimal> {
        let (last, open) = (self.last_price?.decimal(), self.open_price?.decimal());
        (last - open).checked_div(open)?.checked_mul(Decimal::ONE_HUNDRED)
    }

    /// After a trade that is newer than the ticker: the change and the range follow it.
    pub(crate) fn after_trade(&self, price: Price) -> Self {
        let mut moved = self.clone();
        moved.last_price = Some(price);
        moved.high_price = self.high_price.map(|high| high.max(price));
        moved.low_price = self.low_price.map(|low| low.min(price));
        let change = moved.exact_change_pct().and_then(|change| change.to_f64());
        moved.price_change_pct = change.or(self.price_change_pct);
        moved
    }

    pub(crate) fn bests(&self) -> Option<Bests> {
        let best = self.best.as_ref()?;
        Some(Bests::new(best.best_bid, best.best_ask, best.spread_bps))
    }

    pub(crate) fn day(&self) -> DayFigures {
        DayFigures {
            last: self.last_price,
            open: self.open_price,
            high: self.high_price,
            low: self.low_price,
            change_pct: self.price_change_pct.and_then(decimal),
            volume: Some(self.volume_base),
            turnover: Some(self.quote_volume),
            window: Some((self.window_start, self.window_end)),
            unknown: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tribune_binance::testing::price;

    fn ticker() -> Ticker {
        Ticker {
            reason: None,
            best: None,
            last_price: Some(price("100")),
            price_change: None,
            price_change_pct: Some(25.0),
            open_price: Some(price("80")),
            high_price: Some(price("105")),
            low_price: Some(price("79")),
            weighted_average_price: None,
            volume_base: Quantity::parse("7.00000001").expect("a quantity"),
            quote_volume: Notional::parse("700").expect("money"),
            trades: None,
            window_start: Time::from_millis(0),
            window_end: Time::from_millis(DAY),
            standing: Standing::Exact,
            note: None,
        }
    }

    #[test]
    fn newer_trade_moves_change_and_range() {
        let moved = ticker().after_trade(price("110"));
        // (110 − 80)/80 = 37.5 %.
        assert_eq!(moved.price_change_pct, Some(37.5));
        assert_eq!((moved.high_price, moved.low_price), (Some(price("110")), ticker().low_price));
        let fallen = ticker().after_trade(price("60"));
        assert_eq!((fallen.price_change_pct, fallen.low_price), (Some(-25.0), Some(price("60"))));
        // An open of nothing has no change; what was known stays.
        let mut odd = ticker();
        odd.open_price = Some(Price::from_units(0));
        assert_eq!(odd.after_trade(price("60")).price_change_pct, Some(25.0));
    }

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

    /// Null says that nobody bids, and no field that it is not known.
    #[test]
    fn unknown_best_prices_stay_unknown_in_a_record() {
        let unknown = serde_json::to_value(ticker()).expect("JSON");
        assert!(unknown.get("best_bid").is_none());
        let read: Ticker = serde_json::from_value(unknown).expect("a ticker");
        assert_eq!(read, ticker());
        let nobody = Ticker { best: Some(Best { best_bid: None, best_ask: None, spread_bps: None }), ..ticker() };
        let written = serde_json::to_value(&nobody).expect("JSON");
        assert!(written["best_bid"].is_null() && written.get("best_bid").is_some());
        assert_eq!(serde_json::from_value::<Ticker>(written).expect("a ticker"), nobody);
    }
}
