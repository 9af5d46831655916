//! Which symbols there are, and what people call them. In reading order:
//!
//! - `id`: [`MarketId`], the ids of market documents
//! - `table`: [`SymbolTable`], the exchange's symbols, indexed and ranked
//! - `assets`, `everyday`: what assets are called, and which of these names are everyday words
//! - `words`, `interval`, `past`: the other words of questions, lengths of candles, times that are over
//! - `text`, `spelling`: a query as words, as typed and as they are known
//! - `parse`, `reader`: the words as parts; `negation`, `pairs`, `amount`, `beside`, `compound`: what the parts make of
//!   each other
//! - `gather`, `judge`: the parts as a question
//! - `search`: from a question to documents, best first

mod amount;
mod assets;
mod beside;
mod compound;
mod everyday;
mod gather;
mod id;
mod interval;
mod judge;
mod negation;
mod pairs;
mod parse;
mod past;
mod reader;
mod search;
mod spelling;
mod table;
mod text;
mod words;

#[cfg(test)]
mod tests;

pub use id::{AnalyticsKind, Kind, MarketId};
pub use search::{Match, MatchedOn, search};
pub use table::SymbolTable;

/// What people call the asset of a ticker, if that is known.
pub fn asset_name(ticker: &str) -> Option<&'static str> {
    assets::Assets::known().name_of(ticker)
}
