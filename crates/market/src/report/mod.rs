//! One report a symbol: the whole state of a market in one object, computed all the time. In reading order:
//!
//! - [`model`]: the report, field by field; `schema.json` says the same to programs
//! - [`compute`]: from what the feed publishes to a report; pure
//! - [`freshness`]: how old data is called ok, degraded or down
//! - [`cache`]: where reports are kept, and who may write which
//! - [`markdown`]: a report for a model or a person to read

pub mod cache;
pub mod compute;
#[cfg(test)]
mod fixture;
pub mod freshness;
pub mod markdown;
pub mod model;
#[cfg(test)]
mod tests;

/// The report's JSON Schema.
pub const SCHEMA: &str = include_str!("schema.json");
