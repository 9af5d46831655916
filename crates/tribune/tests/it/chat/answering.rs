//! Questions and answers: tools, streams, pages of conversations, limits, confirmation.

use serde_json::{Value, json};

use super::{events, next_page, server, task_manager};
use crate::model::Model;
use crate::people::{Person, tribune};
use crate::support::{TestServer, sample, text, wait_for};

#[test]
fn chat_calls_tools_and_stores_answer() {
    let model = Model::start(task_manager);
    let server = server(&model);
    let me = Person::local(&server);
    let added = me.chat("Add Water the tomatoes");
    assert!(text(&added["message"]).starts_with("Done: "), "{added}");
    assert_eq!(added["tool_calls"][0]["tool"], "add_task");
    assert_eq!(added["tool_calls"][0]["success"], true);
    assert_eq!(me.titles(), ["Water the tomatoes"]);

    let completed = me.chat("Complete the tomatoes");
    let tools: Vec<&Value> =
        completed["tool_calls"].as_array().expect("calls").iter().map(|call| &call["tool"]).collect();
    assert_eq!(tools, ["list_tasks", "complete_task"]);
    assert_eq!(completed["conversation_id"], added["conversation_id"], "a moment later it goes on");
    assert_eq!(me.call("list_tasks", &json!({"status": "completed"}))["total"], 1);

    let found = me.chat("Find beans");
    assert_eq!(found["citations"][0]["title"], "Runner beans");
    assert_eq!(found["citations"][0]["url"], format!("{}/data/docs:beans.md", server.url));

    // The model got the instructions, the history, and the question once.
    let sent = model.asked().last().expect("a request")["messages"].clone();
    let said: Vec<&str> = sent
        .as_array()
        .expect("messages")
        .iter()
        .filter(|m| m["role"] == "user")
        .map(|m| text(&m["content"]))
        .collect();
    assert_eq!(said, ["Add Water the tomatoes", "Complete the tomatoes", "Find beans"]);
    assert!(!sent.to_string().contains("user_id"));

    let id = text(&added["conversation_id"]).to_owned();
    let listed = me.get("/conversations").json();
    assert_eq!(listed[0]["id"], json!(id));
    assert_eq!(listed[0]["message_count"], 6);
    assert_eq!(listed[0]["preview"], "Add Water the tomatoes");
    let messages = me.get(&format!("/conversations/{id}/messages")).json();
    let roles: Vec<&str> = messages.as_array().expect("messages").iter().map(|m| text(&m["role"])).collect();
    assert_eq!(roles, ["user", "assistant", "user", "assistant", "user", "assistant"]);

    // Page by page, from the end.
    let mut address = format!("/conversations/{id}/messages?limit=4");
    let mut seen = Vec::new();
    while !address.is_empty() {
        let page = me.get(&address);
        let mut items = page.json().as_array().expect("messages").clone();
        items.extend(seen);
        seen = items;
        address = next_page(&page);
    }
    assert_eq!(Value::from(seen), messages);

    let other = me.post("/chat", &json!({"message": "Hi", "new_conversation": true})).json();
    assert_ne!(other["conversation_id"], added["conversation_id"]);
    assert_eq!(other["tool_calls"], Value::Null);
    let back = me.post("/chat", &json!({"message": "Hi", "conversation_id": id})).json();
    assert_eq!(back["conversation_id"], json!(id));
    let first = me.get("/conversations?limit=1");
    assert!(first.header("link").contains("rel=\"next\""), "{:?}", first.headers);
    let next = first.header("link").trim_start_matches('<').split('>').next().expect("an address").to_owned();
    assert_eq!(me.get(&next).json()[0]["id"], other["conversation_id"]);
}

