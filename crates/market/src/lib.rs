//! A live exchange as a source. In reading order:
//!
//! - [`number`], [`model`]: exact numbers; what the exchange says, as values
//! - [`book`]: order books by the exchange's procedure
//! - [`analytics`]: pure functions over books, trades and candles
//! - [`symbols`]: which symbols there are, and what people call them
//! - [`citations`]: frozen records of what was cited

pub mod analytics;
pub mod book;
pub mod citations;
pub mod model;
pub mod number;
pub mod symbols;
