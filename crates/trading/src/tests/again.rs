//! The same order asked for again: it is placed once, and said what became of it.

use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use serde_json::{Value, json};
use tribune_core::ErrorKind;

use super::bench::{Bench, bench, bench_with, order, order_json, pass, with};
use crate::Settings;
use tribune_binance::testing::{Asked, Reply};

async fn previewed(bench: &Bench) -> (Value, String) {
    let preview = bench.preview().await;
    let name = preview["client_order_id"].as_str().expect("a name").to_owned();
    (with(order(), json!({"preview_token": preview["preview_token"]})), name)
}

/// Another run over the same journal.
async fn restarted(bench: &Bench) -> Bench {
    let journal = bench.journal.clone();
    let on_order = Arc::new(|_: &Asked| Reply::new(500, ""));
    bench_with(Arc::default(), on_order, |settings: &mut Settings| {
        settings.journal = journal;
    })
    .await
}

const SAME: &str = "this is the order that an earlier call with this preview_token placed; nothing was placed again";

#[tokio::test]
async fn repeated_call_gets_the_outcome_of_a_cancelled_one() {
    let bench = bench(|asked| Reply::json(&order_json(asked, "FILLED")).after_ms(3_000)).await;
    let (placing, name) = previewed(&bench).await;
    {
        let mut impatient = std::pin::pin!(bench.call("binance_place_order", placing.clone()));
        let sent = async {
            while bench.sent() == 0 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        // Given up once the order is on its way.
        tokio::select! {
            biased;
            () = sent => {}
            _ = &mut impatient => panic!("answered too early"),
        }
    }
    let waiting = bench.call("binance_place_order", placing.clone());
    let (waited, ()) = tokio::join!(waiting, pass(Duration::from_secs(3)));
    for again in [waited, bench.call("binance_place_order", placing.clone()).await] {
        let again = again.expect("the answer");
        let order = &again["order"];
        assert_eq!(
            (&again["status"], &order["status"], &order["client_order_id"]),
            (&json!("placed"), &json!("FILLED"), &json!(name))
        );
        assert_eq!(again["note"], SAME);
    }
    assert_eq!((bench.sent(), bench.events().len()), (1, 2));
}

#[tokio::test]
async fn concurrent_calls_place_once_and_all_get_answers() {
    let bench = bench(|asked| Reply::json(&order_json(asked, "NEW")).after_ms(100)).await;
    let (placing, _) = previewed(&bench).await;
    let calls = (0..4).map(|_| bench.call("binance_place_order", placing.clone()));
    let answers = join_all(calls).await;
    let notes: Vec<Value> = answers.into_iter().map(|answer| answer.expect("placed")["note"].clone()).collect();
    assert_eq!(notes.iter().filter(|note| note.is_null()).count(), 1, "{notes:?}");
    assert_eq!(notes.iter().filter(|note| **note == SAME).count(), 3, "{notes:?}");
    assert_eq!(bench.sent(), 1);
}

#[tokio::test]
async fn repeated_call_stays_unknown_until_looked_up() {
    let bench = bench(|asked| match asked.method.as_str() {
        "GET" => Reply::json(&order_json(asked, "FILLED")),
        _ => Reply::new(503, ""),
    })
    .await;
    let (placing, name) = previewed(&bench).await;
    bench.refused("binance_place_order", placing.clone()).await;
    let again = bench.refused("binance_place_order", placing.clone()).await;
    assert_eq!(again.kind(), ErrorKind::Unavailable);
    let told = format!("client_order_id {name}) was sent, and its execution status is unknown; do not order again");
    assert!(again.message().contains("nothing was sent now") && again.message().contains(&told), "{again}");
    let named = json!({"symbol": "SOLUSDT", "client_order_id": name});
    bench.call("binance_get_order", named).await.expect("found");
    let again = bench.call("binance_place_order", placing).await.expect("found meanwhile");
    assert_eq!((&again["order"]["status"], &again["note"]), (&json!("FILLED"), &json!(SAME)));
    assert_eq!(bench.sent(), 1);
}

#[tokio::test]
async fn refusal_stays_a_refusal() {
    let bench = bench(|_| Reply::refusal(-2010, "Account has insufficient balance.")).await;
    let (placing, _) = previewed(&bench).await;
    let first = bench.refused("binance_place_order", placing.clone()).await;
    let again = bench.refused("binance_place_order", placing).await;
    assert!(again.message().contains(first.message()), "{again}");
    let next = "look with binance_get_order, and only then call again without preview_token for a new preview";
    assert!(again.message().ends_with(next), "{again}");
    assert_eq!((again.kind(), bench.sent()), (first.kind(), 1));
}

#[tokio::test]
async fn failed_check_keeps_the_token_valid() {
    let bench = bench(|asked| Reply::json(&order_json(asked, "NEW"))).await;
    let (placing, _) = previewed(&bench).await;
    bench.market.0.lock().expect("book").age_ms = 10_001;
    let error = bench.refused("binance_place_order", placing.clone()).await;
    assert!(error.message().starts_with("the order was not sent: "), "{error}");
    bench.market.0.lock().expect("book").age_ms = 0;
    let placed = bench.call("binance_place_order", placing).await.expect("placed");
    assert_eq!((&placed["note"], bench.sent()), (&Value::Null, 1));
}

#[tokio::test]
async fn used_token_reports_its_order() {
    let bench = bench(|asked| Reply::json(&order_json(asked, "NEW"))).await;
    let (placing, name) = previewed(&bench).await;
    bench.call("binance_place_order", placing.clone()).await.expect("placed");
    let told = format!(
        "the preview_token has been used, and nothing was sent now: its order (symbol SOLUSDT, client_order_id {name}) \
         was placed (order_id 28, NEW, 0 of 0.1 filled when last asked); do not order again: look with binance_get_order"
    );
    let other = with(placing.clone(), json!({"quantity": "0.2"}));
    assert_eq!(bench.refused("binance_place_order", other.clone()).await.message(), told);

    let later = restarted(&bench).await;
    assert_eq!(later.refused("binance_place_order", other).await.message(), told);
    let again = later.call("binance_place_order", placing).await.expect("the order");
    assert_eq!((&again["status"], &again["order"]["order_id"]), (&json!("placed"), &json!(28)));
    assert_eq!((&again["note"], &again["simulated"]), (&json!(SAME), &json!(true)));
    assert_eq!(again["exchange_time"], "2017-10-11T12:32:56.595Z");
    assert_eq!((bench.sent(), later.sent()), (1, 0));
}

#[tokio::test]
async fn preview_lists_recent_and_pending_orders() {
    let bench = Arc::new(bench(|asked| Reply::json(&order_json(asked, "FILLED")).after_ms(3_000)).await);
    let (placing, name) = previewed(&bench).await;
    let calling = tokio::spawn({
        let bench = bench.clone();
        async move { bench.call("binance_place_order", placing).await.map(drop) }
    });
    while bench.sent() == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let recent = bench.preview().await["recent_orders"].clone();
    assert_eq!((&recent[0]["client_order_id"], &recent[0]["outcome"]), (&json!(name), &json!("in_flight")));
    assert_eq!(recent[0]["requested"]["price"], "150");
    pass(Duration::from_secs(3)).await;
    calling.await.expect("joined").expect("placed");
    for bench in [&*bench, &restarted(&bench).await] {
        let recent = bench.preview().await["recent_orders"].clone();
        assert_eq!(recent.as_array().map(Vec::len), Some(1));
        assert_eq!((&recent[0]["outcome"], &recent[0]["order"]["status"]), (&json!("placed"), &json!("FILLED")));
    }
}

#[tokio::test]
async fn found_order_corrects_a_recorded_refusal() {
    let bench = bench(|asked| match asked.method.as_str() {
        "GET" => Reply::json(&order_json(asked, "NEW")),
        _ => Reply::refusal(-2010, "Account has insufficient balance."),
    })
    .await;
    let (placing, name) = previewed(&bench).await;
    bench.refused("binance_place_order", placing).await;
    let named = json!({"symbol": "SOLUSDT", "client_order_id": name});
    for _ in 0..2 {
        bench.call("binance_get_order", named.clone()).await.expect("found");
    }
    assert_eq!(bench.events(), ["intent", "refused", "found"], "once");
    assert_eq!(bench.journal()[2]["result"]["status"], "NEW");
}

#[tokio::test]
async fn only_the_exchanges_own_answer_is_a_refusal() {
    for status in [403, 418, 429, 451] {
        for (body, events) in [
            ("<html>a page</html>", ["intent", "unknown"]),
            ("{\"code\": -1007, \"msg\": \"Timeout.\"}", ["intent", "unknown"]),
            ("{\"code\": -1015, \"msg\": \"Too many orders.\"}", ["intent", "refused"]),
        ] {
            let bench = bench(move |_| Reply::new(status, body).header("Retry-After", "1")).await;
            let error = bench.place().await.expect_err("refused");
            let is_unknown = error.message().starts_with("execution status unknown: ");
            assert_eq!(is_unknown, events[1] == "unknown", "{status} {body}: {error}");
            assert_eq!(bench.events(), events, "{status} {body}");
        }
        let bench = bench(move |_| Reply::new(status, "<html>a page</html>")).await;
        let cancelling = json!({"symbol": "SOLUSDT", "order_id": 28});
        let error = bench.refused("binance_cancel_order", cancelling).await;
        let told = format!("the answer {status} did not come from the exchange");
        assert!(error.message().ends_with(&told), "{error}");
        assert_eq!(bench.events(), ["intent", "unknown"], "{status}");
    }
}

#[tokio::test]
async fn preview_reports_unreadable_journal_lines() {
    let damaged = |settings: &mut Settings| {
        std::fs::write(&settings.journal, "{\"time\":\"2026-01-02T03:04:05Z\",\"ev\n").expect("journal");
    };
    let on_order = Arc::new(|asked: &Asked| Reply::json(&order_json(asked, "NEW")));
    let bench = bench_with(Arc::default(), on_order, damaged).await;
    let preview = bench.preview().await;
    let note = preview["note"].as_str().expect("a note");
    assert!(note.contains("incomplete: lines that cannot be read: 1, the first is line 1; "), "{note}");
    let invented = with(order(), json!({"preview_token": "preview-0"}));
    let error = bench.refused("binance_place_order", invented).await;
    assert!(error.message().contains("look with binance_get_all_orders before"), "{error}");
}
