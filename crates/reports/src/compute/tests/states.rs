//! Reports while something is missing.

use super::*;
use crate::model::IngestionStatus::{Degraded, Down, Ok};
use crate::model::Section;
use tribune_binance::Aggressor::{Buyer, Seller};

#[test]
fn unknown_market_is_null_with_reasons() {
    let scene = Scene::new();
    let report = scene.report(1_000);
    assert_eq!((report.data_age_ms, report.ingestion.status), (1_000, Ok));
    assert!(report.best_bid.is_none() && report.depth.is_none() && report.mid_price.is_none());
    let reason = |section: &Section| section.reason.clone().expect("a reason");
    let sections = &report.sections;
    assert_eq!(reason(&sections.book), "the book is warming: waiting for its first snapshot");
    assert_eq!(reason(&sections.flow), "trades are not watched yet");
    assert_eq!(reason(&sections.ticker), "the last 24 hours of the symbol are not known yet");
    assert!(report.health.is_none() && report.anomalies.is_none() && report.liquidity.walls.is_none());
    assert_eq!(reason(&sections.health), "the book is warming: waiting for its first snapshot");
    assert!(reason(&sections.anomalies).starts_with("4 of 4 checks could not be made yet: quote_rate ("));
    assert_eq!(reason(&sections.vacuums), "trades are not watched yet");
}

#[test]
fn stopped_data_becomes_degraded_then_down() {
    let scene = Scene::new();
    scene.show(three_levels(), 1_000);
    let result = |millis| {
        let report = scene.report(millis);
        (report.data_age_ms, report.ingestion.status, report.ingestion.reason)
    };
    assert_eq!(result(1_000), (0, Ok, None));
    assert_eq!(result(3_999), (2_999, Ok, None));
    let silent = |seconds| Some(format!("no data from the exchange for {seconds} s"));
    assert_eq!(result(4_000), (3_000, Degraded, silent("3.0")));
    assert_eq!(result(6_000), (5_000, Down, silent("5.0")));
    // The figures of the last book stand, and say how old they are.
    let report = scene.report(6_000);
    assert_eq!(report.spread_bps, Some(10.0));
    assert_eq!(report.sections.book.age_ms, Some(5_000));
    // And back by itself.
    scene.show(three_levels(), 6_100);
    assert_eq!(result(6_200), (100, Ok, None));
}

#[test]
fn stale_book_is_reported_crossed_book_is_not() {
    let scene = Scene::new();
    scene.show(three_levels(), 1_000);
    scene.set(BookState::Stale, "the connection to the exchange ended: reset", 2_000);
    let report = scene.report(9_000);
    let reason = "the book is stale: the connection to the exchange ended: reset";
    assert_eq!(report.best_ask.map(|level| level.price.to_string()).as_deref(), Some("100.05"));
    assert_eq!((report.ingestion.status, report.ingestion.reason.as_deref()), (Down, Some(reason)));
    assert_eq!(report.sections.book.reason.as_deref(), Some(reason));
    assert_eq!(report.liquidity.walls, None);
    assert_eq!(report.sections.walls.reason.as_deref(), Some(reason));
    assert_eq!(report.ingestion.last_update.as_deref(), Some("2025-06-15T15:06:40.950Z"));

    scene.set(BookState::Resyncing, "updates are missing: 5 was to come, 9 came", 9_000);
    let report = scene.report(9_000);
    assert!(report.best_ask.is_none() && report.spread_bps.is_none() && report.depth.is_none());
    assert!(report.health.is_none());
    assert_eq!(
        report.sections.book.reason.as_deref(),
        Some("the book is resyncing: updates are missing: 5 was to come, 9 came")
    );
}

#[test]
fn one_empty_side_leaves_the_other() {
    let scene = Scene::new();
    scene.show(depth(&[], &[("5", "2")]), 0);
    let report = scene.report(0);
    assert_eq!(report.best_bid, None);
    assert_eq!(report.best_ask.map(|level| level.qty.decimal()), Some(Decimal::from(2)));
    assert_eq!((report.spread_bps, report.mid_price, report.micro_price), (None, None, None));
    let depth = report.depth.expect("depth");
    assert_eq!((depth.imbalance, depth.total_ask_qty), (None, Decimal::from(2)));
    assert_eq!(report.sections.book.reason.as_deref(), Some("the book has no bids"));
    let health = report.health.expect("health");
    // Only the age is known: that is no health of the market.
    assert_eq!((health.score, health.weights_used), (None, 0.1));
    assert_eq!(report.sections.health.reason.as_deref(), Some("only 10% of the weight has an input, 50% needed"));
    assert_eq!(health.components[0].reason.as_deref(), Some("the book has no bids"));
}

