//! The agent in a terminal, with a third-party model server, and with tools of other servers.

use std::io::Write;

use serde_json::{Value, json};

use super::{events, server, task_manager};
use crate::aimock::Aimock;
use crate::model::{Model, calls, says};
use crate::people::{Person, tribune};
use crate::support::{TestServer, sample, text, wait_for};

#[test]
fn terminal_chat_works() {
    let model = Model::start(task_manager);
    let server = server(&model);
    let (out, err) = tribune(&server, &["chat", "Add", "Mow the lawn"]);
    assert!(out.starts_with("Done: "), "{out}");
    assert!(err.contains("add_task done"), "{err}");
    let me = Person::local(&server);
    assert_eq!(me.titles(), ["Mow the lawn"], "it is the local user's, in the same database");
    let (out, _) = tribune(&server, &["chat", "--json", "Complete the lawn"]);
    let answer: Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!(answer["tool_calls"][1]["tool"], "complete_task");
    assert_eq!(me.get("/conversations").json()[0]["message_count"], 4, "both went into one conversation");

    // Through a pipe, the last message decides the exit code.
    let mut child = std::process::Command::new(crate::support::binary())
        .args(["chat", "--config"])
        .arg(server.config())
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .expect("the binary starts");
    let mut stdin = child.stdin.take().expect("standard input");
    stdin.write_all(b"/new\nHi there\n/history\n/tools\n/nothing\nFail now\nHi again\n").expect("written");
    drop(stdin);
    let ended = child.wait_with_output().expect("ended");
    let (out, err) = (String::from_utf8_lossy(&ended.stdout), String::from_utf8_lossy(&ended.stderr));
    assert!(ended.status.success(), "{out}{err}");
    assert_eq!(out.matches("Hello.").count(), 3, "two answers, and one in the history: {out}");
    assert!(out.contains("You: Hi there") && out.contains("delete_task: "), "{out}");
    assert!(err.contains("There is no command /nothing") && err.contains("tribune: "), "{err}");
    assert_eq!(me.get("/conversations").json().as_array().expect("a list").len(), 2);
}

/// A Python server of the official SDK, started as a command, and another Tribune at an address.
#[test]
fn dead_upstream_loses_only_its_tools() {
    let other = TestServer::start();
    let model = Model::start(|asked| {
        let offered = asked.body["tools"].to_string();
        match (asked.question(), asked.results().len()) {
            ("Add", 0) => calls("sums_add", &json!({"a": 19, "b": 23})),
            ("Look", 0) => calls("neighbour_search", &json!({"query": "runner beans"})),
            ("Which", _) => says(&offered),
            _ => says(asked.results().last().copied().unwrap_or("Nothing.")),
        }
    });
    let python = crate::support::installed("py-mcp2/bin/python");
    let script = crate::support::root().join("tests/upstream/server.py");
    let tables = format!(
        "{}[[agent.servers]]\nname = \"sums\"\ncommand = [\"{}\", \"{}\", \"stdio\"]\n\
         [[agent.servers]]\nname = \"neighbour\"\nurl = \"{}/mcp\"\n\
         [[agent.servers]]\nname = \"dead\"\nurl = \"http://127.0.0.1:1/mcp\"\n",
        model.table(),
        python.display(),
        script.display(),
        other.url,
    );
    let server = TestServer::builder().documents(&sample()).tables(&tables).start();
    let me = Person::local(&server);
    wait_for("both servers", || {
        let offered = me.chat("Which")["message"].to_string();
        offered.contains("sums_add") && offered.contains("neighbour_search")
    });
    let sum = me.chat("Add");
    assert_eq!(sum["tool_calls"][0]["needs_confirmation"], Value::Null, "{sum}");
    assert!(text(&sum["message"]).contains("42"), "{sum}");
    let found = me.chat("Look");
    assert_eq!(found["tool_calls"][0]["success"], true, "{found}");
    assert!(text(&found["message"]).contains("Runner beans"), "{found}");
    server.wait_for_log("dead");
}

/// A model server that this project did not write.
#[test]
fn agent_works_with_aimock() {
    let model = Aimock::start(&["talk.json"]);
    let server = TestServer::builder()
        .documents(&sample())
        .tables(&format!("[agent]\nbase_url = \"{}\"\nmodel = \"gpt-4o-mini\"\n", model.url))
        .start();
    let me = Person::local(&server);
    me.add("Buy milk");
    let answer = me.chat("how many tasks do I have?");
    assert_eq!(answer["message"], "You have two tasks.", "so it was told to say");
    assert_eq!(answer["tool_calls"][0]["result_preview"], "1 task", "but the tool told the truth");
    let body = json!({"message": "Please say hello"}).to_string();
    let (authorization, secret) = server.local_header();
    let streamed = server.post("/chat", &[("accept", "text/event-stream"), (authorization, &secret)], &body);
    let told = events(&streamed.body);
    assert!(told.iter().filter(|(name, _)| name == "delta").count() > 1, "{told:?}");
    assert_eq!(told.last().expect("an answer").1["message"], "Hello! I can help you with your tasks.");
}
