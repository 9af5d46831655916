//! Servers that die and return, and processes after a stop.

use std::time::Duration;

use serde_json::json;
use tribune_core::ErrorKind;
use tribune_upstream::{Era, Status};

use crate::support::*;

#[tokio::test(flavor = "multi_thread")]
async fn http_servers_are_reconnected() {
    tokio::join!(assert_reconnects(Era::Legacy), assert_reconnects(Era::Modern));
}

async fn assert_reconnects(expected_era: Era) {
    let marks = Marks::new();
    let port = free_port();
    let first = Process::python(expected_era, port, &marks);
    let upstreams = started(vec![spec("x", url(first.url()))]).await;
    let add = tool(&upstreams, "x_add");
    drop(first);
    let gone = add.call(args(json!({"a": 1, "b": 2})), &context(TEST_TIMEOUT)).await;
    let gone = gone.expect_err("a dead server");
    assert_eq!(gone.kind(), ErrorKind::Unavailable, "{gone}");
    assert!(gone.message().starts_with("server `x` "), "{gone}");
    until("its tools are gone", || names(&upstreams).is_empty()).await;
    assert!(matches!(status(&upstreams, "x"), Status::Down(_)));

    let second = Process::python(expected_era, port, &marks);
    until("its tools are back", || !names(&upstreams).is_empty()).await;
    assert_eq!(era(&upstreams, "x"), expected_era);
    // A tool obtained before the restart works again.
    let sum = add.call(args(json!({"a": 1, "b": 2})), &context(TEST_TIMEOUT)).await;
    assert_eq!(sum.expect("a sum").json(), r#"{"result":3}"#);
    upstreams.stop().await;
    drop(second);
}

#[tokio::test(flavor = "multi_thread")]
async fn dead_child_is_restarted() {
    let marks = Marks::new();
    let upstreams = started(vec![by_command("x", Era::Modern, &marks)]).await;
    let died = call(&upstreams, "x_die", json!({})).await.expect_err("a dead server");
    assert_eq!(died.kind(), ErrorKind::Unavailable);
    until(
        "it is down, with its last line on stderr",
        || matches!(status(&upstreams, "x"), Status::Down(why) if why.contains("died as it was told")),
    )
    .await;
    until("its tools are back", || !names(&upstreams).is_empty()).await;
    let sum = call(&upstreams, "x_add", json!({"a": 1, "b": 2})).await;
    assert_eq!(sum.expect("a sum"), json!({"result": 3}));
    upstreams.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn hanging_child_is_restarted() {
    let marks = Marks::new();
    let mut impatient = by_command("x", Era::Legacy, &marks);
    impatient.timeout = Duration::from_secs(4);
    let upstreams = tribune_upstream::Upstreams::new(vec![impatient]).expect("good specs");
    upstreams.start();
    until("connected", || !names(&upstreams).is_empty()).await;
    let frozen = call(&upstreams, "x_freeze", json!({})).await.expect_err("no answer");
    assert!(frozen.message().contains("did not answer within 4 s"), "{frozen}");
    until("it is down", || names(&upstreams).is_empty()).await;
    until("its tools are back", || !names(&upstreams).is_empty()).await;
    let sum = call(&upstreams, "x_add", json!({"a": 1, "b": 2})).await;
    assert_eq!(sum.expect("a sum"), json!({"result": 3}));
    upstreams.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn dead_server_affects_only_its_own_tools() {
    let marks = Marks::new();
    let upstreams =
        started(vec![spec("dead", command("/nowhere/to/be/found", &[])), by_command("alive", Era::Legacy, &marks)])
            .await;
    assert!(names(&upstreams).iter().all(|name| name.starts_with("alive_")));
    let sum = call(&upstreams, "alive_add", json!({"a": 1, "b": 2})).await;
    assert_eq!(sum.expect("a sum"), json!({"result": 3}));
    assert!(matches!(status(&upstreams, "dead"), Status::Down(why) if why.contains("could not be started")));
    upstreams.stop().await;
}

fn is_running(pid: &str) -> bool {
    // A zombie has no command line.
    std::fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| !line.is_empty())
}

/// A child that ignores closed input and signals, and has a child of its own.
fn stubborn(pids: &Marks) -> String {
    let path = pids.path();
    format!("trap '' TERM HUP PIPE; echo $$ >> {path}; sleep 300 & echo $! >> {path}; while :; do sleep 1; done")
}

#[tokio::test(flavor = "multi_thread")]
async fn stop_kills_children_and_grandchildren() {
    let marks = Marks::new();
    let polite = by_command("polite", Era::Legacy, &marks);
    let mut rude = spec("rude", command("sh", &["-c", &stubborn(&marks)]));
    rude.timeout = Duration::from_secs(2);
    let upstreams = tribune_upstream::Upstreams::new(vec![polite, rude]).expect("good specs");
    upstreams.start();
    until("both run", || marks.read().lines().count() >= 2 && !names(&upstreams).is_empty()).await;
    upstreams.stop().await;
    assert!(names(&upstreams).is_empty());
    assert_eq!(status(&upstreams, "polite"), Status::Down("stopped".to_owned()));
    until("all are gone", || marks.read().lines().all(|pid| !is_running(pid))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn drop_kills_children() {
    let marks = Marks::new();
    let line = format!("echo $$ >> {}; exec {} {} stdio", marks.path(), python(Era::Legacy), script("server.py"));
    let upstreams = started(vec![spec("x", command("sh", &["-c", &line]))]).await;
    assert!(names(&upstreams).contains(&"x_add".to_owned()));
    let pid = marks.read().trim().to_owned();
    assert!(is_running(&pid));
    drop(upstreams);
    until("it is gone", || !is_running(&pid)).await;
}
