//! What stops orders at the simulated exchange: limits, the operator's file, a key that can withdraw, and a confirmation.

use serde_json::{Value, json};

use crate::exchange::Simulator;
use crate::people::tribune;
use crate::protocol::{JSON, rpc};
use crate::support::{TestServer, text};

/// A server that may trade with this key, and the folder of its secrets.
fn trading(simulator: &Simulator, key: &str, more: &str) -> (TestServer, tempfile::TempDir) {
    let dir = tempfile::tempdir().expect("a folder");
    let secret = |name: &str, value: &str| {
        let path = dir.path().join(name);
        std::fs::write(&path, value).expect("a secret");
        format!("file:{}", path.display())
    };
    let server = TestServer::builder()
        .server(&format!("admin_token = \"{}\"", secret("admin", "0123456789abcdef0123")))
        .tables(&format!(
            "[market]\nrest_url = \"{}\"\n[market.trading]\nenabled = true\napi_key = \"{}\"\napi_secret = \"{}\"\nmax_order_notional = \"500\"\n{more}",
            simulator.url,
            secret("key", key),
            secret("secret", "some-secret"),
        ))
        .start();
    (server, dir)
}

fn call(server: &TestServer, tool: &str, arguments: &Value) -> Value {
    let body = rpc("tools/call", json!({"name": tool, "arguments": arguments}));
    let headers = [JSON, ("authorization", "Bearer 0123456789abcdef0123")];
    server.post("/mcp/admin", &headers, &body).json()["result"].clone()
}

fn order(server: &TestServer, arguments: &Value) -> Value {
    call(server, "binance_place_order", arguments)
}

/// A purchase for 100 USDT, far below the market.
fn buy() -> Value {
    json!({"symbol": "BTCUSDT", "side": "BUY", "type": "LIMIT", "quantity": "0.005", "price": "20000"})
}

/// The second call, with the token of a preview.
fn confirmed(server: &TestServer) -> Value {
    let preview = order(server, &buy());
    assert_eq!(preview["isError"], false, "{preview}");
    let mut confirmed = buy();
    confirmed["preview_token"] = preview["structuredContent"]["preview_token"].clone();
    confirmed
}

#[track_caller]
fn refused(answer: &Value, why: &str) {
    let told = text(&answer["content"][0]["text"]);
    assert!(answer["isError"] == true && told.contains(why), "{told}");
}

#[test]
fn limits_and_the_operators_file_stop_orders() {
    let simulator = Simulator::start(&["--key", "some-key:some-secret"]);
    let limits = "max_daily_notional = \"250\"\nmax_orders_per_minute = 9";
    let (mut server, _secrets) = trading(&simulator, "some-key", limits);
    let placed = order(&server, &confirmed(&server));
    assert_eq!(placed["isError"], false, "{placed}");
    let waiting = confirmed(&server);

    let file = server.dir.path().join("tribune-data/stop-orders");
    std::fs::write(&file, "").expect("the file");
    for arguments in [buy(), waiting.clone()] {
        refused(&order(&server, &arguments), "the operator has stopped all orders");
    }
    let named = json!({"symbol": "BTCUSDT", "order_id": placed["structuredContent"]["order"]["order_id"]});
    let cancelled = call(&server, "binance_cancel_order", &named);
    assert_eq!(cancelled["structuredContent"]["status"], "cancelled", "{cancelled}");
    std::fs::remove_file(&file).expect("removed");

    assert_eq!(order(&server, &waiting)["isError"], false);
    refused(&order(&server, &buy()), "the 200 ordered within 24 hours are above the limit for a day (250");
    assert_eq!(server.stop(), Some(0));
    let server = TestServer::over(server.dir.clone(), &[], &[]);
    server.wait_ready();
    refused(&order(&server, &buy()), "the 200 ordered within 24 hours");
}

#[test]
fn key_that_can_withdraw_places_nothing() {
    let simulator = Simulator::start(&["--key", "withdraw-key:some-secret"]);
    let (server, _secrets) = trading(&simulator, "withdraw-key", "");
    refused(&order(&server, &buy()), "this API key can withdraw");
    assert_eq!(call(&server, "binance_get_account", &json!({}))["isError"], false, "looking is possible");
}

#[test]
fn operator_confirms_an_order_on_the_server() {
    let simulator = Simulator::start(&["--key", "some-key:some-secret"]);
    let (server, _secrets) = trading(&simulator, "some-key", "confirm = \"operator\"");
    assert!(tribune(&server, &["orders"]).0.contains("No order is waiting"));
    let arguments = confirmed(&server);
    refused(&order(&server, &arguments), "a person must confirm it first");
    let (waiting, _) = tribune(&server, &["orders"]);
    assert!(waiting.contains("\"price\":\"20000\""), "{waiting}");
    let id = waiting.split(' ').next().expect("an id");
    assert!(tribune(&server, &["orders", "confirm", id]).0.contains("Confirmed"));
    let placed = order(&server, &arguments);
    assert_eq!(placed["structuredContent"]["order"]["client_order_id"], id, "{placed}");
    assert!(tribune(&server, &["orders"]).0.contains("No order is waiting"));
}
