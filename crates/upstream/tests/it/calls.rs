//! Calls with slow or long answers.

use std::time::Duration;

use serde_json::json;
use tribune_core::ErrorKind;
use tribune_upstream::Era;

use crate::support::*;

#[tokio::test(flavor = "multi_thread")]
async fn slow_and_long_answers_are_bounded() {
    let marks = Marks::new();
    let mut impatient = by_command("x", Era::Legacy, &marks);
    impatient.timeout = Duration::from_secs(5);
    let upstreams = started(vec![impatient]).await;
    until("connected", || !names(&upstreams).is_empty()).await;

    // The caller's deadline is earlier than the server's timeout.
    let slow = tool(&upstreams, "x_slow");
    let late = slow.call(args(json!({"seconds": 60})), &context(Duration::from_secs(3))).await;
    assert_eq!(late.expect_err("a late answer").kind(), ErrorKind::DeadlineExceeded);
    until("cancelled at the server", || marks.read().contains("cancelled")).await;

    // The server's timeout is earlier than the caller's deadline.
    let long = tokio::spawn({
        let slow = tool(&upstreams, "x_slow");
        async move { slow.call(args(json!({"seconds": 60})), &context(TEST_TIMEOUT)).await }
    });
    // Other calls are answered meanwhile.
    let sum = call(&upstreams, "x_add", json!({"a": 1, "b": 1})).await;
    assert_eq!(sum.expect("a sum"), json!({"result": 2}));
    let error = long.await.expect("no panic").expect_err("a late answer");
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.message().starts_with("server `x` did not answer within 5 s"), "{error}");

    let huge = tool(&upstreams, "x_huge");
    let output = huge.call(args(json!({"bytes": 3_000_000})), &context(TEST_TIMEOUT)).await;
    let output = output.expect("a cut answer");
    assert!(output.json().len() <= 1_000_000 && output.json().len() > 900_000);
    assert!(output.json().contains("cut here"));
    // A message above the limit is dropped; the connection survives.
    let soon = context(Duration::from_millis(2_000));
    let lost = huge.call(args(json!({"bytes": 17_000_000})), &soon).await;
    assert_eq!(lost.expect_err("no answer").kind(), ErrorKind::DeadlineExceeded);
    let sum = call(&upstreams, "x_add", json!({"a": 1, "b": 2})).await;
    assert_eq!(sum.expect("a sum"), json!({"result": 3}));
    upstreams.stop().await;
}
