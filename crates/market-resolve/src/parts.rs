//! A query's tokens as parts: assets, words with a sense, lengths of time, numbers, and unknown words.
//!
//! A part that may be an asset or something else carries a doubt. Doubts are settled by the other parts: rejected assets
//! are read again as ordinary words.

use jiff::civil::Date;
use serde::Serialize;

use crate::assets::{self, Assets};
use crate::intervals::{self, Length};
use crate::symbols::SymbolTable;
use crate::tokens::{Gap, Token};
use crate::words::{MAX_PHRASE_WORDS, Meaning, Sense, Words};
use tribune_binance::Symbol;

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

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Doubt {
    Certain,
    /// A ticker that is no everyday word.
    Ticker,
    /// An everyday word in capitals.
    Capitals,
    /// An everyday word.
    Everyday,
    /// Nearly the name of an asset.
    Spelling,
}

#[derive(Debug, Clone)]
pub(crate) struct Asset<'t> {
    /// The tickers of the name; not all need be traded.
    pub tickers: Vec<&'t str>,
    /// The market, where the word names one.
    pub symbol: Option<&'t Symbol>,
    /// The quote, where the word names one: `btceur`.
    pub quote: Option<&'static str>,
    pub on: MatchedOn,
    doubt: Doubt,
    /// What the word means if it is no asset.
    otherwise: Option<Sense>,
}

impl<'t> Asset<'t> {
    fn new(tickers: &[&'t str], on: MatchedOn, doubt: Doubt) -> Self {
        Self { tickers: tickers.to_vec(), symbol: None, quote: None, on, doubt, otherwise: None }
    }

    pub fn is_money(&self) -> bool {
        self.symbol.is_none() && self.quote.is_none() && self.tickers.iter().all(|ticker| assets::is_money(ticker))
    }
}

#[derive(Debug, Clone)]
pub(crate) enum What<'t> {
    Asset(Asset<'t>),
    Word(Sense),
    Length(Length),
    Number,
    Unknown,
}

#[derive(Debug, Clone)]
pub(crate) struct Part<'t> {
    start: usize,
    /// How many tokens it takes.
    pub words: usize,
    /// What stands before it.
    pub gap: Gap,
    pub is_excluded: bool,
    pub what: What<'t>,
}

impl<'t> Part<'t> {
    pub fn asset(&self) -> Option<&Asset<'t>> {
        if let What::Asset(asset) = &self.what { Some(asset) } else { None }
    }

    pub fn sense(&self) -> Option<Sense> {
        if let What::Word(sense) = self.what { Some(sense) } else { None }
    }

    pub fn length(&self) -> Option<Length> {
        if let What::Length(length) = self.what { Some(length) } else { None }
    }

    pub fn means(&self, meaning: Meaning) -> bool {
        self.sense().is_some_and(|sense| sense.meaning == meaning)
    }

    fn is_certain_asset(&self) -> bool {
        self.asset().is_some_and(|asset| asset.doubt == Doubt::Certain)
    }

    /// Whether the part is an asset, unless it is an everyday word.
    fn is_likely_asset(&self) -> bool {
        self.asset().is_some_and(|asset| matches!(asset.doubt, Doubt::Certain | Doubt::Ticker))
    }

    fn connects(&self) -> bool {
        self.means(Meaning::And) || self.means(Meaning::Compare) || self.means(Meaning::Toward)
    }
}

/// The parts of a query, without assets that are in doubt.
pub(crate) fn parts<'t>(table: &'t SymbolTable, tokens: &[Token], today: Date) -> Vec<Part<'t>> {
    let mut reader =
        Reader { table, tokens, today, is_shouted: is_shouted(table, tokens), rejected: vec![false; tokens.len()] };
    let mut parts = reader.read();
    let context = Context::new(&parts);
    let rejected: Vec<usize> = (0..parts.len()).filter(|at| !context.accepts(*at)).collect();
    if !rejected.is_empty() {
        for at in rejected {
            reader.rejected[parts[at].start] = true;
        }
        parts = reader.read();
    }
    exclude(&mut parts);
    parts
}

