//! For tests: what every report must be.

use std::sync::LazyLock;

use jsonschema::Validator;
use serde_json::Value;

use super::SCHEMA;
use super::model::{Anomaly, Report, Wall};
use crate::analytics::{BookSide, Severity};

static VALIDATOR: LazyLock<Validator> = LazyLock::new(|| {
    let schema: Value = serde_json::from_str(SCHEMA).expect("JSON");
    jsonschema::draft202012::meta::validate(&schema).expect("a schema");
    jsonschema::draft202012::new(&schema).expect("a schema")
});

/// What the schema finds wrong.
pub fn wrong(report: &Value) -> Vec<String> {
    let errors = VALIDATOR.iter_errors(report);
    errors
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect()
}

/// Panics with what is wrong.
pub fn valid(report: &Report) {
    let report = serde_json::to_value(report).expect("JSON");
    assert_eq!(wrong(&report), Vec::<String>::new(), "{report:#}");
}

/// As worked by hand, with at least one of everything.
pub fn full() -> Report {
    let mut report: Report = serde_json::from_str(include_str!("golden/report.json")).expect("a report");
    report.simulated = Some("SIMULATED: from a simulated exchange, not from a real market".to_owned());
    report.liquidity.walls = Some(vec![Wall {
        side: BookSide::Bid,
        price: 95.into(),
        qty: 250.into(),
        severity: Severity::Medium,
    }]);
    report.sections.walls.reason = None;
    report.anomalies = Some(vec![Anomaly {
        kind: "quote_rate".to_owned(),
        severity: Severity::Low,
        note: "value 900, usual 200, found from 600; book updates for each trade".to_owned(),
    }]);
    report.sections.anomalies.reason = None;
    report
}
