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
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    let silent = flow().await;
    // On a busy machine it may have been found out meanwhile, and was asked for.
    if silent["source"] == "stream" {
        assert!(silent["age_ms"].as_u64() >= Some(1_000), "{silent}");
        let received: jiff::Timestamp = silent["received_time"]
            .as_str()
            .expect("a time")
            .parse()
            .expect("a time");
        let end = silent["end_ms"].as_i64().expect("an end");
        assert!(
            (received.as_millisecond() - end).abs() < 1_000,
            "the window ends there: {silent}"
        );
    }
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
    let exact = told(
        &market,
        "binance_cost_to_trade",
        json!({"symbol": "BTCUSDT", "side": "buy", "notional": "1000"}),
    );
    let level = told(&market, "binance_orderbook_l2", json!({"symbol": "BTCUSDT"}));
    let (exact, level) = futures::join!(exact, level);
    if exact["last_update_id"] == level["last_update_id"] {
        let row = &level["cost_to_trade"]["rows"][0];
        assert_eq!(
            (&row[0], &row[1], &row[2]),
            (&json!("buy"), &json!("1000"), &exact["vwap"])
        );
    }
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
