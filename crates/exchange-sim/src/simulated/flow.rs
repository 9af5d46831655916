//! Zero-intelligence order flow: limit orders, cancellations and market orders at random, with no view of anything
//! but the book. What it does depends on its seed and the book alone.

use std::time::Duration;

use indexmap::IndexSet;

use super::catalogue::Listing;
use super::matching::{MatchingBook, OrderId};
use crate::market::levels::Side;
use crate::number::{Price, Quantity, UNIT};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    Limit {
        side: Side,
        price: Price,
        quantity: Quantity,
    },
    /// A limit order far behind, which stays.
    Deepen {
        side: Side,
        price: Price,
        quantity: Quantity,
    },
    Market {
        side: Side,
        quantity: Quantity,
    },
    Cancel(OrderId),
}

/// Shares of the actions when there are as many orders as there should be; the rest are cancellations. With fewer
/// orders some cancellations become limit orders.
const LIMIT_SHARE: f64 = 0.45;
const MARKET_SHARE: f64 = 0.12;
/// How large market orders are beside typical ones: large enough to go through several levels, but together no more
/// than limit orders bring, or the book would be eaten up.
const MARKET_SIZE: f64 = 3.0;
/// How often a book that is too shallow is deepened instead.
const DEEPEN_SHARE: f64 = 0.5;
/// Orders of the flow that rest at a time, about.
const POPULATION: usize = 300;
/// How far limit orders lie from the other side's best, on average, as a share of the price.
const REACH: f64 = 0.000_4;
/// How far apart the levels of the first book are, on average: a thousand reach some 35 bps.
const SPACING: f64 = 0.000_003_5;
/// How strongly market orders drive the price back to where it began: a share of it away, so much less often.
const PULL: f64 = 20.0;

#[derive(Debug)]
pub struct Flow {
    random: fastrand::Rng,
    mean_pause: Duration,
    /// Its orders near the market; those that only give the book its depth are not among them.
    resting: IndexSet<OrderId>,
    levels: usize,
    listing: Listing,
}

impl Flow {
    pub fn new(listing: Listing, seed: u64, per_second: f64, levels: usize) -> Self {
        Self {
            random: fastrand::Rng::with_seed(seed),
            mean_pause: Duration::from_secs_f64(1.0 / per_second.clamp(0.000_1, 100_000.0)),
            resting: IndexSet::new(),
            levels,
            listing,
        }
    }

    /// Orders of the first book: `levels` prices a side.
    pub fn first_orders(&mut self) -> Vec<(Side, Price, Quantity)> {
        let mut orders = Vec::with_capacity(2 * self.levels);
        for side in [Side::Bid, Side::Ask] {
            let mut price = self.listing.price;
            for _ in 0..self.levels {
                price = self.further(side, price);
                if price < self.listing.symbol.tick {
                    break;
                }
                orders.push((side, price, self.quantity(3.0)));
            }
        }
        orders
    }

    fn further(&mut self, side: Side, price: Price) -> Price {
        let tick = self.listing.symbol.tick;
        let mean = price as f64 * SPACING / tick as f64;
        let ticks = 1 + (self.exponential() * (mean - 1.0).max(0.0)) as Price;
        match side {
            Side::Bid => price - ticks * tick,
            Side::Ask => price + ticks * tick,
        }
    }

    fn exponential(&mut self) -> f64 {
        -(1.0 - self.random.f64()).ln()
    }

    /// A quantity worth about `times` a typical order, at least what the exchange takes.
    fn quantity(&mut self, times: f64) -> Quantity {
        let step = self.listing.symbol.step;
        let price = i128::from(self.listing.price);
        let steps_of = |worth: i128| worth * UNIT / price / step;
        let typical = steps_of(self.listing.typical_order) as f64;
        let steps = (typical * times * self.exponential()) as i128;
        // Twice the minimum: worth enough even when the price has fallen.
        let least = steps_of(2 * self.listing.symbol.min_notional.unwrap_or(0)) + 1;
        steps.max(least) * step
    }

    pub fn next_pause(&mut self) -> Duration {
        self.mean_pause
            .mul_f64(self.exponential())
            .max(Duration::from_micros(1))
    }

    pub fn note_resting(&mut self, id: OrderId) {
        self.resting.insert(id);
    }

    /// An order was filled.
    pub fn forget(&mut self, id: OrderId) {
        self.resting.swap_remove(&id);
    }

    pub fn next_action(&mut self, book: &MatchingBook) -> Action {
        let thin = [Side::Bid, Side::Ask]
            .into_iter()
            .find(|side| book.level_count(*side) < self.levels * 9 / 10);
        if let Some(side) = thin
            && self.random.f64() < DEEPEN_SHARE
        {
            return self.deepen(side, book);
        }
        let draw = self.random.f64();
        if draw < MARKET_SHARE {
            return self.market_order(book);
        }
        let missing = 1.0 - self.resting.len() as f64 / POPULATION as f64;
        let limits = LIMIT_SHARE + (1.0 - MARKET_SHARE - LIMIT_SHARE) * missing.max(-1.0);
        if draw < MARKET_SHARE + limits {
            return self.limit_order(book);
        }
        let index = self.random.usize(..self.resting.len().max(1));
        match self.resting.swap_remove_index(index) {
            Some(id) => Action::Cancel(id),
            None => self.limit_order(book),
        }
    }

    /// A level behind the last one, so that the book keeps its depth.
    fn deepen(&mut self, side: Side, book: &MatchingBook) -> Action {
        let deepest = book.deepest(side).or_else(|| book.best(side.opposite()));
        let price = self.further(side, deepest.unwrap_or(self.listing.price));
        if price < self.listing.symbol.tick {
            return self.limit_order(book);
        }
        let quantity = self.quantity(3.0);
        Action::Deepen { side, price, quantity }
    }

    fn market_order(&mut self, book: &MatchingBook) -> Action {
        let mid = match (book.best(Side::Bid), book.best(Side::Ask)) {
            (Some(bid), Some(ask)) => (bid + ask) / 2,
            _ => self.listing.price,
        };
        let away = mid as f64 / self.listing.price as f64 - 1.0;
        let buys = 0.5 - (PULL * away).clamp(-0.4, 0.4);
        let side = if self.random.f64() < buys { Side::Bid } else { Side::Ask };
        let quantity = self.quantity(MARKET_SIZE);
        Action::Market { side, quantity }
    }

    fn limit_order(&mut self, book: &MatchingBook) -> Action {
        let side = if self.random.bool() { Side::Bid } else { Side::Ask };
        let tick = self.listing.symbol.tick;
        let opposite = book.best(side.opposite()).unwrap_or(self.listing.price);
        let mean_ticks = (opposite as f64 * REACH / tick as f64).max(1.5);
        let ticks = 1 + (self.exponential() * mean_ticks) as Price;
        let price = match side {
            Side::Bid => (opposite - ticks * tick).max(tick),
            Side::Ask => opposite + ticks * tick,
        };
        let quantity = self.quantity(1.0);
        Action::Limit { side, price, quantity }
    }
}
