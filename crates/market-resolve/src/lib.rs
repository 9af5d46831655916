//! From keywords to market documents: which markets, which kind of document, which interval. Nothing here asks the
//! exchange.
//!
//! A query passes through these steps:
//!
//! 1. `tokens`: the query as normalised words
//! 2. `parts`: each word as an asset, a word with a sense, a length of time or unknown (`assets`, `words`, `intervals`)
//! 3. `mentions`: assets as markets, with their quotes
//! 4. `question`: markets, kinds and intervals together
//! 5. `rank`: documents, best first
//!
//! `symbols` indexes the markets of the exchange; [`id`] has the ids of documents.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests use the machine's clock"))]

mod assets;
pub mod id;
mod intervals;
mod mentions;
mod parts;
mod question;
mod rank;
mod symbols;
mod tokens;
mod words;

#[cfg(test)]
mod tests;

pub use parts::MatchedOn;
pub use rank::{Match, search};
pub use symbols::SymbolTable;

/// The name of the asset with this ticker, if it is known.
pub fn asset_name(ticker: &str) -> Option<&'static str> {
    assets::Assets::known().name(ticker)
}
