//! Candles from a stream of trades.

use super::{BuiltCandle, calendar, flat};
use crate::model::{Aggressor, Candle, Interval, Millis, Trade};

/// Of a silence longer than this many candles only the last ones are made.
const MOST_EMPTY: usize = 3_600;

/// Why a trade was not counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    #[error("the trade was counted before")]
    Seen,
    #[error("some of the trades it stands for were counted before")]
    Overlapping,
    #[error("its candle is already closed")]
    Late,
    #[error("its numbers, ids or time cannot be counted")]
    Impossible,
}

/// Makes candles of one interval from trades in the order of their ids, single ones or aggregates.
#[derive(Debug, Clone)]
pub struct CandleBuilder {
    interval: Interval,
    seen_from: Millis,
    last_id: Option<u64>,
    current: Option<BuiltCandle>,
}

impl CandleBuilder {
    /// Every trade from `seen_from` on will be pushed; a candle that began before it is not complete.
    pub const fn new(interval: Interval, seen_from: Millis) -> Self {
        Self {
            interval,
            seen_from,
            last_id: None,
            current: None,
        }
    }

    /// Counts a trade; gives the candles that it ends, oldest first, those in which nothing was traded too.
    pub fn push(&mut self, trade: &Trade) -> Result<Vec<BuiltCandle>, Refused> {
        let gap = self.follow(trade)?;
        // Refused before anything has changed, if it cannot be counted even alone.
        let alone = self.first(trade).ok_or(Refused::Impossible)?;
        with(alone.candle, trade).ok_or(Refused::Impossible)?;
        if self
            .current
            .is_some_and(|current| trade.time < current.candle.open_time)
        {
            self.last_id = Some(trade.last_id);
            return Err(Refused::Late);
        }
        // What is missing may belong to the candle before, to this one, or to any between.
        if let (true, Some(current)) = (gap, &mut self.current) {
            current.complete = false;
        }
        let finished = self.roll(trade.time, !gap).ok_or(Refused::Impossible)?;
        let current = self.current.unwrap_or(alone);
        let candle = with(current.candle, trade).ok_or(Refused::Impossible)?;
        self.current = Some(BuiltCandle { candle, ..current });
        self.last_id = Some(trade.last_id);
        Ok(finished)
    }

    /// Ends the candles whose time is over at `now`, when no earlier trade can come any more.
    pub fn advance(&mut self, now: Millis) -> Vec<BuiltCandle> {
        self.roll(now, true).unwrap_or_default()
    }

    /// The candle that is still open.
    pub const fn current(&self) -> Option<BuiltCandle> {
        self.current
    }

    /// Whether trades are missing before this one.
    fn follow(&self, trade: &Trade) -> Result<bool, Refused> {
        if trade.last_id < trade.first_id {
            return Err(Refused::Impossible);
        }
        match self.last_id {
            Some(last) if trade.last_id <= last => Err(Refused::Seen),
            Some(last) if trade.first_id <= last => Err(Refused::Overlapping),
            Some(last) => Ok(trade.first_id - last > 1),
            None => Ok(false),
        }
    }

    fn first(&self, trade: &Trade) -> Option<BuiltCandle> {
        let open_time = calendar::open_time(self.interval, trade.time)?;
        let close_time = calendar::close_time(self.interval, trade.time)?;
        Some(BuiltCandle {
            candle: flat(open_time, close_time, trade.price),
            closed: false,
            complete: self.seen_from <= open_time,
        })
    }

    /// Moves on to the candle of `time`, if that is a later one.
    fn roll(&mut self, time: Millis, complete: bool) -> Option<Vec<BuiltCandle>> {
        let Some(current) = self.current.filter(|current| current.candle.close_time < time) else {
            return Some(Vec::new());
        };
        let empty = |at: Millis, closed| {
            let (open, close) = (
                calendar::open_time(self.interval, at)?,
                calendar::close_time(self.interval, at)?,
            );
            let candle = flat(open, close, current.candle.close);
            Some(BuiltCandle {
                candle,
                closed,
                complete,
            })
        };
        let next = empty(time, false)?;
        let mut finished = Vec::new();
        let mut before = next.candle.open_time.checked_sub(1)?;
        while before > current.candle.close_time && finished.len() < MOST_EMPTY {
            let silent = empty(before, true)?;
            before = silent.candle.open_time.checked_sub(1)?;
            finished.push(silent);
        }
        finished.push(BuiltCandle {
            closed: true,
            ..current
        });
        finished.reverse();
        self.current = Some(next);
        Some(finished)
    }
}

/// The candle with one more trade; `None` if that cannot be counted.
fn with(mut candle: Candle, trade: &Trade) -> Option<Candle> {
    let money = trade.price.times(trade.quantity)?;
    let count = trade.last_id.checked_sub(trade.first_id)?.checked_add(1)?;
    if candle.trades == 0 {
        candle = flat(candle.open_time, candle.close_time, trade.price);
    }
    candle.high = candle.high.max(trade.price);
    candle.low = candle.low.min(trade.price);
    candle.close = trade.price;
    candle.volume = candle.volume.checked_add(trade.quantity)?;
    candle.quote_volume = candle.quote_volume.checked_add(money)?;
    candle.trades = candle.trades.checked_add(count)?;
    if trade.aggressor == Aggressor::Buyer {
        candle.taker_buy_volume = candle.taker_buy_volume.checked_add(trade.quantity)?;
        candle.taker_buy_quote_volume = candle.taker_buy_quote_volume.checked_add(money)?;
    }
    Some(candle)
}
