//! From parts to a question: money becomes the quote, and misspellings get a chance.

use super::everyday;
use super::id::Kind;
use super::judge::give_up;
use super::pairs::price_in;
use super::parse::{Meaning, Mention, Part, Standing};
use super::search::MatchedOn;
use super::table::SymbolTable;
use super::text::{Gap, Word};
use super::words::{self, Sense};
use crate::model::Interval;

/// How much more a word counts that asks for something else than there is: no wish beside it makes up for it.
const ELSEWHERE_WEIGHT: usize = 3;

/// Words between what is asked for and what it is asked of.
pub(super) const LINKS: &[&str] = &["a", "and", "for", "in", "of", "on", "or", "the"];

/// Words that may be misspelt in one question; with more it is about something else.
const MAX_GUESSED: usize = 3;

/// Wishes for candles that are of their length: a chart or a history of a year has candles of any.
const CANDLES: &[&str] = &["candle", "kline", "ohlc"];

/// A question, understood as far as it can be.
#[derive(Debug, Default)]
pub(super) struct Question<'t> {
    pub mentions: Vec<Mention<'t>>,
    /// What is asked for, with the number of words that say so.
    pub wants: Vec<(Kind, usize)>,
    /// Lengths of candles, with the number of words that name each.
    pub intervals: Vec<(Interval, usize)>,
    /// Words that mean nothing here.
    pub unknown: usize,
    /// Words that ask for what is not to be had here.
    unanswered: usize,
    /// Words that ask for something, but are said of anything.
    vague: usize,
    /// What is asked for is said of markets alone.
    pub telling: bool,
    /// Somebody buys, sells or speculates.
    pub dealing: bool,
    /// Something is said of markets, among other things.
    pub about_markets: bool,
    /// Words that are said of markets alone.
    pub market_words: usize,
    /// Candles are asked for by that name.
    candles: bool,
    /// A time that is over is asked for.
    of_past: bool,
    /// What is asked for can be asked of all markets at once.
    of_all: bool,
    /// Something is put in an order: "biggest", "ranking".
    ranked: bool,
    /// Coins are named as many, and none of them by name.
    coins: bool,
    /// The same of pairs, which are of one money.
    pairs: bool,
    /// The money whose markets are meant then.
    pub money: Option<String>,
}

impl Question<'_> {
    /// Whether it is about no single market, but about all of them, and nothing of it is left over.
    pub fn is_of_all(&self) -> bool {
        let about_markets = self.telling || self.dealing || self.about_markets;
        self.of_all
            && about_markets
            && !self.of_past
            && self.intervals.is_empty()
            && self.mentions.is_empty()
            && self.unknown == 0
            && self.unanswered == 0
    }

    /// Whether nothing but prices and volumes is asked for, of now or of a time that is over.
    fn is_of_prices(&self) -> bool {
        let of_prices = |(kind, _): &(Kind, usize)| matches!(kind, Kind::Ticker | Kind::Klines(_));
        self.wants.iter().all(of_prices)
    }

    /// Words that say something, known or not.
    pub fn meaningful(&self) -> usize {
        self.known() + self.unknown + self.unanswered
    }

    fn known(&self) -> usize {
        let mentioned: usize = self.mentions.iter().map(|mention| mention.words).sum();
        let wanted: usize = self.wants.iter().map(|(_, words)| words).sum();
        let timed: usize = self.intervals.iter().map(|(_, words)| words).sum();
        mentioned + wanted + timed
    }

    /// How much of what the question says is accounted for, from 0 to 1.
    pub fn answered(&self) -> f32 {
        share(self.known(), self.unknown + self.unanswered)
    }

    /// How much of what the question says is understood, from 0 to 1.
    pub fn understood(&self) -> f32 {
        share(self.known(), self.unknown)
    }

    /// The same without what may be understood wrongly.
    pub fn surely_understood(&self) -> f32 {
        share(self.known().saturating_sub(self.vague), self.unknown)
    }
}

fn share(known: usize, other: usize) -> f32 {
    known as f32 / (known + other).max(1) as f32
}

