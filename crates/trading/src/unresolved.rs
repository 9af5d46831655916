//! Orders whose outcome is unknown: sent without an answer, in this run or an earlier one.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use serde::Serialize;

use super::entry::{Action, Entry, Event};
use super::order::OrderName;

/// The exchange accepts an order until its `recvWindow` ends, with a margin for clocks and its own work. Only after that
/// is a missing order known never to have arrived.
const MAY_ARRIVE_FOR: Duration = Duration::from_secs(10);
/// How many are remembered; the oldest are dropped.
const MAX_OPEN: usize = 50;

/// An order whose outcome is unknown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct UnresolvedOrder {
    pub(super) action: Action,
    pub(super) symbol: String,
    #[serde(flatten)]
    pub(super) order: OrderName,
    /// When it was sent, by the wall clock, which may be corrected at any time.
    pub(super) time: Timestamp,
    /// When we stopped waiting for the answer, by the monotonic clock; `None` while we wait.
    #[serde(skip)]
    pub(super) given_up: Option<Instant>,
}

impl UnresolvedOrder {
    fn is_of(&self, symbol: &str, order: &OrderName) -> bool {
        self.symbol == symbol && self.order == *order
    }

    fn is_same(&self, other: &Self) -> bool {
        self.is_of(&other.symbol, &other.order) && self.action == other.action
    }

    /// How long it may still arrive. The request was signed before we stopped waiting for its answer.
    pub(super) fn may_arrive_for(&self, now: Instant) -> Option<Duration> {
        let passed = self.given_up.map_or(Duration::ZERO, |since| now.saturating_duration_since(since));
        MAY_ARRIVE_FOR.checked_sub(passed).filter(|left| !left.is_zero())
    }
}

/// Oldest first.
#[derive(Default)]
pub(super) struct UnresolvedOrders(Mutex<Vec<UnresolvedOrder>>);

impl UnresolvedOrders {
    fn open(&self) -> MutexGuard<'_, Vec<UnresolvedOrder>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a line of the journal. An earlier run awaits no answers any more; the journal's wall clock may have been
    /// corrected since, but what it says was certainly sent before `now`.
    pub(super) fn note(&self, line: &Entry, now: Instant, is_earlier_run: bool) {
        let is_awaited = line.event == Event::Intent && !is_earlier_run;
        let mut pending = UnresolvedOrder {
            action: line.action,
            symbol: line.symbol().to_owned(),
            order: line.order.clone(),
            time: line.time,
            given_up: (!is_awaited).then_some(now),
        };
        let mut open = self.open();
        let last = open.iter().rposition(|open| open.is_same(&pending));
        match (line.event, last) {
            (Event::Intent, _) => add(&mut open, pending),
            // A refused cancellation says nothing about the order itself.
            (Event::Refused, Some(last)) => drop(open.remove(last)),
            // A lookup has found it while its answer was awaited.
            (Event::Unknown, None) if line.action == Action::Place => {}
            (Event::Unknown, last) => {
                pending.time = last.map_or(line.time, |last| open[last].time);
                open.retain(|before| !before.is_same(&pending));
                add(&mut open, pending);
            }
            (Event::Done | Event::Found | Event::Absent, _) => {
                drop(open);
                self.close(line.symbol(), &line.names());
            }
            (Event::Refused, None) => {}
        }
    }

    /// The order's outcome is known, under all of these names; returns its first entry.
    pub(super) fn close(&self, symbol: &str, names: &[OrderName]) -> Option<UnresolvedOrder> {
        let is_closed = |pending: &mut UnresolvedOrder| names.iter().any(|name| pending.is_of(symbol, name));
        let closed: Vec<UnresolvedOrder> = self.open().extract_if(.., is_closed).collect();
        closed.into_iter().next()
    }

    /// The last entry for an order.
    pub(super) fn lookup(&self, symbol: &str, order: &OrderName) -> Option<UnresolvedOrder> {
        let open = self.open();
        open.iter().rfind(|pending| pending.is_of(symbol, order)).cloned()
    }

    /// Those whose answer is no longer awaited.
    pub(super) fn list(&self) -> Vec<UnresolvedOrder> {
        let is_given_up = |pending: &&UnresolvedOrder| pending.given_up.is_some();
        self.open().iter().filter(is_given_up).cloned().collect()
    }
}

fn add(open: &mut Vec<UnresolvedOrder>, pending: UnresolvedOrder) {
    if open.len() >= MAX_OPEN {
        open.remove(0);
    }
    open.push(pending);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::Journal;

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
    fn journal_leaves_unanswered_orders_open() {
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
        let journal = Journal::open(&path, Instant::now()).expect("journal");
        let open: Vec<String> = journal.unresolved.list().iter().map(|pending| pending.order.to_string()).collect();
        assert_eq!(open, ["client_order_id killed", "client_order_id unknown", "order_id 28", "order_id 31"]);
    }

    #[test]
    fn order_may_arrive_for_ten_seconds() {
        let given_up = Instant::now();
        let mut pending = UnresolvedOrder {
            action: Action::Place,
            symbol: "S".to_owned(),
            order: OrderName::Number(1),
            time: Timestamp::UNIX_EPOCH,
            given_up: Some(given_up),
        };
        let after =
            |pending: &UnresolvedOrder, millis| pending.may_arrive_for(given_up + Duration::from_millis(millis));
        assert_eq!(after(&pending, 3_000), Some(Duration::from_secs(7)));
        assert_eq!((after(&pending, 10_000), after(&pending, 99_000)), (None, None));
        pending.given_up = None;
        assert_eq!(after(&pending, 99_000), Some(MAY_ARRIVE_FOR), "its answer may come");
    }

    #[test]
    fn unresolved_orders_are_bounded() {
        let unresolved = UnresolvedOrders::default();
        for number in 0..=MAX_OPEN as u64 {
            let line = line("intent", &format!("\"order_id\":{number}"));
            let line = serde_json::from_str(&line).expect("a line");
            unresolved.note(&line, Instant::now(), true);
        }
        let open = unresolved.list();
        assert_eq!((open.len(), &open[0].order), (MAX_OPEN, &OrderName::Number(1)));
    }
}
