//! What the sources about markets share.
//!
//! - [`parts`]: badges, links and columns of their pages
//! - [`book`]: charts of an order book
//! - [`error`]: the exchange's errors as Tribune's
//! - [`schema`]: schemas of their tools

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests use the machine's clock"))]

pub mod book;
pub mod error;
pub mod parts;
pub mod schema;

pub use error::exchange_error;
pub use schema::tool_schema;
