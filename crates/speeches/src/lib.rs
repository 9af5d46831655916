//! Parliamentary speeches on top of a corpus.
//!
//! - [`config`]: `kind = "speeches"` in the configuration, and [`build`];
//! - [`speech`]: reads speeches: rules, aliases, dates, and Hansard XML as a format;
//! - [`source`]: what speeches add to their corpus;
//! - `search`, `fetch`: the two tools, with `describe` for their descriptions and `holdings` for what they contain;
//! - `ingest`: the tools with which administrators add speeches;
//! - `view`: the page of a speech.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests use the machine's clock"))]

pub mod config;
mod describe;
mod fetch;
mod holdings;
mod ingest;
mod search;
pub mod source;
pub mod speech;
mod view;

pub use config::{Config, build};
pub use holdings::ToolNames;
pub use ingest::Incoming;
pub use source::Speeches;
pub use speech::{SpeechRules, collection, reading};
