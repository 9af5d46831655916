//! Calls that are cancelled, late, or answered too much.

use std::time::{Duration, Instant};

use serde_json::json;
use tribune_core::ErrorKind;
use tribune_upstream::{Era, Upstreams};

use crate::support::*;

async fn is_told_of_a_cancelled_call(upstreams: &Upstreams, name: &str, marks: &Marks) {
    let slow = tool(upstreams, name);
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
    assert!(began.elapsed() < Duration::from_secs(1));
    until("cancelled at the server", || {
        marks.read().matches("cancelled").count() > cancelled
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn cancellation_reaches_the_server() {
    let marks = Marks::new();
    let old = Process::python(Era::Legacy, free_port(), &marks);
    let new = Process::python(Era::Modern, free_port(), &marks);
    let upstreams = started(vec![
        by_command("old", Era::Legacy, &marks),
        by_command("new", Era::Modern, &marks),
        spec("old_url", url(old.url())),
        spec("new_url", url(new.url())),
    ])
    .await;
    for name in ["old_slow", "new_slow", "old_url_slow", "new_url_slow"] {
        is_told_of_a_cancelled_call(&upstreams, name, &marks).await;
    }
    upstreams.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn late_answers_and_long_ones() {
    let marks = Marks::new();
    let mut hasty = by_command("x", Era::Legacy, &marks);
    hasty.timeout = Duration::from_secs(4);
    let upstreams = started(vec![hasty]).await;

    // The caller has less time than the server is given.
    let slow = tool(&upstreams, "x_slow");
    let began = Instant::now();
    let late = slow
        .call(args(json!({"seconds": 60})), &context(Duration::from_millis(300)))
        .await;
    assert_eq!(late.expect_err("a late answer").kind(), ErrorKind::DeadlineExceeded);
    assert!(began.elapsed() < Duration::from_secs(2));
    until("cancelled at the server", || marks.read().contains("cancelled")).await;

    // The caller has all the time, and the server does not.
    let long = tokio::spawn({
        let slow = tool(&upstreams, "x_slow");
        async move { slow.call(args(json!({"seconds": 60})), &context(PATIENCE)).await }
    });
    // Meanwhile others are served.
    let sum = call(&upstreams, "x_add", json!({"a": 1, "b": 1})).await;
    assert_eq!(sum.expect("a sum"), json!({"result": 2}));
    let error = long.await.expect("no panic").expect_err("a late answer");
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(
        error.message().starts_with("server `x` did not answer within 4 s"),
        "{error}"
    );

    let huge = tool(&upstreams, "x_huge");
    let output = huge.call(args(json!({"bytes": 3_000_000})), &context(PATIENCE)).await;
    let output = output.expect("a cut answer");
    assert!(output.json().len() <= 1_000_000 && output.json().len() > 900_000);
    assert!(output.json().contains("cut here"));
    // More than a message may have: this one is lost, and the connection is not.
    let lost = huge.call(args(json!({"bytes": 17_000_000})), &context(PATIENCE)).await;
    assert_eq!(lost.expect_err("no answer").kind(), ErrorKind::Unavailable);
    let sum = call(&upstreams, "x_add", json!({"a": 1, "b": 2})).await;
    assert_eq!(sum.expect("a sum"), json!({"result": 3}));
    upstreams.stop().await;
}
