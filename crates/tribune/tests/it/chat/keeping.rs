//! What a chat stores after failures, disconnects and kills, and isolation of users.

use std::collections::HashSet;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use super::{next_page, server, task_manager};
use crate::model::{Model, Reply, calls};
use crate::people::Person;
use crate::support::{PATIENCE, TestServer, sample, text, wait_for};

#[test]
fn failed_model_is_reported_nothing_stored() {
    let replies = [Reply::Fails(401), Reply::Fails(500), Reply::Garbage, Reply::BreaksOff, Reply::Says(String::new())];
    let model = Model::start(move |asked| replies[asked.question().parse::<usize>().unwrap_or(0)].clone());
    let server = server(&model);
    let me = Person::local(&server);
    for number in 0..5 {
        let answer = me.post("/chat", &json!({"message": number.to_string()}));
        assert_eq!(answer.status, 503, "{number}: {}", answer.body);
        let message = text(&answer.json()["error"]["message"]).to_owned();
        assert!(!message.contains("127.0.0.1") && !message.is_empty(), "{message}");
    }
    assert_eq!(me.get("/conversations").json(), json!([]));
}

#[test]
fn completed_work_survives_model_failure() {
    let model = Model::start(|asked| match asked.results().len() {
        0 => calls("add_task", &json!({"title": "Mow the lawn"})),
        _ => Reply::Fails(500),
    });
    let server = server(&model);
    let me = Person::local(&server);
    let answer = me.chat("Add it");
    assert_eq!(answer["tool_calls"][0]["success"], true);
    assert!(text(&answer["message"]).contains("Mow the lawn"), "{answer}");
    assert_eq!(me.titles(), ["Mow the lawn"]);
    assert_eq!(me.get("/conversations").json()[0]["message_count"], 2);
}

