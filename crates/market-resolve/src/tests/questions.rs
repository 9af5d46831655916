//! Questions as assistants and traders ask them (`questions.tsv`), and small sets of them for each rule.

use super::super::SymbolTable;
use super::{ids, listing, search, table};

/// How many of a hundred questions must find their document first.
const FLOOR_PERCENT: usize = 94;

fn first(table: &SymbolTable, query: &str) -> String {
    let found = search(table, query, 1);
    ids(&found).first().map_or("-", |id| id).to_owned()
}

#[test]
fn most_questions_find_their_document_first() {
    let table = listing(include_str!("exchange.tsv").lines().filter(|line| !line.starts_with('#')));
    assert!(table.len() > 1_000, "{}", table.len());
    let questions: Vec<(&str, &str)> = include_str!("questions.tsv")
        .lines()
        .filter(|line| !line.starts_with("# "))
        .filter_map(|line| line.split_once('\t'))
        .collect();
    let wrong: Vec<String> = questions
        .iter()
        .map(|(query, wanted)| (query, wanted, first(&table, query)))
        .filter(|(_, wanted, found)| wanted.split(' ').all(|id| id != found))
        .map(|(query, wanted, found)| format!("{query:?} finds {found}, not {wanted}"))
        .collect();
    let right = questions.len() - wrong.len();
    assert!(right * 100 >= FLOOR_PERCENT * questions.len(), "{right} of {}:\n{}", questions.len(), wrong.join("\n"));
}

fn check(cases: &[(&str, &str)]) {
    let table = table();
    for (query, wanted) in cases {
        assert_eq!(first(&table, query), *wanted, "{query}");
    }
}

#[test]
fn pairs_are_found_in_every_spelling() {
    check(&[
        ("ETHBTC", "ticker:ETHBTC"),
        ("eth/btc", "ticker:ETHBTC"),
        ("eth / btc", "ticker:ETHBTC"),
        ("eth-btc", "ticker:ETHBTC"),
        ("eth_btc", "ticker:ETHBTC"),
        ("eth btc", "ticker:ETHBTC"),
        ("eth in btc", "ticker:ETHBTC"),
        ("ethereum price in bitcoin", "ticker:ETHBTC"),
        ("btc/eth", "ticker:ETHBTC"),
        ("btc eth ratio", "ticker:ETHBTC"),
        ("btc eth", "ticker:BTCUSDT"),
        ("compare eth to btc", "ticker:ETHUSDT"),
        ("BTC/USD", "ticker:BTCUSDT"),
        ("btcusd", "ticker:BTCUSDT"),
        ("bitcoin in euros", "ticker:BTCEUR"),
        ("how many euros is one bitcoin", "ticker:BTCEUR"),
        ("Ethereum (ETH/EUR)", "ticker:ETHEUR"),
        ("solana SOLUSDC order book", "orderbook:SOLUSDC"),
        ("near/usdt", "ticker:NEARUSDT"),
        ("T/USDT", "ticker:TUSDT"),
        ("币安人生USDT order book", "orderbook:币安人生USDT"),
    ]);
}

#[test]
fn pairs_that_are_not_traded_find_no_other() {
    check(&[
        ("ADA/EUR", "-"),
        ("ada eur", "-"),
        ("ADAEUR", "-"),
        ("cardano in yen", "-"),
        ("XYZ/BTC", "-"),
        ("xyz usdt", "-"),
        ("bitcoin gold", "-"),
        ("USDTBTC", "-"),
        ("SPCXUSDT", "-"),
    ]);
}

#[test]
fn unsupported_topics_find_nothing() {
    check(&[
        ("BTC funding rate", "-"),
        ("open interest ETH", "-"),
        ("bitcoin liquidations 1h", "-"),
        ("SOL options chain", "-"),
        ("BTC-PERP", "-"),
        ("ETHUSDT futures order book", "-"),
        ("20x leverage doge", "-"),
        ("bitcoin hash rate", "-"),
        ("bitcoin news", "-"),
        ("eth price prediction", "-"),
        ("bitcoin price 2030", "-"),
        ("btc in the next 7 days", "-"),
        ("bitcoin market cap", "-"),
        ("bitcoin price market cap volume", "ticker:BTCUSDT"),
    ]);
}

