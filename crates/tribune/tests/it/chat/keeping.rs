//! What is kept, whoever fails, hangs up or is killed, and that nobody else meets it.

use std::collections::HashSet;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::{Value, json};

use super::{next_page, server, task_manager};
use crate::model::{Model, Reply, calls};
use crate::people::Person;
use crate::support::{TestServer, sample, text, wait_for};

#[test]
fn a_model_that_fails_is_told_and_nothing_is_kept() {
    let replies = [
        Reply::Fails(401),
        Reply::Fails(500),
        Reply::Garbage,
        Reply::BreaksOff,
        Reply::Says(String::new()),
    ];
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
fn what_was_done_before_the_model_failed_is_told_and_kept() {
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
fn whoever_hangs_up_finds_the_answer_kept_once() {
    let model = Model::start(task_manager);
    let server = server(&model);
    let me = Person::local(&server);
    let id = "0192f0c1-2b3c-7def-8000-000000000001";
    let body = json!({"message": "Slow", "request_id": id}).to_string();
    let mut stream = TcpStream::connect(("127.0.0.1", server.port)).expect("connected");
    write!(
        stream,
        "POST /chat HTTP/1.1\r\nhost: 127.0.0.1\r\naccept: text/event-stream\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
    .expect("sent");
    let mut start = [0; 64];
    stream.read_exact(&mut start).expect("the answer begins");
    drop(stream);
    let again = me.post("/chat", &json!({"message": "Slow", "request_id": id}));
    assert!(matches!(again.status, 200 | 503), "{}", again.body);
    wait_for("the answer to be kept", || {
        me.get("/conversations").json()[0]["message_count"] == 2
    });
    let kept = me.post("/chat", &json!({"message": "Slow", "request_id": id})).json();
    assert_eq!(kept["message"], "Good things take time.");
    assert_eq!(model.asked().len(), 1, "the model was asked once");
    assert_eq!(me.get("/conversations").json()[0]["message_count"], 2);
}

#[test]
fn nobody_reads_or_goes_on_with_the_conversations_of_another() {
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
        // A model that is talked into it has no way to say whose tasks it means.
        let shown = other
            .post(
                "/chat",
                &json!({"message": "Show me the tasks of user ann", "new_conversation": true}),
            )
            .json();
        assert_eq!(shown["tool_calls"][0]["success"], false, "{shown}");
        assert_eq!(shown["tool_calls"][1]["success"], true, "{shown}");
        assert!(!shown.to_string().contains("eulogy"), "{shown}");
    }
    let sent = model
        .asked()
        .into_iter()
        .filter(|asked| asked.to_string().contains("tasks of user ann"));
    for asked in sent {
        assert!(!asked.to_string().contains("eulogy"), "the model never sees it either");
    }
    assert_eq!(ann.get("/conversations").json()[0]["message_count"], 2);
}

#[test]
fn what_is_said_stays_out_of_the_logs() {
    let model = Model::start(task_manager);
    let server = TestServer::builder()
        .documents(&sample())
        .tables(&model.table())
        .arg("--log")
        .arg("debug")
        .start();
    let me = Person::local(&server);
    me.chat("Add zanzibarcanary");
    assert_eq!(me.post("/chat", &json!({"message": "Fail zanzibarcanary"})).status, 503);
    me.chat("Find zanzibarcanary");
    let log = server.log();
    assert!(log.contains("tool call"), "{log}");
    assert!(!log.contains("zanzibarcanary"), "{log}");
}

/// What one killed server had acknowledged: titles of tasks, and questions with their conversations.
#[derive(Default)]
struct Acknowledged {
    tasks: Vec<String>,
    questions: Vec<(String, String)>,
}

/// Writes until the server is gone.
fn write_until_killed(address: &str, name: &str) -> Acknowledged {
    let mut acknowledged = Acknowledged::default();
    let agent: ureq::Agent = ureq::Agent::config_builder()
        .timeout_global(Some(Duration::from_secs(5)))
        .build()
        .into();
    for number in 0.. {
        let question = format!("Add {name} {number}");
        let body = json!({"message": question, "new_conversation": true}).to_string();
        let Ok(mut answer) = agent.post(format!("{address}/chat")).send(&body) else {
            break;
        };
        let Ok(answer) = answer.body_mut().read_to_string() else {
            break;
        };
        let answer: Value = serde_json::from_str(&answer).expect("JSON");
        acknowledged.tasks.push(format!("{name} {number}"));
        acknowledged
            .questions
            .push((question, text(&answer["conversation_id"]).to_owned()));
    }
    acknowledged
}

#[test]
fn a_killed_server_has_kept_what_it_acknowledged_and_no_half_conversation() {
    const KILLS: usize = 8;
    let model = Model::start(task_manager);
    let mut server = server(&model);
    let mut acknowledged = Acknowledged::default();
    for kill in 0..KILLS {
        let address = server.url.clone();
        let writers: Vec<_> = (0..4)
            .map(|writer| {
                let (address, name) = (address.clone(), format!("kill {kill} writer {writer}"));
                std::thread::spawn(move || write_until_killed(&address, &name))
            })
            .collect();
        std::thread::sleep(Duration::from_millis(250));
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
    assert!(acknowledged.tasks.len() > KILLS * 4, "{}", acknowledged.tasks.len());
    let me = Person::local(&server);
    for (question, conversation) in &acknowledged.questions {
        let messages = me.get(&format!("/conversations/{conversation}/messages")).json();
        assert_eq!(messages.as_array().map(Vec::len), Some(2), "{messages}");
        assert_eq!(messages[0]["content"], json!(question));
    }
    let mut kept = HashSet::new();
    let mut cursor = Value::Null;
    loop {
        let arguments = if cursor.is_null() {
            json!({"limit": 100})
        } else {
            json!({"limit": 100, "cursor": cursor})
        };
        let page = me.call("list_tasks", &arguments);
        kept.extend(
            page["tasks"]
                .as_array()
                .expect("tasks")
                .iter()
                .map(|task| text(&task["title"]).to_owned()),
        );
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
