use super::*;
use crate::anomalies::quote_rate;
use crate::anomalies::{Anomalies, AnomalyKind, Baseline, Check};
use crate::depth::band;
use crate::figure::Window;
use crate::flow::trade_flow;
use crate::quotes::quotes;
use proptest::prelude::*;
use tribune_binance::Aggressor::{Buyer, Seller};
use tribune_binance::testing::{books, depth as book, money, trade, trades};

fn scores(health: &Health) -> Vec<Option<f64>> {
    health.components.iter().map(|component| component.score).collect()
}

#[test]
fn matches_hand_computation() {
    // Mid 100, bids 99.95 · 3 = 299.85, asks 100.05 · 1 = 100.05: spread 10 bps, thinner side 100.05.
    let band = band(&book(&[("99.95", "3")], &[("100.05", "1")]), BAND_BPS).expect("band");
    // 8 bought, 2 sold: |8 − 2|/10 = 0.6.
    let all: Vec<_> = (0..10).map(|id| trade(id, 1, "100", "1", if id < 8 { Buyer } else { Seller })).collect();
    let flow = trade_flow(&all, Window::last(1, 1), -1_000).expect("flow");
    let mut past = Baseline::default();
    (0..50).for_each(|_| past.push(10.0));
    // 300 for each trade against three times 10: ten times the threshold, high, 60 points.
    let anomalies = Anomalies::from(vec![quote_rate(300, 1, &past)]);
    let result = health(&HealthInputs {
        spread_bps: Ok(10.0),
        band: Ok(&band),
        quote_volume_24h: Some(money("1000500")),
        flow: Ok(&flow),
        flow_secs: 60,
        anomalies: &anomalies,
        age_ms: 2_000,
    });
    // spread: 100 − 100·ln 10/ln 50 = 100 − 58.8588 = 41.1. depth: 100.05/1000500 = 1 bps: half way from 0.1 to 10.
    // balance: |199.8/399.9| = 0.4996 → 50.0. flow: 40. anomalies: 40. freshness: 100·3000/4000 = 75.
    assert_eq!(scores(&result), [41.1, 50.0, 50.0, 40.0, 40.0, 75.0].map(Some));
    // 0.2·41.1 + 0.25·50 + 0.15·50 + 0.15·40 + 0.15·40 + 0.1·75 = 8.22 + 12.5 + 7.5 + 6 + 6 + 7.5 = 47.72.
    assert_eq!((result.score, result.weights_used, result.complete), (Some(47.7), 1.0, true));
    let parts: f64 = result.components.iter().filter_map(|component| component.contribution).sum();
    assert!((parts - 47.72).abs() < 1e-9);
}

#[test]
fn unknown_markets_are_left_out_and_counted() {
    let result = health(&HealthInputs {
        spread_bps: Ok(0.5),
        band: Err(Unavailable::NoAsks),
        quote_volume_24h: None,
        flow: Err(Unavailable::NoTrades),
        flow_secs: 60,
        anomalies: &Anomalies::from(Vec::new()),
        age_ms: 4_999,
    });
    assert_eq!(scores(&result), [Some(100.0), None, None, None, None, Some(0.0)]);
    // A spread and an age are 0.3 of the weight: no score of the market.
    assert_eq!((result.score, result.weights_used, result.complete), (None, 0.3, false));
    assert_eq!(
        result.reason.as_ref().map(ToString::to_string).as_deref(),
        Some("only 30% of the weight has an input, 50% needed")
    );
    assert!(result.components.iter().all(|component| component.contribution.is_none()));
    assert_eq!(result.components[1].reason, Some(Unavailable::NoAsks));
    let json = serde_json::to_value(&result).expect("json");
    assert_eq!(json["components"][1]["reason"], "the book has no asks");
    assert!(json["components"][1]["score"].is_null());
    assert_eq!(json["standing"], "convention");
}

#[test]
fn depth_beyond_known_levels_is_a_lower_bound() {
    let mut partly = book(&[("99.95", "3")], &[("100.05", "1")]);
    partly.asks.reach = partly.asks.best().map(|best| best.price);
    let band = band(&partly, BAND_BPS).expect("band");
    let result = health(&HealthInputs {
        spread_bps: Ok(10.0),
        band: Ok(&band),
        quote_volume_24h: Some(money("1000500")),
        flow: Err(Unavailable::NoTrades),
        flow_secs: 60,
        anomalies: &Anomalies::from(Vec::new()),
        age_ms: 0,
    });
    let [_, depth, balance, ..] = &result.components[..] else {
        panic!("six components");
    };
    assert_eq!(depth.score, Some(50.0));
    assert!(depth.note.as_ref().is_some_and(|note| note.contains("lower bound")));
    assert_eq!((balance.score, balance.reason.clone()), (None, Some(Unavailable::BeyondReach)));
}

