//! What is answered about a market, once for all ways of asking: documents and tools are both made of
//! these. One file a family.
//!
//! - `answer`: what an answer is made of
//! - [`ticker`], [`book`], [`candles`], [`trades`], [`info`]: what the exchange says
//! - [`flow`], [`profile`], [`anomalies`]: what is computed from it
//! - [`cost`], [`compare`], [`ranking`]: what to trade would cost; several markets side by side; all of one money

pub mod anomalies;
mod answer;
pub mod book;
pub mod candles;
pub mod compare;
pub mod cost;
pub mod flow;
pub mod info;
pub mod profile;
pub mod ranking;
pub mod ticker;
pub mod trades;

pub use answer::{Answer, Fitted, Provenance, Table, pair_name, written};
