//! Of trades too only what is known is told: all of a time or none, and single ones only if single ones were recorded.

use serde_json::{Value, json};

use crate::oddities::{Played, played, trade};
use crate::replay::{T0, diff, line, wrapped};
use crate::support::get;

fn aggregate(id: u64, trades: (u64, u64), time: i64, price: &str) -> Value {
    let (first, last) = trades;
    let event = json!({"e": "aggTrade", "E": time, "s": "BTCUSDT", "a": id, "p": price, "q": "3", "f": first, "l": last, "T": time, "m": true});
    wrapped("btcusdt@aggTrade", &event)
}

async fn ask(played: &Played, request: &str) -> (u16, Value) {
    let reply = get(&played.exchange, &format!("/api/v3/{request}")).await;
    (reply.status, reply.json())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_time_of_which_trades_are_missing_is_refused() {
    let mut text = String::new();
    // Number 4 is missing.
    for id in [1, 2, 3, 5, 6] {
        let after = 1_000 * i64::try_from(id).expect("few");
        line(&mut text, after, &trade(id, T0 + after));
    }
    let told = played(&[&text]).await;
    let window = async |start: i64, end: i64| {
        let (start, end) = (T0 + start, T0 + end);
        let request = format!("aggTrades?symbol=BTCUSDT&startTime={start}&endTime={end}");
        let (status, answer) = ask(&told, &request).await;
        match answer.as_array() {
            Some(rows) => Ok(rows.len()),
            None => {
                assert_eq!(status, 503);
                Err(answer["msg"].as_str().expect("a text").to_owned())
            }
        }
    };
    let from = |start: i64| {
        let (start, end) = (T0 + start, T0 + 6_000);
        Err(format!(
            "the recording does not have every trade of this time; it has those from {start} to {end}"
        ))
    };
    assert_eq!(window(1_000, 2_500).await, Ok(2));
    assert_eq!(window(5_001, 6_000).await, Ok(1));
    assert_eq!(window(999, 2_500).await, from(5_000), "it begins before the recording");
    assert_eq!(window(1_000, 6_000).await, from(5_000), "one is missing");
    let before = format!("aggTrades?symbol=BTCUSDT&endTime={}", T0 + 500);
    assert_eq!(ask(&told, &before).await.0, 503, "nothing is not what there was");
    let open = format!("aggTrades?symbol=BTCUSDT&startTime={}", T0 + 5_500);
    assert_eq!(ask(&told, &open).await.1.as_array().map(Vec::len), Some(1));
    let both = ask(&told, "aggTrades?symbol=BTCUSDT&fromId=5&startTime=1").await;
    assert_eq!((both.0, &both.1["code"]), (400, &json!(-1128)));
    let by_id = ask(&told, "aggTrades?symbol=BTCUSDT&fromId=5").await.1;
    assert_eq!(
        by_id.as_array().map(Vec::len),
        Some(2),
        "ids say themselves what is missing"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn aggregates_are_not_told_as_single_trades() {
    let mut text = String::new();
    line(&mut text, 0, &aggregate(1, (878, 880), T0, "100"));
    let told = played(&[&text]).await;
    let refused = (
        503,
        json!("the recording has only aggregates of this symbol's trades; ask for aggTrades"),
    );
    for request in ["trades?symbol=BTCUSDT", "historicalTrades?symbol=BTCUSDT&fromId=1"] {
        let (status, answer) = ask(&told, request).await;
        assert_eq!((status, answer["msg"].clone()), refused);
    }
    let ticker = told.ask("ticker/24hr?symbol=BTCUSDT").await;
    assert_eq!(
        (
            &ticker["count"],
            &ticker["firstId"],
            &ticker["lastId"],
            &ticker["volume"]
        ),
        (&json!(3), &json!(878), &json!(880), &json!("3.00000000"))
    );
    assert!(ticker["unknown"].to_string().contains("lastQty"), "{ticker}");
    assert_eq!(told.ask("ticker/price?symbol=BTCUSDT").await["price"], "100.00000000");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_trades_there_is_no_price_and_no_list_of_none() {
    let mut text = String::new();
    line(&mut text, 0, &diff("BTCUSDT", 1, 1, json!([["100", "1"]]), json!([])));
    let told = played(&[&text]).await;
    for request in [
        "trades",
        "aggTrades",
        "ticker/price",
        "ticker/24hr",
        "ticker/bookTicker",
        "avgPrice",
    ] {
        let (status, answer) = ask(&told, &format!("{request}?symbol=BTCUSDT")).await;
        assert_eq!((status, &answer["code"]), (503, &json!(-1000)), "{request}: {answer}");
    }
    for request in ["ticker/price", "ticker/bookTicker", "ticker/24hr"] {
        assert_eq!(
            ask(&told, request).await,
            (200, json!([])),
            "{request}: of all there are none"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_average_is_of_three_hundred_seconds() {
    let mut text = String::new();
    // The first is 300.001 seconds before the end, the second 300.
    for (id, millis, price) in [(1, 0, "9000"), (2, 1, "100"), (3, 150_000, "200"), (4, 300_001, "600")] {
        line(&mut text, millis, &aggregate(id, (id, id), T0 + millis, price));
    }
    let told = played(&[&text]).await;
    assert_eq!(
        told.ask("avgPrice?symbol=BTCUSDT").await,
        json!({"mins": 5, "price": "300.00000000", "closeTime": T0 + 300_001})
    );
}
