//! Symbols as a recording shows them. It has no list of them, so base and quote are guessed here, and only here,
//! from the quotes that are known.

use super::scan::Facts;
use crate::market::symbol::{Status, Symbol};

/// Longer ones first, where one ends like another.
const QUOTES: [&str; 28] = [
    "FDUSD", "TUSD", "BUSD", "USDT", "USDC", "USDP", "USD1", "AEUR", "BIDR", "IDRT", "EURI", "DAI", "BTC", "ETH",
    "BNB", "TRX", "XRP", "DOGE", "EUR", "TRY", "BRL", "JPY", "GBP", "AUD", "UAH", "RUB", "ZAR", "PLN",
];

/// Unknown quotes are taken to be the last three letters.
const COMMON_QUOTE: usize = 3;

pub fn symbol(name: &str, facts: &Facts) -> Symbol {
    let (base, quote) = split(name);
    Symbol {
        name: name.to_owned(),
        base,
        quote,
        status: Status::Trading,
        tick: facts.tick,
        step: facts.step,
        min_notional: None,
    }
}

fn split(name: &str) -> (String, String) {
    let known = QUOTES
        .iter()
        .filter_map(|quote| name.strip_suffix(quote))
        .find(|base| !base.is_empty());
    let base: String = match known {
        Some(base) => base.to_owned(),
        None => {
            let count = name.chars().count().saturating_sub(COMMON_QUOTE).max(1);
            name.chars().take(count).collect()
        }
    };
    let quote = name.strip_prefix(&base).unwrap_or_default().to_owned();
    (base, quote)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_quotes_are_split_off() {
        for (name, base, quote) in [
            ("BTCUSDT", "BTC", "USDT"),
            ("TUSDT", "T", "USDT"),
            ("ETHBTC", "ETH", "BTC"),
            ("BTCFDUSD", "BTC", "FDUSD"),
            ("币安人生USDT", "币安人生", "USDT"),
            ("ABCXYZ", "ABC", "XYZ"),
        ] {
            assert_eq!(split(name), (base.to_owned(), quote.to_owned()), "{name}");
        }
    }
}
