//! Hand-computed reports.

use super::*;
use serde_json::{Value, json};
use tribune_binance::{
    Aggressor::{Buyer, Seller},
    Observer as _,
};

/// Eight orders of the last minute, one of which was matched with six others.
fn busy() -> Scene {
    let mut scene = Scene::new();
    scene.day = Some(day(&scene));
    scene.published.tape.opened(T0 - 1_000_000);
    scene.trade((1, 1), -60_000, "99.95", "1", Buyer);
    scene.trade((2, 2), -28_900, "99.96", "2", Seller);
    // From here on within 30 s of the 1,100th millisecond.
    scene.trade((3, 3), -28_899, "99.97", "4", Buyer);
    scene.trade((4, 4), -8_900, "100.02", "3", Seller);
    // From here on within 10 s.
    scene.trade((5, 10), -8_899, "100.03", "2.5", Buyer);
    scene.trade((11, 11), 500, "100.04", "1.5", Seller);
    scene.trade((12, 12), 1_100, "100.05", "0.5", Buyer);
    scene.show(three_levels(), 1_000);
    scene
}

/// - Change: (100.05 − 96)/96 = 4.21875%, of the last trade and not of the ticker, which is older.
/// - Micro price: (100.05·2 + 99.95·1)/3 = 100.01666…; imbalance: (15 − 5)/20.
/// - Flow: bought 4 + 2.5 + 0.5 = 7, sold 3 + 1.5 = 4.5; ids 5 to 12, eight, in 10 s; ids 3 to 12.
/// - Profile: rows of 0.01 from 99.95 hold 1, 2, 4, 0, 0, 0, 0, 3, 2.5, 1.5, 0.5 of 14.5. The largest is 99.97 to
///   99.98; two rows below (3) before two above (0), then upwards (0, 0), then 5.5 more: 12.5 is above 10.15.
/// - Vacuum: the median row is 2; the four rows from 99.98 are below 0.2.
/// - Health: spread 100 − 100·ln 10/ln 50 = 41.1; depth 499.3 of 5,000,000 is 0.9986 bps: 100·ln 9.986/ln 100 = 50.0;
///   balance (499.3 − 501.05)/1000.35 = −0.0017: 99.8; flow 2.5/11.5 = 0.2174: 78.3; freshness 100; anomalies not
///   known. (41.1·0.2 + 50·0.25 + 99.8·0.15 + 78.3·0.15 + 100·0.1)/0.85 = 67.6.
#[test]
fn report_matches_hand_computation() {
    let result = serde_json::to_value(busy().report(1_100)).expect("JSON");
    let golden: Value = serde_json::from_str(include_str!("../../golden/report.json")).expect("JSON");
    for (name, value) in golden.as_object().expect("an object") {
        assert_eq!(&result[name], value, "{name}");
    }
    assert_eq!(result, golden);
}

#[test]
fn figures_have_ten_places() {
    let scene = Scene::new();
    scene.show(depth(&[("10.1", "1")], &[("10.4", "2")]), 0);
    let report = scene.report(0);
    // 0.3/10.25 = 0.029268292682926…; (1 − 2)/3.
    assert_eq!(report.spread_bps, Some(292.682_926_829_3));
    assert_eq!(report.depth.expect("depth").imbalance, Some(-0.333_333_333_3));
    assert_eq!(report.mid_price.expect("mid").to_string(), "10.25");
    assert_eq!(ten_places(Decimal::new(-1, 11)).map(f64::to_bits), Some(0));
    // Beyond what 64 bits hold to the last place, the nearest that can be had.
    assert_eq!(ten_places(Decimal::MAX), Some(79_228_162_514_264_337_593_543_950_335.0));
    assert_eq!(ten_places(Decimal::new(9_007_199_254_740_993, 10)), Some(900_719.925_474_099_3));
}

#[test]
fn at_most_twenty_levels_are_listed_and_summed() {
    let scene = Scene::new();
    let side = |first: i64, step: i64| (0..25).map(move |n| (format!("{}", first + step * n), "2".to_owned()));
    let (bids, asks): (Vec<_>, Vec<_>) = (side(500, -1).collect(), side(501, 1).collect());
    fn texts(side: &[(String, String)]) -> Vec<(&str, &str)> {
        side.iter().map(|(price, size)| (&**price, &**size)).collect()
    }
    let mut book = depth(&texts(&bids), &texts(&asks));
    // Of the asks only the best twelve are known to be without a gap.
    book.asks.reach = Some(price("512"));
    scene.show(book, 0);
    let depth = scene.report(0).depth.expect("depth");
    assert_eq!((depth.bids.len(), depth.asks.len()), (20, 12));
    assert_eq!((depth.total_bid_qty, depth.total_ask_qty), (Decimal::from(40), Decimal::from(24)));
    // (40 − 24)/64
    assert_eq!(depth.imbalance, Some(0.25));
    assert_eq!(depth.asks[11].price.decimal(), Decimal::from(512));
}

