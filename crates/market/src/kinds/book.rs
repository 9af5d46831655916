//! Order books: their levels, and the best prices alone.

use super::prelude::*;
use tribune_analytics::{Quote, Quotes, quotes};
use tribune_binance::{Depth, Level};

/// Levels a side that one answer shows.
const MAX_SHOWN: usize = 100;

/// The version of the book behind the figures.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct BookOf {
    last_update_id: u64,
    bid_levels_known: usize,
    ask_levels_known: usize,
}

impl BookOf {
    pub(super) fn new(book: &BookReading) -> Self {
        Self {
            last_update_id: book.view.last_update_id,
            bid_levels_known: book.view.depth.bids.known().count(),
            ask_levels_known: book.view.depth.asks.known().count(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct OrderBook {
    #[serde(flatten)]
    of: BookOf,
    #[serde(flatten)]
    middle: Middle,
    spread: Option<Price>,
    bids_total: Total,
    asks_total: Total,
    levels_asked: usize,
    standing: Standing,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<Unavailable>,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
    #[serde(flatten)]
    levels: Levels,
}

/// The best prices of both sides, and what lies between them.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub(super) struct Middle {
    best_bid: Option<Quote>,
    best_ask: Option<Quote>,
    mid: Option<Decimal>,
    spread_bps: Option<f64>,
}

/// The listed levels of both sides, best first.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Levels {
    bids_listed: usize,
    asks_listed: usize,
    bids: Table<Level>,
    asks: Table<Level>,
}

/// The sum of the levels of one side that are used.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Total {
    levels_used: usize,
    quantity_base: Option<Quantity>,
    quote: Option<Notional>,
    complete: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<Unavailable>,
}

impl Row for Level {
    const COLUMNS: &'static [&'static str] = &["price", "quantity_base"];
    fn cells(&self) -> impl Serialize {
        (self.price, self.quantity)
    }
}

impl Levels {
    pub(crate) fn new(depth: &Depth, most: usize) -> Self {
        let bids: Vec<Level> = depth.bids.known().take(most).collect();
        let asks: Vec<Level> = depth.asks.known().take(most).collect();
        Self { bids_listed: bids.len(), asks_listed: asks.len(), bids: Table(bids), asks: Table(asks) }
    }
}

/// The levels of the book, best first.
pub async fn load(market: &Market, symbol: &str, limit: usize) -> Result<Answer> {
    let symbol = market.traded(symbol).await?;
    let asked = u32::try_from(limit).unwrap_or(u32::MAX).clamp(100, 5_000);
    let book = market.book_of(&symbol, asked).await?;
    let depth = &book.view.depth;
    let quotes = quotes(depth).map_err(|reason| no_figures(&symbol, &reason))?;
    let (bids, asks) = (depth.bids.known(), depth.asks.known());
    let has_more = limit > MAX_SHOWN && bids.clone().count().max(asks.clone().count()) > MAX_SHOWN;
    let figures = OrderBook {
        of: BookOf::new(&book),
        middle: Middle::of(&quotes),
        spread: quotes.spread,
        bids_total: Total::of(bids, limit, depth.bids.reach.is_none(), Unavailable::NoBids),
        asks_total: Total::of(asks, limit, depth.asks.reach.is_none(), Unavailable::NoAsks),
        levels_asked: limit,
        standing: Standing::Exact,
        reason: quotes.reason,
        note: has_more.then(|| {
            format!("the best {MAX_SHOWN} levels a side are listed; levels_used says how many each total covers")
        }),
        levels: Levels::new(depth, limit.min(MAX_SHOWN)),
    };
    Answer::new(Kind::OrderBook, &symbol, Provenance::of_book(market, &book), figures)
}

impl Total {
    /// `whole` if no levels beyond the known ones exist. An empty side has a reason instead of a total.
    fn of(side: impl Iterator<Item = Level> + Clone, levels: usize, whole: bool, empty: Unavailable) -> Self {
        let used = || side.clone().take(levels);
        let levels_used = used().count();
        let quantity = used().try_fold(Quantity::ZERO, |sum, level| sum.checked_add(level.quantity));
        let worth = used().try_fold(Notional::ZERO, |sum, level| sum.checked_add(level.price.times(level.quantity)?));
        let is_empty = levels_used == 0;
        Self {
            levels_used,
            quantity_base: quantity.filter(|_| !is_empty),
            quote: worth.filter(|_| !is_empty),
            complete: whole || (levels_used == levels && !is_empty),
            reason: is_empty.then_some(empty),
        }
    }
}

impl Figures for OrderBook {
    fn sentences(&self, about: &About) -> Vec<String> {
        vec![self.middle.sentence(about)]
    }

    fn headline(&self) -> &'static str {
        Middle::HEADLINE
    }
}

/// Best prices and what they say: mid, spread, microprice, imbalance.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct BestPrices {
    #[serde(flatten)]
    of: BookOf,
    #[serde(flatten)]
    quotes: Quotes,
}

pub async fn load_best(market: &Market, symbol: &str) -> Result<Answer> {
    let symbol = market.traded(symbol).await?;
    let book = market.book(&symbol).await?;
    let figures = BestPrices {
        of: BookOf::new(&book),
        quotes: quotes(&book.view.depth).map_err(|reason| no_figures(&symbol, &reason))?,
    };
    Answer::new(Kind::OrderBookL1, &symbol, Provenance::of_book(market, &book), figures)
}

impl Figures for BestPrices {
    fn sentences(&self, about: &About) -> Vec<String> {
        let microprice = or_unknown(self.quotes.microprice);
        let imbalance = or_unknown(self.quotes.imbalance_l1);
        let quote = about.quote();
        vec![
            Middle::of(&self.quotes).sentence(about),
            format!(
                "Microprice {microprice} {quote}, imbalance of the best levels {imbalance} (-1 all ask, 1 all bid)."
            ),
        ]
    }

    fn headline(&self) -> &'static str {
        Middle::HEADLINE
    }
}

impl Middle {
    pub(super) const HEADLINE: &'static str = "mid best_bid best_ask spread_bps";

    pub(super) const fn of(quotes: &Quotes) -> Self {
        Self { best_bid: quotes.best_bid, best_ask: quotes.best_ask, mid: quotes.mid, spread_bps: quotes.spread_bps }
    }

    pub(super) fn sentence(&self, about: &About) -> String {
        let (name, base, quote) = (about.name(), about.base(), about.quote());
        let side = |best: Option<Quote>| {
            let best = best.map(|best| format!("{} for {} {base}", best.price, best.quantity_base));
            best.unwrap_or_else(|| "none".to_owned())
        };
        let (bid, ask) = (side(self.best_bid), side(self.best_ask));
        let (mid, spread) = (or_unknown(self.mid), or_unknown(self.spread_bps));
        format!("{name}: best bid {bid}, best ask {ask}; mid {mid} {quote}, spread {spread} basis points.")
    }
}
