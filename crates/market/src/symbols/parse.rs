//! A question taken apart: which markets it names, what it wants to know of them, and what is left over.

use std::collections::HashSet;

use super::assets::Assets;
use super::beside;
use super::everyday;
use super::gather::{LINKS, Question, gather, judge};
use super::interval::{self, Length};
use super::negation;
use super::pairs::pairs;
use super::past;
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

pub(super) fn question<'t>(table: &'t SymbolTable, query: &str) -> Question<'t> {
    let typed = spelling::known(table, words(query));
    let (left_out, mut words): (Vec<Word>, Vec<Word>) = typed.into_iter().partition(|word| word.left_out.is_some());
    divide_lists(table, &mut words);
    let reader = Reader {
        table,
        capitals_tell: capitals_tell(&words),
        words: &words,
    };
    let mut parts = reader.parts(true);
    if others_are_surer(&words, &parts) {
        // "the graph of bitcoin" is not about The Graph.
        parts = reader.parts(false);
    }
    let mut unwanted = tickers(&left_out);
    unwanted.extend(negation::leave_out(&words, &mut parts));
    let mut parts = pairs(table, &words, parts);
    beside::settle(&words, &mut parts);
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

/// Reads words from left to right, the longest meaning first.
struct Reader<'t, 'w> {
    table: &'t SymbolTable,
    words: &'w [Word],
    capitals_tell: bool,
}

