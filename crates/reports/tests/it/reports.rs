//! Reports to keep: of the size and shape of real ones.

use std::sync::Arc;
use std::time::Instant;

use rust_decimal::Decimal;
use tribune_analytics::{BookSide, Severity};
use tribune_binance::{Price, Quantity};
use tribune_reports::aged::AgedReport;
use tribune_reports::cache::{Claim, Found, Generated, NodeId, Token};
use tribune_reports::model::{
    Anomaly, Component, Depth, Flow, Health, Ingestion, IngestionStatus, Level, Liquidity, Report, SCHEMA_VERSION,
    Section, Sections, VolumeProfile, Wall, Writer,
};

pub const BTC: &str = "BTCUSDT";

pub fn node(name: &str) -> NodeId {
    name.into()
}

pub fn symbol(name: &str) -> Arc<str> {
    name.into()
}

pub fn claim(name: &str) -> Claim {
    Claim { symbol: symbol(name), is_fresh: true }
}

pub fn write(symbol: &str, node: &NodeId, token: Token, sequence: u64) -> Generated {
    Generated { report: Arc::new(report(symbol, node, token, sequence)), at: Instant::now() }
}

/// The report that was found.
#[track_caller]
pub fn stored(found: &[Found]) -> &AgedReport {
    match found {
        [Ok(Some(stored))] => stored,
        other => panic!("no report: {other:?}"),
    }
}

fn decimal(text: &str) -> Decimal {
    text.parse().expect("a number")
}

fn levels(best: i64, step: i64) -> Vec<Level> {
    let level = |at: i64| Level {
        price: Price::from_units((best + at * step) * 1_000_000),
        qty: Quantity::from_units(i128::from(12_345_678 + 987_654 * at)),
    };
    (0..20).map(level).collect()
}

fn component(name: &str) -> Component {
    Component {
        name: name.to_owned(),
        input: Some(1.234_567_89),
        input_unit: "bps".to_owned(),
        score: Some(87.654_321),
        weight: 0.2,
        contribution: Some(17.530_864_2),
        mapping: "100 up to 1 bps, then falling in a straight line to 0 at 50 bps".to_owned(),
        reason: None,
    }
}

fn sections() -> Sections {
    let section = Section {
        computed_at: Some("2026-01-02T03:04:05.678Z".to_owned()),
        exchange_time: Some("2026-01-02T03:04:05.6Z".to_owned()),
        age_ms: Some(78),
        reason: Some("the window is not yet full: 120 of 900 seconds have been seen".to_owned()),
    };
    Sections {
        ticker: section.clone(),
        book: section.clone(),
        flow: section.clone(),
        walls: section.clone(),
        vacuums: section.clone(),
        volume_profile: section.clone(),
        anomalies: section.clone(),
        health: section,
    }
}

pub fn report(symbol: &str, node: &NodeId, token: Token, sequence: u64) -> Report {
    let (bids, asks) = (levels(9_876_543, -1), levels(9_876_544, 1));
    Report {
        schema_version: SCHEMA_VERSION.to_owned(),
        writer: Writer { node_id: node.to_string(), writer_token: token, sequence },
        updated_at: "2026-01-02T03:04:05.678Z".to_owned(),
        symbol: symbol.to_owned(),
        base_asset: symbol.trim_end_matches("USDT").to_owned(),
        quote_asset: "USDT".to_owned(),
        venue: "binance-spot".to_owned(),
        simulated: None,
        generated_at: "2026-01-02T03:04:05.678Z".to_owned(),
        data_age_ms: 12,
        ingestion: Ingestion {
            status: IngestionStatus::Ok,
            last_update: Some("2026-01-02T03:04:05.6Z".to_owned()),
            reason: None,
        },
        last_price: Some(decimal("98765.43")),
        change_24h_pct: Some(-1.234_567_890_1),
        high_24h: Some(decimal("99999.99")),
        low_24h: Some(decimal("95000.00")),
        volume_24h: Some(decimal("12345.67890000")),
        quote_volume_24h: Some(decimal("1219326311.12345678")),
        best_bid: bids.first().copied(),
        best_ask: asks.first().copied(),
        spread_bps: Some(0.001_012_5),
        mid_price: Some(decimal("98765.435")),
        micro_price: Some(decimal("98765.4351")),
        depth: Some(Depth {
            bids,
            asks,
            total_bid_qty: decimal("4.34572120"),
            total_ask_qty: decimal("4.34572120"),
            imbalance: Some(0.0),
            last_update_id: 12_345_678_901,
        }),
        flow: Some(Flow {
            orders_per_sec: Some(12.3),
            net_flow: decimal("-0.12345678"),
            buy_volume: decimal("10.5"),
            sell_volume: decimal("10.62345678"),
            trade_count: 1_234,
            window_sec: 60,
            window_end_ms: 1_767_323_045_678,
            complete: true,
        }),
        liquidity: Liquidity {
            walls: Some(vec![
                Wall {
                    side: BookSide::Bid,
                    price: decimal("98000.00"),
                    qty: decimal("55.5"),
                    severity: Severity::High,
                };
                4
            ]),
            vacuums: None,
            volume_profile: Some(VolumeProfile {
                poc: decimal("98700"),
                vah: decimal("98800"),
                val: decimal("98600"),
                window_sec: 900,
                window_end_ms: 1_767_323_045_678,
                trade_count: 12_345,
                coverage: Some(0.5),
            }),
        },
        anomalies: Some(vec![Anomaly {
            kind: "volume_spike".to_owned(),
            severity: Severity::Medium,
            note: "4.2 times the usual volume of a minute".to_owned(),
        }]),
        health: Some(Health {
            score: Some(87.654_321),
            weights_used: 1.0,
            components: ["spread", "depth", "imbalance", "flow", "volatility"].map(component).to_vec(),
            note: "a convention, not a forecast".to_owned(),
        }),
        sections: sections(),
    }
}
