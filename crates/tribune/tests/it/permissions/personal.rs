//! Personal data: another user, and a token that does not allow it, find nothing, and no trace of it.

use serde_json::{Value, json};

use crate::people::{Person, tribune};
use crate::support::{TestServer, sample};

/// What a caller sees of ann's task, at every place that could show it; the id stands as `ID`.
fn seen(person: &Person<'_>, task: &str) -> Vec<(&'static str, u16, String)> {
    let id = format!("task:{task}");
    let call = |tool: &str, arguments: Value| {
        let answer = person.modern("tools/call", json!({"name": tool, "arguments": arguments}));
        (answer.status, answer.body)
    };
    let get = |path: &str| {
        let answer = person.get(path);
        (answer.status, answer.body)
    };
    let places = [
        ("search", call("search", json!({"query": "mow the lawn tasks"}))),
        ("fetch", call("fetch", json!({"id": id}))),
        ("find_related", call("find_related", json!({"id": id}))),
        ("list_tasks", call("list_tasks", json!({}))),
        ("complete_task", call("complete_task", json!({"task_id": task}))),
        ("update_task", call("update_task", json!({"task_id": task, "title": "Mine"}))),
        ("undo_task_update", call("undo_task_update", json!({"task_id": task}))),
        ("delete_task", call("delete_task", json!({"task_id": task}))),
        ("page", get(&format!("/data/{id}"))),
        ("stream", get(&format!("/live/{id}"))),
        ("start page", get("/?q=mow%20the%20lawn%20tasks")),
    ];
    places.map(|(place, (status, body))| (place, status, body.replace(task, "ID"))).into()
}

/// An id that nobody has.
const NOBODYS: &str = "01890000-0000-7000-8000-000000000000";

#[test]
fn others_cannot_tell_a_task_from_none() {
    let server = TestServer::builder().documents(&sample()).tables("[store]\n[auth]\nissuer = \"builtin\"").start();
    let ann = Person::new(&server, "ann");
    let task = ann.add("Mow the lawn");
    let narrow = |scope: &str| {
        let made = tribune(&server, &["token", "create", "--user", "ann", "--scope", scope]);
        Person::with_token(&server, made.0.trim())
    };
    let strangers = [
        ("another user", Person::new(&server, "ben")),
        ("anonymous", Person::stranger(&server)),
        ("the local user", Person::local(&server)),
        ("ann, to read", narrow("read")),
        ("ann, to chat", narrow("chat")),
        ("ann, to trade", narrow("trade")),
        ("ann, to administer", narrow("admin")),
    ];
    for (who, person) in &strangers {
        for (found, none) in seen(person, &task).into_iter().zip(seen(person, NOBODYS)) {
            assert!(!found.2.contains("lawn\"") && !found.2.contains("Mow the"), "{who}, {}: {}", found.0, found.2);
            let without_id = |(place, status, body): (&'static str, u16, String)| (place, status, stable(&body));
            assert_eq!(without_id(found), without_id(none), "{who}");
        }
    }
    assert_eq!(ann.titles(), ["Mow the lawn"], "nobody has changed it");
    assert_eq!(narrow("tasks").titles(), ["Mow the lawn"]);
    let page = ann.get(&format!("/data/task:{task}"));
    assert_eq!((page.status, page.body.contains("Mow the lawn")), (200, true));
}

/// A body without what differs between any two answers.
fn stable(body: &str) -> String {
    body.lines().filter(|line| !line.contains("took")).collect::<Vec<_>>().join("\n")
}
