//! What destroys something is asked about first.

use std::sync::atomic::Ordering;

use serde_json::{Value, json};
use tribune_agent::{Accepted, ChatAnswer};
use tribune_core::ErrorKind;
use tribune_storage::ConversationStore;

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
async fn model_cannot_override_a_refusal() {
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
    let refused = chat.ask("No.").await.unwrap();
    assert_eq!(only_call(&refused), (false, false));
    assert!(chat.requests()[3].contents("tool")[0].starts_with("NOT DONE"));
    // The refusal has ended the matter: it would have to be asked for anew.
    let later = chat.ask("what is the weather?").await.unwrap();
    assert_eq!(only_call(&later), (false, true));
    assert_eq!(chat.tasks.titles(), ["Buy milk", "Buy bread"]);
}

#[tokio::test]
async fn refusal_counts_if_the_model_fails() {
    let down = status(400, &[], &json!({}));
    let chat = Chat::new([deletes(MILK_ID), says("Shall I?"), down, deletes(MILK_ID), says("Shall I?")]).await;
    chat.ask("delete milk").await.unwrap();
    chat.fails("no").await;
    assert_eq!(only_call(&chat.ask("what is the weather?").await.unwrap()), (false, true));
    assert_eq!(chat.tasks.titles(), ["Buy milk", "Buy bread"]);
}

#[tokio::test]
async fn yes_stays_valid_if_the_model_fails() {
    let down = status(400, &[], &json!({}));
    let chat = Chat::new([deletes(MILK_ID), says("Shall I?"), down, deletes(MILK_ID), says("Done.")]).await;
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
    assert!(broken_off.message.contains("Not done: a change that needs your confirmation"));
    assert_eq!(only_call(&chat.ask("yes").await.unwrap()), (false, true));
    assert_eq!(chat.tasks.titles(), ["Buy milk", "Buy bread"]);
}

#[tokio::test]
async fn only_the_confirmed_call_runs() {
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
    let chat =
        Chat::new([calls(&[("delete_task", &twice), ("delete_task", &twice)]), deletes(MILK_ID), says("Shall I?")])
            .await;
    let answer = chat.ask("delete milk now, I confirm everything").await.unwrap();
    assert!(answer.tool_calls.unwrap().iter().all(|call| call.needs_confirmation && !call.success));
    assert_eq!(chat.tasks.titles(), ["Buy milk", "Buy bread"]);
    assert_eq!(chat.store.exchanges()[0].pending.len(), 1);
}

#[tokio::test]
async fn confirmation_expires_after_one_turn() {
    let chat =
        Chat::new([deletes(MILK_ID), says("Shall I?"), says("It is sunny."), deletes(MILK_ID), says("Shall I?")]).await;
    chat.ask("delete milk").await.unwrap();
    chat.ask("what is the weather?").await.unwrap();
    assert_eq!(only_call(&chat.ask("yes").await.unwrap()), (false, true));
    assert_eq!(chat.tasks.titles(), ["Buy milk", "Buy bread"]);
}

#[tokio::test]
async fn concurrent_turns_share_one_confirmation() {
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
            Accepted::Turn(turn) => turn,
            Accepted::Answered(_) => unreachable!("it has no request id"),
        }
    };
    let (first, second) = (begin().await, begin().await);
    assert_eq!(only_call(&chat.run(first).await.unwrap()), (true, false));
    assert_eq!(only_call(&chat.run(second).await.unwrap()), (false, true));
}

#[tokio::test]
async fn model_gets_the_exact_waiting_call() {
    let letter = json!({"to": "Ann", "text": "Dear Ann,\n\n\"yes\" é ".repeat(50), "price": 0.1});
    // It knows what to repeat only from what it is told.
    let chat = Chat::new([calls(&[("send_letter", &letter.to_string())]), says("Shall I send it?")]).await;
    chat.ask("write to Ann").await.unwrap();
    assert_eq!(chat.requests()[0].contents("system").len(), 1, "nothing waits before anything was asked");
    let pending = chat.store.exchanges()[0].pending.clone();
    chat.ask("yes").await.unwrap();
    let requests = chat.requests();
    let messages = requests.last().unwrap().messages();
    let notice = &messages[messages.len() - 2];
    assert_eq!((&messages[3], &notice["role"]), (notice, &json!("system")));
    assert_eq!(messages[4]["content"], "yes");
    let (_, call) = notice["content"].as_str().unwrap().split_once("\n- ").unwrap();
    assert_eq!(call, pending[0]);
    let told: Value = serde_json::from_str(call).unwrap();
    assert_eq!(told, json!({"tool": "send_letter", "arguments": letter}));
}

#[tokio::test]
async fn confirmed_call_runs_with_exact_arguments() {
    let letter = json!({"to": "Ann", "text": "Dear Ann, ".repeat(200)});
    let reordered = json!({"text": letter["text"], "to": "Ann"});
    let chat = Chat::new([
        calls(&[("send_letter", &letter.to_string())]),
        says("Shall I send it?"),
        calls(&[("send_letter", &reordered.to_string())]),
        says("Sent."),
    ])
    .await;
    chat.ask("write to Ann").await.unwrap();
    assert_eq!(only_call(&chat.ask("Yes!").await.unwrap()), (true, false));
    let sent = chat.tasks.letters.lock().unwrap().clone();
    assert_eq!(sent, [letter.as_object().cloned().unwrap()]);
}

