//! Zero-intelligence order flow: random limit orders, cancellations and market orders. What it does depends on its seed
//! and the book alone.

use std::time::Duration;

use indexmap::IndexSet;

use super::catalogue::Listing;
use super::queues::{Incoming, OrderId};
use crate::market::levels::{Levels, Side};
use crate::number::{Price, Quantity};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    Submit {
        order: Incoming,
        /// It gives the book its depth and is never cancelled.
        is_kept: bool,
    },
    Cancel(OrderId),
}

/// The share of limit orders while the flow has as many resting orders as it should; the rest are cancellations. With
/// fewer orders, some cancellations become limit orders.
const LIMIT_SHARE: f64 = 0.45;
/// The size of market orders in typical orders: enough to go through several levels, but together no more than limit
/// orders bring, or the book would be eaten up.
const MARKET_SIZE: f64 = 3.0;
/// How often a book that is too shallow is deepened instead.
const DEEPEN_SHARE: f64 = 0.5;
/// Orders of the flow that rest at a time, about.
const POPULATION: usize = 300;
/// The mean distance of limit orders from the other side's best, as a share of the price.
const REACH: f64 = 0.000_4;
/// The mean distance between levels of the first book: a thousand levels reach some 35 bps.
const SPACING: f64 = 0.000_003_5;
/// How strongly market orders drive the price to the anchor: the change of the buyers' share per relative distance.
const PULL: f64 = 20.0;

/// The anchor's standard deviation in a minute with `BUSY_ORDERS` market orders.
const TREND: f64 = 0.000_23;
/// The noise of a minute's last price around the anchor, fitted to the flow.
const NOISE: f64 = 0.000_32;
/// The same of a coarse price grid, in ticks.
const TICK_NOISE: f64 = 1.15;
/// Prices move with this power of the number of market orders.
const RATE_POWER: f64 = 0.4;
const BUSY_ORDERS: f64 = 144.0;
/// Resting orders that a market order meets, fitted to the flow.
const FILLS_PER_ORDER: f64 = 3.9;

/// What a minute of the flow is like, by which the history before it is generated.
#[derive(Debug, Clone, Copy)]
pub struct Activity {
    /// Market orders.
    pub orders_per_minute: f64,
    /// The mean size of a market order, in steps.
    pub order_steps: f64,
    pub fills_per_order: f64,
    /// The standard deviation of the price's lasting move, as a share of the price.
    pub trend: f64,
    /// The standard deviation of the last price around that.
    pub noise: f64,
}

impl Activity {
    pub fn new(listing: &Listing, per_second: f64) -> Self {
        let orders_per_minute = 60.0 * per_second * listing.market_share;
        let rate = (orders_per_minute / BUSY_ORDERS).powf(RATE_POWER);
        let tick = listing.symbol.tick as f64 / listing.price as f64;
        Self {
            orders_per_minute,
            order_steps: MARKET_SIZE * listing.steps_worth(listing.typical_order) as f64,
            fills_per_order: FILLS_PER_ORDER,
            trend: TREND * rate,
            noise: NOISE.hypot(TICK_NOISE * tick) * rate,
        }
    }
}

#[derive(Debug)]
pub struct Flow {
    random: fastrand::Rng,
    per_second: f64,
    /// Its orders near the market, without those that only give the book its depth.
    resting: IndexSet<OrderId>,
    levels: usize,
    listing: Listing,
    /// The price to which market orders drive the market; it follows a random walk.
    anchor: f64,
    trend: f64,
}

impl Flow {
    pub fn new(listing: Listing, seed: u64, per_second: f64, levels: usize) -> Self {
        let per_second = per_second.clamp(0.000_1, 100_000.0);
        Self {
            random: fastrand::Rng::with_seed(seed),
            per_second,
            resting: IndexSet::new(),
            levels,
            anchor: listing.price as f64,
            trend: Activity::new(&listing, per_second).trend,
            listing,
        }
    }

    /// Levels that a side should have. Bids of a cheap symbol end at the first tick.
    fn target_levels(&self, side: Side) -> usize {
        let ticks = usize::try_from(self.listing.price / self.listing.symbol.tick).unwrap_or(usize::MAX);
        match side {
            Side::Bid => self.levels.min(ticks / 10 * 9),
            Side::Ask => self.levels,
        }
    }

