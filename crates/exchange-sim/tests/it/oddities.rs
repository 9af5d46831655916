//! Recordings as people make them: several symbols in a file, clocks that step back, connections that were lost, other
//! units, other layouts. What can be right is right, and what cannot is told.

use std::fmt::Write as _;

use serde_json::{Value, json};
use tribune_exchange_sim::{Exchange, Mode, Settings};

use crate::replay::{T0, diff, finished, line, replay, wrapped};
use crate::support::{Socket, get};

pub struct Played {
    pub exchange: Exchange,
    _folder: tempfile::TempDir,
}

/// An exchange that has played texts, one a file, to their end.
pub async fn played(texts: &[&str]) -> Played {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |(number, text): (usize, &&str)| {
        let path = folder.path().join(format!("{number}.txt"));
        std::fs::write(&path, text).expect("written");
        path
    };
    let files = texts.iter().enumerate().map(write).collect();
    let exchange = replay(files, 0.0).await;
    get(&exchange, "/sim/start").await;
    finished(&exchange).await;
    Played {
        exchange,
        _folder: folder,
    }
}

impl Played {
    pub async fn ask(&self, request: &str) -> Value {
        get(&self.exchange, &format!("/api/v3/{request}")).await.json()
    }

    async fn trade_ids(&self) -> Vec<u64> {
        let trades = self.ask("trades?symbol=BTCUSDT").await;
        let id = |trade: &Value| trade["id"].as_u64().expect("an id");
        trades.as_array().expect("trades").iter().map(id).collect()
    }

    /// Opening (after T0), volume and count of each candle.
    async fn candles(&self, interval: &str) -> Vec<(i64, String, u64)> {
        let candles = self.ask(&format!("klines?symbol=BTCUSDT&interval={interval}")).await;
        let brief = |row: &Value| {
            let volume = row[5].as_str().expect("a volume").trim_end_matches('0');
            let opened = row[0].as_i64().expect("a time") - MINUTE_0;
            (opened, volume.to_owned(), row[8].as_u64().expect("a count"))
        };
        candles.as_array().expect("candles").iter().map(brief).collect()
    }
}

/// The first whole minute after T0.
const MINUTE_0: i64 = T0 + 40_000;

pub fn trade(id: u64, time: i64) -> Value {
    let event = json!({"e": "trade", "E": time, "s": "BTCUSDT", "t": id, "p": "100", "q": "1", "T": time, "m": true, "M": true});
    wrapped("btcusdt@trade", &event)
}

fn candle(open: i64, count: u64, closed: bool) -> Value {
    let kline = json!({"t": open, "T": open + 59_999, "s": "BTCUSDT", "i": "1m", "f": 1, "L": count, "o": "100", "c": "100", "h": "100", "l": "100",
        "v": count.to_string(), "n": count, "x": closed, "q": (100 * count).to_string(), "V": "0", "Q": "0", "B": "0"});
    wrapped(
        "btcusdt@kline_1m",
        &json!({"e": "kline", "E": open, "s": "BTCUSDT", "k": kline}),
    )
}

