//! What a query asks for: which markets, which kinds of document, which intervals.

use std::sync::Arc;

use jiff::civil::Date;
use tribune_binance::Interval;

use crate::id::Kind;
use crate::intervals::Length;
use crate::mentions::{Mention, Mentions};
use crate::parts::{Part, What, parts};
use crate::symbols::SymbolTable;
use crate::tokens::tokens;
use crate::words::{DEFAULT_INTERVAL, Meaning, Sense};

/// Intervals that one query asks for at most.
const MAX_INTERVALS: usize = 3;

#[derive(Debug, Default)]
pub(crate) struct Question<'t> {
    pub mentions: Vec<Mention<'t>>,
    /// The quote of all the markets that the query asks for.
    pub all_markets: Option<&'t Arc<str>>,
    /// What is asked for, with the number of words that ask for it; best first.
    pub kinds: Vec<(Kind, usize)>,
    /// Words that were understood, and all words that say something.
    known: usize,
    pub words: usize,
}

impl<'t> Question<'t> {
    pub fn read(table: &'t SymbolTable, query: &str, today: Date) -> Self {
        let tokens = tokens(query);
        let parts = parts(table, &tokens, today);
        let wishes = Wishes(&parts);
        if wishes.is_unsupported() {
            return Self::default();
        }
        let found = Mentions::read(table, &parts);
        let count = |is_counted: &dyn Fn(&Part<'_>) -> bool| -> usize {
            let counted = parts.iter().filter(|part| is_counted(part));
            counted.map(|part| part.words).sum()
        };
        let unknown = found.unknown + count(&|part| matches!(part.what, What::Unknown) || part.means(Meaning::Absent));
        let says_something = |sense: Sense| !sense.is_filler() && sense.meaning != Meaning::Absent;
        let is_known = |part: &Part<'_>| part.sense().is_some_and(says_something) || part.length().is_some();
        let all_markets = wishes.all_markets(table, &found).filter(|_| unknown == 0);
        let mentions = all_markets.map_or_else(|| found.answered(unknown), |_| Vec::new());
        let named: usize = mentions.iter().map(|mention| mention.words).sum();
        let known = count(&is_known) + named;
        Self { mentions, all_markets, kinds: wishes.kinds(), known, words: known + unknown }
    }

    /// The share of the words that say something which were understood.
    pub fn coverage(&self) -> f32 {
        self.known as f32 / self.words.max(1) as f32
    }
}

/// What the words of a query ask for, whatever the market.
struct Wishes<'p, 't>(&'p [Part<'t>]);

impl Wishes<'_, '_> {
    fn senses(&self) -> impl Iterator<Item = (Sense, usize)> {
        let wanted = self.0.iter().filter(|part| !part.is_excluded);
        wanted.filter_map(|part| Some((part.sense()?, part.words)))
    }

    fn has(&self, meaning: Meaning) -> bool {
        self.senses().any(|(sense, _)| sense.meaning == meaning)
    }

    /// Whether a word of markets alone has this meaning.
    fn has_strong(&self, meaning: Meaning) -> bool {
        self.senses().any(|(sense, _)| sense.meaning == meaning && !sense.is_weak)
    }

    fn lengths(&self) -> impl Iterator<Item = (Length, usize)> {
        self.0.iter().filter_map(|part| Some((part.length()?, part.words)))
    }

    /// Whether the query asks for what a spot market does not know: futures, on-chain figures, forecasts.
    fn is_unsupported(&self) -> bool {
        let is_future = self.lengths().any(|(length, _)| length == Length::Future);
        let is_absent = self.has(Meaning::Absent) && !self.has_strong(Meaning::Kind(Kind::Ticker));
        self.has(Meaning::Unsupported) || is_future || is_absent
    }

