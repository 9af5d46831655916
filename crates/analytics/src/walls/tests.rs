use super::*;
use tribune_binance::testing::{known_to, money, price, quantity, trade};
use tribune_binance::{
    Aggressor::{Buyer, Seller},
    Level,
};

/// Twenty levels a side of one unit each around 100, and a bid of `size` at 99 unless that is nothing.
fn book(size: &str) -> Depth {
    let level = |units: i64| Level { price: Price::from_units(units * 1_000_000), quantity: quantity("1") };
    let mut book = Depth { bids: (9_970..9_990).map(level).collect(), asks: (10_010..10_030).map(level).collect() };
    book.bids.set(Level { price: price("99"), quantity: quantity(size) });
    book
}

fn tracker() -> WallTracker {
    tracker_from("1000")
}

fn tracker_from(floor: &str) -> WallTracker {
    let mut tracker = WallTracker::default();
    tracker.set_floor(money(floor));
    tracker
}

fn watch(tracker: &mut WallTracker, size: &str, times: std::ops::RangeInclusive<i64>) {
    for second in times {
        tracker.observe(&book(size), &[], second * 1000);
    }
}

#[test]
fn size_alone_is_no_wall() {
    let mut tracker = tracker();
    watch(&mut tracker, "30", 0..=4);
    assert!(tracker.walls().walls.is_empty());
    watch(&mut tracker, "30", 5..=5);
    let result = tracker.walls();
    let wall = &result.walls[0];
    // The median of 21 bids is 1: 30 times. 30 · 99 = 2970. (99 − 99.995)/99.995 = −99.5050 bps.
    assert_eq!((wall.price, wall.notional_quote, wall.times_median), (price("99"), money("2970"), Some(30.0)));
    assert_eq!((wall.distance_bps, wall.age_ms, wall.views), (Some(-99.505), 5_000, 6));
    assert_eq!((wall.severity, result.watched_ms), (Severity::Medium, 5_000));
}

#[test]
fn all_three_conditions_are_needed() {
    for (size, floor) in [
        ("9.99", "1"),     // under ten times the median
        ("30", "2970.01"), // under the floor
    ] {
        let mut tracker = tracker_from(floor);
        watch(&mut tracker, size, 0..=20);
        assert!(tracker.walls().walls.is_empty(), "{size}");
    }
}

#[test]
fn break_restarts_the_watch() {
    let mut tracker = tracker();
    watch(&mut tracker, "30", 0..=4);
    watch(&mut tracker, "1", 5..=5);
    watch(&mut tracker, "30", 6..=10);
    assert!(tracker.walls().walls.is_empty());
    watch(&mut tracker, "30", 20..=24); // ten seconds unseen
    assert!(tracker.walls().walls.is_empty());
    let crossed =
        Depth { asks: [Level { price: price("1"), quantity: quantity("1") }].into_iter().collect(), ..book("30") };
    tracker.observe(&crossed, &[], 25_000);
    assert_eq!(tracker.walls().watched_ms, 0);
}

#[test]
fn untraded_vanished_wall_is_reported() {
    let mut tracker = tracker();
    watch(&mut tracker, "30", 0..=6);
    watch(&mut tracker, "0", 7..=7);
    assert!(tracker.walls().vanished_untraded.is_empty(), "a trade may still come");
    watch(&mut tracker, "0", 8..=8);
    let result = tracker.walls().vanished_untraded;
    assert_eq!(result.len(), 1);
    assert_eq!((result[0].side, result[0].price, result[0].lived_ms), (BookSide::Bid, price("99"), 7_000));
}

#[test]
fn traded_wall_is_not_reported() {
    for late in [false, true] {
        let mut tracker = tracker();
        watch(&mut tracker, "30", 0..=6);
        let eaten = [trade(1, 6_500, "99", "30", Seller)];
        let at_once: &[Trade] = if late { &[] } else { &eaten };
        let later: &[Trade] = if late { &eaten } else { &[] };
        tracker.observe(&book("0"), at_once, 7_000);
        tracker.observe(&book("0"), &[], 7_100);
        tracker.observe(&book("0"), later, 7_900);
        tracker.observe(&book("0"), &[], 9_000);
        assert!(tracker.walls().vanished_untraded.is_empty());
    }
}

#[test]
fn trade_on_other_side_explains_nothing() {
    let mut tracker = tracker();
    watch(&mut tracker, "30", 0..=6);
    tracker.observe(&book("0"), &[trade(1, 6_500, "99", "30", Buyer)], 7_000);
    watch(&mut tracker, "0", 8..=8);
    assert_eq!(tracker.walls().vanished_untraded.len(), 1);
}

#[test]
fn level_out_of_range_has_not_vanished() {
    let mut tracker = tracker();
    watch(&mut tracker, "30", 0..=6);
    let narrow = known_to(book("0"), Some("99.70"), None);
    tracker.observe(&narrow, &[], 7_000);
    tracker.observe(&narrow, &[], 8_500);
    assert!(tracker.walls().vanished_untraded.is_empty());
}

#[test]
fn thin_side_has_a_reason() {
    let mut tracker = tracker();
    let thin = Depth { bids: book("30").bids.iter().take(3).collect(), ..book("30") };
    tracker.observe(&thin, &[], 0);
    let result = tracker.walls();
    assert_eq!((result.bid_median_base, result.ask_median_base.is_some()), (None, true));
    assert!(matches!(result.reason, Some(Unavailable::TooFew { have: 3, .. })));
}
