//! What became of each change of the account, in this run and earlier ones, by the lines of the journal.

use std::time::{Duration, Instant};

use indexmap::IndexMap;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use tokio::sync::watch;
use tribune_binance::Notional;
use tribune_core::{Error, ErrorKind, Result};

use super::Limits;
use super::entry::{Action, Entry, Event};
use super::order::OrderName;

/// How many changes are remembered; the oldest are dropped.
const MAX_REMEMBERED: usize = 5_000;
const MAX_LISTED: usize = 10;
const MINUTE: SignedDuration = SignedDuration::from_mins(1);
const DAY: SignedDuration = SignedDuration::from_hours(24);
/// The exchange accepts an order until its `recvWindow` ends, with a margin for clocks and its own work. Only after that
/// is a missing order known never to have arrived.
const MAY_ARRIVE_FOR: Duration = Duration::from_secs(10);

/// An order or a cancellation.
#[derive(Debug, Clone)]
pub(super) struct Change {
    /// The line of its intent, with what later lines say of it.
    pub(super) line: Entry,
    /// When we stopped waiting for the answer, by the monotonic clock; `None` while we wait.
    given_up: Option<Instant>,
}

/// By [`Entry::key`], oldest first.
type Changes = IndexMap<String, Change>;

#[derive(Default)]
pub(super) struct History {
    changes: watch::Sender<Changes>,
    /// A message about lines that could not be read.
    pub(super) gap: Option<String>,
}

impl History {
    /// Takes a line of the journal. What was in flight when an earlier run ended has an unknown outcome; the journal's wall
    /// clock may have been corrected since, but what it says was certainly sent before `now`.
    pub(super) fn note(&self, line: &Entry, now: Instant, is_earlier_run: bool) {
        self.changes.send_modify(|changes| {
            if line.action == Action::Find {
                return close(changes, line);
            }
            match changes.get_mut(&line.key()).filter(|_| line.event != Event::Intent) {
                Some(change) => change.follow(line, now),
                None => {
                    let mut line = line.clone();
                    if line.event == Event::Intent && is_earlier_run {
                        line.event = Event::Unknown;
                    }
                    let is_awaited = line.event == Event::Intent;
                    insert(changes, Change { line, given_up: (!is_awaited).then_some(now) });
                }
            }
            if line.action == Action::Cancel && line.event == Event::Done {
                // What was cancelled existed.
                close(changes, line);
            }
        });
    }

    /// Notes an order that is about to be sent; says no if it has been noted before, and why not if that would exceed a
    /// limit. All in one step, so that concurrent calls cannot pass together.
    pub(super) fn begin(&self, line: &Entry, limits: &Limits) -> Result<bool> {
        let mut outcome = Ok(false);
        self.changes.send_if_modified(|changes| {
            if changes.contains_key(&line.key()) {
                return false;
            }
            outcome = within(changes, limits, line.time, line.notional.unwrap_or(Notional::ZERO)).map(|()| true);
            if outcome.is_ok() {
                insert(changes, Change { line: line.clone(), given_up: None });
            }
            outcome.is_ok()
        });
        outcome
    }

    /// Whether one more order of this value is within the limits.
    pub(super) fn check(&self, limits: &Limits, now: Timestamp, notional: Notional) -> Result<()> {
        within(&self.changes.borrow(), limits, now, notional)
    }

    /// The order of this name, once its outcome is known; `None` if there is none.
    pub(super) async fn settled(&self, client_order_id: &str) -> Option<Change> {
        let mut changes = self.changes.subscribe();
        let is_settled = |change: &Change| change.line.event != Event::Intent;
        let settled = changes.wait_for(|changes| changes.get(client_order_id).is_none_or(is_settled)).await;
        settled.ok()?.get(client_order_id).cloned()
    }

    /// The last change of an order that is not known to have been done, by any of the order's names.
    pub(super) fn doubtful(&self, symbol: &str, names: &[OrderName]) -> Option<Change> {
        let changes = self.changes.borrow();
        changes.values().rfind(|change| change.is_of(symbol, names) && change.is_doubtful()).cloned()
    }

    /// Changes whose outcome is unknown and no longer awaited, for previews and the log.
    pub(super) fn unresolved(&self) -> Vec<Value> {
        let changes = self.changes.borrow();
        let unresolved = changes.values().filter(|change| change.line.event == Event::Unknown);
        let shown = |Change { line, .. }: &Change| {
            let mut shown = json!(line.order);
            shown["action"] = json!(line.action);
            shown["symbol"] = json!(line.symbol());
            shown["time"] = json!(line.time);
            shown
        };
        unresolved.map(shown).collect()
    }

    /// Orders in flight, and those placed in the last minute, latest first.
    pub(super) fn recent(&self, now: Timestamp) -> Vec<Value> {
        let changes = self.changes.borrow();
        let shown = |Change { line, .. }: &Change| {
            let outcome = match line.event {
                Event::Intent => "in_flight",
                Event::Done | Event::Found if now.duration_since(line.time) <= MINUTE => "placed",
                _ => return None,
            };
            let name = json!(line.key());
            let mut shown =
                json!({"client_order_id": name, "outcome": outcome, "requested": line.request, "time": line.time});
            if !line.result.is_null() {
                shown["order"] = line.result.clone();
            }
            (line.action == Action::Place).then_some(shown)
        };
        changes.values().rev().filter_map(shown).take(MAX_LISTED).collect()
    }
}

