//! Live markets, against the simulator that ships with the binary.

use std::process::Command;

use serde_json::{Value, json};

use crate::exchange::Simulator;
use crate::support::{TestServer, binary, fault, installed, root, text, wait_for};

const DOCUMENTS: [&str; 13] = [
    "ticker:BTCUSDT",
    "orderbook:ETHUSDT",
    "orderbook_l1:BTCUSDT",
    "orderbook_l2:SOLUSDT",
    "klines:BTCUSDT:1h",
    "trades:ETHUSDT",
    "exchange_info:BTCUSDT",
    "analytics:order_flow:BTCUSDT",
    "analytics:volume_profile:BTCUSDT",
    "analytics:liquidity_vacuums:BTCUSDT",
    "analytics:anomalies:BTCUSDT",
    "analytics:health:BTCUSDT",
    "markets:USDT",
];

#[test]
fn every_market_document_is_fetched_and_cited() {
    let simulator = Simulator::start(&["--seed", "3"]);
    let server = simulator.serve();
    for id in DOCUMENTS {
        let document = server.call("fetch", json!({"id": id}));
        assert_eq!(document["id"], id);
        assert!(text(&document["title"]).starts_with("SIMULATED "), "{document}");
        assert!(text(&document["text"]).starts_with("SIMULATED"), "{document}");
        let metadata = &document["metadata"];
        for field in ["quote_asset", "venue", "data_source", "received_time", "age_ms", "simulated"] {
            assert!(!metadata[field].is_null(), "{id} has no {field}: {metadata}");
        }
        // The citation shows the cited text word for word, with a link to the current one.
        let url = text(&document["url"]).replace(&server.url, "");
        let cited = server.get(&url, &[("accept", "application/json")]).json();
        assert_eq!(cited["text"], document["text"], "{id}");
        let page = server.get(&url, &[("accept", "text/html")]);
        assert_eq!(page.status, 200);
        assert!(page.body.contains("As cited on"), "{}", page.body);
        assert!(page.body.contains(">See it now<"), "{}", page.body);
        assert!(page.body.contains("SIMULATED"));
        // `fetch` of the link returns the record too.
        let again = server.call("fetch", json!({"id": document["url"]}));
        assert_eq!(again["text"], document["text"]);
    }
    // A missing record is not replaced by the current value.
    let lost = fault(&server, "fetch", &json!({"id": format!("{}/data/ticker:BTCUSDT?at=nonsense", server.url)}));
    assert!(lost.contains("Unknown permalink") && lost.contains("ticker:BTCUSDT"), "{lost}");
    let current = server.get("/data/ticker:BTCUSDT", &[("accept", "text/html")]);
    assert!(current.body.contains("data-live=") && !current.body.contains("As cited on"), "{}", current.body);
    let unknown = server.get("/data/ticker:BTCUSDT?at=nonsense", &[("accept", "text/html")]);
    assert_eq!(unknown.status, 404);
    assert!(unknown.body.contains("Current values of ticker:BTCUSDT"), "{}", unknown.body);
}

#[test]
fn search_finds_markets_only_for_market_questions() {
    let simulator = Simulator::start(&[]);
    let server = simulator.serve();
    for (query, id) in [
        ("Bitcoin trading volume", "ticker:BTCUSDT"),
        ("ETHUSDT", "ticker:ETHUSDT"),
        ("eth/btc 1h candles", "klines:ETHBTC:1h"),
        ("order flow on solana", "analytics:order_flow:SOLUSDT"),
        ("What is the current price of Bitcoin?", "ticker:BTCUSDT"),
    ] {
        let found = server.call("search", json!({"query": query}));
        let first = &found["results"][0];
        assert_eq!(first["id"], id, "{query}: {found}");
        assert!(text(&first["text"]).starts_with("SIMULATED") && text(&first["text"]).chars().count() <= 200);
        assert!(text(&first["url"]).contains("/data/") && text(&first["url"]).contains("?at="));
        let symbol = &first["metadata"]["resolved_symbol"];
        assert!(id.contains(text(symbol)), "{first}");
    }
    let both = server.call("search", json!({"query": "bitcoin vs ethereum spread"}));
    let ids: Vec<&str> = both["results"].as_array().expect("results").iter().map(|hit| text(&hit["id"])).collect();
    assert!(ids.contains(&"orderbook_l1:BTCUSDT") && ids.contains(&"orderbook_l1:ETHUSDT"), "{ids:?}");
    let speech = server.call("search", json!({"query": "budget speech on housing"}));
    let first = &speech["results"][0];
    assert!(text(&first["id"]).starts_with("docs:"), "{speech}");
    assert_eq!(speech["results"].as_array().expect("results").len(), 1, "{speech}");
    // Searched alone, the market finds nothing.
    let alone = json!({"name": "search", "arguments": {"query": "what is the weather"}});
    let nothing = server.modern("/mcp/market", "tools/call", alone).json();
    assert_eq!(nothing["result"]["structuredContent"]["results"], json!([]));
}

