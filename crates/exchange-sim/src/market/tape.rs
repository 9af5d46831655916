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

/// The last trade, as far as it is known: its quantity is not if it is only told of as part of an aggregate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Last {
    pub id: u64,
    pub price: Price,
    pub quantity: Option<Quantity>,
    pub time: Millis,
}

#[derive(Debug, Default)]
pub struct Tape {
    trades: VecDeque<Trade>,
    aggregates: VecDeque<Aggregate>,
    /// What traded before is not here, or no longer.
    pub begins: Millis,
}

impl Tape {
    /// Puts a trade where it belongs by its id; false if it is there already, or too old to be kept.
    pub fn push_trade(&mut self, trade: Trade) -> bool {
        let inserted = insert(&mut self.trades, trade, |trade| trade.id);
        self.note_forgotten(inserted.forgotten.map(|trade| trade.time));
        inserted.new
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
        let inserted = insert(&mut self.aggregates, aggregate, |aggregate| aggregate.id);
        self.note_forgotten(inserted.forgotten.map(|aggregate| aggregate.time));
        inserted.new
    }

    fn note_forgotten(&mut self, time: Option<Millis>) {
        if let Some(time) = time {
            self.begins = self.begins.max(time.saturating_add(1));
        }
    }

    /// Of aggregates if there are no trades.
    pub fn last(&self) -> Option<Last> {
        let of_trade = |trade: &Trade| Last {
            id: trade.id,
            price: trade.price,
            quantity: Some(trade.quantity),
            time: trade.time,
        };
        let of_aggregate = |aggregate: &Aggregate| Last {
            id: aggregate.last_trade,
            price: aggregate.price,
            quantity: (aggregate.first_trade == aggregate.last_trade).then_some(aggregate.quantity),
            time: aggregate.time,
        };
        let last = self.trades.back().map(of_trade);
        last.or_else(|| self.aggregates.back().map(of_aggregate))
    }

    /// Money and quantity of all that traded from `start` on; `None` if the tape does not reach back so far.
    pub fn traded_since(&self, start: Millis) -> Option<(Money, Quantity)> {
        let add = |(money, quantity): (Money, Quantity), (price, more): (Price, Quantity)| {
            let part = i128::from(price).saturating_mul(more);
            (money.saturating_add(part), quantity + more)
        };
        let trades = self.trades.iter().filter(|trade| trade.time >= start);
        let aggregates = self.aggregates.iter().filter(|aggregate| aggregate.time >= start);
        (self.begins <= start).then(|| {
            if self.trades.is_empty() {
                aggregates.map(|one| (one.price, one.quantity)).fold((0, 0), add)
            } else {
                trades.map(|one| (one.price, one.quantity)).fold((0, 0), add)
            }
        })
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

struct Inserted<T> {
    new: bool,
    /// What had to make room.
    forgotten: Option<T>,
}

fn insert<T>(queue: &mut VecDeque<T>, item: T, id: impl Fn(&T) -> u64) -> Inserted<T> {
    let number = id(&item);
    let newest = queue.back().is_none_or(|last| id(last) < number);
    let at = if newest {
        queue.len()
    } else {
        queue.partition_point(|other| id(other) < number)
    };
    let held = queue.get(at).is_some_and(|other| id(other) == number);
    let new = !held && (at > 0 || queue.len() < KEPT);
    if new {
        queue.insert(at, item);
    }
    let forgotten = if queue.len() > KEPT { queue.pop_front() } else { None };
    Inserted { new, forgotten }
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

    #[test]
    fn the_quantity_of_one_of_several_trades_is_not_known() {
        let mut tape = Tape::default();
        tape.push_aggregate(Aggregate {
            last_trade: 7,
            ..Aggregate::of(&trade(5), 1)
        });
        assert_eq!(tape.last().map(|last| (last.id, last.quantity)), Some((7, None)));
        tape.push_aggregate(Aggregate::of(&trade(8), 2));
        assert_eq!(tape.last().map(|last| (last.id, last.quantity)), Some((8, Some(1))));
    }

    #[test]
    fn what_is_no_longer_kept_is_not_summed() {
        let mut tape = Tape::default();
        for id in 0..KEPT as u64 + 2 {
            let time = id as Millis;
            tape.push_trade(Trade { time, ..trade(id) });
        }
        assert_eq!(tape.traded_since(1), None);
        assert_eq!(tape.traded_since(2), Some((KEPT as Money, KEPT as Quantity)));
        assert_eq!(tape.traded_since(KEPT as Millis), Some((2, 2)));
    }
}