    /// The quote whose markets are all asked for, if the query names no market of its own.
    fn all_markets<'t>(&self, table: &'t SymbolTable, found: &Mentions<'_, 't>) -> Option<&'t Arc<str>> {
        let quote = match found.single_asset() {
            None if !found.is_empty() => return None,
            // "BTC pairs" and "top gainers in BTC", but not "BTC markets".
            Some((quote, false)) => {
                let lists = self.has(Meaning::List) || self.has(Meaning::Superlative);
                let ranks = self.has(Meaning::Ranking) && self.has(Meaning::Toward);
                let asks = self.has(Meaning::Pairs) || (self.has(Meaning::Listing) && lists) || ranks;
                return table.quote_asked(quote).filter(|_| asks);
            }
            money => money.map(|(quote, _)| quote),
        };
        match quote {
            _ if !self.asks_all_markets(quote.is_some()) => None,
            Some(quote) => table.quote_asked(quote),
            None => table.moneys().first().copied(),
        }
    }

    fn asks_all_markets(&self, has_quote: bool) -> bool {
        let ranks = self.has(Meaning::Superlative);
        let about_coins = self.has(Meaning::Coin);
        let is_price = |meaning: Meaning| matches!(meaning, Meaning::Kind(Kind::Ticker | Kind::Klines(_)));
        let prices = self.senses().any(|(sense, _)| is_price(sense.meaning));
        let strong_prices = self.senses().any(|(sense, _)| is_price(sense.meaning) && !sense.is_weak);
        let about_markets = self.has(Meaning::Market) || prices;
        let listing = self.has(Meaning::Listing) || self.has(Meaning::Pairs);
        let strong_listing = self.has_strong(Meaning::Listing) || self.has_strong(Meaning::Pairs);
        let is_list = self.has(Meaning::List) || ranks || has_quote || about_coins || self.0.len() == 1;
        let mut asking = self.senses().filter(|(sense, _)| sense.asks_all);
        self.has(Meaning::Ranking)
            || strong_listing
            || (listing && is_list)
            || asking.any(|(sense, _)| !sense.is_weak || about_markets || about_coins)
            || (about_coins && (ranks || about_markets))
            || (ranks && strong_prices)
    }

    /// The kinds asked for, best first: what is specific, then reports, then the price.
    fn kinds(&self) -> Vec<(Kind, usize)> {
        let mut kinds: Vec<(Kind, usize)> = Vec::new();
        let has_amount = self.0.iter().any(|part| matches!(part.what, What::Number));
        if has_amount && (self.has(Meaning::Trade) || self.has(Meaning::Cost)) {
            kinds.push((Kind::OrderBookL2, 1));
        }
        for (sense, words) in self.senses() {
            let kind = match sense.meaning {
                Meaning::Kind(kind) => kind,
                Meaning::Cost => Kind::Ticker,
                _ => continue,
            };
            match kinds.iter_mut().find(|(known, _)| *known == kind) {
                Some((_, known)) => *known += words,
                None => kinds.push((kind, words)),
            }
        }
        kinds.sort_by_key(|(kind, _)| match kind {
            Kind::Ticker => 2,
            Kind::Report => 1,
            _ => 0,
        });
        let candles = kinds.iter().position(|(kind, _)| matches!(kind, Kind::Klines(_)));
        let is_price = kinds.iter().all(|(kind, _)| *kind == Kind::Ticker);
        let (at, words) = match candles {
            Some(at) => (at, kinds.remove(at).1),
            None if is_price => (0, 0),
            None => return kinds,
        };
        let intervals = self.intervals(candles.is_some()).into_iter();
        kinds.splice(at..at, intervals.map(|(interval, more)| (Kind::Klines(interval), words + more)));
        kinds
    }

    /// The intervals of the candles that are asked for; a past time asks for candles as well.
    fn intervals(&self, asks_candles: bool) -> Vec<(Interval, usize)> {
        let words = self.senses().filter_map(|(sense, words)| match sense.meaning {
            Meaning::Every(interval) => Some((Length::Every(interval), words)),
            Meaning::Past(interval) => Some((Length::Past(interval), words)),
            _ => None,
        });
        let lengths: Vec<(Length, usize)> = self.lengths().chain(words).collect();
        let every = lengths.iter().filter_map(|(length, words)| match length {
            Length::Every(interval) => Some((*interval, *words)),
            _ => None,
        });
        let mut every: Vec<(Interval, usize)> = every.take(MAX_INTERVALS).collect();
        every.dedup_by_key(|(interval, _)| *interval);
        if !every.is_empty() {
            return every;
        }
        let other = lengths.iter().find_map(|(length, words)| match length {
            Length::Past(interval) => Some((*interval, *words)),
            Length::Unit(interval) if asks_candles => Some((*interval, *words)),
            Length::Day if asks_candles => Some((Interval::D1, 0)),
            _ => None,
        });
        other.or(asks_candles.then_some((DEFAULT_INTERVAL, 0))).into_iter().collect()
    }
}
