//! A stop during calls: each is answered, on every transport.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;

use serde_json::{Value, json};

use crate::exchange::Simulator;
use crate::protocol::{JSON, initialize, rpc};
use crate::support::{PATIENCE, TestServer, text, wait_for};

const ADMIN: &str = "Bearer 0123456789abcdef0123";

/// A server that may trade, and the folder of its secrets.
fn trading(simulator: &Simulator) -> (TestServer, tempfile::TempDir) {
    let dir = tempfile::tempdir().expect("a folder");
    let secret = |name: &str, value: &str| {
        let path = dir.path().join(name);
        std::fs::write(&path, value).expect("a secret");
        format!("file:{}", path.display())
    };
    let server = TestServer::builder()
        .server(&format!("admin_token = \"{}\"", secret("admin", "0123456789abcdef0123")))
        .tables(&format!(
            "[market]\nrest_url = \"{}\"\nsymbols = [\"BTCUSDT\"]\n[market.trading]\nenabled = true\napi_key = \"{}\"\napi_secret = \"{}\"\nmax_order_notional = \"500\"",
            simulator.url,
            secret("key", "some-key"),
            secret("secret", "some-secret"),
        ))
        .start();
    wait_for("a live book", || {
        let book = server.call("binance_orderbook_l1", json!({"symbol": "BTCUSDT"}));
        book["book_state"] == "live"
    });
    (server, dir)
}

fn call(tool: &str, arguments: &Value) -> Value {
    json!({"name": tool, "arguments": arguments})
}

fn order(server: &TestServer, arguments: &Value) -> Value {
    let body = rpc("tools/call", call("binance_place_order", arguments));
    let answer = server.post("/mcp/admin", &[JSON, ("authorization", ADMIN)], &body);
    assert_eq!(answer.status, 200, "{}", answer.body);
    answer.json()["result"].clone()
}

/// Candles of another symbol each time, so that no two calls share a request.
fn candles(symbol: &str) -> Value {
    call("binance_get_klines", &json!({"symbol": symbol, "interval": "1m", "limit": 3}))
}

/// The transports of a call.
#[derive(Debug, Clone, Copy)]
enum Way {
    Modern,
    /// The modern era with progress notifications.
    Streamed,
    Stateless,
    Session,
    Admin,
    Sse,
}

impl Way {
    /// Opens the transport; the returned function makes the call.
    fn open<'a>(self, server: &'a TestServer, symbol: &'static str) -> Box<dyn FnOnce() -> Value + Send + 'a> {
        let body = rpc("tools/call", candles(symbol));
        match self {
            Self::Modern => Box::new(move || server.modern("/mcp", "tools/call", candles(symbol)).json()),
            Self::Streamed => Box::new(move || {
                let mut params = candles(symbol);
                params["_meta"] = json!({
                    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                    "io.modelcontextprotocol/clientCapabilities": {},
                    "progressToken": 7,
                });
                let headers = [
                    JSON,
                    ("accept", "application/json, text/event-stream"),
                    ("mcp-protocol-version", "2026-07-28"),
                    ("mcp-method", "tools/call"),
                    ("mcp-name", "binance_get_klines"),
                ];
                server.post("/mcp", &headers, &rpc("tools/call", params)).json()
            }),
            Self::Stateless => Box::new(move || server.post("/mcp", &[JSON], &body).json()),
            Self::Session => {
                let session = initialize(server, "2025-06-18").header("mcp-session-id").to_owned();
                Box::new(move || {
                    let headers = [JSON, ("mcp-session-id", session.as_str())];
                    server.post("/mcp", &headers, &body).json()
                })
            }
            Self::Admin => Box::new(move || {
                let headers = [JSON, ("authorization", ADMIN)];
                server.post("/mcp/admin", &headers, &body).json()
            }),
            Self::Sse => {
                let mut stream = Stream::open(server);
                Box::new(move || {
                    assert_eq!(server.post(&stream.path, &[JSON], &body).status, 202);
                    stream.read_message()
                })
            }
        }
    }
}

/// An initialized connection of the older transport.
struct Stream {
    stream: TcpStream,
    path: String,
}

impl Stream {
    fn open(server: &TestServer) -> Self {
        let mut stream = TcpStream::connect(("127.0.0.1", server.port)).expect("connected");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        let get = b"GET /sse HTTP/1.1\r\nhost: localhost\r\naccept: text/event-stream\r\n\r\n";
        stream.write_all(get).expect("sent");
        let mut opened = Self { stream, path: String::new() };
        let endpoint = opened.read_until("sessionId=");
        opened.path = endpoint.lines().find_map(|line| line.strip_prefix("data: ")).expect("a path").to_owned();
        let hello =
            json!({"protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": {"name": "it", "version": "1"}});
        server.post(&opened.path, &[JSON], &rpc("initialize", hello));
        opened.read_until("serverInfo");
        let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string();
        server.post(&opened.path, &[JSON], &ready);
        opened
    }

    /// Reads until an event contains `part`.
    fn read_until(&mut self, part: &str) -> String {
        let mut seen = String::new();
        let mut buffer = [0; 4096];
        while !(seen.contains(part) && seen.contains("\n\n")) {
            let read = self.stream.read(&mut buffer).expect("more of the stream");
            assert!(read > 0, "it ended without {part}: {seen}");
            seen.push_str(&String::from_utf8_lossy(&buffer[..read]));
        }
        seen
    }

