//! `get_report` and `market_overview`.

use std::cmp::Reverse;
use std::sync::Arc;

use async_trait::async_trait;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::Serialize;
use serde_json::{Value, json};
use tribune_citations::Pool;
use tribune_core::wire::{object, wire_bytes};
use tribune_core::{CallContext, CallDisplay, Hints, JsonObject, Result, Tool, ToolOutput, ToolSpec};
use tribune_market_parts::tool_schema;

use super::markdown;
use super::model::{self, Report};
use super::service::ReportsSource;

const READ_LIVE: Hints = Hints { open_world: true, ..Hints::READ };
/// Reports per round trip: each has the full time of a read, and an answer of bounded size.
const READ_AT_ONCE: usize = 64;
/// The size of an overview's rows on the wire.
const MAX_ROWS_BYTES: usize = 72_000;

pub(super) fn all(reports: &Arc<ReportsSource>) -> Vec<Arc<dyn Tool>> {
    vec![
        Arc::new(GetReport { spec: get_report(), reports: reports.clone() }),
        Arc::new(MarketOverview { spec: market_overview(), reports: reports.clone() }),
    ]
}

struct GetReport {
    spec: ToolSpec,
    reports: Arc<ReportsSource>,
}

#[async_trait]
impl Tool for GetReport {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn also_called(&self) -> Vec<String> {
        ["binance_get_report", "binance.get_report", "get_market_report"].map(str::to_owned).to_vec()
    }

    fn normalise(&self, args: &mut JsonObject) {
        if let Some(Value::String(symbol)) = args.get_mut("symbol") {
            *symbol = self.reports.spell(symbol);
        }
        if let Some(Value::String(format)) = args.get_mut("format") {
            *format = format.trim().to_lowercase();
        }
    }

    async fn call(&self, args: JsonObject, cx: &CallContext) -> Result<ToolOutput> {
        let text = |name: &str| args.get(name).and_then(Value::as_str);
        let symbol: Arc<str> = text("symbol").unwrap_or_default().into();
        let report = self.reports.report(&symbol).await?;
        let output = ToolOutput::from_json(self.reports.citing.answer(Pool::new(cx), &report).await?, 1);
        Ok(match text("format") {
            Some("markdown") => output.with_text(markdown::render(&report.now())),
            _ => output,
        })
    }
}

/// The schema of an answer without nested fields, to keep the list of tools short.
fn outline() -> JsonObject {
    let schema = model::schema();
    let text = |description: &str| json!({"type": "string", "description": description});
    let mut properties = object(json!({
        "id": text("The document; fetch takes it."),
        "title": text("What it is."),
        "url": text("Shows these values as they were; cite it."),
    }));
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        let outline = json!({"type": field["type"], "description": field["description"]});
        properties.insert(name.clone(), outline);
    }
    object(json!({"type": "object", "properties": properties, "required": schema["required"]}))
}

fn get_report() -> ToolSpec {
    ToolSpec {
        name: "get_report".to_owned(),
        title: "Market report".to_owned(),
        description: "Use this for the whole state of one market in one call: price and 24 hours, best bid and ask, spread, microprice, the best 20 levels a side, order flow, walls, liquidity vacuums, volume profile, anomalies and a health score, each with its time. Computed four times a second; `data_age_ms` and `ingestion.status` (ok, degraded, down) say how fresh it is, and what is null has a reason under `sections`. For symbols that are always tracked: market_overview lists them."
            .to_owned(),
        input_schema: object(json!({
            "type": "object",
            "properties": {
                "symbol": {
                    "type": "string", "minLength": 1, "maxLength": 64,
                    "description": "The exchange's symbol, such as BTCUSDT.",
                    "examples": ["BTCUSDT"],
                },
                "format": {
                    "type": "string", "enum": ["json", "markdown"], "default": "json",
                    "description": "How the text of the answer is written; the structured answer is the same for both.",
                },
            },
            "required": ["symbol"],
            "additionalProperties": false,
        })),
        output_schema: outline(),
        hints: READ_LIVE,
        icon: None,
        display: CallDisplay {
            progress: Some(("Reading a market report", "Read a market report")),
            subject: Some("symbol"),
            ..CallDisplay::default()
        },
        aliases: vec![("ticker", "symbol"), ("pair", "symbol"), ("market", "symbol")],
    }
}

struct MarketOverview {
    spec: ToolSpec,
    reports: Arc<ReportsSource>,
}

/// The answer of `market_overview`.
#[derive(Serialize, JsonSchema)]
struct Overview {
    /// Symbols that have reports.
    indexed: usize,
    /// Rows in this answer.
    listed: usize,
    /// How many symbols do not fit in this answer.
    cut: Option<String>,
    /// Not null if nothing of this is from a real market.
    simulated: Option<String>,
    /// What the cells of a row are: prices and amounts as decimal strings, null where unknown.
    columns: Vec<&'static str>,
    rows: Vec<Vec<Value>>,
    /// Symbols without a row, and why.
    missing: Vec<Missing>,
    note: String,
}

#[derive(Serialize, JsonSchema)]
struct Missing {
    symbol: Arc<str>,
    reason: String,
}

