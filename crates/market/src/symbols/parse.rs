//! A question taken apart: which markets it names, what it wants to know of them, and what is left over.

use std::collections::HashSet;

use jiff::civil::Date;

use super::amount;
use super::assets::Assets;
use super::beside;
use super::compound;
use super::gather::{Question, gather};
use super::judge::judge;
use super::negation;
use super::pairs::pairs;
use super::reader::Reader;
use super::search::MatchedOn;
use super::spelling;
use super::table::SymbolTable;
use super::text::{Gap, Word, words};
use super::words::{self, Sense};
use crate::model::{Interval, Symbol};

/// Markets of the same base that are remembered beside the one named.
const MAX_OTHERS: usize = 8;

/// How surely a mention means the asset and not an everyday word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    /// A symbol, a pair, `$NEAR`.
    Sure,
    /// A name or ticker that is no word of any other kind.
    Distinct,
    /// A ticker that is better known as something else: a club, a car.
    Acronym,
    /// A ticker that may be short for something else.
    Terse { capitals: bool },
    /// A ticker that is an English word, in capitals.
    Capitals,
    /// A name that is an English word, but better known as an asset.
    Familiar,
    /// A name that is an English word.
    Ordinary,
    /// Half a name, or a misspelt one.
    Guess,
}

impl Standing {
    fn is_everyday(self) -> bool {
        matches!(self, Self::Familiar | Self::Ordinary)
    }
}

/// One market or asset that the question names.
#[derive(Debug, Clone)]
pub(super) struct Mention<'t> {
    /// Markets it can mean, best first; none if what it names is not traded here.
    pub symbols: Vec<&'t Symbol>,
    pub on: MatchedOn,
    pub standing: Standing,
    /// How many words name it.
    pub words: usize,
    /// The tickers it may stand for, while it is an asset and not yet a market.
    pub tickers: Vec<String>,
    /// It was named in a pair that does not exist.
    pub pair_missing: bool,
}

#[derive(Debug, Clone)]
pub(super) enum Meaning<'t> {
    Mention(Mention<'t>),
    Sense(Sense),
    Interval(Interval),
    /// A length that no candle has, with those that tell of so long a time.
    NoInterval(Interval),
    /// A time that is over, with the candles that tell of it.
    Past(Interval),
    /// Numbers and lengths of time.
    Neutral,
    Unknown,
}

/// A stretch of the question with its meaning.
#[derive(Debug, Clone)]
pub(super) struct Part<'t> {
    pub start: usize,
    pub words: usize,
    pub gap: Gap,
    pub meaning: Meaning<'t>,
}

impl Part<'_> {
    pub fn first_word<'w>(&self, words: &'w [Word]) -> &'w str {
        words.get(self.start).map_or("", |word| word.folded.as_str())
    }
}

pub(super) fn question<'t>(table: &'t SymbolTable, query: &str, today: Date) -> Question<'t> {
    let typed = spelling::known(table, words(query));
    let (left_out, mut words): (Vec<Word>, Vec<Word>) = typed.into_iter().partition(|word| word.left_out.is_some());
    divide_lists(table, &mut words);
    let reader = Reader {
        table,
        capitals_tell: capitals_tell(&words),
        words: &words,
        today,
    };
    let mut parts = reader.parts(true);
    if others_are_surer(&words, &parts) {
        // "the graph of bitcoin" is not about The Graph.
        parts = reader.parts(false);
    }
    let mut unwanted = tickers(&left_out);
    unwanted.extend(negation::leave_out(&words, &mut parts));
    let mut parts = pairs(table, &words, parts);
    amount::settle(&words, &mut parts);
    beside::settle(&words, &mut parts);
    compound::settle(table, &words, &mut parts);
    let mut question = gather(table, &words, parts);
    judge(&mut question);
    leave_out(&mut question, &unwanted);
    question
}

/// What words may name: themselves, and the assets that they are names of.
fn tickers(words: &[Word]) -> HashSet<String> {
    let folded: Vec<&str> = words.iter().map(|word| word.folded.as_str()).collect();
    let names = folded.iter().flat_map(|word| Assets::known().called(word));
    let whole = folded.join(" ");
    let named = names
        .chain(Assets::known().called(&whole))
        .map(|&ticker| ticker.to_owned());
    words.iter().map(|word| word.text.to_uppercase()).chain(named).collect()
}

/// Drops the markets that have to do with what the question leaves out.
fn leave_out(question: &mut Question<'_>, tickers: &HashSet<String>) {
    if tickers.is_empty() {
        return;
    }
    let left = |symbol: &&Symbol| {
        [&symbol.name, &symbol.base, &symbol.quote]
            .iter()
            .all(|text| !tickers.contains(&***text))
    };
    for mention in &mut question.mentions {
        mention.symbols.retain(left);
    }
    question.mentions.retain(|mention| !mention.symbols.is_empty());
}

