//! The trades of a market, and the aggregates of those that one order made at one price.

use std::collections::VecDeque;

use crate::interval::Millis;
use crate::number::{Money, Price, Quantity};

/// How many are kept; the exchange gives at most 1,000 in one answer.
const KEPT: usize = 20_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trade {
    pub id: u64,
    pub price: Price,
    pub quantity: Quantity,
    pub time: Millis,
    /// The resting order was the buyer's: a seller crossed the spread.
    pub buyer_is_maker: bool,
}

impl Trade {
    pub const fn money(&self) -> Money {
        (self.price as i128).saturating_mul(self.quantity)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Aggregate {
    pub id: u64,
    pub price: Price,
    pub quantity: Quantity,
    pub first_trade: u64,
    pub last_trade: u64,
    pub time: Millis,
    pub buyer_is_maker: bool,
}

impl Aggregate {
    pub const fn of(trade: &Trade, id: u64) -> Self {
        Self {
            id,
            price: trade.price,
            quantity: trade.quantity,
            first_trade: trade.id,
            last_trade: trade.id,
            time: trade.time,
            buyer_is_maker: trade.buyer_is_maker,
        }
    }

    /// Takes the next trade of the same order in, if it is at the same price.
    pub fn absorb(&mut self, trade: &Trade) -> bool {
        let same = trade.price == self.price
            && trade.time == self.time
            && trade.buyer_is_maker == self.buyer_is_maker
            && trade.id == self.last_trade + 1;
        if same {
            self.quantity += trade.quantity;
            self.last_trade = trade.id;
        }
        same
    }
}

#[derive(Debug, Default)]
pub struct Tape {
    trades: VecDeque<Trade>,
    aggregates: VecDeque<Aggregate>,
}

impl Tape {
    /// Puts a trade where it belongs by its id; false if it is there already, or too old to be kept.
    pub fn push_trade(&mut self, trade: Trade) -> bool {
        insert(&mut self.trades, trade, |trade| trade.id)
    }

    /// For recordings without aggregates: trades of one moment, price and side are one, with the first one's id.
    pub fn aggregate_trade(&mut self, trade: &Trade) {
        let before = self.aggregates.partition_point(|other| other.id < trade.id);
        let last = before.checked_sub(1).and_then(|index| self.aggregates.get_mut(index));
        if !last.is_some_and(|last| last.absorb(trade)) {
            self.push_aggregate(Aggregate::of(trade, trade.id));
        }
    }

    /// The same of an aggregate.
    pub fn push_aggregate(&mut self, aggregate: Aggregate) -> bool {
        insert(&mut self.aggregates, aggregate, |aggregate| aggregate.id)
    }

    pub fn last(&self) -> Option<&Trade> {
        self.trades.back()
    }

    /// The newest `limit`, oldest first.
    pub fn newest(&self, limit: usize) -> impl Iterator<Item = &Trade> {
        self.trades.range(self.trades.len().saturating_sub(limit)..)
    }

    /// From an id on, oldest first.
    pub fn trades_from_id(&self, id: u64, limit: usize) -> impl Iterator<Item = &Trade> {
        let start = self.trades.partition_point(|trade| trade.id < id);
        self.trades.range(start..).take(limit)
    }

    pub fn newest_aggregates(&self, limit: usize) -> impl Iterator<Item = &Aggregate> {
        self.aggregates.range(self.aggregates.len().saturating_sub(limit)..)
    }

    pub fn aggregates_from_id(&self, id: u64, limit: usize) -> impl Iterator<Item = &Aggregate> {
        let start = self.aggregates.partition_point(|aggregate| aggregate.id < id);
        self.aggregates.range(start..).take(limit)
    }

    /// Those between two times, both included, the oldest `limit`.
    pub fn aggregates_between(&self, start: Millis, end: Millis, limit: usize) -> impl Iterator<Item = &Aggregate> {
        let first = self.aggregates.partition_point(|aggregate| aggregate.time < start);
        self.aggregates
            .range(first..)
            .take_while(move |aggregate| aggregate.time <= end)
            .take(limit)
    }
}

fn insert<T>(queue: &mut VecDeque<T>, item: T, id: impl Fn(&T) -> u64) -> bool {
    let number = id(&item);
    let newest = queue.back().is_none_or(|last| id(last) < number);
    let at = if newest {
        queue.len()
    } else {
        queue.partition_point(|other| id(other) < number)
    };
    let held = queue.get(at).is_some_and(|other| id(other) == number);
    if held || (at == 0 && queue.len() == KEPT) {
        return false;
    }
    queue.insert(at, item);
    if queue.len() > KEPT {
        queue.pop_front();
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trade(id: u64) -> Trade {
        Trade {
            id,
            price: 1,
            quantity: 1,
            time: 1,
            buyer_is_maker: true,
        }
    }

    #[test]
    fn trades_are_held_once_and_by_their_ids() {
        let mut tape = Tape::default();
        let pushed = [5, 3, 5, 4, 9, 3].map(|id| tape.push_trade(trade(id)));
        assert_eq!(pushed, [true, true, false, true, true, false]);
        let ids: Vec<u64> = tape.newest(10).map(|trade| trade.id).collect();
        assert_eq!(ids, [3, 4, 5, 9]);
    }
}
