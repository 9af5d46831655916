//! The tools against an exchange of the tests' own, which checks signatures.

mod again;
mod bench;
mod limits;
mod outcomes;

use serde_json::{Value, json};
use tribune_core::ErrorKind;

use super::config::tools;
use bench::{bench, order, order_json, settings, signer, with};
use tribune_binance::testing::depth;
use tribune_binance::testing::{Reply, client};

#[tokio::test]
async fn tools_are_listed_in_order() {
    let bench = bench(|_| Reply::new(500, "")).await;
    let names: Vec<&str> = bench.tools.names().collect();
    assert_eq!(
        names,
        [
            "binance_get_account",
            "binance_get_my_trades",
            "binance_place_order",
            "binance_cancel_order",
            "binance_get_order",
            "binance_get_open_orders",
            "binance_get_all_orders",
        ]
    );
    for spec in bench.tools.specs() {
        let changes = matches!(spec.name.as_str(), "binance_place_order" | "binance_cancel_order");
        assert_eq!((spec.hints.read_only, spec.hints.destructive), (!changes, changes), "{}", spec.name);
    }
}

#[tokio::test]
async fn key_is_sent_only_to_encrypted_exchanges() {
    let bench = bench(|_| Reply::new(500, "")).await;
    let rest = client("http://api.binance.com", |_| ());
    let made = tools(settings(bench.journal.clone()), signer(), rest, bench.market.clone());
    let error = made.err().expect("refused");
    assert!(error.message().contains("must begin with https://"), "{error}");
}

#[tokio::test]
async fn order_takes_two_steps() {
    let bench = bench(|asked| Reply::json(&order_json(asked, "NEW"))).await;
    let preview = bench.preview().await;
    assert_eq!(preview["status"], "preview");
    assert_eq!(
        preview["order"],
        json!({
            "symbol": "SOLUSDT", "side": "BUY", "type": "LIMIT", "quantity": "0.1", "price": "150", "time_in_force": "GTC",
        })
    );
    assert_eq!(preview["estimate"]["notional"], "15");
    assert_eq!(preview["estimate"]["fees_included"], false);
    assert_eq!((preview["simulated"].as_bool(), preview["expires_in_secs"].as_u64()), (Some(true), Some(60)));
    assert_eq!(bench.sent(), 0);
    assert_eq!(bench.journal().len(), 0);

    let again = with(order(), json!({"preview_token": preview["preview_token"]}));
    let placed = bench.call("binance_place_order", again.clone()).await.expect("placed");
    assert_eq!((&placed["status"], &placed["order"]["status"]), (&json!("placed"), &json!("NEW")));
    assert_eq!(placed["order"]["client_order_id"], preview["client_order_id"]);
    assert_eq!(placed["exchange_time"], "2017-10-11T12:32:56.595Z");
    let sent = bench.server.asked().into_iter().rfind(|asked| asked.path == "/api/v3/order").expect("sent");
    assert_eq!(sent.query, "", "nothing of an order stands in an address");
    for (name, value) in [("quantity", "0.1"), ("price", "150"), ("timeInForce", "GTC"), ("recvWindow", "5000")] {
        assert_eq!(sent.parameter(name), Some(value));
    }

    bench.call("binance_place_order", again).await.expect("the same answer");
    assert_eq!(bench.sent(), 1);
    assert_eq!(bench.events(), ["intent", "done"]);
    let line = &bench.journal()[1];
    assert_eq!((&line["client_order_id"], &line["result"]["order_id"]), (&preview["client_order_id"], &json!(28)));
    assert_eq!((&line["caller"], &line["request"]["price"]), (&json!("local"), &json!("150")));
}

#[tokio::test]
async fn token_places_only_its_own_order() {
    let bench = bench(|asked| Reply::json(&order_json(asked, "NEW"))).await;
    let token = bench.preview().await["preview_token"].clone();
    let other = with(order(), json!({"quantity": "0.2", "preview_token": token}));
    let error = bench.refused("binance_place_order", other).await;
    assert!(error.message().contains("another order"), "{error}");
    let invented = with(order(), json!({"preview_token": "preview-0"}));
    assert!(bench.refused("binance_place_order", invented).await.message().contains("preview_token is unknown"));
    assert_eq!(bench.sent(), 0);
}

