//! What it would cost to trade now.

use serde_json::json;
use tribune_core::{Error, Result};

use super::answer::{Answer, no_figures, or_unknown};
use super::book::started;
use crate::analytics::cost::{Action, Size, cost};
use crate::market::Market;
use crate::symbols::Kind;

pub async fn cost_to_trade(market: &Market, symbol: &str, side: Action, size: Size) -> Result<Answer> {
    let asked_is_nothing = match size {
        Size::Quote(money) => money.units() <= 0,
        Size::Base(quantity) => quantity.units() <= 0,
    };
    if asked_is_nothing {
        return Err(Error::invalid_argument("the size must be above zero"));
    }
    let symbol = market.traded(symbol).await?;
    let mut book = market.book(&symbol).await?;
    let mut worked = cost(&book.view.depth, side, size).map_err(|reason| no_figures(&symbol, reason))?;
    if !worked.filled && book.view.depth.bids.len().max(book.view.depth.asks.len()) < 5_000 {
        // More levels may hold what is missing.
        let deeper = market.snapshot_of(&symbol, 5_000).await;
        if let Ok(deeper) = deeper
            && let Ok(better) = cost(&deeper.view.depth, side, size)
        {
            (book, worked) = (deeper, better);
        }
    }
    let (verb, asked) = match (side, size) {
        (Action::Buy, Size::Quote(money)) => ("Buying", format!("{money} {}", symbol.quote)),
        (Action::Sell, Size::Quote(money)) => ("Selling", format!("{money} {}", symbol.quote)),
        (Action::Buy, Size::Base(quantity)) => ("Buying", format!("{quantity} {}", symbol.base)),
        (Action::Sell, Size::Base(quantity)) => ("Selling", format!("{quantity} {}", symbol.base)),
    };
    let filled = if worked.filled {
        String::new()
    } else {
        format!(
            " Not filled: the known levels hold only {} {}.",
            worked.filled_quote, symbol.quote
        )
    };
    started(market, &symbol, Kind::OrderBookL2, "cost to trade", &book)?
        .figure(format!(
            "{verb} {asked} of {}: {} {} at {} {} on average, {} basis points from mid {}; {} levels, worst price {}.{filled}",
            symbol.name,
            worked.filled_base,
            symbol.base,
            worked.vwap,
            symbol.quote,
            or_unknown(worked.slippage_bps),
            worked.mid,
            worked.levels_used,
            worked.worst_price,
        ))
        .figure(format!(
            "Cost against mid: {} {}, fees not included; hidden orders and what others do meanwhile are not known.",
            or_unknown(worked.cost_quote),
            symbol.quote
        ))
        .with(&worked)?
        .with(&match size {
            Size::Quote(money) => json!({"asked_quote": money}),
            Size::Base(quantity) => json!({"asked_base": quantity}),
        })
}
