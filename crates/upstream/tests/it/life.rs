//! Servers that go and come back, and what is left of them when we stop.

use std::time::{Duration, Instant};

use serde_json::json;
use tribune_core::ErrorKind;
use tribune_upstream::{Era, Status};

use crate::support::*;

#[tokio::test(flavor = "multi_thread")]
async fn servers_behind_urls_come_back() {
    tokio::join!(comes_back(Era::Legacy), comes_back(Era::Modern));
}

async fn comes_back(era_of_it: Era) {
    let marks = Marks::new();
    let port = free_port();
    let first = Process::python(era_of_it, port, &marks);
    let upstreams = started(vec![spec("x", url(first.url()))]).await;
    let add = tool(&upstreams, "x_add");
    drop(first);
    let gone = add.call(args(json!({"a": 1, "b": 2})), &context(PATIENCE)).await;
    let gone = gone.expect_err("nobody there");
    assert_eq!(gone.kind(), ErrorKind::Unavailable, "{gone}");
    assert!(gone.message().starts_with("server `x` "), "{gone}");
    until("its tools are gone", || names(&upstreams).is_empty()).await;
    assert!(matches!(status(&upstreams, "x"), Status::Down(_)));

    let second = Process::python(era_of_it, port, &marks);
    until("its tools are back", || !names(&upstreams).is_empty()).await;
    assert_eq!(era(&upstreams, "x"), era_of_it);
    // Who held on to a tool has it again.
    let sum = add.call(args(json!({"a": 1, "b": 2})), &context(PATIENCE)).await;
    assert_eq!(sum.expect("a sum").json(), r#"{"result":3}"#);
    upstreams.stop().await;
    drop(second);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_dies_is_started_again() {
    let marks = Marks::new();
    let upstreams = started(vec![by_command("x", Era::Modern, &marks)]).await;
    let died = call(&upstreams, "x_die", json!({})).await.expect_err("a dead server");
    assert_eq!(died.kind(), ErrorKind::Unavailable);
    until(
        "it is down, with its last words",
        || matches!(status(&upstreams, "x"), Status::Down(why) if why.contains("died as it was told")),
    )
    .await;
    until("its tools are back", || !names(&upstreams).is_empty()).await;
    let sum = call(&upstreams, "x_add", json!({"a": 1, "b": 2})).await;
    assert_eq!(sum.expect("a sum"), json!({"result": 3}));
    upstreams.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_hangs_is_started_again() {
    let marks = Marks::new();
    let mut hasty = by_command("x", Era::Legacy, &marks);
    hasty.timeout = Duration::from_secs(4);
    let upstreams = tribune_upstream::Upstreams::new(vec![hasty]).expect("good specs");
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
async fn one_dead_among_two_costs_its_own_tools() {
    let marks = Marks::new();
    let upstreams = started(vec![
        spec("dead", command("/nowhere/to/be/found", &[])),
        by_command("alive", Era::Legacy, &marks),
    ])
    .await;
    assert!(names(&upstreams).iter().all(|name| name.starts_with("alive_")));
    let sum = call(&upstreams, "alive_add", json!({"a": 1, "b": 2})).await;
    assert_eq!(sum.expect("a sum"), json!({"result": 3}));
    assert!(matches!(status(&upstreams, "dead"), Status::Down(why) if why.contains("could not be started")));
    upstreams.stop().await;
}

fn is_running(pid: &str) -> bool {
    // A process that has ended and was not waited for is there, but has no command line.
    std::fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| !line.is_empty())
}

/// A child that ignores that its input has closed, and has a child of its own.
fn stubborn(pids: &Marks) -> String {
    let path = pids.path();
    format!("trap '' TERM HUP PIPE; echo $$ >> {path}; sleep 300 & echo $! >> {path}; while :; do sleep 1; done")
}

#[tokio::test(flavor = "multi_thread")]
async fn stopping_ends_children_and_theirs() {
    let marks = Marks::new();
    let polite = by_command("polite", Era::Legacy, &marks);
    let mut rude = spec("rude", command("sh", &["-c", &stubborn(&marks)]));
    rude.timeout = Duration::from_secs(2);
    let upstreams = tribune_upstream::Upstreams::new(vec![polite, rude]).expect("good specs");
    upstreams.start();
    until("both run", || {
        marks.read().lines().count() >= 2 && !names(&upstreams).is_empty()
    })
    .await;
    let began = Instant::now();
    upstreams.stop().await;
    assert!(began.elapsed() < Duration::from_secs(8), "{:?}", began.elapsed());
    assert!(names(&upstreams).is_empty());
    assert_eq!(status(&upstreams, "polite"), Status::Down("stopped".to_owned()));
    until("all are gone", || marks.read().lines().all(|pid| !is_running(pid))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn dropping_ends_children_too() {
    let marks = Marks::new();
    let line = format!(
        "echo $$ >> {}; exec {} {} stdio",
        marks.path(),
        python(Era::Legacy),
        script("server.py")
    );
    let upstreams = started(vec![spec("x", command("sh", &["-c", &line]))]).await;
    assert!(names(&upstreams).contains(&"x_add".to_owned()));
    let pid = marks.read().trim().to_owned();
    assert!(is_running(&pid));
    drop(upstreams);
    until("it is gone", || !is_running(&pid)).await;
}