#[test]
fn slow_sections_age_between_computations() {
    let scene = busy();
    let slow = scene.slow(1_100);
    scene.show(depth(&[("99", "1")], &[("101", "1")]), 2_500);
    let report = scene.report_with(&slow, 2_600);
    assert_eq!(report.best_bid.map(|level| level.price.decimal()), Some(Decimal::from(99)));
    assert_eq!(report.sections.book.age_ms, Some(100));
    // Was 100 ms old 1,500 ms ago.
    assert_eq!(report.sections.health.age_ms, Some(1_600));
    assert_eq!(report.sections.volume_profile.age_ms, Some(1_600));
    assert_eq!(report.sections.health.computed_at.as_deref(), Some("2025-06-15T15:06:41.100Z"));
    assert_eq!(report.generated_at, "2025-06-15T15:06:42.600Z");
}

#[test]
fn newest_price_is_reported() {
    let mut scene = Scene::new();
    assert_eq!(scene.report(0).last_price, None);
    scene.day = Some(day(&scene));
    assert_eq!(scene.report(700).last_price, Some(Decimal::from(100)));
    scene.published.tape.opened(T0);
    scene.trade((1, 1), 500, "99", "1", Buyer);
    scene.show(three_levels(), 700);
    // A trade on the stream is the last, even if a ticker came after it.
    assert_eq!(scene.report(700).last_price, Some(Decimal::from(99)));
    // Unless the stream has ended: the ticker is of the 550th millisecond.
    scene.set(BookState::Stale, "the connection ended", 800);
    assert_eq!(scene.report(800).last_price, Some(Decimal::from(100)));
}

/// Trades arrive before the ticker that counts them, so change and range follow the reported price.
#[test]
fn price_agrees_with_change_and_range() {
    let mut scene = Scene::new();
    scene.day = Some(day(&scene));
    scene.published.tape.opened(T0);
    scene.show(three_levels(), 700);
    // The ticker has 96 at first, 95.25 at least and 101.5 at most.
    for (id, at, change, high, low) in
        [(1, "108", 12.5, "108", "95.25"), (2, "84", -12.5, "101.5", "84"), (3, "96", 0.0, "101.5", "95.25")]
    {
        scene.trade((id, id), 500 + id as i64, at, "1", Buyer);
        let report = scene.report(700);
        let text = |price: Option<Decimal>| price.map(|price| price.to_string());
        assert_eq!(text(report.last_price).as_deref(), Some(at));
        assert_eq!(report.change_24h_pct, Some(change));
        assert_eq!((text(report.high_24h).as_deref(), text(report.low_24h).as_deref()), (Some(high), Some(low)));
    }
}

/// A wall of fifty times the median that has stayed for five seconds, and what the checks say meanwhile.
#[test]
fn walls_and_anomalies_come_from_the_watch() {
    let scene = Scene::new();
    scene.published.tape.opened(T0);
    let mut levels: Vec<(String, &str)> = (0..30).map(|down| (format!("{}", 90 - down), "2")).collect();
    levels[3].1 = "100";
    let bids: Vec<(&str, &str)> = levels.iter().map(|(price, size)| (&**price, *size)).collect();
    let book = depth(&bids, &[("91", "2")]);
    let beats = tribune_binance::Beats::default();
    for second in 0..=5u64 {
        scene.show(book.clone(), second * 1_000);
        let status = scene.published.status();
        let (watch, tape) = (&scene.published.watch, &scene.published.tape);
        watch.look(status.view.as_ref().expect("a view"), tape, beats, T0 + second as i64 * 1_000);
        let report = scene.report(second * 1_000);
        let (walls, section) = (report.liquidity.walls, report.sections.walls);
        if second < 5 {
            assert_eq!((walls, section.reason.as_deref()), (None, Some("watched for less than 5 s")));
        } else {
            assert_eq!(
                serde_json::to_value(walls).expect("JSON"),
                json!([{"side": "bid", "price": "87", "qty": "100", "severity": "high"}])
            );
            assert_eq!(section.reason.as_deref(), Some("asks were not checked: 1 levels, 20 needed"));
        }
    }
    let report = scene.report(5_000);
    assert_eq!(report.anomalies, Some(vec![]));
    assert_eq!(
        report.sections.anomalies.reason.as_deref(),
        Some(
            "3 of 4 checks could not be made yet: quote_rate (watched for less than 10 s), liquidity_stress (0 baseline samples, 30 needed), large_level_vanished_untraded (watched for less than 30 s)"
        )
    );
    // Gone without a trade: reported after the second in which a late trade might arrive.
    levels.remove(3);
    let bids: Vec<(&str, &str)> = levels.iter().map(|(price, size)| (&**price, *size)).collect();
    for second in 6..=7u64 {
        scene.show(depth(&bids, &[("91", "2")]), second * 1_000);
        let status = scene.published.status();
        let (watch, tape) = (&scene.published.watch, &scene.published.tape);
        watch.look(status.view.as_ref().expect("a view"), tape, beats, T0 + second as i64 * 1_000);
    }
    let report = scene.report(7_000);
    assert_eq!(report.liquidity.walls, Some(vec![]));
    let found = report.anomalies.expect("checked");
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].kind, "large_level_vanished_untraded");
    assert!(
        found[0]
            .note
            .starts_with("value 1, found from 1, over the last 300 s; the book has been watched for 7 s; large levels"),
        "{}",
        found[0].note
    );
}
