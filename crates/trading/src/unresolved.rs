//! Orders whose outcome is unknown: sent without an answer, in this run or an earlier one.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use serde::Serialize;

use super::answers::OrderState;
use super::entry::{Event, Line, OrderName};

/// The exchange accepts an order until its `recvWindow` ends, with a margin for clocks and its own work. Only after that
/// is a missing order known never to have arrived.
const MAY_ARRIVE_FOR: Duration = Duration::from_secs(10);
/// How many are remembered; the oldest are dropped.
const MAX_OPEN: usize = 50;

/// An order whose outcome is unknown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct UnresolvedOrder {
    pub(super) action: String,
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
        let passed = self
            .given_up
            .map_or(Duration::ZERO, |since| now.saturating_duration_since(since));
        MAY_ARRIVE_FOR.checked_sub(passed).filter(|left| !left.is_zero())
    }
}

/// Oldest first.
#[derive(Default)]
pub(super) struct UnresolvedOrders(Mutex<Vec<UnresolvedOrder>>);

impl UnresolvedOrders {
    /// Those without an outcome in the journal. Its wall clock may have been corrected since; they were certainly sent
    /// before `now`.
    pub(super) fn left_open(lines: &[Line], now: Instant) -> Self {
        let unresolved = Self::default();
        for line in lines {
            let pending = UnresolvedOrder {
                action: line.action.clone(),
                symbol: line.symbol().to_owned(),
                order: line.order.clone(),
                time: line.time,
                given_up: Some(now),
            };
            match line.event {
                Event::Intent => unresolved.add(pending),
                Event::Unknown => (),
                Event::Refused => unresolved.remove(&pending),
                Event::Done | Event::Found | Event::Absent => drop(unresolved.close(&pending.symbol, &line.names())),
            }
        }
        unresolved
    }

    fn open(&self) -> MutexGuard<'_, Vec<UnresolvedOrder>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An order is being sent, and its answer awaited.
    pub(super) fn add(&self, pending: UnresolvedOrder) {
        let mut open = self.open();
        if open.len() >= MAX_OPEN {
            open.remove(0);
        }
        open.push(pending);
    }

    /// No answer came; earlier entries for the same order are replaced.
    pub(super) fn give_up(&self, pending: UnresolvedOrder) {
        self.open().retain(|before| !before.is_same(&pending));
        self.add(pending);
    }

    /// It was refused. A refused cancellation says nothing about the order itself.
    pub(super) fn remove(&self, pending: &UnresolvedOrder) {
        let mut open = self.open();
        if let Some(last) = open.iter().rposition(|open| open.is_same(pending)) {
            open.remove(last);
        }
    }

    /// The order's outcome is known, under all of these names; returns its first entry.
    pub(super) fn close(&self, symbol: &str, names: &[OrderName]) -> Option<UnresolvedOrder> {
        let mut open = self.open();
        let is_closed = |pending: &UnresolvedOrder| names.iter().any(|name| pending.is_of(symbol, name));
        let (closed, left): (Vec<UnresolvedOrder>, _) = open.drain(..).partition(is_closed);
        *open = left;
        closed.into_iter().next()
    }

    /// The same for an order that was found, under both of its names.
    pub(super) fn close_found(&self, order: &OrderState) -> Option<UnresolvedOrder> {
        self.close(order.symbol(), &order.names())
    }

    /// The last entry for an order.
    pub(super) fn lookup(&self, symbol: &str, order: &OrderName) -> Option<UnresolvedOrder> {
        let open = self.open();
        open.iter().rfind(|pending| pending.is_of(symbol, order)).cloned()
    }

    /// Those whose answer is no longer awaited.
    pub(super) fn list(&self) -> Vec<UnresolvedOrder> {
        let open = self.open();
        open.iter()
            .filter(|pending| pending.given_up.is_some())
            .cloned()
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry::Lines;

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
        let lines = Lines::read(&path).expect("journal").readable;
        let open: Vec<String> = UnresolvedOrders::left_open(&lines, Instant::now())
            .list()
            .iter()
            .map(|pending| pending.order.to_string())
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
    }

    #[test]
    fn what_may_still_arrive_is_not_given_up() {
        let given_up = Instant::now();
        let mut pending = UnresolvedOrder {
            action: "place_order".to_owned(),
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
    fn questions_are_bounded() {
        let unresolved = UnresolvedOrders::default();
        for number in 0..=MAX_OPEN as u64 {
            unresolved.add(UnresolvedOrder {
                action: "place_order".to_owned(),
                symbol: "S".to_owned(),
                order: OrderName::Number(number),
                time: Timestamp::UNIX_EPOCH,
                given_up: Some(Instant::now()),
            });
        }
        let open = unresolved.list();
        assert_eq!((open.len(), &open[0].order), (MAX_OPEN, &OrderName::Number(1)));
    }
}
