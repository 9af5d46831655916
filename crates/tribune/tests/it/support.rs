//! A running Tribune with a corpus, and helpers to call it.

use std::fs;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// The binary under test: the one that `./test` built, or else cargo's own.
pub fn binary() -> PathBuf {
    std::env::var_os("TRIBUNE_BIN").map_or_else(|| PathBuf::from(env!("CARGO_BIN_EXE_tribune")), PathBuf::from)
}

/// How long a test waits before it reports a hang. Longer than anything takes on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// How much a test repeats: `short` in `./test`, `long` in `./test --soak`.
pub fn repetitions<T>(short: T, long: T) -> T {
    if std::env::var_os("TRIBUNE_SOAK").is_some() { long } else { short }
}

/// The repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository")
}

/// A tool that `./test` installs. A missing tool fails the test.
pub fn installed(relative: &str) -> PathBuf {
    let path = root().join(".testenv").join(relative);
    assert!(path.exists(), "{} is missing: run ./test, which installs what the tests need", path.display());
    path
}

/// A port that is free.
pub fn free_port() -> u16 {
    // Below the ports that the system gives to outgoing connections, so that nobody takes it meanwhile.
    loop {
        let random = RandomState::new().build_hasher().finish();
        let port = 10_000 + u16::try_from(random % 20_000).expect("less than 20,000");
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

pub struct TestServer {
    pub dir: Arc<tempfile::TempDir>,
    pub url: String,
    pub port: u16,
    /// The link that signs a browser in as the local user; empty if there is none.
    pub sign_in: String,
    child: Child,
}

pub struct Builder {
    dir: tempfile::TempDir,
    server: String,
    more: String,
    args: Vec<String>,
    environment: Vec<(String, String)>,
    descriptors: Option<u32>,
    model: bool,
    wait: bool,
}

impl TestServer {
    /// A server over the folder `docs` with a few documents in it.
    pub fn start() -> Self {
        Self::builder().documents(&sample()).start()
    }

    /// The same, with the built-in embedding model.
    pub fn with_model() -> Self {
        Self::builder().documents(&sample()).model().start()
    }

    pub fn builder() -> Builder {
        Builder {
            dir: tempfile::tempdir().expect("a folder"),
            server: String::new(),
            more: String::new(),
            args: Vec::new(),
            environment: Vec::new(),
            descriptors: None,
            model: false,
            wait: true,
        }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The address of the default MCP endpoint.
    pub fn mcp(&self) -> String {
        format!("{}/mcp", self.url)
    }

    pub fn config(&self) -> PathBuf {
        self.dir.path().join("tribune.toml")
    }

    /// What the server has logged so far.
    pub fn log(&self) -> String {
        fs::read_to_string(self.dir.path().join("log")).expect("the log")
    }

    /// The header with which programs on this machine show that they are its user.
    pub fn local_header(&self) -> (&'static str, String) {
        let secret = fs::read_to_string(self.dir.path().join("tribune-data/local-secret")).expect("the secret");
        ("authorization", format!("Bearer {}", secret.trim()))
    }

    /// A POST to `path` with these headers; status, headers and body.
    pub fn post(&self, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        let mut request = agent().post(format!("{}{path}", self.url));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        Answer::of(request.send(body))
    }

    pub fn get(&self, path: &str, headers: &[(&str, &str)]) -> Answer {
        let mut request = agent().get(format!("{}{path}", self.url));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        Answer::of(request.call())
    }

    /// What readiness shows to the local user.
    pub fn readiness(&self) -> Answer {
        let (name, secret) = self.local_header();
        self.get("/readyz", &[(name, &secret)])
    }

    /// The metrics, as the local user reads them.
    pub fn metrics(&self) -> String {
        let (name, secret) = self.local_header();
        self.get("/metrics", &[(name, &secret)]).body
    }

    /// The same, following no redirect.
    pub fn get_once(&self, path: &str, headers: &[(&str, &str)]) -> Answer {
        let mut request = agent().get(format!("{}{path}", self.url));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        Answer::of(request.config().max_redirects(0).max_redirects_will_error(false).build().call())
    }

    /// [`TestServer::post`], following no redirect.
    pub fn post_once(&self, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        let mut request = agent().post(format!("{}{path}", self.url));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        Answer::of(request.config().max_redirects(0).max_redirects_will_error(false).build().send(body))
    }

    pub fn delete(&self, path: &str, headers: &[(&str, &str)]) -> Answer {
        let mut request = agent().delete(format!("{}{path}", self.url));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        Answer::of(request.call())
    }

    /// The cookie of a browser that has opened the sign-in link.
    pub fn local_cookie(&self) -> String {
        let opened =
            agent().get(&self.sign_in).config().max_redirects(0).max_redirects_will_error(false).build().call();
        let opened = Answer::of(opened);
        assert_eq!(opened.status, 303, "{}", opened.body);
        opened.header("set-cookie").split(';').next().expect("a cookie").to_owned()
    }

    /// The same server after it was stopped and started again, at another port.
    pub fn restart(mut self) -> Self {
        self.stop();
        let server = Self::over(self.dir.clone(), &[], &[]);
        server.wait_ready();
        server
    }

    /// A valid request of the modern era.
    pub fn modern(&self, path: &str, method: &str, params: Value) -> Answer {
        self.modern_with(path, method, params, &[])
    }

    /// The same, with further headers.
    pub fn modern_with(&self, path: &str, method: &str, mut params: Value, more: &[(&str, &str)]) -> Answer {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let name = params["name"].as_str().unwrap_or_default().to_owned();
        let mut headers = vec![
            ("content-type", "application/json"),
            ("accept", "application/json, text/event-stream"),
            ("mcp-protocol-version", "2026-07-28"),
            ("mcp-method", method),
        ];
        headers.extend(more);
        if !name.is_empty() {
            headers.push(("mcp-name", &name));
        }
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        self.post(path, &headers, &body.to_string())
    }

    /// A tool's structured answer, checked to be the same as its text.
    pub fn call(&self, tool: &str, arguments: Value) -> Value {
        let answer = self.modern("/mcp", "tools/call", json!({"name": tool, "arguments": arguments})).json();
        let result = &answer["result"];
        assert_eq!(result["isError"], false, "{answer}");
        let text = result["content"][0]["text"].as_str().expect("a text item");
        assert_eq!(result["content"].as_array().expect("content").len(), 1, "exactly one item");
        assert_eq!(serde_json::from_str::<Value>(text).expect("JSON text"), result["structuredContent"]);
        result["structuredContent"].clone()
    }

    /// Waits until the server has logged `part`: the log is written by a thread of its own.
    pub fn wait_for_log(&self, part: &str) -> String {
        wait_for(&format!("`{part}` in the log"), || self.log().contains(part));
        self.log()
    }

    /// Sends SIGTERM and returns the exit code. The log is complete afterwards.
    pub fn stop(&mut self) -> Option<i32> {
        signal(self.pid(), "TERM");
        exit_code(&mut self.child)
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

impl Builder {
    /// Files below the folder `docs`.
    pub fn documents(self, files: &[(&str, &str)]) -> Self {
        for (name, content) in files {
            let path = self.dir.path().join("docs").join(name);
            fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
            fs::write(path, content).expect("a file");
        }
        self
    }

    /// Lines for the `[server]` table.
    pub fn server(mut self, lines: &str) -> Self {
        self.server.push_str(lines);
        self.server.push('\n');
        self
    }

    /// Further tables.
    pub fn tables(mut self, lines: &str) -> Self {
        self.more.push_str(lines);
        self.more.push('\n');
        self
    }

    pub fn arg(mut self, arg: &str) -> Self {
        self.args.push(arg.to_owned());
        self
    }

    pub fn environment(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    /// The most file descriptors that the server may have.
    pub fn descriptors(mut self, max: u32) -> Self {
        self.descriptors = Some(max);
        self
    }

    /// Uses the built-in embedding model. Most tests rely on keyword search only.
    pub fn model(mut self) -> Self {
        self.model = true;
        self
    }

    /// Does not wait until every source is ready.
    pub fn at_once(mut self) -> Self {
        self.wait = false;
        self
    }

    pub fn start(self) -> TestServer {
        fs::create_dir_all(self.dir.path().join("docs")).expect("a folder");
        let embedder = if self.model { "minilm" } else { "none" };
        let config = format!(
            "[server]\nlisten = \"127.0.0.1:0\"\n{}\n[embedder]\nkind = \"{embedder}\"\n[[sources]]\nname = \"docs\"\nkind = \"documents\"\npath = \"docs\"\n{}",
            self.server, self.more
        );
        fs::write(self.dir.path().join("tribune.toml"), config).expect("a configuration");
        let environment: Vec<(&str, &str)> = self.environment.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
        let server = TestServer::start_over(Arc::new(self.dir), &self.args, &environment, program(self.descriptors));
        if self.wait {
            server.wait_ready();
        }
        server
    }
}

impl TestServer {
    /// A server over a folder that has its configuration already. Does not wait until it is ready.
    pub fn over(dir: Arc<tempfile::TempDir>, args: &[String], environment: &[(&str, &str)]) -> Self {
        Self::start_over(dir, args, environment, program(None))
    }

    fn start_over(
        dir: Arc<tempfile::TempDir>,
        args: &[String],
        environment: &[(&str, &str)],
        mut program: Command,
    ) -> Self {
        let log = fs::File::create(dir.path().join("log")).expect("a log");
        let mut child = program
            .args(["serve", "--config"])
            .arg(dir.path().join("tribune.toml"))
            .args(args)
            .envs(environment.iter().copied())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .expect("the binary starts");
        let out = BufReader::new(child.stdout.take().expect("stdout"));
        let (mut url, mut sign_in) = (None, String::new());
        for line in out.lines().map_while(Result::ok) {
            let line = line.trim();
            let named = |name| line.strip_prefix(name).map(|rest: &str| rest.trim().trim_end_matches('/').to_owned());
            url = url.or_else(|| named("listens on"));
            sign_in = named("sign in as you").unwrap_or(sign_in);
            if line.is_empty() && url.is_some() {
                break;
            }
        }
        let url = url.unwrap_or_else(|| {
            panic!("no address: {}", fs::read_to_string(dir.path().join("log")).unwrap_or_default())
        });
        let port = url.rsplit(':').next().and_then(|port| port.parse().ok()).expect("a port");
        Self { dir, url: format!("http://127.0.0.1:{port}"), port, sign_in, child }
    }

    pub fn wait_ready(&self) {
        wait_for("the server to be ready", || self.get("/readyz", &[]).status == 200);
    }
}

/// The program, with at most so many file descriptors.
fn program(descriptors: Option<u32>) -> Command {
    let Some(max) = descriptors else {
        return Command::new(binary());
    };
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("ulimit -n {max}; exec \"$0\" \"$@\"")]).arg(binary());
    shell
}

/// Polls until the condition holds.
pub fn wait_for(what: &str, holds: impl Fn() -> bool) {
    let until = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < until, "waited too long for {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

pub fn signal(pid: u32, name: &str) {
    let sent = Command::new("kill").args([&format!("-{name}"), &pid.to_string()]).status();
    assert!(sent.expect("kill").success());
}

/// Waits until the process ends by itself; `None` if it had to be killed.
pub fn exit_code(child: &mut Child) -> Option<i32> {
    exit_code_within(child, PATIENCE)
}

pub fn exit_code_within(child: &mut Child, limit: Duration) -> Option<i32> {
    let until = Instant::now() + limit;
    while Instant::now() < until {
        if let Some(status) = child.try_wait().expect("waited") {
            return status.code();
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    child.kill().expect("killed");
    child.wait().expect("reaped");
    None
}

/// A few documents with something to find.
pub fn sample() -> Vec<(&'static str, &'static str)> {
    vec![
        (
            "beans.md",
            "---\ntitle: Runner beans\ndate: 2024-05-28\ntags: [garden]\n---\n\nSow runner beans in May, when the soil is warm.\n",
        ),
        ("compost.txt", "Compost heaps\n\nTurn the heap weekly and keep it damp.\n"),
        (
            "rows.jsonl",
            "{\"id\":\"x-coredata://A/ICNote/p12\",\"title\":\"Slugs\",\"text\":\"Beer traps catch slugs at night.\"}\n{\"id\":\"50% off: a/b?c#d é\",\"title\":\"Odd id\",\"text\":\"An identifier of an odd shape.\"}\n",
        ),
    ]
}

#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: ureq::http::HeaderMap,
    pub body: String,
}

impl Answer {
    fn of(result: Result<ureq::http::Response<ureq::Body>, ureq::Error>) -> Self {
        let response = result.expect("an answer");
        let status = response.status().as_u16();
        let headers = response.headers().clone();
        let body = response.into_body().read_to_string().expect("a body");
        Self { status, headers, body }
    }

    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    /// The JSON of the body, or of the last message if the body is an event stream.
    pub fn json(&self) -> Value {
        let text = if self.header("content-type").starts_with("text/event-stream") {
            let data = self.body.lines().filter_map(|line| line.strip_prefix("data:"));
            data.map(str::trim).rfind(|data| !data.is_empty()).unwrap_or_default()
        } else {
            &self.body
        };
        serde_json::from_str(text).unwrap_or_else(|e| panic!("{e}: {}", self.body))
    }
}

fn agent() -> ureq::Agent {
    ureq::Agent::config_builder().http_status_as_error(false).timeout_global(Some(PATIENCE)).build().into()
}

/// A string, or nothing.
pub fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// The error message of a failed call.
pub fn fault(server: &TestServer, tool: &str, arguments: &Value) -> String {
    let answer = server.modern("/mcp", "tools/call", json!({"name": tool, "arguments": arguments}));
    let answer = answer.json();
    assert_eq!(answer["result"]["isError"], true, "{answer}");
    text(&answer["result"]["content"][0]["text"]).to_owned()
}
