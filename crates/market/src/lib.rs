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
//! - [`answers`]: what is answered about a market, for documents and tools alike; `brief`: the short of it
//! - [`citations`], [`records`]: what was cited, as it was
//! - `view`: what pages show of a market
//! - [`source`], `tools`: the market as Tribune has it
//! - [`report`]: the whole state of a symbol in one object, computed all the time; a source of its own
//! - [`trading`]: account and order tools, where they are switched on

pub mod analytics;
pub mod answers;
pub mod book;
mod brief;
pub mod candles;
pub mod citations;
pub mod feed;
pub mod market;
pub mod model;
pub mod moment;
pub mod number;
pub mod records;
pub mod report;
pub mod rest;
pub mod source;
pub mod symbols;
pub mod tape;
mod tools;
pub mod trading;
mod view;

pub use source::{MarketSource, NAME};
