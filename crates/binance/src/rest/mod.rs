//! The exchange's REST interface: a thin client of our own. In reading order:
//!
//! - [`endpoint`]: endpoints and their weights
//! - [`governor`]: the weight budget of the whole process
//! - `coalesce`: callers who ask the same share one request
//! - [`client`]: [`Rest`], the calls; `http` sends them, `request` writes them
//! - [`answers`]: what comes back, as values; [`decode`] reads it and names the field that is wrong
//! - [`sign`]: signs requests of an account
//! - [`error`]: what can go wrong

pub mod answers;
pub mod client;
mod coalesce;
pub mod decode;
pub mod endpoint;
pub mod error;
pub mod governor;
mod http;
pub mod request;
pub mod sign;
#[cfg(test)]
mod tests;

pub use answers::{Aggregates, AvgPrice, ExchangeInfo, Ticker};
pub use client::{KlinesQuery, Rest, Settings};
pub use coalesce::Shared;
pub use endpoint::Endpoint;
pub use error::{ErrorKind, RestError};
pub use governor::{Governor, Priority};
pub use http::Simulation;
pub(crate) use http::{http_client, root_cause};
/// The HTTP method of a signed request.
pub use reqwest::Method;
pub use sign::Signer;
