//! What became of an order, and what is said and written of it.

use std::path::PathBuf;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Instant;

use serde_json::{Value, json};
use tokio::sync::Notify;
use tribune_core::{Error, ErrorKind};

use super::bench::{Bench, KEY, NO_TIME, TOO_LATE_MS, bench, bench_with, order, order_json, with};
use crate::Settings;
use crate::journal::Journal;
use tribune_binance::testing::{Asked, Reply, ShiftedClock, until};

#[tokio::test]
async fn unknown_outcome_is_reported_and_sent_once() {
    const TOO_LATE: usize = 2;
    let replies: [fn(&Asked) -> Reply; 6] = [
        |_| Reply::new(404, "<html>a proxy's own page</html>"),
        |_| Reply::new(503, ""),
        |asked| Reply::json(&order_json(asked, "NEW")).after_ms(TOO_LATE_MS),
        |asked| Reply::json(&order_json(asked, "NEW")).half_sent(),
        |_| Reply::json(&json!({"symbol": "SOLUSDT"})),
        |_| Reply::refusal(-1007, "Timeout waiting for response from backend server."),
    ];
    for (at, reply) in replies.into_iter().enumerate() {
        let bench = bench(reply).await;
        let waiting = async {
            if at == TOO_LATE {
                bench.give_up().await;
            }
        };
        let (placed, ()) = tokio::join!(bench.place(), waiting);
        let error = placed.expect_err("unknown");
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        let lines = bench.journal();
        let id = lines[0]["client_order_id"].as_str().expect("id");
        let advice = format!(
            "execution status unknown: look with binance_get_order before trying again (symbol SOLUSDT, client_order_id {id})"
        );
        assert!(error.message().starts_with(&advice), "{at}: {error}");
        assert_eq!(bench.events(), ["intent", "unknown"], "{at}");
        let written = lines[1]["error"].as_str().expect("why");
        assert!(!written.contains("try again"), "{at}: {written}");
        assert_eq!(bench.sent(), 1, "{at}");
    }
}

#[tokio::test]
async fn unknown_order_is_unresolved_until_looked_up() {
    let bench = bench(|asked| match asked.method.as_str() {
        "GET" => Reply::json(&order_json(asked, "FILLED")),
        _ => Reply::new(503, ""),
    })
    .await;
    assert_eq!(bench.preview().await["unresolved"], Value::Null);
    bench.place().await.expect_err("unknown");
    let open = bench.preview().await["unresolved"].clone();
    assert_eq!((&open[0]["action"], &open[0]["symbol"]), (&json!("place_order"), &json!("SOLUSDT")));
    let named = json!({"symbol": "SOLUSDT", "client_order_id": open[0]["client_order_id"]});
    let found = bench.call("binance_get_order", named).await.expect("found");
    assert_eq!(found["order"]["status"], "FILLED");
    assert_eq!(bench.events(), ["intent", "unknown", "found"]);
    assert_eq!(bench.journal()[2]["result"]["status"], "FILLED");
    assert_eq!(bench.preview().await["unresolved"], Value::Null);
}

#[tokio::test]
async fn missing_order_may_still_arrive() {
    let bench = bench(|asked| match asked.method.as_str() {
        "GET" => Reply::refusal(-2013, "Order does not exist."),
        _ => Reply::new(503, ""),
    })
    .await;
    bench.place().await.expect_err("unknown");
    let named = json!({"symbol": "SOLUSDT", "client_order_id": bench.journal()[0]["client_order_id"]});
    let error = bench.refused("binance_get_order", named).await;
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.message().contains("may still arrive; look again in "), "{error}");
    assert_eq!(bench.events(), ["intent", "unknown"], "it stays unresolved");
}

fn absent(asked: &Asked) -> Reply {
    match asked.method.as_str() {
        "GET" => Reply::refusal(-2013, "Order does not exist."),
        _ => Reply::new(503, ""),
    }
}

async fn look(bench: &Bench) -> Error {
    let named = json!({"symbol": "SOLUSDT", "client_order_id": bench.journal()[0]["client_order_id"]});
    bench.refused("binance_get_order", named).await
}

#[tokio::test]
async fn changed_wall_clock_does_not_shorten_the_wait() {
    let bench = bench(absent).await;
    bench.place().await.expect_err("unknown");
    bench.clock.step_ms(3_600_000);
    let error = look(&bench).await;
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    bench.clock.pass_ms(10_000);
    let error = look(&bench).await;
    assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
    assert_eq!(bench.events(), ["intent", "unknown", "absent"]);
}

