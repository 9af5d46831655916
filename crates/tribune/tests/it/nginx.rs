//! A real nginx with `deploy/nginx.conf` in front of Tribune, with a public name: streams arrive unbuffered, stay open,
//! and clients work as without it.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use ureq::http::{HeaderMap, Response};

use crate::clients::Client;
use crate::support::{Builder, PATIENCE, TestServer, free_port, root, sample, wait_for};

/// The name `deploy/nginx.conf` serves.
const NAME: &str = "tribune.example.org";

/// Tribune behind nginx. Both use the same port on two loopback addresses, so that the public address with that port is
/// correct.
struct Site {
    tribune: TestServer,
    _nginx: Nginx,
    port: u16,
    agent: ureq::Agent,
}

impl Site {
    fn start() -> Self {
        Self::of(TestServer::builder())
    }

    /// With keep-alives each second.
    fn with_keep_alives() -> Self {
        Self::of(TestServer::builder().server("keep_alive_secs = 1"))
    }

    /// With the tools of the conformance suite.
    fn with_fixtures() -> Self {
        Self::of(TestServer::builder().arg("--conformance"))
    }

    fn of(tribune: Builder) -> Self {
        let port = free_port();
        let tribune = tribune
            .documents(&sample())
            .server(&format!("public_url = \"http://{NAME}:{port}\""))
            .arg("--listen")
            .arg(&format!("127.0.0.1:{port}"))
            .start();
        let nginx = Nginx::start(tribune.dir.path(), &shipped_site(port));
        let agent =
            ureq::Agent::config_builder().http_status_as_error(false).timeout_global(Some(PATIENCE)).build().into();
        let site = Self { tribune, _nginx: nginx, port, agent };
        wait_for("nginx to listen", || TcpStream::connect(("127.0.0.2", port)).is_ok());
        site
    }

    /// An address at the proxy, by IP because no name server knows its name.
    fn address(&self, path: &str) -> String {
        format!("http://127.0.0.2:{}{path}", self.port)
    }

    fn get(&self, path: &str, accept: &str) -> Response<ureq::Body> {
        let request = self.agent.get(self.address(path)).header("host", NAME);
        let answer = request.header("accept", accept).header("accept-encoding", "gzip").call();
        answer.expect("an answer")
    }

    fn post(&self, path: &str, headers: &[(&str, &str)], message: &Value) -> Response<ureq::Body> {
        let mut request = self.agent.post(self.address(path)).header("host", NAME);
        let usual = [
            ("content-type", "application/json"),
            ("accept", "application/json, text/event-stream"),
            ("accept-encoding", "gzip"),
        ];
        for (name, value) in usual.iter().chain(headers) {
            request = request.header(*name, *value);
        }
        request.send(message.to_string()).expect("an answer")
    }
}

/// nginx in the foreground, stopped with its owner.
pub struct Nginx(Child);

impl Nginx {
    /// With one site, its files in `dir`.
    pub fn start(dir: &Path, site: &str) -> Self {
        fs::write(dir.join("site.conf"), site).expect("a site");
        fs::write(dir.join("nginx.conf"), main_config()).expect("a configuration");
        let child = Command::new(nginx_binary())
            .arg("-p")
            .arg(dir)
            .args(["-e", "nginx.log", "-c", "nginx.conf"])
            .stdin(Stdio::null())
            .spawn();
        Self(child.expect("nginx starts"))
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        // Stopped, not killed: a killed master leaves its workers behind.
        drop(Command::new("kill").args(["-TERM", &self.0.id().to_string()]).status());
        drop(self.0.wait());
    }
}

pub fn shipped_site(port: u16) -> String {
    let shipped = fs::read_to_string(root().join("deploy/nginx.conf")).expect("deploy/nginx.conf");
    let site = replace_once(&shipped, "listen 80;", &format!("listen 127.0.0.2:{port};"));
    replace_once(&site, "server 127.0.0.1:8080;", &format!("server 127.0.0.1:{port};"))
}

/// A system's nginx.conf around the site, with compression for everything.
fn main_config() -> String {
    let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|kind| format!("    {kind}_temp_path {kind}_temp;\n"))
        .concat();
    format!(
        "daemon off;\nworker_processes 1;\npid nginx.pid;\n{}\nevents {{ worker_connections 256; }}\nhttp {{\n\
         {temporary}    gzip on;\n    gzip_proxied any;\n    gzip_min_length 1;\n    gzip_types *;\n    \
         include site.conf;\n}}\n",
        worker_user()
    )
}

