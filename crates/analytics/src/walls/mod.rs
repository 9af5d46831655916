//! Levels that are far larger than their neighbours and persist.

use std::collections::{BTreeMap, VecDeque};

use rust_decimal::Decimal;
use schemars::JsonSchema;
use serde::Serialize;

use crate::figure::{BookSide, Severity, Standing, Unavailable, bps, ratio, rounded, twice_median};
use crate::quotes::Touch;
use tribune_binance::{Depth, Level, Millis, Notional, Order, Price, Quantity, Side, Trade};

/// After a pause this long between views, persistence starts over.
const MOST_PAUSE_MS: Millis = 3_000;
/// Trades and books arrive on different streams: how long a trade may arrive after the level it filled is gone.
const GRACE_MS: Millis = 1_000;
/// A side with fewer levels has no meaningful median.
const MIN_LEVELS: usize = 20;
/// Walls listed per side, and vanished ones in total.
const MOST_LISTED: usize = 10;

/// When a level is a wall. All three conditions must hold: of levels at ten times the median, half live under 0.3 s.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct WallRules {
    pub times_median: u32,
    pub persistence_ms: Millis,
    /// In the quote asset, so it depends on the symbol.
    pub floor_quote: Notional,
    /// The best levels of each side that are looked at, and whose median it is.
    pub levels: usize,
}

impl Default for WallRules {
    fn default() -> Self {
        Self { times_median: 10, persistence_ms: 5_000, floor_quote: Notional::ZERO, levels: 500 }
    }
}

impl WallRules {
    fn persisted(&self, large: &Large, now: Millis) -> bool {
        now.saturating_sub(large.since) >= self.persistence_ms
    }

    fn is_large(&self, level: &Level, twice_median: i128) -> Option<bool> {
        let least = twice_median.checked_mul(i128::from(self.times_median))?;
        let is_heavy = level.price.times(level.quantity)? >= self.floor_quote;
        Some(is_heavy && level.quantity.units().checked_mul(2)? >= least)
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Wall {
    pub side: BookSide,
    pub price: Price,
    pub quantity_base: Quantity,
    pub notional_quote: Notional,
    pub times_median: Option<f64>,
    /// Signed: below zero is below the mid.
    pub distance_bps: Option<f64>,
    /// How long it has been there without a break.
    pub age_ms: Millis,
    pub views: u32,
    /// By size: high from 50 times the median, medium from 20.
    pub severity: Severity,
}

/// A wall that was gone from one view to the next, while almost nothing traded at its price.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Vanished {
    pub side: BookSide,
    pub price: Price,
    pub quantity_base: Quantity,
    pub traded_base: Quantity,
    pub lived_ms: Millis,
    pub time_ms: Millis,
}

#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Walls {
    pub rules: WallRules,
    /// How long the book has been watched without a break.
    pub watched_ms: Millis,
    pub bid_levels_used: usize,
    pub ask_levels_used: usize,
    pub bid_median_base: Option<Quantity>,
    pub ask_median_base: Option<Quantity>,
    /// Largest first.
    pub walls: Vec<Wall>,
    /// Large levels that vanished untraded, newest first: an observation, whose reason cannot be known.
    pub vanished_untraded: Vec<Vanished>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<Unavailable>,
    pub standing: Standing,
    pub note: &'static str,
}

impl Walls {
    pub fn vanished_since(&self, since: Millis) -> impl Iterator<Item = &Vanished> {
        self.vanished_untraded.iter().filter(move |gone| gone.time_ms > since)
    }
}

#[derive(Debug, Clone, Copy)]
struct Large {
    quantity: Quantity,
    traded: Quantity,
    since: Millis,
    views: u32,
}

/// One side of the book in the last view.
#[derive(Debug, Clone, Default)]
struct Watched {
    large: BTreeMap<Price, Large>,
    levels: usize,
    twice_median: Option<i128>,
}

/// Fed with views of one book in order of time.
#[derive(Debug, Clone, Default)]
pub struct WallTracker {
    rules: WallRules,
    /// Bids and asks.
    sides: [Watched; 2],
    /// Vanished, but a late trade may yet explain it.
    gone: Vec<Vanished>,
    vanished: VecDeque<Vanished>,
    started: Millis,
    last: Option<(Millis, Decimal)>,
}

impl WallTracker {
    /// Sets the smallest notional of a wall; zero until then.
    pub fn set_floor(&mut self, floor_quote: Notional) {
        self.rules.floor_quote = floor_quote;
    }

    /// Starts over after the book was fetched again; walls that vanished before are still listed.
    pub fn reset(&mut self) {
        self.sides = <[Watched; 2]>::default();
        self.gone.clear();
        self.last = None;
    }

    /// `trades` are all trades since the last view. An invalid book ends the watch.
    pub fn observe(&mut self, depth: &Depth, trades: &[Trade], time: Millis) {
        let Ok(touch) = Touch::of(depth) else { return self.reset() };
        let unbroken = |(last, _): (Millis, Decimal)| last <= time && time.saturating_sub(last) <= MOST_PAUSE_MS;
        if !self.last.is_some_and(unbroken) {
            self.reset();
            self.started = time;
        }
        self.last = Some((time, touch.mid()));
        trades.iter().for_each(|trade| self.count(trade));
        self.settle(time);
        self.watch(BookSide::Bid, &depth.bids, time);
        self.watch(BookSide::Ask, &depth.asks, time);
    }

