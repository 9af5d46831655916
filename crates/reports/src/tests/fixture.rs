//! Reports for tests.

use std::sync::LazyLock;

use jsonschema::Validator;
use serde_json::Value;

use crate::model::{Anomaly, LISTED_LEVELS, Liquidity, Report, SCHEMA_VERSION, Wall};
use tribune_analytics::{BookSide, Severity};

static VALIDATOR: LazyLock<Validator> = LazyLock::new(|| {
    let schema = Value::from(crate::model::schema());
    jsonschema::draft202012::meta::validate(&schema).expect("a schema");
    jsonschema::draft202012::new(&schema).expect("a schema")
});

/// The errors that the schema finds.
pub fn wrong(report: &Value) -> Vec<String> {
    let errors = VALIDATOR.iter_errors(report);
    errors.map(|error| format!("{}: {error}", error.instance_path())).collect()
}

/// What is out of its bounds, which the schema does not say.
pub fn out_of_bounds(report: &Report) -> Vec<String> {
    let mut found = Vec::new();
    let mut check = |name: &str, is_so: bool| found.extend((!is_so).then(|| name.to_owned()));
    let within = |value: Option<f64>, least: f64, most: f64| value.is_none_or(|value| (least..=most).contains(&value));
    let is_time = |text: &str| {
        let shape: String = text.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
        let (year, rest) = shape.trim_start_matches('-').split_once('-').unwrap_or_default();
        ["0000", "00000", "000000"].contains(&year) && rest == "00-00T00:00:00.000Z"
    };
    let is_or_is_none = |text: &Option<String>| text.as_deref().is_none_or(is_time);
    check("schemaVersion", report.schema_version == SCHEMA_VERSION);
    check("updatedAt", is_time(&report.updated_at));
    check("generated_at", is_time(&report.generated_at));
    check("last_update", is_or_is_none(&report.ingestion.last_update));
    check("spread_bps", within(report.spread_bps, 0.0, f64::MAX));
    for section in report.sections.all() {
        check("sections", is_or_is_none(&section.computed_at) && is_or_is_none(&section.exchange_time));
    }
    if let Some(depth) = &report.depth {
        check("bids", depth.bids.len() <= LISTED_LEVELS);
        check("asks", depth.asks.len() <= LISTED_LEVELS);
        check("imbalance", within(depth.imbalance, -1.0, 1.0));
    }
    if let Some(flow) = &report.flow {
        check("orders_per_sec", within(flow.orders_per_sec, 0.0, f64::MAX));
    }
    check("walls", report.liquidity.walls.as_ref().is_none_or(|walls| walls.len() <= 20));
    if let Some(profile) = &report.liquidity.volume_profile {
        check("coverage", within(profile.coverage, 0.0, 1.0));
    }
    if let Some(health) = &report.health {
        check("health", within(health.score, 0.0, 100.0) && within(Some(health.weights_used), 0.0, 1.0));
        check("components", health.components.len() == 6);
        for part in &health.components {
            check(&part.name, within(part.input, 0.0, f64::MAX) && within(part.score, 0.0, 100.0));
            check(&part.name, within(Some(part.weight), 0.0, 1.0) && within(part.contribution, 0.0, 100.0));
        }
    }
    found
}

/// Panics with what is wrong.
pub fn valid(report: &Report) {
    assert_eq!(out_of_bounds(report), Vec::<String>::new(), "{report:#?}");
    let report = serde_json::to_value(report).expect("JSON");
    assert_eq!(wrong(&report), Vec::<String>::new(), "{report:#}");
}

/// The hand-computed report, with at least one of everything.
pub fn full() -> Report {
    let mut report: Report = serde_json::from_str(include_str!("../golden/report.json")).expect("a report");
    report.simulated = Some("SIMULATED: from a simulated exchange, not from a real market".to_owned());
    report.liquidity.walls =
        Some(vec![Wall { side: BookSide::Bid, price: 95.into(), qty: 250.into(), severity: Severity::Medium }]);
    report.sections.walls.reason = None;
    report.anomalies = Some(vec![Anomaly {
        kind: "quote_rate".to_owned(),
        severity: Severity::Low,
        note: "value 900, usual 200, found from 600; book updates for each trade".to_owned(),
    }]);
    report.sections.anomalies.reason = None;
    report
}

/// With everything null that can be.
pub fn empty() -> Report {
    let mut report = full();
    report.liquidity = Liquidity::default();
    (report.last_price, report.change_24h_pct, report.high_24h, report.low_24h) = (None, None, None, None);
    (report.volume_24h, report.quote_volume_24h, report.best_bid, report.best_ask) = (None, None, None, None);
    (report.spread_bps, report.mid_price, report.micro_price, report.depth) = (None, None, None, None);
    (report.flow, report.anomalies, report.health, report.simulated) = (None, None, None, None);
    report.ingestion.last_update = None;
    report.sections = Default::default();
    report
}
