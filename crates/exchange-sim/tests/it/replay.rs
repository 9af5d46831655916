//! Recordings that can be played: streams, books, candles and what they do not know.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;

use serde_json::{Value, json};
use tribune_exchange_sim::{Exchange, Limits, Mode, Settings};

use crate::recording::{MINUTE_0, Recording, Replay, T0, diff};
use crate::support::{Book, PATIENCE, Socket, get, simulated, units};

const BEYOND: &str = "the last recorded snapshot does not reach this far; the next one repairs the book";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rest_answers_from_the_recording() {
    let mut recording = Recording::default();
    recording.line(0, &json!({"result": null, "id": 1}));
    recording.stream(10, "btcusdt@depth@100ms", &diff("BTCUSDT", 95, 100, &[(100, 1)], &[]));
    recording.stream(11, "ethusdt@depth", &diff("ETHUSDT", 96, 103, &[(7, 10)], &[(9, 3)]));
    let snapshot = |symbol: &str, id: u64, bid: &str, ask: &str| json!({"symbol": symbol, "lastUpdateId": id, "bids": [[bid, "2"]], "asks": [[ask, "4"]]});
    recording.line(30, &snapshot("BTCUSDT", 102, "100.1", "101"));
    recording.line(31, &snapshot("ETHUSDT", 101, "7", "8"));
    recording.stream(110, "ethusdt@depth", &diff("ETHUSDT", 104, 110, &[], &[(8, 0)]));
    let trade = json!({"e": "trade", "E": T0 + 150, "s": "ETHUSDT", "t": 7, "p": "8.25", "q": "0.02", "T": T0 + 149, "m": false});
    recording.stream(150, "ethusdt@trade", &trade);
    let replay = recording.play(0.0).await;
    let time = async || replay.json("time").await["serverTime"].as_i64().expect("a time");
    // Until it begins the clock stands, and the first snapshots are the books.
    assert_eq!((time().await, time().await), (T0, T0));
    assert_eq!(replay.json("depth?symbol=ETHUSDT").await["lastUpdateId"], 101);
    get(&replay.exchange, "/sim/start").await;
    let state = replay.finished().await;
    assert_eq!((&state["lines"], &state["linesPlayed"]), (&json!(7), &json!(7)));
    let eth = replay.get("depth?symbol=ETHUSDT").await;
    assert_eq!(eth.headers["x-tribune-simulated"], "replay");
    assert_eq!(eth.json()["lastUpdateId"], 110);
    assert_eq!(eth.json()["asks"], json!([["9.00000000", "3.00000000"]]));
    let symbol = &replay.json("exchangeInfo?symbol=ETHUSDT").await["symbols"][0];
    assert_eq!((&symbol["baseAsset"], &symbol["quoteAsset"]), (&json!("ETH"), &json!("USDT")));
    let filters = &symbol["filters"];
    assert_eq!((&filters[0]["tickSize"], &filters[1]["stepSize"]), (&json!("0.01000000"), &json!("0.01000000")));
    assert_eq!(filters[0]["maxPrice"], "0.00000000", "bounds are not known");
    assert_eq!(replay.json("trades?symbol=ETHUSDT").await[0]["id"], 7);
    let ticker = replay.json("ticker/24hr?symbol=ETHUSDT").await;
    assert_eq!((&ticker["openTime"], &ticker["count"]), (&json!(T0 + 11), &json!(1)));
    assert_eq!(replay.json("klines?symbol=ETHUSDT&interval=1h").await, json!([]), "the hour began before");
    // At the end the clock stops.
    assert_eq!((time().await, time().await), (T0 + 150, T0 + 150));
}

const SYMBOLS: [&str; 3] = ["ETHUSDT", "BTCUSDT", "ADAUSDT"];

