//! The market's listing, by an exchange of the tests' own.

use std::sync::Mutex;
use std::time::Duration;

use serde_json::{Value, json};
use tribune_core::ErrorKind;

use super::*;
use crate::market::Settings;
use tribune_binance::feed;
use tribune_binance::testing::{Reply, Server, ShiftedClock, until};

fn listed(base: &str) -> Value {
    json!({
        "symbol": format!("{base}USDT"), "status": "TRADING", "baseAsset": base, "quoteAsset": "USDT", "filters": [],
    })
}

fn ticker(base: &str, quote_volume: &str) -> Value {
    json!({
        "symbol": format!("{base}USDT"), "priceChange": "0", "priceChangePercent": "0", "weightedAvgPrice": "1",
        "openPrice": "1", "highPrice": "1", "lowPrice": "1", "lastPrice": "1", "volume": "1",
        "quoteVolume": quote_volume, "openTime": 1, "closeTime": 2, "firstId": 1, "lastId": 1, "count": 1,
    })
}

/// What the exchange says; without tickers it fails when it is asked for them.
struct Said {
    symbols: Vec<Value>,
    tickers: Option<Vec<Value>>,
}

/// A market of which nothing comes but what is asked for, and the exchange's words, which can be changed.
async fn market(symbols: Vec<Value>, tickers: Option<Vec<Value>>) -> (Arc<Market>, Arc<Mutex<Said>>) {
    let said = Arc::new(Mutex::new(Said { symbols, tickers }));
    let says = said.clone();
    let server = Server::start(move |asked| {
        let says = says.lock().expect("said");
        match (asked.path.trim_start_matches("/api/v3/"), &says.tickers) {
            ("exchangeInfo", _) => {
                Reply::json(&json!({"serverTime": 1, "rateLimits": [], "symbols": says.symbols.clone()}))
            }
            ("ticker/24hr", Some(tickers)) => Reply::json(&Value::Array(tickers.clone())),
            _ => Reply::new(503, ""),
        }
    })
    .await;
    let settings = Settings {
        rest: rest::Settings { base_url: server.url.clone(), window: Duration::ZERO, ..rest::Settings::default() },
        feed: feed::Settings::new(server.url.replace("http", "ws")),
        symbols: vec!["SOLUSDT".to_owned()],
        track_top: 0,
    };
    let clock = Arc::new(ShiftedClock::default());
    let market = Market::new(settings, clock).expect("a market");
    let running = market.clone();
    tokio::spawn(async move { running.run(CancellationToken::new()).await });
    until(|| market.known_symbols().is_some()).await;
    (market, said)
}

#[tokio::test]
async fn book_tracked_early_is_ranked_later() {
    let (market, said) = market(vec![listed("BTC"), listed("SOL")], None).await;
    until(|| market.feed.lookup("SOLUSDT").is_some()).await;
    let book = market.feed.lookup("SOLUSDT").expect("pinned");
    assert_eq!((book.is_pinned(), book.rank()), (true, usize::MAX));
    said.lock().expect("said").tickers = Some(vec![ticker("SOL", "10"), ticker("BTC", "1000")]);
    until(|| book.rank() != usize::MAX).await;
    assert_eq!(book.rank(), 1, "behind BTCUSDT");
}

#[tokio::test]
async fn listing_changes_raise_the_revision() {
    let (market, said) = market(vec![listed("BTC"), listed("SOL")], Some(Vec::new())).await;
    market.load().await.expect("loaded").expect("tickers");
    let before = market.revision();
    market.load().await.expect("loaded").expect("tickers");
    assert_eq!(market.revision(), before, "the same again");
    // One goes and another comes; then one is halted.
    said.lock().expect("said").symbols[1] = listed("ADA");
    market.load().await.expect("loaded").expect("tickers");
    assert_eq!(market.revision(), before + 1);
    said.lock().expect("said").symbols[0]["status"] = json!("HALT");
    market.load().await.expect("loaded").expect("tickers");
    assert_eq!(market.revision(), before + 2);
}

#[tokio::test]
async fn unreadable_symbol_is_not_reported_missing() {
    let mut odd_rule = listed("1000SATS");
    odd_rule["filters"] = json!([{"filterType": "NOTIONAL", "minNotional": 5, "maxNotional": "9000"}]);
    let mut unreadable = listed("ODD");
    unreadable["quoteAsset"] = json!(7);
    let (market, _) = market(vec![listed("BTC"), odd_rule, unreadable], Some(Vec::new())).await;
    let symbol = market.symbol("1000satsusdt").await.expect("it is there");
    assert_eq!((symbol.min_notional, symbol.unread_rule.is_some()), (None, true));
    let rules = crate::kinds::info::load(&market, "1000SATSUSDT").await.expect("known");
    let told = &rules.named().figures;
    let reason = "a rule of the exchange could not be read: `minNotional` is not a string";
    assert_eq!((&told["min_notional"], &told["reason"]), (&Value::Null, &json!(reason)));
    let error = market.symbol("oddusdt").await.expect_err("unreadable");
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    let said = "ODDUSDT is listed on the exchange, but its entry cannot be read (`quoteAsset` is not a string)";
    assert!(error.message().starts_with(said), "{error}");
    let error = market.symbol("NONEUSDT").await.expect_err("unknown");
    assert_eq!(error.kind(), ErrorKind::NotFound);
}