    fn read_message(&mut self) -> Value {
        let event = self.read_until("\"jsonrpc\"");
        let data = event.lines().find_map(|line| line.strip_prefix("data: "));
        serde_json::from_str(data.expect("data")).expect("a message")
    }
}

/// The number of candle requests and placed orders.
fn asked(simulator: &Simulator) -> u64 {
    let state = ureq::get(format!("{}/sim/state", simulator.url)).call();
    let state = state.expect("an answer").body_mut().read_to_string().expect("a body");
    let state: Value = serde_json::from_str(&state).expect("JSON");
    let requests = state["counts"]["requests"].as_object().or(state["requests"].as_object());
    let counted = requests.expect("counts").iter();
    let wanted = counted.filter(|(path, _)| path.ends_with("/klines") || path.ends_with("/order"));
    wanted.filter_map(|(_, count)| count.as_u64()).sum()
}

#[test]
fn running_calls_are_answered_before_stop() {
    let simulator = Simulator::start(&["--key", "some-key:some-secret"]);
    let ways = [
        (Way::Modern, "ETHUSDT"),
        (Way::Streamed, "SOLUSDT"),
        (Way::Stateless, "XRPUSDT"),
        (Way::Session, "ADAUSDT"),
        (Way::Admin, "DOGEUSDT"),
        (Way::Sse, "BNBUSDT"),
    ];
    for round in 0..4 {
        let (server, _secrets) = trading(&simulator);
        let buy = json!({"symbol": "BTCUSDT", "side": "BUY", "type": "LIMIT", "quantity": "0.005", "price": "20000"});
        let preview = order(&server, &buy);
        let mut confirmed = buy;
        confirmed["preview_token"] = preview["structuredContent"]["preview_token"].clone();
        let opened: Vec<_> = ways.iter().map(|(way, symbol)| (way, way.open(&server, symbol))).collect();
        simulator.fault(&json!({"fault": "delay", "millis": 1_000}));
        std::thread::scope(|scope| {
            let before = asked(&simulator);
            let calls: Vec<_> = opened.into_iter().map(|(way, call)| (way, scope.spawn(call))).collect();
            let placing = scope.spawn(|| order(&server, &confirmed));
            // Each call has reached the exchange, which delays its answer.
            let all = ways.len() as u64 + 1;
            wait_for("the calls", || asked(&simulator) >= before + all);
            let told = Command::new("kill").args(["-TERM", &server.pid().to_string()]).status();
            assert!(told.expect("kill").success());
            for (way, call) in calls {
                let answer = call.join().expect("an answer");
                assert_eq!(answer["result"]["isError"], false, "{way:?}, round {round}: {answer}");
            }
            let placed = placing.join().expect("an answer");
            assert_eq!(placed["structuredContent"]["status"], "placed", "round {round}: {placed}");
        });
        simulator.fault(&json!({"fault": "clear"}));
        server.wait_for_log("stopped");
    }
}

#[test]
fn damaged_journal_is_reported_and_keeps_its_tokens() {
    let simulator = Simulator::start(&["--key", "some-key:some-secret"]);
    let (mut server, _secrets) = trading(&simulator);
    let buy = json!({"symbol": "BTCUSDT", "side": "BUY", "type": "LIMIT", "quantity": "0.005", "price": "20000"});
    let preview = order(&server, &buy);
    let mut confirmed = buy.clone();
    confirmed["preview_token"] = preview["structuredContent"]["preview_token"].clone();
    assert_eq!(order(&server, &confirmed)["isError"], false);
    assert_eq!(server.stop(), Some(0));

    let journal = server.dir.path().join("tribune-data/orders.jsonl");
    let whole = std::fs::read_to_string(&journal).expect("the journal");
    std::fs::write(&journal, format!("{whole}{{\"canary\n")).expect("damaged");
    let server = TestServer::over(server.dir.clone(), &[], &[]);
    server.wait_ready();
    let log = server.wait_for_log("is incomplete: lines that cannot be read: 1, the first is line 3");
    assert!(!log.contains("canary"), "{log}");
    let again = order(&server, &confirmed);
    let note = text(&again["structuredContent"]["note"]);
    assert!(note.contains("nothing was placed again"), "{again}");
    let mut other = confirmed.clone();
    other["quantity"] = json!("0.006");
    let told = order(&server, &other);
    let told = text(&told["content"][0]["text"]);
    assert!(told.contains("has been used") && told.contains("do not order again"), "{told}");
    let preview = order(&server, &buy)["structuredContent"].clone();
    assert!(text(&preview["note"]).contains("line 3"), "{preview}");
    assert_eq!(preview["recent_orders"][0]["outcome"], "placed", "{preview}");
}

#[test]
fn invalid_tokens_say_which_is_expected() {
    let simulator = Simulator::start(&["--key", "some-key:some-secret"]);
    let (server, _secrets) = trading(&simulator);
    let body = rpc("tools/list", json!({}));
    let answer = server.post("/mcp/admin", &[JSON, ("authorization", "Bearer wrong")], &body);
    assert_eq!(answer.status, 401);
    assert!(answer.body.contains("This is not the token of server.admin_token"), "{}", answer.body);
    let answer = server.post("/mcp", &[JSON, ("authorization", "Bearer wrong")], &body);
    assert!(answer.body.contains("tribune token create --user NAME"), "{}", answer.body);
}