/// Whether capitals mean nothing because ordinary words have them too.
fn is_shouted(table: &SymbolTable, tokens: &[Token]) -> bool {
    let is_filler = |token: &Token| Words::known().sense(&token.folded).is_some_and(Sense::is_filler);
    let mut upper = tokens.iter().filter(|token| token.is_upper && token.text.len() > 1);
    upper.any(|token| is_filler(token) && !table.has_base(&token.text))
}

/// "not", "except" and the like exclude the next asset or kind.
fn exclude(parts: &mut [Part<'_>]) {
    let is_kind = |sense: Sense| !sense.is_weak && matches!(sense.meaning, Meaning::Kind(_));
    let mut excludes = false;
    for part in parts.iter_mut().filter(|part| !part.means(Meaning::Noise)) {
        part.is_excluded |= excludes && (part.asset().is_some() || part.sense().is_some_and(is_kind));
        excludes = part.means(Meaning::Exclude);
    }
}

struct Reader<'t, 'q> {
    table: &'t SymbolTable,
    tokens: &'q [Token],
    today: Date,
    is_shouted: bool,
    /// Where no asset may begin.
    rejected: Vec<bool>,
}

impl<'t> Reader<'t, '_> {
    fn read(&self) -> Vec<Part<'t>> {
        let mut parts: Vec<Part<'t>> = Vec::new();
        let mut at = 0;
        while at < self.tokens.len() {
            let follows_trade = parts.last().is_some_and(|part| part.means(Meaning::Trade));
            let (what, words) = self.part(at, follows_trade);
            let Token { gap, is_excluded, .. } = self.tokens[at];
            parts.push(Part { start: at, words, gap, is_excluded, what });
            at += words;
        }
        parts
    }

    /// The longest reading of the tokens from `at`.
    fn part(&self, at: usize, follows_trade: bool) -> (What<'t>, usize) {
        let token = &self.tokens[at];
        let word = self.longest(at, MAX_PHRASE_WORDS, |phrase| Words::known().sense(phrase));
        let word_words = word.map_or(0, |(_, words)| words);
        let asset = if self.rejected[at] { None } else { self.asset(at) };
        let asset_words = asset.as_ref().map_or(0, |(_, words)| *words);
        if let Some((length, words)) = intervals::length(&self.tokens[at..], self.today) {
            if follows_trade && words == 1 && token.folded.ends_with('m') {
                return (What::Number, 1);
            }
            if words > asset_words.max(word_words) {
                return (What::Length(length), words);
            }
        }
        match (asset, word) {
            (Some((mut asset, words)), word) if words >= word_words => {
                asset.otherwise = word.filter(|_| words == word_words).map(|(sense, _)| sense);
                (What::Asset(asset), words)
            }
            (_, Some((sense, words))) => (What::Word(sense), words),
            _ if token.is_number() => (What::Number, 1),
            _ if self.rejected[at] => (What::Unknown, 1),
            _ => (self.misspelt(token).map_or(What::Unknown, What::Asset), 1),
        }
    }

    /// The longest phrase from `at` that `find` knows.
    fn longest<T>(&self, at: usize, most: usize, find: impl Fn(&str) -> Option<T>) -> Option<(T, usize)> {
        let mut phrase = self.tokens[at].folded.clone();
        let mut found = find(&phrase).map(|value| (value, 1));
        for (words, token) in (2..=most).zip(&self.tokens[at + 1..]) {
            if token.gap == Gap::List || token.is_excluded {
                break;
            }
            phrase.push(' ');
            phrase.push_str(&token.folded);
            if let Some(value) = find(&phrase) {
                found = Some((value, words));
            }
        }
        found
    }

    /// The asset or market that the tokens from `at` name.
    fn asset(&self, at: usize) -> Option<(Asset<'t>, usize)> {
        let token = &self.tokens[at];
        if let Some(symbol) = self.table.lookup(&token.text) {
            let mut asset = Asset::new(&[&symbol.base], MatchedOn::Symbol, Doubt::Certain);
            asset.symbol = Some(symbol);
            return Some((asset, 1));
        }
        let named = self.longest(at, MAX_PHRASE_WORDS, |phrase| {
            let tickers = Assets::known().named(phrase);
            (!tickers.is_empty()).then_some(tickers)
        });
        let ticker = self.ticker(token);
        if let Some((tickers, words)) = named.filter(|(_, words)| *words > 1 || ticker.is_none()) {
            return Some((Asset::new(tickers, MatchedOn::Name, self.doubt(at, words)), words));
        }
        match ticker {
            Some(ticker) => Some((Asset::new(&[ticker], MatchedOn::Ticker, self.doubt(at, 1)), 1)),
            None => Some((self.split(token)?, 1)),
        }
    }

    /// The ticker of an asset that is traded, or known from elsewhere.
    fn ticker(&self, token: &Token) -> Option<&'t str> {
        let ticker = token.text.to_uppercase();
        let traded = self.table.base(&ticker);
        traded.or_else(|| Assets::known().ticker(&ticker))
    }

    /// A pair in one word that is no symbol: `btcusd`, or `btceur` where that is not traded.
    fn split(&self, token: &Token) -> Option<Asset<'t>> {
        let mut assets = assets::split_money(&token.folded).filter_map(|(base, quote)| {
            let traded = self.table.base(&base.to_uppercase());
            let tickers = traded.map_or_else(|| Assets::known().named(base).to_vec(), |ticker| vec![ticker]);
            let mut asset = Asset::new(&tickers, MatchedOn::Pair, Doubt::Certain);
            asset.quote = Some(quote);
            (!tickers.is_empty()).then_some(asset)
        });
        assets.next()
    }

    /// An asset or a market with one typing error.
    fn misspelt(&self, token: &Token) -> Option<Asset<'t>> {
        if let Some(symbol) = self.table.mistyped(&token.text).first() {
            let mut asset = Asset::new(&[&symbol.base], MatchedOn::OneEdit, Doubt::Spelling);
            asset.symbol = Some(symbol);
            return Some(asset);
        }
        let tickers = Assets::known().nearly_named(&token.folded)?;
        Some(Asset::new(tickers, MatchedOn::OneEdit, Doubt::Spelling))
    }

    fn doubt(&self, at: usize, words: usize) -> Doubt {
        let token = &self.tokens[at];
        let folded: Vec<&str> = self.tokens[at..at + words].iter().map(|token| &*token.folded).collect();
        let phrase = folded.join(" ");
        let is_everyday = assets::is_everyday(&phrase);
        if token.is_tagged || self.is_joined(at) {
            return Doubt::Certain;
        }
        let is_named = !Assets::known().named(&phrase).is_empty();
        match (token.is_upper && !self.is_shouted, is_everyday) {
            (_, false) if is_named => Doubt::Certain,
            (true, true) => Doubt::Capitals,
            (false, true) => Doubt::Everyday,
            (_, false) => Doubt::Ticker,
        }
    }

    /// Whether the token is one side of a pair whose other side is certainly an asset.
    fn is_joined(&self, at: usize) -> bool {
        let before = at.checked_sub(1).filter(|_| self.tokens[at].gap.joins());
        let after = Some(at + 1).filter(|next| self.tokens.get(*next).is_some_and(|token| token.gap.joins()));
        // "BTC-PERP" asks for a perpetual future, "PERP/USDT" for a market.
        let sense = Words::known().sense(&self.tokens[at].folded);
        let needs_money = sense.is_some_and(|sense| sense.meaning == Meaning::Unsupported);
        [before, after].into_iter().flatten().any(|other| {
            let token = &self.tokens[other];
            let ticker = self.ticker(token);
            let is_asset = ticker.is_some() || !Assets::known().named(&token.folded).is_empty();
            let is_quote = ticker.is_some_and(assets::is_money) || !needs_money;
            is_asset && is_quote && (token.is_upper || !assets::is_everyday(&token.folded))
        })
    }
}

