//! Servers to connect to, and helpers.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tribune_core::{CallContext, Error, JsonObject, Principal, Tool};
use tribune_upstream::{ChildCommand, Era, HttpEndpoint, ServerSpec, Status, Transport, Upstreams};

/// How long a test waits before it fails.
pub const TEST_TIMEOUT: Duration = Duration::from_secs(120);

pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository")
}

/// A file that `./test` installs. A missing one fails the test: nothing is skipped silently.
pub fn installed(relative: &str) -> String {
    let path = root().join(".testenv").join(relative);
    assert!(path.exists(), "{} is missing: run ./test, which installs what the tests need", path.display());
    path.to_str().expect("a path in UTF-8").to_owned()
}

pub fn script(name: &str) -> String {
    let path = root().join("tests/upstream").join(name);
    path.to_str().expect("a path in UTF-8").to_owned()
}

/// Python with an SDK: version 1 speaks only the legacy era, version 2 both.
pub fn python(era: Era) -> String {
    installed(match era {
        Era::Legacy => "py-mcp1/bin/python",
        Era::Modern => "py-mcp2/bin/python",
    })
}

/// A file in which `server.py` records events.
pub struct Marks(tempfile::TempDir);

impl Marks {
    pub fn new() -> Self {
        Self(tempfile::tempdir().expect("a folder"))
    }

    pub fn path(&self) -> String {
        self.0.path().join("marks").to_str().expect("a path in UTF-8").to_owned()
    }

    pub fn read(&self) -> String {
        std::fs::read_to_string(self.path()).unwrap_or_default()
    }
}

pub fn command(program: impl Into<String>, args: &[&str]) -> Transport {
    Transport::Stdio(ChildCommand {
        program: program.into(),
        args: args.iter().map(|&arg| arg.to_owned()).collect(),
        env: vec![],
        cwd: None,
    })
}

pub fn url(url: impl Into<String>) -> Transport {
    Transport::Http(HttpEndpoint { url: url.into(), bearer: None })
}

/// `server.py` as a child process.
pub fn by_command(name: &str, era: Era, marks: &Marks) -> ServerSpec {
    let transport = Transport::Stdio(ChildCommand {
        program: python(era),
        args: vec![script("server.py"), "stdio".to_owned()],
        env: vec![("MARKS".to_owned(), marks.path())],
        cwd: None,
    });
    spec(name, transport)
}

pub fn spec(name: &str, transport: Transport) -> ServerSpec {
    ServerSpec { timeout: TEST_TIMEOUT, ..ServerSpec::new(name, transport) }
}

/// A server process behind a port; killed when dropped.
pub struct Process {
    child: Child,
    pub port: u16,
}

impl Process {
    pub fn python(era: Era, port: u16, marks: &Marks) -> Self {
        let mut command = Command::new(python(era));
        command.args([&script("server.py"), "http", &port.to_string()]);
        command.env("MARKS", marks.path());
        Self::start(command, port)
    }

    pub fn start(mut command: Command, port: u16) -> Self {
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("a server");
        let process = Self { child, port };
        let began = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(began.elapsed() < TEST_TIMEOUT, "nothing listens on {port}");
            std::thread::sleep(Duration::from_millis(50));
        }
        process
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}/mcp", self.port)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// A port that is free.
pub fn free_port() -> u16 {
    // Below the ephemeral ports, so that no outgoing connection takes it meanwhile.
    loop {
        let random = RandomState::new().build_hasher().finish();
        let port = 10_000 + u16::try_from(random % 20_000).expect("less than 20,000");
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

/// Starts all servers and waits until each is connected or down.
pub async fn started(specs: Vec<ServerSpec>) -> Upstreams {
    let upstreams = Upstreams::new(specs).expect("good specs");
    upstreams.start();
    upstreams.ready(TEST_TIMEOUT * 2).await;
    upstreams
}

pub fn status(upstreams: &Upstreams, name: &str) -> Status {
    let all = upstreams.statuses();
    let found = all.into_iter().find(|(server, _)| server == name);
    found.expect("a server of that name").1
}

pub fn era(upstreams: &Upstreams, name: &str) -> Era {
    match status(upstreams, name) {
        Status::Connected { era, .. } => era,
        other => panic!("`{name}` is not connected: {other:?}"),
    }
}

pub fn names(upstreams: &Upstreams) -> Vec<String> {
    upstreams.tools().iter().map(|tool| tool.spec().name.clone()).collect()
}

pub fn tool(upstreams: &Upstreams, name: &str) -> Arc<dyn Tool> {
    let tools = upstreams.tools();
    let found = tools.iter().find(|tool| tool.spec().name == name);
    Arc::clone(found.unwrap_or_else(|| panic!("no tool `{name}`: {:?}, {:?}", names(upstreams), upstreams.statuses())))
}

pub fn context(time: Duration) -> CallContext {
    CallContext::new(Principal::Local, Instant::now() + time)
}

pub fn args(value: Value) -> JsonObject {
    value.as_object().cloned().expect("an object")
}

pub async fn call(upstreams: &Upstreams, name: &str, arguments: Value) -> Result<Value, Error> {
    let tool = tool(upstreams, name);
    let output = tool.call(args(arguments), &context(TEST_TIMEOUT)).await?;
    Ok(serde_json::from_str(output.json()).expect("JSON"))
}

pub fn text(text: &str) -> Value {
    json!({ "text": text })
}

/// Waits until `condition` holds; fails with `what` after the timeout.
pub async fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let began = Instant::now();
    while !condition() {
        assert!(began.elapsed() < TEST_TIMEOUT, "never: {what}");
        tokio::time::sleep(Duration::from_millis(30)).await;
    }
}
