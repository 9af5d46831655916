//! From parts to a question: pairs are joined, money becomes the quote, misspellings get a chance, and what
//! does not convince is given up.

use super::everyday;
use super::id::Kind;
use super::parse::{Meaning, Mention, Part, Standing, market};
use super::search::MatchedOn;
use super::table::SymbolTable;
use super::text::{Gap, Word};
use super::words::{self, Sense};
use crate::model::{Interval, Symbol};

/// Markets that one question can ask for.
const MAX_MENTIONS: usize = 10;

/// How much more a word counts that asks for something else than there is: no wish beside it makes up for it.
const ELSEWHERE_WEIGHT: usize = 3;

/// Words that may be misspelt in one question; with more it is about something else.
const MAX_GUESSED: usize = 3;

/// A question, understood as far as it can be.
#[derive(Debug, Default)]
pub(super) struct Question<'t> {
    pub mentions: Vec<Mention<'t>>,
    /// What is asked for, with the number of words that say so.
    pub wants: Vec<(Kind, usize)>,
    pub interval: Option<(Interval, usize)>,
    /// Words that mean nothing here.
    pub unknown: usize,
    /// Words that ask for what is not to be had here.
    unanswered: usize,
    /// Something in it is said of markets alone.
    telling: bool,
}

impl Question<'_> {
    /// Words that say something, known or not.
    pub fn meaningful(&self) -> usize {
        self.known() + self.unknown + self.unanswered
    }

    fn known(&self) -> usize {
        let mentioned: usize = self.mentions.iter().map(|mention| mention.words).sum();
        let wanted: usize = self.wants.iter().map(|(_, words)| words).sum();
        mentioned + wanted + self.interval.map_or(0, |(_, words)| words)
    }

    /// How much of what the question says is understood, from 0 to 1.
    fn understood(&self) -> f32 {
        self.known() as f32 / (self.known() + self.unknown).max(1) as f32
    }
}

/// Joins two assets where the question makes one market of them.
pub(super) fn pairs<'t>(table: &'t SymbolTable, parts: Vec<Part<'t>>) -> Vec<Part<'t>> {
    let says = |sense| {
        parts
            .iter()
            .any(|part| matches!(part.meaning, Meaning::Sense(said) if said == sense))
    };
    let told = Told {
        pair: says(Sense::Pairing),
        compared: says(Sense::Compare),
    };
    let mut joined: Vec<Part<'t>> = Vec::with_capacity(parts.len());
    for mut part in parts {
        if !join(table, &mut joined, &mut part, told) {
            half_known(&mut joined, &mut part);
            joined.push(part);
        }
    }
    joined
}

