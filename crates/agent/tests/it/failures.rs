//! Models that fail, each in its own way.

use std::time::Duration;

use serde_json::{Value, json};
use tribune_agent::Settings;
use tribune_core::{ErrorKind, Result};

use crate::support::model::{Answer, Ending, calls, delta, says, status, stream_of};
use crate::support::{Chat, context, request, user};

/// The kind and the sentence; nothing was kept and no text is left standing.
async fn failure(chat: &Chat) -> (ErrorKind, String) {
    let error = chat.fails("hello").await;
    assert_eq!(chat.store.exchanges(), [], "nothing is kept of a failure");
    assert_eq!(chat.heard.text(), "");
    (error.kind(), error.message().to_owned())
}

fn error(text: &str) -> Value {
    json!({"error": {"message": text, "type": "some_error", "code": null}})
}

#[tokio::test]
async fn statuses_have_plain_messages() {
    for (code, says, tries) in [
        (401, "rejected the API key", 1),
        (403, "rejected the API key", 1),
        (404, "does not have this model or address", 1),
        (400, "rejected the request", 1),
        (302, "rejected the request", 1),
    ] {
        let chat = Chat::new([status(code, &[], &error("internal canary"))]).await;
        let (kind, message) = failure(&chat).await;
        assert_eq!(kind, ErrorKind::Unavailable);
        assert!(message.contains(says) && !message.contains("canary"), "{code}: {message}");
        assert_eq!(chat.requests().len(), tries, "{code}");
    }
}

#[tokio::test]
async fn rate_limit_is_retried() {
    let limited = status(429, &[("retry-after", "1")], &error("slow down"));
    let chat = Chat::new([limited, says("Hello.")]).await;
    assert_eq!(chat.ask("hello").await.unwrap().message, "Hello.");
    assert_eq!(chat.requests().len(), 2);
}

#[tokio::test]
async fn long_retry_after_is_not_awaited() {
    let chat = Chat::new([status(429, &[("retry-after", "11")], &error("slow down"))]).await;
    let (kind, message) = failure(&chat).await;
    assert_eq!(kind, ErrorKind::Unavailable);
    assert!(message.contains("is rate limiting requests (HTTP 429). Try again in a minute."), "{message}");
    assert_eq!(chat.requests().len(), 1);
}

#[tokio::test]
async fn server_errors_are_tried_three_times() {
    let chat = Chat::new([status(500, &[("retry-after", "0")], &error("oops"))]).await;
    let (kind, message) = failure(&chat).await;
    assert_eq!(kind, ErrorKind::Unavailable);
    assert!(message.contains("The model server answered 500"), "{message}");
    assert_eq!(chat.requests().len(), 3);

    let twice = status(503, &[("retry-after", "0")], &error("oops"));
    let chat = Chat::new([twice.clone(), twice, says("Hello.")]).await;
    assert_eq!(chat.ask("hello").await.unwrap().message, "Hello.");
}

#[tokio::test]
async fn error_inside_a_stream_fails() {
    let late = format!("data: {}\n\n", json!({"error": {"message": "canary", "code": 400}}));
    let chat = Chat::new([stream_of([delta(&json!({"content": "Hel"}), None), late.clone()], Ending::Whole)]).await;
    let (_, message) = failure(&chat).await;
    assert!(message.contains("rejected the request") && !message.contains("canary"), "{message}");

    // Something has been said: it is not asked again, though the error might pass.
    let passing = late.replace("400", "502");
    let chat = Chat::new([stream_of([delta(&json!({"content": "Hel"}), None), passing.clone()], Ending::Whole)]).await;
    failure(&chat).await;
    assert_eq!(chat.requests().len(), 1);
    let chat = Chat::new([stream_of([passing], Ending::Whole), says("Hello.")]).await;
    assert_eq!(chat.ask("hello").await.unwrap().message, "Hello.");
}

#[tokio::test]
async fn unreadable_answer_fails() {
    let html = |content_type: &str| Answer::Pieces {
        status: 200,
        headers: vec![("content-type", content_type.to_owned())],
        pieces: vec![b"<html>\n<body>Welcome</body>\n</html>\n".to_vec()],
        ending: Ending::Whole,
    };
    let endless =
        Answer::Pieces { status: 200, headers: vec![], pieces: vec![vec![b'x'; 64 * 1024]; 20], ending: Ending::Whole };
    for answer in [
        html("text/html"),
        html("application/json"),
        html("text/event-stream"),
        stream_of(["data: {\"choices\": [\n\n"], Ending::Whole),
        stream_of([vec![0xff, 0xfe, b'\n', b'\n'], b"data: \xff\n\n".to_vec()], Ending::Whole),
        endless,
    ] {
        let chat = Chat::new([answer]).await;
        let (kind, message) = failure(&chat).await;
        assert_eq!(kind, ErrorKind::Unavailable);
        assert!(message.contains("unreadable answer"), "{message}");
        assert_eq!(chat.requests().len(), 1);
    }
}

#[tokio::test]
async fn incomplete_answer_fails() {
    let half = |ending| stream_of([delta(&json!({"content": "Hello, I"}), None)], ending);
    for ending in [Ending::Whole, Ending::Broken] {
        let chat = Chat::new([half(ending)]).await;
        let (kind, message) = failure(&chat).await;
        assert_eq!(kind, ErrorKind::Unavailable);
        assert!(message.contains("broke off"), "{message}");
        assert_eq!(chat.heard.deltas(), 1);
    }
}