pub(super) fn gather<'t>(table: &'t SymbolTable, typed: &[Word], parts: Vec<Part<'t>>) -> Question<'t> {
    let mut question = Question::default();
    let mut unknown = Vec::new();
    let mut listed = false;
    let mut day = 0;
    let (mut past, mut no_candle): (Option<Interval>, _) = (None, None);
    let mut toward = false;
    let parts = without_asides(typed, parts);
    for part in parts {
        if let Meaning::Sense(sense) = part.meaning {
            take_ranking(&mut question, sense, &said(typed, &part));
        }
        match part.meaning {
            Meaning::Mention(mention) => {
                listed |= part.gap == Gap::List;
                question.mentions.push(mention);
            }
            Meaning::Sense(Sense::Wants(kind)) => {
                let telling = words::is_telling(&said(typed, &part));
                question.telling |= telling;
                question.market_words += if telling { part.words } else { 0 };
                question.candles |= CANDLES.iter().any(|name| said(typed, &part).contains(name));
                question.vague += if telling { 0 } else { part.words };
                want(&mut question.wants, kind, part.words);
            }
            Meaning::Sense(Sense::Deal) => question.dealing = true,
            Meaning::Sense(Sense::Market) => question.about_markets = true,
            Meaning::Sense(Sense::Day) => day += part.words,
            Meaning::Sense(Sense::Coins) => {
                question.telling = true;
                question.market_words += part.words;
            }
            Meaning::Interval(interval) | Meaning::Sense(Sense::Candles(interval)) => {
                question.telling = true;
                question.market_words += part.words;
                keep_interval(&mut question, interval, part.words);
            }
            Meaning::Sense(Sense::Every(interval)) => keep_interval(&mut question, interval, part.words),
            Meaning::Past(interval) | Meaning::Sense(Sense::Past(interval)) => {
                // Of two times the candles must reach the earlier one.
                past = past.into_iter().chain([interval]).max_by_key(|length| length.millis());
            }
            Meaning::NoInterval(interval) => no_candle = Some((interval, part.words)),
            Meaning::Sense(Sense::Elsewhere) => question.unanswered += ELSEWHERE_WEIGHT * part.words,
            Meaning::Sense(Sense::Compare) => listed = true,
            Meaning::Sense(Sense::Toward) => toward = true,
            Meaning::Sense(Sense::Stop | Sense::Pairing | Sense::Unit(_) | Sense::Not) | Meaning::Neutral => {}
            Meaning::Unknown => unknown.push(part.start),
        }
    }
    if day > 0 && question.wants.iter().all(|(kind, _)| *kind == Kind::Ticker) {
        want(&mut question.wants, Kind::Ticker, day);
    }
    take_past(&mut question, past, no_candle);
    question.unknown = unknown.len();
    question.of_all |= question.ranked && (question.coins || question.pairs) && question.is_of_prices();
    if question.of_all {
        take_money(table, &mut question, toward);
    }
    if !listed {
        quote_in_money(table, &mut question);
    }
    give_up(&mut question, |mention| !mention.symbols.is_empty());
    guess(table, typed, &unknown, &mut question);
    question
}

/// What shows that all markets are meant: a phrase that says so, or a word that ranks and what it ranks.
fn take_ranking(question: &mut Question<'_>, sense: Sense, said: &str) {
    question.of_all |= words::is_of_all(said);
    question.ranked |= words::ranks(said) || (words::is_of_all(said) && matches!(sense, Sense::Wants(_)));
    let mut words = said.split(' ');
    match sense {
        Sense::Coins => question.coins |= words.any(|word| word.ends_with('s')),
        Sense::Pairing | Sense::Market => question.pairs |= words.any(|word| matches!(word, "pairs" | "markets")),
        _ => {}
    }
}

/// What prices were, candles tell: of the length that is asked for, or of one that fits the time. A length that no
/// candle has is a time too, but where candles are asked for it is what cannot be had.
fn take_past(question: &mut Question<'_>, past: Option<Interval>, no_candle: Option<(Interval, usize)>) {
    question.of_past = past.is_some();
    if !question.is_of_prices() {
        return;
    }
    let past = match no_candle {
        Some((_, words)) if question.candles => {
            question.unanswered += words;
            past
        }
        _ => past.or(no_candle.map(|(interval, _)| interval)),
    };
    if let Some(interval) = past {
        question.of_past = true;
        if question.intervals.is_empty() {
            // A time is said of anything: it accounts for nothing of the question.
            keep_interval(question, interval, 0);
        }
    }
}

/// A part's words as the vocabulary has them.
fn said(typed: &[Word], part: &Part<'_>) -> String {
    let stretch = &typed[part.start..part.start + part.words];
    let folded: Vec<&str> = stretch.iter().map(|word| word.folded.as_str()).collect();
    folded.join(" ")
}

/// "Odd question: bitcoin price?" asks for a price: beside one, a word that is said of anything asks for
/// something only if it stands with the asset or with what else is asked for. What is drawn of prices is meant.
fn without_asides<'t>(typed: &[Word], mut parts: Vec<Part<'t>>) -> Vec<Part<'t>> {
    let wish = |part: &Part<'_>| match part.meaning {
        Meaning::Sense(Sense::Wants(kind)) => Some((kind, words::is_telling(&said(typed, part)))),
        _ => None,
    };
    if !parts.iter().any(|part| wish(part) == Some((Kind::Ticker, true))) {
        return parts;
    }
    let links = |part: &&Part<'_>| LINKS.contains(&typed[part.start].folded.as_str());
    let meant = |part: &Part<'_>| matches!(part.meaning, Meaning::Mention(_)) || wish(part).is_some();
    let vague = |part: &Part<'_>| match wish(part) {
        Some((kind, false)) => !matches!(kind, Kind::Ticker | Kind::Klines(_)),
        _ => false,
    };
    let alone = |at: usize| {
        let before = parts[..at].iter().rev().find(|part| !links(part));
        let behind = parts[at + 1..].iter().find(|part| !links(part));
        !before.is_some_and(meant) && !behind.is_some_and(meant)
    };
    let asides: Vec<usize> = (0..parts.len()).filter(|at| vague(&parts[*at]) && alone(*at)).collect();
    for at in asides {
        parts[at].meaning = Meaning::Neutral;
    }
    parts
}

