//! `get_report` and `market_overview`.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Value, json};
use tribune_core::wire::{object, wire_bytes};
use tribune_core::{CallContext, Hints, JsonObject, Result, Tool, ToolOutput, ToolSpec};

use super::SCHEMA;
use super::markdown;
use super::model::Report;
use super::reader::Reading;
use super::source::{ReportsSource, backend_unavailable};

/// Reads what changes by itself.
const READ_LIVE: Hints = Hints {
    read_only: true,
    destructive: false,
    idempotent: true,
    open_world: true,
};
/// Each such part has the whole time that a read may take.
const READ_AT_ONCE: usize = 100;
/// What the rows of an overview may take on the wire.
const MAX_ROWS_BYTES: usize = 72_000;

pub(super) fn all(source: &Arc<ReportsSource>) -> Vec<Arc<dyn Tool>> {
    vec![
        Arc::new(GetReport {
            spec: get_report(),
            source: source.clone(),
        }),
        Arc::new(MarketOverview {
            spec: market_overview(),
            source: source.clone(),
        }),
    ]
}

struct GetReport {
    spec: ToolSpec,
    source: Arc<ReportsSource>,
}

#[async_trait]
impl Tool for GetReport {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn also_called(&self) -> Vec<String> {
        ["binance_get_report", "binance.get_report", "get_market_report"]
            .map(str::to_owned)
            .to_vec()
    }

    fn normalise(&self, args: &mut JsonObject) {
        if let Some(Value::String(symbol)) = args.get_mut("symbol") {
            *symbol = self.source.spelled(symbol);
        }
        if let Some(Value::String(format)) = args.get_mut("format") {
            *format = format.trim().to_lowercase();
        }
    }

    async fn call(&self, args: JsonObject, _cx: &CallContext) -> Result<ToolOutput> {
        let text = |name: &str| args.get(name).and_then(Value::as_str);
        let symbol: Arc<str> = text("symbol").unwrap_or_default().into();
        let report = self.source.report(&symbol).await?;
        let output = ToolOutput::from_json(self.source.citing.answer(&report)?, 1);
        Ok(match text("format") {
            Some("markdown") => output.with_text(markdown::render(&report.now())),
            _ => output,
        })
    }
}

/// The report's schema as tools may have it: every field with its type and what it is. Hosts take no references, and
/// whoever lists tools should not have to read what each level of a book is.
fn outline() -> JsonObject {
    let schema: Value = serde_json::from_str(SCHEMA).unwrap_or_default();
    let types = |field: &Value| -> Vec<Value> {
        let choices = field["anyOf"]
            .as_array()
            .cloned()
            .unwrap_or_else(|| vec![field.clone()]);
        let named = choices.iter().map(|choice| match choice["$ref"].as_str() {
            Some(path) => schema.pointer(path.trim_start_matches('#')).unwrap_or(choice)["type"].clone(),
            None => choice["type"].clone(),
        });
        named
            .flat_map(|named| named.as_array().cloned().unwrap_or_else(|| vec![named]))
            .collect()
    };
    let text = |description: &str| json!({"type": "string", "description": description});
    let mut properties = object(json!({
        "id": text("The document; fetch takes it."),
        "title": text("What it is."),
        "url": text("Shows these values as they were; cite it."),
    }));
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        let types = types(field);
        let types = if let [one] = types.as_slice() {
            one.clone()
        } else {
            json!(types)
        };
        properties.insert(
            name.clone(),
            json!({"type": types, "description": field["description"]}),
        );
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
        aliases: vec![("ticker", "symbol"), ("pair", "symbol"), ("market", "symbol")],
    }
}

struct MarketOverview {
    spec: ToolSpec,
    source: Arc<ReportsSource>,
}

const COLUMNS: &[&str] = &[
    "symbol",
    "last_price",
    "change_24h_pct",
    "quote_volume_24h",
    "spread_bps",
    "imbalance",
    "net_flow_30s",
    "health",
    "anomalies",
    "status",
    "data_age_ms",
];

