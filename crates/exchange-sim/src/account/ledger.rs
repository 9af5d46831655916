//! The balances and orders of one API key. Amounts are in 10⁻⁸ of their asset; there is no commission.

use std::collections::BTreeMap;

use indexmap::IndexMap;
use serde_json::{Map, Value, json};

use super::order_request::OrderRequest;
use crate::interval::Millis;
use crate::market::levels::Side;
use crate::market::symbol::Symbol;
use crate::market::tape::Trade;
use crate::number::{self, Price, Quantity, UNIT};
use crate::simulated::queues::OrderId;

/// Orders kept for each key.
const MAX_ORDERS: usize = 10_000;

/// How an order ended that was not filled.
#[derive(Debug, Clone, Copy)]
pub enum End {
    Cancelled,
    Expired,
}

#[derive(Debug, Clone)]
pub struct Fill {
    pub trade: Trade,
    pub is_maker: bool,
}

#[derive(Debug, Clone)]
pub struct Order {
    pub symbol: String,
    /// The asset that it pays with, and the one that it buys.
    spent: String,
    pub bought: String,
    pub id: OrderId,
    pub client_id: String,
    pub request: OrderRequest,
    pub quantity: Quantity,
    pub fills: Vec<Fill>,
    end: Option<End>,
    pub placed: Millis,
    updated: Millis,
}

#[derive(Debug, Default)]
pub struct Ledger {
    /// What is owned of each asset, including what open orders have locked.
    balances: IndexMap<String, i128>,
    orders: BTreeMap<(String, OrderId), Order>,
    pub updated: Millis,
}

impl Ledger {
    pub fn with_balances(balances: impl Iterator<Item = (String, i128)>) -> Self {
        Self { balances: balances.collect(), ..Self::default() }
    }

    /// What open orders may still cost.
    fn locked(&self, asset: &str) -> i128 {
        self.open_orders().filter(|order| order.spent == asset).map(Order::reserved).sum()
    }

    pub fn free(&self, asset: &str) -> i128 {
        self.balances.get(asset).copied().unwrap_or(0) - self.locked(asset)
    }

    /// Adds an order. Of too many, the one that was closed first is forgotten.
    pub fn put(&mut self, order: Order) {
        self.orders.insert((order.symbol.clone(), order.id), order);
        if self.orders.len() > MAX_ORDERS {
            let closed = self.orders.iter().filter(|(_, order)| !order.is_open());
            let oldest = closed.min_by_key(|(_, order)| order.updated);
            let oldest = oldest.map(|(key, _)| key.clone());
            oldest.map(|key| self.orders.remove(&key));
        }
    }

    pub fn order(&self, symbol: &str, id: OrderId) -> Option<&Order> {
        self.orders.get(&(symbol.to_owned(), id))
    }

    /// The orders of a symbol, oldest first.
    pub fn orders(&self, symbol: &str) -> impl DoubleEndedIterator<Item = &Order> {
        self.orders.range((symbol.to_owned(), 0)..=(symbol.to_owned(), OrderId::MAX)).map(|(_, order)| order)
    }

    pub fn open_orders(&self) -> impl Iterator<Item = &Order> {
        self.orders.values().filter(|order| order.is_open())
    }

    pub fn settle(&mut self, symbol: &str, id: OrderId, trade: Trade, is_maker: bool) {
        let Some(order) = self.orders.get_mut(&(symbol.to_owned(), id)) else {
            return;
        };
        order.fills.push(Fill { trade, is_maker });
        order.updated = trade.time;
        self.updated = trade.time;
        let money = trade.money() / UNIT;
        let (spent, bought) = match order.request.side {
            Side::Bid => (money, trade.quantity),
            Side::Ask => (trade.quantity, money),
        };
        *self.balances.entry(order.spent.clone()).or_default() -= spent;
        *self.balances.entry(order.bought.clone()).or_default() += bought;
    }

    /// Ends an order that no longer rests.
    pub fn end(&mut self, symbol: &str, id: OrderId, end: End, now: Millis) {
        let order = self.orders.get_mut(&(symbol.to_owned(), id));
        if let Some(order) = order.filter(|order| order.is_open()) {
            order.end = Some(end);
            order.updated = now;
        }
    }

    pub fn balances_json(&self, omit_zero: bool) -> Vec<Value> {
        let shown = self.balances.iter().filter(|(_, owned)| !omit_zero || **owned > 0);
        let json = |asset: &str| json!({"asset": asset, "free": number::fixed(self.free(asset)), "locked": number::fixed(self.locked(asset))});
        shown.map(|(asset, _)| json(asset)).collect()
    }
}

pub const fn cost(price: Price, quantity: Quantity) -> i128 {
    (price as i128).saturating_mul(quantity) / UNIT
}

impl Order {
    pub fn new(request: OrderRequest, symbol: &Symbol, id: OrderId, quantity: Quantity, now: Millis) -> Self {
        Self {
            symbol: symbol.name.clone(),
            spent: symbol.spent_by(request.side).to_owned(),
            bought: symbol.spent_by(request.side.opposite()).to_owned(),
            id,
            client_id: request.client_id.clone().unwrap_or_else(|| format!("sim-{id}")),
            request,
            quantity,
            fills: Vec::new(),
            end: None,
            placed: now,
            updated: now,
        }
    }

    fn executed(&self) -> Quantity {
        self.fills.iter().map(|fill| fill.trade.quantity).sum()
    }

    pub fn is_open(&self) -> bool {
        self.end.is_none() && self.executed() < self.quantity
    }

    /// What is still locked for it.
    fn reserved(&self) -> i128 {
        let left = self.quantity - self.executed();
        match self.request.side {
            Side::Bid => cost(self.request.limit.unwrap_or(0), left),
            Side::Ask => left,
        }
    }

    fn status(&self) -> &'static str {
        match (self.end, self.executed()) {
            (Some(End::Cancelled), _) => "CANCELED",
            (Some(End::Expired), _) => "EXPIRED",
            (None, 0) => "NEW",
            (None, executed) if executed < self.quantity => "PARTIALLY_FILLED",
            (None, _) => "FILLED",
        }
    }

    /// As queries show it.
    pub fn json(&self) -> Value {
        self.json_with(json!({
            "stopPrice": "0.00000000",
            "icebergQty": "0.00000000",
            "time": self.placed,
            "updateTime": self.updated,
            "isWorking": true
        }))
    }

    /// With fields of its own for each kind of answer, which take the place of others.
    pub fn json_with(&self, fields: Value) -> Value {
        let money: i128 = self.fills.iter().map(|fill| fill.trade.money() / UNIT).sum();
        let mut order = json!({
            "symbol": self.symbol,
            "orderId": self.id,
            "orderListId": -1,
            "clientOrderId": self.client_id,
            "price": number::fixed(self.request.limit.unwrap_or(0)),
            "origQty": number::fixed(self.quantity),
            "executedQty": number::fixed(self.executed()),
            "origQuoteOrderQty": number::fixed(self.request.quote_quantity),
            "cummulativeQuoteQty": number::fixed(money),
            "status": self.status(),
            "timeInForce": self.request.time_in_force,
            "type": if self.request.limit.is_some() { "LIMIT" } else { "MARKET" },
            "side": if self.request.side == Side::Bid { "BUY" } else { "SELL" },
            "workingTime": self.placed,
            "selfTradePreventionMode": "NONE"
        });
        let own: Option<&Map<String, Value>> = fields.as_object();
        for (name, value) in own.into_iter().flatten() {
            order[name] = value.clone();
        }
        order
    }
}
