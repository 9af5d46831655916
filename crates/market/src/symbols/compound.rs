//! Names that are the first half of something else: "gala dinner price", "stellar blade price".

use super::gather;
use super::id::{AnalyticsKind, Kind};
use super::parse::{Meaning, Part, Standing};
use super::table::SymbolTable;
use super::text::{Gap, Word};
use super::words::{self as vocabulary, Sense};

/// What is said behind names of assets, and leaves them that.
const OF_ASSETS: &[&str] = &[
    "blockchain",
    "chain",
    "coinbase",
    "dao",
    "defi",
    "ecosystem",
    "foundation",
    "kraken",
    "labs",
    "network",
    "nft",
    "protocol",
    "wallet",
];

/// A name that is also a word, with a noun behind it that is not known here, is no asset, if nothing but what goods
/// have as well is asked of it.
pub(super) fn settle(table: &SymbolTable, words: &[Word], parts: &mut [Part<'_>]) {
    if !asks_of_goods(parts) {
        return;
    }
    let weak = |part: &Part<'_>| matches!(&part.meaning, Meaning::Mention(name) if is_weak(name.standing));
    let Some(at) = parts.iter().position(weak) else {
        return;
    };
    let noun = parts.get(at + 1).is_some_and(|next| is_noun(table, words, next));
    if let Meaning::Mention(name) = &mut parts[at].meaning
        && noun
    {
        name.symbols.clear();
    }
}

/// A word that is not known here, nor a known one misspelt.
fn is_noun(table: &SymbolTable, words: &[Word], part: &Part<'_>) -> bool {
    let unknown = part.gap == Gap::Loose && matches!(part.meaning, Meaning::Unknown);
    let word = &words[part.start];
    let unknown = unknown && !OF_ASSETS.contains(&word.folded.as_str());
    unknown && !vocabulary::resembles(&word.folded) && gather::guessed(table, word).is_none()
}

const fn is_weak(standing: Standing) -> bool {
    matches!(
        standing,
        Standing::Terse { capitals: false } | Standing::Familiar | Standing::Ordinary
    )
}

/// Whether something is asked for, and nothing that only markets have.
fn asks_of_goods(parts: &[Part<'_>]) -> bool {
    let wish = |part: &Part<'_>| match part.meaning {
        Meaning::Sense(Sense::Wants(kind)) => Some(kind),
        _ => None,
    };
    let of_markets = |part: &Part<'_>| match part.meaning {
        Meaning::Sense(Sense::Wants(kind)) => !matches!(kind, Kind::Ticker | Kind::Analytics(AnalyticsKind::Anomalies)),
        Meaning::Sense(Sense::Coins | Sense::Deal | Sense::Day | Sense::Candles(_)) => true,
        Meaning::Interval(_) | Meaning::NoInterval(_) => true,
        _ => false,
    };
    let named = parts.iter().filter(|part| matches!(part.meaning, Meaning::Mention(_)));
    named.count() == 1 && parts.iter().any(|part| wish(part).is_some()) && !parts.iter().any(of_markets)
}
