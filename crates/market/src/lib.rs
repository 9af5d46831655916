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
mod page;
pub mod source;
mod tools;

pub use config::{Config, build};
pub use source::{MarketSource, NAME};

/// Name and description of each metric.
pub const METRICS: &[(&str, &str)] = &[
    ("tribune_upstream_requests_total", "Requests to the exchange by endpoint and outcome"),
    ("tribune_upstream_weight_used", "Request weight used in this minute of the exchange"),
    ("tribune_books", "Order books that are kept"),
    ("tribune_book_resyncs_total", "Order books that had to be started again"),
    ("tribune_feed_disconnects_total", "Connections to the exchange that were lost"),
    ("tribune_feed_resubscriptions_total", "Symbols whose streams went silent and were subscribed to again"),
    ("tribune_feed_unreadable_total", "Messages of the exchange that could not be read"),
];
