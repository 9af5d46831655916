//! Log lines and audit lines that hold what others chose: nobody begins a line of their own, or controls a terminal.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use serde_json::{Value, json};

use crate::oauth::add_user;
use crate::people::{Person, tribune};
use crate::support::{Builder, TestServer, sample, wait_for};

/// In the name of a file, a client, a user and a page.
const HOSTILE: &str = "x\r\nINJECTED \u{1b}[31mred\u{9b}0m\u{202e}";
const FORM: (&str, &str) = ("content-type", "application/x-www-form-urlencoded");

/// A document that is too large to be indexed, with a hostile name.
fn with_hostile_file() -> Builder {
    let large = "words ".repeat(200_000);
    TestServer::builder()
        .documents(&sample())
        .documents(&[(&format!("{HOSTILE}.md"), &large)])
        .arg("--log")
        .arg("debug")
        .tables(
            "max_document_mb = 1\n[store]\n[auth]\nissuer = \"builtin\"\n[audit]\nanonymous = true\nfile = \"audit.jsonl\"",
        )
}

/// Everything that can leave a trace of a caller's own words.
fn provoke(server: &TestServer) {
    let initialize = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": HOSTILE, "version": HOSTILE},
    }});
    let json = ("content-type", "application/json");
    assert_eq!(server.post("/mcp", &[json], &initialize.to_string()).status, 200);
    server.modern("/mcp", "tools/call", json!({"name": "fetch", "arguments": {"id": HOSTILE}}));
    server.modern("/mcp", "tools/call", json!({"name": "search", "arguments": {"query": HOSTILE}}));
    let name: String = url::form_urlencoded::byte_serialize(HOSTILE.as_bytes()).collect();
    assert_eq!(server.post_once("/login", &[FORM], &format!("username={name}&password=x")).status, 401);
    // Header values cannot hold line ends, but these.
    let mut raw = TcpStream::connect(("127.0.0.1", server.port)).expect("connected");
    let head =
        "GET / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\norigin: https://evil\u{9b}31m.example\r\n\r\n";
    raw.write_all(head.as_bytes()).expect("sent");
    let mut answer = Vec::new();
    raw.read_to_end(&mut answer).expect("an answer");
    assert!(answer.starts_with(b"HTTP/1.1 403"));
}

#[track_caller]
fn check(what: &str, text: &str) {
    let is_foreign = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
    assert!(!text.contains(is_foreign), "{what}: {text:?}");
    assert!(!text.lines().any(|line| line.starts_with("INJECTED")), "{what}: {text}");
}

#[test]
fn guesses_do_not_flood_the_log() {
    let server = TestServer::builder()
        .documents(&sample())
        .tables(
            "[store]\n[auth]\nissuer = \"builtin\"\n[limits]\ntrusted_proxies = [\"127.0.0.1\"]\nfailed_sign_ins_per_minute = 8",
        )
        .start();
    add_user(&server, "ann", &[]);
    let from = |address| ("x-forwarded-for", address);
    for _ in 0..20 {
        server.post("/session", &[from("203.0.113.7")], &json!({"token": "tribune_guess"}).to_string());
        server.get("/login/local?key=guess", &[from("203.0.113.8")]);
        // Refused because of the name, not of the address.
        server.post_once("/login", &[FORM, from("203.0.113.9")], "username=ann&password=wrong");
    }
    server.post_once("/login", &[FORM, from("203.0.113.10")], "username=ann&password=wrong");
    let entries = || tribune(&server, &["audit", "--json"]).0;
    wait_for("the last guess in the audit log", || entries().contains("203.0.113.10"));
    for address in ["203.0.113.7", "203.0.113.8", "203.0.113.9"] {
        let peer = format!("\"peer\":\"{address}\"");
        let action = "\"action\":\"sign in";
        let traced = entries().lines().filter(|line| line.contains(&peer) && line.contains(action)).count();
        assert_eq!(traced, 8, "{address}: {}", entries());
    }
}

#[test]
fn lines_of_text_hold_no_controls() {
    let mut server = with_hostile_file().start();
    provoke(&server);
    server.wait_for_log("a page of another origin");
    let (indexed, complaints) = tribune(&server, &["index"]);
    check("tribune index", &indexed);
    check("tribune index", &complaints);
    assert!(indexed.contains("\\u000d\\u000aINJECTED"), "{indexed}");
    check("tribune audit", &tribune(&server, &["audit"]).0);
    check("tribune audit --json", &tribune(&server, &["audit", "--json"]).0);
    assert_eq!(server.stop(), Some(0));
    let log = server.log();
    check("the log", &log);
    assert!(log.contains("\\u000d\\u000aINJECTED") && log.contains("evil\\u009b31m"), "{log}");
    let audit = fs::read_to_string(server.dir.path().join("audit.jsonl")).expect("the audit log");
    check("the audit log", &audit);
    let entries: Vec<Value> = audit.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert!(entries.iter().any(|entry| entry["who"] == HOSTILE.trim()), "{audit}");
    assert!(entries.iter().any(|entry| entry["ids"][0] == HOSTILE), "{audit}");
}

#[test]
fn lines_of_json_hold_no_controls() {
    let mut server = with_hostile_file().arg("--log-format").arg("json").start();
    provoke(&server);
    assert_eq!(server.stop(), Some(0));
    let log = server.log();
    check("the log", &log);
    let lines: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).expect(line)).collect();
    let tells = |part: &str| lines.iter().any(|line| line.to_string().contains(part));
    assert!(tells("INJECTED") && lines.iter().any(|line| line["origin"] == "https://evil\u{9b}31m.example"), "{log}");
}

#[test]
fn changes_of_access_leave_a_trace() {
    let server = TestServer::builder().documents(&sample()).tables("[store]\n[auth]\nissuer = \"builtin\"").start();
    add_user(&server, "ann", &[]);
    for guess in 0..3 {
        assert_eq!(Person::with_token(&server, &format!("tribune_{guess}")).get("/").status, 401);
    }
    assert_eq!(server.post_once("/login", &[FORM], "username=ann&password=wrong").status, 401);
    let log = server.wait_for_log("a sign-in failed");
    let failed = log.lines().find(|line| line.contains("a sign-in failed")).expect("a line");
    assert!(failed.contains("ann") && failed.contains("127.0.0.1"), "{failed}");
    assert_eq!(log.matches("a wrong token was refused").count(), 1, "{log}");
    let made = tribune(&server, &["token", "create", "--user", "ann", "--json"]).0;
    let made: Value = serde_json::from_str(&made).expect("JSON");
    let id = made["id"].as_str().expect("an id");
    tribune(&server, &["token", "revoke", id]);
    let entries = || -> Vec<Value> {
        let listed = tribune(&server, &["audit", "--json"]).0;
        listed.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
    };
    let about = |action: &str| -> Vec<Value> {
        let entries = entries().into_iter().filter(|entry| entry["action"] == action);
        entries.map(|entry| entry["ids"].clone()).collect()
    };
    wait_for("the failed sign-in", || !about("sign in").is_empty());
    assert_eq!(about("use a token").len(), 1, "one a minute");
    assert_eq!(about("add a user"), [json!(["ann"])]);
    assert_eq!(about("create a token"), [json!([id, "ann"])]);
    assert_eq!(about("revoke a token"), [json!([id])]);
}
