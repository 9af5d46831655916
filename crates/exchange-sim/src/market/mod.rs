//! One market as clients see it: order book, trades, candles, ticker. Both modes write to it, and every answer and
//! stream reads from it.

mod candle;
pub mod candles;
pub mod levels;
pub mod publish;
pub mod symbol;
pub mod tape;
pub mod ticker;

use std::collections::HashSet;

use candles::Candles;
use levels::{Level, Levels, Side};
use serde::Deserialize;
use symbol::Symbol;
use tape::{Tape, Trade};

use crate::hub::Hub;
use crate::interval::{MINUTE, Millis, SECOND};
use crate::number::{Price, Quantity};

/// Levels of the first book that are kept, for the fault `stale_snapshots`.
const ORIGIN_LEVELS: usize = 100;
const AVERAGE_WINDOW: Millis = 300 * SECOND;

/// Why a recorded book cannot be shown.
const BEYOND_SNAPSHOT: &str = "the last recorded snapshot does not reach this far; the next one repairs the book";
pub const NO_TRADES: &str = "the recording has no trades of this symbol so far";

/// Levels that changed with the update ids `first_id..=last_id`. Named as in stream messages.
#[derive(Debug, PartialEq, Eq, Deserialize)]
pub struct Diff {
    #[serde(rename = "U")]
    pub first_id: u64,
    #[serde(rename = "u")]
    pub last_id: u64,
    #[serde(rename = "b", deserialize_with = "levels::deserialize")]
    pub bids: Vec<Level>,
    #[serde(rename = "a", deserialize_with = "levels::deserialize")]
    pub asks: Vec<Level>,
}

impl Diff {
    /// Every level with its side.
    pub fn levels(&self) -> impl Iterator<Item = (Side, Level)> + Clone {
        let bids = self.bids.iter().map(|level| (Side::Bid, *level));
        bids.chain(self.asks.iter().map(|level| (Side::Ask, *level)))
    }
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
        Some(Diff { first_id, last_id: levels.last_update_id, bids, asks })
    }
}

#[derive(Debug)]
pub struct Market {
    pub symbol: Symbol,
    /// The symbol as it begins the names of its streams.
    stream_name: String,
    pub levels: Levels,
    pub tape: Tape,
    pub candles: Candles,
    /// Kinds of streams that the recording has: their messages are passed on and not derived from state.
    pub recorded_streams: HashSet<String>,
    /// When the symbol ceased to trade; it has no candles after that.
    pub closed_at: Option<Millis>,
    /// Whether anything happened in the last whole second.
    pub is_active: bool,
    changed: bool,
    /// The first book: older than anything streamed since, and true when it was taken.
    pub origin: Levels,
    fast: PendingDiff,
    slow: PendingDiff,
}

impl Market {
    pub fn new(symbol: Symbol, levels: Levels, candles: Candles) -> Self {
        Self {
            stream_name: symbol.name.to_lowercase(),
            origin: levels.truncated(ORIGIN_LEVELS),
            symbol,
            levels,
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

    /// One change of the book, which takes the next update id.
    pub fn change_level(&mut self, hub: &Hub, side: Side, price: Price, quantity: Quantity) {
        let id = self.levels.last_update_id + 1;
        self.change_levels(hub, id, std::iter::once((side, (price, quantity))));
    }

    pub fn apply_diff(&mut self, hub: &Hub, diff: &Diff) {
        self.change_levels(hub, diff.last_id, diff.levels());
    }

    fn change_levels(&mut self, hub: &Hub, last_id: u64, changes: impl Iterator<Item = (Side, Level)> + Clone) {
        let before = self.levels.top();
        // Derived diffs begin where the last one ended, so that clients see no gap between them.
        let first_id = self.levels.last_update_id + 1;
        for (side, (price, quantity)) in changes.clone() {
            self.levels.set(side, price, quantity);
        }
        self.levels.last_update_id = last_id;
        let changed = changes.map(|(side, (price, _))| (side, price));
        self.fast.note(first_id, changed.clone());
        self.slow.note(first_id, changed);
        self.changed = true;
        if self.levels.top() != before {
            self.publish_book_ticker(hub);
        }
    }

    /// A recorded snapshot takes the place of the book.
    pub fn replace_levels(&mut self, levels: Levels) {
        self.levels = levels;
        self.fast = PendingDiff::default();
        self.slow = PendingDiff::default();
    }

    /// The best levels of the book, as many as are asked for and known.
    pub fn depth_json(&self, limit: usize) -> Result<String, &'static str> {
        let counts = Side::BOTH.map(|side| self.levels.known_count(side, limit));
        match counts {
            [Some(bids), Some(asks)] => Ok(self.levels.json(bids, asks)),
            _ => Err(BEYOND_SNAPSHOT),
        }
    }

    /// Best bid and ask; an empty side has price and quantity zero.
    pub fn best(&self) -> Result<(Level, Level), &'static str> {
        let best = Side::BOTH.map(|side| self.levels.known_best(side));
        best[0].zip(best[1]).ok_or(BEYOND_SNAPSHOT)
    }

    /// Returns false if the trade is already known.
    pub fn record_trade(&mut self, trade: Trade) -> bool {
        let is_new = self.tape.push_trade(trade);
        if is_new {
            self.candles.record(&trade);
            self.changed = true;
        }
        is_new
    }

    pub fn last_price(&self) -> Option<Price> {
        let traded = self.tape.last().map(|trade| trade.price);
        traded.or_else(|| self.candles.last().map(|candle| candle.close))
    }

    /// Whether there is a last price, or certainty that nothing ever traded.
    pub fn has_ticker(&self) -> bool {
        self.last_price().is_some() || self.candles.is_complete_since(0)
    }

    /// The average price of the 300 seconds up to `now`, and the time of the last trade.
    pub fn average(&self, now: Millis) -> Result<(Quantity, Millis), &'static str> {
        let start = now - AVERAGE_WINDOW;
        if !self.candles.is_complete_since(start) {
            return Err("the recording does not have every trade of the last five minutes");
        }
        let last_time = self.tape.last().map(|last| last.time).or(self.closed_at);
        let (Some(last_price), Some(time)) = (self.last_price(), last_time) else {
            return Ok((0, 0));
        };
        let from_minutes = || {
            let minutes = self.candles.since(start + (-start).rem_euclid(MINUTE));
            minutes.map_or((0, 0), |candle| (candle.quote_volume, candle.volume))
        };
        let (money, volume) = self.tape.traded_since(start).unwrap_or_else(from_minutes);
        let price = money.checked_div(volume).unwrap_or_else(|| last_price.into());
        Ok((price, time))
    }
}
