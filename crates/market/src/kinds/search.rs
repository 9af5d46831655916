//! Search results: as much of an answer as is in memory, without a request to the exchange.

use futures::FutureExt as _;
use jiff::Timestamp;

use super::known::or_unknown;
use super::{About, Answer, flow, info, pair_name, ranking, ticker, title, trades};
use crate::market::Market;
use ranking::SILENT_MS;
use tribune_binance::{Symbol, written};
use tribune_market_resolve::id::{Kind, MarketId};

/// A search result, and the answer that its page shows.
pub(crate) struct Found {
    pub(crate) title: String,
    pub(crate) snippet: String,
    pub(crate) as_of: Timestamp,
    pub(crate) kind: Kind,
    /// `None` while nothing is known of the market.
    pub(crate) answer: Option<Answer>,
}

pub(crate) fn found(market: &Market, symbol: &Symbol, kind: Kind) -> Found {
    let (name, what) = (&symbol.name, title(kind));
    let is_traded = symbol.is_traded();
    let own = MarketId::new(if is_traded { kind } else { Kind::ExchangeInfo }, name.clone());
    let own = at_hand(market, &own, 1);
    let is_own = own.is_some();
    let answer = own.or_else(|| ticker::at_hand(market, symbol));
    let sentence = match &answer {
        Some(rules) if !is_traded => format!("{name} is not traded now. {}", rules.brief()),
        Some(own) if is_own => own.brief(),
        Some(_) => {
            let last = or_unknown(market.feed.board.lookup(name).map(|day| day.last));
            format!("{name}: last {last} {}. Fetch it for the {what}.", symbol.quote)
        }
        None => format!("{name}: no price is known yet. Fetch it for the {what}."),
    };
    let title = format!("{name} {what} ({})", pair_name(&About::symbol(symbol)));
    let silent_ms = silent_ms(market, symbol).filter(|_| kind != Kind::ExchangeInfo);
    labelled(market, kind, &title, &sentence, silent_ms, answer)
}

/// The same of all markets of one quote asset; `None` while nothing is known of any.
pub(crate) fn found_all(market: &Market, money: &str) -> Option<Found> {
    let answer = ranking::at_hand(market, money)?;
    let (title, sentence) = (answer.what(), answer.brief());
    let silent_ms = Some(answer.provenance.age_ms);
    Some(labelled(market, Kind::Markets, &title, &sentence, silent_ms, Some(answer)))
}

/// Snippets are cut, so that data is simulated or stale comes first.
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
        Some(silent) if silent >= SILENT_MS => format!("STALE (no data for {} s): ", silent / 1_000),
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

/// The answer of a document from memory, if it is there; with at least so many trades.
pub(crate) fn at_hand(market: &Market, id: &MarketId, least_trades: usize) -> Option<Answer> {
    if id.kind() == Kind::Markets {
        return ranking::at_hand(market, id.symbol());
    }
    let table = market.known_symbols()?;
    let symbol = table.lookup(id.symbol())?;
    match id.kind() {
        Kind::Ticker => ticker::at_hand(market, symbol),
        // With a live book the future is ready at once.
        Kind::OrderBook | Kind::OrderBookL1 | Kind::OrderBookL2 => {
            market.feed.lookup(&symbol.name)?.live()?;
            super::load(market, id).now_or_never()?.ok()
        }
        Kind::ExchangeInfo => info::answer(market, symbol).ok(),
        Kind::Trades => trades::at_hand(market, symbol, least_trades),
        Kind::OrderFlow => flow::at_hand(market, symbol),
        _ => None,
    }
}

/// How long a symbol's streams have been silent.
fn silent_ms(market: &Market, symbol: &Symbol) -> Option<u64> {
    let tracked = market.feed.lookup(&symbol.name);
    let live = tracked.filter(|tracked| tracked.live().is_some());
    let heard = live.map(|tracked| market.last_confirmed(&tracked));
    Some(heard.or(market.feed.board.heard())?.age_ms(&*market.clock))
}
