//! Orders of which nobody knows what became of them: sent, but without an answer, in this run or an earlier one.

use std::fmt;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::answers::OrderState;
use super::journal::Event;
use super::past::last_lines;

/// The exchange takes an order until its `recvWindow` is over. Only after that is one that is not there known
/// never to have arrived; clocks and its own work have the rest.
const MAY_ARRIVE_FOR: Duration = Duration::from_secs(10);
/// Most questions that are remembered; the oldest make room.
const MAX_OPEN: usize = 50;

/// How an order is called: by who placed it, or by the exchange.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(super) enum OrderName {
    #[serde(rename = "client_order_id")]
    Client(String),
    #[serde(rename = "order_id")]
    Number(u64),
}

impl OrderName {
    /// The exchange's own parameter, and its value.
    pub(super) fn parameter(&self) -> (&'static str, String) {
        match self {
            Self::Client(name) => ("origClientOrderId", name.clone()),
            Self::Number(number) => ("orderId", number.to_string()),
        }
    }
}

impl fmt::Display for OrderName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Client(name) => write!(f, "client_order_id {name}"),
            Self::Number(number) => write!(f, "order_id {number}"),
        }
    }
}

/// One order in question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Question {
    pub(super) action: String,
    pub(super) symbol: String,
    #[serde(flatten)]
    pub(super) order: OrderName,
    /// When it was sent.
    pub(super) time: Timestamp,
}

impl Question {
    fn is_of(&self, symbol: &str, order: &OrderName) -> bool {
        self.symbol == symbol && self.order == *order
    }

    fn is_same(&self, other: &Self) -> bool {
        self.is_of(&other.symbol, &other.order) && self.action == other.action
    }

    /// How long it may yet arrive.
    pub(super) fn may_arrive_for(&self, now: Timestamp) -> Option<Duration> {
        let passed = Duration::try_from(now.duration_since(self.time)).unwrap_or_default();
        MAY_ARRIVE_FOR.checked_sub(passed).filter(|left| !left.is_zero())
    }
}

/// As much of a line of the journal as matters here.
#[derive(Deserialize)]
struct Line {
    time: Timestamp,
    event: Event,
    action: String,
    #[serde(flatten)]
    order: OrderName,
    request: Request,
}

#[derive(Deserialize)]
struct Request {
    symbol: String,
}

/// Oldest first.
#[derive(Default)]
pub(super) struct Questions(Mutex<Vec<Question>>);

impl Questions {
    /// Those that a journal leaves open. One that cannot be read leaves none: what cannot be written is refused
    /// elsewhere.
    pub(super) fn of(journal: &Path) -> Self {
        let questions = Self::default();
        for line in last_lines(journal) {
            let Ok(line) = serde_json::from_str::<Line>(&line) else {
                continue;
            };
            let question = Question {
                action: line.action,
                symbol: line.request.symbol,
                order: line.order,
                time: line.time,
            };
            match line.event {
                Event::Intent => questions.ask(question),
                Event::Unknown => (),
                // A cancellation that was refused says nothing of the order.
                Event::Refused => questions.open().retain(|open| !open.is_same(&question)),
                Event::Done | Event::Found | Event::Absent => {
                    questions.close(&question.symbol, &question.order);
                }
            }
        }
        questions
    }

    fn open(&self) -> MutexGuard<'_, Vec<Question>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn ask(&self, question: Question) {
        let mut open = self.open();
        open.retain(|before| !before.is_same(&question));
        if open.len() >= MAX_OPEN {
            open.remove(0);
        }
        open.push(question);
    }

    /// The order is known now; returns what was asked about it.
    pub(super) fn close(&self, symbol: &str, order: &OrderName) -> Option<Question> {
        let mut open = self.open();
        let (closed, left) = open.drain(..).partition(|question| question.is_of(symbol, order));
        *open = left;
        let closed: Vec<Question> = closed;
        closed.into_iter().next()
    }

    /// By either name of an order that was found.
    pub(super) fn close_found(&self, order: &OrderState) -> Option<Question> {
        let [client, number] = order.names();
        let (one, other) = (self.close(order.symbol(), &client), self.close(order.symbol(), &number));
        one.or(other)
    }

    pub(super) fn lookup(&self, symbol: &str, order: &OrderName) -> Option<Question> {
        self.open()
            .iter()
            .find(|question| question.is_of(symbol, order))
            .cloned()
    }

    pub(super) fn list(&self) -> Vec<Question> {
        self.open().clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(event: &str, order: &str) -> String {
        line_of("place_order", event, order)
    }

    fn line_of(action: &str, event: &str, order: &str) -> String {
        format!(
            "{{\"time\":\"2026-01-02T03:04:05Z\",\"event\":\"{event}\",\"action\":\"{action}\",\"caller\":\"local\",{order},\
             \"request\":{{\"symbol\":\"SOLUSDT\",\"price\":\"1\"}},\"simulated\":null}}\n"
        )
    }

    #[test]
    fn a_journal_leaves_open_what_it_does_not_end() {
        let folder = tempfile::tempdir().expect("folder");
        let path = folder.path().join("journal.jsonl");
        let named = |name: &str| format!("\"client_order_id\":\"{name}\"");
        let text = [
            line("intent", &named("done")),
            line("done", &named("done")),
            line("intent", &named("killed")),
            "{\"time\":\n".to_owned(),
            line("intent", &named("unknown")),
            line("unknown", &named("unknown")),
            line_of("cancel_order", "intent", &named("unknown")),
            line_of("cancel_order", "refused", &named("unknown")),
            line("intent", &named("found")),
            line("unknown", &named("found")),
            line("found", &named("found")),
            line("intent", "\"order_id\":28"),
        ];
        std::fs::write(&path, text.concat()).expect("journal");
        let open: Vec<String> = Questions::of(&path)
            .list()
            .iter()
            .map(|question| question.order.to_string())
            .collect();
        assert_eq!(
            open,
            ["client_order_id killed", "client_order_id unknown", "order_id 28"]
        );
        assert!(Questions::of(&folder.path().join("none")).list().is_empty());
    }

    #[test]
    fn what_may_still_arrive_is_not_given_up() {
        let sent = Timestamp::from_millisecond(1_000_000).expect("time");
        let question = Question {
            action: "place_order".to_owned(),
            symbol: "S".to_owned(),
            order: OrderName::Number(1),
            time: sent,
        };
        let after = |millis| question.may_arrive_for(sent + Duration::from_millis(millis));
        assert_eq!(after(3_000), Some(Duration::from_secs(7)));
        assert_eq!((after(10_000), after(99_000)), (None, None));
    }

    #[test]
    fn questions_are_bounded() {
        let questions = Questions::default();
        for number in 0..=MAX_OPEN as u64 {
            questions.ask(Question {
                action: "place_order".to_owned(),
                symbol: "S".to_owned(),
                order: OrderName::Number(number),
                time: Timestamp::UNIX_EPOCH,
            });
        }
        let open = questions.list();
        assert_eq!((open.len(), &open[0].order), (MAX_OPEN, &OrderName::Number(1)));
    }
}