/// Workers of root's nginx run as another user, who may not enter the test's folder.
fn worker_user() -> &'static str {
    let id = Command::new("id").arg("-u").output().expect("id");
    if id.stdout == b"0\n" { "user root;" } else { "" }
}

fn nginx_binary() -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let usual = ["/usr/sbin", "/usr/local/sbin"].map(PathBuf::from);
    std::env::split_paths(&path)
        .chain(usual)
        .map(|dir| dir.join("nginx"))
        .find(|file| file.is_file())
        .expect("nginx is missing: run ./test, which installs what the tests need")
}

pub fn replace_once(text: &str, from: &str, to: &str) -> String {
    assert_eq!(text.matches(from).count(), 1, "deploy/nginx.conf has `{from}` once");
    text.replace(from, to)
}

/// One event or comment of a stream, and its arrival.
struct Event {
    at: Instant,
    name: String,
    data: String,
    comment: bool,
}

impl Event {
    fn message(&self) -> Value {
        serde_json::from_str(&self.data).unwrap_or_else(|e| panic!("{e}: {}", self.data))
    }
}

/// An event stream.
struct Events(mpsc::Receiver<Event>);

impl Events {
    fn of(response: Response<ureq::Body>) -> Self {
        assert_eq!(response.status(), 200);
        assert_eq!(header(response.headers(), "content-type"), "text/event-stream");
        assert_eq!(header(response.headers(), "content-encoding"), "", "not compressed");
        let (sender, receiver) = mpsc::channel();
        let lines = BufReader::new(response.into_body().into_reader()).lines();
        std::thread::spawn(move || {
            let (mut name, mut data, mut comment) = (String::new(), String::new(), false);
            for line in lines.map_while(Result::ok) {
                if let Some(value) = line.strip_prefix("event:") {
                    value.trim().clone_into(&mut name);
                } else if let Some(value) = line.strip_prefix("data:") {
                    data.push_str(value.trim());
                } else if line.starts_with(':') {
                    comment = true;
                } else if line.is_empty() {
                    let event = Event {
                        at: Instant::now(),
                        name: std::mem::take(&mut name),
                        data: std::mem::take(&mut data),
                        comment: std::mem::take(&mut comment),
                    };
                    if sender.send(event).is_err() {
                        break;
                    }
                }
            }
        });
        Self(receiver)
    }

    /// The next event or comment. A proxy that buffers would keep a small one until the stream ends.
    fn next(&self) -> Event {
        self.0.recv_timeout(PATIENCE).expect("an event")
    }

    /// The next event with data.
    fn next_with_data(&self) -> Event {
        let until = Instant::now() + PATIENCE;
        loop {
            let event = self.next();
            if !event.data.is_empty() {
                return event;
            }
            assert!(Instant::now() < until, "only keep-alives come");
        }
    }
}

fn header<'a>(headers: &'a HeaderMap, name: &str) -> &'a str {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

fn initialize() -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"},
    }})
}

fn initialized() -> Value {
    json!({"jsonrpc": "2.0", "method": "notifications/initialized"})
}

fn search(id: u32) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {
        "name": "search", "arguments": {"query": "runner beans"},
    }})
}

/// The address that a search's first result cites.
fn citation(answer: &Value) -> String {
    let url = &answer["result"]["structuredContent"]["results"][0]["url"];
    url.as_str().unwrap_or_else(|| panic!("no citation: {answer}")).to_owned()
}

#[test]
fn sse_events_pass_and_idle_streams_stay_open() {
    let site = Site::with_keep_alives();
    let events = Events::of(site.get("/sse", "text/event-stream"));
    let endpoint = events.next();
    assert_eq!(endpoint.name, "endpoint");

    let ask = |message: &Value| {
        assert_eq!(site.post(&endpoint.data, &[], message).status(), 202);
        events.next_with_data().message()
    };
    assert_eq!(ask(&initialize())["result"]["protocolVersion"], "2025-06-18");
    assert_eq!(site.post(&endpoint.data, &[], &initialized()).status(), 202);
    let first = ask(&search(2));
    assert!(citation(&first).starts_with(&format!("http://{NAME}:{}/data/", site.port)));

    // Idle but for the keep-alives.
    for event in std::iter::repeat_with(|| events.next()).take(4) {
        assert!(event.comment, "only keep-alives: {} {}", event.name, event.data);
    }
    assert_eq!(ask(&search(3))["id"], 3, "the stream is still open");
}

