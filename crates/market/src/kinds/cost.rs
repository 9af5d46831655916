//! What it would cost to trade now.

use super::book::BookOf;
use super::prelude::*;
use crate::market::DEEPEST;
use tribune_analytics::{Action, Cost, Size, cost};
use tribune_binance::Depth;

#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct CostToTrade {
    #[serde(flatten)]
    of: BookOf,
    /// The exchange's rules that one order of this size breaks.
    #[serde(skip_serializing_if = "Option::is_none")]
    order_note: Option<String>,
    #[serde(flatten)]
    cost: Cost,
    #[serde(skip_serializing_if = "Option::is_none")]
    asked_quote: Option<Notional>,
    #[serde(skip_serializing_if = "Option::is_none")]
    asked_base: Option<Quantity>,
}

pub async fn load(market: &Market, symbol: &str, side: Action, size: Size) -> Result<Answer> {
    let symbol = market.traded(symbol).await?;
    let mut book = market.book(&symbol).await?;
    let mut worked = cost(&book.view.depth, side, size).map_err(|reason| no_figures(&symbol, &reason))?;
    if !worked.filled && has_more(&book.view.depth, side) {
        // If the exchange cannot be asked now, the known part of the book says that it is incomplete.
        if let Some(deeper) = market.deep_book(&symbol).await
            && let Ok(better) = cost(&deeper.view.depth, side, size)
        {
            (book, worked) = (deeper, better);
        }
    }
    if worked.filled_base.is_zero() {
        return Err(Error::invalid_argument(format!(
            "the size is less than 0.00000001 {}, the smallest amount that can be traded: give a larger one",
            symbol.base
        )));
    }
    let (asked_quote, asked_base) = match size {
        Size::Quote(money) => (Some(money), None),
        Size::Base(quantity) => (None, Some(quantity)),
    };
    let figures = CostToTrade {
        of: BookOf::new(&book),
        order_note: beyond_rules(&symbol, size, &worked),
        cost: worked,
        asked_quote,
        asked_base,
    };
    Answer::new(Kind::OrderBookL2, &symbol, Provenance::of_book(market, &book), figures)
}

/// Whether a deeper snapshot may show more levels of this side.
fn has_more(depth: &Depth, side: Action) -> bool {
    let (known, reach) = match side {
        Action::Buy => (depth.asks.len(), depth.asks.reach),
        Action::Sell => (depth.bids.len(), depth.bids.reach),
    };
    reach.is_some() && known < DEEPEST as usize
}

fn beyond_rules(symbol: &Symbol, size: Size, worked: &Cost) -> Option<String> {
    let (base, quote) = (&symbol.base, &symbol.quote);
    let least_worth = symbol.min_notional.filter(|least| worked.filled_quote < *least);
    let least = symbol.min_quantity.filter(|least| worked.filled_base < least.decimal());
    let most = symbol.max_quantity.filter(|most| !most.is_zero() && worked.filled_base > most.decimal());
    let step = match size {
        Size::Base(asked) => {
            symbol.step_size.filter(|step| asked.units().checked_rem(step.units()).is_some_and(|rest| rest != 0))
        }
        Size::Quote(_) => None,
    };
    let notes = [
        least_worth.map(|least| format!("below the exchange's minimum order value of {least} {quote}")),
        least.map(|least| format!("below the exchange's minimum quantity of {least} {base}")),
        step.map(|step| format!("not a multiple of the quantity step {step} {base}")),
        most.map(|most| format!("above the exchange's maximum of {most} {base} for one order: it takes several")),
    ];
    notes.into_iter().flatten().reduce(|all, one| format!("{all}; {one}"))
}

impl CostToTrade {
    /// `1000 USDT`
    fn asked(&self, about: &About) -> String {
        match (self.asked_quote, self.asked_base) {
            (Some(money), _) => format!("{money} {}", about.quote()),
            (None, Some(quantity)) => format!("{quantity} {}", about.base()),
            (None, None) => "an unknown size".to_owned(),
        }
    }
}

impl Figures for CostToTrade {
    fn sentences(&self, about: &About) -> Vec<String> {
        let (worked, name, base, quote) = (&self.cost, about.name(), about.base(), about.quote());
        let missing = worked.reason.as_ref().map(|why| format!(" {}.", capitalised(&why.to_string())));
        let missing = missing.unwrap_or_default();
        let verb = if worked.side == Action::Buy { "Buying" } else { "Selling" };
        let order = format!("{verb} {} of {name}", self.asked(about));
        let (traded, average) = (worked.filled_base, worked.vwap);
        let (slippage, mid) = (or_unknown(worked.slippage_bps), or_unknown(worked.mid));
        let (levels, worst, cost) = (worked.levels_used, worked.worst_price, or_unknown(worked.cost_quote));
        vec![
            format!(
                "{order}: {traded} {base} at {average} {quote} on average, {slippage} basis points from mid {mid}; {levels} levels, worst price {worst}.{missing}"
            ),
            format!("Cost against mid: {cost} {quote}, without fees, hidden orders and changes of the book meanwhile."),
        ]
    }

    fn headline(&self) -> &'static str {
        "vwap slippage_bps cost_quote mid worst_price"
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tribune_binance::testing::{depth, money, quantity};

    #[test]
    fn broken_order_rules_are_noted() {
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
            (Size::Base(quantity("1.0005")), Some("not a multiple of the quantity step 0.001 BTC")),
            (Size::Base(quantity("0.0105")), Some("quantity step 0.001 BTC")),
            (
                Size::Base(quantity("0.009")),
                Some("minimum order value of 1 USDT; below the exchange's minimum quantity of 0.01"),
            ),
            (Size::Base(quantity("6")), Some("maximum of 5 BTC")),
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
