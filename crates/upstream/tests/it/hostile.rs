//! Commands and addresses that are no MCP servers.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::time::{Duration, Instant};

use tribune_upstream::{Reach, ServerSpec, Status};

use crate::support::*;

/// Answers everything that is asked of it with these bytes, or with silence if there are none.
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
                // An answer without an end goes on until nobody listens.
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
async fn each_is_down_for_its_own_reason() {
    let hasty = |name: &str, reach: Reach| ServerSpec {
        timeout: Duration::from_secs(3),
        ..ServerSpec::new(name, reach)
    };
    let endless = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n…";
    let cases = [
        ("missing", command("/nowhere/to/be/found", &[]), "could not be started"),
        ("folder", command("/tmp", &[]), "could not be started"),
        (
            "exits",
            command("sh", &["-c", "echo no such module >&2; exit 3"]),
            "no such module",
        ),
        (
            "garbage",
            command(
                "sh",
                &["-c", "while sleep 0.05; do echo '{\"]'; echo '{\"a\":1}'; done"],
            ),
            "did not answer in time",
        ),
        (
            "flood",
            command("sh", &["-c", "head -c 20000000 /dev/zero; exec sleep 300"]),
            "did not answer in time",
        ),
        ("hangs", command("sleep", &["300"]), "did not answer in time"),
        (
            "refuses",
            url(format!("http://127.0.0.1:{}/mcp", free_port())),
            "refused",
        ),
        (
            "not_found",
            url(answering(page("404 Not Found", "text/html", "<h1>No</h1>"))),
            "HTTP 404",
        ),
        ("broken", url(answering(page("500 Oh", "text/plain", "no"))), "HTTP 500"),
        (
            "token",
            url(answering(page("401 No", "application/json", "{}"))),
            "bearer token",
        ),
        (
            "html",
            url(answering(page("200 OK", "text/html; charset=utf-8", "<html>"))),
            "`text/html; charset=utf-8`",
        ),
        (
            "other_json",
            url(answering(page("200 OK", "application/json", "{\"a\":1}"))),
            "not JSON-RPC",
        ),
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
        (
            "not_http",
            url(answering("SSH-2.0-OpenSSH_9.2\r\n")),
            "cannot be reached",
        ),
    ];
    let specs = cases
        .iter()
        .map(|(name, reach, _)| hasty(name, reach.clone()))
        .collect();
    let began = Instant::now();
    let upstreams = started(specs).await;
    assert!(began.elapsed() < Duration::from_secs(15), "{:?}", began.elapsed());
    for (name, _, reason) in &cases {
        match status(&upstreams, name) {
            Status::Down(why) => assert!(why.contains(reason), "{name}: {why}"),
            other => panic!("{name}: {other:?}"),
        }
    }
    assert!(upstreams.tools().is_empty());
    let began = Instant::now();
    upstreams.stop().await;
    assert!(began.elapsed() < Duration::from_secs(8), "{:?}", began.elapsed());
}

/// Who is asked for a token does not get it repeated in what the operator reads.
#[tokio::test(flavor = "multi_thread")]
async fn secrets_stay_out_of_reasons() {
    let address = answering(page("401 No", "text/plain", "no"));
    let reach = Reach::Url {
        url: format!("{address}?key=k3y"),
        bearer: Some("s3cret".to_owned()),
    };
    let upstreams = started(vec![spec("x", reach), spec("y", url("http://127.0.0.1:1/mcp?key=k3y"))]).await;
    let told = format!("{:?}", upstreams.statuses());
    assert!(!told.contains("k3y") && !told.contains("s3cret"), "{told}");
    upstreams.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn waiting_has_an_end() {
    let upstreams = tribune_upstream::Upstreams::new(vec![spec("x", command("sleep", &["300"]))]).expect("good specs");
    upstreams.start();
    let began = Instant::now();
    upstreams.ready(Duration::from_millis(200)).await;
    assert!(began.elapsed() < Duration::from_secs(5));
    assert_eq!(status(&upstreams, "x"), Status::Connecting);
    upstreams.stop().await;
}

/// All that a server learns of us: the token that is meant for it, and our name.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_learns_its_token_and_no_more() {
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
    let reach = Reach::Url {
        url: format!("http://127.0.0.1:{port}/mcp"),
        bearer: Some("s3cret".to_owned()),
    };
    let upstreams = started(vec![spec("x", reach)]).await;
    let asked = asked.join().expect("a request").to_lowercase();
    assert!(asked.contains("authorization: bearer s3cret\r\n"), "{asked}");
    assert!(asked.contains(r#""name":"tribune""#), "{asked}");
    assert!(!asked.contains("local") && !asked.contains("cookie"), "{asked}");
    upstreams.stop().await;
}
