//! Operations: readiness, metrics, logs, stop.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;

use serde_json::{Value, json};

use crate::people::Person;
use crate::protocol::initialize;
use crate::support::{TestServer, exit_code, free_port, sample, signal, wait_for};

#[test]
fn readiness_reports_reasons() {
    let server = TestServer::builder()
        .tables("[[sources]]\nname = \"gone\"\nkind = \"documents\"\npath = \"no-such-folder\"\n")
        .at_once()
        .start();
    assert_eq!(server.get("/healthz", &[]).json()["status"], "ok");
    wait_for("the other source", || server.readiness().json()["sources"][0]["status"] == "ready");
    wait_for("the reason", || server.readiness().body.contains("no-such-folder does not exist"));
    let ready = server.readiness();
    assert_eq!(ready.status, 503);
    assert_eq!(ready.json()["sources"][1]["status"], "unready");
    let (stranger, me) = (Person::stranger(&server), Person::local(&server));
    for (person, is_told) in [(&stranger, false), (&me, true)] {
        let found = person.call("search", &json!({"query": "anything"})).to_string();
        let broken = person.try_call("fetch", &json!({"id": "gone:a.md"})).expect_err("unavailable");
        let page = person.get("/data/gone:a.md");
        assert_eq!(page.status, 503);
        for said in [found, broken, page.body, person.get("/").body, person.get("/live?once=1").body] {
            assert_eq!(said.contains("no-such-folder does not exist"), is_told, "{said}");
            assert!(said.contains("gone"), "{said}");
        }
        // What another source would have is definitely not there; a bare key may be in the one that cannot answer.
        let absent = person.get("/data/docs:never.md");
        assert_eq!((absent.status, absent.body.contains("gone")), (404, false), "{}", absent.body);
        let absent = person.get("/data/never.md");
        assert_eq!((absent.status, absent.body.contains("`gone` cannot answer")), (404, true), "{}", absent.body);
        assert!(!absent.body.contains("no-such-folder"), "{}", absent.body);
    }
}

#[test]
fn metrics_count_calls_by_tool_and_outcome() {
    let server = TestServer::start();
    server.call("search", json!({"query": "beans"}));
    server.modern("/mcp", "tools/call", json!({"name": "search", "arguments": {}}));
    let text = server.metrics();
    for line in [
        "tribune_tool_calls_total{tool=\"search\",outcome=\"ok\"} 1",
        "tribune_tool_calls_total{tool=\"search\",outcome=\"invalid_argument\"} 1",
        "tribune_source_documents{source=\"docs\"} 4",
        "tribune_source_ready{source=\"docs\"} 1",
    ] {
        assert!(text.contains(line), "{line} is not in:\n{text}");
    }
    assert!(text.contains("tribune_tool_call_seconds_bucket"), "{text}");
}

#[test]
fn operators_have_a_listener_of_their_own() {
    let port = free_port();
    let mut server = TestServer::builder()
        .documents(&sample())
        .server(&format!("public_url = \"https://tribune.example.org\"\nops_listen = \"127.0.0.1:{port}\""))
        .start();
    let agent: ureq::Agent = ureq::Agent::config_builder().http_status_as_error(false).build().into();
    let get = |path: &str| {
        let answer = agent.get(format!("http://127.0.0.1:{port}{path}")).call().expect("an answer");
        (answer.status().as_u16(), answer.into_body().read_to_string().expect("a body"))
    };
    assert!(get("/readyz").1.contains("\"source\":\"docs\""));
    assert!(get("/metrics").1.contains("tribune_source_ready{source=\"docs\"} 1"));
    assert_eq!(get("/healthz").0, 200);
    assert_eq!((get("/").0, get("/mcp").0, get("/data/docs:beans.md").0), (404, 404, 404));
    assert_eq!(server.get("/metrics", &[]).status, 401, "not at the public address");
    assert_eq!(server.stop(), Some(0));
}

#[test]
fn correlation_ids_are_kept_or_replaced() {
    let server = TestServer::builder().documents(&sample()).arg("--log-format").arg("json").start();
    let ask = |id: &str| {
        let headers = [("content-type", "application/json"), ("x-correlation-id", id)];
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "search", "arguments": {"query": "beans"}}});
        server.post("/mcp", &headers, &body.to_string()).header("x-correlation-id").to_owned()
    };
    assert_eq!(ask("abc-123"), "abc-123");
    let replaced = ask("bad id with spaces");
    assert!(!replaced.is_empty() && !replaced.contains(' '), "{replaced}");
    wait_for("the log line", || server.log().contains("abc-123"));
    let line = server.log().lines().find(|line| line.contains("abc-123")).expect("a line").to_owned();
    let line: Value = serde_json::from_str(&line).expect("a JSON line");
    assert_eq!((&line["tool"], &line["outcome"]), (&json!("search"), &json!("ok")));
    assert!(line["ms"].is_number() && line["count"] == 1, "{line}");
}

