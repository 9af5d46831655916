//! The command line.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

use crate::support::binary;

fn tribune(dir: &Path, args: &[&str]) -> Output {
    Command::new(binary()).current_dir(dir).args(args).output().expect("ran")
}

fn out(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).expect("UTF-8")
}

fn err(output: &Output) -> String {
    assert!(!output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    String::from_utf8(output.stderr.clone()).expect("UTF-8")
}

#[test]
fn help_texts_match_snapshots() {
    let dir = tempfile::tempdir().expect("a folder");
    insta::assert_snapshot!("help", out(&tribune(dir.path(), &["--help"])));
    for verb in [
        "serve", "stdio", "init", "check", "index", "search", "fetch", "call", "chat", "token", "eval", "sim",
        "connect",
    ] {
        insta::assert_snapshot!(format!("help_{verb}"), out(&tribune(dir.path(), &[verb, "--help"])));
    }
}

#[test]
fn init_check_index_search_answer() {
    let dir = tempfile::tempdir().expect("a folder");
    let written = out(&tribune(dir.path(), &["init", "my notes"]));
    assert!(written.contains("Wrote tribune.toml") && written.contains("Created the folder my notes"), "{written}");
    assert!(err(&tribune(dir.path(), &["init"])).contains("tribune init --force"));
    assert!(out(&tribune(dir.path(), &["check"])).contains("no problems found"));
    std::fs::write(dir.path().join("my notes/pump.md"), "# The pump\n\nThe pump was mended by Ada.\n")
        .expect("written");
    assert!(out(&tribune(dir.path(), &["index"])).starts_with("notes: 2 documents in the index (2 files read"));
    let found: Value =
        serde_json::from_str(&out(&tribune(dir.path(), &["search", "who", "mended", "the", "pump", "--json"])))
            .expect("JSON");
    assert_eq!(found["results"][0]["id"], "notes:pump.md");
    let called: Value = serde_json::from_str(&out(&tribune(
        dir.path(),
        &["call", "search", r#"{"query": "who mended the pump"}"#, "--json"],
    )))
    .expect("JSON");
    assert_eq!(called, found, "--json is exactly the tool's structured result");
    let fetched = out(&tribune(dir.path(), &["fetch", "notes:pump.md"]));
    assert!(fetched.starts_with("The pump\n") && fetched.contains("mended by Ada"), "{fetched}");
}

#[test]
fn command_errors_say_how_to_fix_them() {
    let dir = tempfile::tempdir().expect("a folder");
    out(&tribune(dir.path(), &["init"]));
    for (args, told) in [
        (vec!["fetch", "notes:none"], "Document not found: notes:none"),
        (vec!["call", "nothing"], "there is no tool `nothing`; there are: search, fetch"),
        (vec!["call", "search", "{oops"], "the arguments are not a JSON object"),
        (vec!["call", "search", "{}"], "the argument `query` is missing"),
        (vec!["index", "nots"], "there is no source `nots`; there are: notes"),
        (vec!["search", "x", "--profile", "p"], "there is no profile `p`"),
        (vec!["check", "--config", "none.toml"], "cannot read the configuration none.toml (No such file"),
        (vec!["serve", "--listen", "22003"], "such as 127.0.0.1:22003"),
        (vec!["serve", "--log", "info,,=x"], "is not a level or filter"),
    ] {
        let message = err(&tribune(dir.path(), &args));
        assert!(message.contains(told), "{args:?}: {message}");
    }
    std::fs::write(dir.path().join("bad.toml"), "[server]\nlisten = \"127.0.0.1:0\"\npubic_url = \"x\"\n")
        .expect("written");
    let message = err(&tribune(dir.path(), &["check", "--config", "bad.toml"]));
    assert!(message.contains("bad.toml:3:1") && message.contains("did you mean `public_url`?"), "{message}");
}

#[test]
fn connect_prints_what_to_paste() {
    let dir = tempfile::tempdir().expect("a folder");
    for (host, told) in [
        ("chatgpt", "MCP server URL  http://127.0.0.1:8080/mcp"),
        ("claude", "claude mcp add --transport http tribune http://127.0.0.1:8080/mcp"),
        ("vscode", "\"type\": \"http\", \"url\": \"http://127.0.0.1:8080/mcp\""),
        ("cursor", "\"url\": \"http://127.0.0.1:8080/mcp\""),
    ] {
        let text = out(&tribune(dir.path(), &["connect", host]));
        assert!(text.contains(told), "{text}");
    }
    assert!(out(&tribune(dir.path(), &["connect", "chatgpt"])).contains("need a public HTTPS address"));
}

#[test]
fn completions_and_manual_pages_are_written() {
    let dir = tempfile::tempdir().expect("a folder");
    for shell in ["bash", "zsh", "fish"] {
        assert!(out(&tribune(dir.path(), &["completions", shell])).contains("tribune"));
    }
    out(&tribune(dir.path(), &["man", "--dir", "man"]));
    assert!(dir.path().join("man/tribune.1").exists() && dir.path().join("man/tribune-serve.1").exists());
}

/// The demo answers its own questions, which newcomers try first.
#[test]
fn demo_questions_find_right_document_first() {
    let dir = tempfile::tempdir().expect("a folder");
    let questions = include_str!("../demo-questions.tsv");
    let mut asked = 0;
    for line in questions.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#')) {
        let (question, expected) = line.split_once('\t').expect("question TAB id");
        let answer: Value =
            serde_json::from_str(&out(&tribune(dir.path(), &["search", question, "--json"]))).expect("JSON");
        assert_eq!(answer["results"][0]["id"], expected, "{question}");
        asked += 1;
    }
    assert!(asked >= 10);
}