/// A written pair with something that is no asset here: `BTC/XYZ` is not about any other pair of BTC, and
/// `XYZ/USDT` not about USDT.
fn half_known(parts: &mut [Part<'_>], part: &mut Part<'_>) {
    let Some(last) = parts.last_mut().filter(|_| part.gap == Gap::Pair) else {
        return;
    };
    match (&mut last.meaning, &mut part.meaning) {
        (Meaning::Mention(first), Meaning::Unknown) => first.pair_missing = true,
        (Meaning::Unknown, Meaning::Mention(second)) if second.is_money() => second.symbols.clear(),
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
    /// `eth btc`
    Next,
    /// `eth vs btc`
    Compared,
}

/// Where the asset stands that the next one may make a pair with, and how.
fn before(parts: &[Part<'_>], gap: Gap) -> Option<(Beside, usize)> {
    let last = parts.len().checked_sub(1)?;
    let linked = match &parts[last].meaning {
        Meaning::Mention(_) if gap == Gap::Pair => return Some((Beside::Written, last)),
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
fn join<'t>(table: &'t SymbolTable, parts: &mut [Part<'t>], part: &mut Part<'t>, told: Told) -> bool {
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
        _ if second.is_money() => straight,
        _ => None,
    };
    if let Some((symbol, on)) = found {
        *first = market(table, symbol, on, first.words + second.words);
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
fn price_in<'t>(table: &'t SymbolTable, asset: &mut Mention<'t>, money: &Mention<'t>) -> bool {
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

pub(super) fn gather<'t>(table: &'t SymbolTable, typed: &[Word], parts: Vec<Part<'t>>) -> Question<'t> {
    let mut question = Question::default();
    let mut unknown = Vec::new();
    let mut listed = false;
    let (mut day, mut length) = (0, 0);
    for part in parts {
        match part.meaning {
            Meaning::Mention(mention) => {
                listed |= part.gap == Gap::List;
                question.mentions.push(mention);
            }
            Meaning::Sense(Sense::Wants(kind)) => {
                question.telling |= part.words > 1 || words::is_telling(&typed[part.start].folded);
                want(&mut question.wants, kind, part.words);
            }
            Meaning::Sense(Sense::Day) => day += part.words,
            Meaning::Sense(Sense::Coins) => question.telling = true,
            Meaning::Interval(interval) => {
                question.telling = true;
                keep_interval(&mut question, interval, part.words);
            }
            Meaning::Sense(Sense::Every(interval)) => keep_interval(&mut question, interval, part.words),
            Meaning::NoInterval => length += part.words,
            Meaning::Sense(Sense::Elsewhere) => question.unanswered += ELSEWHERE_WEIGHT * part.words,
            Meaning::Sense(Sense::Compare) => listed = true,
            Meaning::Sense(_) | Meaning::Neutral => {}
            Meaning::Unknown => unknown.push(part.start),
        }
    }
    if day > 0 && question.wants.iter().all(|(kind, _)| *kind == Kind::Ticker) {
        want(&mut question.wants, Kind::Ticker, day);
    }
    let of_prices = |(kind, _): &(Kind, usize)| matches!(kind, Kind::Ticker | Kind::Klines(_));
    if question.wants.iter().all(of_prices) {
        question.unanswered += length;
    }
    question.unknown = unknown.len();
    if !listed {
        quote_in_money(table, &mut question);
    }
    give_up(&mut question, |mention| !mention.symbols.is_empty());
    guess(table, typed, &unknown, &mut question);
    question
}

/// The first length that is named counts.
fn keep_interval(question: &mut Question<'_>, interval: Interval, words: usize) {
    let (first, told) = question.interval.unwrap_or((interval, 0));
    question.interval = Some((first, told + words));
}

fn want(wants: &mut Vec<(Kind, usize)>, kind: Kind, words: usize) {
    match wants.iter_mut().find(|(wanted, _)| *wanted == kind) {
        Some((_, told)) => *told += words,
        None => wants.push((kind, words)),
    }
    // The rarer the wish, the surer it is meant: "price history" is a history.
    wants.sort_by_key(|(kind, _)| match kind {
        Kind::Analytics(_) | Kind::Report => 0,
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

fn guessed<'t>(table: &'t SymbolTable, word: &Word) -> Option<Mention<'t>> {
    if everyday::is_ordinary(&word.folded) || table.is_untraded_pair(&word.folded) {
        return None;
    }
    let candidates = [
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

/// Gives up mentions that do not convince beside what is left over, and what is named twice.
pub(super) fn judge(question: &mut Question<'_>) {
    let (understood, unknown) = (question.understood(), question.unknown);
    let telling = question.telling;
    give_up(question, |mention| match mention.standing {
        Standing::Sure | Standing::Guess => true,
        // Eleven dollars are mostly that.
        Standing::Distinct if mention.is_money() => unknown == 0 || (telling && understood >= 0.6),
        Standing::Distinct => understood >= 0.2,
        Standing::Terse { capitals } if capitals || telling => understood >= 0.5,
        Standing::Terse { .. } => understood > 0.5,
        Standing::Capitals => unknown == 0 || (telling && understood >= 0.6),
        Standing::Familiar => unknown == 0,
        Standing::Ordinary => unknown == 0 && telling,
    });
    name_once(&mut question.mentions);
}

/// "Solana (SOLUSDC)" names one market, the more exactly named one.
fn name_once(mentions: &mut Vec<Mention<'_>>) {
    let mut once: Vec<Mention<'_>> = Vec::new();
    for mention in mentions.drain(..) {
        let same = once.iter().position(|other| is_same(other, &mention));
        match same {
            Some(at) if mention.on < once[at].on => once[at] = mention,
            None if once.len() < MAX_MENTIONS => once.push(mention),
            _ => {}
        }
    }
    *mentions = once;
}

/// Whether two mentions are of one market, or one is of an asset and the other of a market of it.
fn is_same(a: &Mention<'_>, b: &Mention<'_>) -> bool {
    let (Some(first), Some(second)) = (a.symbols.first(), b.symbols.first()) else {
        return false;
    };
    let asset = !a.tickers.is_empty() || !b.tickers.is_empty();
    first == second || (asset && first.base == second.base)
}

/// Drops mentions; their words are then words that mean nothing.
fn give_up<'t>(question: &mut Question<'t>, keep: impl Fn(&Mention<'t>) -> bool) {
    let unknown = &mut question.unknown;
    question.mentions.retain(|mention| {
        let kept = keep(mention);
        *unknown += if kept { 0 } else { mention.words };
        kept
    });
}
