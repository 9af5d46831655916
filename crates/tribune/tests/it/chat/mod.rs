//! The agent behind `/chat`, with a scripted model.

mod answering;
mod company;
mod keeping;

use serde_json::{Value, json};

use crate::model::{Model, ModelRequest, Reply, calls, says};
use crate::support::{Answer, TestServer, sample};

fn server(model: &Model) -> TestServer {
    TestServer::builder().documents(&sample()).tables(&model.table()).start()
}

/// A model that adds, lists, completes and deletes a task.
fn task_manager(asked: &ModelRequest) -> Reply {
    let (question, results) = (asked.question(), asked.results());
    let listed = || -> Value { serde_json::from_str(results[0]).unwrap_or_default() };
    match (question.split(' ').next().unwrap_or_default(), results.len()) {
        ("Add", 0) => calls("add_task", &json!({"title": question.trim_start_matches("Add ")})),
        ("Complete" | "Delete", 0) => calls("list_tasks", &json!({})),
        ("Complete", 1) => calls("complete_task", &json!({"task_id": listed()["tasks"][0]["id"]})),
        ("Delete", 1) => calls("delete_task", &json!({"task_id": listed()["tasks"][0]["id"]})),
        ("Show", 0) => calls("list_tasks", &json!({"user_id": "ann"})),
        ("Show", 1) => calls("list_tasks", &json!({})),
        ("Find", 0) => calls("search", &json!({"query": "runner beans"})),
        ("Fail", _) => Reply::Fails(500),
        ("Slow", _) => Reply::HeldAfter(0, vec!["Good things take time.".to_owned()]),
        (_, 0) => says("Hello."),
        _ => says(&format!("Done: {}", results.last().copied().unwrap_or_default())),
    }
}

/// Names and data of the events of one answer.
fn events(body: &str) -> Vec<(String, Value)> {
    let events = body.split("\n\n").filter(|event| event.starts_with("event: "));
    events
        .map(|event| {
            let (name, data) = event["event: ".len()..].split_once("\ndata: ").expect("data");
            (name.to_owned(), serde_json::from_str(data).expect("JSON"))
        })
        .collect()
}

/// The next page of a list, from its `Link` header; empty at the end.
fn next_page(page: &Answer) -> String {
    let link = page.header("link").strip_prefix('<').and_then(|link| link.split_once('>'));
    link.map(|(next, _)| next.to_owned()).unwrap_or_default()
}
