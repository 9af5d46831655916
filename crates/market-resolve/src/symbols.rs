//! The symbols of an exchange, indexed by name, base, quote and spelling, and ranked.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;

use crate::assets::{self, Assets};
use crate::tokens::{is_one_edit_apart, phrase};
use tribune_binance::{Notional, Symbol};

/// Quotes in the order in which people mean them when they name none.
const QUOTES: &[&str] =
    &["USDT", "USDC", "FDUSD", "BTC", "USD", "ETH", "BNB", "EUR", "TRY", "BRL", "JPY", "GBP", "USD1", "TUSD", "DAI"];

/// Names are compared by letters up to this length.
const MAX_COMPARED_CHARS: usize = 40;

/// Longest text that is too short to be the misspelling of a symbol.
const MIN_FUZZY_CHARS: usize = 5;

/// The symbols of an exchange. Never changed: a new exchangeInfo makes a new one, new volumes a new ranking.
#[derive(Debug, Clone)]
pub struct SymbolTable {
    /// Sorted by key.
    symbols: Arc<[Symbol]>,
    /// Names in upper case.
    by_key: Arc<HashMap<String, usize>>,
    /// By base and by quote, best first.
    by_base: HashMap<Arc<str>, Vec<usize>>,
    by_quote: HashMap<Arc<str>, Vec<usize>>,
    /// Where each symbol stands among all.
    places: Vec<usize>,
}

/// How symbols are compared in upper case, whatever their script.
fn key(text: &str) -> String {
    text.trim().to_uppercase()
}

impl SymbolTable {
    /// `volume` of a symbol is that of the last 24 hours in the quote asset; an unknown one ranks last.
    pub fn new(mut symbols: Vec<Symbol>, volume: impl Fn(&str) -> Option<Notional>) -> Self {
        symbols.retain(|symbol| !symbol.name.trim().is_empty() && !symbol.base.is_empty());
        symbols.sort_by_cached_key(|symbol| key(&symbol.name));
        symbols.dedup_by_key(|symbol| key(&symbol.name));
        let by_key = symbols.iter().map(|symbol| key(&symbol.name)).zip(0..).collect();
        Self::ranked(symbols.into(), Arc::new(by_key), volume)
    }

    /// The same symbols, ranked by newer volumes.
    #[must_use]
    pub fn reranked(&self, volume: impl Fn(&str) -> Option<Notional>) -> Self {
        Self::ranked(Arc::clone(&self.symbols), Arc::clone(&self.by_key), volume)
    }

    fn ranked(
        symbols: Arc<[Symbol]>,
        by_key: Arc<HashMap<String, usize>>,
        volume: impl Fn(&str) -> Option<Notional>,
    ) -> Self {
        let mut order: Vec<usize> = (0..symbols.len()).collect();
        order.sort_by_cached_key(|at| rank(&symbols[*at], &volume));
        let mut by_base: HashMap<Arc<str>, Vec<usize>> = HashMap::new();
        let mut by_quote: HashMap<Arc<str>, Vec<usize>> = HashMap::new();
        let mut places = vec![0; order.len()];
        for (place, at) in order.into_iter().enumerate() {
            places[at] = place;
            let symbol = &symbols[at];
            by_base.entry(Arc::clone(&symbol.base)).or_default().push(at);
            by_quote.entry(Arc::clone(&symbol.quote)).or_default().push(at);
        }
        Self { symbols, by_key, by_base, by_quote, places }
    }

    pub fn len(&self) -> usize {
        self.symbols.len()
    }

    pub fn is_empty(&self) -> bool {
        self.symbols.is_empty()
    }

    /// All of them, by name.
    pub fn symbols(&self) -> &[Symbol] {
        &self.symbols
    }

    /// The symbol of this name, in any case.
    pub fn lookup(&self, name: &str) -> Option<&Symbol> {
        self.symbols.get(*self.by_key.get(&key(name))?)
    }

    /// Symbols that trade this asset, best first.
    pub fn of_base(&self, base: &str) -> impl ExactSizeIterator<Item = &Symbol> + Clone {
        self.listed(self.by_base.get(base))
    }

    /// Symbols whose prices are in this asset, best first.
    pub fn of_quote(&self, quote: &str) -> impl ExactSizeIterator<Item = &Symbol> + Clone {
        self.listed(self.by_quote.get(quote))
    }

