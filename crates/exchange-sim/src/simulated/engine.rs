//! Moves one symbol's market: orders go in, and the book, the trades and the streams change.

use std::collections::HashMap;
use std::time::Duration;

use super::flow::{Action, Flow};
use super::queues::{Incoming, OrderId, Queues};
use crate::hub::Hub;
use crate::interval::Millis;
use crate::market::Market;
use crate::market::levels::Side;
use crate::market::publish::FAST;
use crate::market::tape::{Aggregate, Trade};
use crate::number::{Price, Quantity};

#[derive(Debug)]
pub struct Submitted {
    pub id: OrderId,
    pub trades: Vec<Trade>,
    pub resting: Quantity,
}

#[derive(Debug)]
pub struct Engine {
    queues: Queues,
    flow: Flow,
    next_order: OrderId,
    next_trade: u64,
    next_aggregate: u64,
    /// When the flow acts next, and when streams are due next.
    next_action: Duration,
    next_boundary: Millis,
    /// Orders of accounts that rested, with their trades that are not settled.
    watched: HashMap<OrderId, Vec<Trade>>,
}

impl Engine {
    /// `now` is the time of the first book.
    pub fn new(flow: Flow, next_trade: u64, now: Millis) -> Self {
        let mut engine = Self {
            queues: Queues::default(),
            flow,
            next_order: 1,
            next_trade,
            next_aggregate: next_trade,
            next_action: Duration::from_millis(now.max(0) as u64),
            next_boundary: now - now.rem_euclid(FAST) + FAST,
            watched: HashMap::new(),
        };
        engine.pause();
        engine
    }

    fn pause(&mut self) {
        self.next_action += self.flow.next_pause();
    }

    fn next_order_id(&mut self) -> OrderId {
        let id = self.next_order;
        self.next_order += 1;
        id
    }

