//! Which conversation a question belongs to, what of it the model sees, and what is kept.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use jiff::SignedDuration;
use tribune_agent::{Accepted, ChatRequest, Event, Events};
use tribune_core::{ErrorKind, UserId};
use uuid::Uuid;

use crate::support::model::{Answer, calls, says};
use crate::support::{Chat, context, request, user};

#[tokio::test]
async fn model_gets_ten_messages_and_the_question() {
    let chat = Chat::new((0..8).map(|n| says(&format!("answer {n}")))).await;
    for n in 0..7 {
        chat.ask(&format!("question {n}")).await.unwrap();
    }
    let last = chat.requests().pop().unwrap();
    let sent: Vec<(&str, &str)> = last
        .messages()
        .iter()
        .map(|message| (message["role"].as_str().unwrap(), message["content"].as_str().unwrap()))
        .collect();
    assert_eq!(sent[0].0, "system");
    assert!(sent[0].1.contains("Today is Monday, 2026-11-16 (UTC)."));
    let expected: Vec<(&str, String)> = (1..6)
        .flat_map(|n| [("user", format!("question {n}")), ("assistant", format!("answer {n}"))])
        .chain([("user", "question 6".to_owned())])
        .collect();
    let sent: Vec<(&str, String)> = sent[1..].iter().map(|(role, text)| (*role, (*text).to_owned())).collect();
    assert_eq!(sent, expected);
    assert_eq!(chat.store.exchanges().len(), 7);
}

#[tokio::test]
async fn what_is_sent_stays_within_the_budget() {
    let chat = Chat::with(
        [says(&"old ".repeat(500)), calls(&[("long", "{}"), ("long", "{\"n\":2}")]), says("Done.")],
        |settings| {
            settings.context_tokens = 3000;
            settings.instructions = Some("Be brief.".into());
        },
    )
    .await;
    chat.ask("first").await.unwrap();
    chat.ask("second").await.unwrap();
    let requests = chat.requests();
    let tools = serde_json::to_vec(&requests[0].body["tools"]).unwrap().len();
    let bytes = |at: usize| {
        let contents = requests[at].messages().iter().filter_map(|message| message["content"].as_str());
        tools + contents.map(str::len).sum::<usize>()
    };
    assert_eq!(requests[1].contents("user"), ["first", "second"], "there was room for the history");
    assert_eq!(requests[2].contents("user"), ["first", "second"], "the last exchange stays");
    assert!(requests[2].contents("assistant")[0].ends_with("more characters]"), "but it gave way to the results");
    assert!(requests[2].contents("system")[0].contains("\n\nBe brief.\n\n"));
    let results = requests[2].contents("tool");
    assert!(results.iter().all(|result| result.ends_with("more characters]") && result.len() > 1000));
    assert!((1..3).all(|at| bytes(at) < 3000 * 3), "{} {}", bytes(1), bytes(2));
}

#[tokio::test]
async fn a_long_result_is_cut_and_says_so() {
    let chat = Chat::new([calls(&[("long", "{}")]), says("Long.")]).await;
    chat.ask("show it").await.unwrap();
    let requests = chat.requests();
    let result = requests[1].contents("tool")[0];
    // 50,000 characters and {"text":""} around them, less 12,000.
    assert!(result.ends_with("x\n[cut here: 38011 more characters]"));
}

#[tokio::test]
async fn after_thirty_minutes_a_new_conversation_begins() {
    let chat = Chat::new([says("Hi")]).await;
    let first = chat.ask("one").await.unwrap().conversation_id;
    chat.clock.advance(SignedDuration::from_mins(30));
    let second = chat.ask("two").await.unwrap().conversation_id;
    assert_eq!(first, second);
    chat.clock.advance(SignedDuration::from_mins(30) + SignedDuration::from_secs(1));
    let third = chat.ask("three").await.unwrap().conversation_id;
    assert_ne!(first, third);
    assert_eq!(chat.requests()[2].contents("user"), ["three"]);

    // By its id the old one goes on, however old.
    chat.clock.advance(SignedDuration::from_hours(24 * 365));
    let back = ChatRequest { conversation_id: Some(first), ..request("four") };
    assert_eq!(chat.request(back).await.unwrap().conversation_id, first);
    assert_eq!(chat.requests()[3].contents("user"), ["one", "two", "four"]);
    // Its id carries the time by the clock.
    let (seconds, _) = first.get_timestamp().unwrap().to_unix();
    assert_eq!(seconds, 1_794_819_600);
}

#[tokio::test]
async fn a_new_conversation_can_be_asked_for() {
    let chat = Chat::new([says("Hi")]).await;
    let first = chat.ask("one").await.unwrap().conversation_id;
    let new = ChatRequest { new_conversation: true, ..request("two") };
    assert_ne!(chat.request(new.clone()).await.unwrap().conversation_id, first);
    let both = ChatRequest { conversation_id: Some(first), ..new };
    assert_eq!(chat.request(both).await.unwrap_err().kind(), ErrorKind::InvalidArgument);
}

