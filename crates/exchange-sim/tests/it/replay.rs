use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};
use tribune_exchange_sim::{Exchange, Limits, Mode, Settings};

use crate::support::{Book, Socket, get, simulated, units};

pub const T0: i64 = 1_750_000_040_000;

pub async fn replay(files: Vec<PathBuf>, speed: f64) -> Exchange {
    let settings = Settings {
        mode: Mode::Replay { files, speed },
        ..Settings::default()
    };
    tribune_exchange_sim::start(settings).await.expect("it starts")
}

pub async fn finished(exchange: &Exchange) -> Value {
    for _ in 0..200 {
        let state = get(exchange, "/sim/state").await.json();
        if state["replay"]["finished"] == true {
            return state;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("the recording does not end");
}

pub fn diff(symbol: &str, first: u64, last: u64, bids: Value, asks: Value) -> Value {
    json!({"e": "depthUpdate", "E": T0, "s": symbol, "U": first, "u": last, "b": bids, "a": asks})
}

pub fn line(text: &mut String, millis: i64, message: &Value) {
    writeln!(text, "{} {message}", (T0 + millis) * 1_000_000).expect("it is memory");
}

pub fn wrapped(stream: &str, data: &Value) -> Value {
    json!({"stream": stream, "data": data})
}

/// Two symbols in one file with ids of the same size, bare and wrapped events, and lines that are none.
fn small_recording() -> String {
    let mut text = String::new();
    let fast = "btcusdt@depth@100ms";
    line(&mut text, 0, &json!({"result": null, "id": 1}));
    line(
        &mut text,
        10,
        &wrapped(fast, &diff("BTCUSDT", 95, 100, json!([["100.10", "1.5"]]), json!([]))),
    );
    line(
        &mut text,
        11,
        &diff("ETHUSDT", 96, 103, json!([["7.5", "10"]]), json!([["8.25", "3"]])),
    );
    text.push_str("garbage\n");
    line(
        &mut text,
        30,
        &json!({"lastUpdateId": 102, "bids": [["100.10", "2"], ["99.5", "1"]], "asks": [["101", "4"]]}),
    );
    line(
        &mut text,
        31,
        &json!({"lastUpdateId": 101, "bids": [["7.5", "9"]], "asks": [["8", "2"], ["8.25", "3"]]}),
    );
    line(
        &mut text,
        40,
        &wrapped(
            "btcusdt@depth5@100ms",
            &json!({"lastUpdateId": 500, "bids": [["1", "1"]], "asks": []}),
        ),
    );
    line(
        &mut text,
        100,
        &wrapped(
            fast,
            &diff(
                "BTCUSDT",
                101,
                105,
                json!([["100.10", "0"]]),
                json!([["100.90", "0.25"]]),
            ),
        ),
    );
    line(
        &mut text,
        110,
        &diff("ETHUSDT", 104, 110, json!([]), json!([["8", "0"]])),
    );
    let foreign = json!({"lastUpdateId": 106, "bids": [["5000", "1"]], "asks": [["5001", "1"]]});
    line(&mut text, 115, &foreign);
    line(
        &mut text,
        120,
        &wrapped(fast, &diff("BTCUSDT", 107, 107, json!([["99.5", "0"]]), json!([]))),
    );
    line(
        &mut text,
        150,
        &json!({"e": "trade", "E": T0, "s": "ETHUSDT", "t": 7, "p": "8.25", "q": "2", "T": T0 + 149, "m": false, "M": true}),
    );
    line(
        &mut text,
        160,
        &json!({"e": "aggTrade", "E": T0, "s": "BTCUSDT", "a": 3, "p": "100.9", "q": "0.25", "f": 11, "l": 12, "T": T0 + 159, "m": false, "M": true}),
    );
    text.push_str("1750000040170000000 {\"e\":\"trade\",\"s\":\"BTCUSDT\"}\n");
    text
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rest_answers_from_what_was_recorded() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("small.txt");
    std::fs::write(&path, small_recording()).expect("written");
    let exchange = replay(vec![path], 0.0).await;
    let api = async |path: &str| get(&exchange, &format!("/api/v3/{path}")).await;
    // Before it begins the clock stands and the first snapshots are there.
    let time = async || api("time").await.json()["serverTime"].as_i64().expect("a time");
    assert_eq!((time().await, time().await), (T0, T0));
    assert_eq!(api("depth?symbol=ETHUSDT").await.json()["lastUpdateId"], 101);
    get(&exchange, "/sim/start").await;
    let state = finished(&exchange).await;
    assert_eq!(
        (&state["replay"]["linesMalformed"], &state["mode"]),
        (&json!(2), &json!("replay"))
    );
    let btc = api("depth?symbol=BTCUSDT").await;
    assert_eq!(btc.headers["x-tribune-simulated"], "replay");
    assert_eq!(btc.status, 503, "there is a gap at 106");
    let eth = api("depth?symbol=ETHUSDT").await.json();
    assert_eq!(eth["lastUpdateId"], 110);
    assert_eq!(eth["asks"], json!([["8.25000000", "3.00000000"]]));
    let info = api("exchangeInfo?symbol=BTCUSDT").await.json();
    assert_eq!(
        (&info["symbols"][0]["baseAsset"], &info["symbols"][0]["quoteAsset"]),
        (&json!("BTC"), &json!("USDT"))
    );
    assert_eq!(info["symbols"][0]["filters"][0]["tickSize"], "0.10000000");
    assert_eq!(info["symbols"][0]["filters"][1]["stepSize"], "0.01000000");
    assert_eq!(api("trades?symbol=ETHUSDT").await.json()[0]["id"], 7);
    assert_eq!(api("aggTrades?symbol=BTCUSDT").await.json()[0]["a"], 3);
    let ticker = api("ticker/24hr?symbol=BTCUSDT").await.json();
    assert_eq!(
        (&ticker["openTime"], &ticker["count"], &ticker["lastPrice"]),
        (&json!(T0 + 10), &json!(2), &json!("100.90000000"))
    );
    assert_eq!(
        api("klines?symbol=ETHUSDT&interval=1h").await.json(),
        json!([]),
        "an hour that is not whole"
    );
    assert!(time().await >= T0 + 170);
}

const SYMBOLS: [&str; 3] = ["ETHUSDT", "BTCUSDT", "ADAUSDT"];

fn streams() -> String {
    let of =
        |symbol: &str| ["depth@100ms", "bookTicker", "trade"].map(|kind| format!("{}@{kind}", symbol.to_lowercase()));
    let all: Vec<String> = SYMBOLS.iter().flat_map(|symbol| of(symbol)).collect();
    format!("/stream?streams={}", all.join("/"))
}

async fn snapshot(exchange: &Exchange, symbol: &str) -> String {
    get(exchange, &format!("/api/v3/depth?symbol={symbol}&limit=5000"))
        .await
        .body
}

/// What a simulation says of three symbols, with snapshots in between that do not say whose they are.
async fn record(live: &Exchange) -> (Vec<String>, String) {
    let mut socket = Socket::open(live, &streams()).await;
    let (mut messages, mut text, mut diffs) = (Vec::new(), String::new(), BTreeMap::new());
    while diffs.values().sum::<usize>() < 60 {
        let message = socket.text().await.expect("a message");
        let value: Value = serde_json::from_str(&message).expect("JSON");
        let nanos = (T0 + 10 * i64::try_from(messages.len()).expect("few")) * 1_000_000;
        writeln!(text, "{nanos} {message}").expect("it is memory");
        messages.push(message);
        if value["data"]["e"] == "depthUpdate" {
            let symbol = value["data"]["s"].as_str().expect("a symbol").to_owned();
            let count: &mut usize = diffs.entry(symbol.clone()).or_default();
            *count += 1;
            if *count == 2 {
                writeln!(text, "{nanos} {}", snapshot(live, &symbol).await).expect("it is memory");
            }
        }
    }
    (messages, text)
}

fn best(ticker: &Value) -> [(i128, i128); 2] {
    [("b", "B"), ("a", "A")].map(|(price, size)| (units(&ticker[price]), units(&ticker[size])))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_simulation_said_comes_again_and_keeps_true_books() {
    let (recorded, text) = record(&simulated(Limits::default()).await).await;
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("three.gz");
    let file = std::fs::File::create(&path).expect("a file");
    let mut file = flate2::write::GzEncoder::new(file, flate2::Compression::fast());
    file.write_all(text.as_bytes()).expect("written");
    file.finish().expect("written");

    let exchange = replay(vec![path], f64::INFINITY).await;
    let mut socket = Socket::open(&exchange, &streams()).await;
    let (mut played, mut compared) = (Vec::new(), 0);
    let (mut books, mut tickers): (BTreeMap<String, Book>, BTreeMap<String, Value>) =
        (BTreeMap::new(), BTreeMap::new());
    while played.len() < recorded.len() {
        let message = socket.text().await.expect("a message");
        let value: Value = serde_json::from_str(&message).expect("JSON");
        played.push(message);
        let data = &value["data"];
        let symbol = data["s"].as_str().expect("a symbol").to_owned();
        if data["e"] == "depthUpdate" {
            if !books.contains_key(&symbol) {
                let snapshot = serde_json::from_str(&snapshot(&exchange, &symbol).await).expect("JSON");
                books.insert(symbol.clone(), Book::of(&snapshot));
            }
            let book = books.get_mut(&symbol).expect("a book");
            assert!(book.apply(data), "no gap");
            // The last best levels within the diff are the book's after it.
            let last = tickers
                .remove(&symbol)
                .filter(|ticker| ticker["u"].as_u64() >= data["U"].as_u64());
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
    finished(&exchange).await;
    for (symbol, book) in books {
        let end = serde_json::from_str(&snapshot(&exchange, &symbol).await).expect("JSON");
        assert_eq!(Book::of(&end), book, "{symbol}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_recording_is_played_at_its_pace() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("small.txt");
    let mut text = String::new();
    for index in 0..11 {
        let event = diff("BTCUSDT", 10 + index, 10 + index, json!([]), json!([]));
        line(&mut text, 200 * i64::try_from(index).expect("few"), &event);
    }
    std::fs::write(&path, text).expect("written");
    let exchange = replay(vec![path], 4.0).await;
    let _choosing = Socket::open(&exchange, "/ws/!miniTicker@arr").await;
    tokio::time::sleep(Duration::from_millis(400)).await;
    assert_eq!(get(&exchange, "/sim/state").await.json()["replay"]["started"], false);
    let mut socket = Socket::open(&exchange, "/ws/btcusdt@depth@100ms").await;
    socket.json().await;
    let started = std::time::Instant::now();
    for _ in 0..10 {
        socket.json().await;
    }
    let took = started.elapsed();
    assert!(
        (Duration::from_millis(400)..Duration::from_millis(4_000)).contains(&took),
        "{took:?}"
    );
    let nothing = tribune_exchange_sim::start(Settings {
        mode: Mode::Replay {
            files: vec![folder.path().join("none.gz")],
            speed: 1.0,
        },
        ..Settings::default()
    });
    assert!(nothing.await.is_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hostile_recording_harms_nobody() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("hostile.txt");
    let (huge, id) = ("99999999999999999999.99999999", u64::MAX >> 5);
    let mut text = small_recording();
    for message in [
        json!({"e": "trade", "s": "ETHUSDT", "t": id, "p": "92233720368.54775807", "q": huge, "T": T0 + 200, "m": true}),
        json!({"e": "aggTrade", "s": "BTCUSDT", "a": id, "p": "92233720368.54775807", "q": huge, "f": 0, "l": id, "T": T0 + 200, "m": true}),
        json!({"e": "aggTrade", "s": "BTCUSDT", "a": id + 1, "p": "1", "q": huge, "f": 0, "l": id, "T": 0, "m": true}),
        diff("BTCUSDT", 0, u64::MAX, json!([[huge, huge]]), json!([])),
        diff(
            "ETHUSDT",
            111,
            id,
            json!([["92233720368.54775807", huge]]),
            json!([["0", huge]]),
        ),
        json!({"lastUpdateId": -1, "bids": [], "asks": []}),
        json!({"e": "kline", "s": "ETHUSDT", "k": {"t": 0, "i": "1M", "f": -1, "L": -1, "o": "0", "c": "0", "h": "0", "l": huge, "v": huge, "n": 0, "q": huge, "V": huge, "Q": huge}}),
        json!({"e": "24hrMiniTicker", "E": 0, "s": "ETHUSDT", "c": "0", "o": "0", "h": "0", "l": "0", "v": "0", "q": huge}),
        json!([{"e": "24hrMiniTicker"}]),
        json!({"stream": "@", "data": {"e": 5}}),
        json!({"stream": "", "data": []}),
        json!({}),
    ] {
        line(&mut text, 200, &message);
    }
    text.push_str("9223372036854775807 {}\n170 {}\n1750000040200000000 {\"stream\":\"x@depth5\",\"data\":{\"lastUpdateId\":1,\"bids\":[[]],\"asks\":[]}}\n");
    std::fs::write(&path, text).expect("written");
    let exchange = replay(vec![path], 0.0).await;
    get(&exchange, "/sim/start").await;
    finished(&exchange).await;
    for symbol in ["BTCUSDT", "ETHUSDT"] {
        for path in [
            format!("depth?symbol={symbol}"),
            format!("trades?symbol={symbol}"),
            format!("aggTrades?symbol={symbol}&startTime=0"),
            format!("klines?symbol={symbol}&interval=1M&startTime=0"),
            format!("klines?symbol={symbol}&interval=1s&endTime=9223372036854775807&startTime=0"),
            format!("klines?symbol={symbol}&interval=1M&startTime=9223372036854775807"),
            format!("ticker/24hr?symbol={symbol}"),
            format!("ticker?symbol={symbol}&windowSize=7d"),
            format!("avgPrice?symbol={symbol}"),
            format!("exchangeInfo?symbol={symbol}"),
        ] {
            let reply = get(&exchange, &format!("/api/v3/{path}")).await;
            // Of the one symbol updates and single trades are missing, and of both there are no five minutes and no trades
            // of 1970.
            let unknown = ["depth?symbol=BTCUSDT", "trades?symbol=BTCUSDT"].contains(&path.as_str())
                || path.starts_with("avgPrice")
                || path.starts_with("aggTrades");
            let expected = if unknown { 503 } else { 200 };
            assert_eq!(reply.status, expected, "{path}: {}", reply.body);
            reply.json();
        }
    }
}