#[tokio::test]
async fn empty_answer_fails() {
    let done = "data: [DONE]\n\n".to_owned();
    for pieces in [
        vec![],
        vec![done.clone()],
        vec![delta(&json!({"content": " \n"}), Some("stop")), done.clone()],
        vec![delta(&json!({"content": null}), Some("content_filter")), done],
    ] {
        let chat = Chat::new([stream_of(pieces, Ending::Whole)]).await;
        let (kind, message) = failure(&chat).await;
        assert_eq!(kind, ErrorKind::Unavailable);
        assert!(message.contains("empty answer"), "{message}");
    }
    let chat = Chat::new([status(200, &[], &json!({"choices": []}))]).await;
    assert!(failure(&chat).await.1.contains("empty answer"));
}

#[tokio::test]
async fn silent_model_times_out() {
    let half = stream_of([delta(&json!({"content": "Hello"}), None)], Ending::Hanging);
    for answer in [Answer::Silence, half] {
        let chat = Chat::with([answer], |settings| settings.silence = Duration::from_millis(100)).await;
        let (kind, message) = failure(&chat).await;
        assert_eq!(kind, ErrorKind::DeadlineExceeded);
        assert!(message.contains("sent nothing for too long"), "{message}");
    }
}

#[tokio::test]
async fn stream_may_end_without_done() {
    let done = stream_of([delta(&json!({"content": "Hello."}), Some("stop"))], Ending::Hanging);
    // Silence would fail the turn.
    let chat = Chat::new([done]).await;
    assert_eq!(chat.ask("hello").await.unwrap().message, "Hello.");
}

#[tokio::test]
async fn requests_and_turns_end_in_time() {
    let drip = || stream_of(vec![": still here\n\n"; 99], Ending::Hanging);
    let timed = |change: fn(&mut Settings)| async move {
        let chat = Chat::with([drip()], change).await;
        failure(&chat).await
    };
    for (kind, message) in [
        timed(|settings| settings.request_timeout = Duration::from_millis(200)).await,
        timed(|settings| settings.turn_timeout = Duration::from_millis(200)).await,
    ] {
        assert_eq!(kind, ErrorKind::DeadlineExceeded);
        assert!(message.contains("timed out"), "{message}");
    }
}

#[tokio::test]
async fn cancelled_turn_ends() {
    let chat = Chat::new([Answer::Silence]).await;
    let Ok(tribune_agent::Accepted::Turn(turn)) = chat.agent.begin(request("hello"), &user(), |_| Ok(())).await else {
        panic!("a turn");
    };
    let cx = context();
    let cancel = cx.cancel.clone();
    let stop = async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        cancel.cancel();
    };
    let (answer, ()) = tokio::join!(turn.run(chat.tasks.clone(), cx, &*chat.heard), stop);
    assert_eq!(answer.unwrap_err().kind(), ErrorKind::Cancelled);
}

#[tokio::test]
async fn unreachable_model_fails() {
    let free = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let chat = Chat::on(Settings::new(format!("http://{free}/v1"), "none"));
    let (kind, message) = failure(&chat).await;
    assert_eq!(kind, ErrorKind::Unavailable);
    assert_eq!(message, "The model server is unreachable. Try again in a minute.");
}

#[tokio::test]
async fn failed_model_still_reports_done_calls() {
    let milk = format!("{{\"task_id\":\"{}\"}}", crate::support::tools::MILK_ID);
    let half = stream_of([delta(&json!({"content": "I have"}), None)], Ending::Broken);
    let refused = status(401, &[], &error("canary"));
    for (failing, why) in [(half, "broke off"), (refused, "rejected the API key")] {
        let chat = Chat::new([calls(&[("complete_task", &milk), ("fail", "{}")]), failing]).await;
        let answer = chat.ask("complete milk").await.unwrap();
        assert!(answer.message.contains(why), "{}", answer.message);
        assert!(answer.message.contains("\n- Done: Buy milk\n- Failed: the database is away"), "{}", answer.message);
        assert!(!answer.message.contains("canary"));
        assert_eq!(chat.heard.text(), answer.message, "half an answer was taken back");
        assert_eq!(chat.store.exchanges()[0].answer.content, answer.message);
        assert_eq!(answer.tool_calls.unwrap().len(), 2);
    }
}

#[tokio::test]
async fn refused_call_is_not_reported_as_done() {
    let chat = Chat::new([calls(&[("delete_task", "{}")]), status(401, &[], &error("no"))]).await;
    let (kind, _) = failure(&chat).await;
    assert_eq!(kind, ErrorKind::Unavailable);
}

#[test]
fn settings_are_checked() -> Result<()> {
    for (url, model) in [("", "m"), ("localhost/v1", "m"), ("http://localhost/v1", " ")] {
        let settings = Settings::new(url, model);
        let clock = std::sync::Arc::new(tribune_core::SystemClock);
        let agent =
            tribune_agent::Agent::new(settings, std::sync::Arc::<crate::support::store::Memory>::default(), clock);
        assert_eq!(agent.err().map(|error| error.kind()), Some(ErrorKind::InvalidArgument), "{url} {model}");
    }
    Ok(())
}
