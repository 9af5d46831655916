//! Moves one symbol's market: orders go in, and the book, the trades and the streams change.

use std::collections::HashSet;
use std::time::Duration;

use super::flow::{Action, Flow};
use super::matching::{Changed, Fill, MatchingBook, OrderId};
use crate::hub::Hub;
use crate::interval::Millis;
use crate::market::Market;
use crate::market::levels::Side;
use crate::market::publish::FAST;
use crate::market::tape::{Aggregate, Trade};
use crate::number::{Price, Quantity};

/// An order of any kind.
#[derive(Debug, Clone, Copy)]
pub struct Incoming {
    pub side: Side,
    pub limit: Option<Price>,
    pub quantity: Quantity,
    /// Whether what is not filled at once rests in the book.
    pub rests: bool,
}

/// A fill and the trade it became.
#[derive(Debug, Clone, Copy)]
pub struct Execution {
    pub fill: Fill,
    pub trade: Trade,
}

#[derive(Debug)]
pub struct Submitted {
    pub id: OrderId,
    pub executions: Vec<Execution>,
    pub resting: Quantity,
}

#[derive(Debug)]
pub struct Engine {
    pub book: MatchingBook,
    flow: Option<Flow>,
    next_order: OrderId,
    next_trade: u64,
    next_aggregate: u64,
    /// When the flow acts next, and when streams are due next.
    next_action: Duration,
    next_boundary: Millis,
    /// Resting orders of accounts, and their fills since the last settlement.
    watched: HashSet<OrderId>,
    watched_executions: Vec<Execution>,
}

impl Engine {
    /// `now` is the time of the first book.
    pub fn new(book: MatchingBook, flow: Option<Flow>, next_order: OrderId, next_trade: u64, now: Millis) -> Self {
        let mut engine = Self {
            book,
            flow,
            next_order,
            next_trade,
            next_aggregate: next_trade,
            next_action: Duration::from_millis(now.max(0) as u64),
            next_boundary: now - now.rem_euclid(FAST) + FAST,
            watched: HashSet::new(),
            watched_executions: Vec::new(),
        };
        engine.pause();
        engine
    }

    fn pause(&mut self) {
        self.next_action = match &mut self.flow {
            Some(flow) => self.next_action + flow.next_pause(),
            None => Duration::MAX,
        };
    }

    /// Does everything that happens before `until`. However it is cut into calls, the result is the same.
    pub fn advance(&mut self, market: &mut Market, hub: &Hub, until: Millis) {
        loop {
            let acts_at = self.next_action.as_millis().min(Millis::MAX as u128) as Millis;
            if acts_at.min(self.next_boundary) >= until {
                return;
            }
            if acts_at < self.next_boundary {
                self.act(market, hub, acts_at);
                self.pause();
            } else {
                market.publish_boundary(hub, self.next_boundary);
                self.next_boundary += FAST;
            }
        }
    }

    fn act(&mut self, market: &mut Market, hub: &Hub, now: Millis) {
        let Some(flow) = &mut self.flow else {
            return;
        };
        let action = flow.next_action(&self.book);
        let (side, limit, quantity) = match action {
            Action::Cancel(id) => {
                self.cancel(market, hub, id);
                return;
            }
            Action::Limit { side, price, quantity } | Action::Deepen { side, price, quantity } => {
                (side, Some(price), quantity)
            }
            Action::Market { side, quantity } => (side, None, quantity),
        };
        let incoming = Incoming {
            side,
            limit,
            quantity,
            rests: limit.is_some(),
        };
        let submitted = self.submit(market, hub, &incoming, now);
        if submitted.resting > 0
            && matches!(action, Action::Limit { .. })
            && let Some(flow) = &mut self.flow
        {
            flow.note_resting(submitted.id);
        }
    }

    pub fn submit(&mut self, market: &mut Market, hub: &Hub, incoming: &Incoming, now: Millis) -> Submitted {
        let id = self.next_order;
        self.next_order += 1;
        let mut fills = Vec::new();
        let left = self
            .book
            .take(incoming.side, incoming.limit, incoming.quantity, &mut fills);
        let executions = self.execute(market, hub, incoming.side, &fills, now);
        let mut resting = 0;
        if let (Some(price), true, true) = (incoming.limit, incoming.rests, left > 0) {
            let changed = self.book.rest(id, incoming.side, price, left);
            show(market, hub, changed);
            resting = left;
        }
        Submitted {
            id,
            executions,
            resting,
        }
    }

    /// An order that is not entered has an id all the same.
    pub fn refuse(&mut self) -> Submitted {
        let id = self.next_order;
        self.next_order += 1;
        Submitted {
            id,
            executions: Vec::new(),
            resting: 0,
        }
    }

    /// Collects the fills of a resting order.
    pub fn watch(&mut self, id: OrderId) {
        self.watched.insert(id);
    }

    pub fn unwatch(&mut self, id: OrderId) {
        self.watched.remove(&id);
    }

    pub fn take_watched_executions(&mut self) -> Vec<Execution> {
        std::mem::take(&mut self.watched_executions)
    }

    pub fn take_watched_executions_of(&mut self, id: OrderId) -> Vec<Execution> {
        let (its_own, others) = std::mem::take(&mut self.watched_executions)
            .into_iter()
            .partition(|execution| execution.fill.maker == id);
        self.watched_executions = others;
        its_own
    }

    pub fn cancel(&mut self, market: &mut Market, hub: &Hub, id: OrderId) -> bool {
        match self.book.cancel(id) {
            Some(changed) => {
                show(market, hub, changed);
                true
            }
            None => false,
        }
    }

    /// Each fill is a trade and changes a level; fills at one price are one aggregate.
    fn execute(&mut self, market: &mut Market, hub: &Hub, taker: Side, fills: &[Fill], now: Millis) -> Vec<Execution> {
        let mut executions = Vec::with_capacity(fills.len());
        let mut aggregate: Option<Aggregate> = None;
        for fill in fills {
            let trade = Trade {
                id: self.next_trade,
                price: fill.price,
                quantity: fill.quantity,
                time: now,
                buyer_is_maker: taker == Side::Ask,
            };
            self.next_trade += 1;
            market.record_trade(trade);
            market.publish_trade(hub, &trade);
            show(
                market,
                hub,
                Changed {
                    side: taker.opposite(),
                    price: fill.price,
                    total: fill.left_at_price,
                },
            );
            if !aggregate.as_mut().is_some_and(|open| open.absorb(&trade)) {
                self.close_aggregate(market, hub, aggregate.replace(Aggregate::of_trade(&trade, 0)));
            }
            let execution = Execution { fill: *fill, trade };
            if self.watched.contains(&fill.maker) {
                self.watched_executions.push(execution);
            }
            if fill.maker_done {
                self.watched.remove(&fill.maker);
                if let Some(flow) = &mut self.flow {
                    flow.forget(fill.maker);
                }
            }
            executions.push(execution);
        }
        self.close_aggregate(market, hub, aggregate);
        executions
    }

    fn close_aggregate(&mut self, market: &mut Market, hub: &Hub, aggregate: Option<Aggregate>) {
        if let Some(mut aggregate) = aggregate {
            aggregate.id = self.next_aggregate;
            self.next_aggregate += 1;
            market.record_aggregate(aggregate);
            market.publish_aggregate(hub, &aggregate);
        }
    }
}

/// Applies a change of the matching book to the book that clients see.
fn show(market: &mut Market, hub: &Hub, changed: Changed) {
    if market.change_level(changed.side, changed.price, changed.total) {
        market.publish_book_ticker(hub);
    }
}
