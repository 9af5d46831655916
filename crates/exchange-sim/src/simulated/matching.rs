//! A book of orders by price, then time.

use std::collections::{BTreeMap, HashMap, VecDeque};

use crate::market::levels::Side;
use crate::number::{Money, Price, Quantity};

pub type OrderId = u64;

#[derive(Debug, Clone, Copy)]
struct Resting {
    id: OrderId,
    quantity: Quantity,
}

#[derive(Debug)]
struct Queue {
    orders: VecDeque<Resting>,
    total: Quantity,
}

/// One resting order met by an incoming one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fill {
    pub maker: OrderId,
    pub price: Price,
    pub quantity: Quantity,
    /// What the level holds afterwards.
    pub left_at_price: Quantity,
    /// The resting order is completely filled.
    pub maker_done: bool,
}

/// A level after an order was placed or cancelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Changed {
    pub side: Side,
    pub price: Price,
    pub total: Quantity,
}

#[derive(Debug, Default)]
pub struct MatchingBook {
    bids: BTreeMap<Price, Queue>,
    asks: BTreeMap<Price, Queue>,
    places: HashMap<OrderId, (Side, Price)>,
}

impl MatchingBook {
    fn side_mut(&mut self, side: Side) -> &mut BTreeMap<Price, Queue> {
        match side {
            Side::Bid => &mut self.bids,
            Side::Ask => &mut self.asks,
        }
    }

    fn side(&self, side: Side) -> &BTreeMap<Price, Queue> {
        match side {
            Side::Bid => &self.bids,
            Side::Ask => &self.asks,
        }
    }

    pub fn best(&self, side: Side) -> Option<Price> {
        match side {
            Side::Bid => self.bids.last_key_value(),
            Side::Ask => self.asks.first_key_value(),
        }
        .map(|(price, _)| *price)
    }

    /// The level furthest from the market.
    pub fn deepest(&self, side: Side) -> Option<Price> {
        match side {
            Side::Bid => self.bids.first_key_value(),
            Side::Ask => self.asks.last_key_value(),
        }
        .map(|(price, _)| *price)
    }

    pub fn level_count(&self, side: Side) -> usize {
        self.side(side).len()
    }

    #[cfg(test)]
    fn contains(&self, id: OrderId) -> bool {
        self.places.contains_key(&id)
    }

    /// Quantity that an order of `side` could take at `limit` or better.
    pub fn available(&self, side: Side, limit: Option<Price>) -> Quantity {
        let within = |price: Price| limit.is_none_or(|limit| crosses(side, limit, price));
        let queues = self.side(side.opposite()).iter();
        queues
            .filter(|(price, _)| within(**price))
            .map(|(_, queue)| queue.total)
            .sum()
    }

