//! What is asked of an exchange that lists little: what it has not must not be answered with something else.

use super::super::{SymbolTable, search};
use super::listing;

const FEW: &[&str] = &[
    "BTC USDT USDC",
    "ETH USDT BTC",
    "BNB USDT",
    "SOL USDT",
    "XRP USDT",
    "DOGE USDT",
    "ADA USDT",
    "LINK USDT",
    "PEPE USDT",
    "AVAX USDT",
    "LUNA (USDT)",
    "XMR (USDT)",
    "GRT BTC",
    "USDT TRY",
];

/// A query, the documents that must come first, and how much of the query the first accounts for.
type Case = (&'static str, &'static [&'static str], f32);

fn check(table: &SymbolTable, cases: &[Case]) {
    let wrong: Vec<String> = cases
        .iter()
        .filter_map(|(query, wanted, coverage)| {
            let found = search(table, query, wanted.len().max(1));
            let ids: Vec<&str> = found.iter().map(|found| found.id.as_str()).collect();
            let first = found.first().map_or(0.0, |found| found.coverage);
            let right = ids == *wanted && (first - coverage).abs() < 0.01;
            (!right).then(|| format!("{query:?}: {ids:?} at {first:.2}, and not {wanted:?} at {coverage:.2}"))
        })
        .collect();
    assert!(
        wrong.is_empty(),
        "{} of {}:\n{}",
        wrong.len(),
        cases.len(),
        wrong.join("\n")
    );
}

#[test]
fn an_asset_that_is_not_listed_is_no_other() {
    check(
        &listing(FEW),
        &[
            ("bitcoin cash price", &[], 0.0),
            ("Bitcoin Cash", &[], 0.0),
            ("bcash/usdt price", &[], 0.0),
            ("BCH/USDT price", &[], 0.0),
            ("bch usdt price", &[], 0.0),
            ("XYZW/USDT price", &[], 0.0),
            ("bitcoin sv", &[], 0.0),
            ("wrapped bitcoin", &[], 0.0),
            ("wrapped btc in dollars", &[], 0.0),
            ("ethereum classic", &[], 0.0),
            ("eth classic order book", &[], 0.0),
            ("terra classic", &[], 0.0),
            ("staked ether", &[], 0.0),
            ("litecoin price in tether", &[], 0.0),
            ("bitcoin and bitcoin cash", &["ticker:BTCUSDT"], 1.0 / 3.0),
            ("solana, bitcoin gold", &["ticker:SOLUSDT"], 1.0 / 3.0),
            ("litecoin vs ethereum spread", &["orderbook_l1:ETHUSDT"], 2.0 / 3.0),
            ("bitcoin price cash", &["ticker:BTCUSDT"], 2.0 / 3.0),
            ("tether", &["ticker:USDTTRY"], 1.0),
        ],
    );
}

#[test]
fn a_quote_that_is_not_traded_is_no_other() {
    check(
        &listing(FEW),
        &[
            ("BTC/EUR", &[], 0.0),
            ("btc-eur", &[], 0.0),
            ("btc eur", &[], 0.0),
            ("BTCEUR", &[], 0.0),
            ("BTCUSDP", &[], 0.0),
            ("btc jpy", &[], 0.0),
            ("eur/btc", &[], 0.0),
            ("bitcoin in euros", &[], 0.0),
            ("bitcoin price in yen", &[], 0.0),
            ("bitcoin in pounds", &[], 0.0),
            ("bitcoin in rupees", &[], 0.0),
            ("how many euros is one bitcoin", &[], 0.0),
            ("btc chf order book", &[], 0.0),
            ("ETH/EUR, SOL/EUR", &[], 0.0),
            ("SOL/USDC", &[], 0.0),
            ("BTC/EUR, DOGE", &["ticker:DOGEUSDT"], 1.0 / 3.0),
            ("btc usdt in euros", &["ticker:BTCUSDT"], 2.0 / 3.0),
            ("bitcoin in usd and euros", &["ticker:BTCUSDT"], 0.5),
            ("BTC/USDC", &["ticker:BTCUSDC"], 1.0),
            ("bitcoin in dollars", &["ticker:BTCUSDT"], 1.0),
            ("BTC/USD", &["ticker:BTCUSDT"], 1.0),
            ("btc usd", &["ticker:BTCUSDT"], 1.0),
            ("BTCUSD", &["ticker:BTCUSDT"], 1.0),
            ("SOL, XRP in dollars", &["ticker:SOLUSDT", "ticker:XRPUSDT"], 0.5),
            ("GRT", &["ticker:GRTBTC"], 1.0),
            ("GRT in dollars", &[], 0.0),
            ("BTC/XYZW", &["ticker:BTCUSDT"], 0.25),
            ("sol/doge", &["ticker:SOLUSDT", "ticker:DOGEUSDT"], 0.25),
        ],
    );
}
