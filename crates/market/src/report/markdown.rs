//! A report for a model or a person to read.

use super::model::Report;

/// Reads well as it stands, too: headings, short lines, no tables.
pub fn render(report: &Report) -> String {
    format!("# {} market report\n", report.symbol)
}
