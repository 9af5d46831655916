//! How deep a market is: money near the mid, imbalance, and what trades would cost.

use rust_decimal::Decimal;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tribune_core::Result;
use tribune_page::parts::{cell, noted, numbers, panel, table, toned, words};
use tribune_page::text::{dash, plain};
use tribune_page::{Cell, Headline, Panel, Tone, Width};

use super::book::{Bests, BookOf, Levels, best_prices, mid_headline};
use super::known::{Known, or_unknown};
use super::table::{Keep, Table, row};
use super::{About, Answer, Figures, Provenance, no_figures, short};
use crate::id::Kind;
use crate::kinds::Page;
use crate::market::Market;
use tribune_analytics::Unavailable;
use tribune_analytics::cost::{Action, Cost, Size, cost};
use tribune_analytics::depth::{Band, TopImbalance, bands, top_imbalance};
use tribune_analytics::health::BAND_BPS;
use tribune_analytics::quotes::{Quote, quotes};
use tribune_analytics::sizes::sizes;
use tribune_binance::book::Depth;
use tribune_binance::model::Symbol;
use tribune_binance::number::Notional;

/// Levels a side that an answer lists.
const MAX_SHOWN: usize = 20;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MarketDepth {
    #[serde(flatten)]
    of: BookOf,
    best_bid: Option<Quote>,
    best_ask: Option<Quote>,
    #[schemars(with = "Option<String>")]
    mid: Option<Decimal>,
    spread_bps: Option<f64>,
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
        best_bid: quotes.best_bid,
        best_ask: quotes.best_ask,
        mid: quotes.mid,
        spread_bps: quotes.spread_bps,
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

    fn row(&self) -> Vec<Cell> {
        let side = match self.side {
            Action::Buy => toned("Buy", Tone::Up),
            Action::Sell => toned("Sell", Tone::Down),
        };
        let known = match (self.filled, self.complete) {
            (true, true) => toned("whole", Tone::Good),
            (true, false) => toned("the book is not known that far", Tone::Warning),
            (false, _) => toned("the known levels do not suffice", Tone::Warning),
        };
        vec![
            side,
            cell(self.notional_quote.to_string()),
            cell(self.vwap.to_string()),
            cell(self.cost_bps.map_or_else(dash, |bps| bps.to_string())),
            known,
        ]
    }
}

impl Figures for MarketDepth {
    fn what(&self, _about: &About) -> String {
        "order book depth".to_owned()
    }

    fn sentences(&self, about: &About) -> Vec<String> {
        let best = best_prices(about, [self.best_bid, self.best_ask], self.mid, self.spread_bps);
        let bands = self.bands.value().into_iter().flatten().map(|band| {
            format!(
                "Within {} basis points of mid: bids {} {quote}, asks {} {quote}{}.",
                band.distance_bps,
                band.bid_notional_quote,
                band.ask_notional_quote,
                if band.complete {
                    ""
                } else {
                    " (at least: the book is not known that far)"
                },
                quote = about.quote(),
            )
        });
        let costs = [Action::Buy, Action::Sell].into_iter();
        let costs = costs.filter_map(|side| cost_sentence(about, &self.cost_to_trade.rows, side));
        std::iter::once(best).chain(bands).chain(costs).collect()
    }

    fn snippet(&self, about: &About) -> Option<String> {
        let near = self.bands.value()?.iter().find(|band| band.distance_bps == BAND_BPS)?;
        let imbalance = near.imbalance.map_or_else(
            || "imbalance unknown".to_owned(),
            |share| format!("imbalance {share:+.3}"),
        );
        Some(format!("{}: {}; {imbalance}.", about.name(), near_mid(about, near)))
    }

    fn headline(&self, page: &Page<'_>) -> Option<Headline> {
        let bests = Bests::new(self.best_bid, self.best_ask, self.spread_bps);
        Some(mid_headline(self.mid, &bests, page))
    }

