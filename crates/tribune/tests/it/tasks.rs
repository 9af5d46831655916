//! Tasks over MCP: storage, validation, and isolation of users.

use serde_json::{Value, json};

use crate::people::{Person, tribune};
use crate::support::{TestServer, sample, text};

fn with_store() -> TestServer {
    TestServer::builder().documents(&sample()).tables("[store]").start()
}

#[test]
fn task_errors_begin_with_their_code() {
    let server = with_store();
    let me = Person::local(&server);
    let id = me.add("Mow the lawn");
    let nobody = "00000000-0000-7000-8000-000000000000";
    for (tool, arguments, code, told) in [
        ("add_task", json!({}), "VALIDATION_ERROR", "`title` is missing"),
        ("add_task", json!({"title": ""}), "VALIDATION_ERROR", "at least 1 character"),
        ("add_task", json!({"title": "  \t "}), "VALIDATION_ERROR", "at least 1 character"),
        ("add_task", json!({"title": "x".repeat(201)}), "VALIDATION_ERROR", "at most 200 characters"),
        ("add_task", json!({"title": "two\nlines"}), "VALIDATION_ERROR", "more than one line"),
        ("add_task", json!({"title": "bell\u{7}"}), "VALIDATION_ERROR", "U+0007"),
        ("add_task", json!({"title": "x", "description": "y".repeat(1001)}), "VALIDATION_ERROR", "at most 1000"),
        ("add_task", json!({"title": "x", "priority": "urgent"}), "VALIDATION_ERROR", "must be one of"),
        ("add_task", json!({"title": "x", "due_date": "2026-02-30"}), "VALIDATION_ERROR", "YYYY-MM-DD"),
        ("add_task", json!({"title": "x", "due_date": "2026-02-28T10:00"}), "VALIDATION_ERROR", "due_date"),
        ("add_task", json!({"title": "x", "tags": vec!["t"; 11]}), "VALIDATION_ERROR", "at most 10 items"),
        ("add_task", json!({"title": "x", "user_id": "bob"}), "VALIDATION_ERROR", "no argument `user_id`"),
        ("list_tasks", json!({"status": "open"}), "VALIDATION_ERROR", "must be one of"),
        ("list_tasks", json!({"limit": 0}), "VALIDATION_ERROR", "at least 1"),
        ("list_tasks", json!({"cursor": "x"}), "VALIDATION_ERROR", "next_cursor"),
        ("list_tasks", json!({"user": "bob"}), "VALIDATION_ERROR", "no argument `user`"),
        ("list_tasks", json!({"due_from": "2026-03-02", "due_until": "2026-03-01"}), "VALIDATION_ERROR", "later than"),
        ("update_task", json!({"task_id": id}), "VALIDATION_ERROR", "at least one of"),
        ("update_task", json!({"task_id": id, "title": null}), "VALIDATION_ERROR", "title"),
        ("complete_task", json!({"task_id": "x".repeat(36)}), "VALIDATION_ERROR", "list_tasks"),
        ("complete_task", json!({"task_id": nobody}), "TASK_NOT_FOUND", "list_tasks"),
        ("update_task", json!({"task_id": nobody, "title": "x"}), "TASK_NOT_FOUND", "list_tasks"),
        ("undo_task_update", json!({"task_id": id}), "VALIDATION_ERROR", "nothing to undo"),
        ("undo_task_update", json!({"task_id": nobody}), "TASK_NOT_FOUND", "list_tasks"),
        ("delete_task", json!({"task_id": nobody}), "TASK_NOT_FOUND", "list_tasks"),
    ] {
        let fault = me.try_call(tool, &arguments).expect_err(tool);
        assert!(fault.starts_with(&format!("{code}: ")), "{tool} {arguments}: {fault}");
        assert!(fault.contains(told), "{tool} {arguments}: {fault}");
    }
    assert_eq!(me.titles(), ["Mow the lawn"]);
}

