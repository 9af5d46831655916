//! What a search finds of a document: its snippet and as much of its answer as is at hand, without asking the exchange.

use std::borrow::Cow;

use futures::FutureExt as _;
use jiff::Timestamp;

use super::{About, Answer, AnyFigures, pair_name, short};
use super::{anomalies, flow, health, info, open_candle, ranking, ticker, trades};
use crate::market::{BookReading, Market};
use ranking::SILENT_MS;
use tribune_binance::model::{Symbol, SymbolStatus};
use tribune_binance::moment::written;
use tribune_binance::number::Price;
use tribune_market_resolve::id::{AnalyticsKind, Kind, MarketId};

/// What a search result says, and the answer that its page shows.
pub(crate) struct Found {
    pub(crate) title: String,
    pub(crate) snippet: String,
    pub(crate) as_of: Timestamp,
    pub(crate) kind: Kind,
    /// `None` while nothing is known of the market.
    pub(crate) answer: Option<Answer>,
}

pub(crate) fn found(market: &Market, symbol: &Symbol, kind: Kind) -> Found {
    let about = About::symbol(symbol);
    let (answer, sentence) = match symbol.status {
        SymbolStatus::Trading => traded(market, symbol, kind),
        _ => {
            let rules = info::answer(market, symbol).ok();
            let sentence = rules.as_ref().and_then(snippet);
            let sentence = sentence.map(|rules| format!("{} is not traded now. {rules}", symbol.name));
            (rules, sentence)
        }
    };
    let (title, content) = described(kind);
    let sentence = sentence.unwrap_or_else(|| to_fetch(&about, content, answer.as_ref()));
    let title = format!("{} {title} ({})", symbol.name, pair_name(&about));
    let silent_ms = silent_ms(market, symbol).filter(|_| kind != Kind::ExchangeInfo);
    labelled(market, kind, &title, &sentence, silent_ms, answer)
}

/// The same of all markets of one quote asset; `None` while nothing is known of any.
pub(crate) fn found_all(market: &Market, money: &str) -> Option<Found> {
    let answer = ranking::at_hand(market, money)?;
    let sentence = snippet(&answer)?;
    let title = answer.title.trim_start_matches("SIMULATED ").to_owned();
    let silent_ms = Some(answer.provenance.age_ms);
    Some(labelled(market, Kind::Markets, &title, &sentence, silent_ms, Some(answer)))
}

/// What is said before anything else, because snippets are cut: that it is simulated, and that it is old.
fn labelled(
    market: &Market,
    kind: Kind,
    title: &str,
    sentence: &str,
    silent_ms: Option<u64>,
    answer: Option<Answer>,
) -> Found {
    let label = market.simulated().map_or("", |_| "SIMULATED ");
    let stale = match silent_ms {
        Some(silent) if silent >= SILENT_MS => format!("STALE (nothing was heard for {} s): ", silent / 1_000),
        _ => String::new(),
    };
    let as_of = answer.as_ref().map(|answer| answer.provenance.as_of());
    let as_of = as_of.unwrap_or_else(|| market.clock.now());
    Found {
        title: format!("{label}{title}"),
        snippet: format!("{label}{stale}{sentence} As of {}.", written(as_of)),
        as_of,
        kind,
        answer,
    }
}

fn snippet(answer: &Answer) -> Option<String> {
    answer.figures.kind().snippet(&answer.about)
}

/// The answer of the document itself and its snippet as far as they are at hand, else the price and its last day.
fn traded(market: &Market, symbol: &Symbol, kind: Kind) -> (Option<Answer>, Option<String>) {
    if let Some(own) = at_hand(market, symbol, kind) {
        let sentence = snippet(&own);
        return (Some(own), sentence);
    }
    let day = ticker::at_hand(market, symbol);
    let sentence = day.as_ref().and_then(|day| day_sentence(day, symbol, kind));
    let sentence = sentence.or_else(|| match kind {
        // What was traded or is offered tells a price too.
        Kind::Ticker => {
            [Kind::Trades, Kind::OrderBookL1].into_iter().find_map(|kind| snippet(&at_hand(market, symbol, kind)?))
        }
        _ => None,
    });
    (day, sentence)
}

/// The answer of a document, as far as it can be given without asking the exchange.
fn at_hand(market: &Market, symbol: &Symbol, kind: Kind) -> Option<Answer> {
    let live = || {
        let tracked = market.feed.lookup(&symbol.name)?;
        Some(BookReading::live(tracked.live()?, market.last_word(&tracked)))
    };
    // Nothing of this has to be waited for.
    let ready = || {
        let id = MarketId::new(kind, symbol.name.clone());
        super::load(market, &id).now_or_never()?.ok()
    };
    match kind {
        Kind::Ticker => ticker::at_hand(market, symbol),
        Kind::OrderBook | Kind::OrderBookL1 | Kind::OrderBookL2 => live().and_then(|_| ready()),
        Kind::ExchangeInfo => info::answer(market, symbol).ok(),
        Kind::Trades => trades::at_hand(market, symbol, 1, super::DOCUMENT_TRADES),
        Kind::Klines(interval) => open_candle::at_hand(market, symbol, interval),
        Kind::Analytics(AnalyticsKind::OrderFlow) => flow::at_hand(market, symbol),
        Kind::Analytics(AnalyticsKind::Anomalies) => anomalies::at_hand(market, symbol, &live()?),
        Kind::Analytics(AnalyticsKind::Health) => health::at_hand(market, symbol, &live()?),
        Kind::Analytics(AnalyticsKind::VolumeProfile | AnalyticsKind::LiquidityVacuums)
        | Kind::Markets
        | Kind::Report => None,
    }
}