#[test]
fn chat_answer_is_streamed() {
    let model = Model::start(task_manager);
    let server = server(&model);
    let (authorization, secret) = server.local_header();
    let ask = |message: &str| {
        let body = json!({"message": message}).to_string();
        let headers = [("accept", "text/event-stream"), ("x-correlation-id", "abc-1"), (authorization, &secret)];
        let answer = server.post("/chat", &headers, &body);
        assert_eq!(answer.header("x-correlation-id"), "abc-1");
        assert_eq!(answer.header("content-type"), "text/event-stream");
        events(&answer.body)
    };
    let told = ask("Add Mow the lawn");
    let names: Vec<&str> = told.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names[..3], ["started", "tool_start", "tool_end"], "{names:?}");
    assert_eq!(names.last(), Some(&"answer"));
    let deltas: String = told.iter().filter(|(name, _)| name == "delta").map(|(_, data)| text(&data["text"])).collect();
    let (_, answer) = told.last().expect("an answer");
    assert_eq!(text(&answer["message"]), deltas);
    assert_eq!(answer["conversation_id"], told[0].1["conversation_id"]);
    assert_eq!(told[2].1["tool"], "add_task");
    assert_eq!(told[2].1["success"], true);
    let failed = ask("Fail");
    let (name, error) = failed.last().expect("an event");
    assert_eq!((name.as_str(), &error["error"]["code"]), ("error", &json!("unavailable")));
}

#[test]
fn chat_without_model_shows_configuration() {
    let server = TestServer::builder().documents(&sample()).tables("[store]").start();
    let me = Person::local(&server);
    let answer = me.post("/chat", &json!({"message": "hello"}));
    assert_eq!(answer.status, 503);
    let error = &answer.json()["error"];
    assert_eq!(error["code"], "model_not_configured");
    assert_eq!(error["missing"].as_array().expect("lines").len(), 3);
    for key in ["base_url = ", "model = ", "api_key = "] {
        assert!(text(&error["message"]).contains(key), "{error}");
    }
    assert_eq!(me.get("/conversations").json(), json!([]));
    me.add("Mow the lawn");
    // A missing key is reported and disables only the chat.
    let server = TestServer::builder()
        .documents(&sample())
        .tables("[agent]\napi_key = \"env:TRIBUNE_TEST_NO_SUCH_KEY\"")
        .start();
    let answer = Person::local(&server).post("/chat", &json!({"message": "hello"}));
    assert_eq!(answer.status, 503);
    assert!(answer.body.contains("TRIBUNE_TEST_NO_SUCH_KEY"), "{}", answer.body);
}

#[test]
fn invalid_chat_request_is_explained() {
    let model = Model::start(task_manager);
    let server = server(&model);
    let me = Person::local(&server);
    for (body, status) in [
        (json!({}), 400),
        (json!({"message": ""}), 400),
        (json!({"message": "  \n"}), 400),
        (json!({"message": "x".repeat(4001)}), 400),
        (json!({"message": 7}), 400),
        (json!({"message": "x", "user_id": "ann"}), 400),
        (json!({"message": "x", "conversation_id": "7"}), 400),
        (json!({"confirm": []}), 400),
        (json!({"confirm": ["7"]}), 400),
        (json!({"confirm": "yes"}), 400),
        (json!({"confirm": ["00000000-0000-7000-8000-000000000000"]}), 404),
        (json!({"message": "x", "conversation_id": "00000000-0000-7000-8000-000000000000"}), 404),
        (json!({"message": "x".repeat(100_000)}), 413),
    ] {
        let answer = me.post("/chat", &body);
        assert_eq!(answer.status, status, "{}", answer.body);
        assert!(!text(&answer.json()["error"]["message"]).is_empty(), "{}", answer.body);
    }
    assert_eq!(me.get("/conversations").json(), json!([]), "nothing of it is kept");
    assert!(model.asked().is_empty(), "nothing of it reaches the model");
    assert_eq!(me.post("/chat", &json!({"message": "ä".repeat(4000)})).status, 200);
    for address in
        ["/conversations?limit=0", "/conversations?limit=x", "/conversations?after=x", "/conversations/x/messages"]
    {
        let answer = me.get(address);
        assert!(matches!(answer.status, 400 | 404), "{address}: {}", answer.body);
    }
}

/// The ids that an answer asks about.
fn asked_ids(answer: &Value) -> Vec<Value> {
    let confirmations = answer["confirmations"].as_array().expect("confirmations");
    confirmations.iter().map(|confirmation| confirmation["id"].clone()).collect()
}

