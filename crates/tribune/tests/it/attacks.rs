//! Callers who want more than their share: of connections, memory, guesses, permalinks and streams.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;

use serde_json::json;

use crate::exchange::Simulator;
use crate::people::{Person, token, tribune};
use crate::support::{PATIENCE, TestServer, sample, text, wait_for};

/// A caller behind the proxy that the servers here trust.
const TRUSTED: &str = "trusted_proxies = [\"127.0.0.1\"]";
const FORWARDED: &str = "x-forwarded-for";
const ATTACKER: &str = "203.0.113.7";
const OTHER: &str = "198.51.100.4";
const MIB: usize = 1024 * 1024;
const LARGE: usize = 8 * MIB;
const LARGE_PATH: &str = "/data/docs:large.txt?format=json";

fn limits(lines: &str) -> String {
    format!("[limits]\n{lines}\n")
}

fn connect(server: &TestServer, sent: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(("127.0.0.1", server.port)).expect("connected");
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    // The server may have closed it already.
    drop(stream.write_all(sent));
    stream
}

/// Reads until the server closes the connection.
fn read_to_end(mut stream: TcpStream) -> Vec<u8> {
    let mut received = Vec::new();
    if let Err(error) = stream.read_to_end(&mut received) {
        let is_closed = matches!(error.kind(), ErrorKind::ConnectionReset | ErrorKind::BrokenPipe);
        assert!(is_closed, "the server keeps the connection open: {error}");
    }
    received
}

fn metric(server: &TestServer, name: &str) -> u64 {
    let text = server.metrics();
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
    value.unwrap_or(0)
}

/// The most memory that the server has had.
fn peak_memory(server: &TestServer) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.pid())).expect("a process");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("VmHWM");
    let kib: usize = line.split_whitespace().next().and_then(|kib| kib.parse().ok()).expect("a number");
    kib * 1024
}

#[test]
fn silent_sockets_leave_server_answering() {
    let server =
        TestServer::builder().documents(&sample()).tables(&limits("head_secs = 3600")).descriptors(256).start();
    let silent: Vec<TcpStream> = (0..400).map(|_| connect(&server, b"")).collect();
    assert_eq!(server.get("/healthz", &[]).status, 200);
    assert!(metric(&server, "tribune_connections_refused_total{reason=\"evicted\"}") > 0);
    let found = server.call("search", json!({"query": "beans"}));
    assert_eq!(found["results"][0]["id"], "docs:beans.md", "files can still be opened: {found}");
    let log = server.wait_for_log("too many connections");
    assert!(!log.contains("could not accept"), "{log}");
    assert_eq!(log.matches("too many connections").count(), 1, "{log}");
    drop(silent);
}