/// A score over checks of which some could not be made is a score of the others, and says so.
#[test]
fn missing_checks_leave_the_score_incomplete() {
    let mut past = Baseline::default();
    (0..50).for_each(|_| past.push(10.0));
    let made = quote_rate(10, 1, &past);
    let not_made = Check::not_made(AnomalyKind::VolumeOutlier, Unavailable::NoTrades);
    let band = band(&book(&[("99.95", "3")], &[("100.05", "1")]), BAND_BPS).expect("band");
    let all: Vec<_> = (0..10).map(|id| trade(id, 1, "100", "1", Buyer)).collect();
    let flow = trade_flow(&all, Window::last(1, 1), -1_000).expect("flow");
    let scored = |checks: Vec<Check>| {
        health(&HealthInputs {
            spread_bps: Ok(10.0),
            band: Ok(&band),
            quote_volume_24h: Some(money("1000500")),
            flow: Ok(&flow),
            flow_secs: 30,
            anomalies: &Anomalies::from(checks),
            age_ms: 0,
        })
    };
    let whole = scored(vec![made.clone()]);
    assert!(whole.complete && whole.components[4].note.is_none());
    let partly = scored(vec![made, not_made.clone()]);
    assert_eq!((partly.score, partly.complete), (whole.score, false));
    assert_eq!(partly.components[4].note.as_deref(), Some("of 1 of 2 checks: the others could not be made"));
    let none = scored(vec![not_made]);
    assert_eq!((none.components[4].score, none.complete), (None, false));
    // Which seconds the flow is of.
    assert_eq!(whole.components[3].input_unit, "absolute aggressor imbalance of the last 30 s, 0 to 1");
}

#[test]
fn score_needs_inputs() {
    let result = health(&HealthInputs {
        spread_bps: Err(Unavailable::NoBids),
        band: Err(Unavailable::NoBids),
        quote_volume_24h: None,
        flow: Err(Unavailable::NoTrades),
        flow_secs: 60,
        anomalies: &Anomalies::from(Vec::new()),
        age_ms: 0,
    });
    assert_eq!((result.score, result.weights_used), (None, 0.1));
}

#[test]
fn weights_match_the_documentation() {
    let result = health(&HealthInputs {
        spread_bps: Err(Unavailable::NoBids),
        band: Err(Unavailable::NoBids),
        quote_volume_24h: None,
        flow: Err(Unavailable::NoTrades),
        flow_secs: 60,
        anomalies: &Anomalies::from(Vec::new()),
        age_ms: 0,
    });
    let weights: Vec<_> = result.components.iter().map(|component| (component.name, component.weight)).collect();
    let published = [
        ("spread", 0.20),
        ("depth", 0.25),
        ("balance", 0.15),
        ("flow", 0.15),
        ("anomalies", 0.15),
        ("freshness", 0.10),
    ];
    assert_eq!(weights, published);
    assert!((weights.iter().map(|(_, weight)| weight).sum::<f64>() - 1.0).abs() < 1e-9);
}

proptest! {
    #[test]
    fn every_score_lies_between_0_and_100(
        book in books(), trades in trades(), volume in 0..i128::MAX, age in any::<u64>(),
        spread in prop_oneof![any::<f64>(), 0.0..100.0],
    ) {
        let band = band(&book, BAND_BPS);
        let flow = trade_flow(&trades, Window { start_ms: -1, end_ms: i64::MAX }, 0);
        let result = health(&HealthInputs {
            spread_bps: quotes(&book).map(|_| spread),
            band: band.as_ref().map_err(Clone::clone),
            quote_volume_24h: Some(Notional::from_units(volume)),
            flow: flow.as_ref().map_err(Clone::clone),
            flow_secs: 60,
            anomalies: &Anomalies::from(Vec::new()),
            age_ms: age,
        });
        for score in scores(&result).into_iter().chain([result.score]).flatten() {
            prop_assert!((0.0..=100.0).contains(&score));
        }
        let parts: f64 = result.components.iter().filter_map(|component| component.contribution).sum();
        prop_assert!(result.score.is_none_or(|score| (score - parts).abs() < 0.1));
    }
}

#[test]
fn old_data_has_no_health() {
    let band = band(&book(&[("99.95", "3")], &[("100.05", "1")]), BAND_BPS).expect("band");
    let of = |age_ms| {
        health(&HealthInputs {
            spread_bps: Ok(1.0),
            band: Ok(&band),
            quote_volume_24h: Some(money("1000500")),
            flow: Err(Unavailable::NoTrades),
            flow_secs: 60,
            anomalies: &Anomalies::from(Vec::new()),
            age_ms,
        })
    };
    assert!(of(4_999).score.is_some() && of(4_999).reason.is_none());
    assert_eq!((of(61_000).score, of(61_000).reason), (None, Some(Unavailable::TooOld { secs: 61 })));
}
