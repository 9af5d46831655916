//! One side of a book: prices and what rests there.

use std::cmp::Ordering;
use std::marker::PhantomData;

use serde::Deserialize;

use crate::number::{Price, Quantity};

/// Which way a side is ordered.
pub trait Order: Copy + Default + Send + Sync + 'static {
    /// `Greater` if `a` is the better price.
    fn better(a: Price, b: Price) -> Ordering;
}

/// The highest price is best.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Bids;

/// The lowest price is best.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Asks;

impl Order for Bids {
    fn better(a: Price, b: Price) -> Ordering {
        a.cmp(&b)
    }
}

impl Order for Asks {
    fn better(a: Price, b: Price) -> Ordering {
        b.cmp(&a)
    }
}

/// The exchange writes it as a pair: `["97123.45","0.5"]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(expecting = "a price and a quantity")]
pub struct Level {
    pub price: Price,
    pub quantity: Quantity,
}

/// The numbers of levels at which the exchange cuts snapshots.
const CUTS: [usize; 8] = [5, 10, 20, 50, 100, 500, 1_000, 5_000];

/// Levels with the best one last: most changes are near the best price and move little memory there.
/// Prices and quantities apart, so that looking for a price touches only prices.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Side<O: Order> {
    prices: Vec<Price>,
    quantities: Vec<Quantity>,
    /// The worst price up to which every level is known; `None` if all are. A level beyond it may be missing: the snapshot
    /// did not extend that far. Whatever is summed beyond it is a lower bound and must be labelled as one.
    pub reach: Option<Price>,
    order: PhantomData<O>,
}

impl<O: Order> Default for Side<O> {
    fn default() -> Self {
        Self { prices: Vec::new(), quantities: Vec::new(), reach: None, order: PhantomData }
    }
}

impl<O: Order> Side<O> {
    /// Of a snapshot's levels, best first: known to its end, if it was cut there. A side that has exactly as many levels as
    /// snapshots are cut at is taken to be cut: a recording or a proxy may give fewer than were asked for.
    pub(super) fn of_snapshot(levels: Vec<Level>, limit: usize) -> Self {
        let is_cut = levels.len() >= limit || CUTS.contains(&levels.len());
        let reach = levels.last().filter(|_| is_cut).map(|level| level.price);
        // Worst first, so that each is set where the best end is.
        Self { reach, ..levels.into_iter().rev().collect() }
    }

    /// Sets the quantity at a price; zero removes the level. Removing an absent level is normal.
    pub fn set(&mut self, level: Level) {
        match self.find(level.price) {
            Ok(at) if level.quantity.is_zero() => {
                self.prices.remove(at);
                self.quantities.remove(at);
            }
            Ok(at) => self.quantities[at] = level.quantity,
            Err(_) if level.quantity.is_zero() => {}
            Err(at) => {
                self.prices.insert(at, level.price);
                self.quantities.insert(at, level.quantity);
            }
        }
    }

    /// Most changes are at the best prices, so the search starts there and doubles its stride.
    fn find(&self, price: Price) -> Result<usize, usize> {
        let len = self.prices.len();
        let mut stride = 1;
        let mut low = len;
        while low > 0 {
            low = len.saturating_sub(stride);
            if O::better(self.prices[low], price) != Ordering::Greater {
                break;
            }
            stride *= 2;
        }
        let high = len.saturating_sub(stride / 2);
        self.prices[low..high].binary_search_by(|at| O::better(*at, price)).map(|at| at + low).map_err(|at| at + low)
    }

    pub fn lookup(&self, price: Price) -> Option<Quantity> {
        self.find(price).ok().map(|at| self.quantities[at])
    }

    pub fn best(&self) -> Option<Level> {
        self.iter().next()
    }

    /// Best first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Level> + ExactSizeIterator + Clone + '_ {
        let both = self.prices.iter().zip(&self.quantities).rev();
        both.map(|(&price, &quantity)| Level { price, quantity })
    }

    /// Levels without a gap, best first.
    pub fn known(&self) -> impl Iterator<Item = Level> + Clone + '_ {
        let is_known = |level: &Level| self.reach.is_none_or(|reach| O::better(level.price, reach).is_ge());
        self.iter().take_while(is_known)
    }

    /// Whether the best price lies where levels may be missing: a better one may be among them.
    pub fn is_exhausted(&self) -> bool {
        self.reach.is_some() && self.known().next().is_none()
    }

    pub fn len(&self) -> usize {
        self.prices.len()
    }

    pub fn is_empty(&self) -> bool {
        self.prices.is_empty()
    }

    /// Drops the worst levels beyond `most`; the reach then ends before them.
    pub fn prune(&mut self, most: usize) {
        if self.len() <= most {
            return;
        }
        let excess = self.len() - most;
        self.prices.drain(..excess);
        self.quantities.drain(..excess);
        let worst = self.prices.first().copied();
        self.reach = worst.into_iter().chain(self.reach).max_by(|a, b| O::better(*a, *b));
    }
}

impl<O: Order> FromIterator<Level> for Side<O> {
    /// In any order; of a price that is given twice the last counts.
    fn from_iter<I: IntoIterator<Item = Level>>(levels: I) -> Self {
        let mut side = Self::default();
        for level in levels {
            side.set(level);
        }
        side
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn side_behaves_like_a_map(changes in proptest::collection::vec((1..40i64, 0..5i128), 0..200)) {
            let mut bids = Side::<Bids>::default();
            let mut asks = Side::<Asks>::default();
            let mut map = BTreeMap::new();
            for (price, quantity) in changes {
                let level = Level { price: Price::from_units(price), quantity: Quantity::from_units(quantity) };
                bids.set(level);
                asks.set(level);
                if quantity == 0 { map.remove(&price); } else { map.insert(price, quantity); }
                prop_assert_eq!(bids.lookup(level.price).map(Quantity::units), map.get(&price).copied());
            }
            let units = |level: Level| (level.price.units(), level.quantity.units());
            prop_assert!(asks.iter().map(units).eq(map.iter().map(|(p, q)| (*p, *q))));
            prop_assert!(bids.iter().map(units).eq(map.iter().rev().map(|(p, q)| (*p, *q))));
            let best: Vec<_> = bids.iter().take(3).collect();
            bids.prune(3);
            prop_assert_eq!(bids.iter().collect::<Vec<_>>(), best);
        }
    }
}