#[test]
fn task_list_is_filtered_sorted_paged() {
    let server = with_store();
    let me = Person::local(&server);
    for (title, priority, due) in [
        ("Paint the fence", "low", Some("2027-03-01")),
        ("Sow beans", "high", Some("2027-05-02")),
        ("Call the plumber", "medium", None),
        ("Pay the rent", "high", Some("2027-01-01")),
    ] {
        let mut task = json!({"title": title, "priority": priority, "category": "Home", "tags": ["A", "spring"]});
        if let Some(due) = due {
            task["due_date"] = json!(due);
        }
        me.call("add_task", &task);
    }
    let titles = |arguments: Value| -> Vec<String> {
        let listed = me.call("list_tasks", &arguments);
        let tasks = listed["tasks"].as_array().expect("tasks").clone();
        tasks.iter().map(|task| text(&task["title"]).to_owned()).collect()
    };
    assert_eq!(titles(json!({}))[0], "Pay the rent");
    assert_eq!(titles(json!({"sort": "due"})), ["Pay the rent", "Paint the fence", "Sow beans", "Call the plumber"]);
    assert_eq!(
        titles(json!({"sort": "priority"})),
        ["Sow beans", "Pay the rent", "Call the plumber", "Paint the fence"]
    );
    assert_eq!(titles(json!({"priority": "HIGH", "due_from": "2027-02-01"})), ["Sow beans"]);
    assert_eq!(titles(json!({"due_until": "2027-03-01", "sort": "due"})), ["Pay the rent", "Paint the fence"]);
    assert_eq!(titles(json!({"query": "THE plum"})), ["Call the plumber"]);
    assert_eq!(titles(json!({"query": "%"})), Vec::<String>::new());
    assert_eq!(titles(json!({"category": "home", "tag": "a"})).len(), 4);
    assert_eq!(titles(json!({"category": "work"})).len(), 0);

    let mut cursor = Value::Null;
    let mut seen = Vec::new();
    for page in 0..4 {
        let mut arguments = json!({"sort": "priority", "limit": 1});
        if !cursor.is_null() {
            arguments["cursor"] = cursor.clone();
        }
        let listed = me.call("list_tasks", &arguments);
        assert_eq!(listed["total"], 4);
        seen.push(text(&listed["tasks"][0]["title"]).to_owned());
        cursor = listed["next_cursor"].clone();
        assert_eq!(cursor.is_null(), page == 3, "{listed}");
    }
    assert_eq!(seen, titles(json!({"sort": "priority"})));
}

#[test]
fn long_task_list_stays_under_limit() {
    let server = with_store();
    let me = Person::local(&server);
    for number in 0..60 {
        me.call("add_task", &json!({"title": format!("Task {number}"), "description": "\"\n".repeat(500)}));
    }
    let answer = me.modern("tools/call", json!({"name": "list_tasks", "arguments": {"limit": 100}}));
    assert!(answer.body.len() < 100_000, "{}", answer.body.len());
    let (mut seen, mut cursor) = (0, Value::Null);
    loop {
        let arguments = if cursor.is_null() { json!({"limit": 100}) } else { json!({"limit": 100, "cursor": cursor}) };
        let listed = me.call("list_tasks", &arguments);
        seen += listed["tasks"].as_array().expect("tasks").len();
        cursor = listed["next_cursor"].clone();
        if cursor.is_null() {
            break;
        }
    }
    assert_eq!(seen, 60, "the cursor leads to all of them");
}