fn insert(changes: &mut Changes, change: Change) {
    if changes.len() >= MAX_REMEMBERED {
        let settled = changes.values().position(|change| !change.is_open());
        changes.shift_remove_index(settled.unwrap_or(0));
    }
    changes.insert(change.line.key(), change);
}

/// A lookup or a cancellation says whether an order exists.
fn close(changes: &mut Changes, line: &Entry) {
    let names = line.names();
    for change in changes.values_mut().filter(|change| change.is_of(line.symbol(), &names)) {
        let event = if line.event == Event::Absent { Event::Absent } else { Event::Found };
        if change.is_open() || (event == Event::Found && change.is_doubtful()) {
            change.line.event = event;
            change.line.result = line.result.clone();
        }
    }
}

/// What was ordered counts, whether it was filled or cancelled; an order without a value is from an earlier version.
fn within(changes: &Changes, limits: &Limits, now: Timestamp, notional: Notional) -> Result<()> {
    let refuse = |why: String| Err(Error::new(ErrorKind::Forbidden, format!("the order was not sent: {why}")));
    let since = |time: SignedDuration| {
        let is_since = move |change: &&Change| now.duration_since(change.line.time) < time;
        changes.values().filter(|change| change.line.action == Action::Place).filter(is_since)
    };
    if let Some(most) = limits.orders_per_minute
        && since(MINUTE).count() >= most as usize
    {
        return refuse(format!("{most} orders were sent in the last minute, the most allowed (max_orders_per_minute)"));
    }
    let Some(most) = limits.daily_notional else {
        return Ok(());
    };
    let is_counted = |change: &&Change| !matches!(change.line.event, Event::Refused | Event::Absent);
    let mut values = since(DAY).filter(is_counted).map(|change| change.line.notional.unwrap_or(limits.order_notional));
    let spent = values.try_fold(Notional::ZERO, Notional::checked_add);
    // The oldest are forgotten first: if one from before is known, so are all since.
    let is_old = |change: &Change| !change.is_open() && now.duration_since(change.line.time) >= DAY;
    let is_complete = changes.len() < MAX_REMEMBERED || changes.values().any(is_old);
    match spent.and_then(|spent| spent.checked_add(notional)).filter(|sum| *sum <= most) {
        Some(_) if is_complete => Ok(()),
        _ => {
            let spent = spent.map_or_else(|| "more than can be counted".to_owned(), |spent| spent.to_string());
            refuse(format!(
                "its value of about {notional} and the {spent} ordered within 24 hours are above the limit for a day ({most}, max_daily_notional)"
            ))
        }
    }
}

impl Change {
    fn follow(&mut self, line: &Entry, now: Instant) {
        self.given_up = Some(now);
        // A lookup has found it while its answer was awaited.
        if line.event == Event::Unknown && !self.is_open() {
            return;
        }
        self.line.event = line.event;
        self.line.error = line.error.clone();
        if !line.result.is_null() {
            (self.line.result, self.line.simulated) = (line.result.clone(), line.simulated);
        }
    }

    fn is_of(&self, symbol: &str, names: &[OrderName]) -> bool {
        self.line.symbol() == symbol && self.line.names().iter().any(|name| names.contains(name))
    }

    pub(super) fn is_open(&self) -> bool {
        matches!(self.line.event, Event::Intent | Event::Unknown)
    }

    /// Open, or an order that the journal has as refused or absent. A refused cancellation says nothing about its order.
    fn is_doubtful(&self) -> bool {
        let is_missing = matches!(self.line.event, Event::Refused | Event::Absent);
        self.is_open() || (self.line.action == Action::Place && is_missing)
    }

    /// How long it may still arrive. The request was signed before we stopped waiting for its answer.
    pub(super) fn may_arrive_for(&self, now: Instant) -> Option<Duration> {
        let passed = self.given_up.map_or(Duration::ZERO, |since| now.saturating_duration_since(since));
        MAY_ARRIVE_FOR.checked_sub(passed).filter(|left| !left.is_zero())
    }

    /// The error for a caller who uses the order's preview token again.
    pub(super) fn explain(&self) -> Error {
        let line = &self.line;
        let result = |name: &str| line.result[name].as_str().unwrap_or("?");
        let became = match line.event {
            Event::Done | Event::Found => format!(
                "was placed (order_id {}, {}, {} of {} filled when last asked)",
                line.result["order_id"],
                result("status"),
                result("executed_quantity"),
                result("quantity")
            ),
            Event::Refused => {
                let why = line.error.as_deref().unwrap_or("the journal does not say why");
                format!("was refused, or never sent ({why})")
            }
            Event::Absent => "never arrived at the exchange".to_owned(),
            Event::Intent | Event::Unknown => "was sent, and its execution status is unknown".to_owned(),
        };
        let kind = if self.is_open() { ErrorKind::Unavailable } else { ErrorKind::InvalidArgument };
        let next = match line.event {
            Event::Refused | Event::Absent => {
                "look with binance_get_order, and only then call again without preview_token for a new preview"
            }
            _ => "do not order again: look with binance_get_order",
        };
        let (symbol, name) = (line.symbol(), &line.order);
        Error::new(
            kind,
            format!(
                "the preview_token has been used, and nothing was sent now: its order (symbol {symbol}, {name}) {became}; {next}"
            ),
        )
    }
}

#[cfg(test)]
mod tests;
