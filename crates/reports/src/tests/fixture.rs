//! Reports for tests.

use std::sync::LazyLock;

use jsonschema::Validator;
use serde_json::Value;

use crate::model::{Anomaly, Liquidity, Report, Wall};
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

/// Panics with what is wrong.
pub fn valid(report: &Report) {
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