fn streams() -> String {
    let of =
        |symbol: &str| ["depth@100ms", "bookTicker", "trade"].map(|kind| format!("{}@{kind}", symbol.to_lowercase()));
    let all: Vec<String> = SYMBOLS.iter().flat_map(|symbol| of(symbol)).collect();
    format!("/stream?streams={}", all.join("/"))
}

async fn snapshot(exchange: &Exchange, symbol: &str) -> Value {
    get(exchange, &format!("/api/v3/depth?symbol={symbol}&limit=5000")).await.json()
}

/// Records three symbols of a simulation, with a snapshot of each.
async fn record(live: &Exchange) -> (Vec<String>, String) {
    let mut socket = Socket::open(live, &streams()).await;
    let (mut messages, mut text, mut diffs) = (Vec::new(), String::new(), BTreeMap::new());
    while diffs.values().sum::<usize>() < 60 || diffs.len() < SYMBOLS.len() {
        let message = socket.text().await.expect("a message");
        let value: Value = serde_json::from_str(&message).expect("JSON");
        let nanos = (T0 + 10 * i64::try_from(messages.len()).expect("few")) * 1_000_000;
        writeln!(text, "{nanos} {message}").expect("memory");
        messages.push(message);
        if value["data"]["e"] == "depthUpdate" {
            let symbol = value["data"]["s"].as_str().expect("a symbol").to_owned();
            let count: &mut usize = diffs.entry(symbol.clone()).or_default();
            *count += 1;
            if *count == 1 {
                let mut book = snapshot(live, &symbol).await;
                book["symbol"] = json!(symbol);
                writeln!(text, "{nanos} {book}").expect("memory");
            }
        }
    }
    (messages, text)
}

