//! The tools against an exchange of the tests' own, which checks signatures.

mod bench;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use serde_json::json;
use tribune_core::ErrorKind;

use super::{Settings, tools};
use crate::number::{Notional, Price};
use crate::rest::testing::{Asked, Reply, client};
use bench::{KEY, bench, bench_with, order, order_json, settings, with};

#[tokio::test]
async fn the_tools_exist_only_with_a_key_and_the_switch() {
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
        assert_eq!(
            (spec.hints.read_only, spec.hints.destructive),
            (!changes, changes),
            "{}",
            spec.name
        );
    }
    let made = |change: fn(&mut Settings)| {
        let mut settings = settings(bench.journal.clone());
        change(&mut settings);
        tools(settings, bench.server.client(|_| ()), bench.market.clone())
    };
    assert!(made(|settings| settings.trading = false).expect("none").is_empty());
    let keyless = made(|settings| settings.credentials = None).err().expect("no key");
    assert!(keyless.message().contains("no API key"));
    assert!(made(|settings| settings.max_order_notional = Notional::ZERO).is_err());
}

#[tokio::test]
async fn a_key_is_not_sent_where_it_does_not_belong() {
    let bench = bench(|_| Reply::new(500, "")).await;
    for (url, part) in [
        ("http://api.binance.com", "must begin with https://"),
        ("https://data-api.binance.vision", "has no accounts"),
    ] {
        let made = tools(
            settings(bench.journal.clone()),
            client(url, |_| ()),
            bench.market.clone(),
        );
        let error = made.err().expect(url);
        assert!(error.message().contains(part), "{error}");
    }
}

#[tokio::test]
async fn an_order_takes_two_steps() {
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
    assert_eq!(
        (preview["simulated"].as_bool(), preview["expires_in_secs"].as_u64()),
        (Some(true), Some(60))
    );
    assert_eq!(bench.sent(), 0);
    assert_eq!(bench.journal().len(), 0);

    let again = with(order(), json!({"preview_token": preview["preview_token"]}));
    let placed = bench.call("binance_place_order", again.clone()).await.expect("placed");
    assert_eq!(
        (&placed["status"], &placed["order"]["status"]),
        (&json!("placed"), &json!("NEW"))
    );
    assert_eq!(placed["order"]["client_order_id"], preview["client_order_id"]);
    assert_eq!(placed["exchange_time"], "2017-10-11T12:32:56.595Z");
    let sent = bench
        .server
        .asked()
        .into_iter()
        .rfind(|asked| asked.path == "/api/v3/order")
        .expect("sent");
    assert_eq!(sent.query, "", "nothing of an order stands in an address");
    for (name, value) in [
        ("quantity", "0.1"),
        ("price", "150"),
        ("timeInForce", "GTC"),
        ("recvWindow", "5000"),
    ] {
        assert_eq!(sent.parameter(name), Some(value));
    }

    let used = bench.refused("binance_place_order", again).await;
    assert!(used.message().contains("has been used"), "{used}");
    assert_eq!(bench.sent(), 1);
    assert_eq!(bench.events(), ["intent", "done"]);
    let line = &bench.journal()[1];
    assert_eq!(
        (&line["client_order_id"], &line["result"]["order_id"]),
        (&preview["client_order_id"], &json!(28))
    );
    assert_eq!(
        (&line["caller"], &line["request"]["price"]),
        (&json!("local"), &json!("150"))
    );
}

#[tokio::test]
async fn a_token_is_good_for_its_own_order_only() {
    let bench = bench(|asked| Reply::json(&order_json(asked, "NEW"))).await;
    let token = bench.preview().await["preview_token"].clone();
    let other = with(order(), json!({"quantity": "0.2", "preview_token": token}));
    let error = bench.refused("binance_place_order", other).await;
    assert!(error.message().contains("another order"), "{error}");
    let invented = with(order(), json!({"preview_token": "preview-0"}));
    assert!(
        bench
            .refused("binance_place_order", invented)
            .await
            .message()
            .contains("not known")
    );
    assert_eq!(bench.sent(), 0);
}

