//! How deep a market is: money near the mid, imbalance, and what trades would cost.

use super::book::{BookOf, Levels, Middle};
use super::prelude::*;
use tribune_analytics::cost::{Action, Cost, Size, cost};
use tribune_analytics::depth::{Band, TopImbalance, bands, top_imbalance};
use tribune_analytics::health::BAND_BPS;
use tribune_analytics::quotes::quotes;
use tribune_analytics::sizes::sizes;
use tribune_binance::book::Depth;

/// Levels a side that an answer lists.
const MAX_SHOWN: usize = 20;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MarketDepth {
    #[serde(flatten)]
    of: BookOf,
    #[serde(flatten)]
    middle: Middle,
    #[schemars(with = "Option<String>")]
    microprice: Option<Decimal>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<Unavailable>,
    top_levels: Known<TopImbalance>,
    bands: Known<Vec<Band>>,
    cost_to_trade_listed: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    cost_to_trade_cut: Option<String>,
    cost_to_trade: Table<SizedCost>,
    #[serde(flatten)]
    levels: Levels,
}

row! {
    /// What an order of one size costs.
    pub struct SizedCost {
        side: Action = "side",
        notional_quote: Notional = "notional_quote",
        vwap: Decimal = "vwap",
        cost_bps: Option<f64> = "cost_bps",
        cost_quote: Option<Decimal> = "cost_quote",
        filled: bool = "filled",
        complete: bool = "complete",
        reason: Option<Unavailable> = "reason",
    }
}

pub async fn load(market: &Market, symbol: &str, depth_levels: usize) -> Result<Answer> {
    let symbol = market.traded(symbol).await?;
    let book = market.book(&symbol).await?;
    let depth = &book.view.depth;
    let quotes = quotes(depth).map_err(|reason| no_figures(&symbol, &reason))?;
    let costs = Table::fitted(costs(market, &symbol, depth), Keep::First, 3);
    let figures = MarketDepth {
        of: BookOf::new(&book),
        middle: Middle::of(&quotes),
        microprice: quotes.microprice,
        reason: quotes.reason,
        top_levels: top_imbalance(depth, depth_levels).into(),
        bands: bands(depth).into(),
        cost_to_trade_listed: costs.rows.len(),
        cost_to_trade_cut: costs.cut(),
        cost_to_trade: costs,
        levels: Levels::new(depth, depth_levels.min(MAX_SHOWN), 3),
    };
    Answer::new(Kind::OrderBookL2, &symbol, Provenance::of_book(market, &book), figures)
}

/// What trades of several sizes would cost, for those who cannot ask for one.
fn costs(market: &Market, symbol: &Symbol, depth: &Depth) -> Vec<SizedCost> {
    let day = market.feed.board.lookup(&symbol.name).map(|day| day.quote_volume);
    let each = |side| {
        let sizes = sizes(&symbol.quote, day).into_iter();
        sizes.filter_map(move |size| Some(SizedCost::new(size, cost(depth, side, Size::Quote(size)).ok()?)))
    };
    each(Action::Buy).chain(each(Action::Sell)).collect()
}

impl SizedCost {
    fn new(size: Notional, cost: Cost) -> Self {
        Self {
            side: cost.side,
            notional_quote: size,
            vwap: cost.vwap,
            cost_bps: cost.cost_bps,
            cost_quote: cost.cost_quote,
            filled: cost.filled,
            complete: cost.complete,
            reason: cost.reason,
        }
    }

    const fn is_known(&self) -> bool {
        self.filled && self.complete
    }

    fn row(&self, page: &Page<'_>) -> Vec<(Column, Cell)> {
        let known = match (self.filled, self.complete) {
            (true, true) => toned("whole", Tone::Good),
            (true, false) => toned("the book is not known that far", Tone::Warning),
            (false, _) => toned("the known levels do not suffice", Tone::Warning),
        };
        let quote = page.quote();
        vec![
            (words("Order"), side_cell(self.side)),
            (numbers(format!("Size ({quote})")), cell(self.notional_quote.to_string())),
            (numbers(format!("Average price ({quote})")), cell(self.vwap.to_string())),
            (numbers("Cost (bps of mid)"), number(self.cost_bps)),
            (words("Filled"), known),
        ]
    }
}

pub(super) fn side_cell(side: Action) -> Cell {
    match side {
        Action::Buy => toned("Buy", Tone::Up),
        Action::Sell => toned("Sell", Tone::Down),
    }
}

