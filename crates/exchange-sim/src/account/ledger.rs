//! The balances, orders and trades of one API key. Amounts are in 10⁻⁸ of their asset; there is no commission.

use std::collections::{BTreeMap, VecDeque};

use indexmap::IndexMap;
use serde_json::{Value, json};

use super::order_request::{Kind, OrderRequest};
use crate::api::error::ApiError;
use crate::interval::Millis;
use crate::market::levels::Side;
use crate::market::symbol::Symbol;
use crate::market::tape::Trade;
use crate::number::{self, Price, Quantity, UNIT};
use crate::simulated::engine::Execution;
use crate::simulated::matching::OrderId;

/// Orders and trades kept for each key.
const MAX_ORDERS: usize = 10_000;
const MAX_TRADES: usize = 20_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    New,
    PartiallyFilled,
    Filled,
    Canceled,
    Expired,
}

impl State {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::New => "NEW",
            Self::PartiallyFilled => "PARTIALLY_FILLED",
            Self::Filled => "FILLED",
            Self::Canceled => "CANCELED",
            Self::Expired => "EXPIRED",
        }
    }

    pub const fn is_open(self) -> bool {
        matches!(self, Self::New | Self::PartiallyFilled)
    }
}

#[derive(Debug, Clone)]
pub struct Order {
    pub symbol: String,
    pub id: OrderId,
    pub client_id: String,
    pub side: Side,
    pub kind: Kind,
    pub price: Price,
    pub quantity: Quantity,
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
    pub maker: bool,
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
    trades: VecDeque<MyTrade>,
    pub updated: Millis,
}

impl Ledger {
    pub fn with_balances(balances: impl Iterator<Item = (String, i128)>) -> Self {
        Self {
            balances: balances
                .map(|(asset, free)| (asset, Balance { free, locked: 0 }))
                .collect(),
            ..Self::default()
        }
    }

    fn balance(&mut self, asset: &str) -> &mut Balance {
        if !self.balances.contains_key(asset) {
            self.balances.insert(asset.to_owned(), Balance::default());
        }
        &mut self.balances[asset]
    }

    /// Locks what an order may cost; fails without a change if the balance is too low.
    pub fn reserve(&mut self, symbol: &Symbol, side: Side, cost: i128) -> Result<(), ApiError> {
        let balance = self.balance(spent(symbol, side));
        if balance.free < cost {
            return Err(ApiError::bad(
                -2010,
                "Account has insufficient balance for requested action.",
            ));
        }
        balance.free -= cost;
        balance.locked += cost;
        Ok(())
    }

    pub fn release(&mut self, symbol: &Symbol, side: Side, cost: i128) {
        let balance = self.balance(spent(symbol, side));
        balance.locked -= cost;
        balance.free += cost;
    }

    /// Adds an order. Of too many, the one that was closed first is forgotten.
    pub fn put(&mut self, order: Order) {
        self.orders.insert((order.symbol.clone(), order.id), order);
        if self.orders.len() > MAX_ORDERS {
            let closed = self.orders.iter().filter(|(_, order)| !order.state.is_open());
            let oldest = closed
                .min_by_key(|(_, order)| order.updated)
                .map(|(key, _)| key.clone());
            oldest.map(|key| self.orders.remove(&key));
        }
    }

    pub fn order(&self, symbol: &str, id: OrderId) -> Option<&Order> {
        self.orders.get(&(symbol.to_owned(), id))
    }

    pub fn order_mut(&mut self, symbol: &str, id: OrderId) -> Option<&mut Order> {
        self.orders.get_mut(&(symbol.to_owned(), id))
    }

    pub fn orders(&self) -> impl Iterator<Item = &Order> {
        self.orders.values()
    }

    pub fn trades(&self) -> impl Iterator<Item = &MyTrade> {
        self.trades.iter()
    }

    pub fn has_open_orders(&self) -> bool {
        self.orders.values().any(|order| order.state.is_open())
    }

    /// Books a fill of a resting order, if it is this key's.
    pub fn settle_maker(&mut self, symbol: &Symbol, execution: &Execution) {
        self.settle(symbol, execution.fill.maker, &execution.trade, true);
    }

    /// Books a fill: the locked amount is spent, the bought amount is free.
    pub fn settle(&mut self, symbol: &Symbol, id: OrderId, trade: &Trade, maker: bool) {
        let Some(order) = self.order_mut(&symbol.name, id) else {
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
        self.trades.push_back(MyTrade {
            symbol: symbol.name.clone(),
            order: id,
            trade: *trade,
            side,
            maker,
        });
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

    pub fn balances_json(&self, omit_zero: bool) -> Vec<Value> {
        self.balances
            .iter()
            .filter(|(_, balance)| !omit_zero || balance.free + balance.locked > 0)
            .map(|(asset, balance)| {
                json!({"asset": asset, "free": number::fixed(balance.free), "locked": number::fixed(balance.locked)})
            })
            .collect()
    }
}

/// The asset that an order spends.
fn spent(symbol: &Symbol, side: Side) -> &str {
    match side {
        Side::Bid => &symbol.quote,
        Side::Ask => &symbol.base,
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
            kind: request.kind,
            price: request.price.unwrap_or(0),
            quantity,
            executed: 0,
            money: 0,
            state: State::New,
            placed: now,
            updated: now,
        }
    }

    /// What is still locked for it.
    pub const fn reserved(&self) -> i128 {
        let left = self.quantity - self.executed;
        match self.side {
            Side::Bid => cost(self.price, left),
            Side::Ask => left,
        }
    }

    pub fn json(&self) -> Value {
        json!({
            "symbol": self.symbol,
            "orderId": self.id,
            "orderListId": -1,
            "clientOrderId": self.client_id,
            "price": number::fixed_price(self.price),
            "origQty": number::fixed(self.quantity),
            "executedQty": number::fixed(self.executed),
            "origQuoteOrderQty": "0.00000000",
            "cummulativeQuoteQty": number::fixed(self.money),
            "status": self.state.as_str(),
            "timeInForce": self.kind.time_in_force(),
            "type": self.kind.as_str(),
            "side": side_name(self.side),
            "stopPrice": "0.00000000",
            "icebergQty": "0.00000000",
            "time": self.placed,
            "updateTime": self.updated,
            "isWorking": true,
            "workingTime": self.placed,
            "selfTradePreventionMode": "NONE"
        })
    }
}

pub const fn side_name(side: Side) -> &'static str {
    match side {
        Side::Bid => "BUY",
        Side::Ask => "SELL",
    }
}