#[test]
fn destructive_call_waits_for_decision() {
    let model = Model::start(task_manager);
    let server = server(&model);
    let me = Person::local(&server);
    let id = me.add("Water the \"old\" tomatoes");
    let asked = me.chat("Delete the tomatoes");
    assert_eq!(asked["message"], "Delete the task \"Water the 'old' tomatoes\"? Reply yes or no.");
    let held = &asked["confirmations"][0];
    assert_eq!(
        (&held["tool"], &held["question"]),
        (&json!("delete_task"), &json!("Delete the task \"Water the 'old' tomatoes\"?"))
    );
    let last = asked["tool_calls"].as_array().expect("calls").last().expect("a call").clone();
    assert_eq!(
        (&last["tool"], &last["success"], &last["needs_confirmation"]),
        (&json!("delete_task"), &json!(false), &json!(true))
    );
    me.chat("No");
    me.chat("Delete the tomatoes");
    me.chat("Yes, but only if they are dry");
    me.chat("Yes");
    assert_eq!(me.titles().len(), 1, "neither no, nor a condition, nor a yes to another message");

    // A title that has changed is asked about again.
    me.chat("Delete the tomatoes");
    me.call("update_task", &json!({"task_id": id, "title": "Eat the tomatoes"}));
    let again = me.chat("Yes");
    assert_eq!(again["confirmations"][0]["question"], "Delete the task \"Eat the tomatoes\"?");
    assert_eq!(me.titles(), ["Eat the tomatoes"]);
    let done = me.chat("Yes");
    assert_eq!(done["tool_calls"].as_array().expect("calls").last().expect("a call")["success"], true, "{done}");
    assert_eq!((me.titles(), done["confirmations"].clone()), (Vec::new(), json!([])));
}

#[test]
fn refused_decision_leaves_the_call_waiting() {
    let model = Model::start(task_manager);
    let server = server(&model);
    let ann = Person::new(&server, "ann");
    let chats_only = ["token", "create", "--user", "ann", "--scope", "chat"];
    let chats_only = Person::with_token(&server, tribune(&server, &chats_only).0.trim());
    ann.add("Water the tomatoes");
    let asked = ann.chat("Delete the tomatoes");
    for decision in [json!({"confirm": asked_ids(&asked)}), json!({"message": "yes"})] {
        let refused = chats_only.post("/chat", &decision);
        assert_eq!(refused.status, 403, "{}", refused.body);
        assert!(refused.body.contains("delete_task needs the scope `tasks`"), "{}", refused.body);
    }
    assert_eq!(ann.titles().len(), 1);
    ann.chat("Yes");
    assert_eq!(ann.titles().len(), 0, "it was still waiting");
}

#[test]
fn decisions_belong_to_user_and_conversation() {
    let model = Model::start(task_manager);
    let server = server(&model);
    let (ann, bob) = (Person::new(&server, "ann"), Person::new(&server, "bob"));
    ann.add("Water the tomatoes");
    let asked = ann.chat("Delete the tomatoes");
    let elsewhere = ann.post("/chat", &json!({"message": "Hi", "new_conversation": true})).json();
    bob.chat("Hi");
    let (id, unknown) = (asked_ids(&asked), json!(["00000000-0000-7000-8000-000000000000"]));
    for person in [&ann, &bob] {
        for decision in ["confirm", "decline"] {
            let told = [json!(id), unknown.clone()].map(|id| person.post("/chat", &json!({decision: id})));
            assert_eq!((told[0].status, &told[0].body), (404, &told[1].body), "{decision}");
        }
    }
    let there = json!({"confirm": id, "conversation_id": elsewhere["conversation_id"]});
    assert_eq!(ann.post("/chat", &there).status, 404);
    let not_his = json!({"confirm": id, "conversation_id": asked["conversation_id"]});
    assert_eq!(bob.post("/chat", &not_his).status, 404);
    assert_eq!(ann.titles().len(), 1);
    let hers = ann.post("/chat", &not_his);
    assert_eq!((hers.status, ann.titles().len()), (200, 0), "{}", hers.body);
    let stored = ann.get(&format!("/conversations/{}/messages", text(&asked["conversation_id"]))).json();
    assert_eq!(stored[2]["content"], "Yes: Delete the task \"Water the tomatoes\"?");
    assert_eq!((&stored[2]["looked_up"], &stored[3]["looked_up"]), (&Value::Null, &json!(true)));
}