    /// Puts an order that the market's book shows already at the end of its level's queue.
    pub fn add_shown(&mut self, side: Side, price: Price, quantity: Quantity) {
        let id = self.next_order_id();
        self.queues.push(id, side, price, quantity);
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
                market.publish_due(hub, self.next_boundary, false);
                self.next_boundary += FAST;
            }
        }
    }

    fn act(&mut self, market: &mut Market, hub: &Hub, now: Millis) {
        match self.flow.next_action(&market.levels) {
            Action::Cancel(id) => {
                self.cancel(market, hub, id);
            }
            Action::Submit { order, is_kept } => {
                let submitted = self.submit(market, hub, &order, now);
                if submitted.resting > 0 && !is_kept {
                    self.flow.note_resting(submitted.id);
                }
            }
        }
    }

    /// Matches an order with the other side, best price first and oldest order first. Each fill is a trade.
    pub fn submit(&mut self, market: &mut Market, hub: &Hub, order: &Incoming, now: Millis) -> Submitted {
        let id = self.next_order_id();
        let opposite = order.side.opposite();
        let mut left = order.quantity;
        let mut trades: Vec<Trade> = Vec::new();
        while left > 0
            && let Some((price, total)) = market.levels.best(opposite)
            && order.limit.is_none_or(|limit| opposite.reaches(price, limit))
            && let Some(fill) = self.queues.take(opposite, price, left)
        {
            left -= fill.quantity;
            let trade = Trade {
                id: self.next_trade,
                price,
                quantity: fill.quantity,
                time: now,
                buyer_is_maker: order.side == Side::Ask,
            };
            self.next_trade += 1;
            market.record_trade(trade);
            market.publish_trade(hub, &trade);
            market.change_level(hub, opposite, price, total - fill.quantity);
            if let Some(unsettled) = self.watched.get_mut(&fill.maker) {
                unsettled.push(trade);
            }
            if fill.is_last {
                self.flow.forget(fill.maker);
            }
            trades.push(trade);
        }
        for fills in trades.chunk_by(|one, next| one.price == next.price) {
            let aggregate = Aggregate {
                id: self.next_aggregate,
                quantity: fills.iter().map(|trade| trade.quantity).sum(),
                last_trade: fills[fills.len() - 1].id,
                ..Aggregate::of(&fills[0])
            };
            self.next_aggregate += 1;
            market.tape.push_aggregate(aggregate);
            market.publish_aggregate(hub, &aggregate);
        }
        let mut resting = 0;
        if order.rests
            && left > 0
            && let Some(price) = order.limit
        {
            resting = left;
            self.queues.push(id, order.side, price, left);
            let total = market.levels.quantity(order.side, price) + left;
            market.change_level(hub, order.side, price, total);
        }
        Submitted { id, trades, resting }
    }

    /// Returns false if the order no longer rests.
    pub fn cancel(&mut self, market: &mut Market, hub: &Hub, id: OrderId) -> bool {
        let Some((side, price, quantity)) = self.queues.remove(id) else {
            return false;
        };
        let total = market.levels.quantity(side, price) - quantity;
        market.change_level(hub, side, price, total);
        true
    }

    /// Collects the trades of a resting order.
    pub fn watch(&mut self, id: OrderId) {
        self.watched.insert(id, Vec::new());
    }

    /// The trades of a watched order since the last call.
    pub fn take_trades(&mut self, id: OrderId) -> Vec<Trade> {
        if !self.queues.contains(id) {
            return self.watched.remove(&id).unwrap_or_default();
        }
        self.watched.get_mut(&id).map(std::mem::take).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::faults::Faults;
    use crate::market::candles::Candles;
    use crate::market::levels::Levels;
    use crate::simulated::catalogue;

    struct Bench {
        market: Market,
        engine: Engine,
        hub: Hub,
    }

    impl Bench {
        /// Orders 1 and 2 ask 101, order 3 asks 102, and order 4 bids 99.
        fn new() -> Self {
            let listing = catalogue::well_known().swap_remove(0);
            let symbol = listing.symbol.clone();
            let mut bench = Self {
                market: Market::new(symbol, Levels::default(), Candles::new(Vec::new(), Some(0))),
                engine: Engine::new(Flow::new(listing, 1, 1.0, 10), 1, 0),
                hub: Hub::new(Arc::new(Faults::new(0))),
            };
            for (side, price, quantity) in
                [(Side::Ask, 101, 5), (Side::Ask, 101, 3), (Side::Ask, 102, 4), (Side::Bid, 99, 7)]
            {
                bench.submit(side, Some(price), quantity, true);
            }
            bench
        }

        fn submit(&mut self, side: Side, limit: Option<Price>, quantity: Quantity, rests: bool) -> Submitted {
            let order = Incoming { side, limit, quantity, rests };
            self.engine.submit(&mut self.market, &self.hub, &order, 1)
        }
    }

    #[test]
    fn orders_match_by_price_then_time() {
        let mut bench = Bench::new();
        (1..=3).for_each(|id| bench.engine.watch(id));
        let bought = bench.submit(Side::Bid, None, 10, false);
        let summary: Vec<_> = bought.trades.iter().map(|trade| (trade.price, trade.quantity)).collect();
        assert_eq!(summary, [(101, 5), (101, 3), (102, 2)]);
        let makers = [1, 2, 3].map(|id| bench.engine.take_trades(id).len());
        assert_eq!(makers, [1, 1, 1]);
        assert!(!bench.engine.queues.contains(1) && bench.engine.queues.contains(3));
        assert_eq!(bench.market.levels.best(Side::Ask), Some((102, 2)));
    }

    #[test]
    fn limit_ends_the_matching() {
        let mut bench = Bench::new();
        let bought = bench.submit(Side::Bid, Some(101), 10, true);
        assert_eq!((bought.trades.len(), bought.resting), (2, 2));
        assert_eq!(bench.market.levels.best(Side::Bid), Some((101, 2)));
        assert_eq!(bench.submit(Side::Ask, Some(102), 1, false).trades, []);
    }

    #[test]
    fn cancelled_order_leaves_its_level() {
        let mut bench = Bench::new();
        let mut cancel = || bench.engine.cancel(&mut bench.market, &bench.hub, 2);
        assert!(cancel() && !cancel());
        assert_eq!(bench.market.levels.best(Side::Ask), Some((101, 5)));
    }
}
