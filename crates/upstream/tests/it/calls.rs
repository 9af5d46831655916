//! Calls that are late, or answered too much.

use std::time::{Duration, Instant};

use serde_json::json;
use tribune_core::ErrorKind;
use tribune_upstream::Era;

use crate::support::*;

#[tokio::test(flavor = "multi_thread")]
async fn late_answers_and_long_ones() {
    let marks = Marks::new();
    let mut hasty = by_command("x", Era::Legacy, &marks);
    hasty.timeout = Duration::from_secs(5);
    let upstreams = started(vec![hasty]).await;
    until("connected", || !names(&upstreams).is_empty()).await;

    // The caller has less time than the server is given.
    let slow = tool(&upstreams, "x_slow");
    let began = Instant::now();
    let late = slow
        .call(args(json!({"seconds": 60})), &context(Duration::from_millis(300)))
        .await;
    assert_eq!(late.expect_err("a late answer").kind(), ErrorKind::DeadlineExceeded);
    assert!(began.elapsed() < Duration::from_secs(5));
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
        error.message().starts_with("server `x` did not answer within 5 s"),
        "{error}"
    );

    let huge = tool(&upstreams, "x_huge");
    let output = huge.call(args(json!({"bytes": 3_000_000})), &context(PATIENCE)).await;
    let output = output.expect("a cut answer");
    assert!(output.json().len() <= 1_000_000 && output.json().len() > 900_000);
    assert!(output.json().contains("cut here"));
    // More than a message may have: this one is lost, and the connection is not.
    let soon = context(Duration::from_millis(2_000));
    let lost = huge.call(args(json!({"bytes": 17_000_000})), &soon).await;
    assert_eq!(lost.expect_err("no answer").kind(), ErrorKind::DeadlineExceeded);
    let sum = call(&upstreams, "x_add", json!({"a": 1, "b": 2})).await;
    assert_eq!(sum.expect("a sum"), json!({"result": 3}));
    upstreams.stop().await;
}
