use ring::hmac;
use serde_json::json;
use tribune_exchange_sim::{ApiKey, Exchange, Fault, Mode, Settings};

use crate::support::{Reply, Socket, get, request, simulation, units, until};

const KEY: &str = "a-key";
const SECRET: &str = "a-secret";

async fn exchange() -> Exchange {
    let settings = Settings {
        mode: Mode::Simulated(simulation()),
        api_keys: vec![ApiKey {
            key: KEY.to_owned(),
            secret: SECRET.to_owned(),
            balances: vec![("USDT".to_owned(), "100000".to_owned()), ("BTC".to_owned(), "1".to_owned())],
        }],
        ..Settings::default()
    };
    tribune_exchange_sim::start(settings).await.expect("it starts")
}

async fn signed(exchange: &Exchange, method: &str, endpoint: &str, query: &str) -> Reply {
    let time = time(exchange).await;
    signed_at(exchange, time, method, endpoint, query).await
}

async fn time(exchange: &Exchange) -> i64 {
    let answer = get(exchange, "/api/v3/time").await.json();
    answer["serverTime"].as_i64().expect("a time")
}

async fn signed_at(exchange: &Exchange, time: i64, method: &str, endpoint: &str, query: &str) -> Reply {
    let query = format!("{query}{}timestamp={time}", if query.is_empty() { "" } else { "&" });
    let key = hmac::Key::new(hmac::HMAC_SHA256, SECRET.as_bytes());
    let signature: String =
        hmac::sign(&key, query.as_bytes()).as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    let path = format!("/api/v3/{endpoint}?{query}&signature={signature}");
    request(exchange.addr(), method, &path, &format!("X-MBX-APIKEY: {KEY}\r\n"), "").await
}

