//! The agent behind `/chat`, with a model that says what a test wants: what it does, what it keeps, what it tells.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::{Value, json};

use crate::aimock::Aimock;
use crate::model::{Asked, Model, Reply, calls, says};
use crate::people::{Person, tribune};
use crate::support::{TestServer, sample, text, wait_for};

fn server(model: &Model) -> TestServer {
    TestServer::builder()
        .documents(&sample())
        .tables(&model.table())
        .start()
}

/// A model that manages tasks: adds, lists, completes the one that is listed, deletes it.
fn task_manager(asked: &Asked) -> Reply {
    let (question, results) = (asked.question(), asked.results());
    let listed = || -> Value { serde_json::from_str(results[0]).unwrap_or_default() };
    match (question.split(' ').next().unwrap_or_default(), results.len()) {
        ("Add", 0) => calls("add_task", &json!({"title": question.trim_start_matches("Add ")})),
        ("Complete" | "Delete" | "Yes," | "No,", 0) => calls("list_tasks", &json!({})),
        ("Complete", 1) => calls("complete_task", &json!({"task_id": listed()["tasks"][0]["id"]})),
        ("Delete" | "Yes," | "No,", 1) => calls("delete_task", &json!({"task_id": listed()["tasks"][0]["id"]})),
        ("Show", 0) => calls("list_tasks", &json!({"user_id": "ann"})),
        ("Show", 1) => calls("list_tasks", &json!({})),
        ("Find", 0) => calls("search", &json!({"query": "runner beans"})),
        ("Fail", _) => Reply::Fails(500),
        ("Slow", _) => Reply::Slowly(Duration::from_millis(700), "Good things take time.".to_owned()),
        (_, 0) => says("Hello."),
        _ => says(&format!("Done: {}", results.last().copied().unwrap_or_default())),
    }
}

#[test]
fn a_question_is_answered_with_tools_and_kept_with_its_answer() {
    let model = Model::start(task_manager);
    let server = server(&model);
    let me = Person::local(&server);
    let added = me.chat("Add Water the tomatoes");
    assert!(text(&added["message"]).starts_with("Done: "), "{added}");
    assert_eq!(added["tool_calls"][0]["tool"], "add_task");
    assert_eq!(added["tool_calls"][0]["success"], true);
    assert_eq!(me.titles(), ["Water the tomatoes"]);

    let completed = me.chat("Complete the tomatoes");
    let tools: Vec<&Value> = completed["tool_calls"]
        .as_array()
        .expect("calls")
        .iter()
        .map(|call| &call["tool"])
        .collect();
    assert_eq!(tools, ["list_tasks", "complete_task"]);
    assert_eq!(
        completed["conversation_id"], added["conversation_id"],
        "a moment later it goes on"
    );
    assert_eq!(me.call("list_tasks", &json!({"status": "completed"}))["total"], 1);

    let found = me.chat("Find beans");
    assert_eq!(found["citations"][0]["title"], "Runner beans");
    assert_eq!(
        found["citations"][0]["url"],
        format!("{}/data/docs:beans.md", server.url)
    );

    // The model was sent the instructions, what was said before, and the question once.
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
    let roles: Vec<&str> = messages
        .as_array()
        .expect("messages")
        .iter()
        .map(|m| text(&m["role"]))
        .collect();
    assert_eq!(roles, ["user", "assistant", "user", "assistant", "user", "assistant"]);

    // Page by page, from the end.
    let mut address = format!("/conversations/{id}/messages?limit=4");
    let mut seen = Vec::new();
    while !address.is_empty() {
        let page = me.get(&address);
        let mut items = page.json().as_array().expect("messages").clone();
        items.extend(seen);
        seen = items;
        let next = page
            .header("link")
            .strip_prefix('<')
            .and_then(|link| link.split_once('>'));
        address = next.map(|(next, _)| next.to_owned()).unwrap_or_default();
    }
    assert_eq!(Value::from(seen), messages);

    let other = me
        .post("/chat", &json!({"message": "Hi", "new_conversation": true}))
        .json();
    assert_ne!(other["conversation_id"], added["conversation_id"]);
    assert_eq!(other["tool_calls"], Value::Null);
    let back = me
        .post("/chat", &json!({"message": "Hi", "conversation_id": id}))
        .json();
    assert_eq!(back["conversation_id"], json!(id));
    let first = me.get("/conversations?limit=1");
    assert!(first.header("link").contains("rel=\"next\""), "{:?}", first.headers);
    let next = first
        .header("link")
        .trim_start_matches('<')
        .split('>')
        .next()
        .expect("an address")
        .to_owned();
    assert_eq!(me.get(&next).json()[0]["id"], other["conversation_id"]);
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

#[test]
fn an_answer_is_streamed_as_it_comes() {
    let model = Model::start(task_manager);
    let server = server(&model);
    let ask = |message: &str| {
        let body = json!({"message": message}).to_string();
        let answer = server.post(
            "/chat",
            &[("accept", "text/event-stream"), ("x-correlation-id", "abc-1")],
            &body,
        );
        assert_eq!(answer.header("x-correlation-id"), "abc-1");
        assert_eq!(answer.header("content-type"), "text/event-stream");
        events(&answer.body)
    };
    let told = ask("Add Mow the lawn");
    let names: Vec<&str> = told.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names[..3], ["started", "tool_start", "tool_end"], "{names:?}");
    assert_eq!(names.last(), Some(&"answer"));
    let deltas: String = told
        .iter()
        .filter(|(name, _)| name == "delta")
        .map(|(_, data)| text(&data["text"]))
        .collect();
    let (_, answer) = told.last().expect("an answer");
    assert_eq!(text(&answer["message"]), deltas);
    assert_eq!(answer["conversation_id"], told[0].1["conversation_id"]);
    assert_eq!(told[2].1["tool"], "add_task");
    assert_eq!(told[2].1["success"], true);
    let failed = ask("Fail");
    let (name, error) = failed.last().expect("an event");
    assert_eq!(
        (name.as_str(), &error["error"]["code"]),
        ("error", &json!("unavailable"))
    );
}