/// What the parts of a query say about those that are in doubt.
struct Context<'p, 't> {
    parts: &'p [Part<'t>],
    /// Something shows that the query is about markets.
    has_evidence: bool,
    /// An asset other than money is certain.
    has_certain_asset: bool,
    /// Words that say something and are no assets.
    market_words: usize,
    unknown: usize,
}

impl<'p, 't> Context<'p, 't> {
    fn new(parts: &'p [Part<'t>]) -> Self {
        let is_evidence = |part: &Part<'_>| match &part.what {
            What::Word(sense) => sense.is_evidence(),
            What::Length(Length::Every(_)) => part.words == 1,
            _ => false,
        };
        let is_base = |part: &Part<'_>| part.is_certain_asset() && part.asset().is_some_and(|asset| !asset.is_money());
        let says_something = |part: &Part<'_>| part.sense().is_some_and(|sense| !sense.is_filler());
        let count = |is_counted: &dyn Fn(&Part<'_>) -> bool| parts.iter().filter(|part| is_counted(part)).count();
        Self {
            parts,
            has_evidence: parts.iter().any(is_evidence),
            has_certain_asset: parts.iter().any(is_base),
            market_words: count(&says_something),
            unknown: count(&|part| matches!(part.what, What::Unknown)),
        }
    }

    fn accepts(&self, at: usize) -> bool {
        let Some(asset) = self.parts[at].asset() else {
            return true;
        };
        let is_known = self.unknown == 0;
        let otherwise = asset.otherwise.map(|sense| sense.meaning);
        let is_short = asset.on == MatchedOn::Ticker && asset.tickers.iter().all(|ticker| ticker.chars().count() < 3);
        match asset.doubt {
            Doubt::Certain => true,
            _ if self.parts.len() == 1 || self.is_repeated(at) => true,
            _ if otherwise == Some(Meaning::Unsupported) => self.has_quote(at),
            Doubt::Ticker => self.unknown <= self.market_words || self.is_connected(at),
            Doubt::Spelling => is_known && (self.market_words > 0 || self.is_connected(at)),
            Doubt::Capitals if self.has_quote(at) || self.is_connected(at) => true,
            Doubt::Capitals if is_short => is_known && self.has_evidence,
            Doubt::Capitals => self.has_evidence || self.unknown <= 1,
            Doubt::Everyday if !is_known => false,
            Doubt::Everyday if otherwise.is_some() => false,
            Doubt::Everyday if self.has_quote(at) || self.is_connected(at) => true,
            Doubt::Everyday if self.has_certain_asset => at == 0 && self.parts.len() == 2,
            Doubt::Everyday => self.has_evidence && !is_short,
        }
    }

    /// Whether the neighbour names the same asset: "curve CRV".
    fn is_repeated(&self, at: usize) -> bool {
        let tickers = |at: usize| self.parts.get(at).and_then(Part::asset).map(|asset| &asset.tickers);
        let Some(own) = tickers(at) else { return false };
        let neighbours = [at.checked_sub(1), Some(at + 1)];
        let mut assets = neighbours.into_iter().flatten().filter_map(tickers);
        assets.any(|others| others.iter().any(|ticker| own.contains(ticker)))
    }

    /// Whether money stands directly behind the part, as its quote.
    fn has_quote(&self, at: usize) -> bool {
        let next = self.parts.get(at + 1).filter(|next| next.gap != Gap::List);
        next.and_then(Part::asset).is_some_and(|asset| asset.doubt == Doubt::Certain && asset.is_money())
    }

    /// Whether "and", "vs", a comma or the like connects the part to an asset.
    fn is_connected(&self, at: usize) -> bool {
        let parts = self.parts;
        let before = parts[..at].iter().rposition(|part| !part.connects());
        let after = parts[at + 1..].iter().position(|part| !part.connects());
        let is_linked = |first: usize, second: usize| second > first + 1 || parts[second].gap != Gap::Space;
        before.is_some_and(|before| parts[before].is_likely_asset() && is_linked(before, at))
            || after.is_some_and(|after| parts[at + 1 + after].is_likely_asset() && is_linked(at, at + 1 + after))
    }
}
