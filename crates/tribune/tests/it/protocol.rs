//! Protocol cases that are known to break MCP servers.

use std::io::{Read, Write};
use std::net::TcpStream;

use serde_json::{Value, json};

use crate::support::{Answer, PATIENCE, TestServer, sample};

pub const JSON: (&str, &str) = ("content-type", "application/json");
const BOTH: (&str, &str) = ("accept", "application/json, text/event-stream");

pub fn initialize(server: &TestServer, version: &str) -> Answer {
    let body = json!({
        "jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "openai-mcp", "version": "1.0.0"}},
    });
    server.post("/mcp", &[JSON, BOTH], &body.to_string())
}

pub fn rpc(method: &str, params: Value) -> String {
    json!({"jsonrpc": "2.0", "id": 2, "method": method, "params": params}).to_string()
}

#[test]
fn unknown_host_name_is_refused() {
    let server = TestServer::builder()
        .documents(&sample())
        .server("public_url = \"https://tribune.example.org\"\nallowed_hosts = [\"other.example.org\"]")
        .start();
    let ask = |host: &str| server.post("/mcp", &[JSON, BOTH, ("host", host)], &rpc("ping", json!({})));
    for host in ["tribune.example.org", "other.example.org", "OTHER.example.org:443", "localhost", "127.0.0.1:1"] {
        assert_eq!(ask(host).status, 200, "{host}");
    }
    let refused = ask("evil.example.org");
    assert_eq!(refused.status, 403);
    let message = refused.json()["error"]["message"].as_str().expect("a message").to_owned();
    assert!(message.contains("server.allowed_hosts"), "{message}");
}

#[test]
fn foreign_origin_is_refused_own_gets_cors() {
    let server = TestServer::builder().server("allowed_origins = [\"https://app.example.org\"]").start();
    let ask = |origin: &str| server.post("/mcp", &[JSON, BOTH, ("origin", origin)], &rpc("ping", json!({})));
    for origin in ["https://app.example.org", "http://localhost:6274"] {
        let answer = ask(origin);
        assert_eq!(answer.status, 200, "{origin}");
        assert_eq!(answer.header("access-control-allow-origin"), origin);
        assert!(answer.header("access-control-expose-headers").contains("Mcp-Session-Id"));
    }
    for origin in ["https://evil.example.org", "null", "http://localhost.evil.example.org"] {
        let answer = ask(origin);
        assert_eq!(answer.status, 403, "{origin}");
        assert_eq!(answer.header("access-control-allow-origin"), "", "{origin}");
    }
}

#[test]
fn cors_preflight_is_answered() {
    let server = TestServer::start();
    let request = "OPTIONS /mcp HTTP/1.1\r\nhost: localhost\r\norigin: http://localhost:5173\r\naccess-control-request-method: POST\r\naccess-control-request-headers: content-type, mcp-session-id\r\nconnection: close\r\n\r\n";
    let answer = raw(&server, request.as_bytes()).to_ascii_lowercase();
    assert!(answer.starts_with("http/1.1 204"), "{answer}");
    assert!(answer.contains("access-control-allow-methods: get, post, delete, options"), "{answer}");
    assert!(answer.contains("access-control-allow-headers: content-type, mcp-session-id"), "{answer}");
}

/// Sends raw bytes and reads to the end.
fn raw(server: &TestServer, request: &[u8]) -> String {
    let mut connection = TcpStream::connect(("127.0.0.1", server.port)).expect("connected");
    connection.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    connection.write_all(request).expect("sent");
    let mut answer = Vec::new();
    connection.read_to_end(&mut answer).expect("an answer");
    String::from_utf8_lossy(&answer).into_owned()
}

#[test]
fn legacy_versions_are_echoed_with_sessions() {
    let server = TestServer::start();
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let opened = initialize(&server, version);
        assert_eq!(opened.json()["result"]["protocolVersion"], version);
        let session = opened.header("mcp-session-id").to_owned();
        assert!(!session.is_empty(), "{version}");
        let headers = [JSON, BOTH, ("mcp-session-id", session.as_str()), ("mcp-protocol-version", version)];
        let noted = json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string();
        assert_eq!(server.post("/mcp", &headers, &noted).status, 202);
        for (method, list) in [("tools/list", "tools"), ("resources/list", "resources"), ("prompts/list", "prompts")] {
            let result = server.post("/mcp", &headers, &rpc(method, json!({}))).json()["result"].clone();
            assert!(result[list].is_array(), "{version} {method}: {result}");
            assert!(result["ttlMs"].is_u64() && result["cacheScope"] == "public", "{version} {method}: {result}");
        }
        let call = rpc("tools/call", json!({"name": "search", "arguments": {"query": "beans"}}));
        let result = server.post("/mcp", &headers, &call).json()["result"].clone();
        assert_eq!(result["structuredContent"]["results"][0]["id"], "docs:beans.md", "{version}");
    }
}

