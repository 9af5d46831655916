//! The exchange's answers about an account and its orders.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};
use tribune_core::Clock;

use super::order::OrderName;
use tribune_binance::rest::answers::Decoded;
use tribune_binance::rest::decode::{Wrong, parse, word};
use tribune_binance::wire::{known_millis, nonzero};
use tribune_binance::{Millis, Notional, Price, Quantity, Stamped};

/// An order as the exchange has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all(deserialize = "camelCase"), expecting = "an object")]
pub(super) struct OrderState {
    #[serde(deserialize_with = "word")]
    pub(super) symbol: String,
    order_id: u64,
    #[serde(deserialize_with = "word")]
    pub(super) client_order_id: String,
    #[serde(deserialize_with = "word")]
    side: String,
    #[serde(rename = "type", deserialize_with = "word")]
    kind: String,
    /// NEW, PARTIALLY_FILLED, FILLED, CANCELED, REJECTED or EXPIRED.
    #[serde(deserialize_with = "word")]
    pub(super) status: String,
    #[serde(deserialize_with = "word")]
    time_in_force: String,
    /// Null for market orders.
    #[serde(deserialize_with = "nonzero")]
    price: Option<Price>,
    #[serde(rename(deserialize = "origQty"))]
    quantity: Quantity,
    #[serde(rename(deserialize = "executedQty"))]
    executed_quantity: Quantity,
    /// Null where the exchange does not know, as of very old orders.
    #[serde(rename(deserialize = "cummulativeQuoteQty"), deserialize_with = "unless_negative")]
    executed_quote_quantity: Option<Notional>,
    /// When it was placed; null where the exchange does not say.
    #[serde(default, deserialize_with = "known_millis", serialize_with = "as_text")]
    #[schemars(with = "Option<String>")]
    time: Option<Millis>,
    #[serde(default, deserialize_with = "known_millis", skip_serializing)]
    transact_time: Option<Millis>,
    #[serde(default, deserialize_with = "known_millis", skip_serializing)]
    update_time: Option<Millis>,
    /// In an answer to a cancellation, the order's own name.
    #[serde(default, skip_serializing)]
    orig_client_order_id: Option<String>,
}

impl OrderState {
    pub(super) fn names(&self) -> [OrderName; 2] {
        [OrderName::Client(self.client_order_id.clone()), OrderName::Number(self.order_id)]
    }
}

/// A trade of this account.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all(deserialize = "camelCase"), expecting = "an object")]
pub(super) struct OwnTrade {
    #[serde(deserialize_with = "word")]
    symbol: String,
    #[serde(rename(deserialize = "id"))]
    trade_id: u64,
    order_id: u64,
    #[serde(rename(deserialize = "isBuyer"), deserialize_with = "side")]
    side: String,
    price: Price,
    #[serde(rename(deserialize = "qty"))]
    quantity: Quantity,
    #[serde(rename(deserialize = "quoteQty"))]
    quote_quantity: Notional,
    commission: Quantity,
    #[serde(deserialize_with = "word")]
    commission_asset: String,
    #[serde(rename(deserialize = "isMaker"))]
    maker: bool,
    #[serde(deserialize_with = "known_millis", serialize_with = "as_text")]
    #[schemars(with = "Option<String>")]
    time: Option<Millis>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(expecting = "an object")]
pub(super) struct Balance {
    #[serde(deserialize_with = "word")]
    asset: String,
    free: Quantity,
    locked: Quantity,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all(deserialize = "camelCase"), expecting = "an object")]
pub(super) struct Account {
    #[serde(deserialize_with = "word")]
    account_type: String,
    can_trade: bool,
    can_withdraw: bool,
    can_deposit: bool,
    /// Without those that are empty.
    pub(super) balances: Vec<Balance>,
    #[serde(default, deserialize_with = "known_millis", skip_serializing)]
    update_time: Option<Millis>,
}

/// What the API key may do.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", expecting = "an object")]
pub(super) struct Restrictions {
    pub(super) enable_withdrawals: bool,
}

/// The answer of a tool: a value, and its times.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Answer<T> {
    #[serde(flatten)]
    value: T,
    /// By the exchange's clock, where it says so.
    exchange_time: Option<String>,
    received_time: String,
    age_ms: u64,
    source: &'static str,
    /// True if the exchange is a simulation.
    simulated: bool,
}

impl<T> Answer<T> {
    pub(super) fn new(stamped: Stamped<T>, clock: &dyn Clock) -> Self {
        Self {
            exchange_time: stamped.exchange_time.and_then(text),
            received_time: stamped.received.wall.to_string(),
            age_ms: stamped.age_ms(clock),
            source: "Binance Spot account",
            simulated: stamped.simulated,
            value: stamped.value,
        }
    }
}

fn text(time: Millis) -> Option<String> {
    Timestamp::from_millisecond(time).ok().map(|time| time.to_string())
}

fn as_text<S: serde::Serializer>(time: &Option<Millis>, serializer: S) -> Result<S::Ok, S::Error> {
    time.and_then(text).serialize(serializer)
}

fn unless_negative<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Notional>, D::Error> {
    let text = String::deserialize(deserializer)?;
    match text.strip_prefix('-') {
        Some(_) => Ok(None),
        None => text.parse().map(Some).map_err(serde::de::Error::custom),
    }
}

fn side<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let is_buyer = bool::deserialize(deserializer)?;
    Ok(if is_buyer { "BUY" } else { "SELL" }.to_owned())
}

/// The answer to a new order.
pub(super) fn placed(body: &[u8]) -> Decoded<OrderState> {
    let mut order: OrderState = parse(body)?;
    order.time = order.transact_time;
    let time = order.time;
    Ok((order, time))
}

/// The answer to a cancellation: `origClientOrderId` names the order, `clientOrderId` and the time are the cancellation's.
pub(super) fn cancelled(body: &[u8]) -> Decoded<OrderState> {
    let mut order: OrderState = parse(body)?;
    let name = order.orig_client_order_id.take();
    order.client_order_id = name.ok_or_else(|| Wrong::new("origClientOrderId", "is missing"))?;
    order.time = None;
    let time = order.transact_time;
    Ok((order, time))
}

pub(super) fn order(body: &[u8]) -> Decoded<OrderState> {
    let order: OrderState = parse(body)?;
    let time = order.update_time;
    Ok((order, time))
}

/// An answer without a time of its own.
pub(super) fn untimed<T: DeserializeOwned>(body: &[u8]) -> Decoded<T> {
    Ok((parse(body)?, None))
}

pub(super) fn own_trades(body: &[u8]) -> Decoded<Vec<OwnTrade>> {
    let trades: Vec<OwnTrade> = parse(body)?;
    let last = trades.iter().filter_map(|trade| trade.time).max();
    Ok((trades, last))
}

pub(super) fn account(body: &[u8]) -> Decoded<Account> {
    let mut account: Account = parse(body)?;
    let holds = |balance: &Balance| !(balance.free.is_zero() && balance.locked.is_zero());
    account.balances.retain(holds);
    let time = account.update_time;
    Ok((account, time))
}
