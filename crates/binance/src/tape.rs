//! The last minutes of trades of one symbol.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::model::{Millis, Trade};

/// Trades of one sealed part.
const PART: usize = 256;
/// Half a million trades of one symbol are kept at most: some 32 MB.
const MAX_PARTS: usize = 2_000;

/// Written by the feed, read by anyone: readers hold the lock only to copy pointers and one part.
#[derive(Debug)]
pub struct Tape {
    inner: Mutex<Inner>,
    keep: Millis,
}

#[derive(Debug, Default)]
struct Inner {
    sealed: VecDeque<Arc<[Trade]>>,
    open: Vec<Trade>,
    last_id: Option<u64>,
    /// No trade since then is missing.
    complete_from: Option<Millis>,
    /// Single trades come: their aggregates would be counted twice.
    has_singles: bool,
}

/// Trades since a time, in the parts that a tape has them in: sealed parts are shared, not copied.
#[derive(Debug, Clone)]
pub struct Recent {
    /// Oldest first.
    sealed: Vec<Arc<[Trade]>>,
    open: Vec<Trade>,
    from: Millis,
    /// Trades from this time on are all here; `None` if nothing is known.
    pub complete_from: Option<Millis>,
}

impl Recent {
    /// Oldest first.
    pub fn trades(&self) -> impl Iterator<Item = &Trade> + Clone {
        let all = self.sealed.iter().flat_map(|part| part.iter()).chain(&self.open);
        all.filter(|trade| trade.time >= self.from)
    }
}

impl Tape {
    /// Keeps trades for `keep` milliseconds of the exchange's time.
    pub fn new(keep: Millis) -> Self {
        Self { inner: Mutex::default(), keep }
    }

    /// The stream was (re)opened at this time of the exchange: what was before may have holes.
    pub fn opened(&self, time: Millis) {
        let mut inner = self.inner.lock();
        *inner = Inner { complete_from: Some(time), has_singles: inner.has_singles, ..Inner::default() };
    }

    /// Adds a trade and returns whether it was new. Aggregates count only where single trades do not come.
    pub fn push(&self, trade: Trade, aggregate: bool) -> bool {
        let mut inner = self.inner.lock();
        if !aggregate && !inner.has_singles {
            *inner = Inner {
                has_singles: true,
                complete_from: inner.complete_from.map(|from| from.max(trade.time)),
                ..Inner::default()
            };
        }
        let seen = inner.last_id.is_some_and(|last| trade.last_id <= last);
        if (aggregate && inner.has_singles) || seen {
            return false;
        }
        if inner.last_id.is_some_and(|last| trade.first_id > last.saturating_add(1)) {
            // Trades are missing before this one.
            inner.complete_from = Some(trade.time);
        }
        inner.last_id = Some(trade.last_id);
        inner.open.push(trade);
        if inner.open.len() == PART {
            let part = std::mem::replace(&mut inner.open, Vec::with_capacity(PART));
            inner.sealed.push_back(part.into());
            inner.forget_before(trade.time - self.keep);
        }
        true
    }

    /// Trades since a time, without copying those of sealed parts. Parts are in order of time, so the search ends at the first old one.
    pub fn recent(&self, from: Millis) -> Recent {
        let inner = self.inner.lock();
        let parts = inner.sealed.iter().rev().take_while(|part| last_time(part) >= from);
        let mut sealed: Vec<_> = parts.cloned().collect();
        sealed.reverse();
        Recent { sealed, open: inner.open.clone(), from, complete_from: inner.complete_from }
    }

    pub fn last(&self) -> Option<Trade> {
        let inner = self.inner.lock();
        let sealed = || inner.sealed.back().and_then(|part| part.last());
        inner.open.last().or_else(sealed).copied()
    }
}

impl Inner {
    fn forget_before(&mut self, time: Millis) {
        while self.sealed.len() > MAX_PARTS || self.sealed.front().is_some_and(|part| last_time(part) < time) {
            let Some(part) = self.sealed.pop_front() else { return };
            let gone = last_time(&part).saturating_add(1);
            self.complete_from = self.complete_from.map(|from| from.max(gone));
        }
    }
}

fn last_time(part: &[Trade]) -> Millis {
    part.last().map_or(Millis::MIN, |trade| trade.time)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Aggressor;
    use crate::number::{Price, Quantity};

    fn trade(id: u64, time: Millis) -> Trade {
        Trade {
            price: Price::from_units(1),
            quantity: Quantity::from_units(1),
            time,
            aggressor: Aggressor::Buyer,
            first_id: id,
            last_id: id,
        }
    }

    #[test]
    fn window_has_each_trade_once() {
        let tape = Tape::new(10_000);
        tape.opened(100);
        for id in 0..1_000 {
            assert!(tape.push(trade(id, 1_000 + id as i64), false));
            assert!(!tape.push(trade(id, 1_000 + id as i64), false), "a copy");
        }
        let recent = tape.recent(1_500);
        assert_eq!((recent.trades().count(), recent.complete_from), (500, Some(1_000)));
        assert_eq!(recent.trades().next().map(|trade| trade.first_id), Some(500));

        // One is missing: what came before it is not whole.
        tape.push(trade(1_001, 2_500), false);
        assert_eq!(tape.recent(0).complete_from, Some(2_500));
        assert_eq!(tape.last().map(|trade| trade.last_id), Some(1_001));
    }

    #[test]
    fn aggregates_count_until_single_trades_come() {
        let tape = Tape::new(10_000);
        tape.opened(0);
        assert!(tape.push(Trade { last_id: 5, ..trade(1, 10) }, true));
        assert!(tape.push(trade(6, 20), false));
        assert!(!tape.push(trade(7, 30), true));
        assert!(tape.push(trade(7, 30), false));
        let recent = tape.recent(0);
        assert_eq!((recent.trades().count(), recent.complete_from), (2, Some(20)));
    }

    #[test]
    fn old_trades_are_dropped() {
        let tape = Tape::new(100);
        tape.opened(0);
        for id in 0..2_000 {
            tape.push(trade(id, id as i64), false);
        }
        let recent = tape.recent(0);
        assert!(recent.trades().count() < 900, "{}", recent.trades().count());
        assert!(recent.complete_from.expect("known") > 1_000);
    }
}
