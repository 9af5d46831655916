//! One line of the journal.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tribune_binance::{Notional, Stamped};

use super::answers::OrderState;
use super::order::OrderName;

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

/// It never contains a secret.
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
    /// What an order counts against the limits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) notional: Option<Notional>,
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

    /// Tells changes of the account apart: an order's own name, or that of a cancellation.
    pub(super) fn key(&self) -> String {
        match (self.request["cancellation"].as_str(), &self.order) {
            (Some(name), _) => name.to_owned(),
            (None, OrderName::Client(name)) => name.clone(),
            (None, OrderName::Number(number)) => number.to_string(),
        }
    }

    /// Every name that the order is known by.
    pub(super) fn names(&self) -> Vec<OrderName> {
        let client = self.result["client_order_id"].as_str();
        let number = self.result["order_id"].as_u64();
        let client = client.map(|name| OrderName::Client(name.to_owned()));
        let known = client.into_iter().chain(number.map(OrderName::Number));
        known.chain([self.order.clone()]).collect()
    }
}
