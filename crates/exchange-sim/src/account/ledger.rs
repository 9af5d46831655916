//! The balances, orders and trades of one API key. Amounts are in 10⁻⁸ of their asset; there is no commission.

use std::collections::{BTreeMap, VecDeque};

use indexmap::IndexMap;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::order_request::{OrderRequest, Type};
use crate::api::error::ApiError;
use crate::interval::Millis;
use crate::market::levels::Side;
use crate::market::symbol::Symbol;
use crate::market::tape::Trade;
use crate::number::{self, Price, Quantity, UNIT};
use crate::simulated::queues::OrderId;

/// Orders and trades kept for each key.
const MAX_ORDERS: usize = 10_000;
const MAX_TRADES: usize = 20_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum State {
    New,
    PartiallyFilled,
    Filled,
    Canceled,
    Expired,
}

#[derive(Debug, Clone)]
pub struct Order {
    pub symbol: String,
    pub id: OrderId,
    pub client_id: String,
    pub side: Side,
    pub order_type: Type,
    /// Zero for a market order.
    pub price: Price,
    pub quantity: Quantity,
    /// What a market order was to cost, if it said so.
    pub quote_quantity: i128,
    pub executed: Quantity,
    /// Paid or received, in 10⁻⁸ of the quote asset.
    pub money: i128,
    pub state: State,
    pub placed: Millis,
    pub updated: Millis,
}

/// One fill of one of the key's orders.
#[derive(Debug, Clone)]
pub struct MyTrade {
    pub symbol: String,
    pub order: OrderId,
    pub trade: Trade,
    pub side: Side,
    pub is_maker: bool,
}

#[derive(Debug, Clone, Copy, Default)]
struct Balance {
    free: i128,
    locked: i128,
}

#[derive(Debug, Default)]
pub struct Ledger {
    balances: IndexMap<String, Balance>,
    orders: BTreeMap<(String, OrderId), Order>,
    pub trades: VecDeque<MyTrade>,
    pub updated: Millis,
}

impl Ledger {
    pub fn with_balances(balances: impl Iterator<Item = (String, i128)>) -> Self {
        let balances = balances.map(|(asset, free)| (asset, Balance { free, locked: 0 }));
        Self { balances: balances.collect(), ..Self::default() }
    }

    fn balance(&mut self, asset: &str) -> &mut Balance {
        self.balances.entry(asset.to_owned()).or_default()
    }

    /// Locks what an order may cost; fails without a change if the balance is too low.
    pub fn reserve(&mut self, symbol: &Symbol, side: Side, cost: i128) -> Result<(), ApiError> {
        let balance = self.balance(symbol.spent_by(side));
        if balance.free < cost {
            let message = "Account has insufficient balance for requested action.";
            return Err(ApiError::bad(-2010, message));
        }
        balance.free -= cost;
        balance.locked += cost;
        Ok(())
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

    pub fn orders(&self) -> impl DoubleEndedIterator<Item = &Order> {
        self.orders.values()
    }

    pub fn open_orders(&self) -> impl Iterator<Item = &Order> {
        self.orders().filter(|order| order.is_open())
    }

    /// Books a fill: the locked amount is spent, the bought amount is free.
    pub fn settle(&mut self, symbol: &Symbol, id: OrderId, trade: &Trade, is_maker: bool) {
        let Some(order) = self.orders.get_mut(&(symbol.name.clone(), id)) else {
            return;
        };
        let money = trade.money() / UNIT;
        order.executed += trade.quantity;
        order.money += money;
        order.updated = trade.time;
        order.state = match order.executed == order.quantity {
            true => State::Filled,
            false => State::PartiallyFilled,
        };
        let (side, limit) = (order.side, order.price);
        self.updated = trade.time;
        if self.trades.len() == MAX_TRADES {
            self.trades.pop_front();
        }
        self.trades.push_back(MyTrade { symbol: symbol.name.clone(), order: id, trade: *trade, side, is_maker });
        match side {
            Side::Bid => {
                // What was saved below the limit is free again.
                let reserved = match limit {
                    0 => money,
                    limit => cost(limit, trade.quantity),
                };
                let quote = self.balance(&symbol.quote);
                quote.locked -= reserved;
                quote.free += reserved - money;
                self.balance(&symbol.base).free += trade.quantity;
            }
            Side::Ask => {
                self.balance(&symbol.base).locked -= trade.quantity;
                self.balance(&symbol.quote).free += money;
            }
        }
    }

    /// Ends an order that no longer rests. What is left of it is not locked any more.
    pub fn end(&mut self, symbol: &Symbol, id: OrderId, state: State, now: Millis) {
        let Some(order) = self.orders.get_mut(&(symbol.name.clone(), id)) else {
            return;
        };
        if order.is_open() {
            order.state = state;
            order.updated = now;
            let (side, reserved) = (order.side, order.reserved());
            let balance = self.balance(symbol.spent_by(side));
            balance.locked -= reserved;
            balance.free += reserved;
        }
    }

    pub fn balances_json(&self, omit_zero: bool) -> Vec<Value> {
        let shown = self.balances.iter().filter(|(_, balance)| !omit_zero || balance.free + balance.locked > 0);
        let json = |(asset, balance): (&String, &Balance)| json!({"asset": asset, "free": number::fixed(balance.free), "locked": number::fixed(balance.locked)});
        shown.map(json).collect()
    }
}

pub const fn cost(price: Price, quantity: Quantity) -> i128 {
    (price as i128).saturating_mul(quantity) / UNIT
}

impl Order {
    pub fn new(request: &OrderRequest, symbol: &Symbol, id: OrderId, quantity: Quantity, now: Millis) -> Self {
        Self {
            symbol: symbol.name.clone(),
            id,
            client_id: request.client_id.clone().unwrap_or_else(|| format!("sim-{id}")),
            side: request.side,
            order_type: request.order_type,
            price: request.price().unwrap_or(0),
            quantity,
            quote_quantity: request.quote_quantity(),
            executed: 0,
            money: 0,
            state: State::New,
            placed: now,
            updated: now,
        }
    }

    pub const fn is_open(&self) -> bool {
        matches!(self.state, State::New | State::PartiallyFilled)
    }

    /// What is still locked for it. A market buyer locked the cost of what was there, and bought all of it.
    const fn reserved(&self) -> i128 {
        let left = self.quantity - self.executed;
        match self.side {
            Side::Bid => cost(self.price, left),
            Side::Ask => left,
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
        let mut order = json!({
            "symbol": self.symbol,
            "orderId": self.id,
            "orderListId": -1,
            "clientOrderId": self.client_id,
            "price": number::fixed(self.price),
            "origQty": number::fixed(self.quantity),
            "executedQty": number::fixed(self.executed),
            "origQuoteOrderQty": number::fixed(self.quote_quantity),
            "cummulativeQuoteQty": number::fixed(self.money),
            "status": self.state,
            "timeInForce": self.order_type.time_in_force(),
            "type": self.order_type.as_str(),
            "side": if self.side == Side::Bid { "BUY" } else { "SELL" },
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
