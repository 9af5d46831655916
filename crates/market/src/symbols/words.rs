//! What the words of a question mean beside the names of assets: `words.tsv`, read once.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use super::assets;
use super::id::{AnalyticsKind, Kind};
use super::interval;
use super::text::one_edit_apart;
use crate::model::Interval;

static FILE: &str = include_str!("words.tsv");

/// What stands before words of the file and is said of them there.
const MARKS: [char; 3] = ['~', '+', '^'];

/// The candles meant by whoever names no length.
pub(super) const DEFAULT_INTERVAL: Interval = Interval::H1;

/// Shortest word that is looked for among misspelt wishes.
const MIN_RESPELT_CHARS: usize = 6;

/// Shortest word that is looked for among wishes with two letters swapped.
const MIN_SWAPPED_CHARS: usize = 5;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sense {
    /// Says nothing: "what", "please".
    Stop,
    /// Is about markets, without saying what is wanted.
    Market,
    /// The same, and is said of markets alone: "sell", "pumping".
    Deal,
    /// Is about coins, and nothing else is: "token", "crypto".
    Coins,
    /// The 24 hours that tickers tell of.
    Day,
    /// Is about something of markets that there is nothing on here: futures, forecasts.
    Elsewhere,
    /// Asks for a kind of document.
    Wants(Kind),
    /// Candles of one length: "hourly".
    Every(Interval),
    /// The same, and is said of candles alone: "Tageskerzen".
    Candles(Interval),
    /// A time that is over, of which candles of this length tell: "yesterday".
    Past(Interval),
    /// A unit of time in another language, by its letter: "Stunden".
    Unit(&'static str),
    /// What follows is left out: "except".
    Not,
    /// "eth to btc": the first is priced in the second, if such a market exists.
    Toward,
    /// "bitcoin vs ethereum", "compare": each for itself.
    Compare,
    /// "pair", "exchange rate": two assets side by side are one market.
    Pairing,
}

impl Sense {
    /// The sense of this name in the file.
    fn named(name: &str) -> Option<Self> {
        use AnalyticsKind::{Anomalies, Health, LiquidityVacuums, OrderFlow, VolumeProfile};
        Some(match name {
            "stop" => Self::Stop,
            "market" => Self::Market,
            "deal" => Self::Deal,
            "coins" => Self::Coins,
            "day" => Self::Day,
            "elsewhere" => Self::Elsewhere,
            "toward" => Self::Toward,
            "compare" => Self::Compare,
            "pairing" => Self::Pairing,
            "ticker" => Self::Wants(Kind::Ticker),
            "orderbook" => Self::Wants(Kind::OrderBook),
            "orderbook_l1" => Self::Wants(Kind::OrderBookL1),
            "orderbook_l2" => Self::Wants(Kind::OrderBookL2),
            "klines" => Self::Wants(Kind::Klines(DEFAULT_INTERVAL)),
            "trades" => Self::Wants(Kind::Trades),
            "exchange_info" => Self::Wants(Kind::ExchangeInfo),
            "order_flow" => Self::Wants(Kind::Analytics(OrderFlow)),
            "volume_profile" => Self::Wants(Kind::Analytics(VolumeProfile)),
            "anomalies" => Self::Wants(Kind::Analytics(Anomalies)),
            "liquidity_vacuums" => Self::Wants(Kind::Analytics(LiquidityVacuums)),
            "health" => Self::Wants(Kind::Analytics(Health)),
            "report" => Self::Wants(Kind::Report),
            "not" => Self::Not,
            _ => return Self::with_length(name),
        })
    }

    /// `every 1h`, `unit h`
    fn with_length(name: &str) -> Option<Self> {
        let (sense, length) = name.split_once(' ')?;
        let interval = || length.parse().ok();
        match sense {
            "every" => interval().map(Self::Every),
            "candles" => interval().map(Self::Candles),
            "past" => interval().map(Self::Past),
            "unit" => interval::letter(length).map(Self::Unit),
            _ => None,
        }
    }
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    sense: Sense,
    /// Said of anything: it does not show that a market is meant.
    vague: bool,
    /// Where no market is named, all of them are meant.
    of_all: bool,
    /// Puts what it is said of in an order: "biggest".
    ranks: bool,
}

/// The words and phrases of the file with what they mean.
fn entries() -> impl Iterator<Item = (&'static str, Entry)> {
    let lines = FILE
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.split_once('\t'));
    let senses = lines.filter_map(|(name, words)| Some((Sense::named(name)?, words)));
    senses.flat_map(|(sense, words)| {
        words.split(", ").map(move |word| {
            let said = word.trim_start_matches(MARKS);
            let marks = &word[..word.len() - said.len()];
            let entry = Entry {
                sense,
                vague: marks.contains('~'),
                of_all: marks.contains('+'),
                ranks: marks.contains('^'),
            };
            (said, entry)
        })
    })
}

fn lookup(phrase: &str) -> Option<Entry> {
    static ENTRIES: LazyLock<HashMap<&'static str, Entry>> = LazyLock::new(|| entries().collect());
    ENTRIES.get(phrase).copied()
}

/// What a folded word or phrase means, if it means something here.
pub(super) fn sense(phrase: &str) -> Option<Sense> {
    lookup(phrase).map(|entry| entry.sense)
}