#[tokio::test]
async fn conversation_of_another_user_is_not_found() {
    let chat = Chat::new([says("Hi")]).await;
    let anns = chat.ask("one").await.unwrap().conversation_id;
    let bob = UserId::new("bob").unwrap();
    for id in [anns, Uuid::nil()] {
        let asked = ChatRequest { conversation_id: Some(id), ..request("two") };
        let error = chat.agent.begin(asked, &bob, |_| Ok(())).await.err().unwrap();
        assert_eq!((error.kind(), error.message()), (ErrorKind::NotFound, "Unknown conversation"));
    }
    // Without an id, he begins one of his own.
    let Ok(Accepted::Turn(turn)) = chat.agent.begin(request("hello"), &bob, |_| Ok(())).await else {
        panic!("a turn");
    };
    assert_ne!(turn.conversation_id(), anns);
}

#[tokio::test]
async fn a_message_has_1_to_4000_characters() {
    let chat = Chat::new([says("Hi")]).await;
    for wrong in [String::new(), "  ".into(), "é".repeat(4001)] {
        assert_eq!(chat.fails(&wrong).await.kind(), ErrorKind::InvalidArgument);
    }
    chat.ask(&"é".repeat(4000)).await.unwrap();
    assert_eq!(chat.requests().len(), 1);
}

#[tokio::test]
async fn a_request_sent_twice_is_answered_once() {
    let chat = Chat::new([calls(&[("list_tasks", "{}")]), says("Two tasks."), says("Another answer.")]).await;
    let named = ChatRequest { request_id: Some(Uuid::from_u128(7)), ..request("how many?") };
    let first = chat.request(named.clone()).await.unwrap();
    let second = chat.request(named.clone()).await.unwrap();
    assert_eq!((&first.message, first.conversation_id), (&second.message, second.conversation_id));
    assert_eq!((chat.requests().len(), chat.store.exchanges().len()), (2, 1));
    assert_eq!(chat.tasks.runs.load(Ordering::SeqCst), 1);
    // Another user's request of the same name is another request.
    let bob = UserId::new("bob").unwrap();
    assert!(matches!(chat.agent.begin(named, &bob, |_| Ok(())).await, Ok(Accepted::Turn(_))));
}

#[tokio::test]
async fn concurrent_duplicate_request_must_wait() {
    let chat = Chat::new([says("Hi")]).await;
    let named = ChatRequest { request_id: Some(Uuid::from_u128(7)), ..request("hello") };
    let Ok(Accepted::Turn(first)) = chat.agent.begin(named.clone(), &user(), |_| Ok(())).await else {
        panic!("a turn");
    };
    let error = chat.agent.begin(named.clone(), &user(), |_| Ok(())).await.err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.message().contains("is already in progress; try again in a moment"));
    chat.run(first).await.unwrap();
    assert!(matches!(chat.agent.begin(named, &user(), |_| Ok(())).await, Ok(Accepted::Answered(_))));
}

#[tokio::test]
async fn a_request_that_failed_can_be_sent_again() {
    let chat = Chat::new([Answer::Silence]).await;
    let named = ChatRequest { request_id: Some(Uuid::from_u128(7)), ..request("hello") };
    let Ok(Accepted::Turn(turn)) = chat.agent.begin(named.clone(), &user(), |_| Ok(())).await else {
        panic!("a turn");
    };
    // The caller gives up: the model never answers.
    assert!(tokio::time::timeout(Duration::from_millis(50), chat.run(turn)).await.is_err());
    assert!(matches!(chat.agent.begin(named, &user(), |_| Ok(())).await, Ok(Accepted::Turn(_))));
    assert_eq!(chat.store.exchanges(), []);
}

/// Passes events to somebody who may have gone.
struct Sender(tokio::sync::mpsc::Sender<Event>);

impl Events for Sender {
    fn emit(&self, event: Event) {
        let _ = self.0.try_send(event);
    }
}

#[tokio::test]
async fn a_turn_goes_on_when_nobody_listens() {
    let chat = Chat::new([calls(&[("list_tasks", "{}")]), says("Two tasks.")]).await;
    let Ok(Accepted::Turn(turn)) = chat.agent.begin(request("how many?"), &user(), |_| Ok(())).await else {
        panic!("a turn");
    };
    let (sender, receiver) = tokio::sync::mpsc::channel(1);
    drop(receiver);
    let toolbox = chat.tasks.clone();
    let events = Arc::new(Sender(sender));
    let task = tokio::spawn(async move { turn.run(toolbox, context(), &*events).await });
    assert_eq!(task.await.unwrap().unwrap().message, "Two tasks.");
    assert_eq!(chat.store.exchanges().len(), 1);
}

#[tokio::test]
async fn unstored_answer_is_an_error() {
    let chat = Chat::new([says("Hi")]).await;
    chat.store.broken.store(true, Ordering::SeqCst);
    let error = chat.fails("hello").await;
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.message().contains("could not be stored"));
    assert_eq!(chat.store.exchanges(), []);
}
