//! From words to parts, each with its meaning.

use jiff::civil::Date;

use super::assets::Assets;
use super::everyday;
use super::gather::LINKS;
use super::interval::{self, Length};
use super::parse::{Meaning, Mention, Part, Standing, asset, market};
use super::past;
use super::search::MatchedOn;
use super::table::SymbolTable;
use super::text::{Gap, Word};
use super::words::{self, Sense};
use crate::model::Symbol;

/// Reads words from left to right, the longest meaning first.
pub(super) struct Reader<'t, 'w> {
    pub table: &'t SymbolTable,
    pub words: &'w [Word],
    pub capitals_tell: bool,
    /// What is named after it is yet to come.
    pub today: Date,
}

impl<'t> Reader<'t, '_> {
    pub fn parts(&self, ordinary_names: bool) -> Vec<Part<'t>> {
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
        if let Some((interval, words)) = past::past(self.words, at, self.today) {
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