#[test]
fn lists_and_rankings_find_all_markets() {
    check(&[
        ("all USDT pairs", "markets:USDT"),
        ("which symbols are there", "markets:USDT"),
        ("list of markets", "markets:USDT"),
        ("top gainers", "markets:USDT"),
        ("most traded coins", "markets:USDT"),
        ("Where is volume concentrated?", "markets:USDT"),
        ("BTC pairs", "markets:BTC"),
        ("top gainers in BTC", "markets:BTC"),
        ("markets in euros", "markets:EUR"),
        ("markets:TRY", "markets:TRY"),
        ("BTC markets", "ticker:BTCUSDT"),
        ("SOL pairs", "ticker:SOLUSDT"),
        ("biggest losers of the election", "-"),
    ]);
}

#[test]
fn everyday_words_need_market_evidence() {
    check(&[
        ("near", "ticker:NEARUSDT"),
        ("NEAR", "ticker:NEARUSDT"),
        ("near price", "ticker:NEARUSDT"),
        ("near usdt", "ticker:NEARUSDT"),
        ("$near", "ticker:NEARUSDT"),
        ("btc and near", "ticker:BTCUSDT"),
        ("near protocol", "ticker:NEARUSDT"),
        ("ONE price", "ticker:ONEUSDT"),
        ("FLOW order flow", "analytics:order_flow:FLOWUSDT"),
        ("the graph price", "ticker:GRTUSDT"),
        ("show me the graph of bitcoin", "klines:BTCUSDT:1h"),
        ("housing policy", "-"),
        ("near the river", "-"),
        ("one thing", "-"),
        ("restaurants near me", "-"),
        ("a link to the key for one id", "-"),
        ("WHAT IS THE PRICE OF ONE", "-"),
        ("the people flow through the city", "-"),
        ("avalanche deaths in the alps", "-"),
        ("vitamin A price", "-"),
        ("ada lovelace", "-"),
        ("order flow", "-"),
        ("price", "-"),
    ]);
}

#[test]
fn kinds_and_intervals_are_told_apart() {
    check(&[
        ("btc 1M", "klines:BTCUSDT:1M"),
        ("btc 1m", "klines:BTCUSDT:1m"),
        ("BTC 4 hour", "klines:BTCUSDT:4h"),
        ("bitcoin weekly", "klines:BTCUSDT:1w"),
        ("btc 24h volume", "ticker:BTCUSDT"),
        ("btc 24h candles", "klines:BTCUSDT:1d"),
        ("bitcoin last 30 days", "klines:BTCUSDT:1d"),
        ("bitcoin price november 2026", "ticker:BTCUSDT"),
        ("bitcoin price march 2025", "klines:BTCUSDT:1w"),
        ("sell 50 btc", "orderbook_l2:BTCUSDT"),
        ("should i sell btc", "ticker:BTCUSDT"),
        ("order flow eth 1h", "analytics:order_flow:ETHUSDT"),
        ("monero price", "exchange_info:XMRUSDT"),
        ("btc -usdt", "ticker:BTCUSDC"),
        ("bitcoin ether -bitcoin", "ticker:ETHUSDT"),
    ]);
}

#[test]
fn other_sources_keep_the_lead_where_words_are_unknown() {
    let table = table();
    let coverage = |query: &str| search(&table, query, 1).first().map_or(0.0, |found| found.coverage);
    assert_eq!(coverage("BTCUSDT order book"), 1.0);
    assert!(coverage("BTCUSDT order book parliament housing budget") <= 0.5);
    assert!(coverage("he believes in bitcoin") <= 0.5);
}