    fn watch<O: Order>(&mut self, which: BookSide, side: &Side<O>, time: Millis) {
        let rules = self.rules;
        let levels: Vec<Level> = side.known().take(rules.levels).collect();
        let watched = &mut self.sides[which as usize];
        watched.levels = levels.len();
        let sizes = levels.iter().map(|level| level.quantity);
        watched.twice_median = (levels.len() >= MIN_LEVELS).then(|| twice_median(sizes.collect())).flatten();
        let mut before = std::mem::take(&mut watched.large);
        let Some(twice_median) = watched.twice_median else { return };
        for level in levels.iter().filter(|level| rules.is_large(level, twice_median) == Some(true)) {
            let new = Large { quantity: level.quantity, traded: Quantity::ZERO, since: time, views: 0 };
            let known = before.remove(&level.price).unwrap_or(new);
            let large = Large { quantity: level.quantity, views: known.views.saturating_add(1), ..known };
            watched.large.insert(level.price, large);
        }
        // A smaller level is not gone, and a level beyond the watched range is not known to be.
        let is_whole = levels.len() == side.len() && side.reach.is_none();
        let is_seen = |price| is_whole || levels.last().is_some_and(|worst| O::better(price, worst.price).is_ge());
        let lost = before.into_iter().filter(|(_, large)| rules.persisted(large, time));
        let gone = lost.filter(|(price, _)| side.lookup(*price).is_none() && is_seen(*price));
        self.gone.extend(gone.map(|(price, large)| Vanished {
            side: which,
            price,
            quantity_base: large.quantity,
            traded_base: large.traded,
            lived_ms: time.saturating_sub(large.since),
            time_ms: time,
        }));
    }

    fn count(&mut self, trade: &Trade) {
        let side = BookSide::hit_by(trade.aggressor);
        let large = self.sides[side as usize].large.get_mut(&trade.price).map(|large| &mut large.traded);
        let gone = self.gone.iter_mut().filter(|gone| gone.side == side && gone.price == trade.price);
        for traded in large.into_iter().chain(gone.map(|gone| &mut gone.traded_base)) {
            *traded = Quantity::from_units(traded.units().saturating_add(trade.quantity.units()));
        }
    }

    /// Reports walls gone for so long that no late trade will explain it.
    fn settle(&mut self, time: Millis) {
        let is_settled = |gone: &mut Vanished| time.saturating_sub(gone.time_ms) >= GRACE_MS;
        for gone in self.gone.extract_if(.., is_settled) {
            if gone.traded_base.units().saturating_mul(10) < gone.quantity_base.units() {
                self.vanished.push_front(gone);
            }
        }
        self.vanished.truncate(MOST_LISTED);
    }

    /// The walls of the last view.
    pub fn walls(&self) -> Walls {
        let (now, mid) = self.last.unwrap_or_default();
        let [bids, asks] = &self.sides;
        let mut walls = self.of_side(bids, BookSide::Bid, now, mid);
        walls.extend(self.of_side(asks, BookSide::Ask, now, mid));
        walls.sort_by_key(|wall| std::cmp::Reverse(wall.notional_quote));
        let too_few = |side: &Watched| side.twice_median.is_none().then_some(side.levels);
        let few = too_few(bids).or(too_few(asks));
        let median = |side: &Watched| side.twice_median.map(|twice| Quantity::from_units(twice / 2));
        Walls {
            rules: self.rules,
            watched_ms: self.last.map_or(0, |(now, _)| now.saturating_sub(self.started)),
            bid_levels_used: bids.levels,
            ask_levels_used: asks.levels,
            bid_median_base: median(bids),
            ask_median_base: median(asks),
            walls,
            vanished_untraded: self.vanished.iter().cloned().collect(),
            reason: few.map(|have| Unavailable::TooFew { what: "levels", have, need: MIN_LEVELS }),
            standing: Standing::Hint,
            note: "resting orders can be cancelled at any moment; most large levels are",
        }
    }

    fn of_side(&self, watched: &Watched, side: BookSide, now: Millis, mid: Decimal) -> Vec<Wall> {
        let standing = watched.large.iter().filter(|(_, large)| self.rules.persisted(large, now));
        let result = standing.filter_map(|(&price, large)| {
            let times = watched.twice_median.and_then(|twice| ratio(large.quantity.units().checked_mul(2)?, twice));
            Some(Wall {
                side,
                price,
                quantity_base: large.quantity,
                notional_quote: price.times(large.quantity)?,
                times_median: times,
                distance_bps: bps(price.decimal().checked_sub(mid)?, mid).and_then(rounded),
                age_ms: now.saturating_sub(large.since),
                views: large.views,
                severity: Severity::by_size(times.unwrap_or(0.0), 20.0, 50.0),
            })
        });
        let mut walls: Vec<_> = result.collect();
        walls.sort_by_key(|wall| std::cmp::Reverse(wall.notional_quote));
        walls.truncate(MOST_LISTED);
        walls
    }
}

#[cfg(test)]
mod tests;
