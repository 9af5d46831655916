//! Which symbols there are, indexed for every way of asking for one.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;

use super::assets::Assets;
use super::everyday;
use super::text::{edits_within, one_edit_apart, phrase};
use super::words;
use crate::model::{Symbol, SymbolStatus};
use crate::number::Notional;

/// Quotes in the order in which people mean them when they name none.
const QUOTES: &[&str] = &[
    "USDT", "USDC", "FDUSD", "BTC", "USD", "ETH", "BNB", "EUR", "TRY", "BRL", "JPY", "GBP", "USD1", "TUSD", "DAI",
];

/// Names are compared by letters up to this length.
const MAX_COMPARED_CHARS: usize = 40;

/// Shortest text that may be the beginning or a misspelling of something.
const MIN_FUZZY_CHARS: usize = 5;

/// The symbols of an exchange. Never changed: a new exchangeInfo makes a new one, new volumes a new ranking.
#[derive(Debug, Clone)]
pub struct SymbolTable {
    listing: Arc<Listing>,
    /// By base and by quote, best first.
    by_base: HashMap<Arc<str>, Vec<usize>>,
    by_quote: HashMap<Arc<str>, Vec<usize>>,
    /// Where each symbol stands among all.
    places: Vec<usize>,
}

/// What does not depend on volumes.
#[derive(Debug)]
struct Listing {
    /// Sorted by key.
    symbols: Vec<Symbol>,
    /// Names in upper case.
    by_key: HashMap<String, usize>,
    keys: Vec<String>,
    /// What may be misspelt, with the base it stands for; sorted.
    spellings: Vec<Spelling>,
    /// Spellings by first letter and length.
    by_shape: HashMap<(char, usize), Vec<usize>>,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Spelling {
    text: String,
    base: Arc<str>,
}

/// How symbols are compared in upper case, whatever their script.
fn key(text: &str) -> String {
    text.trim().to_uppercase()
}

impl SymbolTable {
    /// `volumes` are of the last 24 hours in the quote asset, by symbol; what is missing ranks last.
    pub fn new(symbols: Vec<Symbol>, volumes: &HashMap<Arc<str>, Notional>) -> Self {
        Self::ranked(Arc::new(Listing::new(symbols)), volumes)
    }

    /// The same symbols, ranked by newer volumes.
    #[must_use]
    pub fn reranked(&self, volumes: &HashMap<Arc<str>, Notional>) -> Self {
        Self::ranked(Arc::clone(&self.listing), volumes)
    }

    fn ranked(listing: Arc<Listing>, volumes: &HashMap<Arc<str>, Notional>) -> Self {
        let mut order: Vec<usize> = (0..listing.symbols.len()).collect();
        order.sort_by_cached_key(|at| rank(&listing.symbols[*at], volumes));
        let mut by_base: HashMap<Arc<str>, Vec<usize>> = HashMap::new();
        let mut by_quote: HashMap<Arc<str>, Vec<usize>> = HashMap::new();
        let mut places = vec![0; order.len()];
        for (place, at) in order.into_iter().enumerate() {
            places[at] = place;
            let symbol = &listing.symbols[at];
            by_base.entry(Arc::clone(&symbol.base)).or_default().push(at);
            by_quote.entry(Arc::clone(&symbol.quote)).or_default().push(at);
        }
        Self {
            listing,
            by_base,
            by_quote,
            places,
        }
    }

    pub fn len(&self) -> usize {
        self.listing.symbols.len()
    }

    pub fn is_empty(&self) -> bool {
        self.listing.symbols.is_empty()
    }

    /// All of them, by name.
    pub fn symbols(&self) -> &[Symbol] {
        &self.listing.symbols
    }

    /// The symbol of this name, in any case.
    pub fn lookup(&self, name: &str) -> Option<&Symbol> {
        let at = self.listing.by_key.get(&key(name))?;
        self.listing.symbols.get(*at)
    }

    /// Symbols that trade this asset, best first.
    pub fn of_base(&self, base: &str) -> impl ExactSizeIterator<Item = &Symbol> + Clone {
        self.listed(self.by_base.get(base))
    }

    /// Symbols whose prices are in this asset, best first.
    pub fn of_quote(&self, quote: &str) -> impl ExactSizeIterator<Item = &Symbol> + Clone {
        self.listed(self.by_quote.get(quote))
    }

    pub fn pair(&self, base: &str, quote: &str) -> Option<&Symbol> {
        self.of_base(base).find(|symbol| &*symbol.quote == quote)
    }

    pub fn has_base(&self, base: &str) -> bool {
        self.by_base.contains_key(base)
    }

    pub fn has_quote(&self, quote: &str) -> bool {
        self.by_quote.contains_key(quote)
    }

    /// What prices are in, as the exchange writes it.
    pub fn money(&self, quote: &str) -> Option<&Arc<str>> {
        self.by_quote.get_key_value(quote).map(|(money, _)| money)
    }

