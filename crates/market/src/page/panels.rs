//! Which panels a page of the present has: a live page renews them by their keys, so they are the same at every look.

use tribune_page::parts::panel;
use tribune_page::{Content, Panel, Width};

use tribune_market_resolve::id::{AnalyticsKind, Kind};

/// The panels of a page, by key: all of them are there at every look.
const fn panels_of(kind: Kind) -> &'static [(&'static str, &'static str, Width)] {
    const DEPTH: (&str, &str, Width) = ("depth", "Depth", Width::Half);
    const LADDER: (&str, &str, Width) = ("ladder", "Order book", Width::Half);
    const SPREAD: (&str, &str, Width) = ("spread", "Spread", Width::Half);
    const IMBALANCE: (&str, &str, Width) = ("imbalance", "Order book imbalance", Width::Half);
    const CANDLES: (&str, &str, Width) = ("candles", "Candles", Width::Whole);
    const COST: (&str, &str, Width) = ("cost", "Cost to trade", Width::Whole);
    const FLOW: (&str, &str, Width) = ("flow", "Order flow", Width::Half);
    const TRADES: (&str, &str, Width) = ("trades", "Trades", Width::Whole);
    const FIGURES: (&str, &str, Width) = ("figures", "Figures", Width::Whole);
    match kind {
        Kind::Ticker | Kind::Report => {
            &[CANDLES, DEPTH, LADDER, SPREAD, IMBALANCE, ("profile", "Volume profile", Width::Half), FLOW, COST]
        }
        Kind::OrderBook => &[DEPTH, LADDER, SPREAD, IMBALANCE, COST, FIGURES],
        Kind::OrderBookL1 => &[SPREAD, IMBALANCE, FIGURES],
        Kind::OrderBookL2 => {
            &[DEPTH, LADDER, SPREAD, IMBALANCE, COST, ("bands", "Depth near the mid", Width::Whole), FIGURES]
        }
        Kind::Klines(_) => &[CANDLES, FIGURES],
        // Drawn by itself.
        Kind::Markets => &[],
        Kind::Trades => &[TRADES, FLOW],
        Kind::ExchangeInfo => &[FIGURES],
        Kind::Analytics(AnalyticsKind::OrderFlow) => &[FIGURES, TRADES],
        Kind::Analytics(AnalyticsKind::VolumeProfile) => &[("profile", "Volume profile", Width::Whole), FIGURES],
        Kind::Analytics(AnalyticsKind::LiquidityVacuums) => &[("vacuums", "Liquidity vacuums", Width::Whole), FIGURES],
        Kind::Analytics(AnalyticsKind::Anomalies) => &[("checks", "Checks", Width::Whole), FIGURES],
        Kind::Analytics(AnalyticsKind::Health) => &[("components", "Components of the score", Width::Whole), FIGURES],
    }
}

/// Those that the page has, in their order; one that could not be drawn says why.
pub(super) fn settled(kind: Kind, mut drawn: Vec<Panel>) -> Vec<Panel> {
    let take = |(key, ..): &(&'static str, &'static str, Width)| {
        let at = drawn.iter().position(|panel| panel.key == *key);
        at.map(|at| drawn.swap_remove(at))
            .unwrap_or_else(|| missing(kind, key, "there is nothing to see of it at the moment"))
    };
    panels_of(kind).iter().map(take).collect()
}

/// A panel of the page that has nothing to show now.
pub(super) fn missing(kind: Kind, key: &'static str, why: impl Into<String>) -> Panel {
    let known = panels_of(kind).iter().find(|(known, ..)| *known == key);
    let (title, width) = known.map_or((key, Width::Half), |(_, title, width)| (*title, *width));
    panel(key, title, width, Content::Missing(why.into()))
}
