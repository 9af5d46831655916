//! Many sessions and streams, and the release of their resources.

use std::io::{Read, Write};
use std::net::TcpStream;

use crate::protocol::initialize;
use crate::support::{PATIENCE, TestServer, sample, wait_for};

const MANY: usize = 1000;
/// A thousand sessions use well over 50 MB; a smaller rest is noise.
const ALLOWANCE: u64 = 16 * 1024 * 1024;

/// Resident memory in bytes and open descriptors of a process.
fn held(pid: u32) -> (u64, usize) {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("a process");
    let kib: u64 = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:")?.split_whitespace().next()?.parse().ok())
        .expect("VmRSS");
    let descriptors = std::fs::read_dir(format!("/proc/{pid}/fd")).expect("descriptors").count();
    (kib * 1024, descriptors)
}

fn gauge(server: &TestServer, name: &str) -> u64 {
    let text = server.metrics();
    let line = text.lines().find(|line| line.starts_with(&format!("{name} "))).unwrap_or_default();
    line.split(' ').nth(1).and_then(|value| value.parse().ok()).unwrap_or(0)
}

#[test]
fn thousand_abandoned_sessions_are_released() {
    let server = TestServer::builder().documents(&sample()).server("session_idle_secs = 2").start();
    // The first hundred warm the allocator and the connections.
    for _ in 0..100 {
        initialize(&server, "2025-06-18");
    }
    wait_for("the first sessions to end", || gauge(&server, "tribune_sessions") == 0);
    let (memory_before, descriptors_before) = held(server.pid());
    for _ in 0..MANY {
        assert_eq!(initialize(&server, "2025-06-18").status, 200);
    }
    wait_for("the sessions to end", || gauge(&server, "tribune_sessions") == 0);
    wait_for("memory and descriptors to come back", || {
        let (memory, descriptors) = held(server.pid());
        descriptors <= descriptors_before + 5 && memory < memory_before + ALLOWANCE
    });
}

#[test]
fn session_limit_serves_clients_without_session() {
    let server = TestServer::builder().documents(&sample()).server("max_sessions = 3").start();
    for _ in 0..3 {
        assert_eq!(initialize(&server, "2025-06-18").status, 200);
    }
    let newcomer = initialize(&server, "2025-06-18");
    assert_eq!((newcomer.status, newcomer.header("mcp-session-id")), (200, ""));
    assert_eq!(newcomer.json()["result"]["protocolVersion"], "2025-06-18");
}

#[test]
fn thousand_idle_streams_are_released() {
    let server = TestServer::builder().documents(&sample()).server("keep_alive_secs = 5").start();
    let open = |count: usize| -> Vec<TcpStream> {
        (0..count)
            .map(|_| {
                let mut stream = TcpStream::connect(("127.0.0.1", server.port)).expect("connected");
                stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
                stream
                    .write_all(b"GET /sse HTTP/1.1\r\nhost: localhost\r\naccept: text/event-stream\r\n\r\n")
                    .expect("sent");
                stream
            })
            .collect()
    };
    drop(open(100));
    wait_for("the first streams to end", || gauge(&server, "tribune_sse_streams") == 0);
    let (memory_before, descriptors_before) = held(server.pid());

    let mut streams = open(MANY);
    wait_for("all streams to be open", || gauge(&server, "tribune_sse_streams") == MANY as u64);
    let (memory_held, _) = held(server.pid());
    let each = memory_held.saturating_sub(memory_before) / MANY as u64;
    assert!(each < 100 * 1024, "an idle stream holds {each} bytes");
    // Every stream is alive and gets its keep-alive.
    for stream in &mut streams {
        let mut seen = String::new();
        let mut buffer = [0; 2048];
        while !seen.contains(": keep-alive") {
            let read = stream.read(&mut buffer).expect("a living stream");
            assert!(read > 0, "closed early: {seen}");
            seen.push_str(&String::from_utf8_lossy(&buffer[..read]));
        }
    }
    assert_eq!(server.get("/healthz", &[]).status, 200);
    drop(streams);
    wait_for("the streams to end", || gauge(&server, "tribune_sse_streams") == 0);
    wait_for("memory and descriptors to come back", || {
        let (memory, descriptors) = held(server.pid());
        descriptors <= descriptors_before + 5 && memory < memory_before + ALLOWANCE
    });
}
