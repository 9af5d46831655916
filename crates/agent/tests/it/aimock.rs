//! The agent against a server that others wrote.

use tribune_agent::{Event, Settings};
use tribune_core::ErrorKind;

use crate::support::Chat;
use crate::support::aimock::Aimock;

/// The server lives for as long as the chat.
fn chat(fixtures: &[&str]) -> (Aimock, Chat) {
    let model = Aimock::start(fixtures);
    let chat = Chat::on(Settings::new(&model.url, "gpt-4o-mini"));
    (model, chat)
}

#[tokio::test]
async fn it_talks_and_calls_tools() {
    let (_model, chat) = chat(&["talk.json"]);
    let answer = chat.ask("Please say hello").await.unwrap();
    assert_eq!(answer.message, "Hello! I can help you with your tasks.");
    assert_eq!(chat.heard.text(), answer.message);
    assert_eq!(chat.heard.deltas(), 8, "39 characters, 5 at a time");

    let answer = chat.ask("how many tasks do I have?").await.unwrap();
    assert_eq!(answer.message, "You have two tasks.");
    assert_eq!(answer.tool_calls.unwrap()[0].result_preview.as_deref(), Some("2 tasks"));

    let answer = chat.ask("milk is bought").await.unwrap();
    assert_eq!(answer.message, "“Buy milk” is done.");
    let tools: Vec<(String, bool)> =
        answer.tool_calls.unwrap().into_iter().map(|call| (call.tool, call.success)).collect();
    assert_eq!(tools, [("list_tasks".to_owned(), true), ("complete_task".to_owned(), true)]);
    assert_eq!(chat.tasks.completed(), ["Buy milk"]);
    assert!(chat.heard.events().contains(&Event::Discard), "“Let me look.” was taken back");

    let answer = chat.ask("both at once").await.unwrap();
    assert_eq!(answer.message, "One of the two did not work.");
    let success: Vec<bool> = answer.tool_calls.unwrap().iter().map(|call| call.success).collect();
    assert_eq!(success, [true, false]);
    assert_eq!(chat.store.exchanges().len(), 4);
}

#[tokio::test]
async fn faults_have_plain_messages() {
    let (_model, chat) = chat(&["faults.json"]);
    for (message, says) in [
        ("wrong key", "rejected the API key"),
        ("no such fixture", "does not have this model or address"),
        ("always dropped", "The model server answered"),
        ("always limited", "is rate limiting requests"),
        ("malformed", "unreadable answer"),
        ("disconnected", "is unreachable"),
        ("half a stream", "broke off"),
    ] {
        let error = chat.fails(message).await;
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{message}");
        assert!(error.message().contains(says), "{message}: {error}");
    }
    assert_eq!(chat.store.exchanges(), []);
    assert_eq!(chat.heard.text(), "");

    assert_eq!(chat.ask("busy once").await.unwrap().message, "Here I am.");
    let told = chat.ask("done, then down").await.unwrap();
    assert!(told.message.starts_with("I could not finish this answer"), "{}", told.message);
    assert!(told.message.contains("Looked up: 2 tasks"), "{}", told.message);
}
