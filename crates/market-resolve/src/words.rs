//! What the words of a query mean, apart from assets: `words.tsv`, read once.

use std::collections::HashMap;
use std::sync::LazyLock;

use serde::Deserialize;
use serde::de::IntoDeserializer as _;
use serde::de::value::{Error as ValueError, StrDeserializer};

use crate::id::Kind;
use tribune_binance::Interval;

static WORDS: &str = include_str!("words.tsv");

/// Candles of this interval are meant where a query names none.
pub(crate) const DEFAULT_INTERVAL: Interval = Interval::H1;

/// Most words that a phrase or a name has.
pub(crate) const MAX_PHRASE_WORDS: usize = 5;

/// As the first column of the table has it; the last three are written with what they hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Meaning {
    Noise,
    Market,
    Coin,
    Unsupported,
    Absent,
    Listing,
    Pairs,
    Ranking,
    List,
    Superlative,
    Toward,
    Compare,
    And,
    Ratio,
    Exclude,
    Trade,
    Cost,
    #[serde(skip)]
    Kind(Kind),
    #[serde(skip)]
    Every(Interval),
    #[serde(skip)]
    Past(Interval),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sense {
    pub meaning: Meaning,
    /// Also a word of everyday English: does not show that a market is meant.
    pub is_weak: bool,
    /// Can be asked of all markets where the query names none.
    pub asks_all: bool,
}

impl Sense {
    /// Whether the word shows that the query is about markets.
    pub fn is_evidence(self) -> bool {
        use Meaning::{Coin, Every, Kind, Market, Ranking};
        !self.is_weak && matches!(self.meaning, Coin | Every(_) | Kind(_) | Market | Ranking)
    }

    /// Whether the word says nothing that a document could answer.
    pub fn is_filler(self) -> bool {
        use Meaning::{And, Compare, Exclude, List, Noise, Toward};
        matches!(self.meaning, And | Compare | Exclude | List | Noise | Toward)
    }
}

pub(crate) struct Words(HashMap<&'static str, Sense>);

impl Words {
    pub fn known() -> &'static Self {
        static KNOWN: LazyLock<Words> = LazyLock::new(|| {
            let entries = lines().filter_map(|(sense, words)| Some((meaning(sense)?, words)));
            let senses = entries.flat_map(|(meaning, words)| words.split(", ").map(move |word| entry(meaning, word)));
            Words(senses.collect())
        });
        &KNOWN
    }

    /// The sense of a folded word or phrase, in the singular if the plural has none.
    pub fn sense(&self, phrase: &str) -> Option<Sense> {
        let singular = || phrase.strip_suffix('s').filter(|word| word.len() > 2);
        let found = self.0.get(phrase).or_else(|| self.0.get(singular()?));
        found.copied()
    }
}

fn lines() -> impl Iterator<Item = (&'static str, &'static str)> {
    WORDS.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.split_once('\t'))
}

fn entry(meaning: Meaning, marked: &'static str) -> (&'static str, Sense) {
    let word = marked.trim_start_matches(['~', '+']);
    let marks = &marked[..marked.len() - word.len()];
    let sense = Sense { meaning, is_weak: marks.contains('~'), asks_all: marks.contains('+') };
    (word, sense)
}

fn meaning(sense: &str) -> Option<Meaning> {
    let word: StrDeserializer<'_, ValueError> = sense.into_deserializer();
    if let Ok(meaning) = Meaning::deserialize(word) {
        return Some(meaning);
    }
    match sense.split_once(' ') {
        Some(("every", interval)) => Some(Meaning::Every(interval.parse().ok()?)),
        Some(("past", interval)) => Some(Meaning::Past(interval.parse().ok()?)),
        Some(_) => None,
        None if sense == "klines" => Some(Meaning::Kind(Kind::Klines(DEFAULT_INTERVAL))),
        None => Kind::of_prefix(sense).map(Meaning::Kind),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_word_has_one_sense() {
        let mut seen = HashSet::new();
        for (sense, words) in lines() {
            assert!(meaning(sense).is_some(), "{sense}");
            for marked in words.split(", ") {
                let word = marked.trim_start_matches(['~', '+']);
                assert_eq!(word, word.trim().to_lowercase(), "{sense}");
                assert!(!word.is_empty() && word.split(' ').count() <= MAX_PHRASE_WORDS, "{word}");
                assert!(seen.insert(word), "{word} is listed twice");
            }
        }
    }

    #[test]
    fn plural_has_the_sense_of_the_singular() {
        let words = Words::known();
        assert_eq!(words.sense("candles"), words.sense("candle"));
        assert_ne!(words.sense("coins"), words.sense("coin"));
        assert_eq!(words.sense("bitcoin"), None);
    }
}
