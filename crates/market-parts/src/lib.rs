//! What the sources about markets share, beside the exchange's errors as Tribune's.
//!
//! - [`parts`]: badges, links and columns of their pages
//! - [`book`]: charts of an order book
//! - [`schema`]: schemas of their tools

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests use the machine's clock"))]

pub mod book;
pub mod parts;
pub mod schema;

pub use schema::tool_schema;

use tribune_binance::RestError;
use tribune_binance::rest::ErrorKind as Kind;
use tribune_core::{Error, ErrorKind};

/// For `map_err`: neither type is of the crates that need this.
pub fn exchange_error(error: RestError) -> Error {
    let kind = match error.kind() {
        Kind::InvalidArgument => ErrorKind::InvalidArgument,
        Kind::NotFound => ErrorKind::NotFound,
        Kind::Forbidden => ErrorKind::Forbidden,
        Kind::Unavailable => ErrorKind::Unavailable,
        Kind::Internal => ErrorKind::Internal,
    };
    Error::new(kind, error.to_string())
}
