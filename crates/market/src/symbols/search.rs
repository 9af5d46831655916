//! From a question to documents, best first.

use std::sync::Arc;

use jiff::civil::Date;
use jiff::{Timestamp, tz::TimeZone};
use tribune_core::{DocumentId, Links};

use super::gather::Question;
use super::id::{AnalyticsKind, Kind, MarketId};
use super::parse::{self, Mention};
use super::table::SymbolTable;
use super::words::DEFAULT_INTERVAL;
use crate::model::{Interval, Symbol, SymbolStatus};

/// By what a query was understood; the best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum MatchedOn {
    /// The query is an id.
    Id,
    Symbol,
    /// Base and quote.
    Pair,
    /// Base and quote, of a market that has them the other way round.
    ReversedPair,
    /// The base asset's ticker.
    Ticker,
    /// The base asset's name or an alias of it.
    Name,
    /// The beginning of a name or symbol.
    Prefix,
    /// A name or symbol with one edit.
    OneEdit,
    /// The query names no market, and asks for what all of them tell.
    AllMarkets,
}

impl MatchedOn {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Id => "id",
            Self::Symbol => "symbol",
            Self::Pair => "pair",
            Self::ReversedPair => "reversed_pair",
            Self::Ticker => "ticker",
            Self::Name => "name",
            Self::Prefix => "prefix",
            Self::OneEdit => "one_edit",
            Self::AllMarkets => "all_markets",
        }
    }

    const fn score(self) -> f32 {
        match self {
            Self::Id | Self::Symbol => 1.0,
            Self::Pair => 0.95,
            Self::ReversedPair => 0.9,
            Self::Ticker => 0.85,
            Self::Name => 0.8,
            Self::Prefix => 0.5,
            Self::OneEdit => 0.4,
            Self::AllMarkets => 0.7,
        }
    }
}

/// A document that answers a query.
#[derive(Debug, Clone, PartialEq)]
pub struct Match {
    pub id: DocumentId,
    /// Of all markets at once, the money that they are priced in.
    pub symbol: Arc<str>,
    pub kind: Kind,
    pub interval: Option<Interval>,
    pub matched_on: MatchedOn,
    /// From 0 to 1; never rises along a list.
    pub score: f32,
    /// How many of the words that say something this document accounts for, from 0 to 1.
    pub coverage: f32,
    /// Other symbols that the same words can mean, best first.
    pub alternatives: Vec<Arc<str>>,
}

/// Most alternatives that a match names.
const MAX_ALTERNATIVES: usize = 5;

/// Markets of other quotes whose tickers end a list.
const OTHER_QUOTES: usize = 4;

/// Lengths of candles that one question asks for at most.
const MAX_LENGTHS: usize = 3;

/// What is offered unasked stands behind the answers of other sources that are as good.
const SIBLING_COVERAGE: f32 = 0.9;

/// What is offered of a symbol beside what was asked for.
const SIBLINGS: &[Kind] = &[
    Kind::OrderBook,
    Kind::Klines(DEFAULT_INTERVAL),
    Kind::Analytics(AnalyticsKind::OrderFlow),
    Kind::Analytics(AnalyticsKind::VolumeProfile),
    Kind::Analytics(AnalyticsKind::Health),
];

/// The documents that answer `query`, best first; none if it names no market of the table and is not about all.
pub fn search(table: &SymbolTable, query: &str, limit: usize) -> Vec<Match> {
    let today = Timestamp::now().to_zoned(TimeZone::UTC).date();
    search_on(table, query, limit, today)
}

/// The same as asked on this day: what is named after it is no past.
pub(super) fn search_on(table: &SymbolTable, query: &str, limit: usize, today: Date) -> Vec<Match> {
    if let Some(found) = pasted_id(table, query) {
        return [found].into_iter().take(limit).collect();
    }
    let question = parse::question(table, query, today);
    let mut answer = Answer {
        question: &question,
        limit,
        matches: Vec::new(),
    };
    answer.fill();
    if question.is_of_all() {
        let money = match &question.money {
            Some(money) => table.money(money),
            None => table.moneys().first().copied(),
        };
        let found = money.and_then(|money| all_markets(money, MatchedOn::AllMarkets));
        answer.matches.extend(found.filter(|_| limit > 0));
    }
    answer.matches
}

/// The document about all markets of one money.
fn all_markets(money: &Arc<str>, on: MatchedOn) -> Option<Match> {
    Some(Match {
        id: MarketId::Markets(money.clone()).document_id().ok()?,
        symbol: money.clone(),
        kind: Kind::Markets,
        interval: None,
        matched_on: on,
        score: on.score(),
        coverage: 1.0,
        alternatives: Vec::new(),
    })
}