/// Queries, ids and document texts are not logged at the default level.
#[test]
fn queries_ids_and_texts_are_not_logged() {
    const CANARY: &str = "canary7f3a";
    let rows = format!("{{\"id\":\"{CANARY}-id\",\"title\":\"{CANARY} title\",\"text\":\"{CANARY} text\"}}\n");
    let server = TestServer::builder().documents(&[("rows.jsonl", &rows)]).start();
    let call = |tool: &str, arguments: Value| {
        let params = json!({"name": tool, "arguments": arguments});
        server.modern("/mcp", "tools/call", params.clone());
        let legacy = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).to_string();
        let session = initialize(&server, "2025-06-18").header("mcp-session-id").to_owned();
        let json = ("content-type", "application/json");
        server.post("/mcp", &[json], &legacy);
        server.post("/mcp", &[json, ("mcp-session-id", &session)], &legacy);
        // Out of order, to make rmcp complain.
        server.post("/mcp", &[json, ("mcp-session-id", "none")], &legacy);
    };
    call("search", json!({"query": CANARY}));
    call("search", json!({"query": CANARY, "limit": CANARY}));
    call("fetch", json!({"id": format!("docs:{CANARY}-id")}));
    call("fetch", json!({"id": CANARY}));
    call(CANARY, json!({}));
    server.get(&format!("/data/docs:{CANARY}-id"), &[]);
    server.get(&format!("/?q={CANARY}"), &[]);
    server.get(&format!("/{CANARY}"), &[]);
    server.post("/mcp", &[("content-type", "application/json")], &format!("{{{CANARY}"));
    let mut server = server;
    assert_eq!(server.stop(), Some(0));
    let log = server.log();
    assert!(log.contains("tool call"), "calls are logged: {log}");
    assert!(!log.contains(CANARY), "{log}");
}

#[test]
fn stop_finishes_calls_and_closes_streams() {
    let mut server = TestServer::builder().documents(&sample()).server("drain_secs = 600").start();
    let mut stream = TcpStream::connect(("127.0.0.1", server.port)).expect("connected");
    stream.write_all(b"GET /sse HTTP/1.1\r\nhost: localhost\r\n\r\n").expect("sent");
    let mut head = [0; 512];
    assert!(stream.read(&mut head).expect("a stream") > 0);
    // A stream that holds it up would do so for ten minutes.
    assert_eq!(server.stop(), Some(0), "{}", server.log());
    assert!(server.log().contains("stopped"), "{}", server.log());
}

#[test]
fn corrected_source_becomes_ready_again() {
    let server = TestServer::builder()
        .tables("[[sources]]\nname = \"late\"\nkind = \"documents\"\npath = \"late\"\n")
        .at_once()
        .start();
    wait_for("the reason", || server.readiness().body.contains("late does not exist"));
    fs::create_dir(server.dir.path().join("late")).expect("a folder");
    fs::write(server.dir.path().join("late/a.md"), "at last").expect("written");
    let run = std::process::Command::new(crate::support::binary())
        .args(["index", "late", "--config"])
        .arg(server.config())
        .output();
    assert!(run.expect("ran").status.success());
    wait_for("readiness", || server.readiness().json()["sources"][1]["status"] == "ready");
}

/// A supervisor that does not read our standard error must still be able to stop us.
#[test]
fn stop_does_not_wait_for_unread_log() {
    let dir = tempfile::tempdir().expect("a folder");
    let mut child = std::process::Command::new(crate::support::binary())
        .args(["serve", "--listen", "127.0.0.1:0", "--log", "trace,hyper=trace"])
        .current_dir(dir.path())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .expect("started");
    let mut out = std::io::BufReader::new(child.stdout.take().expect("stdout"));
    let mut address = String::new();
    while !address.contains("listens on") {
        address.clear();
        assert!(std::io::BufRead::read_line(&mut out, &mut address).expect("a line") > 0);
    }
    let address = address.trim().rsplit('/').next().expect("an address").to_owned();
    for _ in 0..3000 {
        let mut connection = TcpStream::connect(&address).expect("connected");
        connection.write_all(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").expect("sent");
        let mut answer = Vec::new();
        connection.read_to_end(&mut answer).expect("an answer");
    }
    signal(child.id(), "TERM");
    assert!(exit_code(&mut child).is_some(), "it waits for a reader");
}

#[test]
fn taken_port_is_reported_with_advice() {
    let server = TestServer::start();
    let listen = format!("127.0.0.1:{}", server.port);
    let second = std::process::Command::new(crate::support::binary())
        .args(["serve", "--listen", &listen, "--config"])
        .arg(server.config())
        .output()
        .expect("ran");
    let told = String::from_utf8_lossy(&second.stderr).into_owned();
    assert!(!second.status.success());
    assert!(told.contains(&format!("cannot listen on {listen}: another program has that port")), "{told}");
}

#[test]
fn start_page_shows_sources_addresses_and_results() {
    let server = TestServer::start();
    let home = server.get("/", &[("accept", "text/html")]);
    for part in ["Docs", "4 documents", &format!("{}/mcp", server.url), "claude mcp add"] {
        // Slashes are escaped.
        assert!(home.body.replace("&#x2f;", "/").contains(part), "{part}");
    }
    let results = server.get("/?q=beans", &[("accept", "text/html")]);
    assert!(
        results.body.contains("Runner beans") && results.body.replace("&#x2f;", "/").contains("/data/docs:beans.md")
    );
    let css = server.get("/assets/tribune.css", &[]);
    assert_eq!((css.status, css.header("content-type")), (200, "text/css; charset=utf-8"));
    assert_eq!(server.get("/nowhere", &[("accept", "text/html")]).status, 404);
}

#[test]
fn every_example_configuration_loads() {
    let examples = crate::support::root().join("examples");
    let mut tried = 0;
    for entry in fs::read_dir(examples).expect("examples") {
        let file = entry.expect("an entry").path().join("tribune.toml");
        let run = std::process::Command::new(crate::support::binary())
            .arg("check")
            .arg("--config")
            .arg(&file)
            .output()
            .expect("ran");
        assert!(run.status.success(), "{}: {}", file.display(), String::from_utf8_lossy(&run.stdout));
        tried += 1;
    }
    assert!(tried >= 2);
}
