//! Commands and URLs that are not MCP servers.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::time::Duration;

use tribune_upstream::{HttpEndpoint, ServerSpec, Status, Transport};

use crate::support::*;

/// A server that answers every request with these bytes, or never if they are empty.
fn answering(response: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    std::thread::spawn(move || {
        let mut silent = Vec::new();
        for stream in listener.incoming().flatten() {
            if response.is_empty() {
                silent.push(stream);
                continue;
            }
            std::thread::spawn(move || {
                let mut stream = stream;
                let mut asked = [0; 65_536];
                drop(stream.read(&mut asked));
                drop(stream.write_all(response.as_bytes()));
                // `…` at the end stands for an endless answer.
                while response.ends_with('…') && stream.write_all(&[b'x'; 65_536]).is_ok() {}
            });
        }
    });
    format!("http://127.0.0.1:{port}/mcp")
}

fn page(status: &str, kind: &str, body: &str) -> &'static str {
    let length = body.len();
    let page = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    );
    page.leak()
}

#[tokio::test(flavor = "multi_thread")]
async fn each_failure_has_its_own_reason() {
    let impatient = |name: &str, transport: Transport| ServerSpec {
        timeout: Duration::from_secs(6),
        ..ServerSpec::new(name, transport)
    };
    let endless = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n…";
    let cases = [
        ("missing", command("/nowhere/to/be/found", &[]), "could not be started"),
        ("folder", command("/tmp", &[]), "could not be started"),
        ("exits", command("sh", &["-c", "echo no such module >&2; exit 3"]), "no such module"),
        (
            "garbage",
            command("sh", &["-c", "while sleep 0.05; do echo '{\"]'; echo '{\"a\":1}'; done"]),
            "did not answer in time",
        ),
        ("flood", command("sh", &["-c", "head -c 20000000 /dev/zero; exec sleep 300"]), "did not answer in time"),
        ("hangs", command("sleep", &["300"]), "did not answer in time"),
        ("refuses", url(format!("http://127.0.0.1:{}/mcp", free_port())), "refused"),
        ("not_found", url(answering(page("404 Not Found", "text/html", "<h1>No</h1>"))), "HTTP 404"),
        ("broken", url(answering(page("500 Oh", "text/plain", "no"))), "HTTP 500"),
        ("token", url(answering(page("401 No", "application/json", "{}"))), "bearer token"),
        ("html", url(answering(page("200 OK", "text/html; charset=utf-8", "<html>"))), "`text/html; charset=utf-8`"),
        ("other_json", url(answering(page("200 OK", "application/json", "{\"a\":1}"))), "not JSON-RPC"),
        ("mute", url(answering("")), "did not answer in time"),
        ("endless", url(answering(endless)), "more than"),
        (
            "endless_stream",
            url(answering(concat!(
                "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n",
                "data: …"
            ))),
            "it ended before it answered",
        ),
        (
            "elsewhere",
            url(answering(
                "HTTP/1.1 307 No\r\nLocation: http://127.0.0.1:1/mcp\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
            )),
            "HTTP 307",
        ),
        ("not_http", url(answering("SSH-2.0-OpenSSH_9.2\r\n")), "cannot be reached"),
    ];
    let specs = cases.iter().map(|(name, transport, _)| impatient(name, transport.clone())).collect();
    let upstreams = started(specs).await;
    for (name, _, reason) in &cases {
        match status(&upstreams, name) {
            Status::Down(why) => assert!(why.contains(reason), "{name}: {why}"),
            other => panic!("{name}: {other:?}"),
        }
    }
    assert!(upstreams.tools().is_empty());
    upstreams.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn failure_reasons_have_no_secrets() {
    let address = answering(page("401 No", "text/plain", "no"));
    let transport =
        Transport::Http(HttpEndpoint { url: format!("{address}?key=k3y"), bearer: Some("s3cret".to_owned()) });
    let upstreams = started(vec![spec("x", transport), spec("y", url("http://127.0.0.1:1/mcp?key=k3y"))]).await;
    let statuses = format!("{:?}", upstreams.statuses());
    assert!(!statuses.contains("k3y") && !statuses.contains("s3cret"), "{statuses}");
    upstreams.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ready_returns_after_its_limit() {
    let upstreams = tribune_upstream::Upstreams::new(vec![spec("x", command("sleep", &["300"]))]).expect("good specs");
    upstreams.start();
    upstreams.ready(Duration::from_millis(200)).await;
    assert_eq!(status(&upstreams, "x"), Status::Connecting);
    upstreams.stop().await;
}

/// A server sees its own token and Tribune's name, nothing about the user.
#[tokio::test(flavor = "multi_thread")]
async fn server_receives_only_its_token() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let asked = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a caller");
        let mut asked = Vec::new();
        while !String::from_utf8_lossy(&asked).contains("\"method\"") {
            let mut part = [0; 4096];
            let length = stream.read(&mut part).expect("a request");
            asked.extend_from_slice(&part[..length]);
        }
        String::from_utf8(asked).expect("text")
    });
    let transport = Transport::Http(HttpEndpoint {
        url: format!("http://127.0.0.1:{port}/mcp"),
        bearer: Some("s3cret".to_owned()),
    });
    let upstreams = started(vec![spec("x", transport)]).await;
    let asked = asked.join().expect("a request").to_lowercase();
    assert!(asked.contains("authorization: bearer s3cret\r\n"), "{asked}");
    assert!(asked.contains(r#""name":"tribune""#), "{asked}");
    assert!(!asked.contains("local") && !asked.contains("cookie"), "{asked}");
    upstreams.stop().await;
}
