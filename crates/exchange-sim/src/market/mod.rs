//! One market as clients see it: book, trades, candles, ticker. Both modes write to it and all answers read from it.

mod candle;
pub mod candles;
pub mod coverage;
pub mod known;
pub mod levels;
pub mod publish;
pub mod symbol;
pub mod tape;
pub mod ticker;

use std::collections::HashSet;

use candles::Candles;
use known::{Reach, Unknown};
use levels::{Level, Levels, Side};
use symbol::Symbol;
use tape::{Aggregate, Tape, Trade};
use ticker::Ticker;

use crate::interval::{DAY, MINUTE, Millis, SECOND};
use crate::number::{Price, Quantity};
use publish::StreamNames;

/// Levels of the first known book that are kept, for stale snapshots on demand.
const ORIGIN_LEVELS: usize = 100;
/// The average price is of so long.
const AVERAGED: Millis = 300 * SECOND;

/// Best levels as a stream said them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quote {
    pub id: u64,
    pub bid: Level,
    pub ask: Level,
}

/// The average price of the last minutes, as a stream said it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Average {
    pub price: Quantity,
    /// Of the last trade in it.
    pub time: Millis,
}

/// Levels that changed since a diff was last sent, and the ids of those changes.
#[derive(Debug, Default)]
pub struct Window {
    first_id: Option<u64>,
    touched: Vec<(Side, Price)>,
}

impl Window {
    /// Ids are used up even if no level changes with them.
    fn begin(&mut self, first_id: u64) {
        self.first_id.get_or_insert(first_id);
    }

    fn note(&mut self, first_id: u64, side: Side, price: Price) {
        self.begin(first_id);
        self.touched.push((side, price));
    }

    /// Ids `U..=u` and the levels as they are now; `None` if nothing changed.
    fn take(&mut self, levels: &Levels) -> Option<Diff> {
        let first_id = self.first_id.take()?;
        self.touched.sort_unstable();
        self.touched.dedup();
        let mut diff = Diff {
            first_id,
            last_id: levels.last_update_id,
            bids: Vec::new(),
            asks: Vec::new(),
        };
        for (side, price) in self.touched.drain(..) {
            let level = (price, levels.quantity(side, price));
            match side {
                Side::Bid => diff.bids.push(level),
                Side::Ask => diff.asks.push(level),
            }
        }
        diff.bids.reverse();
        Some(diff)
    }
}

#[derive(Debug, PartialEq, Eq)]
pub struct Diff {
    pub first_id: u64,
    pub last_id: u64,
    pub bids: Vec<Level>,
    pub asks: Vec<Level>,
}

#[derive(Debug)]
pub struct Market {
    pub symbol: Symbol,
    pub levels: Levels,
    /// How far the levels are known.
    reach: Reach,
    /// Why they are not known at all, if so.
    pub unknown: Option<Unknown>,
    /// Why single trades are not known, if so.
    pub trades_unknown: Option<Unknown>,
    /// The latest best levels of a recording.
    pub recorded_quote: Option<Quote>,
    pub tape: Tape,
    pub candles: Candles,
    /// Streams whose messages come from a recording: they are never made up from state.
    pub recorded: HashSet<String>,
    /// The last ticker of a recording, which is truer than one made from the trades it happens to have.
    pub recorded_ticker: Option<Ticker>,
    pub recorded_average: Option<Average>,
    /// When it ceased to trade; it has no candles after that.
    pub closed_at: Option<Millis>,
    /// Whether anything happened in the last whole second.
    pub active: bool,
    stirred: bool,
    origin: Levels,
    fast: Window,
    slow: Window,
    names: StreamNames,
}

