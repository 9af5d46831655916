//! Prices at which far more was traded than was ever displayed.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use super::figure::{BookSide, ratio};
use super::quotes::Touch;
use tribune_binance::{Depth, Millis, Price, Quantity, Trade};

/// Levels of each side that are watched.
const LEVELS: usize = 20;
/// How long a price is watched: over a longer time every busy price would qualify.
pub const WINDOW_MS: Millis = 60_000;
/// How many times the displayed quantity must have been traded.
pub const MIN_TIMES_DISPLAYED: u32 = 5;
/// How often the level must have been refilled after a trade.
pub const MIN_REFILLS: u32 = 3;

#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct IcebergHint {
    pub side: BookSide,
    pub price: Price,
    pub traded_base: Quantity,
    pub most_displayed_base: Quantity,
    pub times_displayed: Option<f64>,
    /// Views in which it was still there although it had been traded at since the view before.
    pub refills: u32,
    pub watched_ms: Millis,
}

#[derive(Debug, Clone, Copy)]
struct Shown {
    most: Quantity,
    traded: Quantity,
    refills: u32,
    since: Millis,
}

/// Fed with views of one book in order of time.
#[derive(Debug, Clone, Default)]
pub struct IcebergTracker {
    shown: BTreeMap<(BookSide, Price), Shown>,
    now: Millis,
}

impl IcebergTracker {
    /// Starts over after the book was fetched again.
    pub fn reset(&mut self) {
        self.shown.clear();
    }

    /// `trades` are all trades since the last view. An invalid book ends the watch.
    pub fn observe(&mut self, depth: &Depth, trades: &[Trade], time: Millis) {
        if Touch::of(depth).is_err() {
            return self.reset();
        }
        self.now = time;
        let mut traded = BTreeMap::<_, Quantity>::new();
        for trade in trades {
            let sum = traded.entry((BookSide::hit_by(trade.aggressor), trade.price)).or_default();
            *sum = Quantity::from_units(sum.units().saturating_add(trade.quantity.units()));
        }
        let bids = depth.bids.iter().take(LEVELS).map(|level| (BookSide::Bid, level));
        let asks = depth.asks.iter().take(LEVELS).map(|level| (BookSide::Ask, level));
        let mut before = std::mem::take(&mut self.shown);
        for (side, level) in bids.chain(asks) {
            let key = (side, level.price);
            // A new price starts without trades: earlier ones met orders that were not displayed.
            let mut shown = Shown { most: level.quantity, traded: Quantity::ZERO, refills: 0, since: time };
            if let Some(kept) = before.remove(&key).filter(|kept| time.saturating_sub(kept.since) < WINDOW_MS) {
                let taken = traded.get(&key).map_or(0, |taken| taken.units());
                shown.most = kept.most.max(level.quantity);
                shown.traded = Quantity::from_units(kept.traded.units().saturating_add(taken));
                shown.refills = kept.refills.saturating_add(u32::from(taken > 0));
                shown.since = kept.since;
            }
            self.shown.insert(key, shown);
        }
    }

    pub fn prices_watched(&self) -> usize {
        self.shown.len()
    }

    /// Weak: several people who renew their orders look the same as one hidden order.
    pub fn hints(&self) -> Vec<IcebergHint> {
        let result = self.shown.iter().filter(|(_, shown)| is_hint(shown));
        let hints = result.map(|(&(side, price), shown)| IcebergHint {
            side,
            price,
            traded_base: shown.traded,
            most_displayed_base: shown.most,
            times_displayed: ratio(shown.traded.units(), shown.most.units()),
            refills: shown.refills,
            watched_ms: self.now.saturating_sub(shown.since),
        });
        hints.collect()
    }
}

fn is_hint(shown: &Shown) -> bool {
    let wanted = shown.most.units().saturating_mul(i128::from(MIN_TIMES_DISPLAYED));
    shown.refills >= MIN_REFILLS && shown.traded.units() >= wanted
}

#[cfg(test)]
mod tests {
    use super::*;
    use tribune_binance::Aggressor::{Buyer, Seller};
    use tribune_binance::testing::{depth, price, trade};

    fn after(views: &[(&str, &str)]) -> Vec<IcebergHint> {
        let mut tracker = IcebergTracker::default();
        for (at, (displayed, traded)) in views.iter().enumerate() {
            let time = at as i64 * 100;
            let book = depth(&[("100", displayed)], &[("101", "1")]);
            let trades = [trade(at as u64, time, "100", traded, Seller)];
            tracker.observe(&book, &trades, time);
        }
        tracker.hints()
    }

    #[test]
    fn refilled_level_is_an_iceberg() {
        // What came with the first view is not counted; 4 + 4 + 2 = 10 = 5 · 2, in three refills.
        let result = after(&[("2", "50"), ("2", "4"), ("1", "4"), ("2", "2")]);
        assert_eq!(result.len(), 1);
        let hint = &result[0];
        assert_eq!((hint.side, hint.price, hint.refills), (BookSide::Bid, price("100"), 3));
        assert_eq!((hint.times_displayed, hint.watched_ms), (Some(5.0), 300));
    }

    #[test]
    fn one_large_trade_is_no_iceberg() {
        assert!(after(&[("2", "0"), ("2", "50")]).is_empty());
        assert!(after(&[("2", "0"), ("2", "3"), ("2", "3"), ("2", "3")]).is_empty());
        // Once ten were shown.
        assert!(after(&[("10", "0"), ("2", "9"), ("2", "9"), ("2", "9")]).is_empty());
    }

    #[test]
    fn trades_on_other_side_do_not_count() {
        let mut tracker = IcebergTracker::default();
        for at in 0..5 {
            let trades = [trade(at, 0, "100", "9", Buyer)];
            tracker.observe(&depth(&[("100", "1")], &[("101", "1")]), &trades, 0);
        }
        assert!(tracker.hints().is_empty());
        tracker.observe(&depth(&[], &[]), &[], 0);
        assert_eq!(tracker.prices_watched(), 0);
    }
}