/// Whether a word or phrase that asks for something is said of markets alone.
pub(super) fn is_telling(phrase: &str) -> bool {
    lookup(phrase).is_some_and(|entry| !entry.vague)
}

/// Whether a word or phrase asks for all markets where none is named.
pub(super) fn is_of_all(phrase: &str) -> bool {
    lookup(phrase).is_some_and(|entry| entry.of_all)
}

/// Whether a word puts what it is said of in an order.
pub(super) fn ranks(phrase: &str) -> bool {
    lookup(phrase).is_some_and(|entry| entry.ranks)
}

/// Most words that a phrase with this first word has.
pub(super) fn longest(first: &str) -> usize {
    static LONGEST: LazyLock<HashMap<String, usize>> =
        LazyLock::new(|| assets::longest(entries().map(|(said, _)| said).filter(|said| said.contains(' '))));
    LONGEST.get(first).copied().unwrap_or(0)
}

fn has_same_letters(a: &str, b: &str) -> bool {
    let sorted = |text: &str| {
        let mut letters: Vec<char> = text.chars().collect();
        letters.sort_unstable();
        letters
    };
    a.len() == b.len() && sorted(a) == sorted(b)
}

/// The wish that a folded word misspells by one edit, not in its first letter.
pub(super) fn respelt(word: &str) -> Option<&'static str> {
    static WISHES: LazyLock<Vec<&'static str>> = LazyLock::new(|| {
        let asks = |entry: &Entry| matches!(entry.sense, Sense::Wants(_)) && !entry.vague;
        let single = entries().filter(|(said, entry)| asks(entry) && !said.contains(' '));
        single
            .map(|(said, _)| said)
            .filter(|said| said.is_ascii() && said.len() >= MIN_SWAPPED_CHARS)
            .collect()
    });
    let length = word.chars().count();
    let first = word.chars().next().filter(|_| length >= MIN_SWAPPED_CHARS)?;
    // Of a shorter word only two letters may be swapped: one other letter makes too many others.
    let near = |wish: &&&str| {
        let close = length >= MIN_RESPELT_CHARS && wish.len() >= MIN_RESPELT_CHARS;
        wish.starts_with(first) && (close || has_same_letters(wish, word)) && one_edit_apart(wish, word)
    };
    WISHES.iter().find(near).copied()
}

/// Whether a folded word is one of the vocabulary with one key wrong.
pub(super) fn resembles(word: &str) -> bool {
    let long = word.chars().count() >= MIN_SWAPPED_CHARS;
    long && entries().any(|(said, _)| one_edit_apart(said, word))
}

/// The dollar and what stands for it.
const DOLLARS: &str = "USD USDT USDC FDUSD TUSD BUSD USDP USD1 USDE USDS DAI PAX PYUSD XUSD BFUSD RLUSD USDG UST USTC";

/// Other money, whether or not anything here is priced in it.
const CURRENCIES: &str = "\
    AED AEUR ARS AUD BIDR BKRW BRL BVND CAD CHF CLP CNY COP CZK DKK EUR EURI GBP HKD HUF IDR IDRT ILS INR JPY KRW \
    KZT MXN MYR NGN NOK NZD PEN PHP PKR PLN RON RUB SAR SEK SGD THB TRY TWD UAH VAI VND ZAR";

/// Numbers in letters that stand behind others: "2 million dollars".
pub(super) fn is_magnitude(folded: &str) -> bool {
    matches!(folded, "thousand" | "million" | "billion" | "mn" | "bn")
}

/// Assets that are money: beside another asset they are what its price is in.
pub(super) fn is_money(ticker: &str) -> bool {
    static MONEY: LazyLock<HashSet<&'static str>> = LazyLock::new(|| {
        let dollars = DOLLARS.split_ascii_whitespace();
        dollars.chain(CURRENCIES.split_ascii_whitespace()).collect()
    });
    MONEY.contains(ticker)
}

pub(super) fn is_dollar(ticker: &str) -> bool {
    DOLLARS.split_ascii_whitespace().any(|dollar| dollar == ticker)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::symbols::text::phrase;

    #[test]
    fn every_line_has_a_sense_and_no_word_has_two() {
        let mut seen = HashSet::new();
        for line in FILE.lines().filter(|line| !line.starts_with('#')) {
            let (name, words) = line.split_once('\t').expect("a sense and words");
            assert!(Sense::named(name).is_some(), "{line:?}");
            for word in words.split(", ") {
                let said = word.trim_start_matches(MARKS);
                assert_eq!(phrase(said), said, "{line:?}: written as questions are read");
                assert!(seen.insert(said.to_owned()), "{said:?} twice");
            }
        }
    }

    #[test]
    fn wishes_may_have_one_key_wrong() {
        for (typed, meant) in [
            ("candels", Some("candles")),
            ("anomolies", Some("anomalies")),
            ("orderbok", Some("orderbook")),
            ("liquidty", Some("liquidity")),
            ("voulme", Some("volume")),
            ("prise", None),
            ("pirce", Some("price")),
            ("handles", None),
            ("bitcoin", None),
        ] {
            assert_eq!(respelt(typed), meant, "{typed}");
        }
    }
}