#[test]
fn without_a_model_the_three_lines_are_told_and_everything_else_works() {
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
    // A key that is not there is told, and costs the chat alone.
    let server = TestServer::builder()
        .documents(&sample())
        .tables("[agent]\napi_key = \"env:TRIBUNE_TEST_NO_SUCH_KEY\"")
        .start();
    let answer = Person::local(&server).post("/chat", &json!({"message": "hello"}));
    assert_eq!(answer.status, 503);
    assert!(answer.body.contains("TRIBUNE_TEST_NO_SUCH_KEY"), "{}", answer.body);
}

#[test]
fn what_is_not_a_question_is_refused_with_a_sentence() {
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
        (
            json!({"message": "x", "conversation_id": "00000000-0000-7000-8000-000000000000"}),
            404,
        ),
        (json!({"message": "x".repeat(100_000)}), 413),
    ] {
        let answer = me.post("/chat", &body);
        assert_eq!(answer.status, status, "{}", answer.body);
        assert!(!text(&answer.json()["error"]["message"]).is_empty(), "{}", answer.body);
    }
    assert_eq!(me.get("/conversations").json(), json!([]), "nothing of it is kept");
    assert!(model.asked().is_empty(), "nothing of it reaches the model");
    assert_eq!(me.post("/chat", &json!({"message": "ä".repeat(4000)})).status, 200);
    for address in [
        "/conversations?limit=0",
        "/conversations?limit=x",
        "/conversations?after=x",
        "/conversations/x/messages",
    ] {
        let answer = me.get(address);
        assert!(matches!(answer.status, 400 | 404), "{address}: {}", answer.body);
    }
}

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
fn what_destroys_something_is_asked_about_first() {
    let model = Model::start(task_manager);
    let server = server(&model);
    let me = Person::local(&server);
    me.add("Water the tomatoes");
    let asked = me.chat("Delete the tomatoes");
    let last = asked["tool_calls"]
        .as_array()
        .expect("calls")
        .last()
        .expect("a call")
        .clone();
    assert_eq!(
        (&last["tool"], &last["success"], &last["needs_confirmation"]),
        (&json!("delete_task"), &json!(false), &json!(true))
    );
    assert_eq!(me.titles(), ["Water the tomatoes"]);
    me.chat("No, leave it");
    assert_eq!(
        me.titles(),
        ["Water the tomatoes"],
        "no means no, whatever the model makes of it"
    );
    me.chat("Delete the tomatoes");
    let done = me.chat("Yes, go ahead");
    assert_eq!(
        done["tool_calls"].as_array().expect("calls").last().expect("a call")["success"],
        true,
        "{done}"
    );
    assert_eq!(me.titles(), Vec::<String>::new());
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
fn no_more_questions_are_answered_at_once_than_may_be() {
    let model = Model::start(task_manager);
    let server = TestServer::builder()
        .documents(&sample())
        .tables(&format!("{}max_turns = 2", model.table()))
        .start();
    let me = Person::local(&server);
    std::thread::scope(|scope| {
        let slow = scope.spawn(|| me.chat("Slow"));
        wait_for("the model to be asked", || !model.asked().is_empty());
        let refused = me.post("/chat", &json!({"message": "Hi"}));
        assert_eq!(
            refused.status, 429,
            "half of the places are one user's: {}",
            refused.body
        );
        assert_eq!(Person::new(&server, "ann").chat("Hi")["message"], "Hello.");
        slow.join().expect("answered");
    });
    assert_eq!(me.chat("Hi")["message"], "Hello.");
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

#[test]
fn the_interface_is_described_for_programs() {
    let model = Model::start(task_manager);
    let server = server(&model);
    let document = server.get("/openapi.json", &[]).json();
    assert_eq!(document["openapi"], "3.1.0");
    // Every reference leads somewhere.
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

#[test]
fn the_agent_can_be_talked_to_in_a_terminal() {
    let model = Model::start(task_manager);
    let server = server(&model);
    let (out, err) = tribune(&server, &["chat", "Add", "Mow the lawn"]);
    assert!(out.starts_with("Done: "), "{out}");
    assert!(err.contains("add_task done"), "{err}");
    let me = Person::local(&server);
    assert_eq!(
        me.titles(),
        ["Mow the lawn"],
        "it is the local user's, in the same database"
    );
    let (out, _) = tribune(&server, &["chat", "--json", "Complete the lawn"]);
    let answer: Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!(answer["tool_calls"][1]["tool"], "complete_task");
    assert_eq!(
        me.get("/conversations").json()[0]["message_count"],
        4,
        "both went into one conversation"
    );

    // A conversation through a pipe: the last message decides how it ends.
    let mut child = std::process::Command::new(crate::support::binary())
        .args(["chat", "--config"])
        .arg(server.config())
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .expect("the binary starts");
    let mut stdin = child.stdin.take().expect("standard input");
    stdin
        .write_all(b"/new\nHi there\n/history\n/tools\n/nothing\nFail now\nHi again\n")
        .expect("written");
    drop(stdin);
    let ended = child.wait_with_output().expect("ended");
    let (out, err) = (
        String::from_utf8_lossy(&ended.stdout),
        String::from_utf8_lossy(&ended.stderr),
    );
    assert!(ended.status.success(), "{out}{err}");
    assert_eq!(
        out.matches("Hello.").count(),
        3,
        "two answers, and one in the history: {out}"
    );
    assert!(out.contains("You: Hi there") && out.contains("delete_task: "), "{out}");
    assert!(
        err.contains("There is no /nothing") && err.contains("tribune: "),
        "{err}"
    );
    assert_eq!(me.get("/conversations").json().as_array().expect("a list").len(), 2);
}

/// A Python server of the official SDK, started as a command, and another Tribune at an address.
#[test]
fn the_agent_uses_tools_of_other_servers_and_one_that_is_dead_costs_only_its_own() {
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
    assert!(server.log().contains("dead"), "the operator is told: {}", server.log());
}

/// A model server that this project did not write.
#[test]
fn the_agent_works_with_aimock() {
    let model = Aimock::start(&["talk.json"]);
    let server = TestServer::builder()
        .documents(&sample())
        .tables(&format!(
            "[agent]\nbase_url = \"{}\"\nmodel = \"gpt-4o-mini\"\n",
            model.url
        ))
        .start();
    let me = Person::local(&server);
    me.add("Buy milk");
    let answer = me.chat("how many tasks do I have?");
    assert_eq!(answer["message"], "You have two tasks.", "so it was told to say");
    assert_eq!(
        answer["tool_calls"][0]["result_preview"], "1 task",
        "but the tool told the truth"
    );
    let body = json!({"message": "Please say hello"}).to_string();
    let streamed = server.post("/chat", &[("accept", "text/event-stream")], &body);
    let told = events(&streamed.body);
    assert!(told.iter().filter(|(name, _)| name == "delta").count() > 1, "{told:?}");
    assert_eq!(
        told.last().expect("an answer").1["message"],
        "Hello! I can help you with your tasks."
    );
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
    let mut kept = std::collections::HashSet::new();
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
        let next = page
            .header("link")
            .strip_prefix('<')
            .and_then(|link| link.split_once('>'));
        address = next.map(|(next, _)| next.to_owned()).unwrap_or_default();
    }
}
