//! Order books: their levels, and the best prices alone.

use tribune_market_parts::book::{Pair, depth_chart, ladder};
use tribune_page::text::{padded, ratio};

use super::prelude::*;
use tribune_analytics::quotes::{Quote, Quotes, Touch, quotes};
use tribune_binance::book::{Depth, Level};

/// Levels a side that one answer shows.
const MAX_SHOWN: usize = 100;

/// Which book figures are of.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BookOf {
    last_update_id: u64,
    bid_levels_known: usize,
    ask_levels_known: usize,
}

impl BookOf {
    pub(super) fn new(book: &BookReading) -> Self {
        Self {
            last_update_id: book.view.last_update_id,
            bid_levels_known: book.view.depth.known_bids().count(),
            ask_levels_known: book.view.depth.known_asks().count(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
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
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(super) struct Middle {
    best_bid: Option<Quote>,
    best_ask: Option<Quote>,
    #[schemars(with = "Option<String>")]
    mid: Option<Decimal>,
    spread_bps: Option<f64>,
}

/// The listed levels of both sides, best first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Levels {
    bids_listed: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    bids_cut: Option<String>,
    asks_listed: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    asks_cut: Option<String>,
    bids: Table<Level>,
    asks: Table<Level>,
}

/// What rests on the levels of one side that are used.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
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
    type Cells = (Price, Quantity);
    fn cells(&self) -> Self::Cells {
        (self.price, self.quantity)
    }
    fn from_cells((price, quantity): Self::Cells) -> Self {
        Self { price, quantity }
    }
}

impl Levels {
    /// As many as fit in an answer with so many tables.
    pub(super) fn new(depth: &Depth, most: usize, tables: usize) -> Self {
        let bids = Table::fitted(depth.known_bids().take(most).collect(), Keep::First, tables);
        let asks = Table::fitted(depth.known_asks().take(most).collect(), Keep::First, tables);
        Self {
            bids_listed: bids.rows.len(),
            bids_cut: bids.cut(),
            asks_listed: asks.rows.len(),
            asks_cut: asks.cut(),
            bids,
            asks,
        }
    }

    pub(super) fn panels(&self, page: &Page<'_>) -> [Panel; 2] {
        book_panels(&self.bids.rows, &self.asks.rows, page)
    }
}

/// The pictures of listed levels, as a book: beyond them nothing is known.
pub(crate) fn book_panels(bids: &[Level], asks: &[Level], page: &Page<'_>) -> [Panel; 2] {
    let depth = Depth {
        bid_reach: bids.last().map(|level| level.price),
        ask_reach: asks.last().map(|level| level.price),
        bids: bids.iter().rev().copied().collect(),
        asks: asks.iter().rev().copied().collect(),
    };
    let pair = Pair {
        base: page.base().to_owned(),
        quote: page.quote().to_owned(),
        price_places: places_of(bids.iter().chain(asks).map(|level| level.price)),
    };
    [depth_chart(&depth, &pair), ladder(&depth, &pair)]
}

/// The levels of the book, best first.
pub async fn load(market: &Market, symbol: &str, limit: usize) -> Result<Answer> {
    let symbol = market.traded(symbol).await?;
    let asked = u32::try_from(limit).unwrap_or(u32::MAX).clamp(100, 5_000);
    let book = market.book_of(&symbol, asked).await?;
    let depth = &book.view.depth;
    let quotes = quotes(depth).map_err(|reason| no_figures(&symbol, &reason))?;
    let (bids, asks) = (depth.known_bids(), depth.known_asks());
    let has_more = limit > MAX_SHOWN && bids.clone().count().max(asks.clone().count()) > MAX_SHOWN;
    let figures = OrderBook {
        of: BookOf::new(&book),
        middle: Middle::of(&quotes),
        spread: quotes.spread,
        bids_total: Total::of(bids, limit, depth.bid_reach.is_none(), Unavailable::NoBids),
        asks_total: Total::of(asks, limit, depth.ask_reach.is_none(), Unavailable::NoAsks),
        levels_asked: limit,
        standing: Standing::Exact,
        reason: quotes.reason,
        note: has_more
            .then(|| format!("the best {MAX_SHOWN} levels a side are listed; totals are over the levels they say")),
        levels: Levels::new(depth, limit.min(MAX_SHOWN), 2),
    };
    Answer::new(Kind::OrderBook, &symbol, Provenance::of_book(market, &book), figures)
}

impl Total {
    /// `whole` if the side has no levels beyond those known. Of an empty side there is no total, but a reason.
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

    fn snippet(&self, about: &About) -> Option<String> {
        self.middle.snippet(about)
    }

    fn headline(&self, page: &Page<'_>) -> Option<Headline> {
        Some(self.middle.headline(page))
    }

    fn version(&self) -> Option<(u64, usize)> {
        Some((self.of.last_update_id, self.levels_asked))
    }

    fn panels(&self, page: &Page<'_>) -> Vec<Panel> {
        self.levels.panels(page).into()
    }

    fn shown(&self) -> &'static str {
        Middle::SHOWN
    }
}

/// Best prices and what they say: mid, spread, microprice, imbalance.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
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