    /// Everything that prices are in, what people mean first.
    pub fn moneys(&self) -> Vec<&Arc<str>> {
        let mut moneys: Vec<(&Arc<str>, &Vec<usize>)> = self.by_quote.iter().collect();
        let place = |money: &str| QUOTES.iter().position(|quote| *quote == money).unwrap_or(QUOTES.len());
        moneys.sort_by_key(|(money, markets)| (place(money), Reverse(markets.len()), Arc::clone(money)));
        moneys.into_iter().map(|(money, _)| money).collect()
    }

    fn listed<'a>(&'a self, places: Option<&'a Vec<usize>>) -> impl ExactSizeIterator<Item = &'a Symbol> + Clone {
        let places = places.map_or(&[][..], Vec::as_slice);
        places.iter().map(|at| &self.listing.symbols[*at])
    }

    /// Symbols for the message that there is none of this name: of the same base, or spelt nearly so.
    pub fn near(&self, name: &str, most: usize) -> Vec<&Symbol> {
        let wanted = key(name);
        let mut found: Vec<&Symbol> = Vec::new();
        let named = Assets::known().called(&phrase(name)).iter().copied();
        for base in std::iter::once(wanted.as_str()).chain(named) {
            found.extend(self.of_base(base));
        }
        if found.is_empty() {
            found.extend(self.of_longest_base(&wanted));
        }
        let mut spelt = self.spelt_like(&wanted);
        // One edit is likelier meant than another quote of the same base.
        spelt.extend(found);
        let mut seen = Vec::new();
        for symbol in spelt {
            if seen.len() < most && !seen.contains(&symbol) {
                seen.push(symbol);
            }
        }
        seen
    }

    /// Symbols of the longest base that the text begins with.
    fn of_longest_base(&self, text: &str) -> impl Iterator<Item = &Symbol> {
        let ends = text.char_indices().map(|(at, _)| at).skip(1).take(MAX_COMPARED_CHARS);
        let base = ends.map(|end| &text[..end]).filter(|base| self.has_base(base)).last();
        base.into_iter().flat_map(|base| self.of_base(base))
    }

    /// Symbols at most two edits away (one, of short texts), nearest first.
    fn spelt_like(&self, wanted: &str) -> Vec<&Symbol> {
        let letters: Vec<char> = wanted.chars().take(MAX_COMPARED_CHARS + 1).collect();
        if letters.len() < MIN_FUZZY_CHARS || letters.len() > MAX_COMPARED_CHARS {
            return Vec::new();
        }
        let most = if letters.len() < 8 { 1 } else { 2 };
        let mut near: Vec<(usize, &Symbol)> = self
            .listing
            .keys
            .iter()
            .zip(&self.listing.symbols)
            .filter(|(key, _)| key.len() <= 4 * MAX_COMPARED_CHARS)
            .filter_map(|(key, symbol)| {
                let key: Vec<char> = key.chars().collect();
                edits_within(&letters, &key, most).map(|edits| (edits, symbol))
            })
            .collect();
        near.sort_by_key(|(edits, symbol)| (*edits, symbol.status != SymbolStatus::Trading));
        near.into_iter().map(|(_, symbol)| symbol).collect()
    }

    /// The best symbol of each base that a folded word may begin.
    pub(super) fn beginning_with(&self, word: &str) -> Vec<&Symbol> {
        let length = word.chars().count();
        if length < MIN_FUZZY_CHARS {
            return Vec::new();
        }
        let spellings = &self.listing.spellings;
        let from = spellings.partition_point(|spelling| spelling.text.as_str() < word);
        let bases = spellings[from..]
            .iter()
            .take_while(|spelling| spelling.text.starts_with(word))
            // Less than three fifths of a name begins too many others.
            .filter(|spelling| 5 * length >= 3 * spelling.text.chars().count())
            .map(|spelling| &spelling.base);
        self.best_of(bases)
    }

    /// The best symbol of each base that a folded word misspells by one edit, not in its first letter.
    pub(super) fn misspelt(&self, word: &str) -> Vec<&Symbol> {
        let length = word.chars().count();
        let Some(first) = word.chars().next().filter(|_| length >= MIN_FUZZY_CHARS) else {
            return Vec::new();
        };
        let bases = (length - 1..=length + 1)
            .filter_map(|length| self.listing.by_shape.get(&(first, length)))
            .flatten()
            .map(|at| &self.listing.spellings[*at])
            .filter(|spelling| one_edit_apart(&spelling.text, word))
            .map(|spelling| &spelling.base);
        self.best_of(bases)
    }

    /// Whether a text is a base with money behind it that it is not traded in: well spelt, and no symbol.
    pub(super) fn is_untraded_pair(&self, word: &str) -> bool {
        let wanted = key(word);
        let splits = wanted.char_indices().skip(1).take(MAX_COMPARED_CHARS);
        let mut halves = splits.map(|(at, _)| wanted.split_at(at));
        // "BTCUSD" is said of the stablecoins' markets.
        halves.any(|(base, quote)| quote != "USD" && words::is_money(quote) && self.has_base(base))
    }

