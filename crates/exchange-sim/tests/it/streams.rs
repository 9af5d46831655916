use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio_tungstenite::tungstenite::Message;
use tribune_exchange_sim::{Fault, Limits};

use crate::support::{Book, Socket, get, request, simulated, units, until};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn book_built_from_diffs_matches_the_exchange() {
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
    while compared <= 10 {
        let message = socket.json().await;
        let data = &message["data"];
        if message["stream"] == "btcusdt@bookTicker" {
            tickers.push(data.clone());
            continue;
        }
        assert_eq!(data["U"].as_u64(), Some(previous + 1), "diffs follow one another");
        previous = data["u"].as_u64().expect("u");
        assert!(book.apply(data));
        if data["u"].as_u64() != Some(book.id) {
            // The snapshot is newer than this diff, and than the best levels so far.
            continue;
        }
        // The last best levels up to this id are the book's.
        if let Some(ticker) = tickers.iter().rev().find(|ticker| ticker["u"].as_u64() <= Some(book.id))
            && ticker["u"].as_u64() >= data["U"].as_u64()
        {
            let best = [("b", "B"), ("a", "A")].map(|(price, size)| (units(&ticker[price]), units(&ticker[size])));
            assert_eq!(best, book.top());
            compared += 1;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn subscriptions_can_be_listed_and_ended() {
    let exchange = simulated(Limits::default()).await;
    let mut socket = Socket::open(&exchange, "/ws").await;
    let ask = |method: &str, params: Value, id: u64| json!({"method": method, "params": params, "id": id}).to_string();
    socket.send(&ask("SUBSCRIBE", json!(["ethusdt@trade", "ethusdt@aggTrade"]), 1)).await;
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
async fn every_stream_sends() {
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
        "!ticker@arr",
    ];
    let mut socket = Socket::open(&exchange, &format!("/stream?streams={}", names.join("/"))).await;
    let mut received = std::collections::BTreeMap::new();
    while received.len() < names.len() {
        let message = socket.json().await;
        let name = message["stream"].as_str().expect("a name").to_owned();
        received.insert(name, message["data"].clone());
    }
    assert!(
        received["solusdt@depth5"].get("E").is_none()
            && received["solusdt@depth5"]["bids"].as_array().map(Vec::len) == Some(5)
    );
    assert!(received["solusdt@bookTicker"].get("E").is_none());
    assert_eq!(received["solusdt@kline_1s"]["k"]["x"], true);
    assert_eq!(received["solusdt@kline_1M"]["k"]["i"], "1M");
    assert_eq!(received["solusdt@ticker"].as_object().map(serde_json::Map::len), Some(23));
    assert_eq!(received["!miniTicker@arr"][0]["e"], "24hrMiniTicker");
    assert_eq!(received["!ticker@arr"][0]["e"], "24hrTicker");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn too_many_requests_end_the_connection() {
    let exchange = simulated(Limits::default()).await;
    let mut socket = Socket::open(&exchange, "/ws").await;
    // Far more than five a second, however slowly they are sent; the last ones find the connection closed.
    let request = tokio_tungstenite::tungstenite::Message::text(r#"{"method":"LIST_SUBSCRIPTIONS","id":1}"#);
    for _ in 0..500 {
        if futures::SinkExt::send(&mut socket.0, request.clone()).await.is_err() {
            break;
        }
    }
    let mut answers = 0;
    while socket.text().await.is_some() {
        answers += 1;
    }
    assert!((5..500).contains(&answers), "{answers}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unknown_streams_are_refused() {
    let exchange = simulated(Limits::default()).await;
    let mut socket = Socket::open(&exchange, "/ws").await;
    for (id, name) in ["not asdfads", "btcusdt@nothing", "btcusdt@ticker_1h", "!ticker_1h@arr"].into_iter().enumerate()
    {
        let request = json!({"method": "SUBSCRIBE", "params": ["btcusdt@ticker", name], "id": id});
        socket.send(&request.to_string()).await;
        assert_eq!(
            socket.json().await,
            json!({"error": {"code": 2, "msg": "Invalid request: invalid stream"}, "id": id}),
            "{name}"
        );
    }
    socket.send(r#"{"method":"LIST_SUBSCRIPTIONS","id":9}"#).await;
    assert_eq!(socket.json().await, json!({"result": [], "id": 9}));
    let nonsense = tokio_tungstenite::connect_async(format!("{}/ws/btcusdt@nothing", exchange.stream_url())).await;
    assert!(nonsense.is_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn times_in_microseconds_are_refused() {
    let exchange = simulated(Limits::default()).await;
    for (unit, status) in [("MICROSECOND", 400), ("fortnight", 400), ("millisecond", 200)] {
        let header = format!("X-MBX-TIME-UNIT: {unit}\r\n");
        let reply = request(exchange.addr(), "GET", "/api/v3/time", &header, "").await;
        assert_eq!(reply.status, status, "{unit}");
        if status == 400 {
            assert_eq!(reply.json()["code"], -1194, "{unit}");
        }
        for path in ["ws/btcusdt@trade?", "stream?streams=btcusdt@trade&", "ws?"] {
            let address = format!("{}/{path}timeUnit={unit}", exchange.stream_url());
            let opened = tokio_tungstenite::connect_async(address).await;
            assert_eq!(opened.is_ok(), status == 200, "{path} {unit}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn client_that_answers_pings_stays() {
    let limits = Limits {
        ping_every: Duration::from_millis(20),
        pong_within: crate::support::PATIENCE,
        inbound_per_second: 1_000,
        ..Limits::default()
    };
    let exchange = simulated(limits).await;
    let mut socket = Socket::open(&exchange, "/ws").await;
    for _ in 0..20 {
        let frame = socket.frame().await;
        assert!(matches!(frame, Some(Message::Ping(payload)) if !payload.is_empty()));
    }
}

/// Silence withholds pings too, so nobody is blamed for not answering them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn silent_connection_stays_open() {
    let limits = Limits {
        ping_every: Duration::from_millis(10),
        pong_within: Duration::from_millis(30),
        inbound_per_second: 1_000,
        ..Limits::default()
    };
    let exchange = simulated(limits).await;
    exchange.faults().set(&Fault::Silence { on: true });
    let _socket = Socket::open(&exchange, "/ws/btcusdt@depth@100ms").await;
    let sent = exchange.counts().messages_sent;
    until("a second of diffs is withheld", async || exchange.counts().messages_sent > sent + 10).await;
    assert_eq!(exchange.counts().connections, 1);
}

/// By hand, because the library answers pings by itself.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn client_without_pongs_is_disconnected() {
    let exchange = simulated(Limits {
        ping_every: Duration::from_millis(100),
        pong_within: Duration::from_millis(300),
        ..Limits::default()
    })
    .await;
    let mut stream = tokio::net::TcpStream::connect(exchange.addr()).await.expect("connected");
    let head = "GET /ws HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    stream.write_all(head.as_bytes()).await.expect("sent");
    let mut bytes = Vec::new();
    let read = tokio::time::timeout(crate::support::PATIENCE, stream.read_to_end(&mut bytes)).await;
    let _ = read.expect("it ends");
    let text = String::from_utf8_lossy(&bytes);
    assert!(text.starts_with("HTTP/1.1 101"), "{text}");
    let pings = bytes.windows(2).filter(|pair| *pair == [0x89, 13]).count();
    assert!(pings >= 1, "{pings} pings of thirteen digits");
    assert!(text.ends_with("no pong came in time"), "{text}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connection_announces_its_end() {
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
    let exchange =
        simulated(Limits { streams_per_connection: 2, connects_per_five_minutes: 2, ..Limits::default() }).await;
    let mut socket = Socket::open(&exchange, "/ws/a@trade").await;
    socket.send(r#"{"method":"SUBSCRIBE","params":["b@trade","c@trade"],"id":9}"#).await;
    let answer = socket.json().await;
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(9), &json!(2)));
    let _second = Socket::open(&exchange, "/ws").await;
    let third = tokio_tungstenite::connect_async(format!("{}/ws", exchange.stream_url())).await;
    assert!(third.is_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn closed_candles_match_the_trades() {
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
        // Only a part of the first second was received.
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
            assert_eq!(units(&candle["h"]), within.iter().map(|trade| units(&trade["p"])).max().expect("trades"));
            assert_eq!(units(&candle["l"]), within.iter().map(|trade| units(&trade["p"])).min().expect("trades"));
            assert_eq!(units(&candle["v"]), within.iter().map(|trade| units(&trade["q"])).sum::<i128>());
            let bought =
                within.iter().filter(|trade| trade["m"] == false).map(|trade| units(&trade["q"])).sum::<i128>();
            assert_eq!(units(&candle["V"]), bought);
            compared += within.len();
        }
    }
    assert!(compared > 5, "{compared}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stopped_exchange_frees_its_address() {
    let exchange = simulated(Limits::default()).await;
    let mut socket = Socket::open(&exchange, "/ws/btcusdt@trade").await;
    let address = exchange.addr();
    tokio::time::timeout(crate::support::PATIENCE, exchange.shut_down()).await.expect("it stops");
    while socket.text().await.is_some() {}
    assert!(tokio::net::TcpStream::connect(address).await.is_err());
}
