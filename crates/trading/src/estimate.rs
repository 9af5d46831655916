//! The estimated value of an order by the current book, and what counts against the cap.

use rust_decimal::Decimal;
use schemars::JsonSchema;
use serde::Serialize;
use tribune_core::Result;

use super::order::{Order, Side, Terms, refuse};
use tribune_analytics::{Action, Cost, Size, cost};
use tribune_binance::{Depth, Notional, Price, Quantity};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub(super) struct Estimate {
    /// What would be paid or received, without fees.
    pub(super) notional: Notional,
    /// What counts against the cap. A sale counts at the best bid, even if deeper levels pay less.
    #[serde(skip)]
    pub(super) counted: Notional,
    /// The average price; null if unknown.
    #[schemars(with = "Option<String>")]
    pub(super) price: Option<Decimal>,
    /// The price of the last level needed.
    pub(super) worst_price: Option<Price>,
    pub(super) basis: &'static str,
}

impl Order {
    /// A limit order costs at most its limit; a market order costs what the levels of the book ask.
    pub(super) fn estimate(&self, depth: &Depth) -> Result<Estimate> {
        match self.terms {
            Terms::Limit { price, quantity, .. } => self.at_limit(depth, price, quantity),
            Terms::Market { quantity } => self.at_market(depth, Size::Base(quantity)),
            Terms::MarketFor { quote_quantity } if self.side == Side::Buy => Ok(self.for_money(depth, quote_quantity)),
            Terms::MarketFor { quote_quantity } => self.at_market(depth, Size::Quote(quote_quantity)),
        }
    }

    /// A sale with a limit below the best bid executes at the bid.
    fn at_limit(&self, depth: &Depth, limit: Price, quantity: Quantity) -> Result<Estimate> {
        let bid = depth.bids.best().map(|level| level.price);
        let (price, basis) = match bid.filter(|bid| self.side == Side::Sell && *bid > limit) {
            Some(bid) => (bid, "the best bid, which is above the limit"),
            None => (limit, "the limit price"),
        };
        let notional = product(price, quantity)?;
        Ok(Estimate { notional, counted: notional, price: Some(price.decimal()), worst_price: Some(limit), basis })
    }

    fn at_market(&self, depth: &Depth, size: Size) -> Result<Estimate> {
        let cost = match cost(depth, self.side.action(), size) {
            Ok(cost) => cost,
            Err(why) => return refuse(format_args!("its cost cannot be estimated: {why}")),
        };
        if !(cost.filled && cost.complete) {
            return refuse(format_args!(
                "the book is known only as far as {}, too shallow to estimate the whole order; order less, or use a limit",
                cost.worst_price
            ));
        }
        Ok(Estimate {
            notional: cost.filled_quote,
            counted: self.counted(depth, &cost)?,
            price: Some(cost.vwap),
            worst_price: Some(cost.worst_price),
            basis: "the levels of the book",
        })
    }

    fn counted(&self, depth: &Depth, cost: &Cost) -> Result<Notional> {
        let sold = match self.side {
            Side::Buy => return Ok(cost.filled_quote),
            Side::Sell => cost.filled_base.to_string().parse::<Quantity>(),
        };
        match (depth.bids.best(), sold) {
            (Some(bid), Ok(sold)) => product(bid.price, sold),
            _ => refuse("the value of the sale cannot be calculated"),
        }
    }

    /// The amount is fixed, so the book only gives the price.
    fn for_money(&self, depth: &Depth, money: Notional) -> Estimate {
        let walked = cost(depth, self.side.action(), Size::Quote(money)).ok();
        let walked = walked.filter(|cost| cost.filled && cost.complete);
        Estimate {
            notional: money,
            counted: money,
            price: walked.as_ref().map(|cost| cost.vwap),
            worst_price: walked.map(|cost| cost.worst_price),
            basis: "the amount asked for",
        }
    }

    /// Whether it would match the other side of the book immediately.
    pub(super) fn crosses(&self, depth: &Depth) -> bool {
        let Terms::Limit { price, .. } = self.terms else {
            return true;
        };
        match self.side {
            Side::Buy => depth.asks.best().is_some_and(|ask| ask.price <= price),
            Side::Sell => depth.bids.best().is_some_and(|bid| bid.price >= price),
        }
    }
}