#[test]
fn garbage_and_half_prefaces_are_closed() {
    let server = TestServer::builder().documents(&sample()).tables(&limits("head_secs = 1\nidle_secs = 1")).start();
    let preface: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    let whole = [preface, &frame(4, 0, 0, &[])].concat();
    let half_request = [&whole[..], &frame(1, 0, 1, &request("/healthz"))].concat();
    for sent in [
        b"",
        &preface[..9],
        preface,
        &whole,
        // Headers that promise more headers.
        &half_request,
        b"GET / HTTP/1.1\r\nhost: localhost\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"\0\0\0\0",
    ] {
        read_to_end(connect(&server, sent));
    }
    let idle = read_to_end(connect(&server, b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n"));
    assert!(idle.starts_with(b"HTTP/1.1 200"), "answered, and closed when nothing followed");
}

/// A frame of HTTP/2.
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("short").to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// The headers of a GET request, uncompressed.
fn request(path: &str) -> Vec<u8> {
    let literal = |name: u8, value: &str| {
        let length = u8::try_from(value.len()).expect("short");
        [&[name, length], value.as_bytes()].concat()
    };
    // `:method: GET`, `:scheme: http`, then `:path` and `:authority`.
    [vec![0x82, 0x86], literal(0x04, path), literal(0x01, "localhost")].concat()
}

/// A connection with as many requests as the server takes; its windows are as large as they can be, or never grow.
fn many_streams(server: &TestServer, has_windows: bool) -> TcpStream {
    let mut sent = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    let largest = 0x7fff_ffff_u32.to_be_bytes();
    if has_windows {
        sent.extend(frame(4, 0, 0, &[&[0, 4][..], &largest].concat()));
        sent.extend(frame(8, 0, 0, &(0x7fff_0000_u32).to_be_bytes()));
    } else {
        sent.extend(frame(4, 0, 0, &[]));
    }
    for stream in (0..120).map(|n| 2 * n + 1) {
        sent.extend(frame(1, 5, stream, &request(LARGE_PATH)));
    }
    connect(server, &sent)
}

fn large_document() -> String {
    "A line of the large document that nobody reads.\n".repeat(LARGE / 48)
}

#[test]
fn unread_streams_of_one_connection_end() {
    let large = large_document();
    let server = TestServer::builder()
        .documents(&[("large.txt", &large)])
        .tables(&limits("stall_secs = 1\nsending_mb = 128"))
        .start();
    assert!(server.get(LARGE_PATH, &[]).body.len() > LARGE / 2, "the document is large");
    for has_windows in [true, false] {
        let closed = metric(&server, "tribune_connections_closed_total{reason=\"unread\"}");
        let before = peak_memory(&server);
        let connection = many_streams(&server, has_windows);
        // With small windows the bytes that arrive are read: only the windows keep the server from sending.
        let reading = (!has_windows).then(|| {
            let connection = connection.try_clone().expect("a socket");
            std::thread::spawn(move || read_to_end(connection))
        });
        wait_for("the connection to be closed", || {
            metric(&server, "tribune_connections_closed_total{reason=\"unread\"}") > closed
        });
        let grown = peak_memory(&server).saturating_sub(before);
        assert!(grown < 320 * MIB, "120 unread responses of {LARGE} bytes took {} MiB", grown / MIB);
        if let Some(reading) = reading {
            drop(reading.join().expect("it ends"));
        }
        read_to_end(connection);
    }
    wait_for("the memory to be free", || metric(&server, "tribune_connections") == 1);
    assert_eq!(server.get(LARGE_PATH, &[]).status, 200);
}

#[test]
fn unread_documents_end() {
    let large = large_document();
    let server = TestServer::builder()
        .documents(&[("large.txt", &large)])
        .tables(&limits("stall_secs = 1\nidle_secs = 1\nsending_mb = 64"))
        .start();
    let request = format!("GET {LARGE_PATH} HTTP/1.1\r\nhost: localhost\r\n\r\n");
    assert_eq!(server.get(LARGE_PATH, &[]).status, 200);
    let before = peak_memory(&server);
    let unread: Vec<TcpStream> = (0..100).map(|_| connect(&server, request.as_bytes())).collect();
    wait_for("all connections to be closed", || metric(&server, "tribune_connections") == 1);
    let grown = peak_memory(&server).saturating_sub(before);
    assert!(grown < 400 * MIB, "100 unread documents of {LARGE} bytes took {} MiB", grown / MIB);
    assert!(metric(&server, "tribune_connections_closed_total{reason=\"unread\"}") > 0);
    for stream in unread {
        read_to_end(stream);
    }
    assert!(server.get(LARGE_PATH, &[]).body.len() > LARGE / 2, "who reads gets all of it");
}

#[test]
fn wrong_tokens_from_one_address_are_limited() {
    let tables = limits(&format!("{TRUSTED}\nfailed_sign_ins_per_minute = 5")) + "[store]\n";
    let server = TestServer::builder().documents(&sample()).tables(&tables).start();
    let (used, unused) = (token(&server, "ann"), token(&server, "ben"));
    let status = |token: &str, address: &str| {
        let bearer = format!("Bearer {token}");
        let answer = server.get("/data/docs:beans.md", &[("authorization", &bearer), (FORWARDED, address)]);
        (answer.status, answer.header("retry-after").to_owned())
    };
    assert_eq!(status(&used, OTHER).0, 200);
    for guess in 0..5 {
        assert_eq!(status(&format!("tribune_{guess}"), ATTACKER).0, 401, "{guess}");
    }
    let (refused, retry_after) = status("tribune_6", ATTACKER);
    assert_eq!(refused, 429);
    assert!(retry_after.parse::<u64>().is_ok_and(|secs| secs > 0), "{retry_after}");
    for right in [&used, &unused] {
        assert_eq!(status(right, ATTACKER).0, 200, "hosts send the tokens of many people from one address");
    }
    let session = json!({"token": unused}).to_string();
    let headers = [("content-type", "application/json"), (FORWARDED, ATTACKER)];
    assert_eq!(server.post("/session", &headers, &session).status, 204);
    let form = [("content-type", "application/x-www-form-urlencoded"), (FORWARDED, ATTACKER)];
    assert_eq!(
        server.post("/login", &form, "username=ann&password=x").status,
        401,
        "passwords have a limit of their own"
    );

    let ended = token(&server, "cid");
    let list: serde_json::Value =
        serde_json::from_str(&tribune(&server, &["token", "list", "--json"]).0).expect("JSON");
    let of_cid = list.as_array().expect("tokens").iter().find(|token| token["user"] == "cid").expect("a token");
    tribune(&server, &["token", "revoke", text(&of_cid["id"])]);
    assert!((0..10).all(|_| status(&ended, OTHER).0 == 401), "a token that has ended is no guess");
    assert_eq!(status("tribune_7", OTHER).0, 401);

    let guess = |address: &str| {
        let headers = [("content-type", "application/json"), (FORWARDED, address)];
        server.post("/session", &headers, &json!({"token": "tribune_wrong"}).to_string()).status
    };
    for third in ["192.0.2.1", "192.0.2.2:4711", "[2001:db8::1]:443", "unknown"] {
        assert_eq!((0..6).map(|_| guess(third)).collect::<Vec<_>>(), [401, 401, 401, 401, 401, 429], "{third}");
    }
    assert_eq!(guess("127.0.0.1"), 429, "it counts with all that cannot be told apart");
}

#[test]
fn calls_over_limit_say_how_long_to_wait() {
    let tables = limits(&format!("{TRUSTED}\nanonymous_calls_per_minute = 2"));
    let server = TestServer::builder().documents(&sample()).tables(&tables).start();
    let (attacker, other) =
        (Person::with(&server, &[(FORWARDED, ATTACKER)]), Person::with(&server, &[(FORWARDED, OTHER)]));
    let query = json!({"query": "beans"});
    assert!((0..2).all(|_| attacker.try_call("search", &query).is_ok()));
    let refused = attacker.try_call("search", &query).expect_err("a refusal");
    assert!(refused.contains("Too many calls. Try again in "), "{refused}");
    assert!(attacker.try_call("search", &query).is_err());
    // As many requests again, and they are not even read.
    let refused = attacker.modern("tools/call", json!({"name": "search", "arguments": query}));
    assert_eq!(refused.status, 429);
    assert!(!refused.header("retry-after").is_empty());
    assert!(text(&refused.json()["error"]["message"]).contains("Too many requests"), "{}", refused.body);
    assert!(other.try_call("search", &query).is_ok());
    assert!((0..10).all(|_| Person::local(&server).try_call("search", &query).is_ok()), "the local user has no limit");
}

#[test]
fn anonymous_permalinks_leave_those_of_users() {
    let simulator = Simulator::start(&["--seed", "3"]);
    let market =
        format!("[market]\nrest_url = \"{}\"\nsymbols = [\"BTCUSDT\"]\nmax_citations = 100\n[store]\n", simulator.url);
    let server = TestServer::builder().documents(&sample()).tables(&market).start();
    let (user, stranger) = (Person::new(&server, "ann"), Person::stranger(&server));
    let cite = |person: &Person<'_>, limit: usize| {
        let candles = json!({"symbol": "BTCUSDT", "interval": "1h", "limit": limit});
        text(&person.call("binance_get_klines", &candles)["url"]).replace(&server.url, "")
    };
    let status = |address: &str| server.get(address, &[("accept", "application/json")]).status;
    let (of_user, of_stranger) = (cite(&user, 1), cite(&stranger, 2));
    assert_eq!((status(&of_user), status(&of_stranger)), (200, 200));
    let mut limit = 2;
    while status(&of_stranger) == 200 {
        limit += 1;
        assert!(limit < 1_000, "no record of an anonymous caller was dropped");
        cite(&stranger, limit);
    }
    assert_eq!(status(&of_stranger), 410);
    assert_eq!(status(&of_user), 200);
}

#[test]
fn streams_of_one_address_leave_places() {
    let tables = limits(&format!("{TRUSTED}\nstreams_per_caller = 3"));
    let server = TestServer::builder().documents(&sample()).tables(&tables).start();
    let open = |path: &str, address: &str| {
        let head = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n{FORWARDED}: {address}\r\n\r\n");
        let mut stream = connect(&server, head.as_bytes());
        let mut status = [0; 12];
        stream.read_exact(&mut status).expect("a status");
        (String::from_utf8_lossy(&status[9..]).into_owned(), stream)
    };
    let taken: Vec<_> = ["/live", "/sse", "/live"].map(|path| open(path, ATTACKER)).into();
    assert!(taken.iter().all(|(status, _)| status == "200"), "{taken:?}");
    for path in ["/live", "/sse"] {
        assert_eq!(open(path, ATTACKER).0, "429", "{path}");
        assert_eq!(open(path, OTHER).0, "200", "{path}");
    }
    drop(taken);
    wait_for("a place to be free again", || open("/live", ATTACKER).0 == "200");
}
