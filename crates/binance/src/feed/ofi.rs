//! Order-flow imbalance of the best quotes (Cont, Kukanov, Stoikov).

use crate::book::BestQuote;
use crate::number::Quantity;

/// From one state of the best quotes to the next, with q and r the sizes of bid and ask, primes the state
/// before: 1[b≥b′]q − 1[b≤b′]q′ − 1[a≤a′]r + 1[a≥a′]r′. Above zero: bids were added or asks taken away.
/// `None` if either state is crossed or without a price.
pub(super) fn step(before: &BestQuote, after: &BestQuote) -> Option<Quantity> {
    if !is_valid(before) || !is_valid(after) {
        return None;
    }
    let when = |counts: bool, quantity: Quantity| if counts { quantity } else { Quantity::ZERO };
    when(after.bid.price >= before.bid.price, after.bid.quantity)
        .checked_sub(when(after.bid.price <= before.bid.price, before.bid.quantity))?
        .checked_sub(when(after.ask.price <= before.ask.price, after.ask.quantity))?
        .checked_add(when(after.ask.price >= before.ask.price, before.ask.quantity))
}

fn is_valid(quote: &BestQuote) -> bool {
    quote.bid.price.units() > 0 && quote.bid.price < quote.ask.price
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::book::Depth;
    use crate::testing::{books, level};
    use proptest::prelude::*;

    fn quote(bid: (&str, &str), ask: (&str, &str)) -> BestQuote {
        BestQuote { update_id: 1, bid: level(&bid), ask: level(&ask) }
    }

    fn best(depth: &Depth) -> BestQuote {
        BestQuote { update_id: 1, bid: depth.bids.best().expect("a bid"), ask: depth.asks.best().expect("an ask") }
    }

    #[test]
    fn worked_by_hand() {
        let start = quote(("100", "5"), ("101", "4"));
        let to = |bid, ask| step(&start, &quote(bid, ask)).map(|change| change.to_string());
        // Same prices, bid 5 → 8: + 8 − 5 − 4 + 4 = 3.
        assert_eq!(to(("100", "8"), ("101", "4")).as_deref(), Some("3"));
        // Bid up to 100.5 with 2: + 2; ask as before: − 4 + 4. Sum 2.
        assert_eq!(to(("100.5", "2"), ("101", "4")).as_deref(), Some("2"));
        // Bid down to 99 with 9: − 5. Ask down to 100 with 1: − 1. Sum −6.
        assert_eq!(to(("99", "9"), ("100", "1")).as_deref(), Some("-6"));
        // Ask up to 102: + 4 (what was there is gone).
        assert_eq!(to(("100", "5"), ("102", "7")).as_deref(), Some("4"));
        assert_eq!(to(("101", "5"), ("101", "7")), None, "a locked book");
    }

    proptest! {
        #[test]
        fn reversed_change_cancels_its_flow(books in (books(), books())) {
            let (one, two) = (best(&books.0), best(&books.1));
            prop_assume!(is_valid(&one) && is_valid(&two));
            prop_assert_eq!(step(&one, &one), Some(Quantity::ZERO));
            let there_and_back = step(&one, &two).zip(step(&two, &one));
            prop_assert_eq!(there_and_back.and_then(|(there, back)| there.checked_add(back)), Some(Quantity::ZERO));
        }
    }
}
