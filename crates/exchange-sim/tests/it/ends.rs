//! What is made from a recording's messages says all that they said, to the last one.

use std::time::Duration;

use serde_json::{Value, json};

use crate::oddities::trade;
use crate::replay::{T0, diff, finished, line, replay, wrapped};
use crate::support::{Book, Socket, get};

const STREAMS: [&str; 5] = [
    "btcusdt@depth@100ms",
    "btcusdt@depth5",
    "btcusdt@kline_1m",
    "btcusdt@miniTicker",
    "!ticker@arr",
];

/// The last minute's opening, on which T0 lies 20 seconds.
const OPENED: i64 = T0 - 20_000;

/// What a client hears of a text, by stream.
async fn heard(text: &str, speed: f64) -> Vec<(String, Value)> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("recording.txt");
    std::fs::write(&path, text).expect("written");
    let exchange = replay(vec![path], speed).await;
    let mut socket = Socket::open(&exchange, &format!("/stream?streams={}", STREAMS.join("/"))).await;
    let mut book = None;
    let mut heard = Vec::new();
    for text in socket.texts_until_quiet(Duration::from_millis(1_500)).await {
        let message: Value = serde_json::from_str(&text).expect("JSON");
        let stream = message["stream"].as_str().expect("a stream").to_owned();
        heard.push((stream, message["data"].clone()));
    }
    finished(&exchange).await;
    let end = get(&exchange, "/api/v3/depth?symbol=BTCUSDT&limit=5000").await.json();
    for (_, update) in heard.iter().filter(|(stream, _)| stream == STREAMS[0]) {
        let first = || Book::of(&json!({"lastUpdateId": 10, "bids": [["100", "1"]], "asks": [["101", "1"]]}));
        assert!(book.get_or_insert_with(first).apply(update), "a gap before {update}");
    }
    assert_eq!(book, Some(Book::of(&end)), "the client's book is the exchange's");
    heard
}

fn last<'a>(heard: &'a [(String, Value)], stream: &str) -> &'a Value {
    let (_, last) = heard
        .iter()
        .rfind(|(name, _)| name == stream)
        .unwrap_or_else(|| panic!("{stream} said nothing"));
    last
}

fn update(id: u64, bids: Value) -> Value {
    wrapped("btcusdt@depth", &diff("BTCUSDT", id, id, bids, json!([])))
}

/// Updates once a second and trades, the last of them between two boundaries.
fn recording() -> String {
    let mut text = String::new();
    let book = json!({"lastUpdateId": 10, "bids": [["100", "1"]], "asks": [["101", "1"]]});
    // However a recorder files it, a snapshot is no message of the stream.
    line(&mut text, 0, &wrapped("btcusdt@depth", &book));
    for minute in 0..2 {
        let millis = 60_000 * minute;
        let id = u64::try_from(minute).expect("few");
        line(&mut text, millis + 10, &trade(id + 1, T0 + millis + 10));
    }
    line(&mut text, 61_030, &update(11, json!([["100", "2"]])));
    // Ids without a change are used up all the same.
    line(&mut text, 62_030, &update(12, json!([])));
    line(&mut text, 63_030, &update(13, json!([["99", "3"]])));
    line(&mut text, 63_040, &trade(3, T0 + 63_040));
    text
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_end_of_a_recording_is_told_on_streams_made_from_it() {
    for speed in [0.0, 100.0] {
        let heard = heard(&recording(), speed).await;
        let diff = last(&heard, "btcusdt@depth@100ms");
        assert_eq!((&diff["u"], &diff["E"]), (&json!(13), &json!(T0 + 63_040)));
        assert_eq!(last(&heard, "btcusdt@depth5")["lastUpdateId"], 13);
        let candle = &last(&heard, "btcusdt@kline_1m")["k"];
        assert_eq!(
            (&candle["t"], &candle["n"], &candle["x"]),
            (&json!(OPENED + 60_000), &json!(2), &json!(false))
        );
        assert_eq!(last(&heard, "btcusdt@miniTicker")["v"], "3.00000000");
        assert_eq!(last(&heard, "!ticker@arr")[0]["n"], 3);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_came_before_a_long_silence_is_told_before_it() {
    let mut text = recording();
    let later = 7_200_000;
    line(&mut text, later, &update(14, json!([["98", "1"]])));
    let heard = heard(&text, 100.0).await;
    let ids: Vec<(i64, u64)> = heard
        .iter()
        .filter(|(stream, _)| stream == STREAMS[0])
        .map(|(_, diff)| {
            let time = diff["E"].as_i64().expect("a time") - T0;
            (time, diff["u"].as_u64().expect("an id"))
        })
        .collect();
    assert_eq!(ids, [(61_100, 11), (62_100, 12), (63_040, 13), (later, 14)]);
}
