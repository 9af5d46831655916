//! Order-flow imbalance of the best quotes (Cont, Kukanov, Stoikov).

use super::quotes::Touch;
use crate::number::Quantity;

/// From one state of the best quotes to the next, with q and r the sizes of bid and ask, primes the state
/// before: 1[b≥b′]q − 1[b≤b′]q′ − 1[a≤a′]r + 1[a≥a′]r′. Above zero: bids were added or asks taken away.
pub fn step(before: &Touch, after: &Touch) -> Option<Quantity> {
    let when = |counts: bool, quantity: Quantity| if counts { quantity } else { Quantity::ZERO };
    let (bid, ask) = (after.bid(), after.ask());
    let (bid_before, ask_before) = (before.bid(), before.ask());
    when(bid.price >= bid_before.price, bid.quantity)
        .checked_sub(when(bid.price <= bid_before.price, bid_before.quantity))?
        .checked_sub(when(ask.price <= ask_before.price, ask.quantity))?
        .checked_add(when(ask.price >= ask_before.price, ask_before.quantity))
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{books, level};
    use super::*;
    use proptest::prelude::*;

    fn touch(bid: (&str, &str), ask: (&str, &str)) -> Touch {
        Touch::new(level(&bid), level(&ask)).expect("a valid book")
    }

    #[test]
    fn worked_by_hand() {
        let start = touch(("100", "5"), ("101", "4"));
        let to = |bid, ask| step(&start, &touch(bid, ask)).map(|change| change.to_string());
        // Same prices, bid 5 → 8: + 8 − 5 − 4 + 4 = 3.
        assert_eq!(to(("100", "8"), ("101", "4")).as_deref(), Some("3"));
        // Bid up to 100.5 with 2: + 2; ask as before: − 4 + 4. Sum 2.
        assert_eq!(to(("100.5", "2"), ("101", "4")).as_deref(), Some("2"));
        // Bid down to 99 with 9: − 5. Ask down to 100 with 1: − 1. Sum −6.
        assert_eq!(to(("99", "9"), ("100", "1")).as_deref(), Some("-6"));
        // Ask up to 102: + 4 (what was there is gone).
        assert_eq!(to(("100", "5"), ("102", "7")).as_deref(), Some("4"));
    }

    proptest! {
        #[test]
        fn no_change_is_no_flow_and_back_again_cancels(books in (books(), books())) {
            let touches = (Touch::of(&books.0), Touch::of(&books.1));
            if let (Ok(one), Ok(two)) = touches {
                prop_assert_eq!(step(&one, &one), Some(Quantity::ZERO));
                let there_and_back = step(&one, &two).zip(step(&two, &one));
                prop_assert_eq!(there_and_back.and_then(|(there, back)| there.checked_add(back)), Some(Quantity::ZERO));
            }
        }
    }
}
