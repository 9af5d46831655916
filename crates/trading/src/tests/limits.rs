//! What keeps orders from being sent: limits, the operator's file, a key that can withdraw, and a person's confirmation.

use std::sync::Arc;

use serde_json::{Value, json};
use tribune_core::ErrorKind;

use super::bench::{Bench, bench, bench_with, order, order_json, with};
use crate::Settings;
use crate::confirm::WaitingOrders;
use tribune_binance::Notional;
use tribune_binance::testing::{Asked, Reply};

async fn limited(change: impl FnOnce(&mut Settings)) -> Bench {
    bench_with(Arc::default(), Arc::new(|asked: &Asked| Reply::json(&order_json(asked, "NEW"))), change).await
}

#[tokio::test]
async fn limits_hold_across_a_restart() {
    let limit = |settings: &mut Settings| {
        settings.limits.daily_notional = "40".parse::<Notional>().ok();
        settings.limits.orders_per_minute = Some(2);
    };
    let first = limited(limit).await;
    first.place().await.expect("15 USDT");
    let larger = with(order(), json!({"quantity": "0.2"}));
    let error = first.refused("binance_place_order", larger.clone()).await;
    assert_eq!(error.kind(), ErrorKind::Forbidden);
    assert!(error.message().contains("about 30 and the 15 ordered within 24 hours"), "{error}");

    let journal = first.journal.clone();
    let later = limited(|settings| {
        limit(settings);
        settings.journal = journal;
    })
    .await;
    let error = later.refused("binance_place_order", larger).await;
    assert!(error.message().contains("max_daily_notional"), "{error}");
    let waiting = later.preview().await["preview_token"].clone();
    later.place().await.expect("30 USDT in all");
    let error = later.refused("binance_place_order", with(order(), json!({"preview_token": waiting}))).await;
    assert!(error.message().contains("2 orders were sent in the last minute"), "{error}");
    assert_eq!((first.sent(), later.sent()), (1, 1));
}

#[tokio::test]
async fn concurrent_orders_share_the_limits() {
    let bench = limited(|settings| settings.limits.orders_per_minute = Some(3)).await;
    let mut tokens = Vec::new();
    for _ in 0..8 {
        tokens.push(bench.preview().await["preview_token"].clone());
    }
    let calls = tokens
        .into_iter()
        .map(|token| bench.call("binance_place_order", with(order(), json!({"preview_token": token}))));
    let placed = futures::future::join_all(calls).await.into_iter().filter(Result::is_ok).count();
    assert_eq!((placed, bench.sent()), (3, 3));
}

#[tokio::test]
async fn operators_file_stops_orders_but_no_cancellation() {
    let bench = limited(|_| ()).await;
    let token = bench.preview().await["preview_token"].clone();
    let placing = with(order(), json!({"preview_token": token}));
    let file = bench.journal.with_file_name("stop-orders");
    std::fs::write(&file, "").expect("a file");
    for args in [order(), placing.clone()] {
        let error = bench.refused("binance_place_order", args).await;
        assert_eq!(error.kind(), ErrorKind::Forbidden);
        assert!(error.message().contains("the operator has stopped all orders"), "{error}");
    }
    assert_eq!(bench.sent(), 0);
    let cancelling = json!({"symbol": "SOLUSDT", "order_id": 28});
    bench.call("binance_cancel_order", cancelling).await.expect("cancelled");
    std::fs::remove_file(&file).expect("removed");
    bench.call("binance_place_order", placing).await.expect("the token is still good");
}

#[tokio::test]
async fn key_that_can_withdraw_is_refused() {
    let bench = bench(|asked| Reply::json(&order_json(asked, "NEW"))).await;
    bench.can_withdraw.store(true, std::sync::atomic::Ordering::SeqCst);
    let error = bench.refused("binance_place_order", order()).await;
    assert_eq!(error.kind(), ErrorKind::Forbidden);
    assert!(error.message().contains("this API key can withdraw; switch \"Enable Withdrawals\" off"), "{error}");
}

#[tokio::test]
async fn order_waits_for_the_operator() {
    let bench = limited(|settings| settings.waiting = settings.journal.parent().map(WaitingOrders::new)).await;
    let preview = bench.preview().await;
    assert_eq!(preview["expires_in_secs"], 600);
    let placing = with(order(), json!({"preview_token": preview["preview_token"]}));
    let name = preview["client_order_id"].as_str().expect("a name");
    for _ in 0..2 {
        let error = bench.refused("binance_place_order", placing.clone()).await;
        assert!(error.message().contains(&format!("tribune orders confirm {name}")), "{error}");
    }
    assert_eq!((bench.sent(), bench.journal().len()), (0, 0));

    let waiting = WaitingOrders::new(bench.journal.parent().expect("a folder"));
    let orders = waiting.list().expect("a list");
    assert_eq!((orders.len(), &*orders[0].client_order_id), (1, name));
    assert_eq!(orders[0].order["price"], "150");
    assert!(waiting.confirm("tribune-another").is_err() && waiting.confirm("../orders").is_err());
    waiting.confirm(name).expect("confirmed");
    assert!(waiting.list().expect("a list").is_empty());

    let other = bench.preview().await["preview_token"].clone();
    let error = bench.refused("binance_place_order", with(order(), json!({"preview_token": other}))).await;
    assert!(error.message().contains("a person must confirm it first"), "each order by itself: {error}");
    let placed = bench.call("binance_place_order", placing).await.expect("placed");
    assert_eq!((&placed["status"], &placed["note"], bench.sent()), (&json!("placed"), &Value::Null, 1));
}