    /// Symbols that a text names by another name of the base: `xbtusdt`, `XBTUSD`.
    pub(super) fn named_pair(&self, word: &str) -> Vec<&Symbol> {
        let splits = word.char_indices().skip(1).take(MAX_COMPARED_CHARS);
        let halves = splits.map(|(at, _)| word.split_at(at));
        let priced = halves.filter(|(_, quote)| words::is_money(&quote.to_uppercase()));
        let mut found = Vec::new();
        for (name, quote) in priced {
            let bases = Assets::known().called(name).iter().flat_map(|base| self.of_base(base));
            let quote = quote.to_uppercase();
            let meant = |symbol: &&Symbol| match quote.as_str() {
                "USD" => words::is_dollar(&symbol.quote),
                quote => &*symbol.quote == quote,
            };
            found.extend(bases.filter(meant));
        }
        found
    }

    /// Symbols whose name a text begins, well into the quote.
    pub(super) fn cut(&self, word: &str) -> Vec<&Symbol> {
        let wanted = key(word);
        let length = wanted.chars().count();
        let begun = |symbol: &&Symbol| {
            let beyond = length.saturating_sub(symbol.base.chars().count());
            beyond >= 2 && key(&symbol.name).starts_with(&wanted)
        };
        self.of_longest_base(&wanted)
            .filter(|symbol| length >= MIN_FUZZY_CHARS && begun(symbol))
            .collect()
    }

    /// Symbols whose name a text misspells by one edit, with the base spelt right: an edit in the base
    /// would be another asset.
    pub(super) fn mistyped(&self, word: &str) -> Vec<&Symbol> {
        let wanted = key(word);
        let length = wanted.chars().count();
        self.of_longest_base(&wanted)
            .filter(|symbol| length > MIN_FUZZY_CHARS && one_edit_apart(&key(&symbol.name), &wanted))
            .collect()
    }

    /// Where a symbol stands among all: by status, quote and volume.
    pub(super) fn place(&self, symbol: &Symbol) -> usize {
        let at = self.listing.by_key.get(&key(&symbol.name));
        at.and_then(|at| self.places.get(*at)).copied().unwrap_or(usize::MAX)
    }

    fn best_of<'a>(&'a self, bases: impl Iterator<Item = &'a Arc<str>>) -> Vec<&'a Symbol> {
        let mut best: Vec<usize> = bases
            .filter_map(|base| self.by_base.get(base)?.first().copied())
            .collect();
        best.sort_by_key(|at| self.places[*at]);
        best.dedup();
        best.into_iter().map(|at| &self.listing.symbols[at]).collect()
    }
}

impl Listing {
    fn new(mut symbols: Vec<Symbol>) -> Self {
        symbols.retain(|symbol| !symbol.name.trim().is_empty() && !symbol.base.is_empty());
        symbols.sort_by_cached_key(|symbol| key(&symbol.name));
        symbols.dedup_by_key(|symbol| key(&symbol.name));
        let keys: Vec<String> = symbols.iter().map(|symbol| key(&symbol.name)).collect();
        let by_key = keys.iter().cloned().zip(0..).collect();
        let spellings = spellings(&symbols);
        let mut by_shape: HashMap<(char, usize), Vec<usize>> = HashMap::new();
        for (at, spelling) in spellings.iter().enumerate() {
            if let Some(first) = spelling.text.chars().next() {
                let shape = (first, spelling.text.chars().count());
                by_shape.entry(shape).or_default().push(at);
            }
        }
        Self {
            symbols,
            by_key,
            keys,
            spellings,
            by_shape,
        }
    }
}

/// Names in one word of listed bases, other than ordinary English ones. No tickers: one letter more or
/// less is another ticker.
fn spellings(symbols: &[Symbol]) -> Vec<Spelling> {
    let bases: HashMap<&str, &Arc<str>> = symbols.iter().map(|s| (&*s.base, &s.base)).collect();
    let names = Assets::known().phrases().flat_map(|(name, tickers)| {
        let listed = tickers.iter().filter_map(|ticker| bases.get(ticker).copied());
        listed.map(move |base| (name.to_owned(), base))
    });
    let mut spellings: Vec<Spelling> = names
        .filter(|(text, _)| (MIN_FUZZY_CHARS - 1..=MAX_COMPARED_CHARS).contains(&text.chars().count()))
        .filter(|(text, _)| !text.contains(' ') && (everyday::is_familiar(text) || !everyday::is_ordinary(text)))
        .map(|(text, base)| Spelling {
            text,
            base: Arc::clone(base),
        })
        .collect();
    spellings.sort();
    spellings.dedup();
    spellings
}

/// Trading before halted, then by what people quote prices in.
fn preference(symbol: &Symbol) -> (u8, usize) {
    let status = match symbol.status {
        SymbolStatus::Trading => 0,
        SymbolStatus::Halted => 1,
        SymbolStatus::Break => 2,
    };
    let quote = QUOTES.iter().position(|quote| *quote == &*symbol.quote);
    (status, quote.unwrap_or(QUOTES.len()))
}

type Rank = ((u8, usize), Reverse<Notional>, Arc<str>);

fn rank(symbol: &Symbol, volumes: &HashMap<Arc<str>, Notional>) -> Rank {
    let volume = volumes.get(&symbol.name).copied().unwrap_or_default();
    (preference(symbol), Reverse(volume), Arc::clone(&symbol.name))
}
