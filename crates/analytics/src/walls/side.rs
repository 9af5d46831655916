//! One side of a book, watched for large levels.

use std::collections::BTreeMap;
use std::marker::PhantomData;

use super::WallRules;
use tribune_binance::book::{Level, Order, Side};
use tribune_binance::model::Millis;
use tribune_binance::number::{Price, Quantity};

/// A side with fewer levels has no meaningful median.
pub const MIN_LEVELS: usize = 20;

#[derive(Debug, Clone, Copy)]
pub(super) struct Large {
    pub(super) quantity: Quantity,
    pub(super) traded: Quantity,
    pub(super) since: Millis,
    pub(super) views: u32,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Watched {
    pub(super) large: BTreeMap<Price, Large>,
    pub(super) levels: usize,
    pub(super) twice_median: Option<i128>,
}

impl WallRules {
    pub(super) fn persisted(&self, large: &Large, now: Millis) -> bool {
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

/// The watched levels of a side.
pub(super) struct Looked<O> {
    levels: Vec<Level>,
    worst: Option<Price>,
    /// Whether these are all levels of the side.
    whole: bool,
    order: PhantomData<O>,
}

impl<O: Order> Looked<O> {
    pub(super) fn at(side: &Side<O>, reach: Option<Price>, most: usize) -> Self {
        let levels: Vec<_> = side.known(reach).take(most).collect();
        Self {
            worst: levels.last().map(|level| level.price),
            whole: levels.len() == side.len() && reach.is_none(),
            levels,
            order: PhantomData,
        }
    }

    /// Whether a level at this price would have been seen.
    pub(super) fn sees(&self, price: Price) -> bool {
        self.whole || self.worst.is_some_and(|worst| O::better(price, worst).is_ge())
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
    /// Takes a view; returns the levels that were large before and no longer are.
    pub(super) fn update<O: Order>(
        &mut self,
        looked: &Looked<O>,
        rules: &WallRules,
        time: Millis,
    ) -> BTreeMap<Price, Large> {
        let mut before = std::mem::take(&mut self.large);
        self.levels = looked.levels.len();
        self.twice_median = looked.twice_median();
        let Some(twice_median) = self.twice_median else {
            return BTreeMap::new();
        };
        for level in looked.levels.iter().filter(|level| rules.is_large(level, twice_median)) {
            let mut large = before.remove(&level.price).unwrap_or(Large {
                quantity: level.quantity,
                traded: Quantity::ZERO,
                since: time,
                views: 0,
            });
            large.quantity = level.quantity;
            large.views = large.views.saturating_add(1);
            self.large.insert(level.price, large);
        }
        before
    }
}