#[test]
fn market_tools_return_figures_and_times() {
    let simulator = Simulator::start(&[]);
    let server = simulator.serve();
    let listed = server.modern("/mcp/market", "tools/list", json!({})).json();
    let names: Vec<&str> =
        listed["result"]["tools"].as_array().expect("tools").iter().map(|tool| text(&tool["name"])).collect();
    assert_eq!(names.iter().filter(|name| name.starts_with("binance_")).count(), 17, "{names:?}");
    assert!(!names.iter().any(|name| name.contains("order") && name.contains("place")), "{names:?}");
    assert_eq!(server.modern("/mcp/admin", "tools/list", json!({})).status, 404, "nothing to administer");

    let symbol = json!({"symbol": "BTCUSDT"});
    for (tool, arguments, fields) in [
        ("binance_get_ticker", symbol.clone(), vec!["last_price", "price_change_pct", "quote_volume", "age_ms"]),
        ("binance_get_orderbook", json!({"symbol": "btc/usdt", "limit": 5}), vec!["bids", "asks", "last_update_id"]),
        ("binance_get_recent_trades", json!({"symbol": "BTCUSDT", "limit": 7}), vec!["trades", "summary"]),
        (
            "binance_get_klines",
            json!({"symbol": "BTCUSDT", "interval": "1m", "limit": 3}),
            vec!["klines", "last_closed"],
        ),
        ("binance_get_exchange_info", symbol.clone(), vec!["tick_size", "status"]),
        ("binance_get_avg_price", symbol.clone(), vec!["average_price", "window_minutes"]),
        ("binance_orderbook_l1", symbol.clone(), vec!["mid", "spread_bps", "microprice", "book_state"]),
        ("binance_orderbook_l2", symbol.clone(), vec!["bands", "top_levels"]),
        ("binance_orderbook_health", symbol.clone(), vec!["walls", "bands"]),
        ("binance_get_order_flow", json!({"symbol": "BTCUSDT", "window_seconds": 30}), vec!["net_flow_base", "trades"]),
        ("binance_get_volume_profile", json!({"symbol": "BTCUSDT", "hours": 4}), vec!["poc", "vah", "val"]),
        ("binance_detect_market_anomalies", symbol.clone(), vec!["checks", "checked"]),
        ("binance_get_microstructure_health", symbol.clone(), vec!["score", "components", "weights_used"]),
        ("binance_get_liquidity_vacuums", symbol.clone(), vec!["vacuums"]),
        (
            "binance_cost_to_trade",
            json!({"symbol": "SOLUSDT", "side": "buy", "notional": 2000}),
            vec!["vwap", "slippage_bps", "filled"],
        ),
        ("binance_top_markets", json!({"sort_by": "gain", "limit": "5"}), vec!["markets", "rose", "quote_volume"]),
        ("binance.get_ticker", symbol.clone(), vec!["last_price"]),
    ] {
        let answer = server.call(tool, arguments);
        for field in fields {
            assert!(!answer[field].is_null(), "{tool} has no {field}: {answer}");
        }
        assert!(text(&answer["url"]).contains("?at="), "{tool}: {answer}");
        assert!(text(&answer["simulated"]).starts_with("SIMULATED"), "{tool}: {answer}");
    }
    let several = server.call("binance_get_ticker", json!({"symbols": ["BTCUSDT", "ETHUSDT", "NOPEUSDT"]}));
    assert_eq!(several["results"].as_array().map(Vec::len), Some(2));
    assert_eq!(several["failed"][0]["symbol"], "NOPEUSDT");
    let compared = server.call("binance_compare_markets", json!({"symbols": ["BTCUSDT", "ETHUSDT"]}));
    assert_eq!(compared["results"].as_array().map(Vec::len), Some(2), "{compared}");
    let whole = server.call("binance_get_klines", json!({"symbol": "BTCUSDT", "interval": "1m", "limit": 1000}));
    assert!(whole.to_string().len() < 80_000);
}

