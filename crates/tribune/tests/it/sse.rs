//! The older HTTP+SSE transport.

use std::io::{Read, Write};
use std::net::TcpStream;

use serde_json::json;

use crate::people::tribune;
use crate::protocol::{JSON, rpc};
use crate::support::{PATIENCE, TestServer, sample};

#[test]
fn sse_keeps_alive_and_closes_at_its_limit() {
    let server = TestServer::builder().documents(&sample()).server("keep_alive_secs = 1\nsse_max_secs = 3").start();
    let mut stream = TcpStream::connect(("127.0.0.1", server.port)).expect("connected");
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    stream.write_all(b"GET /sse HTTP/1.1\r\nhost: localhost\r\naccept: text/event-stream\r\n\r\n").expect("sent");
    let mut seen = String::new();
    let mut buffer = [0; 4096];
    while let Ok(read) = stream.read(&mut buffer) {
        if read == 0 {
            break;
        }
        seen.push_str(&String::from_utf8_lossy(&buffer[..read]));
        if seen.contains("0\r\n\r\n") {
            break;
        }
    }
    assert!(seen.to_ascii_lowercase().contains("x-accel-buffering: no"), "{seen}");
    assert!(seen.contains("event: endpoint\ndata: /sse/messages?sessionId="), "{seen}");
    assert!(seen.matches(": keep-alive").count() >= 2, "{seen}");
    assert!(seen.ends_with("0\r\n\r\n"), "closed cleanly, with the last chunk: {seen:?}");
    let session = seen.split("sessionId=").nth(1).and_then(|s| s.split_whitespace().next()).expect("a session");
    let late = server.post(&format!("/sse/messages?sessionId={session}"), &[JSON], &rpc("ping", json!({})));
    assert_eq!(late.status, 404, "what ended is forgotten");
}

/// Reads a raw event stream until it has `part`.
fn read_until(stream: &mut TcpStream, part: &str) -> String {
    let mut seen = String::new();
    let mut buffer = [0; 4096];
    while !seen.contains(part) {
        let read = stream.read(&mut buffer).expect("more of the stream");
        assert!(read > 0, "it ended without {part}: {seen}");
        seen.push_str(&String::from_utf8_lossy(&buffer[..read]));
    }
    seen
}

/// Opens a stream; returns it and the path for messages.
pub fn open(server: &TestServer, path: &str, authorization: &str) -> (TcpStream, String) {
    let mut stream = TcpStream::connect(("127.0.0.1", server.port)).expect("connected");
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    let head = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n{authorization}accept: text/event-stream\r\n\r\n");
    stream.write_all(head.as_bytes()).expect("sent");
    let opened = read_until(&mut stream, "\n\n");
    let session = opened.split("sessionId=").nth(1).and_then(|rest| rest.split_whitespace().next());
    let path = format!("/sse/messages?sessionId={}", session.expect("a session"));
    (stream, path)
}

#[test]
fn token_for_one_profile_reads_no_other_stream() {
    let server = TestServer::builder().documents(&sample()).tables("[store]").start();
    let create = |more: &[&str]| tribune(&server, &[&["token", "create", "--user", "ann"], more].concat()).0;
    let (all, research) = (create(&[]), create(&["--profile", "research"]));
    let bearer = |token: &str| format!("Bearer {}", token.trim());
    let (_default, to_default) = open(&server, "/sse", &format!("authorization: {}\r\n", bearer(&all)));
    let (_research, to_research) = open(&server, "/sse/research", &format!("authorization: {}\r\n", bearer(&all)));
    let send = |path: &str, token: &str| {
        server.post(path, &[JSON, ("authorization", &bearer(token))], &rpc("ping", json!({}))).status
    };
    assert_eq!((send(&to_default, &research), send(&to_default, &all)), (404, 202));
    assert_eq!(send(&to_research, &research), 202);
}

#[test]
fn write_over_sse_starts_the_sign_in_there() {
    let server = crate::oauth::issuing("");
    let (mut stream, path) = open(&server, "/sse/full", "");
    let hello = json!({
        "protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": {"name": "it", "version": "1"},
    });
    assert_eq!(server.post(&path, &[JSON], &rpc("initialize", hello)).status, 202);
    read_until(&mut stream, "serverInfo");
    let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string();
    assert_eq!(server.post(&path, &[JSON], &ready).status, 202);
    let call = rpc("tools/call", json!({"name": "add_task", "arguments": {"title": "x"}}));
    assert_eq!(server.post(&path, &[JSON], &call).status, 202);
    let answer = read_until(&mut stream, "\n\n");
    assert!(answer.contains("mcp/www_authenticate"), "{answer}");
    assert!(answer.contains("/.well-known/oauth-protected-resource/sse/full"), "{answer}");
}

#[test]
fn sse_serves_profiles() {
    let server = TestServer::start();
    let (mut stream, path) = open(&server, "/sse/research", "");
    let hello = json!({
        "protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": {"name": "it", "version": "1"},
    });
    assert_eq!(server.post(&path, &[JSON], &rpc("initialize", hello)).status, 202);
    read_until(&mut stream, "serverInfo");
    let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string();
    assert_eq!(server.post(&path, &[JSON], &ready).status, 202);
    assert_eq!(server.post(&path, &[JSON], &rpc("tools/list", json!({}))).status, 202);
    let listed = read_until(&mut stream, "\n\n");
    assert_eq!(listed.matches("inputSchema").count(), 2, "search and fetch alone: {listed}");
    let unknown = server.get("/sse/nothing", &[]);
    assert_eq!(unknown.status, 404);
    assert!(unknown.body.contains("research"), "{}", unknown.body);
    assert_ne!(server.get("/sse/admin", &[]).status, 200);
}