/// A query that is an id, or the address of a citation.
fn pasted_id(table: &SymbolTable, query: &str) -> Option<Match> {
    let query = query.trim();
    let cited = Links::cited_id(query);
    let id = DocumentId::parse(cited.as_deref().unwrap_or(query)).ok()?;
    let id = MarketId::parse(&id).ok().flatten()?;
    if let MarketId::Markets(money) = &id {
        return all_markets(table.money(money)?, MatchedOn::Id);
    }
    let symbol = table.lookup(id.symbol())?;
    document(symbol, id.kind(), MatchedOn::Id, 1.0, 1.0, Vec::new())
}

fn document(
    symbol: &Symbol,
    kind: Kind,
    matched_on: MatchedOn,
    score: f32,
    coverage: f32,
    alternatives: Vec<Arc<str>>,
) -> Option<Match> {
    let id = MarketId::of(kind, Arc::clone(&symbol.name)).document_id().ok()?;
    Some(Match {
        id,
        symbol: Arc::clone(&symbol.name),
        kind,
        interval: kind.interval(),
        matched_on,
        score,
        coverage,
        alternatives,
    })
}

/// Of a market that is not traded there are its rules and its past, and nothing that is of now.
fn to_be_had(symbol: &Symbol, kind: Kind) -> Kind {
    match kind {
        Kind::ExchangeInfo | Kind::Klines(_) | Kind::Trades => kind,
        _ if symbol.status == SymbolStatus::Trading => kind,
        _ => Kind::ExchangeInfo,
    }
}

struct Answer<'q, 't> {
    question: &'q Question<'t>,
    limit: usize,
    matches: Vec<Match>,
}

impl Answer<'_, '_> {
    /// What was asked for of every market, then their tickers, then the rest, then other quotes.
    fn fill(&mut self) {
        let wanted = self.wanted();
        for (place, (kind, _)) in wanted.iter().enumerate() {
            self.of_each(*kind, 1.0 - 0.01 * place as f32);
        }
        self.of_each(Kind::Ticker, if wanted.is_empty() { 1.0 } else { 0.9 });
        for (place, kind) in SIBLINGS.iter().enumerate() {
            self.of_each(*kind, 0.8 - 0.02 * place as f32);
        }
        for mention in &self.question.mentions {
            for symbol in mention.symbols.iter().skip(1).take(OTHER_QUOTES) {
                self.push(mention, symbol, Kind::Ticker, 0.6);
            }
        }
    }

    /// The kinds asked for, with the words that ask for each. A length of candles asks for candles,
    /// unless something rarer than a price is wanted.
    fn wanted(&self) -> Vec<(Kind, usize)> {
        let mut wanted = self.question.wants.clone();
        if self.question.intervals.is_empty() {
            return wanted;
        }
        let candles = wanted.iter().position(|(kind, _)| matches!(kind, Kind::Klines(_)));
        let priced = wanted.iter().all(|(kind, _)| *kind == Kind::Ticker);
        let (at, asked) = match candles {
            Some(at) => (at, wanted.remove(at).1),
            None if priced => (0, 0),
            None => return wanted,
        };
        let lengths = self.question.intervals.iter().take(MAX_LENGTHS);
        let candles = lengths.map(|(interval, words)| (Kind::Klines(*interval), words + asked));
        wanted.splice(at..at, candles);
        wanted
    }

    fn of_each(&mut self, kind: Kind, weight: f32) {
        for mention in &self.question.mentions {
            if let Some(symbol) = mention.symbols.first() {
                self.push(mention, symbol, kind, weight);
            }
        }
    }

    fn push(&mut self, mention: &Mention<'_>, symbol: &Symbol, asked: Kind, weight: f32) {
        let kind = to_be_had(symbol, asked);
        let taken = |found: &Match| found.kind == kind && found.symbol == symbol.name;
        if self.matches.len() >= self.limit || self.matches.iter().any(taken) {
            return;
        }
        let coverage = self.coverage(mention, asked);
        let score = mention.on.score() * weight * (0.5 + 0.5 * coverage);
        let least = self.matches.last().map_or(1.0, |before| before.score);
        let others = mention.symbols.iter().filter(|other| other.name != symbol.name);
        let alternatives = others.take(MAX_ALTERNATIVES).map(|other| Arc::clone(&other.name));
        let found = document(
            symbol,
            kind,
            mention.on,
            score.min(least),
            coverage,
            alternatives.collect(),
        );
        self.matches.extend(found);
    }

    /// What is asked for answers the question, however many markets and documents it takes; what is offered
    /// beside it accounts for its own words.
    fn coverage(&self, mention: &Mention<'_>, kind: Kind) -> f32 {
        let wanted = self.wanted();
        let told = wanted.iter().find(|(wanted, _)| *wanted == kind);
        let asked_for = told.is_some() || (wanted.is_empty() && kind == Kind::Ticker);
        let words = mention.words + told.map_or(0, |(_, words)| *words);
        let share = words as f32 / self.question.meaningful().max(1) as f32;
        if mention.pair_missing {
            share / 2.0
        } else if asked_for {
            self.question.answered()
        } else if kind == Kind::Ticker {
            share.min(1.0)
        } else {
            SIBLING_COVERAGE * share.min(1.0)
        }
    }
}