#[tokio::test]
async fn limits_are_kept_at_both_steps() {
    let bench = bench(|asked| Reply::json(&order_json(asked, "NEW"))).await;
    let market = json!({"symbol": "SOLUSDT", "side": "BUY", "type": "MARKET", "quantity": "0.5"});
    let preview = bench
        .call("binance_place_order", market.clone())
        .await
        .expect("75.01 USDT");
    assert_eq!(preview["estimate"]["notional"], "75.01");
    // The price has doubled since the preview.
    bench.market.0.lock().expect("prices").ask = Price::parse("300").ok();
    let placing = with(market.clone(), json!({"preview_token": preview["preview_token"]}));
    let error = bench.refused("binance_place_order", placing).await;
    assert_eq!(error.kind(), ErrorKind::Forbidden);
    assert!(
        error
            .message()
            .contains("about 150 USDT, more than one order may be worth here (100)"),
        "{error}"
    );
    bench.market.0.lock().expect("prices").age_ms = 10_001;
    let error = bench.refused("binance_place_order", market).await;
    assert!(error.message().contains("10 s old"), "{error}");
    bench.market.0.lock().expect("prices").age_ms = 0;
    for (symbol, part) in [
        ("ADAUSDT", "may not be traded here"),
        ("SOLBTC", "quoted in BTC, in which no cap is set"),
        ("NOPEUSDT", "no symbol `NOPEUSDT`"),
    ] {
        let error = bench
            .refused("binance_place_order", with(order(), json!({"symbol": symbol})))
            .await;
        assert!(error.message().contains(part), "{part}: {error}");
    }
    assert_eq!((bench.sent(), bench.journal().len()), (0, 0));
}

#[tokio::test]
async fn arguments_that_are_not_known_are_refused_and_spellings_forgiven() {
    let bench = bench(|_| Reply::new(500, "")).await;
    let error = bench
        .refused("binance_place_order", with(order(), json!({"stop_price": "140"})))
        .await;
    assert!(error.message().contains("no argument `stop_price`"), "{error}");
    for wrong in [
        json!({"quantity": "1e3"}),
        json!({"quantity": 0.1}),
        json!({"price": "-1"}),
        json!({"type": "OCO"}),
    ] {
        let error = bench.refused("binance_place_order", with(order(), wrong)).await;
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
    }
    let loose = json!({"symbol": " solusdt", "side": "buy", "type": "limit", "price": "150", "quantity": "0.1"});
    let preview = bench.call("binance_place_order", loose).await.expect("preview");
    assert_eq!(preview["order"]["symbol"], "SOLUSDT");
}

#[tokio::test]
async fn an_unknown_outcome_is_called_unknown_and_nothing_is_sent_twice() {
    let replies: [fn(&Asked) -> Reply; 5] = [
        |_| Reply::new(503, ""),
        |asked| Reply::json(&order_json(asked, "NEW")).after_ms(2_500),
        |asked| Reply::json(&order_json(asked, "NEW")).half_sent(),
        |_| Reply::json(&json!({"symbol": "SOLUSDT"})),
        |_| Reply::refusal(-1007, "Timeout waiting for response from backend server."),
    ];
    for (at, reply) in replies.into_iter().enumerate() {
        let bench = bench(reply).await;
        let error = bench.place().await.expect_err("unknown");
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        let lines = bench.journal();
        let id = lines[0]["client_order_id"].as_str().expect("id");
        let advice = format!(
            "execution status unknown: look with binance_get_order before trying again (symbol SOLUSDT, client_order_id {id})"
        );
        assert!(error.message().starts_with(&advice), "{at}: {error}");
        assert_eq!(bench.events(), ["intent", "unknown"], "{at}");
        assert_eq!(bench.sent(), 1, "{at}");
    }
}

#[tokio::test]
async fn a_refusal_is_a_refusal_and_never_repeats_secrets() {
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
    let token = bench
        .call("binance_place_order", larger.clone())
        .await
        .expect("preview")["preview_token"]
        .clone();
    let error = bench
        .refused("binance_place_order", with(larger, json!({"preview_token": token})))
        .await;
    assert_eq!(error.message(), "the exchange rejected the order");
}

#[tokio::test]
async fn a_wrong_clock_is_learnt_once_more_and_no_oftener() {
    let ahead = Arc::new(AtomicI64::new(0));
    let bench = bench_with(
        ahead.clone(),
        Arc::new(|asked| Reply::json(&order_json(asked, "NEW"))),
        |_| (),
    )
    .await;
    bench.call("binance_get_account", json!({})).await.expect("account");
    // The exchange's clock jumps; the offset that was learnt is wrong now.
    ahead.store(30_000, Ordering::SeqCst);
    bench.place().await.expect("placed after learning the time again");
    assert_eq!(bench.sent(), 1, "the preview learnt it");
    let counted = |path: &str| {
        bench
            .server
            .asked()
            .iter()
            .filter(|asked| asked.path.ends_with(path))
            .count()
    };
    assert_eq!((counted("/time"), counted("/order/test")), (2, 2));
}

