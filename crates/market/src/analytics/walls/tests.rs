use super::*;
use crate::analytics::fixture::{money, price, quantity, trade};
use crate::book::Level;
use crate::model::Aggressor::{Buyer, Seller};

/// Twenty levels a side of one unit each around 100, and a bid of `size` at 99 unless that is nothing.
fn book(size: &str) -> Depth {
    let level = |units: i64| Level {
        price: Price::from_units(units * 1_000_000),
        quantity: quantity("1"),
    };
    let mut book = Depth {
        bids: (9_970..9_990).map(level).collect(),
        asks: (10_010..10_030).map(level).collect(),
        ..Depth::default()
    };
    book.bids.set(Level {
        price: price("99"),
        quantity: quantity(size),
    });
    book
}

fn tracker() -> WallTracker {
    WallTracker::new(WallRules::with_floor(money("1000")))
}

fn watch(tracker: &mut WallTracker, size: &str, times: std::ops::RangeInclusive<i64>) {
    for second in times {
        tracker.observe(&book(size), &[], second * 1000).expect("a valid book");
    }
}

#[test]
fn size_alone_is_no_wall() {
    let mut tracker = tracker();
    watch(&mut tracker, "30", 0..=4);
    assert!(tracker.walls().walls.is_empty());
    watch(&mut tracker, "30", 5..=5);
    let told = tracker.walls();
    let wall = &told.walls[0];
    // The median of 21 bids is 1: 30 times. 30 · 99 = 2970. (99 − 99.995)/99.995 = −99.5050 bps.
    assert_eq!(
        (wall.price, wall.notional_quote, wall.times_median),
        (price("99"), money("2970"), Some(30.0))
    );
    assert_eq!((wall.distance_bps, wall.age_ms, wall.views), (Some(-99.505), 5_000, 6));
    assert_eq!((wall.severity, told.watched_ms), (Severity::Medium, 5_000));
}

#[test]
fn all_three_conditions_are_needed() {
    for (size, rules) in [
        ("9.99", WallRules::with_floor(money("1"))),     // under ten times the median
        ("30", WallRules::with_floor(money("2970.01"))), // under the floor
    ] {
        let mut tracker = WallTracker::new(rules);
        watch(&mut tracker, size, 0..=20);
        assert!(tracker.walls().walls.is_empty(), "{size}");
    }
}

#[test]
fn a_break_starts_the_clock_again() {
    let mut tracker = tracker();
    watch(&mut tracker, "30", 0..=4);
    watch(&mut tracker, "1", 5..=5);
    watch(&mut tracker, "30", 6..=10);
    assert!(tracker.walls().walls.is_empty());
    watch(&mut tracker, "30", 20..=24); // ten seconds unseen
    assert!(tracker.walls().walls.is_empty());
    let crossed = Depth {
        asks: [Level {
            price: price("1"),
            quantity: quantity("1"),
        }]
        .into_iter()
        .collect(),
        ..book("30")
    };
    assert!(tracker.observe(&crossed, &[], 25_000).is_err());
    assert_eq!(tracker.walls().watched_ms, 0);
}

#[test]
fn a_wall_that_vanishes_untraded_is_observed() {
    let mut tracker = tracker();
    watch(&mut tracker, "30", 0..=6);
    watch(&mut tracker, "0", 7..=7);
    assert!(tracker.walls().vanished_untraded.is_empty(), "a trade may still come");
    watch(&mut tracker, "0", 8..=8);
    let told = tracker.walls().vanished_untraded;
    assert_eq!(told.len(), 1);
    assert_eq!(
        (told[0].side, told[0].price, told[0].lived_ms),
        (BookSide::Bid, price("99"), 7_000)
    );
}

#[test]
fn a_wall_that_was_eaten_is_not() {
    for late in [false, true] {
        let mut tracker = tracker();
        watch(&mut tracker, "30", 0..=6);
        let eaten = [trade(1, 6_500, "99", "30", Seller)];
        let at_once: &[Trade] = if late { &[] } else { &eaten };
        let later: &[Trade] = if late { &eaten } else { &[] };
        tracker.observe(&book("0"), at_once, 7_000).expect("valid");
        tracker.observe(&book("0"), &[], 7_100).expect("valid");
        tracker.observe(&book("0"), later, 7_900).expect("valid");
        tracker.observe(&book("0"), &[], 9_000).expect("valid");
        assert!(tracker.walls().vanished_untraded.is_empty());
    }
}

#[test]
fn a_trade_of_the_other_side_explains_nothing() {
    let mut tracker = tracker();
    watch(&mut tracker, "30", 0..=6);
    tracker
        .observe(&book("0"), &[trade(1, 6_500, "99", "30", Buyer)], 7_000)
        .expect("valid");
    watch(&mut tracker, "0", 8..=8);
    assert_eq!(tracker.walls().vanished_untraded.len(), 1);
}

#[test]
fn out_of_sight_is_not_gone() {
    let mut tracker = tracker();
    watch(&mut tracker, "30", 0..=6);
    let narrow = Depth {
        bid_reach: Some(price("99.70")),
        ..book("0")
    };
    tracker.observe(&narrow, &[], 7_000).expect("valid");
    tracker.observe(&narrow, &[], 8_500).expect("valid");
    assert!(tracker.walls().vanished_untraded.is_empty());
}

#[test]
fn a_thin_side_says_so() {
    let mut tracker = tracker();
    let thin = Depth {
        bids: book("30").bids.iter().take(3).collect(),
        ..book("30")
    };
    tracker.observe(&thin, &[], 0).expect("valid");
    let told = tracker.walls();
    assert_eq!((told.bid_median_base, told.ask_median_base.is_some()), (None, true));
    assert!(matches!(told.reason, Some(Unavailable::TooFew { have: 3, .. })));
}
