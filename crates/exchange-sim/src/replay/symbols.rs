//! Symbols as a recording shows them. Where it has an answer of exchangeInfo that is the truth; else base and quote are
//! read off the names here, and only here, and the names that can be read in several ways are told.

use std::collections::{HashMap, HashSet};

use indexmap::IndexMap;
use serde_json::Value;

use super::scan::{Facts, Listings};
use crate::market::symbol::{Source, Status, Symbol};
use crate::number;

/// What symbols were ever quoted in, on the exchange and on its American sister.
#[rustfmt::skip]
const QUOTES: [&str; 49] = [
    "USDT", "USDC", "FDUSD", "BUSD", "TUSD", "BFUSD", "RLUSD", "XUSD", "USD", "USD1", "USDP", "USDS", "USDE", "UST", "U",
    "DAI", "PAX", "VAI", "BTC", "ETH", "BNB", "SOL", "XRP", "TRX", "DOGE", "DOT", "EUR", "AEUR", "EURI", "TRY", "BRL",
    "JPY", "GBP", "AUD", "UAH", "RUB", "ZAR", "PLN", "RON", "ARS", "MXN", "COP", "CZK", "NGN", "BIDR", "IDRT", "BKRW",
    "BVND", "KZT",
];

/// Well-known assets: they decide between a quote and a longer one that ends like it, as BAT does in BATUSD.
#[rustfmt::skip]
const ASSETS: [&str; 76] = [
    "BTC", "ETH", "BNB", "SOL", "XRP", "DOGE", "ADA", "TRX", "LTC", "BCH", "LINK", "AVAX", "DOT", "SHIB", "XLM", "ATOM",
    "UNI", "ETC", "FIL", "NEAR", "APT", "ARB", "OP", "SUI", "PEPE", "BAT", "GRT", "FET", "ANT", "BNT", "OXT", "LPT", "GMT",
    "KNC", "ZEC", "ZEN", "ZIL", "ZRX", "XTZ", "VET", "ALGO", "AAVE", "MKR", "COMP", "MATIC", "POL", "SAND", "MANA", "AXS",
    "ENJ", "CHZ", "EOS", "NEO", "IOTA", "DASH", "XMR", "QTUM", "ONT", "ICX", "WAVES", "HBAR", "EGLD", "FTM", "CRV",
    "USDT", "USDC", "BUSD", "TUSD", "FDUSD", "DAI", "EUR", "GBP", "HNT", "SNT", "RNDR", "WBTC",
];

/// Unknown quotes are taken to be the last three letters.
const COMMON_QUOTE: usize = 3;
/// Shorter names of assets are rare.
const COMMON_BASE: usize = 3;

/// How a name is read.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Pair {
    base: String,
    quote: String,
    /// There is another way to read it, or none that is known.
    ambiguous: bool,
}

/// The symbols of a recording, each with what is known of it.
pub fn symbols(facts: &IndexMap<String, Facts>, listings: &Listings) -> HashMap<String, Symbol> {
    let unlisted: Vec<&str> = facts
        .keys()
        .map(String::as_str)
        .filter(|name| !listings.contains_key(*name))
        .collect();
    let mut seen: HashSet<&str> = HashSet::new();
    for entry in listings.values() {
        seen.extend(
            ["baseAsset", "quoteAsset"]
                .iter()
                .filter_map(|field| entry[field].as_str()),
        );
    }
    let pairs = read_all(&unlisted, seen);
    let symbol = |(name, facts): (&String, &Facts)| {
        let symbol = match (listings.get(name), pairs.get(name.as_str())) {
            (Some(entry), _) => recorded(name, facts, entry),
            (None, pair) => inferred(
                name,
                facts,
                pair.cloned().unwrap_or_else(|| read(name, &HashSet::new())),
            ),
        };
        (name.clone(), symbol)
    };
    facts.iter().map(symbol).collect()
}

fn recorded(name: &str, facts: &Facts, entry: &Value) -> Symbol {
    let text = |field: &str| entry[field].as_str().unwrap_or_default().to_owned();
    let filters = entry["filters"].as_array().map(Vec::as_slice).unwrap_or_default();
    let rule = |field: &str| filters.iter().find_map(|filter| filter[field].as_str());
    let status = match entry["status"].as_str() {
        Some("TRADING") => Status::Trading,
        Some("BREAK") => Status::Break,
        _ => Status::Halt,
    };
    Symbol {
        name: name.to_owned(),
        base: text("baseAsset"),
        quote: text("quoteAsset"),
        status,
        tick: rule("tickSize").and_then(number::parse_price).unwrap_or(facts.tick),
        step: rule("stepSize").and_then(number::parse).unwrap_or(facts.step),
        min_notional: rule("minNotional").and_then(number::parse),
        source: Source::Recorded(Box::new(entry.clone())),
    }
}