impl Market {
    pub fn new(symbol: Symbol, levels: Levels, candles: Candles) -> Self {
        Self {
            names: StreamNames::of(&symbol.name),
            origin: levels.truncated(ORIGIN_LEVELS),
            symbol,
            levels,
            reach: Reach::default(),
            unknown: None,
            trades_unknown: None,
            recorded_quote: None,
            tape: Tape::default(),
            candles,
            recorded: HashSet::new(),
            recorded_ticker: None,
            recorded_average: None,
            closed_at: None,
            active: false,
            stirred: false,
            fast: Window::default(),
            slow: Window::default(),
        }
    }

    /// The first book that was known: older than anything streamed since, and true when it was taken.
    pub const fn origin(&self) -> &Levels {
        &self.origin
    }

    /// One change of the book, which takes the next id. True if the best level is another now.
    pub fn change_level(&mut self, side: Side, price: Price, quantity: Quantity) -> bool {
        let before = self.levels.best(side);
        self.levels.last_update_id += 1;
        let id = self.levels.last_update_id;
        self.levels.set(side, price, quantity);
        self.fast.note(id, side, price);
        self.slow.note(id, side, price);
        self.stirred = true;
        self.levels.best(side) != before
    }

    /// A recorded diff: levels that changed with the ids `first_id..=last_id`. True if a best level is another now.
    pub fn apply_diff(&mut self, diff: &Diff) -> bool {
        let before = self.levels.top();
        let bids = diff.bids.iter().map(|level| (Side::Bid, level));
        let asks = diff.asks.iter().map(|level| (Side::Ask, level));
        // Beginning where the last diff ended keeps what is made from several of them without a gap.
        let first_id = self.levels.last_update_id + 1;
        self.fast.begin(first_id);
        self.slow.begin(first_id);
        for (side, (price, quantity)) in bids.chain(asks) {
            self.levels.set(side, *price, *quantity);
            self.fast.note(first_id, side, *price);
            self.slow.note(first_id, side, *price);
        }
        self.levels.last_update_id = diff.last_id;
        self.stirred = true;
        self.levels.top() != before
    }

    /// A snapshot from a recording. What was gathered for diffs is void.
    pub fn replace_levels(&mut self, levels: Levels) {
        if self.origin.last_update_id == 0 {
            self.origin = levels.truncated(ORIGIN_LEVELS);
        }
        self.reach = Reach::of_snapshot(&levels);
        self.unknown = None;
        self.levels = levels;
        self.fast = Window::default();
        self.slow = Window::default();
    }

    /// The best levels of the book, as many as are asked for and known.
    pub fn depth_json(&self, limit: usize) -> Result<String, Unknown> {
        if let Some(why) = self.unknown {
            return Err(why);
        }
        let bids = self.reach.count(&self.levels, Side::Bid, limit)?;
        let asks = self.reach.count(&self.levels, Side::Ask, limit)?;
        Ok(self.levels.json_of(bids, asks))
    }

    /// Whether the last snapshot ended before the book did.
    pub const fn is_cut(&self) -> bool {
        self.reach.is_cut(Side::Bid) || self.reach.is_cut(Side::Ask)
    }

    /// Whether there is a book to show.
    pub fn knows_depth(&self) -> bool {
        self.depth_json(0).is_ok()
    }

    /// The best level of each side; `None` if the book is not known so far.
    pub fn known_top(&self) -> Option<(Option<Level>, Option<Level>)> {
        let known = |side| self.unknown.is_none() && self.reach.includes_best(&self.levels, side);
        (known(Side::Bid) && known(Side::Ask)).then(|| self.levels.top())
    }

    /// Best bid and ask: recorded ones if they are newer than the book or all there is, else the book's. An empty side has
    /// the price and the quantity 0.
    pub fn best(&self) -> Result<(Level, Level), Unknown> {
        let top = self.known_top();
        let newer = |quote: &Quote| top.is_none() || quote.id > self.levels.last_update_id;
        if let Some(quote) = self.recorded_quote.filter(newer) {
            return Ok((quote.bid, quote.ask));
        }
        let (bid, ask) = top.ok_or_else(|| self.unknown.unwrap_or(Unknown::BeyondReach))?;
        Ok((bid.unwrap_or_default(), ask.unwrap_or_default()))
    }

