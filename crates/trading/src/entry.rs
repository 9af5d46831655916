//! The lines of the journal: how one is written, and how it is read back.

use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A journal only grows, so only its end is read.
pub(super) const MAX_READ_BYTES: u64 = 4 << 20;

/// An order's id: the client's or the exchange's.
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

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
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
#[derive(Debug, Serialize)]
pub(super) struct Entry {
    pub(super) time: Timestamp,
    pub(super) event: Event,
    pub(super) action: &'static str,
    pub(super) caller: String,
    pub(super) correlation_id: Arc<str>,
    #[serde(flatten)]
    pub(super) order: OrderName,
    /// What was asked for.
    pub(super) request: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) result: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<String>,
    pub(super) simulated: Option<bool>,
}

/// A line that was read back.
#[derive(Debug, Deserialize)]
pub(super) struct Line {
    pub(super) time: Timestamp,
    pub(super) event: Event,
    pub(super) action: String,
    #[serde(default)]
    pub(super) caller: String,
    #[serde(flatten)]
    pub(super) order: OrderName,
    pub(super) request: Value,
    /// The order as the exchange had it, where it answered.
    #[serde(default)]
    pub(super) result: Value,
}

impl Line {
    pub(super) fn symbol(&self) -> &str {
        self.request["symbol"].as_str().unwrap_or_default()
    }

    /// Every name that the order is known by.
    pub(super) fn names(&self) -> Vec<OrderName> {
        let client = self.result["client_order_id"].as_str();
        let number = self.result["order_id"].as_u64();
        let known = client.map(|name| OrderName::Client(name.to_owned())).into_iter();
        known
            .chain(number.map(OrderName::Number))
            .chain([self.order.clone()])
            .collect()
    }
}

/// The end of a journal.
#[derive(Debug, Default)]
pub(super) struct Lines {
    pub(super) readable: Vec<Line>,
    /// The numbers of the others in the file, beginning with 1.
    pub(super) unreadable: Vec<u64>,
}

impl Lines {
    pub(super) fn read(path: &Path) -> io::Result<Self> {
        let mut lines = Self::default();
        for (number, text) in numbered_lines(path)? {
            match serde_json::from_str(&text) {
                Ok(line) => lines.readable.push(line),
                Err(_) => lines.unreadable.push(number),
            }
        }
        Ok(lines)
    }
}

/// Lines with their numbers in the file, beginning with 1, without empty ones.
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

/// How many lines end within the first `bytes`, and whether the next byte continues one.
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
