//! Real servers to connect to, and small helpers.

use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tribune_core::{CallContext, Error, JsonObject, Principal, Tool};
use tribune_upstream::{Era, Reach, ServerSpec, Status, Upstreams};

pub const PATIENCE: Duration = Duration::from_secs(30);

pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .expect("the repository")
}

/// Something that `./test` installs. Missing means failing: nothing is skipped silently.
pub fn installed(relative: &str) -> String {
    let path = root().join(".testenv").join(relative);
    assert!(
        path.exists(),
        "{} is missing: run ./test, which installs what the tests need",
        path.display()
    );
    path.to_str().expect("a path in UTF-8").to_owned()
}

pub fn script(name: &str) -> String {
    let path = root().join("tests/upstream").join(name);
    path.to_str().expect("a path in UTF-8").to_owned()
}

/// The Python of an SDK: its first generation speaks the legacy era only, its second both.
pub fn python(era: Era) -> String {
    installed(match era {
        Era::Legacy => "py-mcp1/bin/python",
        Era::Modern => "py-mcp2/bin/python",
    })
}

/// Where the Python server leaves word of what happened in it.
pub struct Marks(tempfile::TempDir);

impl Marks {
    pub fn new() -> Self {
        Self(tempfile::tempdir().expect("a folder"))
    }

    pub fn path(&self) -> String {
        self.0
            .path()
            .join("marks")
            .to_str()
            .expect("a path in UTF-8")
            .to_owned()
    }

    pub fn read(&self) -> String {
        std::fs::read_to_string(self.path()).unwrap_or_default()
    }
}

pub fn command(program: impl Into<String>, args: &[&str]) -> Reach {
    Reach::Command {
        program: program.into(),
        args: args.iter().map(|&arg| arg.to_owned()).collect(),
        env: vec![],
        cwd: None,
    }
}

pub fn url(url: impl Into<String>) -> Reach {
    Reach::Url {
        url: url.into(),
        bearer: None,
    }
}

/// The Python server as a child of the client.
pub fn by_command(name: &str, era: Era, marks: &Marks) -> ServerSpec {
    let reach = Reach::Command {
        program: python(era),
        args: vec![script("server.py"), "stdio".to_owned()],
        env: vec![("MARKS".to_owned(), marks.path())],
        cwd: None,
    };
    spec(name, reach)
}

pub fn spec(name: &str, reach: Reach) -> ServerSpec {
    ServerSpec {
        timeout: PATIENCE,
        ..ServerSpec::new(name, reach)
    }
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
        let child = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("a server");
        let process = Self { child, port };
        let began = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(began.elapsed() < PATIENCE, "nothing listens on {port}");
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

/// A port that was free a moment ago.
pub fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("an address").port()
}

/// Started, and heard of all of them.
pub async fn started(specs: Vec<ServerSpec>) -> Upstreams {
    let upstreams = Upstreams::new(specs).expect("good specs");
    upstreams.start();
    upstreams.ready(PATIENCE * 2).await;
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
    let output = tool.call(args(arguments), &context(PATIENCE)).await?;
    Ok(serde_json::from_str(output.json()).expect("JSON"))
}

pub fn text(said: &str) -> Value {
    json!({ "text": said })
}

/// Waits until it is so, and fails with `what` if it never is.
pub async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < PATIENCE, "never: {what}");
        tokio::time::sleep(Duration::from_millis(30)).await;
    }
}
