//! Order-flow imbalance of the best quotes (Cont, Kukanov, Stoikov).

use serde::Serialize;

use super::figure::{Standing, Unavailable, Window};
use super::quotes::Touch;
use crate::model::Millis;
use crate::number::Quantity;

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Ofi {
    /// Above zero: bids were added or asks taken away.
    pub ofi_base: Quantity,
    #[serde(flatten)]
    pub window: Window,
    pub window_secs: f64,
    /// How many changes it is the sum of.
    pub steps: usize,
    pub standing: Standing,
    pub note: &'static str,
}

/// From one state of the best quotes to the next, with q and r the sizes of bid and ask, primes the state
/// before: 1[b≥b′]q − 1[b≤b′]q′ − 1[a≤a′]r + 1[a≥a′]r′.
pub fn step(before: &Touch, after: &Touch) -> Option<Quantity> {
    let when = |counts: bool, quantity: Quantity| if counts { quantity } else { Quantity::ZERO };
    let (bid, ask) = (after.bid(), after.ask());
    let (bid_before, ask_before) = (before.bid(), before.ask());
    when(bid.price >= bid_before.price, bid.quantity)
        .checked_sub(when(bid.price <= bid_before.price, bid_before.quantity))?
        .checked_sub(when(ask.price <= ask_before.price, ask.quantity))?
        .checked_add(when(ask.price >= ask_before.price, ask_before.quantity))
}

/// Over states in order of time, each with its moment; the last one before the window is where it starts from.
/// `None` is a book that was not valid: what changed across it is not order flow.
pub fn ofi(states: impl IntoIterator<Item = (Millis, Option<Touch>)>, window: Window) -> Result<Ofi, Unavailable> {
    let mut before: Option<Touch> = None;
    let (mut sum, mut steps) = (Quantity::ZERO, 0);
    for (time, state) in states {
        if let (Some(before), Some(after), true) = (&before, &state, window.contains(time)) {
            let change = step(before, after).ok_or(Unavailable::TooLarge)?;
            sum = sum.checked_add(change).ok_or(Unavailable::TooLarge)?;
            steps += 1;
        }
        before = state;
    }
    if steps == 0 {
        return Err(Unavailable::TooFew {
            what: "changes of the best quotes",
            have: 0,
            need: 1,
        });
    }
    Ok(Ofi {
        ofi_base: sum,
        window,
        window_secs: window.seconds(),
        steps,
        standing: Standing::Sound,
        note: "explains price changes at the same time; does not predict",
    })
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{books, level};
    use super::*;
    use proptest::prelude::*;

    fn touch(bid: (&str, &str), ask: (&str, &str)) -> Option<Touch> {
        Touch::new(level(&bid), level(&ask)).ok()
    }

    /// One state a second, from zero on; the window has those after the first.
    fn over(states: &[Option<Touch>]) -> Result<Ofi, Unavailable> {
        let timed = states.iter().zip(0..).map(|(state, second)| (second * 1000, *state));
        ofi(timed, Window::last(60, 60_000))
    }

    #[test]
    fn worked_by_hand() {
        let start = touch(("100", "5"), ("101", "4"));
        let sum = |states: &[Option<Touch>]| over(states).map(|ofi| ofi.ofi_base.to_string());
        // Same prices, bid 5 → 8: + 8 − 5 − 4 + 4 = 3.
        assert_eq!(sum(&[start, touch(("100", "8"), ("101", "4"))]).as_deref(), Ok("3"));
        // Bid up to 100.5 with 2: + 2; ask as before: − 4 + 4. Sum 2.
        assert_eq!(sum(&[start, touch(("100.5", "2"), ("101", "4"))]).as_deref(), Ok("2"));
        // Bid down to 99 with 9: − 5. Ask down to 100 with 1: − 1. Sum −6.
        assert_eq!(sum(&[start, touch(("99", "9"), ("100", "1"))]).as_deref(), Ok("-6"));
        // Ask up to 102: + 4 (what was there is gone).
        assert_eq!(sum(&[start, touch(("100", "5"), ("102", "7"))]).as_deref(), Ok("4"));
    }

    #[test]
    fn nothing_is_summed_across_a_break() {
        let (low, high) = (touch(("1", "5"), ("2", "4")), touch(("8", "5"), ("9", "4")));
        let broken = over(&[low, low, None, high, high]).expect("ofi");
        assert_eq!((broken.ofi_base, broken.steps), (Quantity::ZERO, 2));
        assert!(over(&[low, None, high]).is_err());
    }

    #[test]
    fn the_window_counts_from_the_state_before_it() {
        let states = [("1", 0), ("2", 10_000), ("5", 20_000), ("9", 30_000)];
        let timed = states.map(|(size, time)| (time, touch(("100", size), ("101", "4"))));
        // Only 2 → 5 lies in it.
        let told = ofi(
            timed,
            Window {
                start_ms: 10_000,
                end_ms: 20_000,
            },
        )
        .expect("ofi");
        assert_eq!(
            (told.ofi_base.to_string(), told.steps, told.window_secs),
            ("3".to_owned(), 1, 10.0)
        );
    }

    proptest! {
        #[test]
        fn no_change_is_no_flow_and_back_again_cancels(books in (books(), books())) {
            let (one, two) = (Touch::of(&books.0).ok(), Touch::of(&books.1).ok());
            prop_assert_eq!(over(&[one, one, one]).map(|ofi| ofi.ofi_base), Ok(Quantity::ZERO));
            prop_assert_eq!(over(&[one, two, one]).map(|ofi| ofi.ofi_base), Ok(Quantity::ZERO));
        }
    }
}