/// What the last day says of a document that needs candles.
fn day_sentence(day: &Answer, symbol: &Symbol, kind: Kind) -> Option<String> {
    let AnyFigures::Ticker(day) = &day.figures else {
        return None;
    };
    let Symbol { name, base, quote, .. } = symbol;
    let (low, high, last) = (day.low_price?, day.high_price?, day.last_price?);
    match kind {
        Kind::Analytics(AnalyticsKind::VolumeProfile) => {
            let volume = day.volume_base.decimal();
            let average = day.quote_volume.decimal().checked_div(volume)?;
            let places = price_places(symbol.tick_size, &[last, day.open_price?, high, low]);
            let (volume, average) = (short(volume), average.round_dp(places));
            Some(format!(
                "{name}: in 24 hours {volume} {base} traded from {low} to {high} {quote}, on average at {average}. Fetch it for the profile."
            ))
        }
        Kind::Analytics(AnalyticsKind::LiquidityVacuums) => Some(format!(
            "{name}: in 24 hours from {low} to {high}, last {last} {quote}. Fetch it for the prices between with little volume.",
        )),
        _ => None,
    }
}

/// Decimal places of a market's prices: of their step, or of the finest one seen. One price alone has too few where it
/// ends in zeros.
fn price_places(step: Option<Price>, seen: &[Price]) -> u32 {
    let scale = |price: Price| price.decimal().scale();
    let finest = || seen.iter().copied().map(scale).max();
    step.map(scale).or_else(finest).unwrap_or_default()
}

/// The snippet of a document without figures at hand: the last price, and what fetching it brings.
fn to_fetch(about: &About, content: &str, day: Option<&Answer>) -> String {
    let (name, quote) = (about.name(), about.quote());
    let last = day.and_then(|day| match &day.figures {
        AnyFigures::Ticker(day) => day.last_price,
        _ => None,
    });
    match last {
        _ if content.is_empty() => format!("{name}: no price is known yet; fetch it."),
        Some(last) => format!("{name}: last {last} {quote}. Fetch it for {content}."),
        None => format!("{name}: nothing is known of it yet. Fetch it for {content}."),
    }
}

/// For how long a symbol's streams have been silent.
fn silent_ms(market: &Market, symbol: &Symbol) -> Option<u64> {
    let tracked = market.feed.lookup(&symbol.name);
    let live = tracked.filter(|tracked| tracked.live().is_some());
    let heard = live.map(|tracked| market.last_word(&tracked));
    Some(heard.or(market.feed.board.heard())?.age_ms(&*market.clock))
}

/// What a document of this kind is about, and what fetching it brings beyond the price.
fn described(kind: Kind) -> (Cow<'static, str>, &'static str) {
    let (title, content) = match kind {
        Kind::Klines(interval) => return (format!("{interval} candles").into(), "the candles"),
        Kind::Ticker => ("price and last 24 hours", ""),
        Kind::OrderBook => ("order book", "the bids and asks"),
        Kind::OrderBookL1 => ("best bid and ask", "the best bid and ask, and the spread"),
        Kind::OrderBookL2 => ("order book depth", "the depth, and what trades would cost"),
        Kind::Trades => ("recent trades", "the trades"),
        Kind::ExchangeInfo => ("trading rules", ""),
        Kind::Report => ("market report", ""),
        Kind::Markets => ("among all markets", ""),
        Kind::Analytics(AnalyticsKind::OrderFlow) => ("order flow", "what buyers took and sellers gave"),
        Kind::Analytics(AnalyticsKind::VolumeProfile) => ("volume profile", "the profile"),
        Kind::Analytics(AnalyticsKind::Anomalies) => ("market anomalies", "what is unusual"),
        Kind::Analytics(AnalyticsKind::LiquidityVacuums) => ("liquidity vacuums", "the prices with little volume"),
        Kind::Analytics(AnalyticsKind::Health) => ("market health", "the score"),
    };
    (title.into(), content)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prices_have_the_places_of_their_step() {
        let price = |text: &str| Price::parse(text).expect("a price");
        let seen = [price("0.00001000"), price("0.00000991")];
        assert_eq!(price_places(Some(price("0.00000001")), &seen[..1]), 8);
        assert_eq!(price_places(None, &seen), 8);
        assert_eq!(price_places(Some(price("0.10")), &seen), 1);
        assert_eq!(price_places(Some(price("1.00")), &[]), 0);
        assert_eq!(price_places(None, &[]), 0);
    }
}
