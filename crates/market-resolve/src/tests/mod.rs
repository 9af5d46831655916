//! Queries of a small exchange and of one with over a thousand symbols.

mod documents;
mod properties;
mod questions;

use std::collections::HashMap;
use std::sync::Arc;

use super::{Match, SymbolTable};
use tribune_binance::{Notional, Symbol};

/// Quotes, then the bases that are traded in them. A quote in brackets has stopped trading.
const MARKETS: &[&str] = &[
    "USDT USDC FDUSD EUR TRY BRL\tBTC",
    "USDT USDC FDUSD BTC EUR TRY\tETH",
    "USDT USDC BTC ETH\tBNB SOL",
    "USDT BTC\tXRP DOGE ADA BCH LTC LINK NEAR ONE",
    "USDT\tETC T A S THE 4 GAS FLOW MAGIC PEOPLE GRT AVAX ATOM OP PEPE POL 1INCH 币安人生 NOT WBTC",
    "(USDT)\tMATIC FOR",
    "(USDT) (BTC)\tXMR",
    "USDT USDC\tEUR",
    "USDT\tUSDC",
    "TRY BRL ARS\tUSDT",
];

/// Searches on a fixed day, so that dates stay past or future.
fn search(table: &SymbolTable, query: &str, limit: usize) -> Vec<Match> {
    super::search(table, query, limit, jiff::civil::date(2026, 11, 16))
}

fn ids(found: &[Match]) -> Vec<&str> {
    found.iter().map(|found| found.id.as_str()).collect()
}

fn symbol(base: &str, quote: &str, status: &str) -> Symbol {
    Symbol { status: status.into(), ..Symbol::named(format!("{base}{quote}"), base, quote) }
}

fn table() -> SymbolTable {
    listing(MARKETS.iter().copied())
}

fn listing<'a>(lines: impl Iterator<Item = &'a str>) -> SymbolTable {
    let mut symbols = Vec::new();
    for line in lines {
        let (quotes, bases) = line.split_once('\t').expect("quotes and bases");
        for base in bases.split(' ') {
            symbols.extend(quotes.split(' ').map(|quote| {
                let name = quote.trim_matches(['(', ')']);
                let status = if name == quote { "TRADING" } else { "BREAK" };
                symbol(base, name, status)
            }));
        }
    }
    let volumes = symbols
        .iter()
        .zip(1..)
        .map(|(symbol, place)| (Arc::clone(&symbol.name), Notional::from_units(1_000_000 - place)));
    let volumes: HashMap<_, _> = volumes.collect();
    SymbolTable::new(symbols.clone(), |name| volumes.get(name).copied())
}
