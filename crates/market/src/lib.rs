//! A live exchange as a source. In reading order:
//!
//! - [`number`], [`model`], [`moment`]: exact numbers; what the exchange says, as values; when it came
//! - [`book`]: order books by the exchange's procedure; [`tape`]: the last minutes of trades;
//!   [`candles`]: candles from trades
//! - [`rest`]: the client, its weight budget, shared requests
//! - [`feed`]: streams in, published books out
//! - [`analytics`]: pure functions over books, trades and candles
//! - [`symbols`]: which symbols there are, and what people call them
//! - [`market`]: all of these together
//! - [`answers`]: what is answered about a market, for documents and tools alike
//! - [`trading`]: account and order tools, where they are switched on

pub mod analytics;
pub mod answers;
pub mod book;
pub mod candles;
pub mod feed;
pub mod market;
pub mod model;
pub mod moment;
pub mod number;
pub mod rest;
pub mod symbols;
pub mod tape;
pub mod trading;