#[tokio::test]
async fn a_clock_that_stays_wrong_is_explained() {
    let bench = bench(|_| {
        Reply::refusal(
            -1021,
            "Timestamp for this request was 1000ms ahead of the server's time.",
        )
    })
    .await;
    let error = bench.place().await.expect_err("skew");
    assert!(
        error.message().contains("clock") && error.message().contains("1000ms ahead"),
        "{error}"
    );
    assert_eq!(bench.sent(), 2, "tried once more: the exchange had not looked at it");
    assert_eq!(bench.events(), ["intent", "refused"]);
}

#[tokio::test]
#[cfg(target_os = "linux")]
async fn without_a_journal_nothing_is_sent() {
    let full = |settings: &mut Settings| settings.journal = PathBuf::from("/dev/full");
    let on_order = Arc::new(|asked: &Asked| Reply::json(&order_json(asked, "NEW")));
    let bench = bench_with(Arc::default(), on_order, full).await;
    let error = bench.place().await.expect_err("no journal");
    assert!(error.message().starts_with("nothing was sent: the journal"), "{error}");
    assert_eq!(bench.sent(), 0);
}

#[tokio::test]
async fn a_caller_who_goes_away_leaves_a_whole_journal() {
    let bench = bench(|asked| Reply::json(&order_json(asked, "NEW")).after_ms(200)).await;
    let token = bench.preview().await["preview_token"].clone();
    let placing = bench.call("binance_place_order", with(order(), json!({"preview_token": token})));
    assert!(tokio::time::timeout(Duration::from_millis(100), placing).await.is_err());
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(bench.events(), ["intent", "done"]);
}

#[tokio::test]
async fn cancelling_is_one_step_and_written_down() {
    let bench = bench(|asked| Reply::json(&order_json(asked, "CANCELED"))).await;
    let args = json!({"symbol": "SOLUSDT", "client_order_id": "tribune-7"});
    let answer = bench.call("binance_cancel_order", args).await.expect("cancelled");
    assert_eq!(answer["order"]["client_order_id"], "tribune-7", "the order's own name");
    assert_eq!(bench.events(), ["intent", "done"]);
    assert_eq!(bench.journal()[0]["action"], "cancel_order");
    for args in [
        json!({"symbol": "SOLUSDT"}),
        json!({"symbol": "SOLUSDT", "order_id": 1, "client_order_id": "x"}),
    ] {
        let error = bench.refused("binance_cancel_order", args).await;
        assert!(
            error.message().contains("either order_id or client_order_id"),
            "{error}"
        );
    }
    assert_eq!(bench.sent(), 1);
}

#[tokio::test]
async fn looking_changes_nothing() {
    let bench = bench(|_| Reply::new(500, "")).await;
    let account = bench.call("binance_get_account", json!({})).await.expect("account");
    assert_eq!(
        account["balances"],
        json!([{"asset": "SOL", "free": "1.5", "locked": "0"}])
    );
    let trades = bench
        .call("binance_get_my_trades", json!({"symbol": "SOLUSDT"}))
        .await
        .expect("trades");
    assert_eq!(trades["trades"][0]["quote_quantity"], "15.01");
    let order = bench
        .call("binance_get_order", json!({"symbol": "SOLUSDT", "orderId": 28}))
        .await
        .expect("order");
    assert_eq!(order["order"]["status"], "FILLED");
    let open = bench
        .call("binance_get_open_orders", json!({}))
        .await
        .expect("open orders");
    assert_eq!((open["count"].as_u64(), open["note"].is_string()), (Some(100), true));
    let all = json!({"symbol": "SOLUSDT", "limit": 100, "start_time": 5, "from_id": 3});
    bench.call("binance_get_all_orders", all).await.expect("all orders");
    let asked = bench.server.asked();
    let last = asked.last().expect("asked");
    assert!(
        last.query
            .starts_with("symbol=SOLUSDT&limit=100&startTime=5&orderId=3&recvWindow=5000&timestamp=")
    );
    assert_eq!((bench.sent(), bench.journal().len()), (0, 0));
}