fn best(ticker: &Value) -> [(i128, i128); 2] {
    [("b", "B"), ("a", "A")].map(|(price, size)| (units(&ticker[price]), units(&ticker[size])))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn recorded_simulation_is_repeated_exactly() {
    let (recorded, text) = record(&simulated(Limits::default()).await).await;
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("three.gz");
    let file = std::fs::File::create(&path).expect("a file");
    let mut file = flate2::write::GzEncoder::new(file, flate2::Compression::fast());
    file.write_all(text.as_bytes()).expect("written");
    file.finish().expect("written");
    let mode = Mode::Replay { files: vec![path], speed: f64::INFINITY };
    let settings =
        Settings { mode, limits: Limits { client_wait: PATIENCE, ..Limits::default() }, ..Settings::default() };
    let exchange = tribune_exchange_sim::start(settings).await.expect("it starts");

    let mut socket = Socket::open(&exchange, &streams()).await;
    let (mut played, mut compared) = (Vec::new(), 0);
    let (mut books, mut tickers): (BTreeMap<String, Book>, BTreeMap<String, Value>) = Default::default();
    while played.len() < recorded.len() {
        let message = socket.text().await.expect("a message");
        let value: Value = serde_json::from_str(&message).expect("JSON");
        played.push(message);
        let data = &value["data"];
        let symbol = data["s"].as_str().expect("a symbol").to_owned();
        if data["e"] == "depthUpdate" {
            if !books.contains_key(&symbol) {
                books.insert(symbol.clone(), Book::of(&snapshot(&exchange, &symbol).await));
            }
            let book = books.get_mut(&symbol).expect("a book");
            assert!(book.apply(data), "no gap");
            // The last best levels within the diff are the book's after it.
            let last = tickers.remove(&symbol);
            let last = last.filter(|ticker| ticker["u"].as_u64() >= data["U"].as_u64());
            if let Some(ticker) = last.filter(|_| data["u"].as_u64() == Some(book.id)) {
                assert_eq!(best(&ticker), book.top());
                compared += 1;
            }
        } else if data.get("A").is_some() {
            tickers.insert(symbol, data.clone());
        }
    }
    assert_eq!(played, recorded);
    assert!(compared > 15, "{compared}");
    for (symbol, book) in books {
        assert_eq!(Book::of(&snapshot(&exchange, &symbol).await), book, "{symbol}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn subscription_to_a_symbol_starts_the_replay() {
    let mut recording = Recording::of_btc();
    for index in 1..=10 {
        recording.diff(200 * i64::try_from(index).expect("few"), 10 + index, 10 + index, &[], &[]);
    }
    let replay = recording.play(20.0).await;
    let mut choosing = Socket::open(&replay.exchange, "/ws/!miniTicker@arr").await;
    choosing.send(r#"{"method":"LIST_SUBSCRIPTIONS","id":1}"#).await;
    assert_eq!(choosing.json().await["result"], json!(["!miniTicker@arr"]));
    let state = async || get(&replay.exchange, "/sim/state").await.json()["replay"].clone();
    assert_eq!(state().await["started"], false);
    let mut socket = Socket::open(&replay.exchange, "/ws/btcusdt@depth@100ms").await;
    socket.json().await;
    for index in 1..=10 {
        let update = socket.json().await;
        assert_eq!(update["u"], 10 + index);
        let now = replay.json("time").await["serverTime"].as_i64().expect("a time");
        assert!(now >= T0 + 200 * index, "a message never comes before its time");
    }
    assert_eq!(state().await["started"], true);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn full_speed_lets_clients_fetch_the_first_snapshot() {
    let mut recording = Recording::of_btc();
    for id in 11..200 {
        recording.diff(i64::try_from(id).expect("few") * 100, id, id, &[(100, id)], &[]);
    }
    let replay = recording.play(0.0).await;
    let mut socket = Socket::open(&replay.exchange, "/ws/btcusdt@depth@100ms").await;
    socket.json().await;
    let mut book = Book::of(&snapshot(&replay.exchange, "BTCUSDT").await);
    assert_eq!(book.id, 10, "the player waits");
    while book.id < 199 {
        assert!(book.apply(&socket.json().await), "no gap");
    }
    replay.finished().await;
    assert_eq!(Book::of(&snapshot(&replay.exchange, "BTCUSDT").await), book);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn derived_streams_send_all_that_was_recorded() {
    let names = ["btcusdt@depth@100ms", "btcusdt@depth5", "btcusdt@kline_1m", "btcusdt@miniTicker", "!ticker@arr"];
    let mut recording = Recording::default();
    recording.snapshot(0, 10, 7, 7);
    let slow = |recording: &mut Recording, after: i64, id: u64, bids: &[(u64, u64)]| {
        recording.stream(after, "btcusdt@depth", &diff("BTCUSDT", id, id, bids, &[]));
    };
    recording.trade(10, 1);
    recording.trade(60_010, 2);
    slow(&mut recording, 61_030, 11, &[(100, 2)]);
    // An update without a change uses its id all the same.
    slow(&mut recording, 62_030, 12, &[]);
    slow(&mut recording, 63_030, 13, &[(99, 3)]);
    recording.trade(63_040, 3);
    for speed in [0.0, 500.0] {
        let replay = recording.play(speed).await;
        let mut socket = Socket::open(&replay.exchange, &format!("/stream?streams={}", names.join("/"))).await;
        replay.finished().await;
        let mut received: BTreeMap<String, Vec<Value>> = BTreeMap::new();
        for _ in 0..replay.exchange.counts().messages_sent {
            let message = socket.json().await;
            let stream = message["stream"].as_str().expect("a stream").to_owned();
            received.entry(stream).or_default().push(message["data"].clone());
        }
        let last = |stream: &str| received[stream].last().expect("a message").clone();
        let mut book = Book::of(&json!({"lastUpdateId": 10, "bids": [], "asks": []}));
        assert!(received[names[0]].iter().all(|update| book.apply(update)), "no gap");
        let update = last(names[0]);
        assert_eq!((&update["u"], &update["E"]), (&json!(13), &json!(T0 + 63_040)));
        assert_eq!(last(names[1])["lastUpdateId"], 13);
        let candle = &last(names[2])["k"];
        assert_eq!((&candle["t"], &candle["n"], &candle["x"]), (&json!(MINUTE_0), &json!(2), &json!(false)));
        assert_eq!(last(names[3])["v"], "3.00000000");
        assert_eq!(last(names[4])[0]["n"], 3);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cut_snapshot_is_not_shown_beyond_its_end() {
    let gone = |prices: std::ops::Range<u64>| -> Vec<(u64, u64)> { prices.map(|price| (price, 0)).collect() };
    let mut recording = Recording::default();
    recording.snapshot(0, 10, 10, 7);
    recording.diff(100, 11, 11, &[(50, 3), (49, 3)], &[(500, 1)]);
    assert_eq!(recording.played().await.depth().await, (10, 8), "only the cut side hides its new levels");
    recording.diff(200, 12, 12, &gone(98..101), &[]);
    assert_eq!(recording.played().await.depth().await, (5, 8), "seven bids are known");
    recording.diff(300, 13, 13, &gone(95..98), &[]);
    let replay = recording.played().await;
    assert_eq!(replay.refusal("depth?symbol=BTCUSDT").await, BEYOND, "four bids are known");
    assert_eq!(replay.json("ticker/bookTicker?symbol=BTCUSDT").await["bidPrice"], "94.00000000");
    recording.diff(400, 14, 14, &gone(91..95), &[]);
    let replay = recording.played().await;
    assert_eq!(replay.refusal("ticker/bookTicker?symbol=BTCUSDT").await, BEYOND);
    recording.snapshot(500, 15, 20, 20);
    assert_eq!(recording.played().await.depth().await, (20, 20));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn time_before_the_recording_has_no_candles_and_windows() {
    let mut recording = Recording::of_btc();
    recording.trades(66..=150);
    let replay = recording.played().await;
    assert_eq!(replay.candles("1m").await, [(60_000, 14), (120_000, 30), (180_000, 30), (240_000, 11)]);
    let ticker = replay.json("ticker/24hr?symbol=BTCUSDT").await;
    assert_eq!((&ticker["openTime"], &ticker["count"], &ticker["firstId"]), (&json!(T0 + 1), &json!(85), &json!(66)),);
    let average = replay.refusal("avgPrice?symbol=BTCUSDT").await;
    assert_eq!(average, "the recording does not have every trade of the last five minutes");
    let window =
        |start: i64, end: i64| format!("aggTrades?symbol=BTCUSDT&startTime={}&endTime={}", T0 + start, T0 + end);
    assert_eq!(replay.json(&window(132_000, 140_000)).await.as_array().map(Vec::len), Some(5));
    let known = format!("it has those from {} on", T0 + 1);
    assert!(replay.refusal(&window(-1, 140_000)).await.contains(&known));
    let by_id = replay.json("aggTrades?symbol=BTCUSDT&fromId=149").await;
    assert_eq!(by_id.as_array().map(Vec::len), Some(2));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn trades_recorded_twice_count_once() {
    let mut recording = Recording::of_btc();
    for id in 1..=60 {
        recording.trades(std::iter::once(id));
        recording.trades(std::iter::once(id.saturating_sub(2).max(1)));
    }
    let replay = recording.played().await;
    let trades = replay.json("trades?symbol=BTCUSDT").await;
    let ids: Vec<u64> = trades.as_array().expect("trades").iter().filter_map(|trade| trade["id"].as_u64()).collect();
    assert_eq!(ids, (1..=60).collect::<Vec<u64>>());
    assert_eq!(replay.candles("1m").await[0], (0, 30));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn average_covers_three_hundred_seconds() {
    let mut recording = Recording::of_btc();
    // The first is 300.001 seconds before the end, the second 300.
    for (id, after, price) in [(1, 2, "9000"), (2, 3, "100"), (3, 150_000, "200"), (4, 300_003, "600")] {
        recording.trade_at(after, id, price);
    }
    let average = recording.played().await.json("avgPrice?symbol=BTCUSDT").await;
    assert_eq!(average, json!({"mins": 5, "price": "300.00000000", "closeTime": T0 + 300_003}));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_trades_there_is_no_price() {
    let replay = Recording::of_btc().played().await;
    for request in ["trades", "aggTrades", "ticker/price", "ticker/24hr"] {
        let reason = replay.refusal(&format!("{request}?symbol=BTCUSDT")).await;
        assert_eq!(reason, "the recording has no trades of this symbol so far", "{request}");
    }
    for request in ["ticker/price", "ticker/24hr"] {
        assert_eq!(replay.json(request).await, json!([]), "{request} of all symbols");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn recorded_exchange_info_is_passed_on() {
    let entry = json!({"symbol": "BTCUSDT", "status": "BREAK", "baseAsset": "B", "quoteAsset": "TCUSDT",
        "filters": [{"filterType": "PRICE_FILTER", "tickSize": "0.1"}], "new": [1]});
    let other =
        json!({"symbol": "ETHBTC", "status": "TRADING", "baseAsset": "ETH", "quoteAsset": "BTC", "filters": []});
    let mut recording = Recording::of_btc();
    recording.line(2, &json!({"timezone": "UTC", "serverTime": T0, "rateLimits": [], "symbols": [entry, other]}));
    let replay = recording.played().await;
    assert_eq!(replay.json("exchangeInfo").await["symbols"], json!([entry]), "only what is recorded");
}

/// Numbers at the limits of what is accepted overflow nowhere.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn extreme_numbers_do_no_harm() {
    let (huge, id) = ("99999999999999999999.99999999", u64::MAX >> 5);
    let mut recording = Recording::of_btc();
    let trade = json!({"s": "BTCUSDT", "t": id, "p": "92233720368.54775807", "q": huge, "T": T0 + 200, "m": true});
    recording.stream(200, "btcusdt@trade", &trade);
    let aggregate = json!({"s": "BTCUSDT", "a": id, "p": "92233720368.54775807", "q": huge, "f": 0, "l": id, "T": 9_999_999_999_999i64, "m": true});
    recording.stream(200, "btcusdt@aggTrade", &aggregate);
    let update = json!({"s": "BTCUSDT", "U": 11, "u": id, "b": [["92233720368.54775807", huge]], "a": [["0", huge]]});
    recording.stream(200, "btcusdt@depth", &update);
    let replay = recording.played().await;
    for request in [
        "depth?symbol=BTCUSDT",
        "trades?symbol=BTCUSDT",
        "aggTrades?symbol=BTCUSDT&fromId=0",
        "klines?symbol=BTCUSDT&interval=1M&startTime=0",
        "klines?symbol=BTCUSDT&interval=1s&endTime=9223372036854775807&startTime=0",
        "klines?symbol=BTCUSDT&interval=1M&startTime=9223372036854775807",
        "ticker/24hr?symbol=BTCUSDT",
        "exchangeInfo?symbol=BTCUSDT",
    ] {
        let reply = replay.get(request).await;
        assert_eq!(reply.status, 200, "{request}: {}", reply.body);
        reply.json();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_are_played_together() {
    let mut eth = Recording::default();
    eth.stream(5, "ethusdt@depth", &diff("ETHUSDT", 1, 1, &[(7, 1)], &[]));
    eth.snapshot(6, 1, 3, 3);
    let replay = Replay::start(&[&Recording::of_btc().0, &eth.0], 0.0).await.expect("it starts");
    get(&replay.exchange, "/sim/start").await;
    assert_eq!(replay.finished().await["linesPlayed"], 4);
    for (symbol, id) in [("BTCUSDT", 10), ("ETHUSDT", 1)] {
        assert_eq!(replay.json(&format!("depth?symbol={symbol}")).await["lastUpdateId"], id);
    }
}
