//! What a recording does not know is not told: the answers say so instead.

use std::time::Duration;

use serde_json::{Value, json};
use tribune_exchange_sim::Exchange;

use crate::replay::{T0, diff, finished, line, replay, wrapped};
use crate::support::{Socket, get};

const BEYOND: &str = "the recording does not know the book this far; the next recorded snapshot mends it";

const NO_TICKER: &str = "the recording has no ticker, no candle and no trade of this symbol so far";

/// An exchange that plays a text as fast as it can, once it is told to.
struct Played {
    exchange: Exchange,
    _folder: tempfile::TempDir,
}

async fn of(text: &str) -> Played {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("recording.txt");
    std::fs::write(&path, text).expect("written");
    Played {
        exchange: replay(vec![path], 0.0).await,
        _folder: folder,
    }
}

impl Played {
    async fn to_its_end(&self) {
        get(&self.exchange, "/sim/start").await;
        finished(&self.exchange).await;
    }

    /// `(status, body)` of a request about the one symbol there is.
    async fn ask(&self, endpoint: &str) -> (u16, Value) {
        let reply = get(&self.exchange, &format!("/api/v3/{endpoint}?symbol=BTCUSDT")).await;
        (reply.status, reply.json())
    }

    /// How many bids and asks there are, or why they are not known.
    async fn depth(&self) -> Result<(usize, usize), String> {
        match self.ask("depth").await {
            (200, book) => Ok(["bids", "asks"]
                .map(|side| book[side].as_array().expect("levels").len())
                .into()),
            (status, error) => {
                assert_eq!((status, &error["code"]), (503, &json!(-1000)));
                Err(error["msg"].as_str().expect("a text").to_owned())
            }
        }
    }

    /// Best bid and ask, of the 24 hours too if there are any; or why they are not known.
    async fn best(&self) -> Result<(String, String), String> {
        let best = |ticker: &Value| {
            let [bid, ask] = ["bidPrice", "askPrice"].map(|field| ticker[field].as_str().expect("a text").to_owned());
            (bid, ask)
        };
        let (status, book) = self.ask("ticker/bookTicker").await;
        let (day_status, day) = self.ask("ticker/24hr").await;
        if day_status == 503 {
            assert_eq!(day["msg"], NO_TICKER);
        }
        if status == 503 {
            assert!(
                day_status == 503
                    || day["unknown"]
                        .to_string()
                        .contains("\"bidPrice\",\"bidQty\",\"askPrice\",\"askQty\""),
                "{day}"
            );
            return Err(book["msg"].as_str().expect("a text").to_owned());
        }
        assert_eq!(status, 200);
        if day_status == 200 {
            assert_eq!(best(&day), best(&book));
        }
        Ok(best(&book))
    }
}

fn both(bid: &str, ask: &str) -> Result<(String, String), String> {
    Ok((format!("{bid}.00000000"), format!("{ask}.00000000")))
}

/// Bids at 100, 99, … and asks at 101, 102, ….
fn snapshot(id: u64, bids: u64, asks: u64) -> Value {
    let bids: Vec<Value> = (0..bids).map(|index| json!([(100 - index).to_string(), "1"])).collect();
    let asks: Vec<Value> = (0..asks).map(|index| json!([(101 + index).to_string(), "1"])).collect();
    json!({"symbol": "BTCUSDT", "lastUpdateId": id, "bids": bids, "asks": asks})
}

