//! A live exchange as a source. In reading order:
//!
//! - [`market`]: the feed, the exchange's REST interface and the list of symbols together
//! - [`kinds`]: one file a kind of answer: its struct, how it is loaded, and its sentences
//! - `page`: what pages show of answers
//! - `citing`: citation records of answers and search results
//! - [`source`], `tools`: the market as Tribune has it; [`config`]: `[market]` and [`build`]

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests use the machine's clock"))]

mod citing;
pub mod config;
pub mod kinds;
pub mod market;
mod metrics;
mod page;
pub mod source;
mod tools;

pub use config::{Config, build};
pub use metrics::METRICS;
pub use source::{MarketSource, NAME};
