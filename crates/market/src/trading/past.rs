//! The journal read back: what became of the orders that were placed, in this run and in earlier ones.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use indexmap::IndexMap;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::answers::OrderState;
use super::journal::{Entry, Event};
use super::questions::OrderName;

/// Of a journal, which only grows, no more than its end is read.
const MAX_READ_BYTES: u64 = 4 << 20;
/// Most orders that are remembered; the oldest make room.
const MAX_REMEMBERED: usize = 1_000;
/// How many lines that cannot be read are named.
const MAX_NAMED: usize = 5;
const RECENT: Duration = Duration::from_secs(60);
/// Most orders that one preview names.
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
    order: Option<Essentials>,
    time: Timestamp,
    #[serde(skip)]
    pub(super) caller: String,
}

/// An order as the exchange had it when it was last asked.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Essentials {
    client_order_id: String,
    order_id: u64,
    status: String,
    quantity: String,
    executed_quantity: String,
}

/// As much of a line as matters here.
#[derive(Deserialize)]
struct Line {
    time: Timestamp,
    event: Event,
    action: String,
    caller: String,
    #[serde(flatten)]
    order: OrderName,
    request: Value,
    #[serde(default)]
    result: Value,
}

/// By the names that the orders were given, oldest first.
#[derive(Default)]
pub(super) struct Past {
    placements: Mutex<IndexMap<String, Placement>>,
    /// What is missing of it; for people.
    gap: Option<String>,
}

impl Past {
    pub(super) fn of(journal: &Path) -> Self {
        let past = Self::default();
        let mut unreadable = Vec::new();
        let lines = match numbered_lines(journal) {
            Ok(lines) => lines,
            Err(error) => {
                tracing::warn!(%error, "the journal of orders cannot be read back: what an earlier run left open is not known");
                return Self {
                    gap: Some("the journal of orders could not be read back".to_owned()),
                    ..past
                };
            }
        };
        for (number, text) in lines {
            match serde_json::from_str::<Line>(&text) {
                Ok(line) => past.note(line),
                Err(_) => unreadable.push(number),
            }
        }
        past.end_run();
        let gap = gap(&unreadable);
        if let Some(gap) = &gap {
            tracing::warn!(
                lines = unreadable.len(),
                "{gap}; orders of before may be missing in previews"
            );
        }
        Self { gap, ..past }
    }

    fn placements(&self) -> MutexGuard<'_, IndexMap<String, Placement>> {
        self.placements.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What a new line of the journal says.
    pub(super) fn record(&self, entry: &Entry) {
        self.note(Line {
            time: entry.time,
            event: entry.event,
            action: entry.action.to_owned(),
            caller: entry.caller.clone(),
            order: entry.order.clone(),
            request: entry.request.clone(),
            result: entry.result.clone().unwrap_or_default(),
        });
    }

    fn note(&self, line: Line) {
        // What a cancellation came to says nothing of how the order was placed.
        if line.action == "cancel_order" {
            return;
        }
        let order = Essentials::deserialize(&line.result).ok();
        let name = match (&order, line.order) {
            (_, OrderName::Client(name)) => name,
            (Some(order), OrderName::Number(_)) => order.client_order_id.clone(),
            (None, OrderName::Number(_)) => return,
        };
        let mut placements = self.placements();
        if matches!(line.event, Event::Intent) {
            placements.shift_remove(&name);
            if placements.len() >= MAX_REMEMBERED {
                placements.shift_remove_index(0);
            }
            let placement = Placement {
                client_order_id: name.clone(),
                outcome: Outcome::InFlight,
                requested: line.request,
                order: None,
                time: line.time,
                caller: line.caller,
            };
            placements.insert(name, placement);
        } else if let Some(placement) = placements.get_mut(&name) {
            placement.outcome = match line.event {
                Event::Done | Event::Found => Outcome::Placed,
                Event::Refused => Outcome::Refused,
                // It was found meanwhile, and stays so.
                Event::Absent | Event::Unknown if placement.outcome == Outcome::Placed => Outcome::Placed,
                Event::Absent => Outcome::Absent,
                Event::Unknown | Event::Intent => Outcome::Unknown,
            };
            placement.order = order.or(placement.order.take());
        }
    }

