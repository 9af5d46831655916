//! The official conformance suite, against the shipped binary and its whole HTTP stack, with the
//! suite's fixtures switched on. The totals are exact: a check that disappears is noticed too.

use std::process::Command;

use crate::clients::{node, run};
use crate::support::{TestServer, installed, sample};

fn conformance_server() -> TestServer {
    TestServer::builder().documents(&sample()).arg("--conformance").start()
}

/// Runs the scenarios that `selection` names against `path`; exactly `checks` must pass and none fail.
fn passes(server: &TestServer, path: &str, selection: &[&str], checks: u32) {
    let mut command = Command::new(node());
    command
        .arg(installed("node/node_modules/@modelcontextprotocol/conformance/dist/index.js"))
        .args(["server", "--url", &format!("{}{path}", server.url)])
        .args(selection)
        .current_dir(server.dir.path());
    let suite = run(&mut command);
    let wanted = format!("Total: {checks} passed, 0 failed");
    assert!(
        suite.output.lines().any(|line| line == wanted),
        "{path} {selection:?}: wanted `{wanted}`\n{}",
        suite.output
    );
    assert_eq!(suite.code, Some(0), "{path} {selection:?}\n{}", suite.output);
}

#[test]
fn conformance_2026_07_28_requirements_pass() {
    passes(&conformance_server(), "/mcp", &["--requirements", "2026-07-28"], 197);
}

#[test]
fn conformance_2025_11_25_requirements_pass() {
    let server = conformance_server();
    for path in ["/mcp", "/mcp/"] {
        passes(&server, path, &["--requirements", "2025-11-25"], 83);
    }
}

#[test]
fn conformance_2025_06_18_scenarios_pass() {
    let server = conformance_server();
    for path in ["/mcp", "/mcp/"] {
        passes(&server, path, &["--suite", "all", "--spec-version", "2025-06-18"], 56);
    }
}

#[test]
fn conformance_2025_03_26_scenarios_pass() {
    let server = conformance_server();
    for path in ["/mcp", "/mcp/"] {
        passes(&server, path, &["--suite", "all", "--spec-version", "2025-03-26"], 3);
    }
}