/// Two processes share the database, and one of them starts after the call was held.
#[test]
fn two_servers_run_a_decision_once() {
    let model = Model::start(task_manager);
    let first = server(&model);
    for number in 0..5 {
        let me = Person::local(&first);
        me.add(&format!("Task {number}"));
        let asked = me.chat("Delete it");
        let decision = json!({"confirm": asked_ids(&asked), "conversation_id": asked["conversation_id"]});
        let second = TestServer::over(first.dir.clone(), &[], &[]);
        second.wait_ready();
        let there = Person::local(&second);
        let answers = std::thread::scope(|scope| {
            [&me, &there]
                .map(|person| scope.spawn(|| person.post("/chat", &decision)))
                .map(|answer| answer.join().expect("an answer"))
        });
        let mut statuses = answers.each_ref().map(|answer| answer.status);
        statuses.sort_unstable();
        assert_eq!(statuses, [200, 404], "{} {}", answers[0].body, answers[1].body);
        assert_eq!(me.titles(), Vec::<String>::new());
        assert_eq!(there.post("/chat", &decision).status, 404);
    }
}

#[test]
fn reading_agent_changes_nothing() {
    let model = Model::start(task_manager);
    let server =
        TestServer::builder().documents(&sample()).tables(&format!("{}tools = \"read\"", model.table())).start();
    let me = Person::local(&server);
    me.add("Water the tomatoes");
    for message in ["Add a task", "Complete the tomatoes", "Delete the tomatoes"] {
        let answer = me.chat(message);
        assert_eq!(
            answer["tool_calls"].as_array().expect("calls").last().expect("a call")["success"],
            false,
            "{answer}"
        );
        assert_eq!(answer["confirmations"], json!([]));
    }
    assert_eq!(me.call("list_tasks", &json!({"status": "pending"}))["total"], 1);
    let offered = model.asked()[0]["tools"].to_string();
    assert!(offered.contains("list_tasks") && offered.contains("\"search\""), "{offered}");
    for tool in ["add_task", "complete_task", "update_task", "undo_task_update", "delete_task"] {
        assert!(!offered.contains(&format!("\"name\":\"{tool}\"")), "{offered}");
    }
}

#[test]
fn turns_beyond_the_limit_are_refused() {
    let model = Model::start(task_manager);
    let server = TestServer::builder().documents(&sample()).tables(&format!("{}max_turns = 2", model.table())).start();
    let me = Person::local(&server);
    std::thread::scope(|scope| {
        let slow = scope.spawn(|| me.chat("Slow"));
        wait_for("the model to be asked", || !model.asked().is_empty());
        let refused = me.post("/chat", &json!({"message": "Hi"}));
        assert_eq!(refused.status, 429, "half of the places are one user's: {}", refused.body);
        assert_eq!(Person::new(&server, "ann").chat("Hi")["message"], "Hello.");
        model.release();
        slow.join().expect("answered");
    });
    assert_eq!(me.chat("Hi")["message"], "Hello.");
}

#[test]
fn openapi_describes_the_chat() {
    let model = Model::start(task_manager);
    let server = server(&model);
    let document = server.get("/openapi.json", &[]).json();
    assert_eq!(document["openapi"], "3.1.0");
    // Every reference resolves.
    let whole = document.to_string();
    for reference in whole.split("\"$ref\":\"#").skip(1) {
        let path = reference.split('"').next().expect("a path");
        assert!(document.pointer(path).is_some(), "{path}");
    }
    for (path, methods) in document["paths"].as_object().expect("paths") {
        for method in methods.as_object().expect("methods").keys() {
            let address = path.replace("{id}", "00000000-0000-7000-8000-000000000000");
            let answer = match method.as_str() {
                "get" => server.get(&address, &[]),
                "post" => server.post(&address, &[], "{}"),
                _ => continue,
            };
            let described = document["paths"][path][method]["responses"].get(answer.status.to_string());
            assert!(described.is_some(), "{method} {path} answers {}", answer.status);
        }
    }
}
