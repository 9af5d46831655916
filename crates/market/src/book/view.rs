//! A book at one moment, for readers.

use super::{Asks, Bids, Level, Side, Snapshot};
use crate::number::Price;

/// Both sides of a book after the same update, and how far they can be trusted.
///
/// A level outside a side's reach may be missing: the snapshot did not extend that far. Whatever is
/// summed beyond it is a lower bound, and must be said to be one.
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
    /// Whether bid and ask meet or overlap: such a book is wrong.
    pub fn is_crossed(&self) -> bool {
        match (self.bids.best(), self.asks.best()) {
            (Some(bid), Some(ask)) => bid.price >= ask.price,
            _ => false,
        }
    }

    /// Whether a best price lies where levels may be missing: a better one may be among them.
    pub fn is_exhausted(&self) -> bool {
        let bids = self
            .bid_reach
            .is_some_and(|reach| self.bids.best().is_none_or(|best| best.price < reach));
        let asks = self
            .ask_reach
            .is_some_and(|reach| self.asks.best().is_none_or(|best| best.price > reach));
        bids || asks
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

/// How far a side of a snapshot is known: to its end, if it was cut there.
fn reach(levels: &[Level], limit: usize) -> Option<Price> {
    levels.last().filter(|_| levels.len() >= limit).map(|level| level.price)
}
