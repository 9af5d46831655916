//! The exchange's REST interface: a thin client of our own. In reading order:
//!
//! - [`endpoint`]: what can be asked, and what it weighs
//! - [`governor`]: one budget of weight for the whole process; when to wait
//! - `coalesce`: callers who ask the same share one request
//! - [`client`]: [`Rest`], the calls; `http` sends them, `request` writes them
//! - [`answers`]: what comes back, as values; `decode` reads it strictly
//! - [`sign`]: requests in the name of an account; `signed` sends them
//! - [`error`]: what can go wrong, in sentences; `network` tells why there was no answer

pub mod answers;
pub mod client;
mod coalesce;
pub(crate) mod decode;
pub mod endpoint;
pub mod error;
pub mod governor;
mod http;
mod network;
pub(crate) mod request;
pub mod sign;
mod signed;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;

pub use answers::{Aggregates, AvgPrice, DepthSnapshot, ExchangeInfo, RateLimit, Ticker, TickerQuote};
pub use client::{AggTradesQuery, KlinesQuery, Rest, Settings};
pub use coalesce::Shared;
pub use endpoint::Endpoint;
pub use error::RestError;
pub use governor::{Governor, Priority};
pub use http::Simulation;
pub(crate) use http::is_loopback;
pub(crate) use network::distrust;
pub use sign::Signer;
