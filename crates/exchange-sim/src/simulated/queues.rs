//! The resting orders of a market by price, then time. How much a level holds in total is in the market's book.

use std::collections::{HashMap, VecDeque};

use crate::market::levels::Side;
use crate::number::{Price, Quantity};

pub type OrderId = u64;

/// An order of any kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Incoming {
    pub side: Side,
    pub limit: Option<Price>,
    pub quantity: Quantity,
    /// Whether the unfilled rest of an order rests in the book.
    pub rests: bool,
}

#[derive(Debug)]
struct Resting {
    id: OrderId,
    quantity: Quantity,
}

/// A resting order met by an incoming one.
#[derive(Debug)]
pub struct Fill {
    pub maker: OrderId,
    pub quantity: Quantity,
    /// Nothing is left of the resting order.
    pub is_last: bool,
}

#[derive(Debug, Default)]
pub struct Queues {
    /// The orders of each level, oldest first.
    levels: HashMap<(Side, Price), VecDeque<Resting>>,
    places: HashMap<OrderId, (Side, Price)>,
}

impl Queues {
    pub fn contains(&self, id: OrderId) -> bool {
        self.places.contains_key(&id)
    }

    pub fn push(&mut self, id: OrderId, side: Side, price: Price, quantity: Quantity) {
        self.places.insert(id, (side, price));
        // Most of the thousands of levels have one order.
        let queue = self.levels.entry((side, price)).or_insert_with(|| VecDeque::with_capacity(1));
        queue.push_back(Resting { id, quantity });
    }

    /// Takes up to `quantity` from the oldest order of a level.
    pub fn take(&mut self, side: Side, price: Price, quantity: Quantity) -> Option<Fill> {
        let queue = self.levels.get_mut(&(side, price))?;
        let order = queue.front_mut()?;
        let fill =
            Fill { maker: order.id, quantity: quantity.min(order.quantity), is_last: quantity >= order.quantity };
        order.quantity -= fill.quantity;
        if fill.is_last {
            self.remove(fill.maker);
        }
        Some(fill)
    }

    /// Removes an order; returns its level and what was left of it.
    pub fn remove(&mut self, id: OrderId) -> Option<(Side, Price, Quantity)> {
        let (side, price) = self.places.remove(&id)?;
        let queue = self.levels.get_mut(&(side, price))?;
        let at = queue.iter().position(|order| order.id == id)?;
        let order = queue.remove(at)?;
        if queue.is_empty() {
            self.levels.remove(&(side, price));
        }
        Some((side, price, order.quantity))
    }
}
