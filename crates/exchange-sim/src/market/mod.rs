//! One market as clients see it: order book, trades, candles, ticker. Both modes write to it, and every answer and
//! stream reads from it.

mod candle;
pub mod candles;
pub mod coverage;
pub mod levels;
pub mod publish;
mod reach;
pub mod symbol;
pub mod tape;
pub mod ticker;

use std::collections::HashSet;

use candles::Candles;
use levels::{Level, Levels, Side};
use publish::StreamNames;
use reach::Reach;
use symbol::Symbol;
use tape::{Aggregate, Tape, Trade};
use ticker::Ticker;

use crate::interval::{DAY, MINUTE, Millis, SECOND};
use crate::number::{Price, Quantity};

/// Levels of the first book that are kept, for the fault `stale_snapshots`.
const ORIGIN_LEVELS: usize = 100;
const AVERAGE_WINDOW: Millis = 300 * SECOND;

/// Why a recorded book cannot be shown.
pub const BOOK_GAP: &str = "depth updates are missing in the recording; the next recorded snapshot repairs the book";
const BEYOND_REACH: &str = "the last recorded snapshot does not reach this far; the next one repairs the book";
pub const NO_TRADES: &str = "the recording has no trades of this symbol so far";

/// The average price of the last five minutes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Average {
    pub price: Quantity,
    /// Of the last trade.
    pub time: Millis,
}

/// Levels that changed with the update ids `first_id..=last_id`.
#[derive(Debug, PartialEq, Eq)]
pub struct Diff {
    pub first_id: u64,
    pub last_id: u64,
    pub bids: Vec<Level>,
    pub asks: Vec<Level>,
}

/// Changes of the book since the last diff of a stream.
#[derive(Debug, Default)]
struct PendingDiff {
    first_id: Option<u64>,
    changed: Vec<(Side, Price)>,
}

impl PendingDiff {
    fn note(&mut self, first_id: u64, changed: impl Iterator<Item = (Side, Price)>) {
        self.first_id.get_or_insert(first_id);
        self.changed.extend(changed);
    }

    /// The diff with the levels as they are now; `None` if no update id was used.
    fn take(&mut self, levels: &Levels) -> Option<Diff> {
        let first_id = self.first_id.take()?;
        self.changed.sort_unstable();
        self.changed.dedup();
        let (mut bids, mut asks) = (Vec::new(), Vec::new());
        for (side, price) in self.changed.drain(..) {
            let level = (price, levels.quantity(side, price));
            match side {
                Side::Bid => bids.push(level),
                Side::Ask => asks.push(level),
            }
        }
        bids.reverse();
        Some(Diff {
            first_id,
            last_id: levels.last_update_id,
            bids,
            asks,
        })
    }
}

#[derive(Debug)]
pub struct Market {
    pub symbol: Symbol,
    pub levels: Levels,
    reach: Reach,
    /// Why the recorded book is not known now, if so.
    pub book_unknown: Option<&'static str>,
    /// Why single trades cannot be listed, if so.
    pub trades_unknown: Option<&'static str>,
    pub tape: Tape,
    pub candles: Candles,
    /// Streams that the recording has: their messages are passed on and not derived from state.
    pub recorded_streams: HashSet<String>,
    /// When the symbol ceased to trade; it has no candles after that.
    pub closed_at: Option<Millis>,
    /// Whether anything happened in the last whole second.
    pub is_active: bool,
    changed: bool,
    origin: Levels,
    fast: PendingDiff,
    slow: PendingDiff,
    names: StreamNames,
}

impl Market {
    pub fn new(symbol: Symbol, levels: Levels, candles: Candles) -> Self {
        Self {
            names: StreamNames::new(&symbol.name),
            origin: levels.truncated(ORIGIN_LEVELS),
            symbol,
            levels,
            reach: Reach::default(),
            book_unknown: None,
            trades_unknown: None,
            tape: Tape::default(),
            candles,
            recorded_streams: HashSet::new(),
            closed_at: None,
            is_active: false,
            changed: false,
            fast: PendingDiff::default(),
            slow: PendingDiff::default(),
        }
    }

    /// The first book: older than anything streamed since, and true when it was taken.
    pub const fn origin(&self) -> &Levels {
        &self.origin
    }

    /// One change of the book, which takes the next update id. Returns whether the best level changed.
    pub fn change_level(&mut self, side: Side, price: Price, quantity: Quantity) -> bool {
        let before = self.levels.best(side);
        self.levels.last_update_id += 1;
        self.levels.set(side, price, quantity);
        self.note_changes(self.levels.last_update_id, std::iter::once((side, price)));
        self.levels.best(side) != before
    }