#[test]
fn wrong_market_arguments_are_explained() {
    let simulator = Simulator::start(&[]);
    let server = simulator.serve();
    for (tool, arguments, told) in [
        ("fetch", json!({"id": "ticker:BTCUSTD"}), "There is no symbol BTCUSTD"),
        ("fetch", json!({"id": "ticker:BTCUSTD"}), "BTCUSDT"),
        ("fetch", json!({"id": "klines:BTCUSDT:7m"}), "15m"),
        ("fetch", json!({"id": "analytics:BTCUSDT:order_flow"}), "analytics:order_flow:BTCUSDT"),
        ("fetch", json!({"id": "ticker:LUNAUSDT"}), "not traded now"),
        ("binance_get_klines", json!({"symbol": "BTCUSDT", "interval": "7m"}), "`interval` must be one of"),
        ("binance_get_ticker", json!({}), "give `symbol`"),
        ("binance_get_ticker", json!({"symbol": "BTCUSDT", "nonsense": 1}), "there is no argument `nonsense`"),
        ("binance_cost_to_trade", json!({"symbol": "BTCUSDT", "side": "buy"}), "either `notional`"),
        ("binance_get_orderbook", json!({"symbol": "BTCUSDT", "limit": 7}), "`limit` must be one of"),
    ] {
        let message = fault(&server, tool, &arguments);
        assert!(message.contains(told), "{tool} {arguments}: {message}");
    }
    // Without the exchange, books are stale and say so; the rest reports the error.
    drop(simulator);
    wait_for("a stale book", || {
        let book = server.call("binance_orderbook_l1", json!({"symbol": "BTCUSDT"}));
        book["book_state"] == "stale" && book["book_state_reason"].is_string()
    });
    let message = fault(&server, "fetch", &json!({"id": "ticker:ETHUSDT"}));
    assert!(message.contains("refused"), "{message}");
    let ready = server.readiness();
    assert!(ready.body.contains("streams: "), "{}", ready.body);
    // Search still knows the symbols and dates its prices.
    let found = server.call("search", json!({"query": "bitcoin"}));
    assert_eq!(found["results"][0]["id"], "ticker:BTCUSDT");
}

#[test]
fn sim_command_replays_a_recording() {
    let dir = tempfile::tempdir().expect("a folder");
    let file = dir.path().join("btcusdt.jsonl");
    std::fs::write(&file, recording()).expect("a recording");
    let simulator = Simulator::start(&["--speed", "5", "--replay", &file.display().to_string()]);
    let server = simulator.serve();
    wait_for("the last update", || {
        let book = server.call("binance_orderbook_l1", json!({"symbol": "BTCUSDT"}));
        book["last_update_id"] == 140
    });
    let book = server.call("binance_get_orderbook", json!({"symbol": "BTCUSDT", "limit": 5}));
    assert_eq!(book["best_bid"]["price"], "100.4", "{book}");
    assert_eq!(book["best_ask"]["price"], "101");
    assert!(text(&book["simulated"]).contains("replay"), "{book}");
}

/// Four seconds: every update raises the best bid by 0.01 and is announced.
fn recording() -> String {
    let mut lines = vec![
        r#"1700000000000000000 {"lastUpdateId":100,"bids":[["100.00","1"],["99.00","2"]],"asks":[["101.00","1"],["102.00","3"]]}"#
            .to_owned(),
    ];
    for step in 1..=40u64 {
        let (id, ns) = (100 + step, 1_700_000_000_000_000_000 + step * 100_000_000);
        let price = format!("{:.2}", 100.0 + step as f64 / 100.0);
        let millis = ns / 1_000_000;
        lines.push(format!(
            r#"{ns} {{"stream":"btcusdt@bookTicker","data":{{"u":{id},"s":"BTCUSDT","b":"{price}","B":"1","a":"101.00","A":"1"}}}}"#
        ));
        lines.push(format!(
            r#"{} {{"stream":"btcusdt@depth@100ms","data":{{"e":"depthUpdate","E":{millis},"s":"BTCUSDT","U":{id},"u":{id},"b":[["{price}","1"]],"a":[]}}}}"#,
            ns + 1
        ));
        lines.push(format!(
            r#"{} {{"stream":"btcusdt@trade","data":{{"e":"trade","E":{millis},"s":"BTCUSDT","t":{step},"p":"{price}","q":"0.5","T":{millis},"m":true,"M":true}}}}"#,
            ns + 2
        ));
    }
    lines.join("\n") + "\n"
}

