//! Tasks, messages and exchanges for tests.

use jiff::Timestamp;
use tribune_core::{UserId, id_of_time};
use tribune_storage::{Exchange, Message, PendingCall, Priority, Role, Task};
use uuid::Uuid;

pub fn user(name: &str) -> UserId {
    UserId::new(name).expect("a name")
}

/// A whole number of microseconds, so that storing does not change it.
pub fn time(second: i64) -> Timestamp {
    Timestamp::from_microsecond(1_790_000_000_000_000 + second * 1_000_000 + 123_456).expect("a time")
}

pub fn task(title: &str) -> Task {
    Task {
        id: Uuid::now_v7(),
        title: title.to_owned(),
        description: None,
        priority: Priority::Medium,
        category: None,
        tags: Vec::new(),
        due_date: None,
        created_at: time(0),
        updated_at: time(0),
        completed_at: None,
    }
}

pub fn texts(texts: &[&str]) -> Vec<String> {
    texts.iter().map(ToString::to_string).collect()
}

pub fn message(role: Role, content: &str, second: i64) -> Message {
    let (content, created_at) = (content.to_owned(), time(second));
    let trace = (role == Role::Assistant).then(|| format!("trace of {content}"));
    let looked_up = (role == Role::Assistant).then_some(second % 2 == 0);
    Message { id: Uuid::now_v7(), role, content, created_at, trace, looked_up }
}

/// Asked at `second`, decided within a minute.
pub fn pending(call: &str, second: i64) -> PendingCall {
    PendingCall { id: id_of_time(time(second)), call: call.to_owned(), expires_at: time(second + 60) }
}

/// Asked at `second`, answered a second later.
pub fn exchange(conversation: Uuid, question: &str, second: i64) -> Exchange {
    Exchange {
        conversation,
        question: message(Role::User, question, second),
        answer: message(Role::Assistant, &format!("answer to {question}"), second + 1),
        pending: Vec::new(),
        request_key: None,
    }
}

/// An error's message with all its causes.
pub fn chain(error: &tribune_core::Error) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(inner) = cause {
        text = format!("{text}: {inner}");
        cause = inner.source();
    }
    format!("{text} {error:?}")
}
