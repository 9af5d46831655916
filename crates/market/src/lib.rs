//! A live exchange as a source. In reading order:
//!
//! - [`number`], [`model`]: exact numbers; what the exchange says, as values
//! - [`moment`]: when something came, by both clocks
//! - [`rest`]: the exchange's REST interface, within its limits
//! - [`book`]: order books by the exchange's procedure
//! - [`analytics`]: pure functions over books, trades and candles
//! - [`symbols`]: which symbols there are, and what people call them
//! - [`trading`]: an account and its orders, where a key and the switch are set

pub mod analytics;
pub mod book;
pub mod model;
pub mod moment;
pub mod number;
pub mod rest;
pub mod symbols;
pub mod trading;