    /// Levels that an order of `side` meets, best first.
    fn opposite_levels(&self, side: Side) -> Box<dyn Iterator<Item = (Price, Quantity)> + '_> {
        let level = |(price, queue): (&Price, &Queue)| (*price, queue.total);
        match side {
            Side::Bid => Box::new(self.asks.iter().map(level)),
            Side::Ask => Box::new(self.bids.iter().rev().map(level)),
        }
    }

    /// What `quantity` costs, as far as the book has it.
    pub fn money_for(&self, side: Side, quantity: Quantity) -> Money {
        let mut left = quantity;
        let mut money = 0;
        for (price, total) in self.opposite_levels(side) {
            let taken = left.min(total);
            money += i128::from(price) * taken;
            left -= taken;
            if left == 0 {
                break;
            }
        }
        money
    }

    /// How much `money` buys or, for a seller, how much brings it.
    pub fn quantity_for(&self, side: Side, money: Money) -> Quantity {
        let mut left = money;
        let mut quantity = 0;
        for (price, total) in self.opposite_levels(side) {
            let taken = total.min(left / i128::from(price));
            quantity += taken;
            left -= taken * i128::from(price);
            if taken < total {
                break;
            }
        }
        quantity
    }

    /// Matches an order with the other side, best price first and oldest order first, up to `limit`. Returns what is
    /// left of `quantity`.
    pub fn take(&mut self, side: Side, limit: Option<Price>, quantity: Quantity, fills: &mut Vec<Fill>) -> Quantity {
        let mut left = quantity;
        while left > 0
            && let Some(price) = self.best(side.opposite())
        {
            if limit.is_some_and(|limit| !crosses(side, limit, price)) {
                break;
            }
            left = self.take_at(side.opposite(), price, left, fills);
        }
        left
    }

    fn take_at(&mut self, side: Side, price: Price, mut left: Quantity, fills: &mut Vec<Fill>) -> Quantity {
        let Some(queue) = self.side_mut(side).get_mut(&price) else {
            return left;
        };
        let mut done = Vec::new();
        while left > 0
            && let Some(order) = queue.orders.front_mut()
        {
            let quantity = left.min(order.quantity);
            order.quantity -= quantity;
            queue.total -= quantity;
            left -= quantity;
            let maker_done = order.quantity == 0;
            fills.push(Fill {
                maker: order.id,
                price,
                quantity,
                left_at_price: queue.total,
                maker_done,
            });
            if maker_done {
                done.push(order.id);
                queue.orders.pop_front();
            }
        }
        if queue.orders.is_empty() {
            self.side_mut(side).remove(&price);
        }
        for id in done {
            self.places.remove(&id);
        }
        left
    }

    /// Puts an order at the end of its level's queue. It must not cross: call `take` first.
    pub fn rest(&mut self, id: OrderId, side: Side, price: Price, quantity: Quantity) -> Changed {
        self.places.insert(id, (side, price));
        // Most of the thousands of levels have one order.
        let queue = self.side_mut(side).entry(price).or_insert_with(|| Queue {
            orders: VecDeque::with_capacity(1),
            total: 0,
        });
        queue.orders.push_back(Resting { id, quantity });
        queue.total += quantity;
        let total = queue.total;
        Changed { side, price, total }
    }

    /// Cancels an order; `None` if it no longer rests.
    pub fn cancel(&mut self, id: OrderId) -> Option<Changed> {
        let (side, price) = self.places.remove(&id)?;
        let levels = self.side_mut(side);
        let queue = levels.get_mut(&price)?;
        let at = queue.orders.iter().position(|order| order.id == id)?;
        let order = queue.orders.remove(at)?;
        queue.total -= order.quantity;
        let total = queue.total;
        if queue.orders.is_empty() {
            levels.remove(&price);
        }
        Some(Changed { side, price, total })
    }
}

/// Whether an order at `limit` matches the other side at `price`.
pub fn crosses(side: Side, limit: Price, price: Price) -> bool {
    match side {
        Side::Bid => limit >= price,
        Side::Ask => limit <= price,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn book() -> MatchingBook {
        let mut book = MatchingBook::default();
        book.rest(1, Side::Ask, 101, 5);
        book.rest(2, Side::Ask, 101, 3);
        book.rest(3, Side::Ask, 102, 4);
        book.rest(4, Side::Bid, 99, 7);
        book
    }

    #[test]
    fn orders_match_by_price_then_time() {
        let mut book = book();
        let mut fills = Vec::new();
        let left = book.take(Side::Bid, None, 10, &mut fills);
        assert_eq!(left, 0);
        let summary: Vec<_> = fills
            .iter()
            .map(|fill| (fill.maker, fill.price, fill.quantity, fill.left_at_price))
            .collect();
        assert_eq!(summary, [(1, 101, 5, 3), (2, 101, 3, 0), (3, 102, 2, 2)]);
        assert!(!book.contains(1) && book.contains(3));
        assert_eq!(book.best(Side::Ask), Some(102));
    }

    #[test]
    fn limit_ends_the_matching() {
        let mut book = book();
        let mut fills = Vec::new();
        assert_eq!(book.take(Side::Bid, Some(101), 10, &mut fills), 2);
        assert_eq!(book.take(Side::Ask, Some(100), 1, &mut fills), 1);
        assert_eq!(book.available(Side::Ask, Some(99)), 7);
    }

    #[test]
    fn cancelled_order_leaves_its_level() {
        let mut book = book();
        let changed = book.cancel(2).expect("it rests");
        assert_eq!((changed.side, changed.price, changed.total), (Side::Ask, 101, 5));
        assert_eq!(book.cancel(2), None);
    }
}
