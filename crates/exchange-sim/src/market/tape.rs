//! The trades of a market, and their aggregates: the fills of one order at one price.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::interval::Millis;
use crate::number::{Money, Price, Quantity, text};

/// The exchange gives at most 1,000 in one answer.
const CAPACITY: usize = 20_000;

/// Named as in stream messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trade {
    #[serde(rename = "t")]
    pub id: u64,
    #[serde(rename = "p", with = "text")]
    pub price: Price,
    #[serde(rename = "q", with = "text")]
    pub quantity: Quantity,
    #[serde(rename = "T")]
    pub time: Millis,
    /// The seller took the resting order of the buyer.
    #[serde(rename = "m")]
    pub buyer_is_maker: bool,
}

impl Trade {
    pub const fn money(&self) -> Money {
        (self.price as i128).saturating_mul(self.quantity)
    }
}

/// Named as in stream messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Aggregate {
    #[serde(rename = "a")]
    pub id: u64,
    #[serde(rename = "p", with = "text")]
    pub price: Price,
    #[serde(rename = "q", with = "text")]
    pub quantity: Quantity,
    #[serde(rename = "f")]
    pub first_trade: u64,
    #[serde(rename = "l")]
    pub last_trade: u64,
    #[serde(rename = "T")]
    pub time: Millis,
    #[serde(rename = "m")]
    pub buyer_is_maker: bool,
}

impl Aggregate {
    /// A single fill, whose trade gives the aggregate its id.
    pub const fn of(trade: &Trade) -> Self {
        Self {
            id: trade.id,
            price: trade.price,
            quantity: trade.quantity,
            first_trade: trade.id,
            last_trade: trade.id,
            time: trade.time,
            buyer_is_maker: trade.buyer_is_maker,
        }
    }

    /// Adds the next fill of the same order; returns false if the trade is not one.
    fn absorb(&mut self, trade: &Trade) -> bool {
        let is_next = trade.price == self.price
            && trade.time == self.time
            && trade.buyer_is_maker == self.buyer_is_maker
            && trade.id == self.last_trade + 1;
        if is_next {
            self.quantity += trade.quantity;
            self.last_trade = trade.id;
        }
        is_next
    }
}

#[derive(Debug, Default)]
pub struct Tape {
    trades: VecDeque<Trade>,
    aggregates: VecDeque<Aggregate>,
    /// Trades before this time are not on the tape.
    pub begins: Millis,
}

impl Tape {
    /// Inserts a trade by its id; returns false if it is known, or too old to be kept.
    pub fn push_trade(&mut self, trade: Trade) -> bool {
        let key = |trade: &Trade| (trade.id, trade.time);
        insert(&mut self.trades, &mut self.begins, trade, key)
    }

    /// Inserts an aggregate by its id; returns false if it is known, or too old to be kept.
    pub fn push_aggregate(&mut self, aggregate: Aggregate) -> bool {
        let key = |aggregate: &Aggregate| (aggregate.id, aggregate.time);
        insert(&mut self.aggregates, &mut self.begins, aggregate, key)
    }

    /// For recordings without aggregates: fills of one order become one aggregate with the first trade's id.
    pub fn aggregate_trade(&mut self, trade: &Trade) {
        let before = self.aggregates.partition_point(|other| other.id < trade.id);
        let last = before.checked_sub(1).and_then(|index| self.aggregates.get_mut(index));
        if !last.is_some_and(|last| last.absorb(trade)) {
            self.push_aggregate(Aggregate::of(trade));
        }
    }

    pub fn last(&self) -> Option<&Trade> {
        self.trades.back()
    }

    /// Money and quantity that traded from `start` on; `None` if the tape does not reach back so far.
    pub fn traded_since(&self, start: Millis) -> Option<(Money, Quantity)> {
        if self.begins > start {
            return None;
        }
        let recent = self.trades.iter().filter(|trade| trade.time >= start);
        Some(
            recent.fold((0, 0), |(money, quantity), trade| {
                (money.saturating_add(trade.money()), quantity + trade.quantity)
            }),
        )
    }

    /// The newest `limit`, oldest first.
    pub fn newest(&self, limit: usize) -> impl Iterator<Item = &Trade> {
        self.trades.range(self.trades.len().saturating_sub(limit)..)
    }

    pub fn aggregates_from_id(&self, id: u64) -> impl Iterator<Item = &Aggregate> {
        let start = self.aggregates.partition_point(|aggregate| aggregate.id < id);
        self.aggregates.range(start..)
    }

    /// Aggregates between two times, both included, oldest first.
    pub fn aggregates_between(&self, start: Millis, end: Millis) -> impl DoubleEndedIterator<Item = &Aggregate> {
        let first = self.aggregates.partition_point(|aggregate| aggregate.time < start);
        let last = self.aggregates.partition_point(|aggregate| aggregate.time <= end);
        self.aggregates.range(first..last.max(first))
    }
}

/// Inserts by the id; `key` is id and time. What makes room in a full queue moves `begins`.
fn insert<T>(queue: &mut VecDeque<T>, begins: &mut Millis, item: T, key: impl Fn(&T) -> (u64, Millis)) -> bool {
    let (id, _) = key(&item);
    let at = queue.partition_point(|other| key(other).0 < id);
    let is_known = queue.get(at).is_some_and(|other| key(other).0 == id);
    if is_known || (at == 0 && queue.len() >= CAPACITY) {
        return false;
    }
    queue.insert(at, item);
    if queue.len() > CAPACITY
        && let Some(evicted) = queue.pop_front()
    {
        *begins = (*begins).max(key(&evicted).1.saturating_add(1));
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trade(id: u64) -> Trade {
        Trade { id, price: 1, quantity: 1, time: 1, buyer_is_maker: true }
    }

    #[test]
    fn trades_are_unique_and_ordered_by_id() {
        let mut tape = Tape::default();
        let pushed = [5, 3, 5, 4, 9, 3].map(|id| tape.push_trade(trade(id)));
        assert_eq!(pushed, [true, true, false, true, true, false]);
        let ids: Vec<u64> = tape.newest(10).map(|trade| trade.id).collect();
        assert_eq!(ids, [3, 4, 5, 9]);
    }

    #[test]
    fn evicted_trades_are_not_summed() {
        let mut tape = Tape::default();
        for id in 0..CAPACITY as u64 + 2 {
            let time = id as Millis;
            tape.push_trade(Trade { time, ..trade(id) });
        }
        assert_eq!(tape.traded_since(1), None);
        assert_eq!(tape.traded_since(2), Some((CAPACITY as Money, CAPACITY as Quantity)));
        assert_eq!(tape.traded_since(CAPACITY as Millis), Some((2, 2)));
    }
}