impl<'t> Reader<'t, '_> {
    fn parts(&self, ordinary_names: bool) -> Vec<Part<'t>> {
        let mut parts = Vec::new();
        let mut start = 0;
        while let Some(word) = self.words.get(start) {
            let (meaning, words) = self.meaning(start, ordinary_names);
            parts.push(Part {
                start,
                words,
                gap: word.gap,
                meaning,
            });
            start += words;
        }
        parts
    }

    fn meaning(&self, at: usize, ordinary_names: bool) -> (Meaning<'t>, usize) {
        if let Some(pair) = self.pair_of_words(at) {
            return (Meaning::Mention(pair), 2);
        }
        let word = &self.words[at];
        if let Some(symbol) = self.table.lookup(&word.text) {
            let mut mention = market(self.table, symbol, MatchedOn::Symbol, 1);
            // "WBTC" is W in BTC, and may be meant for the asset WBTC.
            let others: Vec<&Symbol> = self.table.of_base(&word.text.to_uppercase()).collect();
            mention.symbols.splice(1..1, others);
            return (Meaning::Mention(mention), 1);
        }
        if let Some(timed) = self.timed(at) {
            return timed;
        }
        if let Some(found) = self.phrase(at, ordinary_names) {
            return found;
        }
        let meaning = if word.is_number() || words::is_magnitude(&word.folded) {
            Meaning::Neutral
        } else {
            Meaning::Unknown
        };
        (meaning, 1)
    }

    /// Lengths of candles, and times.
    fn timed(&self, at: usize) -> Option<(Meaning<'t>, usize)> {
        if let Some((interval, words)) = past::past(self.words, at) {
            return Some((interval.map_or(Meaning::Neutral, Meaning::Past), words));
        }
        let (length, words) = interval::length(self.words, at)?;
        let meaning = match length {
            Length::Interval(interval) => Meaning::Interval(interval),
            _ if self.is_day(at) => return None,
            Length::Span => Meaning::Neutral,
            Length::Missing(span) => Meaning::NoInterval(span),
        };
        Some((meaning, words))
    }

    /// "24 hours" is what tickers tell of, and a phrase of its own.
    fn is_day(&self, at: usize) -> bool {
        self.words[at].folded == "24"
    }

    /// The longest phrase that starts here: a name before anything else of its length.
    fn phrase(&self, at: usize, ordinary_names: bool) -> Option<(Meaning<'t>, usize)> {
        let first = &self.words[at].folded;
        let most = Assets::known().longest(first).max(words::longest(first));
        let most = most.min(self.words.len() - at);
        for count in (2..=most).rev() {
            let stretch = &self.words[at..at + count];
            let folded: Vec<&str> = stretch.iter().map(|word| word.folded.as_str()).collect();
            let folded = folded.join(" ");
            let named = self.named(&folded, at, count, ordinary_names);
            let meant = named.or_else(|| words::sense(&folded).map(Meaning::Sense));
            if let Some(meaning) = meant {
                return Some((meaning, count));
            }
        }
        self.single(at, ordinary_names).map(|meaning| (meaning, 1))
    }

    fn single(&self, at: usize, ordinary_names: bool) -> Option<Meaning<'t>> {
        let word = &self.words[at];
        let terse = Standing::Terse {
            capitals: self.is_capital_ticker(at),
        };
        let standing = match everyday::is_wordlike(&word.folded) {
            _ if word.tagged => Some(Standing::Sure),
            false if everyday::is_acronym(&word.folded) => Some(Standing::Acronym),
            false if everyday::is_terse(&word.folded) => Some(terse),
            false if everyday::is_ordinary(&word.folded) && !word.capitals => Some(Standing::Ordinary),
            false => Some(Standing::Distinct),
            true if self.is_capital_ticker(at) && !self.is_class(at) => Some(Standing::Capitals),
            true if self.is_priced(at) => Some(Standing::Ordinary),
            true => None,
        };
        let ticker = word.text.to_uppercase();
        if let Some(standing) = standing
            && self.is_ticker(&ticker, standing)
        {
            // Of a ticker that nobody has named yet it is not known what else it means.
            let named = standing != Standing::Distinct || Assets::known().name_of(&ticker).is_some();
            let standing = if named { standing } else { terse };
            return Some(Meaning::Mention(asset(
                self.table,
                vec![ticker],
                MatchedOn::Ticker,
                standing,
                1,
            )));
        }
        if let Some(sense) = words::sense(&word.folded) {
            return Some(Meaning::Sense(sense));
        }
        standing?;
        self.named(&word.folded, at, 1, ordinary_names)
    }

    /// Whether this is traded, priced in, or known to be an asset that is not traded here.
    fn is_ticker(&self, ticker: &str, standing: Standing) -> bool {
        let traded = self.table.has_base(ticker) || self.table.has_quote(ticker) || words::is_money(ticker);
        traded || (standing != Standing::Capitals && Assets::known().name_of(ticker).is_some())
    }

    /// "A price" begins with an article and not with a ticker.
    fn is_capital_ticker(&self, at: usize) -> bool {
        let word = &self.words[at];
        let article = at == 0 && self.words.len() > 2 && matches!(word.text.as_str(), "A" | "I");
        word.capitals && self.capitals_tell && !article
    }

    /// "AI coins" are of a sort, and none is named.
    fn is_class(&self, at: usize) -> bool {
        let next = self.words.get(at + 1).map(|word| word.folded.as_str());
        next.is_some_and(|next| next.ends_with('s') && words::sense(next) == Some(Sense::Coins))
    }

    /// "Link price", and nothing else.
    fn is_priced(&self, at: usize) -> bool {
        let [first, second] = self.words else {
            return false;
        };
        let other = if at == 0 { second } else { first };
        other.folded == "price" && everyday::is_priced(&self.words[at].folded)
    }

    fn named(&self, folded: &str, at: usize, count: usize, ordinary_names: bool) -> Option<Meaning<'t>> {
        let known = Assets::known().called(folded);
        let traded = |ticker: &&&str| self.table.has_base(ticker) || words::is_money(ticker);
        let mut tickers: Vec<String> = known.iter().filter(traded).map(|&ticker| ticker.to_owned()).collect();
        let unlisted = tickers.is_empty();
        if unlisted {
            // The name is taken all the same: "bitcoin cash" is never about bitcoin.
            tickers.extend(known.iter().map(|&ticker| ticker.to_owned()));
        }
        let bare = folded.strip_prefix("the ").unwrap_or(folded);
        let money = tickers.iter().all(|ticker| words::is_money(ticker));
        let ordinary = !money && everyday::is_ordinary(bare);
        // "The graph of prices".
        let noun = || self.words.get(at + count).is_some_and(|next| next.folded == "of");
        if tickers.is_empty() || (ordinary && (unlisted || !ordinary_names || noun())) {
            return None;
        }
        let standing = match ordinary {
            true if everyday::is_familiar(bare) => Standing::Familiar,
            true => Standing::Ordinary,
            false => Standing::Distinct,
        };
        Some(Meaning::Mention(asset(
            self.table,
            tickers,
            MatchedOn::Name,
            standing,
            count,
        )))
    }

    /// "People usdt" are a pair, "in usdt" and "the usdt" are not.
    fn may_be_base(&self, word: &Word) -> bool {
        words::sense(&word.folded) == Some(Sense::Stop) && !LINKS.contains(&word.folded.as_str())
    }

    /// `near/usdt`, `near-usdt`, and `near usdt`: with its quote a ticker that is a word is meant.
    fn pair_of_words(&self, at: usize) -> Option<Mention<'t>> {
        let (base, quote) = (&self.words[at], self.words.get(at + 1)?);
        let quote_ticker = quote.text.to_uppercase();
        let told = match quote.gap {
            Gap::Slash | Gap::Pair | Gap::Arrow => true,
            Gap::Loose | Gap::Dash => {
                let alone = self.words.len() == 2;
                // "the usdt price" is not about THE.
                let word = words::sense(&base.folded).is_none();
                let meant = word || self.is_capital_ticker(at) || (alone && self.may_be_base(base));
                let plain = alone || !everyday::is_wordlike(&quote.folded) || self.is_capital_ticker(at + 1);
                let wordlike = word && everyday::is_wordlike(&base.folded);
                meant && plain && (words::is_money(&quote_ticker) || (alone && wordlike))
            }
            Gap::List | Gap::Stream => false,
        };
        let base_ticker = base.text.to_uppercase();
        let straight = || self.table.pair(&base_ticker, &quote_ticker);
        told.then(straight)
            .flatten()
            .map(|symbol| market(self.table, symbol, MatchedOn::Pair, 2))
    }
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
fn asset<'t>(
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
