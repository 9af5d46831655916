//! What people call the assets: `assets.tsv`, read once.
//!
//! A line is `ticker<TAB>name<TAB>aliases`, aliases divided by `|`. An alias that several assets share on
//! purpose (an old name of two coins) begins with `~` on each of their lines; then the one that trades wins.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::text::phrase;

static FILE: &str = include_str!("assets.tsv");

/// One line of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Asset {
    pub ticker: &'static str,
    pub name: &'static str,
    aliases: &'static str,
}

impl Asset {
    fn aliases(&self) -> impl Iterator<Item = &'static str> + use<> {
        self.aliases.split('|').filter(|alias| !alias.is_empty())
    }
}

pub(super) struct Assets {
    by_ticker: HashMap<&'static str, Asset>,
    /// Names and aliases, folded, with the tickers they may mean.
    by_phrase: HashMap<String, Vec<&'static str>>,
    /// Most words that a name with this first word has.
    longest: HashMap<String, usize>,
}

fn lines() -> impl Iterator<Item = Asset> {
    FILE.lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .filter_map(|line| {
            let mut fields = line.split('\t');
            Some(Asset {
                ticker: fields.next()?,
                name: fields.next()?,
                aliases: fields.next().unwrap_or_default(),
            })
        })
}

/// Most words of the phrases that have the same first word.
pub(super) fn longest<'p>(phrases: impl Iterator<Item = &'p str>) -> HashMap<String, usize> {
    let mut longest: HashMap<String, usize> = HashMap::new();
    for phrase in phrases {
        let first = phrase.split(' ').next().unwrap_or_default();
        let most = longest.entry(first.to_owned()).or_default();
        *most = phrase.split(' ').count().max(*most);
    }
    longest
}

impl Assets {
    pub fn known() -> &'static Self {
        static ASSETS: LazyLock<Assets> = LazyLock::new(Assets::read);
        &ASSETS
    }

    fn read() -> Self {
        let mut by_phrase: HashMap<String, Vec<&'static str>> = HashMap::new();
        for asset in lines() {
            let aliases = asset.aliases().map(|alias| alias.trim_start_matches('~'));
            for called in std::iter::once(asset.name).chain(aliases) {
                let tickers = by_phrase.entry(phrase(called)).or_default();
                if !tickers.contains(&asset.ticker) {
                    tickers.push(asset.ticker);
                }
            }
        }
        by_phrase.remove("");
        let longest = longest(by_phrase.keys().map(String::as_str));
        Self {
            by_ticker: lines().map(|asset| (asset.ticker, asset)).collect(),
            by_phrase,
            longest,
        }
    }

    /// Tickers that a name, folded, may stand for.
    pub fn called(&self, phrase: &str) -> &[&'static str] {
        self.by_phrase.get(phrase).map_or(&[], Vec::as_slice)
    }

    pub fn name_of(&self, ticker: &str) -> Option<&'static str> {
        self.by_ticker.get(ticker).map(|asset| asset.name)
    }

    pub fn phrases(&self) -> impl Iterator<Item = (&str, &[&'static str])> {
        self.by_phrase
            .iter()
            .map(|(name, tickers)| (name.as_str(), tickers.as_slice()))
    }

    /// Most words that a name with this first word has.
    pub fn longest(&self, first: &str) -> usize {
        self.longest.get(first).copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_line_has_three_fields_and_nothing_odd() {
        let mut last = String::new();
        for line in FILE.lines().filter(|line| !line.starts_with('#')) {
            let fields: Vec<&str> = line.split('\t').collect();
            assert_eq!(fields.len(), 3, "{line:?}");
            assert!(fields.iter().all(|field| field.trim() == *field), "{line:?}");
            let (ticker, name) = (fields[0], fields[1]);
            assert!(!ticker.is_empty() && ticker == ticker.to_uppercase(), "{line:?}");
            assert!(!ticker.contains(char::is_whitespace), "{line:?}");
            assert!(!phrase(name).is_empty(), "{line:?}");
            assert!(
                last.as_str() < ticker,
                "{ticker} stands behind {last}: keep the file sorted"
            );
            last = ticker.to_owned();
            for alias in fields[2].split('|').filter(|_| !fields[2].is_empty()) {
                let bare = alias.trim_start_matches('~');
                assert!(!phrase(bare).is_empty(), "{line:?}");
                assert_eq!(bare, bare.trim().to_lowercase(), "{line:?}: aliases are in lower case");
                assert_ne!(phrase(bare), phrase(name), "{line:?}: the name again");
            }
        }
        assert!(lines().count() >= 300, "{}", lines().count());
    }

    #[test]
    fn a_name_means_one_asset_unless_the_file_says_otherwise() {
        let mut shared: HashMap<String, Vec<bool>> = HashMap::new();
        for asset in lines() {
            let mut own = HashSet::new();
            let called = std::iter::once(asset.name).chain(asset.aliases());
            for name in called {
                let folded = phrase(name.trim_start_matches('~'));
                assert!(own.insert(folded.clone()), "{}: {name} twice", asset.ticker);
                shared.entry(folded).or_default().push(name.starts_with('~'));
            }
        }
        for (name, marks) in shared {
            if marks.len() > 1 {
                assert!(
                    marks.iter().all(|shared| *shared),
                    "{name:?} means several assets: mark it with ~"
                );
            } else {
                assert_eq!(marks, [false], "{name:?} is marked as shared and is not");
            }
        }
    }

    #[test]
    fn no_name_is_the_ticker_of_another_asset() {
        let assets = Assets::known();
        for (name, tickers) in assets.phrases() {
            if let Some(other) = assets.by_ticker.get(name.to_uppercase().as_str()) {
                assert!(tickers.contains(&other.ticker), "{name:?} of {tickers:?}");
            }
        }
    }

    #[test]
    fn names_lead_to_tickers() {
        let assets = Assets::known();
        assert_eq!(assets.called("bitcoin"), ["BTC"]);
        assert_eq!(assets.called("bitcoin cash"), ["BCH"]);
        assert_eq!(assets.called("xbt"), ["BTC"]);
        assert_eq!(assets.called("no such coin"), [""; 0]);
        assert_eq!(assets.name_of("SOL"), Some("Solana"));
        assert_eq!(assets.longest("bitcoin"), 3);
        assert_eq!(assets.longest("nothing"), 0);
    }
}