impl Figures for MarketDepth {
    fn sentences(&self, about: &About) -> Vec<String> {
        let quote = about.quote();
        let bands = self.bands.value().into_iter().flatten().map(|band| {
            let bids = format!("bids {} {quote}", band.bid_notional_quote);
            let asks = format!("asks {} {quote}", band.ask_notional_quote);
            let least = match band.complete {
                true => "",
                false => " (at least: the book is not known that far)",
            };
            format!("Within {} basis points of mid: {bids}, {asks}{least}.", band.distance_bps)
        });
        let costs = [Action::Buy, Action::Sell].into_iter();
        let costs = costs.filter_map(|side| cost_sentence(about, &self.cost_to_trade.rows, side));
        let best = self.middle.sentence(about);
        std::iter::once(best).chain(bands).chain(costs).collect()
    }

    fn snippet(&self, about: &About) -> Option<String> {
        let near = self.bands.value()?.iter().find(|band| band.distance_bps == BAND_BPS)?;
        let imbalance = near.imbalance.map(|share| format!("{share:+.3}"));
        let (name, imbalance, near) = (about.name(), or_unknown(imbalance), near_mid(about, near));
        Some(format!("{name}: {near}; imbalance {imbalance}."))
    }

    fn headline(&self, page: &Page<'_>) -> Option<Headline> {
        Some(self.middle.headline(page))
    }

    fn panels(&self, page: &Page<'_>) -> Vec<Panel> {
        let mut panels = Vec::from(self.levels.panels(page));
        let costs: Vec<_> = self.cost_to_trade.rows.iter().map(|cost| cost.row(page)).collect();
        if !costs.is_empty() {
            let note = "Market orders through the known levels, best price first, without fees.";
            panels.push(listing("cost", "Cost to trade", costs, note));
        }
        panels.extend(self.bands.value().map(|bands| bands_panel(bands, page)));
        panels
    }

    fn shown(&self) -> &'static str {
        Middle::SHOWN
    }
}

/// `within 25 bps of mid 2000000 USDT of bids and 1900000 USDT of asks`
pub(super) fn near_mid(about: &About, near: &Band) -> String {
    let sum = |complete: bool, money: Notional| {
        let least = if complete { "" } else { "at least " };
        format!("{least}{} {}", short(money.decimal()), about.quote())
    };
    let bids = sum(near.bid_complete, near.bid_notional_quote);
    let asks = sum(near.ask_complete, near.ask_notional_quote);
    format!("within {BAND_BPS} bps of mid {bids} of bids and {asks} of asks")
}

/// `Buying now costs, in basis points against mid and without fees: 1.2 for 1000 USDT, 4.5 for 10000 USDT.`
fn cost_sentence(about: &About, costs: &[SizedCost], side: Action) -> Option<String> {
    let verb = match side {
        Action::Buy => "Buying",
        Action::Sell => "Selling",
    };
    let quote = about.quote();
    let (known, beyond): (Vec<_>, Vec<_>) =
        costs.iter().filter(|cost| cost.side == side).partition(|cost| cost.is_known());
    let each = known.iter().map(|cost| format!("{} for {} {quote}", or_unknown(cost.cost_bps), cost.notional_quote));
    let each = each.reduce(|all, one| format!("{all}, {one}"))?;
    let beyond = beyond.first().map(|cost| {
        let size = cost.notional_quote;
        format!(" {size} {quote} is more than the known levels hold.")
    });
    let beyond = beyond.unwrap_or_default();
    Some(format!("{verb} now costs, in basis points against mid and without fees: {each}.{beyond}"))
}

pub(super) fn bands_panel(bands: &[Band], page: &Page<'_>) -> Panel {
    let quote = page.quote();
    let row = |band: &Band| {
        let known = match band.complete {
            true => toned("whole", Tone::Good),
            false => toned("at least: the book is not known that far", Tone::Warning),
        };
        vec![
            (numbers("Within (bps of mid)"), cell(band.distance_bps.to_string())),
            (numbers(format!("Bids ({quote})")), cell(band.bid_notional_quote.to_string())),
            (numbers(format!("Asks ({quote})")), cell(band.ask_notional_quote.to_string())),
            (numbers("Imbalance"), number(band.imbalance)),
            (words("Known"), known),
        ]
    };
    let note = format!("Money that rests near the mid, in {quote}. Sums are exact where the book is known that far.");
    listing("bands", "Depth near the mid", bands.iter().map(row).collect(), note)
}