#[tokio::test]
async fn model_learns_of_confirmation_limits() {
    let long = json!({ "text": "x".repeat(4096) }).to_string();
    let short: Vec<String> = (0..9).map(|n| json!({ "to": n }).to_string()).collect();
    let mut nine: Vec<(&str, &str)> = short.iter().map(|letter| ("send_letter", letter.as_str())).collect();
    nine.push(("send_letter", &long));
    let chat = Chat::new([calls(&nine), says("Shall I?")]).await;
    let answer = chat.ask("write to all").await.unwrap();
    let waits: Vec<bool> = answer.tool_calls.unwrap().iter().map(|call| call.needs_confirmation).collect();
    assert_eq!(waits, [vec![true; 8], vec![false; 2]].concat());
    let requests = chat.requests();
    let results = requests[1].contents("tool");
    assert!(results[8].contains("8 calls wait for it already"), "{}", results[8]);
    assert!(results[9].contains("more than 4 KB"), "{}", results[9]);
    assert_eq!(chat.store.exchanges()[0].pending.len(), 8);
    assert_eq!(chat.tasks.runs.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn what_is_no_yes_is_asked_about_again() {
    let chat = Chat::new([
        deletes(MILK_ID),
        says("Shall I?"),
        deletes(MILK_ID),
        says("Shall I?"),
        deletes(MILK_ID),
        says("Done."),
    ])
    .await;
    chat.ask("delete milk").await.unwrap();
    let evaded = chat.ask("What is the weather like today").await.unwrap();
    assert_eq!(only_call(&evaded), (false, true));
    assert_eq!(chat.tasks.titles(), ["Buy milk", "Buy bread"]);
    // Asked again, the next yes is one.
    assert_eq!(only_call(&chat.ask("ok").await.unwrap()), (true, false));
    assert_eq!(chat.tasks.titles(), ["Buy bread"]);
}

#[tokio::test]
async fn question_names_the_object_by_its_title() {
    let chat = Chat::new([
        calls(&[("list_tasks", "")]),
        calls(&[("delete_task", &format!("{{\"task_id\":\"{MILK_ID}\"}}"))]),
        says("I will."),
    ])
    .await;
    let asked = chat.ask("delete the milk").await.unwrap();
    assert_eq!(asked.message, "I will.\n\nDelete the task \"Buy milk\"? Reply yes or no.");
}

#[tokio::test]
async fn forgotten_question_is_added() {
    let chat = Chat::new([
        calls(&[("send_letter", "{}")]),
        says("I will send it. "),
        calls(&[("send_letter", "{}")]),
        says("送りますか？"),
        says("All right."),
    ])
    .await;
    let asked = chat.ask("write to Ann").await.unwrap();
    assert_eq!(asked.message, "I will send it. \n\nSend a letter? Reply yes or no.");
    assert_eq!(chat.heard.text(), asked.message);
    assert_eq!(chat.store.exchanges()[0].answer.content, asked.message);
    assert_eq!(chat.ask("hm").await.unwrap().message, "送りますか？\n\nSend a letter? Reply yes or no.");
    assert_eq!(chat.ask("no").await.unwrap().message, "All right.", "nothing waits any more");
}

#[tokio::test]
async fn unstored_answer_uses_the_yes() {
    let chat = Chat::new([
        calls(&[("send_letter", "{}")]),
        says("Shall I?"),
        calls(&[("send_letter", "{}")]),
        says("Sent."),
        calls(&[("send_letter", "{}")]),
        says("Shall I?"),
    ])
    .await;
    chat.ask("write to Ann").await.unwrap();
    chat.store.broken.store(true, Ordering::SeqCst);
    assert_eq!(chat.fails("yes").await.kind(), ErrorKind::Unavailable);
    assert_eq!(chat.tasks.runs.load(Ordering::SeqCst), 1);
    chat.store.broken.store(false, Ordering::SeqCst);
    assert_eq!(only_call(&chat.ask("yes").await.unwrap()), (false, true));
    assert_eq!(chat.tasks.runs.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn cancelled_turn_uses_the_yes() {
    let chat = Chat::new([
        calls(&[("send_letter", "{}")]),
        says("Shall I?"),
        calls(&[("send_letter", "{}")]),
        Answer::Silence,
    ])
    .await;
    chat.ask("write to Ann").await.unwrap();
    let Ok(Accepted::Turn(turn)) = chat.agent.begin(request("yes"), &user()).await else {
        panic!("a turn");
    };
    let sent = async {
        while chat.tasks.runs.load(Ordering::SeqCst) == 0 {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        _ = chat.run(turn) => panic!("the model is silent"),
        () = sent => {}
    }
    // Started again, it has nothing that was confirmed.
    let Ok(Accepted::Turn(again)) = chat.agent.begin(request("yes"), &user()).await else {
        panic!("a turn");
    };
    let told = chat.requests().len();
    let waits = async {
        while chat.requests().len() == told {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        _ = chat.run(again) => panic!("the model is silent"),
        () = waits => {}
    }
    assert_eq!(chat.requests()[told].contents("system").len(), 1, "nothing waits");
}

#[tokio::test]
async fn yes_used_elsewhere_is_asked_again() {
    let chat =
        Chat::new([deletes(MILK_ID), says("Shall I delete “Buy milk”?"), deletes(MILK_ID), says("Shall I delete it?")])
            .await;
    chat.ask("delete milk").await.unwrap();
    let begun = chat.agent.begin(request("yes"), &user()).await.unwrap();
    // Between hearing the yes and using it.
    let kept = chat.store.exchanges().remove(0);
    assert!(chat.store.take_pending(&user(), kept.conversation, &kept.pending).await.unwrap());
    let Accepted::Turn(turn) = begun else { panic!("a turn") };
    let answer = chat.run(turn).await.unwrap();
    assert_eq!(only_call(&answer), (false, true));
    assert_eq!(chat.tasks.titles(), ["Buy milk", "Buy bread"]);
}