fn keep_interval(question: &mut Question<'_>, interval: Interval, words: usize) {
    let known = question.intervals.iter_mut().find(|(known, _)| *known == interval);
    match known {
        Some((_, told)) => *told += words,
        None => question.intervals.push((interval, words)),
    }
}

fn want(wants: &mut Vec<(Kind, usize)>, kind: Kind, words: usize) {
    match wants.iter_mut().find(|(wanted, _)| *wanted == kind) {
        Some((_, told)) => *told += words,
        None => wants.push((kind, words)),
    }
    // The rarer the wish, the surer it is meant: "price history" is a history.
    wants.sort_by_key(|(kind, _)| match kind {
        Kind::Analytics(_) | Kind::Report | Kind::Markets => 0,
        Kind::OrderBookL2 => 1,
        Kind::OrderBookL1 => 2,
        Kind::Klines(_) => 3,
        Kind::Trades => 4,
        Kind::ExchangeInfo => 5,
        Kind::OrderBook => 6,
        Kind::Ticker => 7,
    });
}

/// "How many euros is one bitcoin": beside another asset, money is what its price is in.
fn quote_in_money<'t>(table: &'t SymbolTable, question: &mut Question<'t>) {
    let (money, mut assets): (Vec<_>, Vec<_>) = question.mentions.drain(..).partition(Mention::is_money);
    if assets.is_empty() {
        question.mentions = money;
        if question.mentions.len() > 1 {
            question
                .mentions
                .retain(|coin| !coin.is_dollars() || !coin.symbols.is_empty());
        }
        return;
    }
    let mut used = vec![false; money.len()];
    for asset in &mut assets {
        // A market that is named as such has its quote.
        let mut priced = asset.tickers.is_empty() || money.is_empty();
        for (coin, used) in money.iter().zip(&mut used) {
            let found = !asset.tickers.is_empty() && price_in(table, asset, coin);
            priced |= found;
            *used |= found;
        }
        if !priced {
            asset.symbols.clear();
        }
    }
    for (coin, used) in money.iter().zip(used) {
        if !used && !coin.is_dollars() {
            question.unknown += coin.words;
        }
    }
    question.mentions = assets;
}

/// "Top gainers in euros": what is asked of all markets is asked of those of one money. Another asset is that only where
/// it is said to be ("in BTC"), and what is asked for could not be asked of it alone ("most volume in BTC"), or where
/// pairs are ranked ("top ETH pairs").
fn take_money(table: &SymbolTable, question: &mut Question<'_>, toward: bool) {
    let priced = toward && question.wants.iter().all(|(kind, _)| *kind == Kind::Ticker);
    let priced = priced || (question.pairs && question.ranked);
    let [mention] = question.mentions.as_slice() else {
        return;
    };
    let mut tickers = mention.tickers.iter().map(String::as_str);
    let money = match tickers.find(|ticker| table.has_quote(ticker)) {
        None if mention.is_dollars() && table.has_quote("USDT") => Some("USDT"),
        known => known,
    };
    if let Some(money) = money.filter(|_| priced || mention.is_money()) {
        question.money = Some(money.to_owned());
        question.about_markets |= !mention.is_money();
        question.mentions.clear();
    }
}

/// Unknown words that begin a name or misspell one.
fn guess<'t>(table: &'t SymbolTable, words: &[Word], unknown: &[usize], question: &mut Question<'t>) {
    if unknown.len() > MAX_GUESSED || question.unknown != unknown.len() {
        return;
    }
    let guessed: Vec<(usize, Mention<'t>)> = unknown
        .iter()
        .filter_map(|at| Some((words[*at].folded.chars().count(), guessed(table, &words[*at])?)))
        .collect();
    let left = unknown.len() - guessed.len();
    for (length, mention) in guessed {
        if left == 0 || (left == 1 && question.telling && length >= 7) {
            question.unknown -= 1;
            question.mentions.push(mention);
        }
    }
}

/// The market whose name a word that means nothing begins or misspells.
pub(super) fn guessed<'t>(table: &'t SymbolTable, word: &Word) -> Option<Mention<'t>> {
    if everyday::is_ordinary(&word.folded) || table.is_untraded_pair(&word.folded) {
        return None;
    }
    let candidates = [
        (table.named_pair(&word.folded), MatchedOn::Pair),
        (table.cut(&word.folded), MatchedOn::Prefix),
        (table.beginning_with(&word.folded), MatchedOn::Prefix),
        (table.mistyped(&word.folded), MatchedOn::OneEdit),
        (table.misspelt(&word.folded), MatchedOn::OneEdit),
    ];
    let (symbols, on) = candidates.into_iter().find(|(symbols, _)| !symbols.is_empty())?;
    Some(Mention {
        symbols,
        on,
        standing: Standing::Guess,
        words: 1,
        tickers: Vec::new(),
        pair_missing: false,
    })
}
