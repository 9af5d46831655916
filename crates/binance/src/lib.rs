//! A client of the Binance spot exchange that knows nothing of Tribune. In reading order:
//!
//! - [`number`], [`model`], [`moment`]: exact numbers; what the exchange says, as values; when it came
//! - [`wire`]: numbers, times and levels as JSON has them
//! - [`book`]: order books by the exchange's procedure; [`tape`]: the last minutes of trades
//! - [`rest`]: the client, its weight budget, shared requests
//! - [`feed`]: streams in, published books out

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests use the machine's clock"))]

pub mod book;
pub mod feed;
pub mod model;
pub mod moment;
pub mod number;
pub mod rest;
pub mod tape;
#[cfg(any(test, feature = "testing"))]
#[path = "../testing/mod.rs"]
pub mod testing;
pub mod wire;

pub use rest::RestError;