    fn panels(&self, page: &Page<'_>) -> Vec<Panel> {
        let mut panels = Vec::from(self.levels.panels(page));
        panels.extend(self.costs(page));
        panels.extend(self.bands.value().map(|bands| bands_panel(bands, page)));
        panels
    }

    fn shown(&self) -> Vec<&'static str> {
        shown_with_bands(&self.bands)
    }
}

pub(super) fn shown_with_bands(bands: &Known<Vec<Band>>) -> Vec<&'static str> {
    let mut shown = vec!["mid", "best_bid", "best_ask", "spread_bps"];
    shown.extend(bands.value().map(|_| "bands"));
    shown
}

impl MarketDepth {
    fn costs(&self, page: &Page<'_>) -> Option<Panel> {
        let columns = vec![
            words("Order"),
            numbers(format!("Size ({})", page.quote())),
            numbers(format!("Average price ({})", page.quote())),
            numbers("Cost (bps of mid)"),
            words("Filled"),
        ];
        let rows: Vec<Vec<Cell>> = self.cost_to_trade.rows.iter().map(SizedCost::row).collect();
        (!rows.is_empty()).then(|| {
            noted(
                panel("cost", "Cost to trade", Width::Whole, table(columns, rows)),
                "Market orders through the known levels, best price first, without fees.",
            )
        })
    }
}

/// `within 25 bps of mid 2000000 USDT of bids and 1900000 USDT of asks`
pub(super) fn near_mid(about: &About, near: &Band) -> String {
    let least = |complete: bool| if complete { "" } else { "at least " };
    format!(
        "within {BAND_BPS} bps of mid {}{} {quote} of bids and {}{} {quote} of asks",
        least(near.bid_complete),
        short(near.bid_notional_quote.decimal()),
        least(near.ask_complete),
        short(near.ask_notional_quote.decimal()),
        quote = about.quote()
    )
}

/// `Buying now costs, in basis points against mid and without fees: 1.2 for 1000 USDT, 4.5 for 10000 USDT.`
fn cost_sentence(about: &About, costs: &[SizedCost], side: Action) -> Option<String> {
    let verb = match side {
        Action::Buy => "Buying",
        Action::Sell => "Selling",
    };
    let of_side = || costs.iter().filter(|cost| cost.side == side);
    let filled = of_side().filter(|cost| cost.is_known());
    let each = filled.map(|cost| {
        format!(
            "{} for {} {}",
            or_unknown(cost.cost_bps),
            cost.notional_quote,
            about.quote()
        )
    });
    let each: Vec<String> = each.collect();
    let beyond = of_side().find(|cost| !cost.is_known());
    let beyond = beyond.map_or_else(String::new, |cost| {
        format!(
            " {} {} is more than the known levels hold.",
            cost.notional_quote,
            about.quote()
        )
    });
    (!each.is_empty()).then(|| {
        format!(
            "{verb} now costs, in basis points against mid and without fees: {}.{beyond}",
            each.join(", ")
        )
    })
}

pub(super) fn bands_panel(bands: &[Band], page: &Page<'_>) -> Panel {
    let columns = vec![
        numbers("Within (bps of mid)"),
        numbers(format!("Bids ({})", page.quote())),
        numbers(format!("Asks ({})", page.quote())),
        numbers("Imbalance"),
        words("Known"),
    ];
    let row = |band: &Band| {
        vec![
            cell(band.distance_bps.to_string()),
            cell(band.bid_notional_quote.to_string()),
            cell(band.ask_notional_quote.to_string()),
            cell(band.imbalance.and_then(plain).unwrap_or_else(dash)),
            if band.complete {
                toned("whole", Tone::Good)
            } else {
                toned("at least: the book is not known that far", Tone::Warning)
            },
        ]
    };
    let note = format!(
        "Money that rests near the mid, in {}. Sums are exact where the book is known that far.",
        page.quote()
    );
    let rows = bands.iter().map(row).collect();
    noted(
        panel("bands", "Depth near the mid", Width::Whole, table(columns, rows)),
        note,
    )
}
