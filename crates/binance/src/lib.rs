//! A client of the Binance spot exchange that knows nothing of Tribune. In reading order:
//!
//! - `number`, `model`, `moment`: exact numbers; what the exchange says, as values; when it came
//! - [`wire`]: times, levels and trades as JSON has them
//! - `book`: order books by the exchange's procedure; `tape`: the last minutes of trades
//! - [`rest`]: the client, its weight budget, shared requests
//! - [`feed`]: streams in, published books out
//!
//! What other crates use most is exported here.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests use the machine's clock"))]

mod book;
pub mod feed;
mod model;
mod moment;
mod number;
pub mod rest;
mod tape;
#[cfg(any(test, feature = "testing"))]
#[path = "../testing/mod.rs"]
pub mod testing;
pub mod wire;

pub use book::*;
pub use feed::{Beats, Board, BookState, BookView, Day, OBSERVED_SECS, Observer, Status};
pub use model::*;
pub use moment::*;
pub use number::*;
pub use rest::request::Request;
pub use rest::{
    Aggregates, Endpoint, Governor, KlinesQuery, Method, Priority, Rest, RestError, Shared, Signer, Simulation,
};
pub use tape::*;