fn inferred(name: &str, facts: &Facts, pair: Pair) -> Symbol {
    Symbol {
        name: name.to_owned(),
        base: pair.base,
        quote: pair.quote,
        status: Status::Trading,
        tick: facts.tick,
        step: facts.step,
        min_notional: None,
        source: Source::Inferred {
            ambiguous: pair.ambiguous,
        },
    }
}

/// Names that can be read in one way only say which assets there are; by these the others are read.
fn read_all<'a>(names: &[&'a str], mut seen: HashSet<&'a str>) -> HashMap<&'a str, Pair> {
    for name in names {
        if let [(base, quote)] = readings(name).as_slice() {
            seen.extend([*base, *quote]);
        }
    }
    names.iter().map(|name| (*name, read(name, &seen))).collect()
}

/// All ways to read a name as a base and a known quote, that of the longest quote first.
fn readings(name: &str) -> Vec<(&str, &str)> {
    let split = |quote: &&'static str| {
        let base = name.strip_suffix(quote).filter(|base| !base.is_empty())?;
        Some((base, &name[base.len()..]))
    };
    let mut readings: Vec<(&str, &str)> = QUOTES.iter().filter_map(split).collect();
    readings.sort_by_key(|(base, _)| base.len());
    readings
}

fn read(name: &str, seen: &HashSet<&str>) -> Pair {
    let readings = readings(name);
    let ambiguous = readings.len() != 1;
    let known = |base: &str| seen.contains(base) || ASSETS.contains(&base);
    let mut likely = readings.iter().filter(|(base, _)| known(base));
    let chosen = match (likely.next(), likely.next()) {
        (Some(only), None) => Some(only),
        _ => {
            let mut long = readings.iter().filter(|(base, _)| base.chars().count() >= COMMON_BASE);
            long.next().or(readings.first())
        }
    };
    let (base, quote) = chosen.copied().unwrap_or_else(|| {
        let letters = name.chars().count();
        let base = letters.saturating_sub(COMMON_QUOTE).max(1);
        let at = name.char_indices().nth(base).map_or(name.len(), |(at, _)| at);
        name.split_at(at)
    });
    Pair {
        base: base.to_owned(),
        quote: quote.to_owned(),
        ambiguous,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(names: &[&str], name: &str) -> String {
        let pair = &read_all(names, HashSet::new())[name];
        format!("{}/{}{}", pair.base, pair.quote, if pair.ambiguous { "?" } else { "" })
    }

    #[test]
    fn names_are_read_by_known_quotes_and_assets() {
        for (name, pair) in [
            ("BTCUSDT", "BTC/USDT"),
            ("TUSDT", "T/USDT"),
            ("ETHBTC", "ETH/BTC"),
            ("币安人生USDT", "币安人生/USDT"),
            ("BTCU", "BTC/U"),
            ("BTCFDUSD", "BTC/FDUSD?"),
            ("BTCTUSD", "BTC/TUSD?"),
            ("BATUSD", "BAT/USD?"),
            ("DOTUSD", "DOT/USD?"),
            ("BNBUSD", "BNB/USD?"),
            ("SHIBUSD", "SHIB/USD?"),
            ("SOLBFUSD", "SOL/BFUSD?"),
            ("USDTUSD", "USDT/USD?"),
            ("QQTUSD", "QQT/USD?"),
            ("QQQTUSD", "QQQ/TUSD?"),
            ("BTCAEUR", "BTC/AEUR?"),
            ("ABCXYZ", "ABC/XYZ?"),
            ("人生啊", "人/生啊?"),
        ] {
            assert_eq!(told(&[name], name), pair, "{name}");
        }
    }

    #[test]
    fn an_asset_that_is_seen_elsewhere_decides() {
        assert_eq!(told(&["QQQTUSD"], "QQQTUSD"), "QQQ/TUSD?");
        assert_eq!(told(&["QQQTUSD", "QQQTBTC"], "QQQTUSD"), "QQQT/USD?");
    }

    proptest::proptest! {
        #[test]
        fn a_pair_is_the_name(name in "[A-Z0-9币安]{1,12}") {
            let pair = read(&name, &HashSet::new());
            proptest::prop_assert_eq!(format!("{}{}", pair.base, pair.quote), name);
            proptest::prop_assert!(!pair.base.is_empty());
        }
    }
}