#[test]
fn legacy_session_works_behind_nginx() {
    let site = Site::start();
    let started = site.post("/mcp", &[], &initialize());
    let session = header(started.headers(), "mcp-session-id").to_owned();
    assert!(!session.is_empty(), "{:?}", started.headers());
    let answer = Events::of(started).next_with_data().message();
    assert_eq!(answer["result"]["protocolVersion"], "2025-06-18");

    let headers = [("mcp-session-id", session.as_str()), ("mcp-protocol-version", "2025-06-18")];
    assert_eq!(site.post("/mcp", &headers, &initialized()).status(), 202);
    let answer = Events::of(site.post("/mcp", &headers, &search(2))).next_with_data().message();
    let cited = citation(&answer);

    let path = cited.strip_prefix(&format!("http://{NAME}:{}", site.port));
    let page = site.get(path.expect("the public address"), "text/html");
    assert_eq!(page.status(), 200, "the citation opens: {cited}");

    let mut end = site.agent.delete(site.address("/mcp")).header("host", NAME);
    for (name, value) in headers {
        end = end.header(name, value);
    }
    assert!(end.call().expect("an answer").status().is_success());
    assert_eq!(site.post("/mcp", &headers, &search(3)).status(), 404, "the session has ended");
}

#[test]
fn modern_call_works_and_operations_stay_internal() {
    let site = Site::start();
    let answer = modern(&site, "search", &json!({"query": "runner beans"}), None);
    assert_eq!(answer.status(), 200);
    assert_eq!(header(answer.headers(), "content-type"), "application/json");
    let body = answer.into_body().read_to_string().expect("a body");
    let answer: Value = serde_json::from_str(&body).expect("JSON");
    assert!(citation(&answer).starts_with(&format!("http://{NAME}:")), "{answer}");
    for (path, inside) in [("/readyz", 200), ("/metrics", 401)] {
        assert_eq!(site.get(path, "*/*").status(), 404, "{path}");
        assert_eq!(site.tribune.get(path, &[]).status, inside, "{path} inside, without proof");
    }
}

fn modern(site: &Site, tool: &str, arguments: &Value, progress: Option<u32>) -> Response<ureq::Body> {
    let mut meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    if let Some(token) = progress {
        meta["progressToken"] = token.into();
    }
    let headers = [("mcp-protocol-version", "2026-07-28"), ("mcp-method", "tools/call"), ("mcp-name", tool)];
    let params = json!({"name": tool, "arguments": arguments, "_meta": meta});
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
    site.post("/mcp", &headers, &message)
}

#[test]
fn progress_arrives_during_the_call() {
    let site = Site::with_fixtures();
    // A busy machine may read several events at once; a buffering proxy would always do so.
    wait_for("progress to come one by one", || {
        let events = Events::of(modern(&site, "test_tool_with_progress", &json!({}), Some(7)));
        let arrived: Vec<Event> = std::iter::repeat_with(|| events.next_with_data()).take(4).collect();
        for (event, percent) in arrived.iter().zip([0.0, 50.0, 100.0]) {
            assert_eq!(event.message()["params"]["progressToken"], 7, "{}", event.data);
            assert_eq!(event.message()["params"]["progress"].as_f64(), Some(percent), "{}", event.data);
        }
        assert!(arrived[3].message()["result"].is_object(), "{}", arrived[3].data);
        // The tool waits 50 ms before the second and the third.
        let gap = |n: usize| arrived[n].at - arrived[n - 1].at;
        gap(1).min(gap(2)) > Duration::from_millis(25)
    });
}

#[test]
fn real_client_works_through_nginx() {
    let site = Site::start();
    // The client uses nginx as a forward proxy, so that the public address needs no name server.
    let client = Client::python("py-mcp2", "python_mcp2.py")
        // A proxied caller is anonymous and has no tasks.
        .variable("TRIBUNE_HAS_TASKS", "0")
        .variable("HTTP_PROXY", &site.address(""));
    let at = |path: &str| format!("http://{NAME}:{}{path}", site.port);
    client.check(Some("auto"), "2026-07-28", &["http", &at("/mcp")]);
    client.check(Some("legacy"), "2025-11-25", &["http", &at("/mcp")]);
    client.check(Some("legacy"), "2025-11-25", &["sse", &at("/sse")]);
}
