//! A report for a model or a person to read.

use super::model::Report;

/// Reads well as it stands, too: headings, short lines, no tables.
pub fn render(report: &Report) -> String {
    format!("# {} market report\n", report.symbol)
}

/// The short of it, for a search result.
pub fn brief(report: &Report) -> String {
    let known = |figure: Option<String>| figure.unwrap_or_else(|| "unknown".to_owned());
    format!(
        "{}{}: {} {}, {} % in 24 h; spread {} bps; health {} of 100; ingestion {}, {} ms old",
        report.simulated.as_ref().map_or("", |_| "SIMULATED "),
        report.symbol,
        known(report.last_price.map(|price| price.to_string())),
        report.quote_asset,
        known(report.change_24h_pct.map(|change| format!("{change:+.2}"))),
        known(report.spread_bps.map(|spread| format!("{spread:.2}"))),
        known(
            report
                .health
                .as_ref()
                .and_then(|health| health.score)
                .map(|score| score.to_string())
        ),
        serde_json::to_value(report.ingestion.status)
            .ok()
            .and_then(|status| Some(status.as_str()?.to_owned()))
            .unwrap_or_default(),
        report.data_age_ms,
    )
}