#[test]
fn demo_has_a_simulated_exchange() {
    let dir = tempfile::tempdir().expect("a folder");
    let answer = Command::new(binary())
        .args(["fetch", "--json", "ticker:BTCUSDT"])
        .current_dir(dir.path())
        .output()
        .expect("runs");
    assert!(answer.status.success(), "{}", String::from_utf8_lossy(&answer.stderr));
    let document: Value = serde_json::from_slice(&answer.stdout).expect("JSON");
    assert!(text(&document["title"]).starts_with("SIMULATED"), "{document}");
}

#[test]
fn orders_need_switch_token_preview_and_limit() {
    let simulator = Simulator::start(&["--key", "some-key:some-secret"]);
    let dir = tempfile::tempdir().expect("a folder");
    for (name, secret) in [("key", "some-key"), ("secret", "some-secret"), ("admin", "0123456789abcdef0123")] {
        std::fs::write(dir.path().join(name), secret).expect("a secret");
    }
    let at = |name: &str| format!("file:{}", dir.path().join(name).display());
    let server = TestServer::builder()
        .server(&format!("admin_token = \"{}\"", at("admin")))
        .tables(&format!(
            "[market]\nrest_url = \"{}\"\n[market.trading]\nenabled = true\napi_key = \"{}\"\napi_secret = \"{}\"\nmax_order_notional = \"500\"",
            simulator.url,
            at("key"),
            at("secret")
        ))
        .start();
    // Only in the admin profile, and only with the token.
    for profile in ["/mcp", "/mcp/full", "/mcp/research", "/mcp/market"] {
        let listed = server.modern(profile, "tools/list", json!({}));
        assert!(!listed.body.contains("binance_place_order"), "{profile}");
    }
    assert_eq!(server.modern("/mcp/admin", "tools/list", json!({})).status, 401);
    let call = |tool: &str, arguments: Value| {
        let body = json!({
            "jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": {"name": tool, "arguments": arguments, "_meta": {
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": {},
            }},
        });
        let headers = [
            ("content-type", "application/json"),
            ("accept", "application/json, text/event-stream"),
            ("mcp-protocol-version", "2026-07-28"),
            ("mcp-method", "tools/call"),
            ("mcp-name", tool),
            ("authorization", "Bearer 0123456789abcdef0123"),
        ];
        server.post("/mcp/admin", &headers, &body.to_string()).json()["result"].clone()
    };
    let account = call("binance_get_account", json!({}));
    assert_eq!(account["isError"], false, "{account}");
    assert!(account.to_string().contains("USDT"), "{account}");

    let order = json!({"symbol": "BTCUSDT", "side": "BUY", "type": "LIMIT", "quantity": "0.005", "price": "20000"});
    let preview = call("binance_place_order", order.clone());
    assert_eq!(preview["isError"], false, "{preview}");
    let token = &preview["structuredContent"]["preview_token"];
    assert!(token.is_string(), "{preview}");
    let mut confirmed = order;
    confirmed["preview_token"] = token.clone();
    let placed = call("binance_place_order", confirmed.clone());
    assert_eq!(placed["isError"], false, "{placed}");
    let again = call("binance_place_order", confirmed);
    let order_of = |answer: &Value| answer["structuredContent"]["order"].clone();
    assert_eq!(order_of(&again), order_of(&placed), "a token is good for one order");
    let open = call("binance_get_open_orders", json!({"symbol": "BTCUSDT"}));
    assert_eq!(open["structuredContent"]["count"], 1, "{open}");
    assert!(open["structuredContent"].to_string().contains("20000"), "{open}");
    let large = json!({"symbol": "BTCUSDT", "side": "BUY", "type": "LIMIT", "quantity": "0.05", "price": "20000"});
    let refused = call("binance_place_order", large);
    assert!(text(&refused["content"][0]["text"]).contains("500"), "{refused}");

    let journal = std::fs::read_to_string(server.dir.path().join("tribune-data/orders.jsonl")).expect("the journal");
    assert!(journal.lines().count() >= 2 && !journal.contains("some-secret"), "{journal}");
    assert!(!server.log().contains("some-secret"));
}

#[test]
fn published_clients_accept_the_simulator() {
    let simulator = Simulator::start(&["--seed", "5"]);
    let checked = Command::new(installed("py-exchange/bin/python"))
        .arg(root().join("tests/exchange/check.py"))
        .arg(&simulator.url)
        .arg(simulator.url.replace("http://", "ws://"))
        .output()
        .expect("python runs");
    let told = format!("{}{}", String::from_utf8_lossy(&checked.stdout), String::from_utf8_lossy(&checked.stderr));
    assert!(checked.status.success(), "{told}");
}