    /// A recorded diff. Returns whether a best level changed.
    pub fn apply_diff(&mut self, diff: &Diff) -> bool {
        let before = self.levels.top();
        // Derived diffs begin where the last one ended, so that clients see no gap between them.
        let first_id = self.levels.last_update_id + 1;
        let bids = diff.bids.iter().map(|level| (Side::Bid, level));
        let changes = bids.chain(diff.asks.iter().map(|level| (Side::Ask, level)));
        for (side, (price, quantity)) in changes.clone() {
            self.levels.set(side, *price, *quantity);
        }
        self.levels.last_update_id = diff.last_id;
        self.note_changes(first_id, changes.map(|(side, (price, _))| (side, *price)));
        self.levels.top() != before
    }

    fn note_changes(&mut self, first_id: u64, changes: impl Iterator<Item = (Side, Price)> + Clone) {
        self.fast.note(first_id, changes.clone());
        self.slow.note(first_id, changes);
        self.changed = true;
    }

    /// A recorded snapshot takes the place of the book.
    pub fn replace_levels(&mut self, levels: Levels) {
        self.reach = Reach::of_snapshot(&levels);
        self.book_unknown = None;
        self.levels = levels;
        self.fast = PendingDiff::default();
        self.slow = PendingDiff::default();
    }

    /// The best levels of the book, as many as are asked for and known.
    pub fn depth_json(&self, limit: usize) -> Result<String, &'static str> {
        if let Some(reason) = self.book_unknown {
            return Err(reason);
        }
        let count = |side| self.reach.count(&self.levels, side, limit).ok_or(BEYOND_REACH);
        Ok(self.levels.json_with(count(Side::Bid)?, count(Side::Ask)?))
    }

    /// Best bid and ask; an empty side has price and quantity zero.
    pub fn best(&self) -> Result<(Level, Level), &'static str> {
        if let Some(reason) = self.book_unknown {
            return Err(reason);
        }
        let is_known = |side| self.reach.includes_best(&self.levels, side);
        let (bid, ask) = self.levels.top();
        let best = (bid.unwrap_or_default(), ask.unwrap_or_default());
        (is_known(Side::Bid) && is_known(Side::Ask))
            .then_some(best)
            .ok_or(BEYOND_REACH)
    }

    /// Returns false if the trade is already known.
    pub fn record_trade(&mut self, trade: Trade) -> bool {
        let is_new = self.tape.push_trade(trade);
        if is_new {
            self.candles.record(&trade, 1);
            self.changed = true;
        }
        is_new
    }

    /// Returns false if the aggregate is already known.
    pub fn record_aggregate(&mut self, aggregate: Aggregate) -> bool {
        let is_new = self.tape.push_aggregate(aggregate);
        self.changed |= is_new;
        is_new
    }

    pub fn last_price(&self) -> Option<Price> {
        let traded = self.tape.last().map(|trade| trade.price);
        traded.or_else(|| self.candles.last().map(|candle| candle.close))
    }

    /// Whether there is a last price, or certainty that nothing ever traded.
    pub fn has_ticker(&self) -> bool {
        self.last_price().is_some() || self.candles.coverage.is_everything()
    }

    /// The average price of the 300 seconds up to `now`.
    pub fn average(&self, now: Millis) -> Result<Average, &'static str> {
        let start = now - AVERAGE_WINDOW;
        if !self.candles.coverage.is_complete(start, now + 1) {
            return Err("the recording does not have every trade of the last five minutes");
        }
        let last_time = self.tape.last().map(|last| last.time).or(self.closed_at);
        let (Some(last_price), Some(time)) = (self.last_price(), last_time) else {
            return Ok(Average { price: 0, time: 0 });
        };
        let from_minutes = || {
            let minutes = self.candles.since(start + (-start).rem_euclid(MINUTE));
            minutes.map_or((0, 0), |candle| (candle.quote_volume, candle.volume))
        };
        let (money, volume) = self.tape.traded_since(start).unwrap_or_else(from_minutes);
        let price = if volume > 0 {
            money / volume
        } else {
            i128::from(last_price)
        };
        Ok(Average { price, time })
    }

    /// Statistics of the last 24 hours. The window opens on a whole minute, so that it agrees with candles exactly.
    pub fn ticker(&self, now: Millis) -> Ticker {
        Ticker::since(self, now - now.rem_euclid(MINUTE) - DAY, now)
    }
}