/// Capitals mark a ticker, unless the whole sentence is shouted and not about markets.
fn capitals_tell(words: &[Word]) -> bool {
    let asks = |word: &Word| matches!(words::sense(&word.folded), Some(Sense::Wants(_)));
    let telling = |word: &Word| (asks(word) && words::is_telling(&word.folded)) || words::is_money(&word.text);
    let short = words.len() == 1 || (words.len() <= 3 && words.iter().any(telling));
    short || words.iter().any(|word| word.text.chars().any(char::is_lowercase))
}

/// "btc/eth/sol" is a list, and no pair.
fn divide_lists(table: &SymbolTable, words: &mut [Word]) {
    let is_asset = |word: &Word| {
        let ticker = word.text.to_uppercase();
        table.has_base(&ticker) && !words::is_money(&ticker)
    };
    for at in 2..words.len() {
        let slashed = words[at].gap == Gap::Slash && matches!(words[at - 1].gap, Gap::Slash | Gap::List);
        if slashed && words[at - 2..=at].iter().all(is_asset) {
            words[at - 1].gap = Gap::List;
            words[at].gap = Gap::List;
        }
    }
}

fn others_are_surer(words: &[Word], parts: &[Part<'_>]) -> bool {
    let standings = || parts.iter().filter_map(standing);
    let listed = parts
        .iter()
        .any(|part| is_linked(part.gap) || matches!(part.meaning, Meaning::Sense(Sense::Compare)));
    // "The price of ripple in bitcoin".
    let priced = parts
        .iter()
        .any(|part| matches!(part.meaning, Meaning::Sense(Sense::Toward)))
        && standings().any(|standing| standing == Standing::Familiar);
    let surer = standings().any(Standing::is_everyday) && standings().any(|standing| !standing.is_everyday());
    surer && !listed && !priced && !names_stand_together(words, parts)
}

/// "Bitcoin, ripple", "ripple/btc".
fn is_linked(gap: Gap) -> bool {
    matches!(gap, Gap::List | Gap::Slash | Gap::Arrow)
}

fn standing(part: &Part<'_>) -> Option<Standing> {
    match &part.meaning {
        Meaning::Mention(mention) => Some(mention.standing),
        _ => None,
    }
}

/// "Bitcoin ripple", "bitcoin and ripple" are two assets.
fn names_stand_together(words: &[Word], parts: &[Part<'_>]) -> bool {
    let linked = |part: &&Part<'_>| !matches!(words[part.start].folded.as_str(), "and" | "or" | "with");
    let standings: Vec<Option<Standing>> = parts.iter().filter(linked).map(standing).collect();
    standings.windows(2).any(|two| match two {
        [Some(first), Some(second)] => [first, second].contains(&&Standing::Familiar),
        _ => false,
    })
}

/// One market, with those of the same base behind it.
pub(super) fn market<'t>(table: &'t SymbolTable, symbol: &'t Symbol, on: MatchedOn, words: usize) -> Mention<'t> {
    let others = table.of_base(&symbol.base).filter(|other| *other != symbol);
    Mention {
        symbols: std::iter::once(symbol).chain(others.take(MAX_OTHERS)).collect(),
        on,
        standing: Standing::Sure,
        words,
        tickers: Vec::new(),
        pair_missing: false,
    }
}

/// An asset may have no market of its own and still be what another's price is in.
pub(super) fn asset<'t>(
    table: &'t SymbolTable,
    tickers: Vec<String>,
    on: MatchedOn,
    standing: Standing,
    words: usize,
) -> Mention<'t> {
    let mut symbols: Vec<&Symbol> = tickers.iter().flat_map(|ticker| table.of_base(ticker)).collect();
    if tickers.len() > 1 {
        symbols.sort_by_key(|symbol| table.place(symbol));
    }
    Mention {
        symbols,
        on,
        standing,
        words,
        tickers,
        pair_missing: false,
    }
}

impl Mention<'_> {
    pub fn is_money(&self) -> bool {
        !self.tickers.is_empty() && self.tickers.iter().all(|ticker| words::is_money(ticker))
    }

    /// A ticker of one letter.
    pub fn is_letter(&self) -> bool {
        self.tickers.iter().any(|ticker| ticker.len() == 1)
    }

    /// The currency itself, in which little or nothing is traded here: its stablecoins are meant.
    pub fn is_dollars(&self) -> bool {
        self.tickers.iter().any(|ticker| ticker == "USD")
    }
}
