//! Two assets that are one market, and money that is what a price is in.

use super::parse::{Meaning, Mention, Part, market};
use super::search::MatchedOn;
use super::table::SymbolTable;
use super::text::{Gap, Word};
use super::words::{self, Sense};
use crate::model::Symbol;

/// With these, "for" and "with" stand between what is given and what is got.
const CHANGING: &[&str] = &[
    "buy", "buying", "change", "convert", "exchange", "sell", "selling", "swap", "swapping", "trade", "trading",
];

/// Joins two assets where the question makes one market of them.
pub(super) fn pairs<'t>(table: &'t SymbolTable, words: &[Word], parts: Vec<Part<'t>>) -> Vec<Part<'t>> {
    let says = |sense| {
        parts
            .iter()
            .any(|part| matches!(part.meaning, Meaning::Sense(said) if said == sense))
    };
    let changing = words.iter().any(|word| CHANGING.contains(&word.folded.as_str()));
    let told = Told {
        pair: says(Sense::Pairing),
        compared: says(Sense::Compare),
    };
    let mut joined: Vec<Part<'t>> = Vec::with_capacity(parts.len());
    for mut part in parts {
        if changing && matches!(words[part.start].folded.as_str(), "for" | "with") {
            part.meaning = Meaning::Sense(Sense::Toward);
        }
        if !join(table, words, &mut joined, &mut part, told) {
            half_known(words, &mut joined, &mut part);
            unknown_priced(table, words, &joined, &mut part);
            joined.push(part);
        }
    }
    how_many(table, words, &mut joined);
    joined
}

/// "Kaspa usdt price", "kaspa in btc": the price of something that is not known here is no price of the money.
fn unknown_priced(table: &SymbolTable, words: &[Word], parts: &[Part<'_>], part: &mut Part<'_>) {
    let Meaning::Mention(money) = &mut part.meaning else {
        return;
    };
    let toward = parts
        .last()
        .is_some_and(|part| matches!(part.meaning, Meaning::Sense(Sense::Toward)));
    let rest = if toward { &parts[..parts.len() - 1] } else { parts };
    let passed = |part: &&Part<'_>| matches!(part.meaning, Meaning::Sense(Sense::Wants(_)));
    let first = if toward {
        rest.iter().rev().find(|part| !passed(part))
    } else {
        rest.last()
    };
    let unknown = first.is_some_and(|part| matches!(part.meaning, Meaning::Unknown));
    // "He believes in bitcoin": only a ticker that prices are in, and only in few words.
    let last = part.start + part.words == words.len();
    let quote = toward && last && words.len() <= 4 && money.on == MatchedOn::Ticker;
    let quote = quote && money.tickers.iter().any(|ticker| table.has_quote(ticker));
    if unknown && part.gap == Gap::Loose && (money.is_money() || quote) {
        money.symbols.clear();
    }
}

/// "How many bitcoin is one ether worth": the second is priced in the first.
fn how_many<'t>(table: &'t SymbolTable, words: &[Word], parts: &mut Vec<Part<'t>>) {
    let assets: Vec<usize> = (0..parts.len())
        .filter(|at| matches!(parts[*at].meaning, Meaning::Mention(_)))
        .collect();
    let &[first, second] = assets.as_slice() else {
        return;
    };
    let start = parts[first].start;
    let counted = start >= 2 && words[start - 2].folded == "how" && words[start - 1].folded == "many";
    let (Meaning::Mention(quote), Meaning::Mention(base)) = (&parts[first].meaning, &parts[second].meaning) else {
        return;
    };
    let straight = exchange(table, base, quote).map(|symbol| (symbol, MatchedOn::Pair));
    let reversed = || exchange(table, quote, base).map(|symbol| (symbol, MatchedOn::ReversedPair));
    let priced = straight.or_else(reversed).filter(|_| counted);
    if let Some((symbol, on)) = priced {
        let told = quote.words + base.words;
        parts[second].meaning = Meaning::Mention(market(table, symbol, on, told));
        parts.remove(first);
    }
}

/// "Pepe and shib in usdc": both are, and what is not traded so is no other market.
fn price_others<'t>(table: &'t SymbolTable, words: &[Word], parts: &mut [Part<'t>], last: usize, money: &Mention<'t>) {
    let mut at = last;
    while let Some(before) = at.checked_sub(1) {
        let linked = matches!(words[parts[before].start].folded.as_str(), "and" | "or");
        let listed = parts[at].gap == Gap::List;
        let Some(other) = before.checked_sub(usize::from(linked)).filter(|_| linked || listed) else {
            return;
        };
        let Meaning::Mention(asset) = &mut parts[other].meaning else {
            return;
        };
        match exchange(table, asset, money) {
            Some(symbol) => *asset = market(table, symbol, MatchedOn::Pair, asset.words),
            None if asset.tickers.is_empty() => {}
            None => asset.symbols.clear(),
        }
        at = other;
    }
}

/// A written pair with something that is no asset here: `BTC/XYZ` and `XYZ/BTC` are about no other pair of BTC.
fn half_known(words: &[Word], parts: &mut [Part<'_>], part: &mut Part<'_>) {
    let Some(last) = parts.last_mut() else {
        return;
    };
    let unlike_asset = |other: &Part<'_>| match other.meaning {
        // "bitcoin-backed" is a word, and only `BTC-XYZ` would be a pair.
        Meaning::Unknown => part.gap == Gap::Slash || (part.gap == Gap::Pair && words[other.start].capitals),
        Meaning::Sense(Sense::Stop | Sense::Toward) => part.gap == Gap::Slash,
        _ => false,
    };
    let (last_is, part_is) = (unlike_asset(last), unlike_asset(part));
    match (&mut last.meaning, &mut part.meaning) {
        (Meaning::Mention(asset), _) if part_is && !asset.tickers.is_empty() => asset.symbols.clear(),
        (_, Meaning::Mention(asset)) if last_is && !asset.tickers.is_empty() => asset.symbols.clear(),
        _ => {}
    }
}