impl Side {
    const fn action(self) -> Action {
        match self {
            Self::Buy => Action::Buy,
            Self::Sell => Action::Sell,
        }
    }
}

fn product(price: Price, quantity: Quantity) -> Result<Notional> {
    match price.times(quantity) {
        Some(notional) => Ok(notional),
        None => refuse("price times quantity is too large"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use tribune_binance::testing::{depth, known_to, price};

    fn order(side: &str, more: Value) -> Order {
        let mut args = json!({"symbol": "S", "side": side});
        let fields = args.as_object_mut().expect("object");
        fields.extend(more.as_object().expect("object").clone());
        Order::read(&serde_json::from_value(args).expect("arguments")).expect("order")
    }

    fn limit(side: &str, price: &str) -> Order {
        order(side, json!({"type": "LIMIT", "price": price, "quantity": "2"}))
    }

    fn market(side: &str, quantity: &str) -> Order {
        order(side, json!({"type": "MARKET", "quantity": quantity}))
    }

    fn spend(side: &str, money: &str) -> Order {
        order(side, json!({"type": "MARKET", "quote_quantity": money}))
    }

    fn book() -> Depth {
        depth(&[("150", "2"), ("10", "100")], &[("151", "1"), ("500", "100")])
    }

    fn estimated(order: &Order) -> (String, String) {
        let estimate = order.estimate(&book()).expect("estimate");
        (estimate.notional.to_string(), estimate.counted.to_string())
    }

    fn pair(notional: &str, counted: &str) -> (String, String) {
        (notional.to_owned(), counted.to_owned())
    }

    #[test]
    fn limit_price_bounds_the_estimate() {
        assert_eq!(estimated(&limit("BUY", "1000")), pair("2000", "2000"));
        assert_eq!(estimated(&limit("SELL", "160")), pair("320", "320"));
        assert_eq!(estimated(&limit("SELL", "1")), pair("300", "300"), "it is made at the bid");
        assert!(limit("BUY", "151").crosses(&book()) && !limit("BUY", "150").crosses(&book()));
        assert!(limit("SELL", "150").crosses(&book()) && !limit("SELL", "151").crosses(&book()));
    }

    #[test]
    fn market_order_is_estimated_from_the_levels() {
        // 1·151 + 8·500 = 4151, where the best ask alone says 1359.
        assert_eq!(estimated(&market("BUY", "9")), pair("4151", "4151"));
        let estimate = market("BUY", "2").estimate(&book()).expect("estimate");
        assert_eq!((estimate.price, estimate.worst_price), (Some(Decimal::new(3255, 1)), Some(price("500"))));
        // 2·150 + 2·10 = 320 are received for what 600 are bid for now.
        assert_eq!(estimated(&market("SELL", "4")), pair("320", "600"));
        // 300 come from the first level, 20 from the second: again 4 are sold.
        assert_eq!(estimated(&spend("SELL", "320")), pair("320", "600"));
    }

    #[test]
    fn order_beyond_the_known_book_is_refused() {
        let refused = |order: &Order, depth: &Depth| {
            let error = order.estimate(depth).expect_err("refused");
            assert!(error.message().starts_with("the order was not sent: "), "{error}");
            error.message().to_owned()
        };
        assert!(refused(&market("BUY", "102"), &book()).contains("known only as far as 500"));
        let partly = known_to(book(), None, Some("151"));
        assert!(market("BUY", "1").estimate(&partly).is_ok());
        assert!(refused(&market("BUY", "1.001"), &partly).contains("order less, or use a limit"));
        let empty = depth(&[("150", "2")], &[]);
        assert!(refused(&market("BUY", "1"), &empty).contains("the book has no asks"));
        let huge = order("BUY", json!({"type": "LIMIT", "price": "92233720368", "quantity": "99999999999999999999"}));
        assert!(refused(&huge, &book()).contains("is too large"));
    }

    #[test]
    fn amount_to_spend_counts_as_itself() {
        assert_eq!(estimated(&spend("BUY", "12.5")), pair("12.5", "12.5"));
        let beyond = spend("BUY", "999999").estimate(&book()).expect("estimate");
        assert_eq!((beyond.counted.to_string(), beyond.price), ("999999".to_owned(), None), "no price is invented");
        let unknown = spend("BUY", "5").estimate(&Depth::default()).expect("estimate");
        assert_eq!(unknown.price, None);
    }
}
