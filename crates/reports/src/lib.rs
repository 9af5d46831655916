//! Market reports: the whole state of a symbol in one object, kept current. Modules in reading order:
//!
//! - [`model`]: the report, field by field, and its schema
//! - [`exchange`]: what reports need from the exchange
//! - [`compute`]: computes a report from what the feed publishes; pure
//! - [`aged`]: a report and the time since it was generated; at which age data is ok, degraded or down
//! - [`cache`]: where reports and leases are kept
//! - `engine`: the loop that keeps reports current
//! - `reader`: reads reports and lets their ages grow
//! - [`markdown`]: a report as text
//! - `template`, `citing`: one text and one citation record for all callers of the same report
//! - `view`: the page of a report
//! - `service`: the source itself, shared with its tools: which symbols have reports, and reading one
//! - [`source`], `tools`: how it answers, and two tools
//! - [`config`]: `[cache]` in the configuration, and [`build`]

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests use the machine's clock"))]

pub mod aged;
pub mod cache;
mod citing;
pub mod compute;
pub mod config;
mod engine;
pub mod exchange;
pub mod markdown;
pub mod model;
mod reader;
mod service;
pub mod source;
mod template;
#[cfg(test)]
mod tests;
mod tools;
mod view;

pub use config::{Config, build};
pub use service::ReportsSource;
pub use source::NAME;

/// Name and description of each metric.
pub const METRICS: &[(&str, &str)] = &[
    ("tribune_report_age_seconds", "How old the data of market reports was when they were read"),
    ("tribune_report_compute_seconds", "How long one market report took to compute"),
    ("tribune_report_cache_seconds", "How long the cache of reports took, by operation and outcome"),
    ("tribune_report_lease_changes_total", "Symbols whose reports this process began or ceased to write"),
    ("tribune_report_panics_total", "Reports whose computation panicked"),
    ("tribune_report_symbols_written", "Symbols whose reports this process writes"),
];
