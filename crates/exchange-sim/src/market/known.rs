//! How much of a book is known. A recorded snapshot ends somewhere, and what a recording lacks is not made up.

use super::levels::{Level, Levels, Side};
use crate::number::Price;

/// Sides of snapshots with exactly so many levels were cut there: these are the limits that clients ask for.
const ROUND_COUNTS: [usize; 8] = [5, 10, 20, 50, 100, 500, 1_000, 5_000];

/// Why there is no book to show, or no trades.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unknown {
    NoSnapshot,
    LaterSnapshot,
    /// Updates are missing since the last snapshot.
    Gap,
    /// The best prices have left the last snapshot, or nearly.
    BeyondReach,
    NoTrades,
    OnlyAggregates,
}

impl Unknown {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NoSnapshot => "the recording has no snapshot of this symbol",
            Self::LaterSnapshot => "the recording's first snapshot comes later",
            Self::Gap => "updates are missing in the recording; the next recorded snapshot mends it",
            Self::BeyondReach => "the recording does not know the book this far; the next recorded snapshot mends it",
            Self::NoTrades => "the recording has no trades of this symbol",
            Self::OnlyAggregates => "the recording has only aggregates of this symbol's trades; ask for aggTrades",
        }
    }
}

/// The worst price of each side that a cut snapshot had: beyond it only what changed since is known. A side without
/// one is known to its end.
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

    pub const fn is_cut(&self, side: Side) -> bool {
        match side {
            Side::Bid => self.bid.is_some(),
            Side::Ask => self.ask.is_some(),
        }
    }

    /// Whether the best level of a side, or that it is empty, is really known.
    pub fn includes_best(&self, levels: &Levels, side: Side) -> bool {
        match levels.best(side) {
            Some((price, _)) => self.includes(side, price),
            None => !self.is_cut(side),
        }
    }

    /// How many levels of a side can be told. Those of a cut side are a round number again, by which clients see that
    /// it is cut.
    pub fn count(&self, levels: &Levels, side: Side, limit: usize) -> Result<usize, Unknown> {
        if !self.is_cut(side) {
            return Ok(limit);
        }
        let known = match side {
            Side::Bid => self.count_included(side, levels.bids()),
            Side::Ask => self.count_included(side, levels.asks()),
        };
        let round = ROUND_COUNTS.into_iter().rev().find(|round| *round <= known);
        round.map(|round| round.min(limit)).ok_or(Unknown::BeyondReach)
    }

    fn count_included(&self, side: Side, levels: impl Iterator<Item = Level>) -> usize {
        levels.take_while(|(price, _)| self.includes(side, *price)).count()
    }
}

fn worst_if_cut(levels: impl Iterator<Item = Level>) -> Option<Price> {
    let (count, worst) = levels.fold((0, None), |(count, _), (price, _)| (count + 1, Some(price)));
    worst.filter(|_| ROUND_COUNTS.contains(&count))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bids at 100, 99, …; asks at 101, 102, ….
    fn book(bids: i64, asks: i64) -> Levels {
        let mut levels = Levels::standing_at(1);
        (0..bids).for_each(|index| levels.set(Side::Bid, 100 - index, 1));
        (0..asks).for_each(|index| levels.set(Side::Ask, 101 + index, 1));
        levels
    }

    #[test]
    fn a_round_number_of_levels_is_a_cut() {
        let levels = book(20, 19);
        let reach = Reach::of_snapshot(&levels);
        assert_eq!((reach.bid, reach.ask), (Some(81), None));
        assert_eq!(reach.count(&levels, Side::Bid, 5_000), Ok(20));
        assert_eq!(reach.count(&levels, Side::Bid, 7), Ok(7));
        assert_eq!(reach.count(&levels, Side::Ask, 5_000), Ok(5_000));
    }

    #[test]
    fn a_cut_side_is_told_in_round_numbers_until_too_little_is_left() {
        let mut levels = book(10, 3);
        let reach = Reach::of_snapshot(&levels);
        levels.set(Side::Bid, 50, 1);
        assert_eq!(
            reach.count(&levels, Side::Bid, 100),
            Ok(10),
            "one beyond the reach does not count"
        );
        levels.set(Side::Bid, 100, 0);
        assert_eq!(reach.count(&levels, Side::Bid, 100), Ok(5), "nine are left");
        (95..100).for_each(|price| levels.set(Side::Bid, price, 0));
        assert_eq!(
            reach.count(&levels, Side::Bid, 100),
            Err(Unknown::BeyondReach),
            "four are left"
        );
        assert!(reach.includes_best(&levels, Side::Bid));
        (91..95).for_each(|price| levels.set(Side::Bid, price, 0));
        assert!(!reach.includes_best(&levels, Side::Bid), "the best is the one at 50");
        levels.set(Side::Bid, 50, 0);
        assert!(!reach.includes_best(&levels, Side::Bid), "empty as far as it is known");
    }

    #[test]
    fn an_empty_side_of_a_whole_book_is_known_to_be_empty() {
        let levels = book(3, 0);
        assert!(Reach::of_snapshot(&levels).includes_best(&levels, Side::Ask));
    }

    proptest::proptest! {
        /// What is told is told in round numbers, lies within the reach and is never more than there is.
        #[test]
        fn nothing_beyond_the_reach_is_told(gone in proptest::collection::vec(0i64..60, 0..60), size in 0usize..8) {
            let size = ROUND_COUNTS[size].min(100);
            let mut levels = book(i64::try_from(size).expect("few"), 1);
            let reach = Reach::of_snapshot(&levels);
            gone.iter().for_each(|index| levels.set(Side::Bid, 100 - index, 0));
            levels.set(Side::Bid, 1, 1);
            if let Ok(count) = reach.count(&levels, Side::Bid, 5_000) {
                proptest::prop_assert!(ROUND_COUNTS.contains(&count));
                proptest::prop_assert!(levels.bids().take(count).count() == count);
                proptest::prop_assert!(levels.bids().take(count).all(|(price, _)| reach.includes(Side::Bid, price)));
            }
        }
    }
}
