//! What a query and a market have in common.

use serde::Serialize;

/// By what a market was found; the best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum MatchedOn {
    /// The query is an id.
    Id,
    Symbol,
    /// Base and quote.
    Pair,
    /// Base and quote of a market that has them the other way round.
    ReversedPair,
    /// The base asset's ticker.
    Ticker,
    /// The base asset's name or an alias of it.
    Name,
    /// A name or symbol with one typing error.
    OneEdit,
    /// The query names no market and asks for all of them.
    AllMarkets,
}

impl MatchedOn {
    pub(crate) const fn score(self) -> f32 {
        match self {
            Self::Id | Self::Symbol => 1.0,
            Self::Pair => 0.95,
            Self::ReversedPair => 0.9,
            Self::Ticker => 0.85,
            Self::Name => 0.8,
            Self::OneEdit => 0.4,
            Self::AllMarkets => 0.7,
        }
    }
}
