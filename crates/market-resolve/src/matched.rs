//! What a query and a market have in common.

/// By what a market was found; the best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
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
    /// The beginning of a name.
    Prefix,
    /// A name or symbol with one typing error.
    OneEdit,
    /// The query names no market and asks for all of them.
    AllMarkets,
}

impl MatchedOn {
    pub const fn as_str(self) -> &'static str {
        self.described().0
    }

    pub(crate) const fn score(self) -> f32 {
        self.described().1
    }

    const fn described(self) -> (&'static str, f32) {
        match self {
            Self::Id => ("id", 1.0),
            Self::Symbol => ("symbol", 1.0),
            Self::Pair => ("pair", 0.95),
            Self::ReversedPair => ("reversed_pair", 0.9),
            Self::Ticker => ("ticker", 0.85),
            Self::Name => ("name", 0.8),
            Self::Prefix => ("prefix", 0.5),
            Self::OneEdit => ("one_edit", 0.4),
            Self::AllMarkets => ("all_markets", 0.7),
        }
    }
}
