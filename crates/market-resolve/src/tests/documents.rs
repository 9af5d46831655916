//! What comes behind the first document, and how matches are described.

use super::super::{MatchedOn, SymbolTable};
use super::{ids, listing, search, symbol, table};
use crate::id::Kind;
use tribune_binance::{Interval, Notional};

#[test]
fn ticker_comes_first_and_other_quotes_last() {
    let found = search(&table(), "bitcoin", 20);
    assert_eq!(
        ids(&found),
        [
            "ticker:BTCUSDT",
            "orderbook:BTCUSDT",
            "klines:BTCUSDT:1h",
            "analytics:order_flow:BTCUSDT",
            "analytics:volume_profile:BTCUSDT",
            "analytics:health:BTCUSDT",
            "ticker:BTCUSDC",
            "ticker:BTCFDUSD",
            "ticker:BTCEUR",
            "ticker:BTCTRY",
        ]
    );
    assert_eq!(found[0].matched_on, MatchedOn::Name);
    assert_eq!(&*found[0].alternatives[0], "BTCUSDC");
    assert_eq!(found[2].kind, Kind::Klines(Interval::H1));
    assert_eq!(search(&table(), "bitcoin", 3).len(), 3);
    assert!(search(&table(), "bitcoin", 0).is_empty());
}

#[test]
fn asked_kind_comes_before_the_ticker() {
    let found = search(&table(), "solana order flow", 3);
    assert_eq!(ids(&found), ["analytics:order_flow:SOLUSDT", "ticker:SOLUSDT", "orderbook:SOLUSDT"]);
    assert_eq!(found[0].coverage, 1.0);
    assert!((found[1].coverage - 1.0 / 3.0).abs() < 1e-6, "{}", found[1].coverage);
}

#[test]
fn every_market_of_a_query_has_its_documents() {
    let table = table();
    let found = search(&table, "bitcoin vs ethereum spread", 4);
    assert_eq!(ids(&found), ["orderbook_l1:BTCUSDT", "orderbook_l1:ETHUSDT", "ticker:BTCUSDT", "ticker:ETHUSDT"]);
    let found = search(&table, "BTCUSDT, ETHUSDT and SOLUSDC", 3);
    assert_eq!(ids(&found), ["ticker:BTCUSDT", "ticker:ETHUSDT", "ticker:SOLUSDC"]);
    let found = search(&table, "BTC ETH SOL", 3);
    assert_eq!(ids(&found), ["ticker:BTCUSDT", "ticker:ETHUSDT", "ticker:SOLUSDT"]);
    let found = search(&table, "btc and eth in euros", 2);
    assert_eq!(ids(&found), ["ticker:BTCEUR", "ticker:ETHEUR"]);
    let found = search(&table, "doge/ada", 2);
    assert_eq!(ids(&found), ["ticker:DOGEUSDT", "ticker:ADAUSDT"]);
    assert!(found.iter().all(|found| found.coverage < 1.0), "there is no such pair");
}

#[test]
fn matches_say_what_they_matched_on() {
    let table = table();
    for (query, on) in [
        ("ticker:BTCUSDT", MatchedOn::Id),
        ("btcusdt", MatchedOn::Symbol),
        ("solana SOLUSDT", MatchedOn::Symbol),
        ("eth/btc", MatchedOn::Pair),
        ("btc/eth", MatchedOn::ReversedPair),
        ("btc", MatchedOn::Ticker),
        ("bitcoin", MatchedOn::Name),
        ("bitcion", MatchedOn::OneEdit),
        ("BTCUSTD", MatchedOn::OneEdit),
        ("top gainers", MatchedOn::AllMarkets),
    ] {
        assert_eq!(search(&table, query, 1)[0].matched_on, on, "{query}");
    }
    let score = |query| search(&table, query, 1)[0].score;
    let falling = ["btcusdt", "eth/btc", "btc", "bitcoin", "bitcion"].map(score);
    assert!(falling.is_sorted_by(|a, b| a > b), "{falling:?}");
}

#[test]
fn symbol_that_is_also_a_ticker_names_both() {
    let table = listing(["USDT BTC\tW WBTC"].into_iter());
    let found = search(&table, "wbtc", 1);
    assert_eq!(ids(&found), ["ticker:WBTC"]);
    let others: Vec<&str> = found[0].alternatives.iter().map(|name| &**name).collect();
    assert_eq!(others, ["WBTCUSDT", "WBTCBTC", "WUSDT"]);
}

#[test]
fn ties_fall_by_status_then_quote_then_volume() {
    let trading = "TRADING";
    let symbols = vec![
        symbol("XYZ", "USDT", "BREAK"),
        symbol("XYZ", "BTC", trading),
        symbol("XYZ", "FDUSD", trading),
        symbol("XYZ", "AAA", trading),
        symbol("XYZ", "BBB", trading),
    ];
    let volumes = |aaa, bbb| {
        move |name: &str| match name {
            "XYZAAA" => Some(Notional::from_units(aaa)),
            "XYZBBB" => Some(Notional::from_units(bbb)),
            _ => None,
        }
    };
    let table = SymbolTable::new(symbols, volumes(1, 2));
    let order = |table: &SymbolTable| -> Vec<String> { table.of_base("XYZ").map(|s| s.name.to_string()).collect() };
    assert_eq!(order(&table), ["XYZFDUSD", "XYZBTC", "XYZBBB", "XYZAAA", "XYZUSDT"]);
    assert_eq!(order(&table.reranked(volumes(3, 2)))[2..4], ["XYZAAA", "XYZBBB"]);
}

#[test]
fn table_looks_up_symbol_base_quote_and_pair() {
    let table = table();
    assert_eq!(table.lookup("btcUSDT").map(|s| &*s.base), Some("BTC"));
    assert_eq!(table.lookup("TUSDT").map(|s| &*s.base), Some("T"));
    assert!(table.lookup("").is_none() && table.lookup("BTC").is_none());
    assert_eq!(table.pair("ETH", "BTC").map(|s| &*s.name), Some("ETHBTC"));
    assert!(table.pair("BTC", "ETH").is_none());
    assert!(table.has_base("NEAR") && table.money("ARS").is_some() && !table.has_base("ARS"));
}

#[test]
fn unknown_symbol_has_neighbours() {
    let table = table();
    let near = |name| -> Vec<String> { table.near(name, 3).iter().map(|s| s.name.to_string()).collect() };
    assert_eq!(near("BTCUSTD")[0], "BTCUSDT");
    assert_eq!(near("bitcoin"), ["BTCUSDT", "BTCUSDC", "BTCFDUSD"]);
    assert_eq!(near("BTC")[0], "BTCUSDT");
    assert!(near("ADAEUR").contains(&"ADAUSDT".to_owned()));
    assert!(near("QQQQQQQQ").is_empty());
    assert!(near("").is_empty());
    assert!(near(&"B".repeat(100_000)).len() <= 3);
}
