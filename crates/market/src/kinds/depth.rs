//! How deep a market is: money near the mid, imbalance, and what trades would cost.

use super::book::{BookOf, Levels, Middle};
use super::prelude::*;
use tribune_analytics::{Action, BAND_BPS, Band, Cost, Size, TopImbalance, bands, cost, quotes, sizes, top_imbalance};
use tribune_binance::Depth;

/// Levels a side that an answer lists.
const MAX_SHOWN: usize = 20;

#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct MarketDepth {
    #[serde(flatten)]
    of: BookOf,
    #[serde(flatten)]
    middle: Middle,
    microprice: Option<Decimal>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<Unavailable>,
    top_levels: Known<TopImbalance>,
    bands: Known<Vec<Band>>,
    cost_to_trade_listed: usize,
    cost_to_trade: Table<(Notional, Cost)>,
    #[serde(flatten)]
    levels: Levels,
}

impl Row for (Notional, Cost) {
    const COLUMNS: &'static [&'static str] =
        &["side", "notional_quote", "vwap", "cost_bps", "cost_quote", "filled", "complete", "reason"];
    fn cells(&self) -> impl Serialize {
        let (size, cost) = self;
        (cost.side, size, cost.vwap, cost.cost_bps, cost.cost_quote, cost.filled, cost.complete, &cost.reason)
    }
}

pub async fn load(market: &Market, symbol: &str, depth_levels: usize) -> Result<Answer> {
    let symbol = market.traded(symbol).await?;
    let book = market.book(&symbol).await?;
    let depth = &book.view.depth;
    let quotes = quotes(depth).map_err(|reason| no_figures(&symbol, &reason))?;
    let costs = costs(market, &symbol, depth);
    let figures = MarketDepth {
        of: BookOf::new(&book),
        middle: Middle::of(&quotes),
        microprice: quotes.microprice,
        reason: quotes.reason,
        top_levels: top_imbalance(depth, depth_levels).into(),
        bands: bands(depth).into(),
        cost_to_trade_listed: costs.len(),
        cost_to_trade: Table(costs),
        levels: Levels::new(depth, depth_levels.min(MAX_SHOWN)),
    };
    Answer::new(Kind::OrderBookL2, &symbol, Provenance::of_book(market, &book), figures)
}

/// What trades of the default sizes would cost: a document takes no size.
fn costs(market: &Market, symbol: &Symbol, depth: &Depth) -> Vec<(Notional, Cost)> {
    let day = market.feed.board.lookup(&symbol.name).map(|day| day.quote_volume);
    let each = |side| {
        let sizes = sizes(&symbol.quote, day).into_iter();
        sizes.filter_map(move |size| Some((size, cost(depth, side, Size::Quote(size)).ok()?)))
    };
    each(Action::Buy).chain(each(Action::Sell)).collect()
}

impl Figures for MarketDepth {
    fn sentences(&self, about: &About) -> Vec<String> {
        let near = self.bands.value().and_then(|bands| bands.iter().find(|band| band.distance_bps == BAND_BPS));
        let near = near.map(|band| near_mid(about, band));
        near.into_iter().chain([self.middle.sentence(about)]).collect()
    }

    fn headline(&self) -> &'static str {
        Middle::HEADLINE
    }
}

/// `BTCUSDT: within 25 bps of mid 2000000 USDT of bids and 1900000 USDT of asks; imbalance 0.026.`
fn near_mid(about: &About, near: &Band) -> String {
    let sum = |complete: bool, money: Notional| {
        let least = if complete { "" } else { "at least " };
        format!("{least}{} {}", short(money.decimal()), about.quote())
    };
    let bids = sum(near.bid_complete, near.bid_notional_quote);
    let asks = sum(near.ask_complete, near.ask_notional_quote);
    let (name, imbalance) = (about.name(), or_unknown(near.imbalance));
    format!("{name}: within {BAND_BPS} bps of mid {bids} of bids and {asks} of asks; imbalance {imbalance}.")
}
