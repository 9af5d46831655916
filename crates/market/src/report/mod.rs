//! One report a symbol: the whole state of a market in one object, computed all the time. In reading order:
//!
//! - [`model`]: the report, field by field; `schema.json` says the same to programs
//! - [`compute`]: from what the feed publishes to a report; pure
//! - [`freshness`]: how old data is called ok, degraded or down
//! - [`cache`]: where reports are kept, and who may write which
//! - [`share`]: which node writes which symbol; [`engine`]: the loop that keeps reports current
//! - [`reader`]: reports as they are read, older by the time that has passed since
//! - [`markdown`]: a report for a model or a person to read
//! - `template`, `citing`: one text and one record for all who ask for the same report
//! - `view`: what a page shows of a report
//! - `directory`, [`source`], `tools`: reports as Tribune has them

pub mod cache;
mod citing;
pub mod compute;
mod directory;
pub mod engine;
#[cfg(test)]
mod fixture;
pub mod freshness;
pub mod markdown;
pub mod model;
pub mod reader;
pub mod share;
pub mod source;
mod template;
#[cfg(test)]
mod tests;
mod tools;
mod view;

pub use engine::Engine;
pub use source::{NAME, ReportsSource};

/// The report's JSON Schema.
pub const SCHEMA: &str = include_str!("schema.json");