/// What the whole question says of the assets in it.
#[derive(Clone, Copy)]
struct Told {
    /// Two of them are one market.
    pair: bool,
    /// Each is meant for itself.
    compared: bool,
}

/// How two assets stand beside each other.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Beside {
    /// `eth/btc`
    Written,
    /// `eth to btc`
    Toward,
    /// `eth - btc`
    Dashed,
    /// `eth btc`
    Next,
    /// `eth vs btc`
    Compared,
}

/// Where the asset stands that the next one may make a pair with, and how.
fn before(parts: &[Part<'_>], gap: Gap) -> Option<(Beside, usize)> {
    let last = parts.len().checked_sub(1)?;
    let linked = match &parts[last].meaning {
        Meaning::Mention(_) if gap.is_pair() => return Some((Beside::Written, last)),
        Meaning::Mention(_) if gap == Gap::Arrow => return Some((Beside::Toward, last)),
        Meaning::Mention(_) if gap == Gap::Dash => return Some((Beside::Dashed, last)),
        Meaning::Mention(_) if gap == Gap::Loose => return Some((Beside::Next, last)),
        Meaning::Sense(Sense::Toward) => Beside::Toward,
        Meaning::Sense(Sense::Compare) => Beside::Compared,
        _ => return None,
    };
    // "eth price in btc": what is wanted may stand between.
    let passed = |part: &Part<'_>| matches!(part.meaning, Meaning::Sense(Sense::Wants(_)));
    let at = parts[..last].iter().rposition(|part| !passed(part))?;
    Some((linked, at))
}

/// Whether `part` became the second half of a pair whose first half is the last of `parts`.
fn join<'t>(table: &'t SymbolTable, words: &[Word], parts: &mut [Part<'t>], part: &mut Part<'t>, told: Told) -> bool {
    let Meaning::Mention(second) = &mut part.meaning else {
        return false;
    };
    let Some((beside, at)) = before(parts, part.gap) else {
        return false;
    };
    let Meaning::Mention(first) = &mut parts[at].meaning else {
        return false;
    };
    if first.tickers.is_empty() || second.tickers.is_empty() {
        return false;
    }
    let straight = exchange(table, first, second);
    let reversed = exchange(table, second, first);
    let straight = straight.map(|symbol| (symbol, MatchedOn::Pair));
    let reversed = reversed.map(|symbol| (symbol, MatchedOn::ReversedPair));
    let found = match beside {
        Beside::Written => straight.or(reversed),
        Beside::Toward if !told.compared => straight.or(reversed),
        Beside::Next if told.pair => straight.or(reversed),
        Beside::Dashed if !told.compared => straight,
        _ if second.is_money() => straight,
        _ => None,
    };
    if let Some((symbol, on)) = found {
        *first = market(table, symbol, on, first.words + second.words);
        if beside == Beside::Toward && second.is_money() {
            price_others(table, words, parts, at, second);
        }
        return true;
    }
    if is_priced(first, second, beside, told) {
        if price_in(table, first, second) {
            // Its market is settled, whatever other money is named.
            first.tickers.clear();
        } else {
            first.words += second.words;
            first.symbols.clear();
        }
        return true;
    }
    if beside == Beside::Written {
        first.pair_missing = true;
        second.pair_missing = true;
        if first.symbols.is_empty() || second.symbols.is_empty() {
            first.symbols.clear();
            second.symbols.clear();
        }
    }
    false
}

/// Whether the second of two assets is the money that the first one's price is wanted in.
fn is_priced(first: &Mention<'_>, second: &Mention<'_>, beside: Beside, told: Told) -> bool {
    let each = beside == Beside::Compared || (beside == Beside::Toward && told.compared);
    // "usdt usdc" are two, "usdt/usdc" are one, and of a currency and dollars the other one has the market.
    let two = first.is_money() && (beside == Beside::Next || first.is_dollars() || second.is_dollars());
    second.is_money() && !two && !each
}

/// Puts the market in front in which the asset is priced in this money. Without one, no other is meant.
pub(super) fn price_in<'t>(table: &'t SymbolTable, asset: &mut Mention<'t>, money: &Mention<'t>) -> bool {
    if let Some(symbol) = exchange(table, asset, money) {
        asset.symbols.retain(|other| *other != symbol);
        asset.symbols.insert(0, symbol);
        asset.on = MatchedOn::Pair;
        asset.words += money.words;
        return true;
    }
    if !money.is_dollars() {
        return false;
    }
    asset.symbols.sort_by_key(|symbol| !words::is_dollar(&symbol.quote));
    asset
        .symbols
        .first()
        .is_some_and(|symbol| words::is_dollar(&symbol.quote))
}

fn exchange<'t>(table: &'t SymbolTable, base: &Mention<'t>, quote: &Mention<'t>) -> Option<&'t Symbol> {
    let quotes = || quote.tickers.iter();
    base.tickers
        .iter()
        .find_map(|base| quotes().find_map(|quote| table.pair(base, quote)))
}