fn gone(prices: impl Iterator<Item = u64>) -> Value {
    prices.map(|price| json!([price.to_string(), "0"])).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_short_snapshot_is_not_told_beyond_its_end() {
    let mut text = String::new();
    line(&mut text, 0, &snapshot(10, 10, 7));
    let beyond = json!([["50", "3"], ["49", "3"]]);
    line(&mut text, 100, &diff("BTCUSDT", 11, 11, beyond, json!([["500", "1"]])));
    let played = of(&text).await;
    assert_eq!(played.depth().await, Ok((10, 7)));
    played.to_its_end().await;
    assert_eq!(
        played.depth().await,
        Ok((10, 8)),
        "the cut side has what it had, the whole one its new level"
    );

    line(&mut text, 200, &diff("BTCUSDT", 12, 12, gone(98..101), json!([])));
    let played = of(&text).await;
    played.to_its_end().await;
    assert_eq!(played.depth().await, Ok((5, 8)), "seven bids are known");
    assert_eq!(played.best().await, both("97", "101"));

    line(&mut text, 300, &diff("BTCUSDT", 13, 13, gone(95..98), json!([])));
    let played = of(&text).await;
    played.to_its_end().await;
    assert_eq!(played.depth().await, Err(BEYOND.to_owned()), "four bids are known");
    assert_eq!(played.best().await, both("94", "101"));

    line(&mut text, 400, &diff("BTCUSDT", 14, 14, gone(91..95), json!([])));
    let played = of(&text).await;
    played.to_its_end().await;
    assert_eq!(played.depth().await, Err(BEYOND.to_owned()), "the best bid is beyond");
    assert_eq!(played.best().await, Err(BEYOND.to_owned()));

    line(&mut text, 500, &snapshot(15, 20, 20));
    let played = of(&text).await;
    played.to_its_end().await;
    assert_eq!(played.depth().await, Ok((20, 20)), "mended");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_snapshot_that_comes_later_than_newer_updates_still_mends() {
    let mut text = String::new();
    line(&mut text, 0, &snapshot(10, 10, 10));
    line(&mut text, 100, &diff("BTCUSDT", 11, 12, gone(91..101), json!([])));
    line(
        &mut text,
        200,
        &diff("BTCUSDT", 13, 14, json!([["100", "7"]]), json!([])),
    );
    // Asked for between the two, and answered after the second.
    line(&mut text, 210, &snapshot(12, 20, 20));
    line(
        &mut text,
        300,
        &diff("BTCUSDT", 15, 15, json!([["99", "8"]]), json!([])),
    );
    let played = of(&text).await;
    played.to_its_end().await;
    let (status, book) = played.ask("depth").await;
    assert_eq!((status, &book["lastUpdateId"]), (200, &json!(15)), "{book}");
    assert_eq!(
        (&book["bids"][0][1], &book["bids"][1][1]),
        (&json!("7.00000000"), &json!("8.00000000"))
    );
    assert_eq!(played.depth().await, Ok((20, 20)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streams_made_from_the_book_end_where_it_does() {
    let mut text = String::new();
    line(&mut text, 0, &snapshot(10, 10, 10));
    line(&mut text, 50, &diff("BTCUSDT", 11, 11, gone(98..101), json!([])));
    line(
        &mut text,
        150,
        &diff("BTCUSDT", 12, 12, gone(91..98), json!([["101", "2"]])),
    );
    line(
        &mut text,
        350,
        &diff("BTCUSDT", 13, 13, json!([["50", "2"]]), json!([])),
    );
    let played = of(&text).await;
    let mut socket = Socket::open(
        &played.exchange,
        "/stream?streams=btcusdt@depth20@100ms/btcusdt@bookTicker",
    )
    .await;
    let texts = socket.texts_until_quiet(Duration::from_millis(800)).await;
    let told: Vec<Value> = texts
        .iter()
        .map(|text| serde_json::from_str(text).expect("JSON"))
        .collect();
    assert_eq!(told.len(), 2, "{texts:?}");
    assert_eq!(
        (&told[0]["data"]["u"], &told[0]["data"]["b"]),
        (&json!(11), &json!("97.00000000"))
    );
    let partial = &told[1]["data"];
    assert_eq!(partial["lastUpdateId"], 11);
    assert_eq!(
        ["bids", "asks"].map(|side| partial[side].as_array().expect("levels").len()),
        [5, 10]
    );
}

fn quote(id: u64, bid: &str, ask: &str) -> Value {
    json!({"u": id, "s": "BTCUSDT", "b": bid, "B": "1", "a": ask, "A": "2"})
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn partial_books_begin_no_book() {
    let mut text = String::new();
    let mut partial = snapshot(10, 20, 20);
    partial.as_object_mut().expect("an object").remove("symbol");
    line(&mut text, 0, &wrapped("btcusdt@depth20@100ms", &partial));
    line(
        &mut text,
        100,
        &diff("BTCUSDT", 11, 11, json!([["100", "5"]]), json!([])),
    );
    let played = of(&text).await;
    let nothing = Err("the recording has no snapshot of this symbol".to_owned());
    assert_eq!(played.depth().await, nothing);
    played.to_its_end().await;
    assert_eq!(played.depth().await, nothing);
    assert_eq!(played.best().await.map(|_| (0, 0)), nothing);
    assert_eq!(played.ask("ticker/24hr").await.0, 503);
    let all = get(&played.exchange, "/api/v3/ticker/24hr").await;
    assert_eq!((all.status, all.json()), (200, json!([])), "of all there are none");

    line(&mut text, 200, &quote(12, "98", "99"));
    line(&mut text, 210, &quote(11, "1", "2"));
    let played = of(&text).await;
    played.to_its_end().await;
    assert_eq!(played.depth().await, nothing);
    assert_eq!(played.best().await, both("98", "99"), "the newest by its id");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn recorded_best_levels_count_where_they_are_newer_than_the_book() {
    let mut text = String::new();
    line(&mut text, 0, &quote(9, "90", "91"));
    line(&mut text, 10, &snapshot(10, 7, 7));
    let played = of(&text).await;
    played.to_its_end().await;
    assert_eq!(played.best().await, both("100", "101"), "the book is newer");
    line(&mut text, 20, &quote(11, "95", "96"));
    let played = of(&text).await;
    played.to_its_end().await;
    assert_eq!(played.best().await, both("95", "96"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_late_first_snapshot_is_shown_only_shortly_before_it_comes() {
    let later = Err("the recording's first snapshot comes later".to_owned());
    for (millis, expected) in [(1_999, Ok((7, 7))), (2_001, later.clone())] {
        let mut text = String::new();
        line(&mut text, 0, &diff("BTCUSDT", 1, 5, json!([]), json!([])));
        line(&mut text, millis, &snapshot(10, 7, 7));
        assert_eq!(of(&text).await.depth().await, expected, "{millis}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn as_fast_as_possible_is_slow_enough_to_take_a_late_first_snapshot() {
    let mut text = String::new();
    for id in 0..200 {
        let event = diff("BTCUSDT", id, id, json!([["100", (id + 1).to_string()]]), json!([]));
        line(&mut text, i64::try_from(id).expect("few") * 100, &event);
        if id == 100 {
            line(&mut text, 10_001, &snapshot(103, 7, 7));
        }
    }
    let played = of(&text).await;
    let mut socket = Socket::open(&played.exchange, "/ws/btcusdt@depth@100ms").await;
    socket.json().await;
    let mut refused = 0;
    let book = loop {
        match played.ask("depth").await {
            (200, book) => break book,
            _ => refused += 1,
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    };
    let id = book["lastUpdateId"].as_u64().expect("an id");
    assert_eq!(id, 103, "after {refused} refusals");
    finished(&played.exchange).await;
    let (_, end) = played.ask("depth").await;
    assert_eq!(
        (&end["lastUpdateId"], &end["bids"][0]),
        (&json!(199), &json!(["100.00000000", "200.00000000"])),
        "updates that came before the snapshot and are newer are not lost"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_gap_the_book_is_unknown_until_the_next_snapshot() {
    let gap = Err("updates are missing in the recording; the next recorded snapshot mends it".to_owned());
    let mut text = String::new();
    line(&mut text, 0, &snapshot(10, 7, 7));
    line(&mut text, 100, &diff("BTCUSDT", 12, 12, gone(100..101), json!([])));
    let played = of(&text).await;
    played.to_its_end().await;
    assert_eq!(played.depth().await, gap);
    assert_eq!(played.best().await.map(|_| (0, 0)), gap, "what was best is of the past");

    line(&mut text, 110, &quote(9, "90", "91"));
    let played = of(&text).await;
    played.to_its_end().await;
    assert_eq!(
        played.best().await,
        both("90", "91"),
        "best levels come when they change: the last ones hold, however old"
    );

    line(&mut text, 200, &snapshot(13, 7, 6));
    let played = of(&text).await;
    played.to_its_end().await;
    assert_eq!(played.depth().await, Ok((7, 6)));
    assert_eq!(played.best().await, both("100", "101"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn as_fast_as_possible_is_slow_enough_to_take_the_snapshot_after_a_gap() {
    let mut text = String::new();
    line(&mut text, 0, &snapshot(10, 7, 7));
    for id in (11..40).chain(50..300) {
        let event = diff("BTCUSDT", id, id, json!([["100", id.to_string()]]), json!([]));
        line(&mut text, i64::try_from(id).expect("few") * 100, &event);
        if id == 100 {
            line(&mut text, 10_001, &snapshot(100, 7, 7));
        }
    }
    let played = of(&text).await;
    let mut socket = Socket::open(&played.exchange, "/ws/btcusdt@depth@100ms").await;
    socket.json().await;
    let mut ids = Vec::new();
    while ids.last().is_none_or(|id| *id < 100) {
        if let (200, book) = played.ask("depth").await {
            ids.push(book["lastUpdateId"].as_u64().expect("an id"));
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(ids[0], 11, "the first update is in it");
    assert_eq!(ids.last(), Some(&101), "{ids:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_mini_ticker_is_completed_with_the_best_levels() {
    let mut text = String::new();
    line(&mut text, 0, &quote(9, "90", "91"));
    let mini = json!({"e": "24hrMiniTicker", "E": T0, "s": "BTCUSDT", "c": "90", "o": "80", "h": "95", "l": "79", "v": "3", "q": "250"});
    line(&mut text, 10, &mini);
    let played = of(&text).await;
    played.to_its_end().await;
    assert_eq!(played.best().await, both("90", "91"));
    assert_eq!(played.ask("ticker/24hr").await.0, 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lines_slightly_out_of_order_lose_nothing() {
    let mut lines: Vec<String> = Vec::new();
    let mut add = |millis: i64, message: &Value| {
        let mut text = String::new();
        line(&mut text, millis, message);
        lines.push(text);
    };
    add(0, &snapshot(10, 7, 7));
    for index in 0..40 {
        let millis = i64::try_from(index).expect("few") * 100;
        let id = 11 + index;
        add(
            millis,
            &diff("BTCUSDT", id, id, json!([["100", id.to_string()]]), json!([])),
        );
        add(
            millis,
            &json!({"e": "trade", "E": T0, "s": "BTCUSDT", "t": id, "p": "100", "q": "1", "T": T0 + millis, "m": true, "M": true}),
        );
    }
    lines.chunks_mut(10).for_each(<[String]>::reverse);
    let played = of(&lines.concat()).await;
    played.to_its_end().await;
    let (_, book) = played.ask("depth").await;
    assert_eq!(
        (&book["lastUpdateId"], &book["bids"][0][1]),
        (&json!(50), &json!("50.00000000"))
    );
    let (_, trades) = played.ask("trades").await;
    let ids: Vec<u64> = trades
        .as_array()
        .expect("trades")
        .iter()
        .filter_map(|trade| trade["id"].as_u64())
        .collect();
    assert_eq!(ids, (11..=50).collect::<Vec<u64>>());
}
