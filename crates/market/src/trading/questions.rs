//! Orders of which nobody knows what became of them: sent, but without an answer, in this run or an earlier one.

use std::fmt;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

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
    /// When it was to be sent, for people: that clock may be put right at any time.
    pub(super) time: Timestamp,
    /// Since when no answer is waited for any more, by a clock that does not jump; `None` while one is.
    #[serde(skip)]
    pub(super) given_up: Option<Instant>,
}

impl Question {
    fn is_of(&self, symbol: &str, order: &OrderName) -> bool {
        self.symbol == symbol && self.order == *order
    }

    fn is_same(&self, other: &Self) -> bool {
        self.is_of(&other.symbol, &other.order) && self.action == other.action
    }

    /// How long it may yet arrive. What was signed was signed before its answer was given up, however long it had
    /// waited for the journal, its turn or the exchange's time until then.
    pub(super) fn may_arrive_for(&self, now: Instant) -> Option<Duration> {
        let passed = self
            .given_up
            .map_or(Duration::ZERO, |since| now.saturating_duration_since(since));
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
    /// The order as the exchange had it, where it answered.
    #[serde(default)]
    result: Value,
}

impl Line {
    /// Every name that the order is known by.
    fn names(&self) -> Vec<OrderName> {
        let client = self.result["client_order_id"].as_str();
        let number = self.result["order_id"].as_u64();
        let told = client.map(|name| OrderName::Client(name.to_owned())).into_iter();
        told.chain(number.map(OrderName::Number))
            .chain([self.order.clone()])
            .collect()
    }
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
    /// elsewhere. Its times are of a clock that may have been put right since: all that is certain is that it was
    /// sent before `now`.
    pub(super) fn of(journal: &Path, now: Instant) -> Self {
        let questions = Self::default();
        for line in last_lines(journal) {
            let Ok(line) = serde_json::from_str::<Line>(&line) else {
                continue;
            };
            let names = line.names();
            let question = Question {
                action: line.action,
                symbol: line.request.symbol,
                order: line.order,
                time: line.time,
                given_up: Some(now),
            };
            match line.event {
                Event::Intent => questions.ask(question),
                Event::Unknown => (),
                Event::Refused => questions.withdraw(&question),
                Event::Done | Event::Found | Event::Absent => drop(questions.close(&question.symbol, &names)),
            }
        }
        questions
    }

    fn open(&self) -> MutexGuard<'_, Vec<Question>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Something is sent, and its answer waited for.
    pub(super) fn ask(&self, question: Question) {
        let mut open = self.open();
        if open.len() >= MAX_OPEN {
            open.remove(0);
        }
        open.push(question);
    }

    /// No answer came: that, and what was asked before of the same, is one question.
    pub(super) fn give_up(&self, question: Question) {
        self.open().retain(|before| !before.is_same(&question));
        self.ask(question);
    }

    /// It was not done. A cancellation that was refused says nothing of the order, nor of one sent before it.
    pub(super) fn withdraw(&self, question: &Question) {
        let mut open = self.open();
        if let Some(last) = open.iter().rposition(|open| open.is_same(question)) {
            open.remove(last);
        }
    }

    /// The order is known now, by all of these names; returns what was asked first about it.
    pub(super) fn close(&self, symbol: &str, names: &[OrderName]) -> Option<Question> {
        let mut open = self.open();
        let is_closed = |question: &Question| names.iter().any(|name| question.is_of(symbol, name));
        let (closed, left): (Vec<Question>, _) = open.drain(..).partition(is_closed);
        *open = left;
        closed.into_iter().next()
    }

    /// By either name of an order that was found.
    pub(super) fn close_found(&self, order: &OrderState) -> Option<Question> {
        self.close(order.symbol(), &order.names())
    }

    /// What was asked last about an order.
    pub(super) fn lookup(&self, symbol: &str, order: &OrderName) -> Option<Question> {
        let open = self.open();
        open.iter().rfind(|question| question.is_of(symbol, order)).cloned()
    }

    /// Those to which no answer is waited for.
    pub(super) fn list(&self) -> Vec<Question> {
        let open = self.open();
        open.iter()
            .filter(|question| question.given_up.is_some())
            .cloned()
            .collect()
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
            line("intent", &named("cancelled")),
            line_of("cancel_order", "intent", "\"order_id\":30"),
            line_of(
                "cancel_order",
                "done",
                "\"order_id\":30,\"result\":{\"order_id\":30,\"client_order_id\":\"cancelled\"}",
            ),
            line_of("cancel_order", "intent", "\"order_id\":31"),
            line_of("cancel_order", "unknown", "\"order_id\":31"),
            line_of("cancel_order", "intent", "\"order_id\":31"),
            line_of("cancel_order", "refused", "\"order_id\":31"),
        ];
        std::fs::write(&path, text.concat()).expect("journal");
        let open: Vec<String> = Questions::of(&path, Instant::now())
            .list()
            .iter()
            .map(|question| question.order.to_string())
            .collect();
        assert_eq!(
            open,
            [
                "client_order_id killed",
                "client_order_id unknown",
                "order_id 28",
                "order_id 31"
            ]
        );
        let none = Questions::of(&folder.path().join("none"), Instant::now());
        assert!(none.list().is_empty());
    }

    #[test]
    fn what_may_still_arrive_is_not_given_up() {
        let given_up = Instant::now();
        let mut question = Question {
            action: "place_order".to_owned(),
            symbol: "S".to_owned(),
            order: OrderName::Number(1),
            time: Timestamp::UNIX_EPOCH,
            given_up: Some(given_up),
        };
        let after = |question: &Question, millis| question.may_arrive_for(given_up + Duration::from_millis(millis));
        assert_eq!(after(&question, 3_000), Some(Duration::from_secs(7)));
        assert_eq!((after(&question, 10_000), after(&question, 99_000)), (None, None));
        question.given_up = None;
        assert_eq!(after(&question, 99_000), Some(MAY_ARRIVE_FOR), "its answer may come");
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
                given_up: Some(Instant::now()),
            });
        }
        let open = questions.list();
        assert_eq!((open.len(), &open[0].order), (MAX_OPEN, &OrderName::Number(1)));
    }
}