#[test]
fn unknown_version_gets_a_known_one() {
    let server = TestServer::start();
    let version = initialize(&server, "1999-01-01").json()["result"]["protocolVersion"].clone();
    assert!(version.as_str().is_some_and(|v| v.starts_with("202")), "{version}");
}

#[test]
fn calls_without_session_id_are_answered() {
    for settings in ["sessions = true", "sessions = false"] {
        let server = TestServer::builder().documents(&sample()).server(settings).start();
        let opened = initialize(&server, "2025-06-18");
        assert_eq!(opened.json()["result"]["protocolVersion"], "2025-06-18", "{settings}");
        assert_eq!(opened.header("mcp-session-id").is_empty(), settings.ends_with("false"), "{settings}");
        let call = rpc("tools/call", json!({"name": "search", "arguments": {"query": "beans"}}));
        let answer = server.post("/mcp", &[JSON, BOTH, ("mcp-protocol-version", "2025-06-18")], &call);
        assert_eq!(answer.header("content-type"), "application/json", "no stream where none is needed");
        assert_eq!(answer.json()["result"]["structuredContent"]["results"][0]["id"], "docs:beans.md", "{settings}");
    }
}

#[test]
fn restart_makes_old_session_404() {
    let server = TestServer::start();
    let headers = [JSON, BOTH, ("mcp-session-id", "00000000-0000-4000-8000-000000000000")];
    let answer = server.post("/mcp", &headers, &rpc("tools/list", json!({})));
    assert_eq!(answer.status, 404);
    assert!(answer.json()["error"]["message"].as_str().is_some_and(|m| m.contains("send `initialize`")));
    assert_eq!(initialize(&server, "2025-06-18").status, 200);
}

#[test]
fn delete_ends_a_session() {
    let server = TestServer::start();
    let session = open_session(&server);
    let request =
        format!("DELETE /mcp HTTP/1.1\r\nhost: localhost\r\nmcp-session-id: {session}\r\nconnection: close\r\n\r\n");
    let answer = raw(&server, request.as_bytes());
    assert!(answer.starts_with("HTTP/1.1 204"), "Python clients take nothing else for an end: {answer}");
    let headers = [JSON, BOTH, ("mcp-session-id", session.as_str())];
    assert_eq!(server.post("/mcp", &headers, &rpc("tools/list", json!({}))).status, 404);
}

#[test]
fn failed_resume_ends_the_stream() {
    let server = TestServer::start();
    let session = open_session(&server);
    let headers = [("accept", "text/event-stream"), ("mcp-session-id", session.as_str()), ("last-event-id", "999/999")];
    // Reading to the end of the body fails if the stream stays open.
    let answer = server.get("/mcp", &headers);
    assert_eq!(answer.status, 200, "an error status would make EventSource try for ever");
}

