//! A small exchange, and what is asked of it.

mod asked;
mod few;
mod properties;
mod queries;
mod ranking;

use std::collections::HashMap;
use std::sync::Arc;

use super::search::search_on;
use super::{Match, SymbolTable};
use crate::model::{Symbol, SymbolStatus};
use crate::number::Notional;

/// Base, then its quotes. A quote in brackets has stopped trading.
const MARKETS: &[&str] = &[
    "BTC USDT USDC FDUSD EUR TRY BRL",
    "ETH USDT USDC FDUSD BTC EUR TRY",
    "BNB USDT USDC FDUSD BTC ETH",
    "SOL USDT USDC FDUSD BTC ETH EUR",
    "XRP USDT USDC BTC EUR",
    "DOGE USDT USDC BTC",
    "ADA USDT BTC",
    "BCH USDT BTC",
    "LTC USDT BTC",
    "ETC USDT",
    "LINK USDT BTC",
    "NEAR USDT BTC",
    "ONE USDT BTC",
    "FOR (USDT)",
    "KEY USDT",
    "ID USDT",
    "T USDT",
    "A USDT",
    "S USDT",
    "THE USDT",
    "GAS USDT",
    "FLOW USDT",
    "MAGIC USDT",
    "PEOPLE USDT",
    "SUPER USDT BTC",
    "SAND USDT",
    "GRT USDT",
    "AVAX USDT BTC",
    "ATOM USDT",
    "OP USDT",
    "ARB USDT",
    "DOT USDT",
    "SHIB USDT",
    "PEPE USDT",
    "POL USDT",
    "MATIC (USDT)",
    "UNI USDT",
    "COMP USDT",
    "XLM USDT",
    "XMR (USDT) (BTC)",
    "ZEN USDT",
    "CHZ USDT",
    "BAL USDT",
    "SNX USDT",
    "LUNA USDT",
    "LUNC USDT",
    "TIA USDT",
    "1INCH USDT",
    "1000SATS USDT",
    "4 USDT",
    "币安人生 USDT",
    "WBTC BTC USDT",
    "EUR USDT USDC",
    "USDC USDT",
    "USDT TRY BRL ARS",
    "TON USDT",
    "AI USDT",
    "NOT USDT",
    "DASH USDT",
    "HBAR USDT",
];

/// As asked on one day, so that what is found does not change with the days.
fn search(table: &SymbolTable, query: &str, limit: usize) -> Vec<Match> {
    search_on(table, query, limit, jiff::civil::date(2026, 11, 16))
}

fn symbol(base: &str, quote: &str, status: SymbolStatus) -> Symbol {
    Symbol {
        status,
        status_text: Arc::from(if status == SymbolStatus::Trading {
            "TRADING"
        } else {
            "BREAK"
        }),
        ..Symbol::named(format!("{base}{quote}"), base, quote)
    }
}

pub(super) fn table() -> SymbolTable {
    listing(MARKETS)
}

fn listing(markets: &[&str]) -> SymbolTable {
    let mut symbols = Vec::new();
    for line in markets {
        let mut fields = line.split(' ');
        let base = fields.next().expect("a base");
        symbols.extend(fields.map(|quote| {
            let halted = quote.trim_matches(['(', ')']);
            let status = if halted == quote {
                SymbolStatus::Trading
            } else {
                SymbolStatus::Break
            };
            symbol(base, halted, status)
        }));
    }
    let volumes = symbols
        .iter()
        .zip(1..)
        .map(|(symbol, place)| (Arc::clone(&symbol.name), Notional::from_units(1_000_000 - place)));
    SymbolTable::new(symbols.clone(), &volumes.collect::<HashMap<_, _>>())
}