async fn balance(exchange: &Exchange, asset: &str) -> (i128, i128) {
    let account = signed(exchange, "GET", "account", "").await.json();
    let balances = account["balances"].as_array().expect("balances");
    let found = balances.iter().find(|balance| balance["asset"] == asset).expect("the asset");
    (units(&found["free"]), units(&found["locked"]))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn market_order_trades_against_the_book() {
    let exchange = exchange().await;
    let reply = signed(&exchange, "POST", "order", "symbol=BTCUSDT&side=BUY&type=MARKET&quantity=0.1").await;
    let order = reply.json();
    assert_eq!(order["status"], "FILLED", "{order}");
    let fills = order["fills"].as_array().expect("fills");
    let bought: i128 = fills.iter().map(|fill| units(&fill["qty"])).sum();
    let paid: i128 = fills.iter().map(|fill| units(&fill["qty"]) * units(&fill["price"]) / 100_000_000).sum();
    assert_eq!((bought, paid), (units(&json!("0.10000000")), units(&order["cummulativeQuoteQty"])));
    assert_eq!(balance(&exchange, "BTC").await, (units(&json!("1.10000000")), 0));
    assert_eq!(balance(&exchange, "USDT").await, (units(&json!("100000.00000000")) - paid, 0));
    let trades = get(&exchange, "/api/v3/trades?symbol=BTCUSDT&limit=1000").await.json();
    let id = &fills[0]["tradeId"];
    assert!(trades.as_array().expect("trades").iter().any(|trade| trade["id"] == *id));
    let mine = signed(&exchange, "GET", "myTrades", "symbol=BTCUSDT").await.json();
    assert_eq!(mine.as_array().map(Vec::len), Some(fills.len()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn resting_order_is_shown_found_and_cancelled() {
    let exchange = exchange().await;
    let limit = "symbol=BTCUSDT&side=BUY&type=LIMIT&timeInForce=GTC&quantity=0.5&price=40000.01&newClientOrderId=mine";
    let order = signed(&exchange, "POST", "order", limit).await.json();
    assert_eq!(order["status"], "NEW");
    assert_eq!(balance(&exchange, "USDT").await.1, units(&json!("20000.00500000")));
    let depth = get(&exchange, "/api/v3/depth?symbol=BTCUSDT&limit=5000").await.json();
    let shown = depth["bids"]
        .as_array()
        .expect("bids")
        .iter()
        .any(|level| level[0] == "40000.01000000" && level[1] == "0.50000000");
    assert!(shown);
    assert_eq!(signed(&exchange, "GET", "openOrders", "").await.json().as_array().map(Vec::len), Some(1));
    let again = signed(&exchange, "POST", "order", limit).await;
    assert_eq!(again.json()["code"], -2010, "the same name twice");
    let found = signed(&exchange, "GET", "order", "symbol=BTCUSDT&origClientOrderId=mine").await.json();
    assert_eq!(found["orderId"], order["orderId"]);
    let cancellation = "symbol=BTCUSDT&origClientOrderId=mine&newClientOrderId=";
    let illegal = signed(&exchange, "DELETE", "order", &format!("{cancellation}a.b")).await;
    assert_eq!(illegal.json()["code"], -1100);
    let cancelled = signed(&exchange, "DELETE", "order", &format!("{cancellation}away")).await;
    let cancelled = cancelled.json();
    assert_eq!(cancelled["status"], "CANCELED");
    assert_eq!((&cancelled["clientOrderId"], &cancelled["origClientOrderId"]), (&json!("away"), &json!("mine")));
    assert_eq!(balance(&exchange, "USDT").await, (units(&json!("100000.00000000")), 0));
    let all = signed(&exchange, "GET", "allOrders", "symbol=BTCUSDT").await.json();
    assert_eq!(all[0]["status"], "CANCELED");
}

/// A client that gives up waiting has an order all the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn order_is_executed_despite_a_delayed_answer() {
    let exchange = exchange().await;
    let time = time(&exchange).await;
    let mut socket = Socket::open(&exchange, "/ws/btcusdt@depth@100ms").await;
    exchange.faults().set(&Fault::Delay { millis: 3_600_000 });
    let limit = "symbol=BTCUSDT&side=BUY&type=LIMIT&timeInForce=GTC&quantity=0.5&price=40000.01&newClientOrderId=late";
    let mut placing = std::pin::pin!(signed_at(&exchange, time, "POST", "order", limit));
    loop {
        let update = tokio::select! {
            _ = &mut placing => panic!("the answer is delayed by an hour"),
            update = socket.json() => update,
        };
        if update["b"].to_string().contains(r#"["40000.01000000","0.50000000"]"#) {
            break;
        }
    }
    exchange.faults().clear();
    let found = signed(&exchange, "GET", "order", "symbol=BTCUSDT&origClientOrderId=late").await;
    assert_eq!(found.json()["status"], "NEW", "{}", found.body);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn resting_order_is_filled_by_the_flow() {
    let exchange = exchange().await;
    // At the best bid, so that sellers meet it soon.
    let top = get(&exchange, "/api/v3/ticker/bookTicker?symbol=BTCUSDT").await.json();
    let price = top["bidPrice"].as_str().expect("a price").to_owned();
    let query = format!("symbol=BTCUSDT&side=BUY&type=LIMIT&timeInForce=GTC&quantity=0.001&price={price}");
    let order = signed(&exchange, "POST", "order", &query).await.json();
    let id = order["orderId"].as_u64().expect("an id");
    let query = format!("symbol=BTCUSDT&orderId={id}");
    until("the order is filled", async || signed(&exchange, "GET", "order", &query).await.json()["status"] == "FILLED")
        .await;
    assert_eq!(balance(&exchange, "BTC").await.0, units(&json!("1.00100000")));
    assert_eq!(balance(&exchange, "USDT").await.1, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refusals_have_the_exchange_codes() {
    let exchange = exchange().await;
    let limit = |rest: &str| format!("side=BUY&type=LIMIT&timeInForce=GTC&{rest}");
    for (method, endpoint, query, code) in [
        ("POST", "order", format!("symbol=BTCUSDT&{}", limit("quantity=3&price=60000")), -2010),
        ("POST", "order", format!("symbol=BTCUSDT&{}", limit("quantity=0.000001&price=60000")), -1013),
        ("POST", "order", format!("symbol=BTCUSDT&{}", limit("quantity=1&price=60000.001")), -1013),
        ("POST", "order", format!("symbol=BTCUSDT&{}", limit("quantity=0.00001&price=60000")), -1013),
        ("POST", "order", format!("symbol=LUNAUSDT&{}", limit("quantity=100&price=1")), -1013),
        ("POST", "order", format!("symbol=NOSUCH&{}", limit("quantity=1&price=1")), -1121),
        ("POST", "order", "symbol=BTCUSDT&side=BUY&type=LIMIT&quantity=1&price=1".to_owned(), -1102),
        ("POST", "order", "symbol=BTCUSDT&side=HOLD&type=MARKET&quantity=1".to_owned(), -1117),
        ("POST", "order", "symbol=BTCUSDT&side=BUY&type=LIMIT_MAKER&quantity=0.1&price=90000".to_owned(), -1116),
        ("GET", "order", "symbol=BTCUSDT&orderId=999999".to_owned(), -2013),
        ("DELETE", "order", "symbol=BTCUSDT&orderId=999999".to_owned(), -2011),
        ("GET", "account", "recvWindow=60001".to_owned(), -1131),
    ] {
        let reply = signed(&exchange, method, endpoint, &query).await;
        assert_eq!(reply.json()["code"], code, "{method} {endpoint} {query}: {}", reply.body);
    }
    let killed = "symbol=BTCUSDT&side=BUY&type=LIMIT&timeInForce=FOK&quantity=1&price=50000";
    assert_eq!(signed(&exchange, "POST", "order", killed).await.json()["status"], "EXPIRED");
    let tried = "symbol=BTCUSDT&side=SELL&type=MARKET&quoteOrderQty=100";
    assert_eq!(signed(&exchange, "POST", "order/test", tried).await.json(), json!({}));
    assert_eq!(
        balance(&exchange, "USDT").await,
        (units(&json!("100000.00000000")), 0),
        "nothing was set aside for good"
    );
    let bare = |path: &'static str, header: &'static str| request(exchange.addr(), "GET", path, header, "");
    let unsigned = bare("/api/v3/account", "").await;
    assert_eq!((unsigned.status, &unsigned.json()["code"]), (401, &json!(-2014)));
    let stranger = bare("/api/v3/account?timestamp=1&signature=00", "X-MBX-APIKEY: other\r\n").await;
    assert_eq!(stranger.json()["code"], -2015);
    let forged = bare("/api/v3/account?timestamp=1&signature=00", "X-MBX-APIKEY: a-key\r\n").await;
    assert_eq!((forged.status, &forged.json()["code"]), (400, &json!(-1022)));
}