#[tokio::test]
async fn limits_hold_at_both_steps() {
    let bench = bench(|asked| Reply::json(&order_json(asked, "NEW"))).await;
    let market = json!({"symbol": "SOLUSDT", "side": "BUY", "type": "MARKET", "quantity": "0.5"});
    let preview = bench.call("binance_place_order", market.clone()).await.expect("75.01 USDT");
    assert_eq!(preview["estimate"]["notional"], "75.01");
    // Half of what was offered has gone since the preview: 0.25 · 150.02 + 0.25 · 449.98 = 150.
    bench.market.0.lock().expect("book").depth = depth(&[("150", "1000")], &[("150.02", "0.25"), ("449.98", "1000")]);
    let placing = with(market.clone(), json!({"preview_token": preview["preview_token"]}));
    let error = bench.refused("binance_place_order", placing).await;
    assert_eq!(error.kind(), ErrorKind::Forbidden);
    assert!(error.message().contains("value of about 150 USDT is above the limit for one order (100)"), "{error}");
    let error = bench.refused("binance_place_order", market.clone()).await;
    assert!(error.message().contains("about 150 USDT"), "at the first step too: {error}");
    bench.market.0.lock().expect("book").age_ms = 10_001;
    let error = bench.refused("binance_place_order", market).await;
    assert!(error.message().contains("10 s old"), "{error}");
    bench.market.0.lock().expect("book").age_ms = 0;
    for (symbol, part) in [
        ("ADAUSDT", "may not be traded here"),
        ("SOLBTC", "quoted in BTC, in which no cap is set"),
        ("NOPEUSDT", "no symbol `NOPEUSDT`"),
    ] {
        let error = bench.refused("binance_place_order", with(order(), json!({"symbol": symbol}))).await;
        assert!(error.message().contains(part), "{part}: {error}");
    }
    assert_eq!((bench.sent(), bench.journal().len()), (0, 0));
}

#[tokio::test]
async fn unknown_arguments_are_refused_spellings_accepted() {
    let bench = bench(|_| Reply::new(500, "")).await;
    let error = bench.refused("binance_place_order", with(order(), json!({"stop_price": "140"}))).await;
    assert!(error.message().contains("no argument `stop_price`"), "{error}");
    for wrong in [json!({"quantity": "1e3"}), json!({"quantity": 0.1}), json!({"price": "-1"}), json!({"type": "OCO"})]
    {
        let error = bench.refused("binance_place_order", with(order(), wrong)).await;
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
    }
    let loose = json!({"symbol": " solusdt", "side": "buy", "type": "limit", "price": "150", "quantity": "0.1"});
    let preview = bench.call("binance_place_order", loose).await.expect("preview");
    assert_eq!(preview["order"]["symbol"], "SOLUSDT");
}

#[tokio::test]
async fn cancellation_is_one_step_and_recorded() {
    let bench = bench(|asked| Reply::json(&order_json(asked, "CANCELED"))).await;
    let args = json!({"symbol": "SOLUSDT", "client_order_id": "tribune-7"});
    let answer = bench.call("binance_cancel_order", args).await.expect("cancelled");
    assert_eq!(answer["order"]["client_order_id"], "tribune-7", "the order's own name");
    assert_eq!(answer["order"]["time"], Value::Null, "when it was placed is not said");
    assert_eq!(answer["exchange_time"], "2017-10-11T12:32:56.595Z");
    assert_eq!(bench.events(), ["intent", "done"]);
    assert_eq!(bench.journal()[0]["action"], "cancel_order");
    for args in [json!({"symbol": "SOLUSDT"}), json!({"symbol": "SOLUSDT", "order_id": 1, "client_order_id": "x"})] {
        let error = bench.refused("binance_cancel_order", args).await;
        assert!(error.message().contains("either order_id or client_order_id"), "{error}");
    }
    assert_eq!(bench.sent(), 1);
}

#[tokio::test]
async fn queries_change_nothing() {
    let bench = bench(|_| Reply::new(500, "")).await;
    let account = bench.call("binance_get_account", json!({})).await.expect("account");
    assert_eq!(account["balances"], json!([{"asset": "SOL", "free": "1.5", "locked": "0"}]));
    let trades = bench.call("binance_get_my_trades", json!({"symbol": "SOLUSDT"})).await.expect("trades");
    assert_eq!(trades["trades"][0]["quote_quantity"], "15.01");
    let order = bench.call("binance_get_order", json!({"symbol": "SOLUSDT", "orderId": 28})).await.expect("order");
    assert_eq!(order["order"]["status"], "FILLED");
    let open = bench.call("binance_get_open_orders", json!({})).await.expect("open orders");
    assert_eq!((open["count"].as_u64(), open["note"].is_string()), (Some(100), true));
    let all = json!({"symbol": "SOLUSDT", "limit": 100, "start_time": 1_750_000_000_000_u64, "from_id": 3});
    bench.call("binance_get_all_orders", all).await.expect("all orders");
    let asked = bench.server.asked();
    let last = asked.last().expect("asked");
    assert!(
        last.query.starts_with("symbol=SOLUSDT&limit=100&startTime=1750000000000&orderId=3&recvWindow=5000&timestamp=")
    );
    assert_eq!((bench.sent(), bench.journal().len()), (0, 0));
}