#[async_trait]
impl Tool for MarketOverview {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(&self, _args: JsonObject, _cx: &CallContext) -> Result<ToolOutput> {
        let symbols = self.source.indexed().await?;
        let mut readings = Vec::with_capacity(symbols.len());
        for some in symbols.chunks(READ_AT_ONCE) {
            let read = self.source.reader.read_all(some).await;
            readings.extend(read.map_err(|unavailable| backend_unavailable(&unavailable))?);
        }
        let mut reports = Vec::new();
        let mut missing = Vec::new();
        for (symbol, reading) in symbols.iter().zip(readings) {
            match reading {
                Ok(Reading::Report(report)) => reports.push(report.now()),
                Ok(Reading::Nothing) => {
                    missing.push(json!({"symbol": symbol, "reason": "stale: no report is kept of it now"}));
                }
                Err(why) => missing.push(json!({"symbol": symbol, "reason": why.to_string()})),
            }
        }
        // The most traded first: of symbols with the same quote asset that is what people look for.
        reports.sort_by(|a, b| {
            b.quote_volume_24h
                .cmp(&a.quote_volume_24h)
                .then(a.symbol.cmp(&b.symbol))
        });
        let simulated = reports.iter().find_map(|report| report.simulated.clone());
        let mut rows: Vec<Value> = reports.iter().map(row).collect();
        let fits = fitting(&rows);
        let cut = rows.len() - fits;
        rows.truncate(fits);
        missing.truncate(100);
        let answer = json!({
            "indexed": symbols.len(),
            "listed": rows.len(),
            "cut": (cut > 0).then(|| format!("{cut} symbols more than fit in one answer are left out; get_report has each")),
            "simulated": simulated,
            "columns": COLUMNS,
            "rows": rows,
            "missing": missing,
            "note": match symbols.len() {
                0 => self.source.why_nothing(),
                _ => "One row a symbol; get_report has the whole state of each, and its citation.".to_owned(),
            },
        });
        ToolOutput::structured(&answer, fits)
    }
}

fn row(report: &Report) -> Value {
    json!([
        report.symbol,
        report.last_price,
        report.change_24h_pct,
        report.quote_volume_24h,
        report.spread_bps,
        report.depth.as_ref().and_then(|depth| depth.imbalance),
        report.flow.as_ref().map(|flow| flow.net_flow),
        report.health.as_ref().and_then(|health| health.score),
        report.anomalies.as_ref().map(Vec::len),
        report.ingestion.status,
        report.data_age_ms,
    ])
}

fn fitting(rows: &[Value]) -> usize {
    let mut spent = 0;
    rows.iter()
        .take_while(|row| {
            spent += wire_bytes(&row.to_string()) + 2;
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
        output_schema: object(json!({
            "type": "object",
            "properties": {
                "indexed": {"type": "integer", "description": "Symbols that have reports."},
                "listed": {"type": "integer", "description": "Rows in this answer."},
                "columns": {"type": "array", "items": {"type": "string"}, "description": "What the cells of a row are: prices and amounts as decimal strings, null where unknown."},
                "rows": {"type": "array", "items": {"type": "array"}},
                "missing": {"type": "array", "items": {"type": "object"}, "description": "Symbols without a row, and why."},
                "simulated": {"type": ["string", "null"], "description": "Not null if nothing of this is from a real market."},
                "cut": {"type": ["string", "null"]},
                "note": {"type": "string"},
            },
        })),
        hints: READ_LIVE,
        icon: None,
        aliases: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_outline_has_every_field_with_its_types() {
        let outline = Value::Object(outline());
        let schema: Value = serde_json::from_str(SCHEMA).expect("JSON");
        for name in schema["properties"].as_object().expect("fields").keys() {
            let field = &outline["properties"][name];
            assert!(field["type"].is_string() || field["type"].is_array(), "{name}: {field}");
            assert!(field["description"].is_string(), "{name}: {field}");
        }
        assert_eq!(outline["properties"]["last_price"]["type"], json!(["string", "null"]));
        assert_eq!(outline["properties"]["writer"]["type"], "object");
        for spec in [get_report(), market_overview()] {
            assert_eq!(tribune_core::lint::faults(&spec), Vec::<String>::new(), "{}", spec.name);
        }
    }
}
