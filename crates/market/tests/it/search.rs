//! Search with as many symbols as the exchange has.

use tribune_core::{Query, Source as _};
use tribune_exchange_sim::{Limits, Simulation};

use crate::support::{MarketSettings, call, exchange, simulation};

const QUERIES: [&str; 12] = [
    "bitcoin",
    "Bitcoin trading volume",
    "ETHUSDT",
    "eth/btc 1h candles",
    "order flow on solana",
    "bitcoin vs ethereum spread",
    "AABQX",
    "aabqxusdt order book",
    "what is the price of doge?",
    "health of the pepe market",
    "nothing that anybody trades",
    "LINK",
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_thousand_symbols_are_searchable() {
    let simulation = Simulation {
        extra_symbols: 2_000,
        extra_levels: 3,
        extra_events_per_second: 0.0,
        history_minutes: 30,
        levels: 50,
        ..simulation()
    };
    let exchange = exchange(simulation, Limits::default()).await;
    let market = MarketSettings::of(&exchange).start().ready().await;
    assert!(market.source.facts().documents.is_some_and(|count| count > 2_000));
    // Some of what is found is live.
    market.live("orderbook_l1:BTCUSDT").await;
    let before = exchange.counts().requests;
    let mut hits = 0;
    for text in QUERIES.iter().cycle().take(300) {
        let query = Query { text: (*text).to_owned(), limit: 10 };
        let found = market.source.search(&query, &call()).await.expect("an answer");
        for hit in found.iter() {
            let length = hit.snippet.chars().count();
            assert!(length <= 200, "{length}: {}", hit.snippet);
            assert!(hit.snippet.contains("SIMULATED") && hit.title.contains("SIMULATED"), "{hit:?}");
            assert!(hit.snippet.contains("As of 20"), "{}", hit.snippet);
            assert!(hit.url.as_deref().is_some_and(|url| url.contains("?at=")), "{:?}", hit.url);
        }
        hits += found.len();
        if *text == "nothing that anybody trades" {
            assert!(found.is_empty(), "{found:?}");
        } else {
            assert!(!found.is_empty(), "{text}");
        }
    }
    assert!(hits > 300);
    // A search sends no request; the clock and the symbols are requested in the background.
    let after = exchange.counts().requests;
    let asked: Vec<&str> = ["/api/v3/depth", "/api/v3/klines", "/api/v3/aggTrades"]
        .into_iter()
        .filter(|path| after.get(*path) != before.get(*path))
        .collect();
    assert!(asked.is_empty(), "{asked:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn snippet_has_figures_of_its_document() {
    let exchange = exchange(simulation(), Limits::default()).await;
    let market = MarketSettings::of(&exchange).start().ready().await;
    market.live("orderbook_l1:BTCUSDT").await;
    for (text, id, words) in [
        ("btc price", "ticker:BTCUSDT", "last price"),
        ("btc order book", "orderbook:BTCUSDT", "best bid"),
        ("btc spread", "orderbook_l1:BTCUSDT", "spread"),
        ("btc slippage", "orderbook_l2:BTCUSDT", "USDT of bids and"),
        ("btc 1h candles", "klines:BTCUSDT:1h", "Fetch it for the 1h candles"),
        ("btc volume profile", "analytics:volume_profile:BTCUSDT", "Fetch it for the volume profile"),
        ("btc liquidity vacuums", "analytics:liquidity_vacuums:BTCUSDT", "Fetch it for the liquidity vacuums"),
        ("btc anomalies", "analytics:anomalies:BTCUSDT", "Fetch it for the market anomalies"),
        ("btc market health", "analytics:health:BTCUSDT", "Fetch it for the market health"),
        ("btc tick size", "exchange_info:BTCUSDT", "price step"),
    ] {
        let query = Query { text: text.to_owned(), limit: 1 };
        let found = market.source.search(&query, &call()).await.expect("an answer");
        let first = &found[0];
        assert_eq!(first.id.as_str(), id, "{text}");
        assert!(first.snippet.contains(words), "{}", first.snippet);
        assert!(id.starts_with("ticker") || !first.snippet.contains("last price"), "{}", first.snippet);
        assert!(first.snippet.ends_with("Z."), "not cut: {}", first.snippet);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn snippet_without_live_book_names_the_document() {
    let exchange = exchange(simulation(), Limits::default()).await;
    let market = MarketSettings::of(&exchange).start().ready().await;
    market.fetch("ticker:SOLUSDT").await.expect("the day is known then");
    for (text, words) in [
        ("sol order book", "Fetch it for the order book."),
        ("sol spread", "Fetch it for the best bid and ask."),
        ("sol slippage", "Fetch it for the order book depth."),
        ("sol recent trades", "Fetch it for the recent trades."),
        ("sol order flow", "Fetch it for the order flow."),
        ("sol anomalies", "Fetch it for the market anomalies."),
        ("sol market health", "Fetch it for the market health."),
    ] {
        let query = Query { text: text.to_owned(), limit: 1 };
        let found = market.source.search(&query, &call()).await.expect("an answer");
        let snippet = &found[0].snippet;
        assert!(snippet.contains(words), "{text}: {snippet}");
        assert!(!snippet.contains("last price"), "of the ticker: {snippet}");
        assert!(snippet.ends_with("Z."), "not cut: {snippet}");
    }
}
