//! The outcome of each order in the journal, in this run and earlier ones.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use indexmap::IndexMap;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::answers::OrderState;
use super::entry::{Action, Entry, Event};
use super::order::OrderName;

/// How many orders are remembered; the oldest are dropped.
const MAX_REMEMBERED: usize = 1_000;
const RECENT: Duration = Duration::from_secs(60);
/// How many orders a preview lists.
const MAX_RECENT: usize = 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Outcome {
    /// Sent, or about to be.
    InFlight,
    Placed,
    /// By the exchange, or never sent.
    Refused,
    Unknown,
    /// The exchange has no such order.
    Absent,
}

/// An order that was to be placed.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Placement {
    pub(super) client_order_id: String,
    pub(super) outcome: Outcome,
    /// What was asked for.
    requested: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    order: Option<OrderSummary>,
    time: Timestamp,
    #[serde(skip)]
    pub(super) caller: String,
}

/// An order as the exchange had it when it was last asked.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct OrderSummary {
    client_order_id: String,
    order_id: u64,
    status: String,
    quantity: String,
    executed_quantity: String,
}

/// Orders by client order id, oldest first.
#[derive(Default)]
pub(super) struct OrderHistory {
    placements: Mutex<IndexMap<String, Placement>>,
    /// A message about lines that could not be read.
    gap: Option<String>,
}

impl OrderHistory {
    /// Orders in flight when an earlier run ended have an unknown outcome.
    pub(super) fn of_earlier_runs(self, gap: Option<String>) -> Self {
        for placement in self.placements().values_mut() {
            if placement.outcome == Outcome::InFlight {
                placement.outcome = Outcome::Unknown;
            }
        }
        Self { gap, ..self }
    }

    fn placements(&self) -> MutexGuard<'_, IndexMap<String, Placement>> {
        self.placements.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a line of the journal.
    pub(super) fn note(&self, line: &Entry) {
        // A cancellation says nothing about how the order was placed.
        if line.action == Action::Cancel {
            return;
        }
        let order = OrderSummary::deserialize(&line.result).ok();
        let name = match (&line.order, &order) {
            (OrderName::Client(name), _) => name.clone(),
            (OrderName::Number(_), Some(order)) => order.client_order_id.clone(),
            (OrderName::Number(_), None) => return,
        };
        let mut placements = self.placements();
        if line.event == Event::Intent {
            placements.shift_remove(&name);
            if placements.len() >= MAX_REMEMBERED {
                placements.shift_remove_index(0);
            }
            let placement = Placement {
                client_order_id: name.clone(),
                outcome: Outcome::InFlight,
                requested: line.request.clone(),
                order: None,
                time: line.time,
                caller: line.caller.clone(),
            };
            placements.insert(name, placement);
        } else if let Some(placement) = placements.get_mut(&name) {
            placement.outcome = match line.event {
                Event::Done | Event::Found => Outcome::Placed,
                Event::Refused => Outcome::Refused,
                // A lookup has found it meanwhile.
                Event::Absent | Event::Unknown if placement.outcome == Outcome::Placed => Outcome::Placed,
                Event::Absent => Outcome::Absent,
                Event::Unknown | Event::Intent => Outcome::Unknown,
            };
            placement.order = order.or(placement.order.take());
        }
    }

    pub(super) fn lookup(&self, client_order_id: &str) -> Option<Placement> {
        self.placements().get(client_order_id).cloned()
    }

    /// Whether the exchange has an order that the journal does not have as placed.
    pub(super) fn lacks(&self, found: &OrderState) -> bool {
        let known = self.lookup(&found.client_order_id);
        known.is_some_and(|placement| {
            let is_missing = matches!(placement.outcome, Outcome::Refused | Outcome::Unknown | Outcome::Absent);
            is_missing && placement.symbol() == found.symbol
        })
    }

    /// Orders in flight, and those placed in the last minute, latest first. Unresolved orders are listed elsewhere.
    pub(super) fn recent(&self, now: Timestamp) -> Vec<Placement> {
        let is_recent = |placement: &&Placement| match placement.outcome {
            Outcome::InFlight => true,
            Outcome::Placed => now.duration_since(placement.time).unsigned_abs() <= RECENT,
            _ => false,
        };
        let placements = self.placements();
        let recent = placements.values().rev().filter(is_recent);
        recent.take(MAX_RECENT).cloned().collect()
    }

    pub(super) fn gap(&self) -> Option<&str> {
        self.gap.as_deref()
    }
}

impl Placement {
    fn symbol(&self) -> &str {
        self.requested["symbol"].as_str().unwrap_or_default()
    }

    /// The message for a caller who uses its preview token again.
    pub(super) fn explain(&self) -> String {
        let became = match (self.outcome, &self.order) {
            (Outcome::InFlight, _) => "is on its way to the exchange".to_owned(),
            (Outcome::Placed, Some(order)) => format!(
                "was placed (order_id {}, {}, {} of {} filled when last asked)",
                order.order_id, order.status, order.executed_quantity, order.quantity
            ),
            (Outcome::Placed, None) => "was placed".to_owned(),
            (Outcome::Refused, _) => "was refused, or never sent".to_owned(),
            (Outcome::Unknown, _) => "was sent, and what became of it is not known".to_owned(),
            (Outcome::Absent, _) => "never arrived at the exchange".to_owned(),
        };
        let next = match self.outcome {
            Outcome::Refused | Outcome::Absent => {
                "look with binance_get_order, and only then call again without preview_token for a new preview"
            }
            _ => "do not order again: look with binance_get_order",
        };
        format!(
            "the preview_token has been used, and nothing was sent now: its order (symbol {}, client_order_id {}) {became}; {next}",
            self.symbol(),
            self.client_order_id
        )
    }
}

#[cfg(test)]
mod tests;