#[tokio::test]
async fn wait_begins_when_the_answer_is_given_up() {
    let shared: Arc<OnceLock<Arc<ShiftedClock>>> = Arc::default();
    let clock = shared.clone();
    let bench = bench(move |asked| {
        if asked.method == "POST" {
            clock.get().expect("a clock").pass_ms(60_000);
        }
        absent(asked)
    })
    .await;
    assert!(shared.set(bench.clock.clone()).is_ok());
    bench.place().await.expect_err("unknown");
    let error = look(&bench).await;
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
}

#[tokio::test]
async fn pending_order_is_not_reported_absent() {
    let bench = Arc::new(bench(|asked| absent(asked).after_ms(if asked.method == "POST" { 1_000 } else { 0 })).await);
    let placing = {
        let bench = bench.clone();
        tokio::spawn(async move { bench.place().await.map(drop) })
    };
    until(|| bench.sent() == 1).await;
    let error = look(&bench).await;
    assert!(error.message().contains("may still arrive"), "{error}");
    placing.await.expect("joined").expect_err("unknown");
}

#[tokio::test]
async fn cancellation_resolves_its_order() {
    let placed = Arc::new(Mutex::new(String::new()));
    let bench = bench(move |asked| {
        let mut placed = placed.lock().expect("name");
        if asked.method == "POST" {
            *placed = asked.parameter("newClientOrderId").expect("a name").to_owned();
            return Reply::new(503, "");
        }
        let mut order = order_json(asked, "CANCELED");
        order["origClientOrderId"] = json!(*placed);
        Reply::json(&order)
    })
    .await;
    bench.place().await.expect_err("unknown");
    let args = json!({"symbol": "SOLUSDT", "order_id": 28});
    bench.call("binance_cancel_order", args).await.expect("cancelled");
    assert_eq!(bench.preview().await["unresolved"], Value::Null);
    let read_back = Journal::open(&bench.journal, Instant::now()).expect("journal");
    let open = read_back.history.unresolved();
    assert!(open.is_empty(), "{open:?}");
}

#[tokio::test]
async fn order_of_an_earlier_run_is_unresolved() {
    let killed = |settings: &mut Settings| {
        let line = r#"{"time":"2026-01-02T03:04:05Z","event":"intent","action":"place_order","caller":"local","correlation_id":"-","client_order_id":"tribune-7","request":{"symbol":"SOLUSDT"},"simulated":null}"#;
        std::fs::write(&settings.journal, format!("{line}\n")).expect("journal");
    };
    let on_order = Arc::new(|_: &Asked| Reply::refusal(-2013, "Order does not exist."));
    let bench = bench_with(Arc::default(), on_order, killed).await;
    let open = bench.preview().await["unresolved"].clone();
    assert_eq!((&open[0]["client_order_id"], &open[0]["time"]), (&json!("tribune-7"), &json!("2026-01-02T03:04:05Z")));
    let named = json!({"symbol": "SOLUSDT", "client_order_id": "tribune-7"});
    let error = bench.refused("binance_get_order", named.clone()).await;
    let said = (error.kind(), error.message().contains("may still arrive"));
    assert_eq!(said, (ErrorKind::Unavailable, true), "no clock says how long ago: {error}");
    bench.clock.pass_ms(10_000);
    let error = bench.refused("binance_get_order", named).await;
    assert_eq!(error.kind(), ErrorKind::NotFound, "long over: {error}");
    assert_eq!(bench.events(), ["intent", "absent"]);
    assert_eq!(bench.preview().await["unresolved"], Value::Null);
}

#[tokio::test]
async fn unknown_exchange_time_sends_nothing() {
    let ahead = Arc::new(AtomicI64::new(NO_TIME));
    let on_order = Arc::new(|asked: &Asked| Reply::json(&order_json(asked, "CANCELED")));
    let bench = bench_with(ahead, on_order, |_| ()).await;
    let args = json!({"symbol": "SOLUSDT", "order_id": 28});
    let error = bench.refused("binance_cancel_order", args).await;
    assert!(error.message().starts_with("nothing was done: "), "{error}");
    assert_eq!((bench.sent(), bench.events()), (0, vec!["intent".to_owned(), "refused".to_owned()]));
}