    /// What was in flight when a process ended is not any more.
    fn end_run(&self) {
        for placement in self.placements().values_mut() {
            if placement.outcome == Outcome::InFlight {
                placement.outcome = Outcome::Unknown;
            }
        }
    }

    pub(super) fn lookup(&self, client_order_id: &str) -> Option<Placement> {
        self.placements().get(client_order_id).cloned()
    }

    pub(super) fn is_placed(&self, order: &OrderName) -> bool {
        match order {
            OrderName::Client(name) => self.lookup(name).is_some_and(|known| known.outcome == Outcome::Placed),
            OrderName::Number(_) => false,
        }
    }

    /// Whether the journal does not have an order for placed that the exchange has.
    pub(super) fn is_mended_by(&self, found: &OrderState) -> Option<OrderName> {
        let [name, _] = found.names();
        let OrderName::Client(client_order_id) = &name else {
            return None;
        };
        let placement = self.lookup(client_order_id)?;
        let is_missing = matches!(placement.outcome, Outcome::Refused | Outcome::Unknown | Outcome::Absent);
        (is_missing && placement.symbol() == found.symbol()).then_some(name)
    }

    /// Those under way, and those placed in the last minute, latest first. What is unknown is asked about elsewhere.
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

    /// For somebody who wants to place it again.
    pub(super) fn told(&self) -> String {
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

fn gap(unreadable: &[u64]) -> Option<String> {
    let named: Vec<String> = unreadable.iter().take(MAX_NAMED).map(u64::to_string).collect();
    let more = unreadable.len() - named.len();
    let more = if more > 0 {
        format!(" and {more} more")
    } else {
        String::new()
    };
    (!named.is_empty()).then(|| {
        format!(
            "the journal of orders could not be read whole: line {}{more} cannot be understood",
            named.join(", ")
        )
    })
}

/// The last lines of a journal; none if there is no journal.
pub(super) fn last_lines(path: &Path) -> Vec<String> {
    let lines = numbered_lines(path).unwrap_or_default();
    lines.into_iter().map(|(_, line)| line).collect()
}

/// With their numbers in the file, beginning with 1. Empty ones say nothing.
fn numbered_lines(path: &Path) -> io::Result<Vec<(u64, String)>> {
    let mut file = File::open(path)?;
    let begin = file.metadata()?.len().saturating_sub(MAX_READ_BYTES);
    let (before, is_in_a_line) = count_lines(&mut file, begin)?;
    let mut lines = Vec::new();
    for (number, line) in (before + 1..).zip(BufReader::new(file.take(MAX_READ_BYTES)).split(b'\n')) {
        let line = line?;
        let is_cut = is_in_a_line && number == before + 1;
        if !is_cut && !line.trim_ascii().is_empty() {
            lines.push((number, String::from_utf8_lossy(&line).into_owned()));
        }
    }
    Ok(lines)
}

/// How many lines end in the first so many bytes, and whether the next byte is within one.
fn count_lines(file: &mut File, bytes: u64) -> io::Result<(u64, bool)> {
    let mut skipped = BufReader::new(file.take(bytes));
    let (mut ended, mut is_in_a_line) = (0, false);
    loop {
        let chunk = skipped.fill_buf()?;
        let Some(last) = chunk.last() else {
            return Ok((ended, is_in_a_line));
        };
        is_in_a_line = *last != b'\n';
        ended += chunk.iter().filter(|byte| **byte == b'\n').count() as u64;
        let read = chunk.len();
        skipped.consume(read);
    }
}

#[cfg(test)]
mod tests;
