//! How far a recorded book is known. A snapshot that its `limit` cut off says nothing about prices beyond its worst.

use super::levels::{Level, Levels, Side};
use crate::number::Price;

/// Limits that clients ask for: a side with exactly this many levels was cut off there.
const LIMITS: [usize; 8] = [5, 10, 20, 50, 100, 500, 1_000, 5_000];

/// The worst known price of each side; `None` if the side is known to its end.
#[derive(Debug, Clone, Copy, Default)]
pub struct Reach {
    bid: Option<Price>,
    ask: Option<Price>,
}

impl Reach {
    pub fn of_snapshot(levels: &Levels) -> Self {
        Self {
            bid: worst_if_cut(levels.bids()),
            ask: worst_if_cut(levels.asks()),
        }
    }

    fn includes(&self, side: Side, price: Price) -> bool {
        match side {
            Side::Bid => self.bid.is_none_or(|worst| price >= worst),
            Side::Ask => self.ask.is_none_or(|worst| price <= worst),
        }
    }

    const fn is_cut(&self, side: Side) -> bool {
        match side {
            Side::Bid => self.bid.is_some(),
            Side::Ask => self.ask.is_some(),
        }
    }

    /// Whether the best level of a side, or that the side is empty, is certain.
    pub fn includes_best(&self, levels: &Levels, side: Side) -> bool {
        match levels.best(side) {
            Some((price, _)) => self.includes(side, price),
            None => !self.is_cut(side),
        }
    }

    /// How many levels of a side can be shown; `None` if too few are known. A cut side shows one of the limits again,
    /// by which clients recognise the cut.
    pub fn count(&self, levels: &Levels, side: Side, limit: usize) -> Option<usize> {
        if !self.is_cut(side) {
            return Some(limit);
        }
        let known = match side {
            Side::Bid => levels
                .bids()
                .take_while(|(price, _)| self.includes(side, *price))
                .count(),
            Side::Ask => levels
                .asks()
                .take_while(|(price, _)| self.includes(side, *price))
                .count(),
        };
        LIMITS
            .into_iter()
            .rev()
            .find(|cut| *cut <= known)
            .map(|cut| cut.min(limit))
    }
}

fn worst_if_cut(levels: impl Iterator<Item = Level>) -> Option<Price> {
    let (count, worst) = levels.fold((0, None), |(count, _), (price, _)| (count + 1, Some(price)));
    worst.filter(|_| LIMITS.contains(&count))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bids at 100, 99, …; asks at 101, 102, ….
    fn book(bids: i64, asks: i64) -> Levels {
        let mut levels = Levels::at_update(1);
        (0..bids).for_each(|index| levels.set(Side::Bid, 100 - index, 1));
        (0..asks).for_each(|index| levels.set(Side::Ask, 101 + index, 1));
        levels
    }

    #[test]
    fn round_number_of_levels_is_a_cut() {
        let levels = book(20, 19);
        let reach = Reach::of_snapshot(&levels);
        assert_eq!((reach.bid, reach.ask), (Some(81), None));
        assert_eq!(reach.count(&levels, Side::Bid, 5_000), Some(20));
        assert_eq!(reach.count(&levels, Side::Bid, 7), Some(7));
        assert_eq!(reach.count(&levels, Side::Ask, 5_000), Some(5_000));
    }

    #[test]
    fn cut_side_shrinks_to_the_next_limit() {
        let mut levels = book(10, 3);
        let reach = Reach::of_snapshot(&levels);
        levels.set(Side::Bid, 50, 1);
        assert_eq!(
            reach.count(&levels, Side::Bid, 100),
            Some(10),
            "beyond the reach does not count"
        );
        levels.set(Side::Bid, 100, 0);
        assert_eq!(reach.count(&levels, Side::Bid, 100), Some(5));
        (95..100).for_each(|price| levels.set(Side::Bid, price, 0));
        assert_eq!(reach.count(&levels, Side::Bid, 100), None, "four are left");
        assert!(reach.includes_best(&levels, Side::Bid));
        (91..95).for_each(|price| levels.set(Side::Bid, price, 0));
        assert!(
            !reach.includes_best(&levels, Side::Bid),
            "the best bid may be one that was never seen"
        );
        assert!(reach.includes_best(&levels, Side::Ask));
    }
}
