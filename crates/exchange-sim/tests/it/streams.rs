use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;
use tribune_exchange_sim::Limits;

use crate::support::{Book, Socket, get, simulated, units};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_book_kept_from_diffs_is_the_exchanges() {
    let exchange = simulated(Limits::default()).await;
    let mut socket = Socket::open(&exchange, "/stream?streams=btcusdt@depth@100ms/btcusdt@bookTicker").await;
    let mut tickers: Vec<Value> = Vec::new();
    let mut diffs: Vec<Value> = Vec::new();
    while diffs.len() < 3 {
        let message = socket.json().await;
        match message["stream"].as_str() {
            Some("btcusdt@depth@100ms") => diffs.push(message["data"].clone()),
            Some("btcusdt@bookTicker") => tickers.push(message["data"].clone()),
            other => panic!("{other:?}"),
        }
    }
    let mut book = Book::of(&get(&exchange, "/api/v3/depth?symbol=BTCUSDT&limit=5000").await.json());
    assert!(book.id >= diffs[0]["U"].as_u64().expect("U"));
    diffs.iter().for_each(|diff| assert!(book.apply(diff)));
    let (mut compared, mut previous) = (0, diffs[2]["u"].as_u64().expect("u"));
    let started = Instant::now();
    while started.elapsed() < Duration::from_secs(3) {
        let message = socket.json().await;
        let data = &message["data"];
        if message["stream"] == "btcusdt@bookTicker" {
            tickers.push(data.clone());
            continue;
        }
        assert_eq!(data["U"].as_u64(), Some(previous + 1), "diffs follow one another");
        previous = data["u"].as_u64().expect("u");
        assert!(book.apply(data));
        // The last best levels up to this id are the book's.
        if let Some(ticker) = tickers
            .iter()
            .rev()
            .find(|ticker| ticker["u"].as_u64() <= Some(book.id))
            && ticker["u"].as_u64() >= data["U"].as_u64()
        {
            let best = [("b", "B"), ("a", "A")].map(|(price, size)| (units(&ticker[price]), units(&ticker[size])));
            assert_eq!(best, book.top());
            compared += 1;
        }
    }
    assert!(compared > 10, "{compared}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn subscribing_listing_and_unsubscribing() {
    let exchange = simulated(Limits::default()).await;
    let mut socket = Socket::open(&exchange, "/ws").await;
    let ask = |method: &str, params: Value, id: u64| json!({"method": method, "params": params, "id": id}).to_string();
    socket
        .send(&ask("SUBSCRIBE", json!(["ethusdt@trade", "ethusdt@aggTrade"]), 1))
        .await;
    assert_eq!(socket.json().await, json!({"result": null, "id": 1}));
    let (mut trades, mut aggregates) = (Vec::new(), Vec::new());
    while aggregates.len() < 3 {
        let event = socket.json().await;
        match event["e"].as_str() {
            Some("trade") => trades.push(event),
            Some("aggTrade") => aggregates.push(event),
            other => panic!("{other:?}"),
        }
    }
    let aggregate = &aggregates[1];
    let whole: i128 = trades
        .iter()
        .filter(|trade| (aggregate["f"].as_u64()..=aggregate["l"].as_u64()).contains(&trade["t"].as_u64()))
        .map(|trade| units(&trade["q"]))
        .sum();
    assert_eq!(units(&aggregate["q"]), whole);
    socket.send(&ask("UNSUBSCRIBE", json!(["ethusdt@trade"]), 2)).await;
    socket.send(&ask("LIST_SUBSCRIPTIONS", json!([]), 3)).await;
    let mut answers = Vec::new();
    while answers.len() < 2 {
        let message = socket.json().await;
        if message.get("id").is_some() {
            answers.push(message);
        }
    }
    assert_eq!(answers[1], json!({"result": ["ethusdt@aggTrade"], "id": 3}));
    socket.send("no json").await;
    let refused = loop {
        let message = socket.json().await;
        if message.get("error").is_some() {
            break message;
        }
    };
    assert_eq!(refused["error"]["code"], 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_stream_speaks() {
    let exchange = simulated(Limits::default()).await;
    let names = [
        "solusdt@depth",
        "solusdt@depth@100ms",
        "solusdt@depth5",
        "solusdt@depth20@100ms",
        "solusdt@trade",
        "solusdt@aggTrade",
        "solusdt@bookTicker",
        "solusdt@kline_1s",
        "solusdt@kline_1m",
        "solusdt@kline_1M",
        "solusdt@ticker",
        "solusdt@miniTicker",
        "!miniTicker@arr",
    ];
    let mut socket = Socket::open(&exchange, &format!("/stream?streams={}", names.join("/"))).await;
    let mut heard = std::collections::BTreeMap::new();
    while heard.len() < names.len() {
        let message = socket.json().await;
        let name = message["stream"].as_str().expect("a name").to_owned();
        heard.insert(name, message["data"].clone());
    }
    assert!(
        heard["solusdt@depth5"].get("E").is_none()
            && heard["solusdt@depth5"]["bids"].as_array().map(Vec::len) == Some(5)
    );
    assert!(heard["solusdt@bookTicker"].get("E").is_none());
    assert_eq!(heard["solusdt@kline_1s"]["k"]["x"], true);
    assert_eq!(heard["solusdt@kline_1M"]["k"]["i"], "1M");
    assert_eq!(heard["solusdt@ticker"].as_object().map(serde_json::Map::len), Some(23));
    assert_eq!(heard["!miniTicker@arr"][0]["e"], "24hrMiniTicker");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn talking_too_much_ends_the_connection() {
    let exchange = simulated(Limits::default()).await;
    let mut socket = Socket::open(&exchange, "/ws").await;
    for _ in 0..6 {
        socket.send(r#"{"method":"LIST_SUBSCRIPTIONS","id":1}"#).await;
    }
    let mut answers = 0;
    while socket.text().await.is_some() {
        answers += 1;
    }
    assert_eq!(answers, 5);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pings_are_sent_and_silence_is_not_forgiven() {
    let exchange = simulated(Limits {
        ping_every: Duration::from_millis(250),
        pong_within: Duration::from_secs(2),
        ..Limits::default()
    })
    .await;
    let mut socket = Socket::open(&exchange, "/ws/btcusdt@nothing").await;
    for _ in 0..5 {
        let Some(Message::Ping(payload)) = socket.frame().await else {
            panic!("not a ping")
        };
        assert!(!payload.is_empty());
    }
    // Reading stops, so nothing is answered; the exchange gives up.
    tokio::time::sleep(Duration::from_secs(5)).await;
    let mut frames = 0;
    while let Some(frame) = socket.frame().await {
        frames += 1;
        assert!(frames < 40);
        if matches!(frame, Message::Close(_)) {
            return;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_has_its_age_and_says_so() {
    let exchange = simulated(Limits {
        connection_lifetime: Duration::from_millis(600),
        shutdown_notice: Duration::from_millis(300),
        ..Limits::default()
    })
    .await;
    let mut socket = Socket::open(&exchange, "/ws").await;
    assert_eq!(socket.json().await["e"], "serverShutdown");
    assert_eq!(socket.text().await, None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streams_and_connections_are_limited() {
    let exchange = simulated(Limits {
        streams_per_connection: 2,
        connects_per_five_minutes: 2,
        ..Limits::default()
    })
    .await;
    let mut socket = Socket::open(&exchange, "/ws/a@trade").await;
    socket
        .send(r#"{"method":"SUBSCRIBE","params":["b@trade","c@trade"],"id":9}"#)
        .await;
    let answer = socket.json().await;
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(9), &json!(2)));
    let _second = Socket::open(&exchange, "/ws").await;
    let third = tokio_tungstenite::connect_async(format!("{}/ws", exchange.stream_url())).await;
    assert!(third.is_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn closed_candles_are_the_trades_that_were_heard() {
    let exchange = simulated(Limits::default()).await;
    let mut socket = Socket::open(&exchange, "/stream?streams=btcusdt@trade/btcusdt@kline_1s").await;
    let (mut trades, mut compared, mut candles): (Vec<Value>, usize, usize) = (Vec::new(), 0, 0);
    while candles < 5 {
        let message = socket.json().await;
        if message["data"]["e"] == "trade" {
            trades.push(message["data"].clone());
            continue;
        }
        let candle = &message["data"]["k"];
        assert_eq!(candle["x"], true);
        candles += 1;
        // Of the first second only a part was heard.
        if candles == 1 {
            continue;
        }
        let open = candle["t"].as_i64().expect("t");
        let within: Vec<&Value> = trades
            .iter()
            .filter(|trade| trade["T"].as_i64().is_some_and(|time| time / 1_000 == open / 1_000))
            .collect();
        assert_eq!(candle["n"], within.len());
        if let (Some(first), Some(last)) = (within.first(), within.last()) {
            assert_eq!((&candle["o"], &candle["c"]), (&first["p"], &last["p"]));
            assert_eq!((&candle["f"], &candle["L"]), (&first["t"], &last["t"]));
            assert_eq!(
                units(&candle["h"]),
                within.iter().map(|trade| units(&trade["p"])).max().expect("trades")
            );
            assert_eq!(
                units(&candle["l"]),
                within.iter().map(|trade| units(&trade["p"])).min().expect("trades")
            );
            assert_eq!(
                units(&candle["v"]),
                within.iter().map(|trade| units(&trade["q"])).sum::<i128>()
            );
            let bought = within
                .iter()
                .filter(|trade| trade["m"] == false)
                .map(|trade| units(&trade["q"]))
                .sum::<i128>();
            assert_eq!(units(&candle["V"]), bought);
            compared += within.len();
        }
    }
    assert!(compared > 5, "{compared}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stopped_exchange_is_gone() {
    let exchange = simulated(Limits::default()).await;
    let mut socket = Socket::open(&exchange, "/ws/btcusdt@trade").await;
    let address = exchange.addr();
    tokio::time::timeout(Duration::from_secs(5), exchange.shut_down())
        .await
        .expect("it stops");
    while socket.text().await.is_some() {}
    assert!(tokio::net::TcpStream::connect(address).await.is_err());
}