    fn listed<'a>(&'a self, places: Option<&'a Vec<usize>>) -> impl ExactSizeIterator<Item = &'a Symbol> + Clone {
        let places = places.map_or(&[][..], Vec::as_slice);
        places.iter().map(|at| &self.symbols[*at])
    }

    pub fn pair(&self, base: &str, quote: &str) -> Option<&Symbol> {
        self.of_base(base).find(|symbol| &*symbol.quote == quote)
    }

    /// A symbol as the exchange writes it: `btc/usdt` is `BTCUSDT`.
    pub fn spelled(&self, text: &str) -> String {
        let text = key(text);
        let pair = text.split_once(['/', '-', '_', ' ']);
        let known = pair.and_then(|(base, quote)| self.pair(base.trim(), quote.trim()));
        known.map_or(text.clone(), |symbol| symbol.name.to_string())
    }

    /// The asset of this ticker that is traded, as the exchange writes it.
    pub(crate) fn base(&self, ticker: &str) -> Option<&str> {
        self.by_base.get_key_value(ticker).map(|(base, _)| &**base)
    }

    pub fn has_base(&self, base: &str) -> bool {
        self.by_base.contains_key(base)
    }

    /// What prices are in, as the exchange writes it.
    pub fn money(&self, quote: &str) -> Option<&Arc<str>> {
        self.by_quote.get_key_value(quote).map(|(money, _)| money)
    }

    /// The quote that a ticker asks for; dollars are the first stablecoin of them.
    pub(crate) fn quote_asked(&self, ticker: &str) -> Option<&Arc<str>> {
        let moneys = self.moneys();
        moneys.into_iter().find(|quote| assets::is_quote(ticker, quote))
    }

    /// Everything that prices are in, what people mean first.
    pub fn moneys(&self) -> Vec<&Arc<str>> {
        let mut moneys: Vec<(&Arc<str>, &Vec<usize>)> = self.by_quote.iter().collect();
        let place = |money: &str| QUOTES.iter().position(|quote| *quote == money).unwrap_or(QUOTES.len());
        moneys.sort_by_key(|(money, markets)| (place(money), Reverse(markets.len()), Arc::clone(money)));
        moneys.into_iter().map(|(money, _)| money).collect()
    }

    /// Suggestions for an unknown symbol: others of its base, or of the asset with this name.
    pub fn near(&self, name: &str, most: usize) -> Vec<&Symbol> {
        let wanted = key(name);
        let named = Assets::known().named(&phrase(name)).iter().copied();
        let bases = std::iter::once(wanted.as_str()).chain(named);
        let mut near: Vec<&Symbol> = bases.flat_map(|base| self.of_base(base)).collect();
        if near.is_empty() {
            near.extend(self.of_longest_base(&wanted));
        }
        near.truncate(most);
        near
    }

    /// Symbols of the longest base that the text begins with.
    fn of_longest_base(&self, text: &str) -> impl Iterator<Item = &Symbol> {
        let ends = text.char_indices().map(|(at, _)| at).skip(1).take(MAX_COMPARED_CHARS);
        let base = ends.map(|end| &text[..end]).filter(|base| self.has_base(base)).last();
        base.into_iter().flat_map(|base| self.of_base(base))
    }

    /// Symbols whose name a text misspells by one edit in the quote: an edit in the base would be another asset.
    pub(crate) fn mistyped(&self, word: &str) -> Vec<&Symbol> {
        let wanted = key(word);
        let is_long = wanted.chars().count() > MIN_FUZZY_CHARS;
        self.of_longest_base(&wanted)
            .filter(|symbol| is_long && is_one_edit_apart(&key(&symbol.name), &wanted))
            .collect()
    }

    /// Where a symbol stands among all: by status, quote and volume.
    pub(crate) fn place(&self, symbol: &Symbol) -> usize {
        let at = self.by_key.get(&key(&symbol.name));
        at.and_then(|at| self.places.get(*at)).copied().unwrap_or(usize::MAX)
    }
}

/// Traded ones first, then by what people quote prices in, then by volume.
fn rank(symbol: &Symbol, volume: impl Fn(&str) -> Option<Notional>) -> (bool, usize, Reverse<Notional>, Arc<str>) {
    let quote = QUOTES.iter().position(|quote| *quote == &*symbol.quote);
    let volume = volume(&symbol.name).unwrap_or_default();
    (!symbol.is_traded(), quote.unwrap_or(QUOTES.len()), Reverse(volume), Arc::clone(&symbol.name))
}
