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
    pub fn push_trade(&mut self, trade: Trade) {
        push_bounded(&mut self.trades, trade);
    }

    /// For recordings without aggregates: trades of one moment, price and side are one, with the first one's id.
    pub fn aggregate_trade(&mut self, trade: &Trade) {
        if !self.aggregates.back_mut().is_some_and(|last| last.absorb(trade)) {
            self.push_aggregate(Aggregate::of(trade, trade.id));
        }
    }

    pub fn push_aggregate(&mut self, aggregate: Aggregate) {
        push_bounded(&mut self.aggregates, aggregate);
    }

    pub fn last(&self) -> Option<&Trade> {
        self.trades.back()
    }

    pub fn last_aggregate(&self) -> Option<&Aggregate> {
        self.aggregates.back()
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

fn push_bounded<T>(queue: &mut VecDeque<T>, item: T) {
    if queue.len() == KEPT {
        queue.pop_front();
    }
    queue.push_back(item);
}
