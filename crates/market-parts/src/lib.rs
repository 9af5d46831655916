//! What the sources about markets share.
//!
//! - [`parts`]: badges, links and columns of their pages
//! - [`book`]: charts of an order book
//! - [`error`]: the exchange's errors as Tribune's

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests use the machine's clock"))]

pub mod book;
pub mod error;
pub mod parts;

pub use error::exchange_error;