    fn snippet(&self, about: &About) -> Option<String> {
        Middle::of(&self.quotes).snippet(about)
    }

    fn headline(&self, page: &Page<'_>) -> Option<Headline> {
        Some(Middle::of(&self.quotes).headline(page))
    }

    fn shown(&self) -> &'static str {
        Middle::SHOWN
    }
}

impl Middle {
    /// What the headline shows.
    pub(super) const SHOWN: &'static str = "mid best_bid best_ask spread_bps";

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

    /// `None` if a side is empty.
    fn snippet(&self, about: &About) -> Option<String> {
        let (bid, ask, spread) = (self.best_bid?, self.best_ask?, self.spread_bps?);
        let (bid_size, ask_size) = (bid.quantity_base, ask.quantity_base);
        let (bid, ask, name, base) = (bid.price, ask.price, about.name(), about.base());
        Some(format!(
            "{name}: best bid {bid} for {bid_size}, best ask {ask} for {ask_size} {base}; spread {spread} bps."
        ))
    }

    /// What a book alone says: the middle of its best prices.
    pub(super) fn headline(&self, page: &Page<'_>) -> Headline {
        let mid = self.mid.map(|mid| page.money(mid));
        let bests = Bests::new(self.best_bid, self.best_ask, self.spread_bps);
        page.headline(
            "Mid price",
            mid.unwrap_or_else(|| Amount::plain("one side is empty")),
            bests.figures(page.base(), page.quote(), bests.places()).into(),
        )
    }
}

/// The best prices of both sides, for a headline.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Bests {
    bid: Option<Quote>,
    ask: Option<Quote>,
    spread_bps: Option<Decimal>,
}

impl Bests {
    pub(crate) fn new(bid: Option<Quote>, ask: Option<Quote>, spread_bps: Option<f64>) -> Self {
        Self { bid, ask, spread_bps: spread_bps.and_then(decimal) }
    }

    /// `None` if the book is wrong.
    pub(crate) fn of_depth(depth: &Depth) -> Option<Self> {
        let quotes = quotes(depth).ok()?;
        Some(Self {
            bid: quotes.best_bid,
            ask: quotes.best_ask,
            spread_bps: Touch::of(depth).ok().and_then(|touch| touch.spread_bps()),
        })
    }

    pub(super) fn places(&self) -> usize {
        places_of(self.bid.iter().chain(&self.ask).map(|best| best.price))
    }

    pub(super) fn figures(&self, base: &str, quote: &str, places: usize) -> [Figure; 3] {
        let best = |label: &str, best: &Option<Quote>, nobody: &str| match best {
            Some(best) => Figure {
                note: Some(format!("for {} {base}", best.quantity_base)),
                ..Figure::new(label, Amount::new(padded(&best.price.to_string(), places), quote))
            },
            None => Figure::unknown(label, nobody),
        };
        let spread = self.spread_bps.map(|bps| Amount::new(ratio(bps), "bps"));
        [
            best("Best bid", &self.bid, "nobody bids"),
            best("Best ask", &self.ask, "nobody offers"),
            figure("Spread", spread, "it takes a bid and an ask"),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tribune_binance::testing::{price, quantity};

    #[test]
    fn missing_best_prices_say_so() {
        let best = Quote { price: price("99.5"), quantity_base: quantity("2") };
        let bests = Bests::new(Some(best), None, None);
        let [bid, ask, spread] = bests.figures("BTC", "USDT", 2);
        assert_eq!(bid.value, Some(Amount::new("99.50", "USDT")));
        assert_eq!(bid.note.as_deref(), Some("for 2 BTC"));
        assert_eq!((ask.value, ask.note.as_deref()), (None, Some("nobody offers")));
        assert!(spread.value.is_none() && spread.note.is_some());
        let tight = Bests::new(Some(best), None, Some(0.001_562_5));
        let [.., spread] = tight.figures("BTC", "USDT", 2);
        assert_eq!(spread.value, Some(Amount::new("0.00156", "bps")));
        let tighter = Bests::new(None, None, Some(1e-6));
        assert_eq!(tighter.spread_bps, Some(Decimal::new(1, 6)));
    }
}