type Figure = fn(&Report) -> Value;

/// The columns of a row, and their figures.
const COLUMNS: [(&str, Figure); 11] = [
    ("symbol", |report| json!(report.symbol)),
    ("last_price", |report| json!(report.last_price)),
    ("change_24h_pct", |report| json!(report.change_24h_pct)),
    ("quote_volume_24h", |report| json!(report.quote_volume_24h)),
    ("spread_bps", |report| json!(report.spread_bps)),
    ("imbalance", |report| json!(report.depth.as_ref().and_then(|depth| depth.imbalance))),
    ("net_flow_30s", |report| json!(report.flow.as_ref().map(|flow| flow.net_flow))),
    ("health", |report| json!(report.health.as_ref().and_then(|health| health.score))),
    ("anomalies", |report| json!(report.anomalies.as_ref().map(Vec::len))),
    ("status", |report| json!(report.ingestion.status)),
    ("data_age_ms", |report| json!(report.data_age_ms)),
];

#[async_trait]
impl Tool for MarketOverview {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(&self, _args: JsonObject, _cx: &CallContext) -> Result<ToolOutput> {
        let listing = self.reports.listing(None).await?;
        let symbols: Vec<Arc<str>> = listing.symbols().iter().map(|symbol| symbol.name.clone()).collect();
        let mut readings = Vec::with_capacity(symbols.len());
        for batch in symbols.chunks(READ_AT_ONCE) {
            readings.extend(self.reports.reader.read_all(batch).await?);
        }
        let (mut reports, mut missing) = (Vec::new(), Vec::new());
        for (symbol, reading) in symbols.iter().zip(readings) {
            let reason = match reading {
                Ok(Some(report)) => {
                    reports.push(report.now());
                    continue;
                }
                Ok(None) => "stale: its last report has expired".to_owned(),
                Err(why) => why.to_string(),
            };
            let symbol = symbol.clone();
            missing.push(Missing { symbol, reason });
        }
        // Most people look for the most traded symbols.
        let rank = |report: &Report| (Reverse(report.quote_volume_24h), report.symbol.clone());
        reports.sort_by_cached_key(rank);
        let simulated = reports.iter().find_map(|report| report.simulated.clone());
        let mut rows: Vec<Vec<Value>> =
            reports.iter().map(|report| COLUMNS.map(|(_, figure)| figure(report)).into()).collect();
        let fits = fitting(&rows);
        let cut = rows.len() - fits;
        rows.truncate(fits);
        missing.truncate(100);
        let answer = Overview {
            indexed: symbols.len(),
            listed: rows.len(),
            cut: (cut > 0).then(|| format!("{cut} symbols do not fit in one answer; get_report has each")),
            simulated,
            columns: COLUMNS.map(|(name, _)| name).to_vec(),
            rows,
            missing,
            note: match symbols.len() {
                0 => self.reports.why_no_reports(),
                _ => "One row per symbol; get_report has the whole state of each, and its citation.".to_owned(),
            },
        };
        ToolOutput::structured(&answer, fits)
    }
}

fn fitting(rows: &[Vec<Value>]) -> usize {
    let mut spent = 0;
    rows.iter()
        .take_while(|row| {
            spent += wire_bytes(&serde_json::to_string(row).unwrap_or_default()) + 2;
            spent <= MAX_ROWS_BYTES
        })
        .count()
}

fn market_overview() -> ToolSpec {
    ToolSpec {
        name: "market_overview".to_owned(),
        title: "Market overview".to_owned(),
        description: "Use this for one line on every market that is always tracked: price, 24-hour change and volume, spread, book imbalance, net flow, health score, number of anomalies, and how fresh each is. The most traded first. get_report has the whole state of one."
            .to_owned(),
        input_schema: object(json!({"type": "object", "properties": {}, "additionalProperties": false})),
        output_schema: tool_schema::<Overview>(SchemaSettings::draft2020_12().for_serialize()),
        hints: READ_LIVE,
        icon: None,
        display: CallDisplay { subject: Some("symbol"), ..CallDisplay::default() },
        aliases: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::fixture;

    #[test]
    fn output_schema_is_true_of_reports() {
        let outline = Value::Object(outline());
        for (name, field) in outline["properties"].as_object().expect("fields") {
            assert!(field["type"].is_string() || field["type"].is_array(), "{name}: {field}");
            assert!(field["description"].is_string(), "{name}: {field}");
        }
        assert_eq!(outline["properties"]["last_price"]["type"], json!(["string", "null"]));
        assert_eq!(outline["properties"]["writer"]["type"], "object");
        let validator = jsonschema::validator_for(&outline).expect("a schema");
        for report in [fixture::full(), fixture::empty()] {
            let mut answer = json!(report);
            answer["url"] = json!("http://tribune.test/");
            let errors: Vec<String> = validator.iter_errors(&answer).map(|error| error.to_string()).collect();
            assert!(errors.is_empty(), "{errors:?}");
        }
        for spec in [get_report(), market_overview()] {
            assert_eq!(tribune_registry::lint::faults(&spec), Vec::<String>::new(), "{}", spec.name);
        }
    }
}