#[test]
fn tasks_are_hidden_from_other_users() {
    let server = with_store();
    let (ann, bob, local) = (Person::new(&server, "ann"), Person::new(&server, "bob"), Person::local(&server));
    let hers = ann.add("Write the eulogy");
    let id = format!("task:{hers}");
    for other in [&bob, &local] {
        assert_eq!(other.titles(), Vec::<String>::new());
        for (tool, arguments) in [
            ("complete_task", json!({"task_id": hers})),
            ("update_task", json!({"task_id": hers, "title": "Mine"})),
            ("undo_task_update", json!({"task_id": hers})),
            ("delete_task", json!({"task_id": hers})),
            ("complete_task", json!({"task_id": id})),
        ] {
            let fault = other.try_call(tool, &arguments).expect_err(tool);
            let absent = fault.clone();
            let unknown = other
                .try_call(tool, &json!({"task_id": "00000000-0000-7000-8000-000000000000", "title": "Mine"}))
                .expect_err(tool);
            if tool == "update_task" {
                assert_eq!(absent, unknown, "what is another's is as what is not there");
            }
            assert!(fault.starts_with("TASK_NOT_FOUND: "), "{fault}");
        }
        for query in ["eulogy", "eulogy tasks of ann", "my tasks", &hers, &id] {
            assert_eq!(other.call("search", &json!({"query": query}))["results"], json!([]), "{query}");
        }
        let fault = other.try_call("fetch", &json!({"id": id})).expect_err("fetch");
        assert!(fault.contains("not found") && !fault.contains("eulogy"), "{fault}");
        assert!(other.try_call("fetch", &json!({"id": format!("{}/data/{id}", server.url)})).is_err());
        let page = other.get(&format!("/data/{id}"));
        assert_eq!(page.status, 404, "{}", page.body);
        for arguments in [json!({"user_id": "ann"}), json!({"user": "ann"}), json!({"owner": "ann"})] {
            assert!(other.try_call("list_tasks", &arguments).expect_err("refused").contains("no argument"));
        }
        // A header with a user name does not sign anybody in.
        let mut named = Person::with(&server, &[("x-user", "ann"), ("x-user-id", "ann"), ("x-forwarded-user", "ann")]);
        named.headers.extend(other.headers.clone());
        assert_eq!(named.titles(), Vec::<String>::new());
        assert!(!other.get("/?q=eulogy").body.contains("Write the eulogy"));
    }
    assert_eq!(ann.titles(), ["Write the eulogy"]);
    assert_eq!(ann.call("search", &json!({"query": "eulogy"}))["results"][0]["id"], json!(id));
    assert_eq!(ann.get(&format!("/data/{id}")).status, 200);
    assert_eq!(ann.call("list_tasks", &json!({}))["tasks"][0]["status"], "pending");
}

#[test]
fn shell_uses_local_users_tasks() {
    let server = with_store();
    let me = Person::local(&server);
    let (out, _) = tribune(&server, &["call", "add_task", "{\"title\": \"Buy milk\"}", "--json"]);
    let added: Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!(me.titles(), ["Buy milk"], "two processes, one database");
    let (out, _) = tribune(&server, &["fetch", &format!("task:{}", text(&added["id"]))]);
    assert!(out.contains("Buy milk") && out.contains("Status: pending"), "{out}");
    let (out, _) = tribune(&server, &["search", "milk tasks"]);
    assert!(out.contains("Buy milk"), "{out}");
}

#[test]
fn unusable_store_affects_only_tasks() {
    let server = TestServer::builder()
        .documents(&sample())
        .tables("[store]\nurl = \"postgres://127.0.0.1:1/nothing\"")
        .at_once()
        .start();
    crate::support::wait_for("the documents", || server.readiness().body.contains("\"documents\":4"));
    let me = Person::local(&server);
    assert!(!me.call("search", &json!({"query": "runner beans"}))["results"].as_array().expect("results").is_empty());
    let fault = me.try_call("add_task", &json!({"title": "x"})).expect_err("no database");
    assert!(fault.starts_with("DATABASE_ERROR: "), "{fault}");
    let found = me.call("search", &json!({"query": "runner beans"}));
    assert_eq!(found["missing"][0]["source"], "tasks", "{found}");
    crate::support::wait_for("readiness to say so", || server.readiness().status == 503);
    let refused = Person::with_token(&server, "tribune_12345678_x").modern("tools/list", json!({}));
    assert_eq!(refused.status, 503, "{}", refused.body);
}
