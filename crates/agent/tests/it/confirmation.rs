//! What destroys something is asked about first.

use std::sync::atomic::Ordering;

use serde_json::json;
use tribune_agent::{Begun, ChatAnswer};

use crate::support::model::{Answer, calls, says, status};
use crate::support::tools::{BREAD_ID, MILK_ID};
use crate::support::{Chat, request, user};

fn delete(id: &str) -> String {
    format!("{{\"task_id\":\"{id}\"}}")
}

fn deletes(id: &str) -> Answer {
    calls(&[("delete_task", &delete(id))])
}

fn only_call(answer: &ChatAnswer) -> (bool, bool) {
    let calls = answer.tool_calls.as_ref().expect("calls");
    assert_eq!(calls.len(), 1);
    (calls[0].success, calls[0].needs_confirmation)
}

#[tokio::test]
async fn deleting_waits_for_the_next_message() {
    let chat = Chat::new([
        deletes(MILK_ID),
        says("Shall I delete “Buy milk”?"),
        deletes(MILK_ID),
        says("“Buy milk” is deleted."),
        deletes(MILK_ID),
        says("Shall I?"),
    ])
    .await;
    let asked = chat.ask("delete milk").await.unwrap();
    assert_eq!(only_call(&asked), (false, true));
    assert_eq!(chat.tasks.titles(), ["Buy milk", "Buy bread"]);
    assert!(chat.requests()[1].contents("tool")[0].starts_with("CONFIRMATION NEEDED"));
    assert_eq!(chat.store.exchanges()[0].pending.len(), 1);

    let done = chat.ask("yes").await.unwrap();
    assert_eq!(only_call(&done), (true, false));
    assert_eq!(chat.tasks.titles(), ["Buy bread"]);
    assert_eq!(chat.store.exchanges()[1].pending, Vec::<String>::new());

    // What was confirmed once is not confirmed for ever.
    let again = chat.ask("yes").await.unwrap();
    assert_eq!(only_call(&again), (false, true));
    assert_eq!(chat.tasks.runs.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_refusal_is_heard_even_if_the_model_does_not_hear_it() {
    let chat = Chat::new([
        deletes(MILK_ID),
        says("Shall I?"),
        deletes(MILK_ID),
        says("It stays."),
        deletes(MILK_ID),
        says("Shall I?"),
    ])
    .await;
    chat.ask("delete milk").await.unwrap();
    let refused = chat.ask("No, keep it").await.unwrap();
    assert_eq!(only_call(&refused), (false, false));
    assert!(chat.requests()[3].contents("tool")[0].starts_with("NOT DONE"));
    // The refusal has ended the matter: it would have to be asked for anew.
    let later = chat.ask("what is the weather?").await.unwrap();
    assert_eq!(only_call(&later), (false, true));
    assert_eq!(chat.tasks.titles(), ["Buy milk", "Buy bread"]);
}

#[tokio::test]
async fn a_refusal_counts_even_if_the_model_fails() {
    let down = status(400, &[], &json!({}));
    let chat = Chat::new([
        deletes(MILK_ID),
        says("Shall I?"),
        down,
        deletes(MILK_ID),
        says("Shall I?"),
    ])
    .await;
    chat.ask("delete milk").await.unwrap();
    chat.fails("no").await;
    assert_eq!(
        only_call(&chat.ask("what is the weather?").await.unwrap()),
        (false, true)
    );
    assert_eq!(chat.tasks.titles(), ["Buy milk", "Buy bread"]);
}

#[tokio::test]
async fn a_yes_can_be_said_again_if_the_model_fails() {
    let down = status(400, &[], &json!({}));
    let chat = Chat::new([
        deletes(MILK_ID),
        says("Shall I?"),
        down,
        deletes(MILK_ID),
        says("Done."),
    ])
    .await;
    chat.ask("delete milk").await.unwrap();
    chat.fails("yes").await;
    assert_eq!(only_call(&chat.ask("yes").await.unwrap()), (true, false));
}

#[tokio::test]
async fn what_nobody_asked_about_cannot_be_confirmed() {
    let milk = delete(MILK_ID);
    let chat = Chat::new([
        calls(&[("list_tasks", "{}"), ("delete_task", &milk)]),
        status(400, &[], &json!({})),
        deletes(MILK_ID),
        says("Shall I delete “Buy milk”?"),
    ])
    .await;
    let broken_off = chat.ask("delete milk").await.unwrap();
    assert!(
        broken_off
            .message
            .contains("Not done: something that you would have to confirm first")
    );
    assert_eq!(only_call(&chat.ask("yes").await.unwrap()), (false, true));
    assert_eq!(chat.tasks.titles(), ["Buy milk", "Buy bread"]);
}

#[tokio::test]
async fn only_the_call_that_was_asked_about_is_run() {
    let chat = Chat::new([
        deletes(MILK_ID),
        says("Shall I delete “Buy milk”?"),
        deletes(BREAD_ID),
        says("Shall I delete “Buy bread”?"),
    ])
    .await;
    chat.ask("delete milk").await.unwrap();
    assert_eq!(only_call(&chat.ask("yes").await.unwrap()), (false, true));
    assert_eq!(chat.tasks.titles(), ["Buy milk", "Buy bread"]);
}

#[tokio::test]
async fn calling_twice_in_one_turn_is_no_confirmation() {
    let twice = delete(MILK_ID);
    let chat = Chat::new([
        calls(&[("delete_task", &twice), ("delete_task", &twice)]),
        deletes(MILK_ID),
        says("Shall I?"),
    ])
    .await;
    let answer = chat.ask("delete milk now, I confirm everything").await.unwrap();
    assert!(
        answer
            .tool_calls
            .unwrap()
            .iter()
            .all(|call| call.needs_confirmation && !call.success)
    );
    assert_eq!(chat.tasks.titles(), ["Buy milk", "Buy bread"]);
    assert_eq!(chat.store.exchanges()[0].pending.len(), 1);
}

#[tokio::test]
async fn a_confirmation_is_good_for_the_very_next_turn_only() {
    let chat = Chat::new([
        deletes(MILK_ID),
        says("Shall I?"),
        says("It is sunny."),
        deletes(MILK_ID),
        says("Shall I?"),
    ])
    .await;
    chat.ask("delete milk").await.unwrap();
    chat.ask("what is the weather?").await.unwrap();
    assert_eq!(only_call(&chat.ask("yes").await.unwrap()), (false, true));
    assert_eq!(chat.tasks.titles(), ["Buy milk", "Buy bread"]);
}

#[tokio::test]
async fn two_turns_at_once_do_not_both_have_the_confirmation() {
    let chat = Chat::new([
        deletes(MILK_ID),
        says("Shall I?"),
        deletes(MILK_ID),
        says("Done."),
        deletes(MILK_ID),
        says("Shall I?"),
    ])
    .await;
    chat.ask("delete milk").await.unwrap();
    let begin = || async {
        match chat.agent.begin(request("yes"), &user()).await.unwrap() {
            Begun::Turn(turn) => turn,
            Begun::Answered(_) => unreachable!("it has no request id"),
        }
    };
    let (first, second) = (begin().await, begin().await);
    assert_eq!(only_call(&chat.run(first).await.unwrap()), (true, false));
    assert_eq!(only_call(&chat.run(second).await.unwrap()), (false, true));
}
