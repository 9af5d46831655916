//! What people call the assets (`assets.tsv`), and which of these names are everyday words (`everyday.txt`).

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use crate::tokens::{is_one_edit_apart, phrase};
use crate::words::{Meaning, Words};

static ASSETS: &str = include_str!("assets.tsv");
static EVERYDAY: &str = include_str!("everyday.txt");

/// Shortest name that may be misspelt.
const MIN_NAME_CHARS: usize = 6;

/// Currencies and stablecoins: beside another asset they are its quote.
const MONEY: &[&str] = &[
    "USDT", "USDC", "FDUSD", "TUSD", "BUSD", "USDP", "USD1", "USDE", "DAI", "USD", "EUR", "EURI", "GBP", "TRY", "BRL",
    "JPY", "AUD", "ARS", "CAD", "CHF", "CNY", "COP", "CZK", "IDR", "INR", "KRW", "MXN", "NGN", "PLN", "RUB", "SEK",
    "UAH", "ZAR",
];

/// Quotes that "dollar" means if the exchange has no market in dollars.
const DOLLARS: &[&str] = &["USD", "USDT", "USDC", "FDUSD", "TUSD", "BUSD", "USDP", "USD1"];

pub(crate) fn is_money(ticker: &str) -> bool {
    MONEY.contains(&ticker)
}

/// Whether a market's quote is the one that was asked for.
pub(crate) fn is_quote(asked: &str, quote: &str) -> bool {
    asked == quote || (asked == "USD" && DOLLARS.contains(&quote))
}

/// The base, of at least three letters, and the money that one word is made of: `xbtusd`, `btceur`.
pub(crate) fn split_money(folded: &str) -> impl Iterator<Item = (&str, &'static str)> {
    MONEY.iter().filter_map(|money| {
        let at = folded.len().checked_sub(money.len()).filter(|at| *at >= 3)?;
        let (base, quote) = folded.split_at_checked(at)?;
        quote.eq_ignore_ascii_case(money).then_some((base, *money))
    })
}

/// Whether a lower-case word or name also belongs to everyday English. Words of one or two letters and numbers do.
pub(crate) fn is_everyday(folded: &str) -> bool {
    static WORDS: LazyLock<HashSet<&'static str>> = LazyLock::new(|| {
        let lines = EVERYDAY.lines().filter(|line| !line.starts_with('#'));
        lines.flat_map(str::split_ascii_whitespace).collect()
    });
    let is_word = |word: &str| {
        let sense = Words::known().sense(word).map(|sense| sense.meaning);
        // "Near Protocol" and "Binance Coin" are names, however common their other words are.
        let is_of_markets = matches!(sense, Some(Meaning::Market | Meaning::Coin));
        (word.is_ascii() && word.len() < 3)
            || word.chars().all(char::is_numeric)
            || WORDS.contains(word)
            || (sense.is_some() && !(is_of_markets && folded.contains(' ')))
    };
    folded.split(' ').all(is_word)
}

pub(crate) struct Assets {
    names: HashMap<&'static str, &'static str>,
    /// Names and aliases, folded, with their tickers.
    by_phrase: HashMap<String, Vec<&'static str>>,
    /// Names that may be misspelt, sorted.
    long: Vec<(String, Vec<&'static str>)>,
}

impl Assets {
    pub fn known() -> &'static Self {
        static KNOWN: LazyLock<Assets> = LazyLock::new(Assets::read);
        &KNOWN
    }

    fn read() -> Self {
        let mut names = HashMap::new();
        let mut by_phrase: HashMap<String, Vec<&'static str>> = HashMap::new();
        for line in ASSETS.lines().filter(|line| !line.starts_with('#')) {
            let mut fields = line.split('\t');
            let (Some(ticker), Some(name)) = (fields.next(), fields.next()) else {
                continue;
            };
            names.insert(ticker, name);
            let aliases = fields.next().unwrap_or_default().split('|');
            let aliases = aliases.map(|alias| alias.trim_start_matches('~'));
            for text in std::iter::once(name).chain(aliases) {
                let tickers = by_phrase.entry(phrase(text)).or_default();
                // A name that equals the ticker adds nothing; an alias does so on purpose.
                let is_ticker = text == name && text.eq_ignore_ascii_case(ticker);
                if !is_ticker && !tickers.contains(&ticker) {
                    tickers.push(ticker);
                }
            }
        }
        by_phrase.remove("");
        by_phrase.retain(|_, tickers| !tickers.is_empty());
        let is_long = |name: &str| name.chars().count() >= MIN_NAME_CHARS && !name.contains(' ') && !is_everyday(name);
        let long = by_phrase.iter().filter(|(name, _)| is_long(name));
        let mut long: Vec<_> = long.map(|(name, tickers)| (name.clone(), tickers.clone())).collect();
        long.sort();
        Self { names, by_phrase, long }
    }

    pub fn name(&self, ticker: &str) -> Option<&'static str> {
        self.names.get(ticker).copied()
    }

    /// A ticker of the list, or of money.
    pub fn ticker(&self, ticker: &str) -> Option<&'static str> {
        let known = self.names.get_key_value(ticker).map(|(ticker, _)| *ticker);
        known.or_else(|| MONEY.iter().copied().find(|money| *money == ticker))
    }

    pub fn named(&self, phrase: &str) -> &[&'static str] {
        self.by_phrase.get(phrase).map_or(&[], Vec::as_slice)
    }

    /// Tickers whose name a folded word misspells by one edit behind its first letter. Only long names in one word count,
    /// and no everyday words.
    pub fn nearly_named(&self, word: &str) -> Option<&[&'static str]> {
        let first = word.chars().next()?;
        let is_meant = |name: &str| {
            name.starts_with(first) && name.len().abs_diff(word.len()) < 2 && is_one_edit_apart(name, word)
        };
        self.long.iter().find(|(name, _)| is_meant(name)).map(|(_, tickers)| &**tickers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::words::MAX_PHRASE_WORDS;

    #[test]
    fn asset_lines_are_well_formed() {
        let lines: Vec<&str> = ASSETS.lines().filter(|line| !line.starts_with('#')).collect();
        let tickers: Vec<&str> = lines.iter().filter_map(|line| line.split('\t').next()).collect();
        assert!(tickers.is_sorted(), "sorted by ticker");
        for line in lines {
            let fields: Vec<&str> = line.split('\t').collect();
            assert_eq!(fields.len(), 3, "{line:?}");
            assert!(fields.iter().all(|field| field.trim() == *field), "{line:?}");
            assert_eq!(fields[0], fields[0].to_uppercase(), "{line:?}");
            assert_eq!(fields[2], fields[2].to_lowercase(), "{line:?}");
        }
    }

    #[test]
    fn shared_aliases_are_marked() {
        let aliases = |line: &'static str| line.rsplit('\t').next().unwrap_or_default().split('|');
        let marked: HashSet<String> =
            ASSETS.lines().flat_map(aliases).filter_map(|alias| alias.strip_prefix('~')).map(phrase).collect();
        for (name, tickers) in &Assets::known().by_phrase {
            assert_eq!(tickers.len() > 1, marked.contains(name), "{name}: {tickers:?}");
            assert!(name.split(' ').count() <= MAX_PHRASE_WORDS, "{name}");
        }
    }

    #[test]
    fn everyday_names_are_told_from_others() {
        for word in ["near", "one", "the graph", "internet computer", "t", "4", "price", "high"] {
            assert!(is_everyday(word), "{word}");
        }
        for word in ["bitcoin", "near protocol", "btc", "solana", "bitcoin cash", "1inch"] {
            assert!(!is_everyday(word), "{word}");
        }
    }
}