#[test]
fn disconnected_caller_finds_answer_once() {
    let model = Model::start(task_manager);
    let server = server(&model);
    let me = Person::local(&server);
    let id = "0192f0c1-2b3c-7def-8000-000000000001";
    let body = json!({"message": "Slow", "request_id": id}).to_string();
    let (authorization, secret) = server.local_header();
    let mut stream = TcpStream::connect(("127.0.0.1", server.port)).expect("connected");
    write!(
        stream,
        "POST /chat HTTP/1.1\r\nhost: 127.0.0.1\r\n{authorization}: {secret}\r\naccept: text/event-stream\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
    .expect("sent");
    let mut start = [0; 64];
    stream.read_exact(&mut start).expect("the answer begins");
    drop(stream);
    model.release();
    let again = me.post("/chat", &json!({"message": "Slow", "request_id": id}));
    assert!(matches!(again.status, 200 | 503), "{}", again.body);
    wait_for("the answer to be kept", || me.get("/conversations").json()[0]["message_count"] == 2);
    let kept = me.post("/chat", &json!({"message": "Slow", "request_id": id})).json();
    assert_eq!(kept["message"], "Good things take time.");
    assert_eq!(model.asked().len(), 1, "the model was asked once");
    assert_eq!(me.get("/conversations").json()[0]["message_count"], 2);
}

#[test]
fn conversations_are_hidden_from_other_users() {
    let model = Model::start(task_manager);
    let server = server(&model);
    let (ann, bob) = (Person::new(&server, "ann"), Person::new(&server, "bob"));
    let hers = ann.chat("Add Write the eulogy");
    let id = text(&hers["conversation_id"]).to_owned();
    for other in [&bob, &Person::local(&server)] {
        assert_eq!(other.get("/conversations").json(), json!([]));
        assert_eq!(other.get(&format!("/conversations/{id}/messages")).status, 404);
        let answer = other.post("/chat", &json!({"message": "And?", "conversation_id": id}));
        assert_eq!(answer.status, 404, "{}", answer.body);
        // A manipulated model has no argument to name another user.
        let shown =
            other.post("/chat", &json!({"message": "Show me the tasks of user ann", "new_conversation": true})).json();
        assert_eq!(shown["tool_calls"][0]["success"], false, "{shown}");
        assert_eq!(shown["tool_calls"][1]["success"], true, "{shown}");
        assert!(!shown.to_string().contains("eulogy"), "{shown}");
    }
    let sent = model.asked().into_iter().filter(|asked| asked.to_string().contains("tasks of user ann"));
    for asked in sent {
        assert!(!asked.to_string().contains("eulogy"), "the model never sees it either");
    }
    assert_eq!(ann.get("/conversations").json()[0]["message_count"], 2);
}

#[test]
fn chat_text_is_not_logged() {
    let model = Model::start(task_manager);
    let mut server =
        TestServer::builder().documents(&sample()).tables(&model.table()).arg("--log").arg("debug").start();
    let me = Person::local(&server);
    me.chat("Add zanzibarcanary");
    assert_eq!(me.post("/chat", &json!({"message": "Fail zanzibarcanary"})).status, 503);
    me.chat("Find zanzibarcanary");
    assert_eq!(server.stop(), Some(0));
    let log = server.log();
    assert!(log.contains("tool call"), "{log}");
    assert!(!log.contains("zanzibarcanary"), "{log}");
}

/// What a killed server had acknowledged: task titles, and questions with their conversations.
#[derive(Default)]
struct Acknowledged {
    tasks: Vec<String>,
    questions: Vec<(String, String)>,
}

/// Writes until the server is gone.
fn write_until_killed(address: &str, secret: &str, name: &str, written: &AtomicUsize) -> Acknowledged {
    let mut acknowledged = Acknowledged::default();
    let agent: ureq::Agent = ureq::Agent::config_builder().timeout_global(Some(PATIENCE)).build().into();
    for number in 0.. {
        let question = format!("Add {name} {number}");
        let body = json!({"message": question, "new_conversation": true}).to_string();
        let Ok(mut answer) = agent.post(format!("{address}/chat")).header("authorization", secret).send(&body) else {
            break;
        };
        let Ok(answer) = answer.body_mut().read_to_string() else {
            break;
        };
        let answer: Value = serde_json::from_str(&answer).expect("JSON");
        acknowledged.tasks.push(format!("{name} {number}"));
        acknowledged.questions.push((question, text(&answer["conversation_id"]).to_owned()));
        written.fetch_add(1, Ordering::SeqCst);
    }
    acknowledged
}

#[test]
fn killed_server_keeps_every_acknowledged_write() {
    const KILLS: usize = 8;
    let model = Model::start(task_manager);
    let mut server = server(&model);
    let mut acknowledged = Acknowledged::default();
    let written = Arc::new(AtomicUsize::new(0));
    for kill in 0..KILLS {
        let (address, (_, secret)) = (server.url.clone(), server.local_header());
        let writers: Vec<_> = (0..4)
            .map(|writer| {
                let (address, secret) = (address.clone(), secret.clone());
                let name = format!("kill {kill} writer {writer}");
                let written = written.clone();
                std::thread::spawn(move || write_until_killed(&address, &secret, &name, &written))
            })
            .collect();
        // At another point of the work each time.
        let enough = written.load(Ordering::SeqCst) + 5 + kill;
        wait_for("some writes", || written.load(Ordering::SeqCst) >= enough);
        let dir = server.dir.clone();
        // Dropping it kills it.
        drop(server);
        for writer in writers {
            let more = writer.join().expect("a writer");
            acknowledged.tasks.extend(more.tasks);
            acknowledged.questions.extend(more.questions);
        }
        server = TestServer::over(dir, &[], &[]);
        server.wait_ready();
    }
    let me = Person::local(&server);
    for (question, conversation) in &acknowledged.questions {
        let messages = me.get(&format!("/conversations/{conversation}/messages")).json();
        assert_eq!(messages.as_array().map(Vec::len), Some(2), "{messages}");
        assert_eq!(messages[0]["content"], json!(question));
    }
    let mut kept = HashSet::new();
    let mut cursor = Value::Null;
    loop {
        let arguments = if cursor.is_null() { json!({"limit": 100}) } else { json!({"limit": 100, "cursor": cursor}) };
        let page = me.call("list_tasks", &arguments);
        kept.extend(page["tasks"].as_array().expect("tasks").iter().map(|task| text(&task["title"]).to_owned()));
        cursor = page["next_cursor"].clone();
        if cursor.is_null() {
            break;
        }
    }
    for title in &acknowledged.tasks {
        assert!(kept.contains(title), "{title} was acknowledged and is lost");
    }
    let mut address = "/conversations?limit=100".to_owned();
    while !address.is_empty() {
        let page = me.get(&address);
        for conversation in page.json().as_array().expect("a list") {
            assert_eq!(conversation["message_count"], 2, "half a conversation: {conversation}");
        }
        address = next_page(&page);
    }
}
