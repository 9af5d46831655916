//! Levels that are far larger than their neighbours, and stay.

use std::collections::{BTreeMap, VecDeque};

use rust_decimal::Decimal;
use serde::Serialize;

use super::figure::{BookSide, Severity, Standing, Unavailable, bps, quotient, rounded};
use super::quotes::Touch;
use crate::book::{Depth, Level};
use crate::model::{Millis, Trade};
use crate::number::{Notional, Price, Quantity};

/// A side with fewer levels has no median worth the name.
pub const MIN_LEVELS: usize = 20;
/// After a pause this long between views nothing is known to have stayed.
const MOST_PAUSE_MS: Millis = 3_000;
/// Trades and books come on different streams: so long a trade may come after the level it ate.
const GRACE_MS: Millis = 1_000;
/// Walls told for each side, and vanished ones altogether.
const MOST_TOLD: usize = 10;

/// When a level is a wall. All three must hold: at ten times the median alone half live under 0.3 s.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct WallRules {
    pub times_median: u32,
    pub persistence_ms: Millis,
    /// In the quote asset, so it depends on the symbol.
    pub floor_quote: Notional,
    /// The best levels of each side that are looked at, and whose median it is.
    pub levels: usize,
}

impl WallRules {
    pub const fn with_floor(floor_quote: Notional) -> Self {
        Self {
            times_median: 10,
            persistence_ms: 5_000,
            floor_quote,
            levels: 500,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Wall {
    pub side: BookSide,
    pub price: Price,
    pub quantity_base: Quantity,
    pub quote: Notional,
    pub times_median: Option<f64>,
    /// Signed: below zero is below the mid.
    pub distance_bps: Option<f64>,
    /// How long it has been there without a break.
    pub age_ms: Millis,
    pub views: u32,
    /// By size: high from 50 times the median, medium from 20.
    pub severity: Severity,
}

/// A wall that was there in one view and gone in the next, while next to nothing traded at its price.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Vanished {
    pub side: BookSide,
    pub price: Price,
    pub quantity_base: Quantity,
    pub traded_base: Quantity,
    pub lived_ms: Millis,
    pub time_ms: Millis,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
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

#[derive(Debug, Clone, Copy)]
struct Large {
    quantity: Quantity,
    traded: Quantity,
    since: Millis,
    views: u32,
}

#[derive(Debug, Clone, Default)]
struct Watched {
    large: BTreeMap<Price, Large>,
    levels: usize,
    twice_median: Option<i128>,
}

#[derive(Debug, Clone)]
struct Gone {
    side: BookSide,
    price: Price,
    large: Large,
    at: Millis,
}

/// Fed with views of one book in order of time.
#[derive(Debug, Clone)]
pub struct WallTracker {
    rules: WallRules,
    bids: Watched,
    asks: Watched,
    /// Vanished, but a late trade may yet explain it.
    gone: Vec<Gone>,
    vanished: VecDeque<Vanished>,
    started: Millis,
    last: Option<(Millis, Decimal)>,
}

impl WallTracker {
    pub fn new(rules: WallRules) -> Self {
        Self {
            rules,
            bids: Watched::default(),
            asks: Watched::default(),
            gone: Vec::new(),
            vanished: VecDeque::new(),
            started: 0,
            last: None,
        }
    }

    /// Forgets what it was watching: the book was fetched again. What vanished before stays told.
    pub fn reset(&mut self) {
        self.bids = Watched::default();
        self.asks = Watched::default();
        self.gone.clear();
        self.last = None;
    }

    /// `trades` are all that came since the last view. A book that is not valid ends the watch.
    pub fn observe(&mut self, depth: &Depth, trades: &[Trade], time: Millis) -> Result<(), Unavailable> {
        let touch = Touch::of(depth).inspect_err(|_| self.reset())?;
        let unbroken = |(last, _): (Millis, Decimal)| last <= time && time.saturating_sub(last) <= MOST_PAUSE_MS;
        if !self.last.is_some_and(unbroken) {
            self.reset();
            self.started = time;
        }
        self.last = Some((time, touch.mid()));
        trades.iter().for_each(|trade| self.count(trade));
        self.settle(time);
        let bids = Looked::at(depth.bids.iter(), self.rules.levels, |price| {
            depth.bid_reach.is_none_or(|reach| price >= reach)
        });
        let asks = Looked::at(depth.asks.iter(), self.rules.levels, |price| {
            depth.ask_reach.is_none_or(|reach| price <= reach)
        });
        let lost_bids = self.bids.update(&bids, &self.rules, time);
        let lost_asks = self.asks.update(&asks, &self.rules, time);
        // A level that is further away than was looked is out of sight, not gone.
        let lost_bids = lost_bids
            .into_iter()
            .filter(|(price, _)| bids.whole || bids.worst.is_some_and(|worst| worst <= *price))
            .filter(|(price, _)| depth.bids.lookup(*price).is_none())
            .map(|lost| (BookSide::Bid, lost));
        let lost_asks = lost_asks
            .into_iter()
            .filter(|(price, _)| asks.whole || asks.worst.is_some_and(|worst| *price <= worst))
            .filter(|(price, _)| depth.asks.lookup(*price).is_none())
            .map(|lost| (BookSide::Ask, lost));
        let walls = lost_bids
            .chain(lost_asks)
            .filter(|(_, (_, large))| self.rules.persisted(large, time));
        self.gone.extend(walls.map(|(side, (price, large))| Gone {
            side,
            price,
            large,
            at: time,
        }));
        Ok(())
    }

    fn count(&mut self, trade: &Trade) {
        let side = BookSide::hit_by(trade.aggressor);
        let watched = match side {
            BookSide::Bid => &mut self.bids,
            BookSide::Ask => &mut self.asks,
        };
        let gone = self
            .gone
            .iter_mut()
            .filter(|gone| gone.side == side && gone.price == trade.price);
        let large = watched.large.get_mut(&trade.price).into_iter();
        for large in large.chain(gone.map(|gone| &mut gone.large)) {
            let sum = large.traded.units().saturating_add(trade.quantity.units());
            large.traded = Quantity::from_units(sum);
        }
    }

    /// Tells of what has been gone long enough that no trade will explain it.
    fn settle(&mut self, time: Millis) {
        let (settled, waiting) = std::mem::take(&mut self.gone)
            .into_iter()
            .partition(|gone| time.saturating_sub(gone.at) >= GRACE_MS);
        self.gone = waiting;
        let untraded = |gone: &Gone| gone.large.traded.units().saturating_mul(10) < gone.large.quantity.units();
        for gone in Vec::into_iter(settled).filter(untraded) {
            self.vanished.push_front(Vanished {
                side: gone.side,
                price: gone.price,
                quantity_base: gone.large.quantity,
                traded_base: gone.large.traded,
                lived_ms: gone.at.saturating_sub(gone.large.since),
                time_ms: gone.at,
            });
        }
        self.vanished.truncate(MOST_TOLD);
    }

    /// What stands at the last view.
    pub fn walls(&self) -> Walls {
        let (now, mid) = self.last.unwrap_or_default();
        let mut walls = self.of_side(&self.bids, BookSide::Bid, now, mid);
        walls.extend(self.of_side(&self.asks, BookSide::Ask, now, mid));
        walls.sort_by_key(|wall| std::cmp::Reverse(wall.quote));
        let too_few = |side: &Watched| side.twice_median.is_none().then_some(side.levels);
        let few = too_few(&self.bids).or(too_few(&self.asks));
        let median = |side: &Watched| side.twice_median.map(|twice| Quantity::from_units(twice / 2));
        Walls {
            rules: self.rules,
            watched_ms: self.last.map_or(0, |(now, _)| now.saturating_sub(self.started)),
            bid_levels_used: self.bids.levels,
            ask_levels_used: self.asks.levels,
            bid_median_base: median(&self.bids),
            ask_median_base: median(&self.asks),
            walls,
            vanished_untraded: self.vanished.iter().cloned().collect(),
            reason: few.map(|have| Unavailable::TooFew {
                what: "levels",
                have,
                need: MIN_LEVELS,
            }),
            standing: Standing::Hint,
            note: "resting orders can be taken away at any moment; most large levels are",
        }
    }

    fn of_side(&self, watched: &Watched, side: BookSide, now: Millis, mid: Decimal) -> Vec<Wall> {
        let standing = watched
            .large
            .iter()
            .filter(|(_, large)| self.rules.persisted(large, now));
        let told = standing.filter_map(|(&price, large)| {
            let times = watched
                .twice_median
                .and_then(|twice| quotient(large.quantity.units().checked_mul(2)?, twice))
                .and_then(rounded);
            Some(Wall {
                side,
                price,
                quantity_base: large.quantity,
                quote: price.times(large.quantity)?,
                times_median: times,
                distance_bps: bps(price.decimal().checked_sub(mid)?, mid).and_then(rounded),
                age_ms: now.saturating_sub(large.since),
                views: large.views,
                severity: match times {
                    Some(times) if times >= 50.0 => Severity::High,
                    Some(times) if times >= 20.0 => Severity::Medium,
                    _ => Severity::Low,
                },
            })
        });
        let mut walls: Vec<_> = told.collect();
        walls.sort_by_key(|wall| std::cmp::Reverse(wall.quote));
        walls.truncate(MOST_TOLD);
        walls
    }
}

impl WallRules {
    fn persisted(&self, large: &Large, now: Millis) -> bool {
        now.saturating_sub(large.since) >= self.persistence_ms
    }

    fn is_large(&self, level: &Level, twice_median: i128) -> bool {
        let large = || {
            let twice = level.quantity.units().checked_mul(2)?;
            Some(twice >= twice_median.checked_mul(i128::from(self.times_median))?)
        };
        let heavy = || Some(level.price.times(level.quantity)? >= self.floor_quote);
        large() == Some(true) && heavy() == Some(true)
    }
}

/// The levels of a side that are looked at.
struct Looked {
    levels: Vec<Level>,
    worst: Option<Price>,
    /// Whether that is all of the side, and all of it is known.
    whole: bool,
}

impl Looked {
    fn at(side: impl ExactSizeIterator<Item = Level>, most: usize, known: impl Fn(Price) -> bool) -> Self {
        let all = side.len();
        let levels: Vec<_> = side.take(most).take_while(|level| known(level.price)).collect();
        Self {
            worst: levels.last().map(|level| level.price),
            whole: levels.len() == all && known(Price::default()) && known(Price::from_units(i64::MAX)),
            levels,
        }
    }

    fn twice_median(&self) -> Option<i128> {
        if self.levels.len() < MIN_LEVELS {
            return None;
        }
        let mut sizes: Vec<_> = self.levels.iter().map(|level| level.quantity.units()).collect();
        sizes.sort_unstable();
        sizes[sizes.len() / 2].checked_add(sizes[(sizes.len() - 1) / 2])
    }
}

impl Watched {
    /// Takes in a view; gives what was large before and is not any more.
    fn update(&mut self, looked: &Looked, rules: &WallRules, time: Millis) -> BTreeMap<Price, Large> {
        let mut before = std::mem::take(&mut self.large);
        self.levels = looked.levels.len();
        self.twice_median = looked.twice_median();
        let Some(twice_median) = self.twice_median else {
            return BTreeMap::new();
        };
        for level in looked.levels.iter().filter(|level| rules.is_large(level, twice_median)) {
            let kept = before.remove(&level.price);
            let large = Large {
                quantity: level.quantity,
                traded: kept.map_or(Quantity::ZERO, |kept| kept.traded),
                since: kept.map_or(time, |kept| kept.since),
                views: kept.map_or(1, |kept| kept.views.saturating_add(1)),
            };
            self.large.insert(level.price, large);
        }
        before
    }
}

#[cfg(test)]
#[path = "walls_tests.rs"]
mod tests;
