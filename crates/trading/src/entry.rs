//! The lines of the journal: how one is written, and how they are read back.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tribune_binance::moment::Stamped;

use super::answers::OrderState;
use super::order::OrderName;

/// How many unreadable lines a message names.
const MAX_NAMED: usize = 5;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Action {
    #[serde(rename = "place_order")]
    Place,
    #[serde(rename = "cancel_order")]
    Cancel,
    #[serde(rename = "get_order")]
    Find,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Event {
    /// About to be sent.
    Intent,
    /// The exchange took it.
    Done,
    /// The exchange refused it, or it was never sent.
    Refused,
    /// No answer; it may or may not have been done.
    Unknown,
    /// A later lookup found the order.
    Found,
    /// A later lookup found no such order.
    Absent,
}

/// One line. It never contains a secret.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Entry {
    pub(super) time: Timestamp,
    pub(super) event: Event,
    pub(super) action: Action,
    #[serde(default)]
    pub(super) caller: String,
    #[serde(default)]
    pub(super) correlation_id: String,
    #[serde(flatten)]
    pub(super) order: OrderName,
    /// What was asked for.
    pub(super) request: Value,
    /// The order as the exchange had it, where it answered.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub(super) result: Value,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<String>,
    #[serde(default)]
    pub(super) simulated: Option<bool>,
}

impl Entry {
    pub(super) fn note_answer(&mut self, order: &Stamped<OrderState>) {
        self.result = serde_json::to_value(&order.value).unwrap_or_default();
        self.simulated = Some(order.simulated);
    }

    pub(super) fn symbol(&self) -> &str {
        self.request["symbol"].as_str().unwrap_or_default()
    }

    /// Every name that the order is known by: a successful cancellation proves that it existed under each.
    pub(super) fn names(&self) -> Vec<OrderName> {
        let client = self.result["client_order_id"].as_str();
        let number = self.result["order_id"].as_u64();
        let client = client.map(|name| OrderName::Client(name.to_owned()));
        let known = client.into_iter().chain(number.map(OrderName::Number));
        known.chain([self.order.clone()]).collect()
    }
}

/// Reads a journal back, line by line. Returns a message about lines that cannot be read.
pub(super) fn read_back(path: &Path, mut each: impl FnMut(Entry)) -> io::Result<Option<String>> {
    let file = File::open(path)?;
    let length = file.metadata()?.len();
    let mut named: Vec<String> = Vec::new();
    let mut more = 0;
    for (number, line) in (1..).zip(BufReader::new(file.take(length)).split(b'\n')) {
        let line = line?;
        match serde_json::from_slice(line.trim_ascii()) {
            Ok(entry) => each(entry),
            Err(_) if line.trim_ascii().is_empty() => {}
            Err(_) if named.len() < MAX_NAMED => named.push(i64::to_string(&number)),
            Err(_) => more += 1,
        }
    }
    if named.is_empty() {
        return Ok(None);
    }
    let named = named.join(", ");
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    Ok(Some(format!("the journal of orders is incomplete: line {named}{more} cannot be read")))
}