#[test]
fn second_stream_of_a_session_works() {
    let server = TestServer::start();
    let session = open_session(&server);
    let open = || {
        let mut stream = TcpStream::connect(("127.0.0.1", server.port)).expect("connected");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        let request = format!(
            "GET /mcp HTTP/1.1\r\nhost: localhost\r\naccept: text/event-stream\r\nmcp-session-id: {session}\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).expect("sent");
        let mut head = [0; 256];
        let read = stream.read(&mut head).expect("an answer");
        (stream, String::from_utf8_lossy(&head[..read]).into_owned())
    };
    let (_first, answer) = open();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let (_second, answer) = open();
    assert!(answer.starts_with("HTTP/1.1 200") || answer.starts_with("HTTP/1.1 409"), "{answer}");
    let headers = [JSON, BOTH, ("mcp-session-id", session.as_str())];
    assert_eq!(server.post("/mcp", &headers, &rpc("tools/list", json!({}))).status, 200);
}

fn open_session(server: &TestServer) -> String {
    let session = initialize(server, "2025-06-18").header("mcp-session-id").to_owned();
    let noted = json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string();
    let headers = [JSON, BOTH, ("mcp-session-id", session.as_str())];
    assert_eq!(server.post("/mcp", &headers, &noted).status, 202);
    session
}

#[test]
fn every_accept_header_gets_readable_answer() {
    let server = TestServer::start();
    let session = open_session(&server);
    for accept in
        [None, Some("*/*"), Some("application/json"), Some("application/json, text/event-stream"), Some("text/html")]
    {
        for id in ["", session.as_str()] {
            let mut headers = vec![JSON];
            headers.extend(accept.map(|accept| ("accept", accept)));
            if !id.is_empty() {
                headers.push(("mcp-session-id", id));
            }
            let answer = server.post("/mcp", &headers, &rpc("tools/list", json!({})));
            assert_eq!(answer.status, 200, "{accept:?} {id}: {}", answer.body);
            assert_eq!(answer.json()["result"]["tools"][0]["name"], "search", "{accept:?}");
            if !accept.is_some_and(|accept| accept.contains("event-stream")) {
                assert_eq!(answer.header("content-type"), "application/json", "{accept:?}");
            }
        }
    }
}

#[test]
fn trailing_slash_paths_are_served() {
    let server = TestServer::start();
    for path in ["/mcp", "/mcp/"] {
        assert_eq!(server.modern(path, "tools/list", json!({})).status, 200, "{path}");
        assert_eq!(server.post(path, &[JSON, BOTH], &rpc("ping", json!({}))).status, 200, "{path}");
    }
}

#[test]
fn broken_bodies_are_json_rpc_errors() {
    let server = TestServer::start();
    for (body, status, code) in [
        ("{not json", 400, -32700),
        ("", 400, -32700),
        ("\u{0}", 400, -32700),
        ("[]", 400, -32600),
        ("[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}]", 400, -32600),
        ("42", 400, -32600),
        ("{}", 400, -32600),
        ("{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"ping\"}", 400, -32600),
        ("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":7}", 400, -32600),
    ] {
        for headers in
            [vec![JSON, BOTH], vec![JSON, BOTH, ("mcp-protocol-version", "2026-07-28"), ("mcp-method", "ping")]]
        {
            let answer = server.post("/mcp", &headers, body);
            assert_eq!(answer.status, status, "{body}: {}", answer.body);
            assert_eq!(answer.json()["error"]["code"], code, "{body}: {}", answer.body);
        }
    }
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let nested = format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"params\":{deep}}}");
    assert_eq!(server.post("/mcp", &[JSON, BOTH], &nested).status, 400);
    assert_eq!(server.get("/healthz", &[]).status, 200, "still alive");
}

#[test]
fn oversized_body_is_413() {
    let server = TestServer::builder().server("max_body_mb = 1").start();
    let large = rpc("tools/call", json!({"name": "search", "arguments": {"query": "x".repeat(1_100_000)}}));
    let answer = server.post("/mcp", &[JSON, BOTH], &large);
    assert_eq!(answer.status, 413);
    assert!(answer.json()["error"]["message"].as_str().is_some_and(|m| m.contains("1048576 bytes")));
}

#[test]
fn unknown_tool_differs_from_bad_arguments() {
    let server = TestServer::start();
    let legacy = |params: Value| server.post("/mcp", &[JSON, BOTH], &rpc("tools/call", params)).json();
    let modern = |params: Value| server.modern("/mcp", "tools/call", params).json();
    for answer in [legacy(json!({"name": "nothing"})), modern(json!({"name": "nothing"}))] {
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
        let message = answer["error"]["message"].as_str().expect("a message");
        assert!(message.contains("search, fetch"), "{message}");
    }
    for arguments in [json!({}), json!({"query": ""}), json!({"query": 7}), json!({"query": "x", "limit": 0})] {
        let params = json!({"name": "search", "arguments": arguments});
        for answer in [legacy(params.clone()), modern(params.clone())] {
            assert_eq!(answer["result"]["isError"], true, "{answer}");
            let text = answer["result"]["content"][0]["text"].as_str().expect("text");
            assert!(text.contains("Call it again with {\"query\": string, \"limit\"?: integer}"), "{text}");
        }
    }
}

#[test]
fn bad_params_differ_from_unknown_method() {
    let server = TestServer::start();
    let ask = |body: Value| server.post("/mcp", &[JSON, BOTH], &body.to_string()).json()["error"].clone();
    for body in [
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "search", "arguments": ["x"]}}),
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call"}),
    ] {
        let error = ask(body);
        assert_eq!(error["code"], -32602, "{error}");
        assert!(error["message"].as_str().is_some_and(|m| m.contains("\"arguments\"?: object")), "{error}");
    }
    let error = ask(json!({"jsonrpc": "2.0", "id": 1, "method": "no/such"}));
    assert_eq!((&error["code"], &error["message"]), (&json!(-32601), &json!("Unknown method `no/such`")));
}

