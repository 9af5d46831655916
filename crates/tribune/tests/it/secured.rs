//! The exchange behind TLS with a certificate that the platform must trust, and behind a proxy. A real nginx in front of
//! the simulator has the certificate.

use std::io::{self, BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use crate::exchange::Simulator;
use crate::https::Certified;
use crate::nginx::Nginx;
use crate::support::{TestServer, free_port, wait_for};

/// The simulator behind TLS, with a certificate for `name`.
struct Exchange {
    _dir: tempfile::TempDir,
    authority: String,
    port: u16,
    _simulator: Simulator,
    _nginx: Nginx,
}

impl Exchange {
    fn start(name: &str) -> Self {
        let simulator = Simulator::start(&["--seed", "5"]);
        let dir = tempfile::tempdir().expect("a folder");
        let port = free_port();
        let certified = Certified::new(name, dir.path());
        let upstream = &simulator.url;
        let site = format!(
            "map $http_upgrade $connection_kept {{ default upgrade; '' ''; }}\n\
             server {{\n  listen 127.0.0.1:{port} ssl;\n  {}\n  \
             location / {{ proxy_pass {upstream}; proxy_http_version 1.1; \
             proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection $connection_kept; }}\n}}\n",
            certified.nginx()
        );
        let nginx = Nginx::start(dir.path(), &site);
        wait_for("nginx to listen", || TcpStream::connect(("127.0.0.1", port)).is_ok());
        Self { _dir: dir, authority: certified.authority, port, _simulator: simulator, _nginx: nginx }
    }

    /// A server whose market is at `host`, with the trust settings in `environment`.
    fn serve(&self, host: &str, port: u16, environment: &[(&str, &str)]) -> TestServer {
        let market = format!(
            "[market]\nrest_url = \"https://{host}:{port}\"\nstream_url = \"wss://{host}:{port}\"\nsymbols = [\"BTCUSDT\"]"
        );
        let mut builder = TestServer::builder().tables(&market).at_once();
        for (name, value) in environment {
            builder = builder.environment(name, value);
        }
        builder.start()
    }
}

fn wait_until_live(server: &TestServer) {
    wait_for("a live book", || l1(server)["book_state"] == "live");
    let book = l1(server);
    assert_eq!(book["source"], "stream", "{book}");
}

fn l1(server: &TestServer) -> Value {
    let call = json!({"name": "binance_orderbook_l1", "arguments": {"symbol": "BTCUSDT"}});
    let answer = server.modern("/mcp/market", "tools/call", call).json();
    answer["result"]["structuredContent"].clone()
}

/// The market's part of `/readyz`, once it contains the expected text.
fn wait_for_reason(server: &TestServer, part: &str) {
    wait_for(part, || server.readiness().body.contains(part));
}

#[test]
fn tls_uses_platform_certificates() {
    let exchange = Exchange::start("localhost");
    let authority = exchange.authority.as_str();
    let server = exchange.serve("localhost", exchange.port, &[("SSL_CERT_FILE", authority)]);
    wait_until_live(&server);
}

#[test]
fn untrusted_certificate_is_refused_and_explained() {
    let exchange = Exchange::start("elsewhere.example");
    let stranger = exchange.serve("localhost", exchange.port, &[]);
    wait_for_reason(&stranger, "invalid peer certificate: UnknownIssuer");
    let authority = exchange.authority.as_str();
    let misnamed = exchange.serve("localhost", exchange.port, &[("SSL_CERT_FILE", authority)]);
    wait_for_reason(&misnamed, "certificate not valid for name");
    for server in [&stranger, &misnamed] {
        assert!(l1(server).is_null(), "nothing is served of an exchange that is not trusted");
        wait_for("the reason in the log", || server.log().contains("invalid peer certificate"));
        let log = server.log();
        assert!(log.lines().count() < 20, "it is told once, not with each attempt: {log}");
    }
}

/// A name that only the proxy can resolve, so that nothing bypasses it.
const BEHIND_PROXY: &str = "exchange.invalid";

#[test]
fn requests_and_streams_use_environment_proxy() {
    let exchange = Exchange::start(BEHIND_PROXY);
    let proxy = Proxy::start(exchange.port);
    let address = format!("http://reader:secret@127.0.0.1:{}", proxy.port);
    let authority = exchange.authority.as_str();
    let environment = [("SSL_CERT_FILE", authority), ("HTTPS_PROXY", address.as_str())];
    let server = exchange.serve(BEHIND_PROXY, 443, &environment);
    wait_until_live(&server);
    assert!(proxy.passed.load(Ordering::Relaxed) >= 2, "requests and streams");
    // A proxy with authentication.
    let address = format!("http://127.0.0.1:{}", proxy.port);
    let environment = [("SSL_CERT_FILE", authority), ("HTTPS_PROXY", address.as_str())];
    let refused = exchange.serve(BEHIND_PROXY, 443, &environment);
    wait_for("the proxy's refusal in the log", || refused.log().contains("proxy authorization required"));
    assert!(!server.log().contains("secret"));
}

/// An HTTP `CONNECT` proxy with a password and one target.
struct Proxy {
    port: u16,
    passed: Arc<AtomicUsize>,
}

impl Proxy {
    fn start(target: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let passed = Arc::new(AtomicUsize::new(0));
        let count = passed.clone();
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let count = count.clone();
                std::thread::spawn(move || {
                    // The client closes when it has the answer.
                    let _ = pass(client, target, &count);
                });
            }
        });
        Self { port, passed }
    }
}

fn pass(mut client: TcpStream, target: u16, passed: &AtomicUsize) -> io::Result<()> {
    let mut head = String::new();
    let mut lines = BufReader::new(client.try_clone()?);
    while !head.ends_with("\r\n\r\n") {
        if lines.read_line(&mut head)? == 0 {
            return Ok(());
        }
    }
    if !head.starts_with(&format!("CONNECT {BEHIND_PROXY}:443 ")) {
        return client.write_all(b"HTTP/1.1 502 Bad Gateway\r\n\r\n");
    }
    // reader:secret
    if !head.contains("Basic cmVhZGVyOnNlY3JldA==") {
        return client.write_all(b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n");
    }
    passed.fetch_add(1, Ordering::Relaxed);
    let mut server = TcpStream::connect(("127.0.0.1", target))?;
    client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n")?;
    let (mut back, mut forth) = (server.try_clone()?, client.try_clone()?);
    std::thread::spawn(move || io::copy(&mut back, &mut forth));
    io::copy(&mut client, &mut server)?;
    Ok(())
}
