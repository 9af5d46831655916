//! Order books: kept exact by the exchange's procedure, and published for readers.

mod local;
mod side;

pub use local::{BestQuote, Diff, Fault, Installed, LocalBook, Outcome, Snapshot};
pub use side::{Asks, Bids, Level, Order, Side};

/// Both sides of a book after the same update.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Depth {
    pub bids: Side<Bids>,
    pub asks: Side<Asks>,
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
}

impl From<Snapshot> for Depth {
    fn from(Snapshot { bids, asks, limit, .. }: Snapshot) -> Self {
        Self { bids: Side::of_snapshot(bids, limit), asks: Side::of_snapshot(asks, limit) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::number::{Price, Quantity};

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
        assert_eq!(snapshot(99, 1_000).bids.reach, None, "the whole side");
        for levels in [100, 1_000] {
            let cut = snapshot(levels, 5_000);
            assert_eq!(cut.bids.reach, cut.bids.iter().last().map(|level| level.price));
        }
        assert!(snapshot(7, 7).asks.reach.is_some(), "as many as were asked for");
    }

    #[test]
    fn levels_beyond_the_reach_are_hidden() {
        let mut cut = snapshot(100, 100);
        let far = Level { price: Price::from_units(5_000), quantity: Quantity::from_units(1) };
        cut.bids.set(far);
        assert_eq!((cut.bids.len(), cut.bids.known().count()), (101, 100));
        assert_eq!(cut.asks.known().count(), 100);
    }
}
