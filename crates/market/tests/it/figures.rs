//! What the tools' figures say of themselves while things go wrong.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tribune_core::{Source as _, SourceStatus};
use tribune_exchange_sim::{Fault, Limits};

use crate::support::{Market, MarketSettings, call, exchange, simulation, until};

async fn told(market: &Market, tool: &str, arguments: Value) -> Value {
    let tools = Arc::clone(&market.source).tools();
    let tool = tools.iter().find(|known| known.spec().name == tool).expect("a tool");
    let arguments = arguments.as_object().cloned().expect("an object");
    let output = tool.call(arguments, &call()).await.expect("an answer");
    serde_json::from_str(output.json()).expect("JSON")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn order_flow_ends_where_the_stream_was_last_heard() {
    let exchange = exchange(simulation(), Limits::default()).await;
    let market = MarketSettings::of(&exchange).start().ready().await;
    market.live("orderbook:BTCUSDT").await;
    let flow = || {
        told(
            &market,
            "binance_get_order_flow",
            json!({"symbol": "BTCUSDT", "window_seconds": 10}),
        )
    };
    until("ten seconds of the stream", || async {
        flow().await["source"] == "stream"
    })
    .await;
    exchange.faults().set(&Fault::Silence { on: true });
    // Until the silence is found out, every answer of the stream ends where it was last heard.
    until("an answer that has grown old", || async {
        let silent = flow().await;
        assert_eq!(
            silent["source"], "stream",
            "found out before it was seen to be old: {silent}"
        );
        let received = silent["received_time"]
            .as_str()
            .and_then(|time| time.parse::<jiff::Timestamp>().ok());
        let (received, end) = (received.expect("a time").as_millisecond(), silent["end_ms"].as_i64());
        assert!((received - end.expect("an end")).abs() < 1_000, "{silent}");
        silent["age_ms"].as_u64() >= Some(700)
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_exchange_that_asks_for_a_pause_still_streams_its_prices() {
    let exchange = exchange(simulation(), Limits::default()).await;
    let mut settings = MarketSettings::of(&exchange);
    settings.rest.window = Duration::ZERO;
    let market = settings.start().ready().await;
    market.live("orderbook:BTCUSDT").await;
    exchange.faults().set(&Fault::Reject {
        status: 418,
        retry_after_secs: Some(120),
        count: None,
    });
    until("the ticker of the streams", || async {
        let ticker = told(&market, "binance_get_ticker", json!({"symbol": "BTCUSDT"})).await;
        ticker["source"] == "stream"
    })
    .await;
    let ticker = told(&market, "binance_get_ticker", json!({"symbol": "BTCUSDT"})).await;
    assert!(
        ticker["last_price"].is_string() && ticker["best_bid"]["price"].is_string(),
        "{ticker}"
    );
    assert!(ticker["trades"].is_null(), "the streams do not count them: {ticker}");
    assert!(
        ticker["reason"]
            .as_str()
            .is_some_and(|reason| reason.contains("not counted")),
        "{ticker}"
    );
    assert!(
        ticker["note"]
            .as_str()
            .is_some_and(|note| note.contains("try again in")),
        "{ticker}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_trades_cost_is_told_without_being_asked() {
    let exchange = exchange(simulation(), Limits::default()).await;
    let market = MarketSettings::of(&exchange).start().ready().await;
    let book = market.live("orderbook_l2:BTCUSDT").await;
    assert!(
        book.text.contains("Buying now costs, in basis points against mid"),
        "{}",
        book.text
    );
    assert!(
        book.text.contains("cost_to_trade (side,notional_quote,vwap"),
        "{}",
        book.text
    );
    until("both of one book", || async {
        let order = json!({"symbol": "BTCUSDT", "side": "buy", "notional": "1000"});
        let exact = told(&market, "binance_cost_to_trade", order).await;
        let level = told(&market, "binance_orderbook_l2", json!({"symbol": "BTCUSDT"})).await;
        let row = &level["cost_to_trade"]["rows"][0];
        assert_eq!((&row[0], &row[1]), (&json!("buy"), &json!("1000")));
        let is_same_book = exact["last_update_id"] == level["last_update_id"];
        assert!(!is_same_book || row[2] == exact["vwap"], "{row} and {exact}");
        is_same_book
    })
    .await;
    let flow = told(&market, "binance_get_order_flow", json!({"symbol": "BTCUSDT"})).await;
    let impact = &flow["price_impact"];
    assert!(
        impact["kyle_lambda"].is_null() && impact["reason"].is_string(),
        "watched for too short: {flow}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_that_keep_failing_are_a_trouble_of_the_source() {
    let exchange = exchange(simulation(), Limits::default()).await;
    let mut settings = MarketSettings::of(&exchange);
    settings.rest.window = Duration::ZERO;
    let market = settings.start().ready().await;
    exchange.faults().set(&Fault::Reject {
        status: 503,
        retry_after_secs: None,
        count: None,
    });
    until("the trouble is told", || async {
        let _ = market.fetch("klines:BTCUSDT:1h").await;
        matches!(market.source.status(), SourceStatus::Degraded(why) if why.contains("requests") && why.contains("503"))
    })
    .await;
    exchange.faults().clear();
    until("it is over", || async {
        let _ = market.fetch("klines:BTCUSDT:1h").await;
        matches!(market.source.status(), SourceStatus::Ready)
    })
    .await;
}