    /// Orders of the first book.
    pub fn first_orders(&mut self) -> Vec<(Side, Price, Quantity)> {
        let mut orders = Vec::with_capacity(2 * self.levels);
        for side in Side::BOTH {
            let mut price = self.listing.price;
            for _ in 0..self.target_levels(side) {
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

    /// A quantity worth about `times` a typical order, and at least what the exchange accepts.
    fn quantity(&mut self, times: f64) -> Quantity {
        let typical = self.listing.steps_worth(self.listing.typical_order) as f64;
        let steps = (typical * times * self.exponential()) as i128;
        // Twice the minimum is enough even when the price has fallen.
        let least = self.listing.steps_worth(2 * self.listing.symbol.min_notional.unwrap_or(0)) + 1;
        steps.max(least) * self.listing.symbol.step
    }

    /// The time until the next action, in which the anchor moves too.
    pub fn next_pause(&mut self) -> Duration {
        let pause = Duration::from_secs_f64(self.exponential() / self.per_second).max(Duration::from_micros(1));
        // Three uniform variables less their mean have half the standard deviation of a normal one.
        let draw = 2.0 * (self.random.f64() + self.random.f64() + self.random.f64() - 1.5);
        self.anchor *= 1.0 + self.trend * (pause.as_secs_f64() / 60.0).sqrt() * draw;
        pause
    }

    pub fn note_resting(&mut self, id: OrderId) {
        self.resting.insert(id);
    }

    /// An order was filled.
    pub fn forget(&mut self, id: OrderId) {
        self.resting.swap_remove(&id);
    }

    pub fn next_action(&mut self, book: &Levels) -> Action {
        let thin = Side::BOTH.into_iter().find(|side| book.count(*side) < self.target_levels(*side) * 9 / 10);
        let market_share = self.listing.market_share;
        let draw = self.random.f64();
        if draw < market_share {
            return self.market_order(book);
        }
        if let Some(side) = thin
            && self.random.f64() < DEEPEN_SHARE
        {
            return self.deepen(side, book);
        }
        let missing = 1.0 - self.resting.len() as f64 / POPULATION as f64;
        let limits = LIMIT_SHARE + (1.0 - market_share - LIMIT_SHARE) * missing.max(-1.0);
        if draw < market_share + limits {
            return self.limit_order(book);
        }
        let index = self.random.usize(..self.resting.len().max(1));
        match self.resting.swap_remove_index(index) {
            Some(id) => Action::Cancel(id),
            None => self.limit_order(book),
        }
    }

    /// A level behind the last one, so that the book keeps its depth.
    fn deepen(&mut self, side: Side, book: &Levels) -> Action {
        let best = || Some(book.best(side.opposite())?.0);
        let deepest = book.worst(side).or_else(best);
        let price = self.further(side, deepest.unwrap_or(self.listing.price));
        if price < self.listing.symbol.tick {
            return self.limit_order(book);
        }
        let quantity = self.quantity(3.0);
        submit(side, Some(price), quantity, true)
    }

    fn market_order(&mut self, book: &Levels) -> Action {
        let mid = match book.top() {
            [Some((bid, _)), Some((ask, _))] => (bid + ask) as f64 / 2.0,
            _ => self.anchor,
        };
        let away = mid / self.anchor - 1.0;
        let buys = 0.5 - (PULL * away).clamp(-0.4, 0.4);
        let side = if self.random.f64() < buys { Side::Bid } else { Side::Ask };
        let quantity = self.quantity(MARKET_SIZE);
        submit(side, None, quantity, false)
    }

    fn limit_order(&mut self, book: &Levels) -> Action {
        let side = if self.random.bool() { Side::Bid } else { Side::Ask };
        let tick = self.listing.symbol.tick;
        let opposite = book.best(side.opposite()).map_or(self.listing.price, |(price, _)| price);
        let mean_ticks = (opposite as f64 * REACH / tick as f64).max(1.5);
        let ticks = 1 + (self.exponential() * mean_ticks) as Price;
        let price = match side {
            Side::Bid => (opposite - ticks * tick).max(tick),
            Side::Ask => opposite + ticks * tick,
        };
        let quantity = self.quantity(1.0);
        submit(side, Some(price), quantity, false)
    }
}

fn submit(side: Side, limit: Option<Price>, quantity: Quantity, is_kept: bool) -> Action {
    let order = Incoming { side, limit, quantity, rests: limit.is_some() };
    Action::Submit { order, is_kept }
}