    pub fn record_quote(&mut self, quote: Quote) {
        if self.recorded_quote.is_none_or(|last| quote.id > last.id) {
            self.recorded_quote = Some(quote);
        }
    }

    /// False if it is known already.
    pub fn record_trade(&mut self, trade: Trade) -> bool {
        let new = self.tape.push_trade(trade);
        if new {
            self.candles.record(&trade);
            self.stirred = true;
        }
        new
    }

    /// False if it is known already.
    pub fn record_aggregate(&mut self, aggregate: Aggregate) -> bool {
        let new = self.tape.push_aggregate(aggregate);
        self.stirred |= new;
        new
    }

    pub fn last_price(&self) -> Option<Price> {
        self.tape
            .last()
            .map(|trade| trade.price)
            .or_else(|| self.candles.last().map(|candle| candle.close))
            .or_else(|| self.recorded_ticker.as_ref().map(|ticker| ticker.last))
    }

    /// Whether there is anything to make a ticker from. If all is known, that nothing ever traded is known too.
    pub fn knows_ticker(&self) -> bool {
        self.last_price().is_some() || self.candles.coverage.is_all()
    }

    /// Whether there is anything to make one of another time from.
    pub fn knows_windows(&self) -> bool {
        self.candles.last().is_some() || self.candles.coverage.is_all()
    }

    /// The average price of the 300 seconds up to `now`: the recorded one, or that of every trade.
    pub fn average(&self, now: Millis) -> Result<Average, &'static str> {
        if let Some(average) = self.recorded_average {
            return Ok(average);
        }
        let start = now - AVERAGED;
        if !self.candles.coverage.is_whole(start, now + 1) {
            return Err("the recording does not have every trade of the last five minutes");
        }
        let last = self.tape.last().map(|last| last.time).or(self.closed_at);
        let (price, time) = match (self.last_price(), last) {
            (Some(price), Some(time)) => (price, time),
            _ if self.candles.coverage.is_all() => (0, 0),
            _ => return Err("nothing has traded so far"),
        };
        let of_minutes = || {
            let minutes = self.candles.since(start + (-start).rem_euclid(MINUTE));
            minutes.map_or((0, 0), |candle| (candle.quote_volume, candle.volume))
        };
        let (money, volume) = self.tape.traded_since(start).unwrap_or_else(of_minutes);
        let price = if volume > 0 { money / volume } else { i128::from(price) };
        Ok(Average { price, time })
    }

    /// Of the last 24 hours. Its window opens on a whole minute, so that it agrees with candles exactly.
    pub fn ticker(&self, now: Millis) -> Ticker {
        match &self.recorded_ticker {
            Some(ticker) => self.completed(ticker.clone()),
            None => self.ticker_since(now - now.rem_euclid(MINUTE) - DAY, now),
        }
    }

    /// A mini ticker has no best levels of its own, and says nothing of the last trade.
    fn completed(&self, mut ticker: Ticker) -> Ticker {
        ticker.best = ticker.best.or_else(|| self.best().ok());
        if let Some(last) = self.tape.last().filter(|trade| trade.price == ticker.last) {
            ticker.last_quantity = ticker.last_quantity.or(last.quantity);
            ticker.last_id = ticker.last_id.or(i64::try_from(last.id).ok());
        }
        ticker
    }

    /// Of what traded since `start`, a whole minute.
    pub fn ticker_since(&self, start: Millis, now: Millis) -> Ticker {
        Ticker::of(self, start, now)
    }

    fn take_fast_diff(&mut self) -> Option<Diff> {
        self.fast.take(&self.levels)
    }

    fn take_slow_diff(&mut self) -> Option<Diff> {
        self.slow.take(&self.levels)
    }
}
