//! What one key owns, its orders and its trades. Amounts are in 10⁻⁸ of their asset; there is no commission.

use std::collections::BTreeMap;

use indexmap::IndexMap;
use serde_json::{Value, json};

use super::draft::{Draft, Kind};
use crate::interval::Millis;
use crate::market::levels::Side;
use crate::market::symbol::Symbol;
use crate::market::tape::Trade;
use crate::number::{self, Price, Quantity, UNIT};
use crate::rest::error::ApiError;
use crate::simulated::engine::Execution;
use crate::simulated::matching::OrderId;

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
    /// What was paid or received, in 10⁻⁸ of the quote asset.
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
    trades: Vec<MyTrade>,
    pub updated: Millis,
}

impl Ledger {
    pub fn owning(balances: impl Iterator<Item = (String, i128)>) -> Self {
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

    /// Sets aside what an order may cost; nothing changes if there is too little.
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

    pub fn put(&mut self, order: Order) {
        self.orders.insert((order.symbol.clone(), order.id), order);
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

    /// A fill of an order that rested, if it was this key's.
    pub fn settle_maker(&mut self, name: &str, symbol: &Symbol, execution: &Execution) {
        let id = execution.fill.maker;
        if self.order(name, id).is_some() {
            self.settle(symbol, id, &execution.trade, true);
        }
    }

    /// Moves what a fill moves: what was set aside is spent, what was bought is free.
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
        self.trades.push(MyTrade {
            symbol: symbol.name.clone(),
            order: id,
            trade: *trade,
            side,
            maker,
        });
        match side {
            Side::Bid => {
                // Bought below the limit: the difference is free again.
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

/// The asset that an order gives.
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
    pub fn of(draft: &Draft, symbol: &Symbol, id: OrderId, quantity: Quantity, now: Millis) -> Self {
        Self {
            symbol: symbol.name.clone(),
            id,
            client_id: draft.client_id.clone().unwrap_or_else(|| format!("sim-{id}")),
            side: draft.side,
            kind: draft.kind,
            price: draft.price.unwrap_or(0),
            quantity,
            executed: 0,
            money: 0,
            state: State::New,
            placed: now,
            updated: now,
        }
    }

    /// What is still set aside for it.
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