#[tokio::test]
async fn rate_limited_order_was_not_sent() {
    let bench = bench(|_| {
        Reply::new(429, r#"{"code":-1003,"msg":"Too much request weight used."}"#).header("Retry-After", "7")
    })
    .await;
    let error = bench.place().await.expect_err("refused");
    assert!(error.message().starts_with("nothing was done: the exchange asked for a pause"), "{error}");
    assert_eq!(bench.events(), ["intent", "refused"]);
}

#[tokio::test]
async fn expired_order_has_a_note() {
    let lapsed = bench(|asked| Reply::json(&order_json(asked, "EXPIRED"))).await;
    let answer = lapsed.place().await.expect("placed");
    assert_eq!(answer["note"], "the order is EXPIRED: 0 of 0.1 was filled, and no more will be");
    let open = bench(|asked| Reply::json(&order_json(asked, "NEW"))).await;
    assert_eq!(open.place().await.expect("placed")["note"], Value::Null);
}

#[tokio::test]
async fn refusal_never_repeats_secrets() {
    let bench = bench(|asked| {
        let signature = asked.parameter("signature").expect("signature");
        let quantity = asked.parameter("quantity");
        let said = match quantity {
            Some("0.1") => "Account has insufficient balance for requested action.".to_owned(),
            _ => format!("bad {KEY} {signature}"),
        };
        Reply::refusal(-2010, &said)
    })
    .await;
    let error = bench.place().await.expect_err("refused");
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert_eq!(
        error.message(),
        "the exchange rejected the order: Account has insufficient balance for requested action"
    );
    assert_eq!(bench.events(), ["intent", "refused"]);
    let larger = with(order(), json!({"quantity": "0.2"}));
    let token = bench.call("binance_place_order", larger.clone()).await.expect("preview")["preview_token"].clone();
    let error = bench.refused("binance_place_order", with(larger, json!({"preview_token": token}))).await;
    assert_eq!(error.message(), "the exchange rejected the order");
}

#[tokio::test]
async fn clock_offset_is_learnt_again_once() {
    let ahead = Arc::new(AtomicI64::new(0));
    let bench = bench_with(ahead.clone(), Arc::new(|asked| Reply::json(&order_json(asked, "NEW"))), |_| ()).await;
    bench.call("binance_get_account", json!({})).await.expect("account");
    // The exchange's clock jumps; the offset that was learnt is wrong now.
    ahead.store(30_000, Ordering::SeqCst);
    bench.place().await.expect("placed after learning the time again");
    assert_eq!(bench.sent(), 1, "the preview learnt it");
    let counted = |path: &str| bench.server.asked().iter().filter(|asked| asked.path.ends_with(path)).count();
    assert_eq!((counted("/time"), counted("/apiRestrictions")), (2, 2));
}

#[tokio::test]
async fn persistent_clock_skew_is_explained() {
    let bench =
        bench(|_| Reply::refusal(-1021, "Timestamp for this request was 1000ms ahead of the server's time.")).await;
    let error = bench.place().await.expect_err("skew");
    assert!(error.message().contains("clock") && error.message().contains("1000ms ahead"), "{error}");
    assert_eq!(bench.sent(), 2, "tried once more: the exchange had not looked at it");
    assert_eq!(bench.events(), ["intent", "refused"]);
}

#[tokio::test]
#[cfg(target_os = "linux")]
async fn nothing_is_sent_without_a_journal() {
    let full = |settings: &mut Settings| settings.journal = PathBuf::from("/dev/full");
    let on_order = Arc::new(|asked: &Asked| Reply::json(&order_json(asked, "NEW")));
    let bench = bench_with(Arc::default(), on_order, full).await;
    let error = bench.place().await.expect_err("no journal");
    assert!(error.message().starts_with("nothing was sent: the journal"), "{error}");
    assert_eq!(bench.sent(), 0);
}

#[tokio::test]
async fn cancelled_caller_leaves_complete_journal() {
    let arrived = Arc::new(Notify::new());
    let arrives = arrived.clone();
    let bench = bench(move |asked| {
        arrives.notify_one();
        Reply::json(&order_json(asked, "NEW"))
    })
    .await;
    let token = bench.preview().await["preview_token"].clone();
    {
        let placing = bench.call("binance_place_order", with(order(), json!({"preview_token": token})));
        tokio::select! {
            biased;
            () = arrived.notified() => {}
            _ = placing => panic!("answered before it arrived"),
        }
    }
    until(|| bench.events() == ["intent", "done"]).await;
}

#[tokio::test]
async fn journal_keeps_the_callers_order_id() {
    let bench = bench(|_| Reply::new(503, "")).await;
    let args = json!({"symbol": "SOLUSDT", "order_id": 28});
    let error = bench.refused("binance_cancel_order", args).await;
    assert!(error.message().contains("(symbol SOLUSDT, order_id 28)"), "{error}");
    for line in bench.journal() {
        assert_eq!((&line["order_id"], &line["client_order_id"]), (&json!(28), &Value::Null));
    }
}