/// A snapshot as REST gives it, with seven levels a side around a price in cents.
fn bare_snapshot(id: u64, cents: u64) -> Value {
    let price = |cents: u64| format!("{}.{:02}", cents / 100, cents % 100);
    let level = |cents: u64| json!([price(cents), "1"]);
    let bids: Vec<Value> = (0..7).map(|step| level(cents - step)).collect();
    let asks: Vec<Value> = (1..8).map(|step| level(cents + step)).collect();
    json!({"lastUpdateId": id, "bids": bids, "asks": asks})
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_snapshot_without_a_symbol_is_of_the_one_whose_ids_it_has() {
    let mut text = String::new();
    let (ids_a, ids_b) = (2_000_000_000, 1_000_000_000);
    // AAAUSDT goes from 1.00 to where BBBUSDT always is, and beyond.
    for step in 0..60u64 {
        let millis = i64::try_from(step).expect("few") * 100;
        for (symbol, ids, cents) in [("AAAUSDT", ids_a, 100 + 4 * step), ("BBBUSDT", ids_b, 105)] {
            let id = ids + 10 * step;
            let price = format!("{}.{:02}", cents / 100, cents % 100);
            line(&mut text, millis, &diff(symbol, id, id + 9, json!([]), json!([])));
            line(
                &mut text,
                millis + 1,
                &json!({"e": "trade", "E": T0 + millis, "s": symbol, "t": step + 1, "p": price, "q": "1", "T": T0 + millis, "m": true}),
            );
        }
        if step == 3 {
            line(&mut text, millis + 2, &bare_snapshot(ids_a + 25, 100));
            line(&mut text, millis + 3, &bare_snapshot(ids_b + 25, 105));
        }
    }
    let played = played(&[&text]).await;
    for (symbol, bid) in [("AAAUSDT", "1.00000000"), ("BBBUSDT", "1.05000000")] {
        let book = played.ask(&format!("depth?symbol={symbol}")).await;
        assert_eq!(book["bids"][0][0], bid, "{symbol}: {book}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_snapshot_that_could_be_of_two_symbols_is_of_none() {
    let mut text = String::new();
    for step in 0..20u64 {
        let millis = i64::try_from(step).expect("few") * 100;
        for symbol in ["BTCUSDC", "BTCUSDT"] {
            let id = 1_000 + 10 * step;
            line(&mut text, millis, &diff(symbol, id, id + 9, json!([]), json!([])));
        }
        if step == 3 {
            line(&mut text, millis + 2, &bare_snapshot(1_025, 100));
        }
    }
    let ambiguous = played(&[&text]).await;
    for symbol in ["BTCUSDC", "BTCUSDT"] {
        let answer = ambiguous.ask(&format!("depth?symbol={symbol}")).await;
        assert_eq!(
            answer["msg"], "the recording has no snapshot of this symbol",
            "{symbol}"
        );
    }
    // Best levels of the same id decide.
    let quote = json!({"u": 1_024, "s": "BTCUSDC", "b": "1.00", "B": "1", "a": "1.01", "A": "1"});
    line(&mut text, 301, &quote);
    let decided = played(&[&text]).await;
    assert_eq!(decided.ask("depth?symbol=BTCUSDC").await["bids"][0][0], "1.00000000");
    assert_eq!(decided.ask("depth?symbol=BTCUSDT").await["code"], -1000);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn microseconds_are_told_in_milliseconds() {
    let mut text = String::new();
    let micros = T0 * 1_000 + 123;
    let event =
        json!({"e": "trade", "E": micros, "s": "BTCUSDT", "t": 7, "p": "100", "q": "1", "T": micros, "m": true});
    line(&mut text, 0, &wrapped("btcusdt@trade", &event));
    line(
        &mut text,
        10,
        &wrapped("btcusdt@trade", &json!({"e": "trade", "s": "BTCUSDT", "t": "?"})),
    );
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("micros.txt");
    std::fs::write(&path, text).expect("written");
    let exchange = replay(vec![path], 0.0).await;
    let mut socket = Socket::open(&exchange, "/ws/btcusdt@trade").await;
    let sent = socket.json().await;
    assert_eq!((&sent["E"], &sent["T"]), (&json!(T0), &json!(T0)));
    assert_eq!(socket.json().await["t"], "?", "passed on, if not understood");
    let state = finished(&exchange).await;
    assert_eq!(state["replay"]["linesMalformed"], 1);
    let trades = get(&exchange, "/api/v3/trades?symbol=BTCUSDT").await.json();
    assert_eq!(
        (trades.as_array().map(Vec::len), &trades[0]["time"]),
        (Some(1), &json!(T0))
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn candles_with_missing_trades_are_left_out() {
    let mut text = String::new();
    // A trade every two seconds for five minutes; 61 to 65, in the second whole minute, are missing.
    for id in (1..=150u64).filter(|id| !(61..=65).contains(id)) {
        let after = 2_000 * i64::try_from(id).expect("few");
        line(&mut text, after + 5, &trade(id, T0 + after));
    }
    let made = played(&[&text]).await;
    let whole = |open: i64| (open, "30.".to_owned(), 30);
    assert_eq!(
        made.candles("1m").await,
        [
            whole(0),
            whole(120_000),
            whole(180_000),
            (240_000, "11.".to_owned(), 11)
        ]
    );
    assert_eq!(
        made.candles("3m").await,
        [(240_000, "11.".to_owned(), 11)],
        "the one before has the minute in it"
    );
    let ticker = made.ask("ticker/24hr?symbol=BTCUSDT").await;
    assert_eq!(
        (&ticker["openTime"], &ticker["count"], &ticker["firstId"]),
        (&json!(T0 + 132_000), &json!(85), &json!(66)),
        "it is of what came after"
    );
    assert_eq!(ticker["closeTime"], T0 + 300_005);
    let average = get(&made.exchange, "/api/v3/avgPrice?symbol=BTCUSDT").await;
    assert_eq!(
        (average.status, &average.json()["msg"]),
        (
            503,
            &json!("the recording does not have every trade of the last five minutes")
        )
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_recorded_candle_counts_once_it_is_closed() {
    let mut text = String::new();
    line(&mut text, 40_100, &candle(MINUTE_0, 1, false));
    line(&mut text, 100_100, &candle(MINUTE_0, 9, true));
    line(&mut text, 130_000, &candle(MINUTE_0 + 60_000, 5, false));
    // The connection was lost over the end of the minute, and over the next one.
    line(&mut text, 230_000, &candle(MINUTE_0 + 180_000, 2, false));
    let told = played(&[&text]).await;
    assert_eq!(
        told.candles("1m").await,
        [(0, "9.".to_owned(), 9), (180_000, "2.".to_owned(), 2)],
        "one that closed and one that is open"
    );
    // Trades know better.
    for id in 0..115u64 {
        let after = 2_000 * i64::try_from(id).expect("few");
        line(&mut text, after, &trade(id + 1, T0 + after));
    }
    let mended = played(&[&text]).await;
    let opened: Vec<i64> = mended.candles("1m").await.iter().map(|candle| candle.0).collect();
    assert_eq!(opened, [0, 60_000, 120_000, 180_000]);
    assert_eq!(mended.candles("1m").await[1].2, 30);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn minutes_after_the_trades_broke_off_are_not_quiet_ones() {
    let mut text = String::new();
    for id in 1..=70u64 {
        let after = 2_000 * i64::try_from(id).expect("few");
        line(&mut text, after, &trade(id, T0 + after));
    }
    let ticker = |last: u64, after: i64| {
        let event = json!({"e": "24hrTicker", "E": T0 + after, "s": "BTCUSDT", "p": "1", "P": "1", "w": "100", "x": "99", "c": "100", "Q": "1",
            "b": "99", "B": "1", "a": "100", "A": "1", "o": "99", "h": "100", "l": "99", "v": "1", "q": "100", "O": T0 - 86_400_000 + after,
            "C": T0 + after, "F": 1, "L": last, "n": last});
        wrapped("btcusdt@ticker", &event)
    };
    let mut quiet = text.clone();
    line(&mut quiet, 300_000, &ticker(70, 300_000));
    let opened = async |text: &str| -> Vec<i64> {
        let candles = played(&[text]).await.candles("1m").await;
        candles.iter().map(|candle| candle.0).collect()
    };
    assert_eq!(opened(&quiet).await, [0, 60_000, 120_000, 180_000, 240_000]);
    line(&mut text, 300_000, &ticker(71, 300_000));
    assert_eq!(opened(&text).await, [0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_clock_that_trembles_or_steps_back_loses_nothing() {
    let mut text = String::new();
    let mut snapshot = bare_snapshot(10, 10_000);
    snapshot["symbol"] = json!("BTCUSDT");
    line(&mut text, 0, &snapshot);
    for step in 0..100u64 {
        let millis = i64::try_from(step).expect("few") * 100;
        let back = if step >= 50 { 1_200 } else { 0 };
        let tremble = i64::from(step % 2 == 0) * 150;
        let id = 11 + step;
        let mut update = diff("BTCUSDT", id, id, json!([["100", id.to_string()]]), json!([]));
        update["E"] = json!(T0 + millis);
        line(
            &mut text,
            millis - back + tremble,
            &wrapped("btcusdt@depth@100ms", &update),
        );
        line(&mut text, millis - back + tremble, &trade(id, T0 + millis));
    }
    let played = played(&[&text]).await;
    let book = played.ask("depth?symbol=BTCUSDT").await;
    assert_eq!(
        (&book["lastUpdateId"], &book["bids"][0][1]),
        (&json!(110), &json!("110.00000000"))
    );
    assert_eq!(played.trade_ids().await, (11..=110).collect::<Vec<u64>>());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_connections_into_one_file_count_once() {
    let mut text = String::new();
    for id in 1..=60u64 {
        let after = 2_000 * i64::try_from(id).expect("few");
        line(&mut text, after, &trade(id, T0 + after));
        if id > 3 {
            line(&mut text, after + 1, &trade(id - 2, T0 + after - 4_000));
        }
    }
    let played = played(&[&text]).await;
    assert_eq!(played.trade_ids().await, (1..=60).collect::<Vec<u64>>());
    assert_eq!(played.candles("1m").await[0], (0, "30.".to_owned(), 30));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_mini_ticker_does_not_say_is_named() {
    let mut text = String::new();
    line(&mut text, 0, &trade(5, T0));
    let mini = json!({"e": "24hrMiniTicker", "E": T0 + 10, "s": "BTCUSDT", "c": "100", "o": "80", "h": "105", "l": "79", "v": "3", "q": "250"});
    line(&mut text, 10, &wrapped("btcusdt@miniTicker", &mini));
    let told = played(&[&text]).await;
    let ticker = told.ask("ticker/24hr?symbol=BTCUSDT").await;
    assert_eq!(
        ticker["unknown"],
        json!([
            "prevClosePrice",
            "bidPrice",
            "bidQty",
            "askPrice",
            "askQty",
            "firstId",
            "count"
        ])
    );
    assert_eq!(
        (&ticker["lastQty"], &ticker["lastId"]),
        (&json!("1.00000000"), &json!(5))
    );
    assert_eq!(ticker["closeTime"], T0 + 10);
    // The same from the list of all.
    let (first, _) = text.split_once('\n').expect("two lines");
    let mut listed = format!("{first}\n");
    line(&mut listed, 10, &wrapped("!miniTicker@arr", &json!([mini])));
    let told = played(&[&listed]).await;
    assert_eq!(told.ask("ticker/24hr?symbol=BTCUSDT").await["openPrice"], "80.00000000");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_recorded_average_is_told() {
    let mut text = String::new();
    line(&mut text, 0, &trade(5, T0));
    let average = json!({"e": "avgPrice", "E": T0, "s": "BTCUSDT", "i": "5m", "w": "99.5", "T": T0 - 1});
    line(&mut text, 10, &wrapped("btcusdt@avgPrice", &average));
    let answer = played(&[&text]).await.ask("avgPrice?symbol=BTCUSDT").await;
    assert_eq!(answer, json!({"mins": 5, "price": "99.50000000", "closeTime": T0 - 1}));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn at_its_end_time_stands_still() {
    let mut text = String::new();
    line(&mut text, 0, &trade(1, T0));
    line(&mut text, 3_000, &trade(2, T0 + 3_000));
    let played = played(&[&text]).await;
    tokio::time::sleep(std::time::Duration::from_millis(1_200)).await;
    assert_eq!(played.ask("time").await["serverTime"], T0 + 3_000);
    let seconds = played.candles("1s").await;
    assert_eq!(
        seconds.last().map(|candle| candle.0),
        Some(3_000 - 40_000),
        "{seconds:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn days_between_two_recordings_are_skipped_and_are_no_quiet_ones() {
    let day = 4 * 24 * 60 * 60 * 1_000;
    let (mut one, mut other) = (String::new(), String::new());
    for id in 1..=90u64 {
        let after = 2_000 * i64::try_from(id).expect("few");
        line(&mut one, after, &trade(id, T0 + after));
        line(&mut other, day + after, &trade(1_000 + id, T0 + day + after));
    }
    let folder = tempfile::tempdir().expect("a folder");
    let files = [("a", one), ("b", other)].map(|(name, text)| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).expect("written");
        path
    });
    // At no other pace than this would it take days.
    let exchange = replay(files.to_vec(), 1_000.0).await;
    get(&exchange, "/sim/start").await;
    finished(&exchange).await;
    let path = format!("/api/v3/klines?symbol=BTCUSDT&interval=1m&startTime={T0}&limit=1000");
    let candles = get(&exchange, &path).await.json();
    let opened: Vec<i64> = candles
        .as_array()
        .expect("candles")
        .iter()
        .filter_map(|row| row[0].as_i64())
        .map(|open| open - MINUTE_0)
        .collect();
    assert_eq!(opened, [0, 60_000]);
    let recent = get(&exchange, "/api/v3/klines?symbol=BTCUSDT&interval=1m").await.json();
    assert_eq!(recent.as_array().map(Vec::len), Some(3), "{recent}");
}

async fn refused(text: &str) -> String {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("mine.txt");
    std::fs::write(&path, text).expect("written");
    let settings = Settings {
        mode: Mode::Replay {
            files: vec![path],
            speed: 0.0,
        },
        ..Settings::default()
    };
    let error = tribune_exchange_sim::start(settings)
        .await
        .expect_err("it does not start");
    error.to_string()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_no_recording_is_refused_with_the_reason() {
    let without_times = refused("{\"e\":\"trade\",\"s\":\"BTCUSDT\"}\n").await;
    assert!(without_times.contains("mine.txt"), "{without_times}");
    assert!(
        without_times.contains("a line is `<receive_ns> <json>`"),
        "{without_times}"
    );
    let mut answers = String::new();
    writeln!(answers, "{} {}", T0 * 1_000_000, json!({"result": null, "id": 1})).expect("it is memory");
    let answers = refused(&answers).await;
    assert!(answers.contains("no event of any symbol in"), "{answers}");
    assert!(refused("").await.contains("mine.txt"));
}
