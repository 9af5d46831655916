use super::*;
use crate::depth::band;
use proptest::prelude::*;
use tribune_binance::testing::{books, depth, known_to, minute};

fn past(values: impl IntoIterator<Item = f64>) -> Baseline {
    let mut past = Baseline::default();
    values.into_iter().for_each(|value| past.push(value));
    past
}

#[test]
fn quote_rate_matches_hand_computation() {
    // 1 … 100: median 50.5, three times 151.5; the 99th percentile is 1 + 0.99·99 = 99.01. Threshold 151.5.
    let past = past((1..=100).map(f64::from));
    let result = quote_rate(3_000, 10, &past);
    // 300 is 1.98 times the threshold: low.
    assert_eq!((result.value, result.baseline, result.threshold), (Some(300.0), Some(50.5), Some(151.5)));
    assert_eq!((result.found, result.severity), (Some(true), Some(Severity::Low)));
    assert_eq!(quote_rate(1_500, 10, &past).found, Some(false));
    assert_eq!(quote_rate(3_030, 10, &past).severity, Some(Severity::Medium));
}

#[test]
fn no_past_no_anomaly() {
    let result = quote_rate(3_000, 10, &past([1.0; 29]));
    assert_eq!((result.found, result.value, result.severity), (None, None, None));
    assert!(matches!(result.reason, Some(Unavailable::TooFew { have: 29, need: 30, .. })));
    assert_eq!(quote_rate(5, 0, &past([1.0; 50])).reason, Some(Unavailable::NoTrades));
    let long = past([f64::NAN].into_iter().chain((0..=360).map(f64::from)));
    assert_eq!((long.len(), long.quantile(0.0)), (360, Ok(1.0)));
}

#[test]
fn stress_needs_both_depth_and_spread() {
    // Mid 100; the thinner side is the asks': 100.05 times the size.
    let book = |size| depth(&[("99.95", "90")], &[("100.05", size)]);
    let (usual, spread) = (past([1000.5; 30]), past([2.0; 30]));
    let of = |size, now| liquidity_stress(&band(&book(size), 25).expect("band"), now, &usual, &spread);
    assert_eq!(of("1", 2.0).found, Some(false));
    assert_eq!(of("10", 20.0).found, Some(false));
    // Depth 4 times worse, spread 5 times: 4 is twice the threshold.
    let result = of("2.5", 10.0);
    assert_eq!(result.value, Some(4.0));
    assert_eq!((result.found, result.severity), (Some(true), Some(Severity::Medium)));
    let partly = known_to(book("2.5"), None, Some("100.06"));
    let unknown = liquidity_stress(&band(&partly, 25).expect("band"), 10.0, &usual, &spread);
    assert_eq!((unknown.found, unknown.reason), (None, Some(Unavailable::BeyondReach)));
    assert!(!result.note.contains("imminent"));
}

#[test]
fn outliers_match_hand_computation() {
    // Returns of the past: 0 and ±1% by turns; the last one +50%.
    let mut closes = vec!["100"];
    for _ in 0..20 {
        closes.extend(["101", "101", "100", "100"]);
    }
    closes.push("150");
    let candles: Vec<_> = closes.iter().zip(0..).map(|(close, at)| minute(at, [*close; 4], "1")).collect();
    let result = return_outlier(&candles);
    // Half of the distances from the median 0 are 0, half ln 1.01 = 0.00995033: their median is the mean of both,
    // 0.00497517. ln 1.5 = 0.405465: 0.6745 · 0.405465/0.00497517 = 54.97.
    assert_eq!((result.found, result.severity), (Some(true), Some(Severity::High)));
    assert!(result.value.is_some_and(|value| (value - 54.97).abs() < 0.01));
    // All volumes are alike: there is no measure.
    assert_eq!(volume_outlier(&candles).reason, Some(Unavailable::NoVariation));
}

#[test]
fn counts_are_found_from_one_on() {
    let result = Anomalies::from(vec![
        Check::of(AnomalyKind::IcebergHint, 40, Ok(count(0))),
        Check::of(AnomalyKind::IcebergHint, 40, Ok(count(2))),
        Check::of(AnomalyKind::IcebergHint, 0, Err(Unavailable::NoTrades)),
    ]);
    assert_eq!((result.found, result.checked), (1, 2));
    let json = serde_json::to_value(&result.checks[1]).expect("json");
    assert_eq!((&json["type"], &json["standing"]), (&"iceberg_hint".into(), &"hint".into()));
}

proptest! {
    #[test]
    fn usual_values_are_no_anomaly(book in books(), spreads in proptest::collection::vec(0.5..1000.0f64, 30..100)) {
        let band = band(&book, 100).expect("band");
        let (depths, spreads) = (past([band.smaller_side().as_f64(); 30]), past(spreads));
        let usual = spreads.median().expect("median");
        prop_assert_ne!(liquidity_stress(&band, usual, &depths, &spreads).found, Some(true));
    }
}
