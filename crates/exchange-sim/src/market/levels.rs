//! Price levels of an order book, and the id of its last update.

use std::collections::BTreeMap;

use crate::number::{self, Price, Quantity};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Side {
    Bid,
    Ask,
}

impl Side {
    pub const fn opposite(self) -> Self {
        match self {
            Self::Bid => Self::Ask,
            Self::Ask => Self::Bid,
        }
    }
}

pub type Level = (Price, Quantity);

/// Price levels of both sides.
#[derive(Debug, Clone, Default)]
pub struct Levels {
    bids: BTreeMap<Price, Quantity>,
    asks: BTreeMap<Price, Quantity>,
    pub last_update_id: u64,
}

impl Levels {
    /// An empty book as of an update id.
    pub fn at_update(last_update_id: u64) -> Self {
        Self {
            last_update_id,
            ..Self::default()
        }
    }

    /// Sets the quantity at a price; zero removes the level, if there is one.
    pub fn set(&mut self, side: Side, price: Price, quantity: Quantity) {
        let levels = match side {
            Side::Bid => &mut self.bids,
            Side::Ask => &mut self.asks,
        };
        if quantity == 0 {
            levels.remove(&price);
        } else {
            levels.insert(price, quantity);
        }
    }

    pub fn quantity(&self, side: Side, price: Price) -> Quantity {
        let levels = match side {
            Side::Bid => &self.bids,
            Side::Ask => &self.asks,
        };
        levels.get(&price).copied().unwrap_or(0)
    }

    pub fn best(&self, side: Side) -> Option<Level> {
        match side {
            Side::Bid => self.bids.last_key_value(),
            Side::Ask => self.asks.first_key_value(),
        }
        .map(|(price, quantity)| (*price, *quantity))
    }

    /// The best level of each side.
    pub fn top(&self) -> (Option<Level>, Option<Level>) {
        (self.best(Side::Bid), self.best(Side::Ask))
    }

    /// Bids from the highest down.
    pub fn bids(&self) -> impl Iterator<Item = Level> {
        self.bids.iter().rev().map(|(price, quantity)| (*price, *quantity))
    }

    /// Asks from the lowest up.
    pub fn asks(&self) -> impl Iterator<Item = Level> {
        self.asks.iter().map(|(price, quantity)| (*price, *quantity))
    }

    /// A copy of the best `limit` levels of each side.
    pub fn truncated(&self, limit: usize) -> Self {
        Self {
            bids: self.bids().take(limit).collect(),
            asks: self.asks().take(limit).collect(),
            last_update_id: self.last_update_id,
        }
    }

    /// `{"lastUpdateId":…,"bids":…,"asks":…}`, the shape of snapshots and of partial depth streams.
    pub fn json(&self, limit: usize) -> String {
        self.json_with(limit, limit)
    }

    /// The same with a limit for each side.
    pub fn json_with(&self, bids: usize, asks: usize) -> String {
        let mut text = String::with_capacity(64 + (bids.min(5_000) + asks.min(5_000)) * 32);
        text.push_str("{\"lastUpdateId\":");
        text.push_str(&self.last_update_id.to_string());
        text.push_str(",\"bids\":");
        push_levels(&mut text, self.bids().take(bids));
        text.push_str(",\"asks\":");
        push_levels(&mut text, self.asks().take(asks));
        text.push('}');
        text
    }
}

/// Appends `[["price","quantity"],…]`.
pub fn push_levels(text: &mut String, levels: impl Iterator<Item = Level>) {
    text.push('[');
    for (index, (price, quantity)) in levels.enumerate() {
        text.push_str(if index == 0 { "[\"" } else { ",[\"" });
        number::push(text, i128::from(price));
        text.push_str("\",\"");
        number::push(text, quantity);
        text.push_str("\"]");
    }
    text.push(']');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_has_the_exchange_shape() {
        let mut levels = Levels::at_update(7);
        levels.set(Side::Bid, 100_000_000, 200_000_000);
        levels.set(Side::Bid, 200_000_000, 1);
        levels.set(Side::Ask, 300_000_000, 5);
        levels.set(Side::Ask, 400_000_000, 0);
        assert_eq!(
            levels.json(1),
            r#"{"lastUpdateId":7,"bids":[["2.00000000","0.00000001"]],"asks":[["3.00000000","0.00000005"]]}"#
        );
    }
}