#[test]
fn session_is_unknown_to_other_profile() {
    let server = TestServer::start();
    let session = open_session(&server);
    let headers = [JSON, BOTH, ("mcp-session-id", session.as_str())];
    assert_eq!(server.post("/mcp", &headers, &rpc("tools/list", json!({}))).status, 200);
    assert_eq!(server.post("/mcp/research", &headers, &rpc("tools/list", json!({}))).status, 404);
}

/// Unread answers wait in memory, so they are limited.
#[test]
fn unread_stream_is_limited() {
    let server = TestServer::builder().documents(&[("long.txt", &"word ".repeat(7000))]).start();
    let mut stream = TcpStream::connect(("127.0.0.1", server.port)).expect("connected");
    stream.write_all(b"GET /sse HTTP/1.1\r\nhost: localhost\r\n\r\n").expect("sent");
    let mut head = [0; 1024];
    let mut seen = String::new();
    while !seen.contains("sessionId=") || !seen.ends_with('\n') {
        let read = stream.read(&mut head).expect("a stream");
        seen.push_str(&String::from_utf8_lossy(&head[..read]));
    }
    let session = seen.split("sessionId=").nth(1).and_then(|s| s.split_whitespace().next()).expect("a session");
    let path = format!("/sse/messages?sessionId={session}");
    let opening = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}});
    assert_eq!(server.post(&path, &[JSON], &opening.to_string()).status, 202);
    server.post(&path, &[JSON], &json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string());
    let call = rpc("tools/call", json!({"name": "fetch", "arguments": {"id": "docs:long.txt"}}));
    let refused = (0..400).find(|_| server.post(&path, &[JSON], &call).status == 429);
    assert!(refused.is_some_and(|nth| nth >= 60), "{refused:?}");
    assert_eq!(server.get("/healthz", &[]).status, 200);
}

#[test]
fn modern_era_rules_are_enforced() {
    let server = TestServer::start();
    let discovered = server.modern("/mcp", "server/discover", json!({})).json()["result"].clone();
    assert!(
        discovered["supportedVersions"].as_array().is_some_and(|v| v.contains(&json!("2026-07-28"))),
        "{discovered}"
    );
    assert!(discovered["ttlMs"].is_u64() && discovered["cacheScope"] == "public");
    for method in ["tools/list", "resources/list", "resources/templates/list", "prompts/list"] {
        let result = server.modern("/mcp", method, json!({})).json()["result"].clone();
        assert_eq!(result["resultType"], "complete", "{method}");
        assert!(result["ttlMs"].is_u64() && result["cacheScope"] == "public", "{method}: {result}");
        assert_eq!(result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "tribune", "{method}");
    }
    assert_eq!(server.modern("/mcp", "ping", json!({})).status, 404, "there is no ping any more");
    assert_eq!(server.modern("/mcp", "no/such", json!({})).status, 404);
    let mut headers = vec![JSON, BOTH, ("mcp-protocol-version", "2026-07-28"), ("mcp-method", "tools/list")];
    assert_eq!(server.post("/mcp", &headers, &rpc("tools/list", json!({}))).status, 400, "_meta is missing");
    let meta = json!({"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}});
    headers[3] = ("mcp-method", "tools/call");
    let mismatch = server.post("/mcp", &headers, &rpc("tools/list", meta));
    assert_eq!((mismatch.status, mismatch.json()["error"]["code"].clone()), (400, json!(-32020)));
    // A subscription with nothing honoured ends; otherwise reading its answer times out.
    server.modern("/mcp", "subscriptions/listen", json!({"notifications": {"toolsListChanged": true}}));
    assert_eq!(
        server.get("/mcp", &[("accept", "text/event-stream"), ("mcp-protocol-version", "2026-07-28")]).status,
        405
    );
}

/// Hosts probe for authorization metadata; without authorization they must get a 404 and not a page.
#[test]
fn no_oauth_metadata_without_authentication() {
    let server = TestServer::start();
    for path in [
        "/.well-known/oauth-protected-resource",
        "/.well-known/oauth-protected-resource/mcp",
        "/.well-known/oauth-authorization-server",
    ] {
        assert_eq!(server.get(path, &[("accept", "application/json")]).status, 404, "{path}");
    }
}
