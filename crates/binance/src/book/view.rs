//! A book at one moment, for readers.

use super::{Asks, Bids, Level, Side, Snapshot};
use crate::number::Price;

/// Both sides of a book after the same update, and how far they can be trusted.
///
/// A level outside a side's reach may be missing: the snapshot did not extend that far. Whatever is
/// summed beyond it is a lower bound and must be labelled as one.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Depth {
    pub bids: Side<Bids>,
    pub asks: Side<Asks>,
    /// The lowest bid price down to which every level is known; `None` if all are.
    pub bid_reach: Option<Price>,
    /// The highest ask price up to which every level is known; `None` if all are.
    pub ask_reach: Option<Price>,
}

impl Depth {
    /// Of listed levels, best first: nothing is known beyond them.
    pub fn listed(bids: Vec<Level>, asks: Vec<Level>) -> Self {
        Self::from(Snapshot { last_update_id: 0, bids, asks, limit: 0 })
    }

    /// Whether bid and ask meet or overlap: such a book is wrong.
    pub fn is_crossed(&self) -> bool {
        match (self.bids.best(), self.asks.best()) {
            (Some(bid), Some(ask)) => bid.price >= ask.price,
            _ => false,
        }
    }

    /// Bids without a gap, best first.
    pub fn known_bids(&self) -> impl Iterator<Item = Level> + Clone + '_ {
        self.bids.known(self.bid_reach)
    }

    /// Asks without a gap, best first.
    pub fn known_asks(&self) -> impl Iterator<Item = Level> + Clone + '_ {
        self.asks.known(self.ask_reach)
    }

    /// Whether a best price lies where levels may be missing: a better one may be among them.
    pub fn is_exhausted(&self) -> bool {
        self.known_bids().next().is_none() && self.bid_reach.is_some()
            || self.known_asks().next().is_none() && self.ask_reach.is_some()
    }
}

impl From<Snapshot> for Depth {
    fn from(snapshot: Snapshot) -> Self {
        Self {
            bid_reach: reach(&snapshot.bids, snapshot.limit),
            ask_reach: reach(&snapshot.asks, snapshot.limit),
            // Worst first, so that each is set where the best end is.
            bids: snapshot.bids.into_iter().rev().collect(),
            asks: snapshot.asks.into_iter().rev().collect(),
        }
    }
}

/// Numbers of levels at which the exchange cuts snapshots.
const CUTS: [usize; 8] = [5, 10, 20, 50, 100, 500, 1_000, 5_000];

/// How far a side of a snapshot is known: to its end, if it was cut there. A side that has exactly as many
/// levels as snapshots are cut at is taken to be cut: a recording or a proxy may give fewer than were asked for.
fn reach(levels: &[Level], limit: usize) -> Option<Price> {
    let is_cut = levels.len() >= limit || CUTS.contains(&levels.len());
    levels.last().filter(|_| is_cut).map(|level| level.price)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::number::Quantity;

    fn snapshot(levels: usize, limit: usize) -> Depth {
        let level = |price| Level { price: Price::from_units(price), quantity: Quantity::from_units(1) };
        let count = i64::try_from(levels).expect("few");
        Depth::from(Snapshot {
            last_update_id: 1,
            bids: (0..count).map(|step| level(10_000 - step)).collect(),
            asks: (0..count).map(|step| level(10_001 + step)).collect(),
            limit,
        })
    }

    #[test]
    fn cut_side_is_known_to_its_end() {
        assert_eq!(snapshot(99, 1_000).bid_reach, None, "the whole side");
        for levels in [100, 1_000] {
            let cut = snapshot(levels, 5_000);
            assert_eq!(cut.bid_reach, cut.bids.iter().last().map(|level| level.price));
        }
        assert!(snapshot(7, 7).ask_reach.is_some(), "as many as were asked for");
    }

    #[test]
    fn levels_beyond_the_reach_are_hidden() {
        let mut cut = snapshot(100, 100);
        let far = Level { price: Price::from_units(5_000), quantity: Quantity::from_units(1) };
        cut.bids.set(far);
        assert_eq!((cut.bids.len(), cut.known_bids().count()), (101, 100));
        assert_eq!(cut.known_asks().count(), 100);
    }
}
