//! What it would cost to trade now.

use serde_json::json;
use tribune_core::{Error, Result};

use super::answer::{Answer, no_figures, or_unknown};
use super::book::started;
use crate::analytics::cost::{Action, Cost, Size, cost, reach};
use crate::book::Depth;
use crate::market::{DEEPEST, Market};
use crate::model::Symbol;
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
    if !worked.filled && has_more(&book.view.depth, side) {
        // If the exchange cannot be asked now, what is known says that it is not all.
        let deeper = market.deep_book(&symbol).await;
        if let Ok(deeper) = deeper
            && let Ok(better) = cost(&deeper.view.depth, side, size)
        {
            (book, worked) = (deeper, better);
        }
    }
    if worked.filled_base.is_zero() {
        return Err(Error::invalid_argument(format!(
            "the size is less than 0.00000001 {}, which nobody can trade: give a larger one",
            symbol.base
        )));
    }
    let (verb, asked) = match (side, size) {
        (Action::Buy, Size::Quote(money)) => ("Buying", format!("{money} {}", symbol.quote)),
        (Action::Sell, Size::Quote(money)) => ("Selling", format!("{money} {}", symbol.quote)),
        (Action::Buy, Size::Base(quantity)) => ("Buying", format!("{quantity} {}", symbol.base)),
        (Action::Sell, Size::Base(quantity)) => ("Selling", format!("{quantity} {}", symbol.base)),
    };
    let filled = match (worked.filled, worked.complete) {
        (true, true) => String::new(),
        (true, false) => " The book is not known this far: it may cost less.".to_owned(),
        (false, true) => format!(
            " Not filled: the whole book holds only {} {}.",
            worked.filled_quote, symbol.quote
        ),
        (false, false) => format!(
            " Not filled by the known levels, which hold {} {}: what lies beyond them is not known.",
            worked.filled_quote, symbol.quote
        ),
    };
    let mut answer = started(market, &symbol, Kind::OrderBookL2, "cost to trade", &book)?;
    if let Some(note) = beyond_rules(&symbol, size, &worked) {
        answer = answer.with_field("order_note", &note)?;
    }
    answer
        .figure(format!(
            "{verb} {asked} of {}: {} {} at {} {} on average, {} basis points from mid {}; {} levels, worst price {}.{filled}",
            symbol.name,
            worked.filled_base,
            symbol.base,
            worked.vwap,
            symbol.quote,
            or_unknown(worked.slippage_bps),
            or_unknown(worked.mid),
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

/// Whether the exchange may have levels of the walked side that a deeper look would show.
fn has_more(depth: &Depth, side: Action) -> bool {
    let known = match side {
        Action::Buy => depth.asks.len(),
        Action::Sell => depth.bids.len(),
    };
    reach(depth, side).is_some() && known < DEEPEST as usize
}

/// What the exchange's rules say against one order of this size.
fn beyond_rules(symbol: &Symbol, size: Size, worked: &Cost) -> Option<String> {
    let (base, quote) = (&symbol.base, &symbol.quote);
    let least_worth = symbol.min_notional.filter(|least| worked.filled_quote < *least);
    let least = symbol.min_quantity.filter(|least| worked.filled_base < least.decimal());
    let most = symbol
        .max_quantity
        .filter(|most| !most.is_zero() && worked.filled_base > most.decimal());
    let step = match size {
        Size::Base(asked) => symbol
            .step_size
            .filter(|step| asked.units().checked_rem(step.units()).is_some_and(|rest| rest != 0)),
        Size::Quote(_) => None,
    };
    let notes = [
        least_worth.map(|least| format!("the exchange takes no order worth less than {least} {quote}")),
        least.map(|least| format!("the exchange takes no order of less than {least} {base}")),
        step.map(|step| format!("the exchange takes quantities in steps of {step} {base}, and this is none")),
        most.map(|most| format!("the exchange takes no single order of more than {most} {base}: it would be several")),
    ];
    notes.into_iter().flatten().reduce(|all, one| format!("{all}; {one}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analytics::fixture::{depth, money, quantity};

    #[test]
    fn what_the_exchange_would_refuse_is_said() {
        let symbol = Symbol {
            step_size: Some(quantity("0.001")),
            min_quantity: Some(quantity("0.01")),
            max_quantity: Some(quantity("5")),
            min_notional: Some(money("1")),
            ..Symbol::named("BTCUSDT", "BTC", "USDT")
        };
        let book = depth(&[("99", "10")], &[("100", "10")]);
        for (size, told) in [
            (Size::Base(quantity("1.001")), None),
            (
                Size::Base(quantity("1.0005")),
                Some("steps of 0.001 BTC, and this is none"),
            ),
            (Size::Base(quantity("0.0105")), Some("steps of 0.001 BTC")),
            (
                Size::Base(quantity("0.009")),
                Some("worth less than 1 USDT; the exchange takes no order of less than 0.01"),
            ),
            (Size::Base(quantity("6")), Some("more than 5 BTC")),
            // An amount of money is traded for what steps it makes.
            (Size::Quote(money("33.33")), None),
        ] {
            let worked = cost(&book, Action::Buy, size).expect("a cost");
            let note = beyond_rules(&symbol, size, &worked);
            match told {
                None => assert_eq!(note, None),
                Some(told) => assert!(note.as_ref().is_some_and(|note| note.contains(told)), "{note:?}"),
            }
        }
    }
}
