//! From a question to documents, best first.

use std::sync::Arc;

use jiff::civil::Date;
use tribune_core::{DocumentId, Links};

use crate::id::{Kind, MarketId};
use crate::mentions::Mention;
use crate::parts::MatchedOn;
use crate::question::Question;
use crate::symbols::SymbolTable;
use crate::words::DEFAULT_INTERVAL;
use tribune_binance::Symbol;

#[derive(Debug, Clone, PartialEq)]
pub struct Match {
    pub id: DocumentId,
    /// For all markets at once, their quote asset.
    pub symbol: Arc<str>,
    pub kind: Kind,
    pub matched_on: MatchedOn,
    /// From 0 to 1; never rises along a list.
    pub score: f32,
    /// The share of the query's words that this document accounts for, from 0 to 1.
    pub coverage: f32,
    /// Other symbols that the same words can mean, best first.
    pub alternatives: Vec<Arc<str>>,
}

const MAX_ALTERNATIVES: usize = 5;

/// Markets of other quotes whose tickers end a list.
const OTHER_QUOTES: usize = 4;

/// Documents that were not asked for rank behind equally good answers of other sources.
const SIBLING_COVERAGE: f32 = 0.9;

/// Documents of a symbol offered beside the one asked for.
const SIBLINGS: &[Kind] =
    &[Kind::OrderBook, Kind::Klines(DEFAULT_INTERVAL), Kind::OrderFlow, Kind::VolumeProfile, Kind::Health];

/// The documents that answer `query`, best first; none if it names no market of the table and does not ask for all.
/// `today` tells past dates from future ones.
pub fn search(table: &SymbolTable, query: &str, limit: usize, today: Date) -> Vec<Match> {
    if let Some(found) = pasted_id(table, query) {
        return [found].into_iter().take(limit).collect();
    }
    let question = Question::read(table, query, today);
    let mut answer = Answer { question: &question, limit, matches: Vec::new() };
    answer.fill();
    let all = question.all_markets.filter(|_| limit > 0);
    let all = all.and_then(|quote| found(quote, Kind::Markets, MatchedOn::AllMarkets));
    answer.matches.extend(all);
    answer.matches
}

/// A query that is an id, or the address of a citation.
fn pasted_id(table: &SymbolTable, query: &str) -> Option<Match> {
    let query = query.trim();
    let cited = Links::cited_id(query);
    let id = DocumentId::parse(cited.as_deref().unwrap_or(query)).ok()?;
    let id = MarketId::parse(&id).ok().flatten()?;
    let name = match id.kind() {
        Kind::Markets => table.money(id.symbol())?,
        _ => &table.lookup(id.symbol())?.name,
    };
    found(name, id.kind(), MatchedOn::Id)
}

/// A match that accounts for the whole query.
fn found(symbol: &Arc<str>, kind: Kind, matched_on: MatchedOn) -> Option<Match> {
    Some(Match {
        id: MarketId::new(kind, Arc::clone(symbol)).document_id().ok()?,
        symbol: Arc::clone(symbol),
        kind,
        matched_on,
        score: matched_on.score(),
        coverage: 1.0,
        alternatives: Vec::new(),
    })
}

/// A market that is not traded has rules and a past, but no current values.
fn available(symbol: &Symbol, kind: Kind) -> Kind {
    match kind {
        Kind::ExchangeInfo | Kind::Klines(_) | Kind::Trades => kind,
        _ if symbol.is_traded() => kind,
        _ => Kind::ExchangeInfo,
    }
}

struct Answer<'q, 't> {
    question: &'q Question<'t>,
    limit: usize,
    matches: Vec<Match>,
}

impl Answer<'_, '_> {
    /// What was asked for of every market, then their tickers, then the siblings, then other quotes.
    fn fill(&mut self) {
        let kinds = &self.question.kinds;
        for (place, (kind, _)) in kinds.iter().enumerate() {
            self.add_each(*kind, 1.0 - 0.01 * place as f32);
        }
        self.add_each(Kind::Ticker, if kinds.is_empty() { 1.0 } else { 0.9 });
        for (place, kind) in SIBLINGS.iter().enumerate() {
            self.add_each(*kind, 0.8 - 0.02 * place as f32);
        }
        for mention in &self.question.mentions {
            for symbol in mention.symbols.iter().skip(1).take(OTHER_QUOTES) {
                self.add(mention, symbol, Kind::Ticker, 0.6);
            }
        }
    }

    fn add_each(&mut self, kind: Kind, weight: f32) {
        for mention in &self.question.mentions {
            if let Some(symbol) = mention.symbols.first() {
                self.add(mention, symbol, kind, weight);
            }
        }
    }

    fn add(&mut self, mention: &Mention<'_>, symbol: &Symbol, asked: Kind, weight: f32) {
        let kind = available(symbol, asked);
        let is_listed = |found: &Match| found.kind == kind && found.symbol == symbol.name;
        if self.matches.len() >= self.limit || self.matches.iter().any(is_listed) {
            return;
        }
        let coverage = self.coverage(mention, asked);
        let least = self.matches.last().map_or(1.0, |before| before.score);
        let others = mention.symbols.iter().filter(|other| other.name != symbol.name);
        let others = others.take(MAX_ALTERNATIVES).map(|other| Arc::clone(&other.name));
        self.matches.extend(found(&symbol.name, kind, mention.on).map(|found| Match {
            score: (found.score * weight * (0.5 + 0.5 * coverage)).min(least),
            coverage,
            alternatives: others.collect(),
            ..found
        }));
    }

    /// The document asked for covers the whole query; one offered beside it covers only its own words.
    fn coverage(&self, mention: &Mention<'_>, kind: Kind) -> f32 {
        let question = self.question;
        let asked = question.kinds.iter().find(|(asked, _)| *asked == kind);
        let is_asked = asked.is_some() || (question.kinds.is_empty() && kind == Kind::Ticker);
        let words = mention.words + asked.map_or(0, |(_, words)| *words);
        let share = (words as f32 / question.words.max(1) as f32).min(1.0);
        match kind {
            _ if is_asked => question.coverage(),
            Kind::Ticker => share,
            _ => SIBLING_COVERAGE * share,
        }
    }
}
