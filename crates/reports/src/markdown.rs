//! A report as Markdown.

use std::fmt::Display;

use serde_json::{Value, json};

use super::model::{IngestionStatus, Report, Section};

const SHOWN_LEVELS: usize = 5;

/// The heading and the fields of each section, in the order of [`super::model::Sections::all`].
const PARTS: [(&str, &str); 8] = [
    ("Price", "last_price change_24h_pct high_24h low_24h volume_24h quote_volume_24h"),
    ("Order book", "best_bid best_ask spread_bps mid_price micro_price depth"),
    ("Order flow", "flow"),
    ("Walls", "liquidity/walls"),
    ("Liquidity vacuums", "liquidity/vacuums"),
    ("Volume profile", "liquidity/volume_profile"),
    ("Anomalies", "anomalies"),
    ("Health", "health"),
];

/// Headings and short lines, no tables, so that it also reads well as plain text. Names and figures are the JSON's.
pub fn render(report: &Report) -> String {
    let mut lines = head(report);
    let json = json!(report);
    for (section, (heading, fields)) in report.sections.all().into_iter().zip(PARTS) {
        lines.extend([String::new(), format!("## {heading}")]);
        for field in fields.split(' ') {
            let value = json.pointer(&format!("/{field}")).unwrap_or(&Value::Null);
            list(field.rsplit('/').next().unwrap_or(field), value, "", &mut lines);
        }
        lines.push(about(section));
    }
    // One line, whatever it contains: text from the exchange must not start a line of ours.
    let one_line = |line: String| line.replace(char::is_control, " ") + "\n";
    lines.extend([String::new(), format!("Written by {}.", in_one_line(&json["writer"]))]);
    lines.into_iter().map(one_line).collect()
}

fn head(report: &Report) -> Vec<String> {
    let age = report.data_age_ms;
    let (base, quote, venue) = (&report.base_asset, &report.quote_asset, &report.venue);
    let mut lines = vec![format!("# {} market report", report.symbol), String::new()];
    lines.extend(report.simulated.as_ref().map(|label| format!("{label}.")));
    if report.ingestion.status != IngestionStatus::Ok {
        let status = word(&report.ingestion.status);
        let reason = report.ingestion.reason.as_deref().unwrap_or("no reason is known");
        let seconds = age as f64 / 1000.0;
        lines.push(format!("STALE ({status}): {reason}; the data are {seconds:.1} s old."));
    }
    let (written, update) = (&report.generated_at, or_unknown(report.ingestion.last_update.as_deref()));
    lines.push(format!("{base}/{quote} on {venue}, as of {written}, data {age} ms old, last update {update}."));
    lines.push(format!("Prices are in {quote}, quantities in {base}."));
    lines
}

/// How old a section is, and what is missing in it.
fn about(section: &Section) -> String {
    let computed = or_unknown(section.computed_at.as_deref());
    let time = or_unknown(section.exchange_time.as_deref());
    let age = section.age_ms.map_or_else(|| "age unknown".to_owned(), |age| format!("{age} ms old"));
    let reason = section.reason.as_ref().map_or_else(String::new, |reason| format!("; {reason}"));
    format!("- computed {computed}, exchange time {time}, {age}{reason}")
}

/// One line for each figure; a list has one for each element.
fn list(name: &str, value: &Value, indent: &str, lines: &mut Vec<String>) {
    let name = name.replace('_', " ");
    match value {
        Value::Object(fields) if short(value).is_none() => {
            lines.push(format!("{indent}- {name}:"));
            for (name, value) in fields {
                list(name, value, &format!("{indent}  "), lines);
            }
        }
        Value::Array(elements) if !elements.is_empty() => {
            lines.push(format!("{indent}- {name}:"));
            let levels = elements.iter().take_while(|element| short(element).is_some()).skip(SHOWN_LEVELS).count();
            let shown = elements.iter().take(elements.len() - levels);
            lines.extend(shown.map(|element| format!("{indent}  - {}", in_one_line(element))));
            if levels > 0 {
                lines.push(format!("{indent}  - and {levels} more levels"));
            }
        }
        value => lines.push(format!("{indent}- {name}: {}", in_one_line(value))),
    }
}

fn in_one_line(value: &Value) -> String {
    let named = |(name, value): (&String, &Value)| format!("{} {}", name.replace('_', " "), in_one_line(value));
    match value {
        Value::Null => "unknown".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(elements) if elements.is_empty() => "none".to_owned(),
        Value::Object(fields) => {
            let told = fields.iter().filter(|(name, value)| *name != "reason" || !value.is_null());
            short(value).unwrap_or_else(|| told.map(named).collect::<Vec<_>>().join(", "))
        }
        value => value.to_string(),
    }
}

/// A level of the book.
fn short(value: &Value) -> Option<String> {
    let fields = value.as_object().filter(|fields| fields.len() == 2)?;
    Some(format!("{} for {}", fields.get("price")?.as_str()?, fields.get("qty")?.as_str()?))
}

fn or_unknown(value: Option<impl Display>) -> String {
    value.map_or_else(|| "unknown".to_owned(), |value| value.to_string())
}

/// A value as the JSON writes it.
pub(super) fn word(value: &impl serde::Serialize) -> String {
    in_one_line(&json!(value))
}

/// One line for a search result.
pub fn brief(report: &Report) -> String {
    let health = report.health.as_ref().and_then(|health| health.score);
    format!(
        "{}{}: {} {}, {} % in 24 h; spread {} bps; health {} of 100; ingestion {}, {} ms old",
        report.simulated.as_ref().map_or("", |_| "SIMULATED "),
        report.symbol,
        or_unknown(report.last_price),
        report.quote_asset,
        or_unknown(report.change_24h_pct.map(|change| format!("{change:+.2}"))),
        or_unknown(report.spread_bps.map(|spread| format!("{spread:.2}"))),
        or_unknown(health),
        word(&report.ingestion.status),
        report.data_age_ms,
    )
}