#[test]
fn crossed_book_has_no_figures() {
    let scene = Scene::new();
    scene.show(depth(&[("5", "1")], &[("5", "2")]), 0);
    let report = scene.report(0);
    assert_eq!((report.best_bid, report.best_ask, report.depth), (None, None, None));
    let reason = report.sections.book.reason.expect("a reason");
    assert!(reason.starts_with("the book is crossed (best bid 5, best ask 5)"), "{reason}");
}

#[test]
fn partial_flow_says_from_when() {
    let scene = Scene::new();
    scene.published.tape.opened(T0 + 1_000);
    scene.show(three_levels(), 1_000);
    scene.trade((1, 1), 2_000, "100", "3", Buyer);
    scene.trade((2, 2), 4_000, "100", "1", Seller);
    scene.show(three_levels(), 5_000);
    let report = scene.report(5_000);
    let flow = report.flow.expect("flow");
    assert_eq!((flow.net_flow, flow.complete, flow.orders_per_sec), (Decimal::TWO, false, None));
    assert_eq!(
        report.sections.flow.reason.as_deref(),
        Some("trades of the window before 2025-06-15T15:06:41.000Z are missing")
    );
    let profile = report.liquidity.volume_profile.expect("a profile");
    // 4 s of 900.
    assert_eq!(profile.coverage, Some(0.004_444_444_4));
    // After ten seconds the rate is known, after thirty everything.
    scene.show(three_levels(), 11_000);
    let flow = scene.report(11_000).flow.expect("flow");
    assert_eq!((flow.complete, flow.orders_per_sec), (false, Some(0.2)));
    scene.show(three_levels(), 31_000);
    let report = scene.report(31_000);
    let flow = report.flow.expect("flow");
    assert_eq!((flow.complete, flow.orders_per_sec, flow.trade_count), (true, Some(0.0), 2));
    assert_eq!(report.sections.flow.reason, None);
}

/// A time without data is not a quiet market.
#[test]
fn flow_ends_where_the_data_end() {
    let scene = Scene::new();
    scene.published.tape.opened(T0 - 100_000);
    scene.trade((1, 1), 500, "100", "3", Buyer);
    scene.show(three_levels(), 1_000);
    scene.set(BookState::Stale, "the connection ended", 2_000);
    let report = scene.report(61_000);
    let flow = report.flow.expect("flow");
    assert_eq!((flow.window_end_ms, flow.trade_count), (T0 + 1_000, 1));
    assert_eq!(report.sections.flow.age_ms, Some(60_000));
    assert_eq!(report.sections.flow.exchange_time.as_deref(), Some("2025-06-15T15:06:41.000Z"));
    // Trades come although the book does not: known up to the last of them.
    scene.trade((2, 2), 60_000, "100", "1", Seller);
    let report = scene.report(61_000);
    assert_eq!(report.flow.map(|flow| flow.window_end_ms), Some(T0 + 60_000));
    assert_eq!(report.sections.flow.age_ms, Some(1_000));
    // The stream is opened again: nothing is known of what was before.
    scene.published.tape.opened(T0 + 61_000);
    let report = scene.report(61_500);
    assert_eq!(report.flow, None);
    assert_eq!(report.sections.flow.reason.as_deref(), Some("trades are watched only since 2025-06-15T15:07:41.000Z"));
}

#[test]
fn day_without_open_has_no_change() {
    let mut scene = Scene::new();
    scene.day = Some(Day { open: price("0"), ..day(&scene) });
    let report = scene.report(700);
    assert_eq!(report.change_24h_pct, None);
    assert_eq!(report.high_24h.map(|high| high.to_string()).as_deref(), Some("101.5"));
    assert_eq!(report.sections.ticker.reason.as_deref(), Some("no price of 24 hours ago to compare with"));
}
