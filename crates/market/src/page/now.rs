//! The board of the present. Live pages request it about once a second, so it reads memory (live book, tape, history) and
//! shares a few cached requests between all viewers. If the budget of pages is used up, the last answers stay, and their
//! ages grow.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::{join, join_all};
use tribune_core::{Error, Result};
use tribune_page::parts::{noted, panel};
use tribune_page::text::places;
use tribune_page::{Board, Content, Figure, Headline, Panel, Width};

use super::charts::whole_book;
use super::draw::{drawn, standing};
use super::frame::frame;
use super::{Page, board, missing, settled};
use crate::kinds::ranking::SILENT_MS;
use crate::kinds::{self, Answer};
use crate::market::{Cache, Market};
use tribune_binance::{Interval, Symbol};
use tribune_market_parts::book::{imbalance_line, spread_line};
use tribune_market_parts::parts::links;
use tribune_market_resolve::id::{Kind, MarketId};

/// With fewer trades on the tape, a page requests them.
const TRADES: usize = 50;

/// Other documents whose panels are on the page of a market.
const BESIDE: [(Kind, &[&str]); 4] = [
    (Kind::OrderBookL2, &["depth", "ladder", "cost_to_trade"]),
    // A document's candles of this interval cover 30 hours.
    (Kind::Klines(Interval::M15), &["candles"]),
    (Kind::VolumeProfile, &["profile"]),
    (Kind::OrderFlow, &["flow"]),
];

/// Answers of the exchange that pages of the present keep between looks.
pub(crate) type Pages = Cache<Answer>;

/// How long answers are kept for pages: longer intervals change less.
fn keep(kind: Kind) -> Duration {
    Duration::from_secs(match kind {
        Kind::Ticker => 5,
        Kind::Klines(interval) => match interval.millis() / 60_000 {
            ..=5 => 5,
            6..=60 => 30,
            _ => 120,
        },
        // All markets weigh as much as forty single prices.
        Kind::Markets | Kind::VolumeProfile | Kind::LiquidityVacuums => 60,
        _ => 10,
    })
}

/// A document's answer from the streams or the cache, and its age.
async fn read(market: &Market, pages: &Pages, id: &MarketId) -> std::result::Result<(Arc<Answer>, u64), String> {
    let current = kinds::at_hand(market, id, TRADES).filter(|answer| answer.provenance.age_ms < SILENT_MS);
    if let Some(answer) = current {
        let age_ms = answer.provenance.age_ms;
        return Ok((Arc::new(answer), age_ms));
    }
    let answer = kinds::load(market, id).boxed();
    let (answer, asked) = pages.get(id.to_string(), keep(id.kind()), &*market.clock, answer).await?;
    let since = market.clock.monotonic().saturating_duration_since(asked).as_millis();
    let age_ms = answer.provenance.age_ms.saturating_add(u64::try_from(since).unwrap_or(u64::MAX));
    Ok((answer, age_ms))
}

/// The board of a document's market now.
pub(crate) async fn now(market: &Market, pages: &Pages, id: &MarketId) -> Result<Board> {
    let market = &market.for_pages();
    let kind = id.kind();
    let symbol = match kind {
        Kind::Markets => None,
        _ => Some(market.symbol(id.symbol()).await?),
    };
    let has_no_book = matches!(
        kind,
        Kind::ExchangeInfo | Kind::Klines(_) | Kind::LiquidityVacuums | Kind::Markets | Kind::VolumeProfile
    );
    if let Some(symbol) = symbol.as_ref().filter(|symbol| symbol.is_traded() && !has_no_book) {
        market.watched(symbol);
    }
    let beside: &[_] = if kind == Kind::Ticker { &BESIDE } else { &[] };
    let ids: Vec<MarketId> = beside.iter().map(|(kind, _)| MarketId::new(*kind, id.symbol().clone())).collect();
    let others = join_all(ids.iter().map(|id| read(market, pages, id)));
    let (main, others) = join(read(market, pages, id), others).await;
    let (main, age_ms) = main.map_err(Error::unavailable)?;
    let tape = symbol.as_ref().and_then(|symbol| market.feed.lookup(&symbol.name)?.tape.last());
    let last_price = tape.map(|trade| trade.price.as_f64());
    let mut board = board(&Page { last_price, ..Page::of(&main, age_ms) }, false);
    for ((kind, keys), other) in beside.iter().zip(others) {
        match other {
            Ok((answer, age_ms)) => {
                let page = Page { last_price, ..Page::of(&answer, age_ms) };
                if answer.provenance.book_state.is_some() {
                    let of_book = frame(page.about, page.provenance, "", false);
                    (board.badges, board.notes) = (of_book.badges, of_book.notes);
                }
                let (headline, mut panels) = drawn(&page);
                panels.extend(headline.filter(|_| *kind == Kind::OrderFlow).map(|headline| flow(headline, &page)));
                let wanted = panels.into_iter().filter(|panel| keys.contains(&panel.key));
                board.panels.extend(wanted.map(|panel| page.dated(panel)));
            }
            Err(why) => board.panels.extend(keys.iter().map(|key| missing(key, &why))),
        }
    }
    if let Some(symbol) = &symbol {
        add_live_book(&mut board, market, symbol, &Page::of(&main, age_ms));
        let has_report = market.always_tracked().contains(&symbol.name);
        board.links = links(&symbol.name, has_report);
    }
    board.is_live = kind != Kind::ExchangeInfo;
    Ok(settled(board, &Page::of(&main, age_ms)))
}

/// The sums of order flow, for a page that is about more.
fn flow(headline: Headline, page: &Page<'_>) -> Panel {
    let net = Figure {
        tone: headline.change.map_or_else(Default::default, |(_, tone)| tone),
        ..Figure::new(headline.label, headline.value)
    };
    let figures = std::iter::once(net).chain(headline.figures).collect();
    noted(panel("flow", "Order flow", Width::Half, Content::Figures(figures)), standing(&page.named.figures))
}

/// On a page with a book: the whole live book instead of the listed levels, and the lines of its last minutes.
fn add_live_book(board: &mut Board, market: &Market, symbol: &Symbol, page: &Page<'_>) {
    let has_levels = board.panels.iter().any(|panel| panel.key == "depth");
    if !has_levels && !page.named.headline.starts_with("mid ") {
        return;
    }
    let tracked = market.feed.lookup(&symbol.name);
    let samples = tracked.as_ref().map(|tracked| tracked.watch.history());
    let now = market.exchange_now();
    board.panels.extend([spread_line(samples.as_deref(), now), imbalance_line(samples.as_deref(), now)]);
    if let Some(view) = tracked.and_then(|tracked| tracked.live()).filter(|_| has_levels) {
        let step = symbol.tick_size.map(|step| step.to_string());
        let live = whole_book(&view.depth, places([step.as_deref().unwrap_or("0.00000001")]), page);
        board.panels.retain(|panel| !live.iter().any(|live| live.key == panel.key));
        board.panels.extend(live);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn longer_candles_are_cached_longer() {
        let secs = |interval| keep(Kind::Klines(interval)).as_secs();
        assert_eq!((secs(Interval::M1), secs(Interval::M5)), (5, 5));
        assert_eq!((secs(Interval::M15), secs(Interval::H1)), (30, 30));
        assert_eq!((secs(Interval::H4), secs(Interval::D1)), (120, 120));
    }
}
