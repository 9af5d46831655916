//! What people say, and what tools answer, is in no log.

use serde_json::json;

use crate::support::Chat;
use crate::support::log::logged;
use crate::support::model::{Ending, calls_after, says, status, stream_of};

const CANARY: &str = "canary-4711";

#[tokio::test]
async fn nothing_that_was_said_is_logged() {
    let arguments = json!({"task_id": CANARY}).to_string();
    let failing = [
        says(&format!("the answer {CANARY}")),
        status(500, &[("retry-after", "0")], &json!({"error": {"message": CANARY, "code": "down"}})),
        status(400, &[], &json!({"error": {"message": CANARY, "type": format!("what you said: {CANARY}")}})),
        stream_of([format!("data: {CANARY}\n\n")], Ending::Whole),
    ];
    for last in failing {
        let chat = Chat::new([calls_after(CANARY, &[("complete_task", &arguments), (CANARY, CANARY)]), last]).await;
        let log = logged(async {
            let answer = chat.ask(&format!("a question {CANARY}")).await;
            assert!(answer.is_ok());
        })
        .await;
        let ours: Vec<&str> = log.lines().filter(|line| line.contains("tribune_agent")).collect();
        assert!(ours.iter().any(|line| line.contains("chat turn") && line.contains("rounds=1")), "{ours:?}");
        let leaks: Vec<&str> = log.lines().filter(|line| line.contains(CANARY)).collect();
        assert!(leaks.is_empty(), "{leaks:?}");
    }
}

#[tokio::test]
async fn a_refused_key_is_told_to_the_operator() {
    let chat = Chat::with([status(401, &[], &json!({"error": {"code": "invalid_api_key"}}))], |settings| {
        settings.api_key = Some(CANARY.into());
    })
    .await;
    let log = logged(async {
        chat.fails("hello").await;
    })
    .await;
    let warning = log.lines().find(|line| line.contains("WARN")).expect("a warning");
    assert!(warning.contains("refused the API key") && warning.contains("status=401"), "{warning}");
    assert!(warning.contains("code=\"invalid_api_key\""), "{warning}");
    assert!(!log.contains(CANARY), "{log}");
}

#[tokio::test]
async fn large_tool_definitions_are_logged_once() {
    let chat = Chat::with([says("Hello.")], |settings| settings.context_tokens = 300).await;
    let log = logged(async {
        chat.ask(CANARY).await.unwrap();
        chat.ask(CANARY).await.unwrap();
    })
    .await;
    let warnings: Vec<&str> = log.lines().filter(|line| line.contains("WARN")).collect();
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(
        warnings[0].contains("more than half") && warnings[0].contains("tools=9") && warnings[0].contains("budget=300"),
        "{warnings:?}"
    );
    assert!(!log.contains(CANARY) && !log.contains("list_tasks"), "{log}");

    let roomy = Chat::new([says("Hello.")]).await;
    let log = logged(async {
        roomy.ask(CANARY).await.unwrap();
    })
    .await;
    assert!(!log.contains("WARN"), "{log}");
}
