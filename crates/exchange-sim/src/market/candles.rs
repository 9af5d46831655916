//! Candles of every length from two bases, seconds and minutes. A base has only what traded; a bucket in which
//! nothing did is flat at the last price, as the exchange gives it.

use std::collections::{BTreeMap, HashMap, VecDeque};

use serde_json::{Value, json};

use super::tape::Trade;
use crate::interval::{Interval, MINUTE, Millis, SECOND};
use crate::number::{self, Money, Price, Quantity};

/// Seconds with trades that are kept.
const SECONDS_KEPT: usize = 20_000;
/// Minutes with trades that are kept: more than two weeks without a pause.
const MINUTES_KEPT: usize = 25_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Candle {
    pub open_time: Millis,
    pub open: Price,
    pub high: Price,
    pub low: Price,
    pub close: Price,
    pub volume: Quantity,
    pub quote_volume: Money,
    pub trades: u64,
    pub buy_volume: Quantity,
    pub buy_quote_volume: Money,
    pub first_trade: u64,
    pub last_trade: u64,
}

impl Candle {
    pub const fn flat(open_time: Millis, price: Price) -> Self {
        Self {
            open_time,
            open: price,
            high: price,
            low: price,
            close: price,
            volume: 0,
            quote_volume: 0,
            trades: 0,
            buy_volume: 0,
            buy_quote_volume: 0,
            first_trade: 0,
            last_trade: 0,
        }
    }

    fn of_trade(open_time: Millis, trade: &Trade) -> Self {
        let mut candle = Self::flat(open_time, trade.price);
        candle.first_trade = trade.id;
        candle.add(trade, 1);
        candle
    }

    fn add(&mut self, trade: &Trade, count: u64) {
        self.high = self.high.max(trade.price);
        self.low = self.low.min(trade.price);
        self.close = trade.price;
        self.volume += trade.quantity;
        self.quote_volume = self.quote_volume.saturating_add(trade.money());
        self.trades += count;
        self.last_trade = trade.id;
        if !trade.buyer_is_maker {
            self.buy_volume += trade.quantity;
            self.buy_quote_volume = self.buy_quote_volume.saturating_add(trade.money());
        }
    }

    /// Takes in a candle that follows.
    pub fn extend(&mut self, next: &Self) {
        self.high = self.high.max(next.high);
        self.low = self.low.min(next.low);
        self.close = next.close;
        self.volume += next.volume;
        self.quote_volume = self.quote_volume.saturating_add(next.quote_volume);
        self.trades += next.trades;
        self.buy_volume += next.buy_volume;
        self.buy_quote_volume = self.buy_quote_volume.saturating_add(next.buy_quote_volume);
        self.last_trade = next.last_trade;
    }

    /// The twelve columns of a kline.
    pub fn row(&self, close_time: Millis) -> Value {
        json!([
            self.open_time,
            number::fixed_price(self.open),
            number::fixed_price(self.high),
            number::fixed_price(self.low),
            number::fixed_price(self.close),
            number::fixed(self.volume),
            close_time,
            number::fixed_money(self.quote_volume),
            self.trades,
            number::fixed(self.buy_volume),
            number::fixed_money(self.buy_quote_volume),
            "0"
        ])
    }
}

/// Which candles are asked for.
#[derive(Debug, Clone, Copy)]
pub struct Range {
    pub interval: Interval,
    pub offset: Millis,
    pub start: Option<Millis>,
    pub end: Option<Millis>,
    pub limit: usize,
}

#[derive(Debug, Default)]
pub struct Candles {
    seconds: VecDeque<Candle>,
    minutes: VecDeque<Candle>,
    /// Candles that a recording has, which are truer than any made from its trades.
    recorded: HashMap<Interval, BTreeMap<Millis, Candle>>,
    /// Minutes come from recorded candles, and trades are not counted a second time.
    minutes_recorded: bool,
}

impl Candles {
    /// Candles of minutes from before the first trade, oldest first.
    pub fn with_history(minutes: Vec<Candle>) -> Self {
        Self {
            minutes: minutes.into(),
            ..Self::default()
        }
    }

    pub fn record(&mut self, trade: &Trade) {
        self.record_many(trade, 1);
    }

    /// One line of a recording may stand for several trades at one price.
    pub fn record_many(&mut self, trade: &Trade, count: u64) {
        add(&mut self.seconds, SECOND, SECONDS_KEPT, trade, count);
        if !self.minutes_recorded {
            add(&mut self.minutes, MINUTE, MINUTES_KEPT, trade, count);
        }
    }

    /// Minutes will come from the recording.
    pub fn expect_recorded_minutes(&mut self) {
        self.minutes_recorded = true;
    }

    /// A candle of a recording, as it is now.
    pub fn record_candle(&mut self, interval: Interval, candle: Candle) {
        let recorded = self.recorded.entry(interval).or_default();
        recorded.insert(candle.open_time, candle);
        if recorded.len() > MINUTES_KEPT {
            recorded.pop_first();
        }
        if self.minutes_recorded && interval.name() == "1m" {
            self.put_minute(candle);
        }
    }

    fn put_minute(&mut self, candle: Candle) {
        let at = self.minutes.partition_point(|other| other.open_time < candle.open_time);
        match self.minutes.get_mut(at) {
            Some(same) if same.open_time == candle.open_time => *same = candle,
            _ => self.minutes.insert(at, candle),
        }
        if self.minutes.len() > MINUTES_KEPT {
            self.minutes.pop_front();
        }
    }

    fn recorded_at(&self, interval: Interval, open: Millis) -> Option<&Candle> {
        self.recorded.get(&interval)?.get(&open)
    }

    /// The first opening of which anything is known.
    fn oldest(&self, interval: Interval, offset: Millis) -> Option<Millis> {
        let base = self
            .base(interval)
            .front()
            .map(|first| interval.open_of(first.open_time, offset));
        let recorded = self.recorded.get(&interval).and_then(BTreeMap::first_key_value);
        let recorded = recorded.map(|(open, _)| *open).filter(|_| offset == 0);
        base.into_iter().chain(recorded).min()
    }

    /// Whether all of a candle is known to somebody who knows nothing from before `known_since`.
    pub fn is_whole(&self, interval: Interval, open: Millis, known_since: Millis) -> bool {
        open >= known_since || self.recorded_at(interval, open).is_some()
    }

    fn base(&self, interval: Interval) -> &VecDeque<Candle> {
        if interval.is_second() {
            &self.seconds
        } else {
            &self.minutes
        }
    }

    pub fn last(&self) -> Option<&Candle> {
        self.minutes.back()
    }

    /// All that traded from `start` on, as one; `None` if nothing did.
    pub fn since(&self, start: Millis) -> Option<Candle> {
        self.merged(&self.minutes, start, Millis::MAX)
    }

    /// The last price before `time`.
    pub fn close_before(&self, time: Millis) -> Option<Price> {
        let end = self.minutes.partition_point(|candle| candle.open_time < time);
        end.checked_sub(1).map(|index| self.minutes[index].close)
    }

    fn merged(&self, base: &VecDeque<Candle>, start: Millis, end: Millis) -> Option<Candle> {
        let first = base.partition_point(|candle| candle.open_time < start);
        let mut candles = base.range(first..).take_while(|candle| candle.open_time < end);
        let mut merged = *candles.next()?;
        candles.for_each(|candle| merged.extend(candle));
        Some(merged)
    }

    /// The candle that opened at `open`; flat if nothing traded in it, `None` before anything ever did.
    pub fn at(&self, interval: Interval, open: Millis, offset: Millis) -> Option<Candle> {
        if let Some(recorded) = self.recorded_at(interval, open).filter(|_| offset == 0) {
            return Some(*recorded);
        }
        let base = self.base(interval);
        let merged = self.merged(base, open, interval.next_open(open, offset));
        let candle = merged.map(|mut candle| {
            candle.open_time = open;
            candle
        });
        candle.or_else(|| {
            let before = base.partition_point(|candle| candle.open_time < open);
            let close = base[before.checked_sub(1)?].close;
            Some(Candle::flat(open, close))
        })
    }

    /// Candles by the exchange's rules: with a start the oldest from there, without one the newest; those count
    /// whose opening lies between start and end, both included.
    pub fn range(&self, range: &Range, now: Millis) -> Vec<(Candle, Millis)> {
        let (interval, offset) = (range.interval, range.offset);
        let Some(oldest) = self.oldest(interval, offset) else {
            return Vec::new();
        };
        let newest = interval.open_of(range.end.unwrap_or(now).min(now), offset);
        let mut opens = match range.start {
            Some(start) => {
                let open = interval.open_of(start, offset);
                let from = if open < start {
                    interval.next_open(open, offset)
                } else {
                    open
                };
                forward(range, from.max(oldest), newest)
            }
            None => backward(range, newest, oldest),
        };
        opens.retain(|open| *open <= newest);
        opens
            .into_iter()
            .filter_map(|open| Some((self.at(interval, open, offset)?, interval.next_open(open, offset) - 1)))
            .collect()
    }
}

fn forward(range: &Range, from: Millis, newest: Millis) -> Vec<Millis> {
    std::iter::successors(Some(from), |open| Some(range.interval.next_open(*open, range.offset)))
        .take_while(|open| *open <= newest)
        .take(range.limit)
        .collect()
}

fn backward(range: &Range, newest: Millis, oldest: Millis) -> Vec<Millis> {
    let mut opens: Vec<Millis> = std::iter::successors(Some(newest), |open| {
        Some(range.interval.open_of(open - 1, range.offset))
    })
    .take_while(|open| *open >= oldest)
    .take(range.limit)
    .collect();
    opens.reverse();
    opens
}

fn add(base: &mut VecDeque<Candle>, length: Millis, kept: usize, trade: &Trade, count: u64) {
    let open = trade.time - trade.time.rem_euclid(length);
    match base.back_mut() {
        // A trade that comes late is counted where time stands: candles never change once they are closed.
        Some(last) if open <= last.open_time => last.add(trade, count),
        _ => {
            if base.len() == kept {
                base.pop_front();
            }
            let mut candle = Candle::of_trade(open, trade);
            candle.trades = count;
            candle.first_trade = trade.id.saturating_sub(count.saturating_sub(1));
            base.push_back(candle);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trade(id: u64, time: Millis, price: Price, quantity: Quantity, buyer_is_maker: bool) -> Trade {
        Trade {
            id,
            price,
            quantity,
            time,
            buyer_is_maker,
        }
    }

    fn sample() -> Candles {
        let mut candles = Candles::default();
        candles.record(&trade(1, 60_000, 100, 2, false));
        candles.record(&trade(2, 60_500, 90, 1, true));
        candles.record(&trade(3, 119_999, 110, 3, false));
        candles.record(&trade(4, 240_000, 105, 1, true));
        candles
    }

    fn range(interval: &str, start: Option<Millis>, end: Option<Millis>, limit: usize) -> Range {
        Range {
            interval: interval.parse().expect("an interval"),
            offset: 0,
            start,
            end,
            limit,
        }
    }

    fn opens(candles: &Candles, range: &Range) -> Vec<Millis> {
        candles
            .range(range, 250_000)
            .iter()
            .map(|(candle, _)| candle.open_time)
            .collect()
    }

    #[test]
    fn a_candle_is_what_traded_in_it() {
        let candle = sample()
            .at("1m".parse().expect("an interval"), 60_000, 0)
            .expect("a candle");
        assert_eq!(
            (candle.open, candle.high, candle.low, candle.close),
            (100, 110, 90, 110)
        );
        assert_eq!((candle.volume, candle.trades, candle.buy_volume), (6, 3, 5));
        assert_eq!((candle.quote_volume, candle.buy_quote_volume), (620, 530));
    }

    #[test]
    fn a_quiet_minute_is_flat_at_the_last_price() {
        let candle = sample()
            .at("1m".parse().expect("an interval"), 120_000, 0)
            .expect("a candle");
        assert_eq!(
            (candle.open, candle.close, candle.volume, candle.trades),
            (110, 110, 0, 0)
        );
    }

    #[test]
    fn a_start_gives_the_oldest_and_an_end_the_newest() {
        let candles = sample();
        assert_eq!(opens(&candles, &range("1m", None, None, 2)), [180_000, 240_000]);
        assert_eq!(opens(&candles, &range("1m", Some(1), None, 2)), [60_000, 120_000]);
        assert_eq!(opens(&candles, &range("1m", Some(60_001), None, 2)), [120_000, 180_000]);
        assert_eq!(
            opens(&candles, &range("1m", None, Some(180_000), 2)),
            [120_000, 180_000]
        );
        assert_eq!(
            opens(&candles, &range("1m", Some(120_000), Some(190_000), 9)),
            [120_000, 180_000]
        );
        assert_eq!(
            opens(&candles, &range("1m", Some(999_000), None, 9)),
            Vec::<Millis>::new()
        );
    }

    #[test]
    fn longer_candles_are_the_sum_of_shorter_ones() {
        let candles = sample();
        let hour = candles.at("1h".parse().expect("an interval"), 0, 0).expect("a candle");
        let minutes = candles.range(&range("1m", Some(0), None, 100), 250_000);
        assert_eq!(
            hour.volume,
            minutes.iter().map(|(candle, _)| candle.volume).sum::<i128>()
        );
        assert_eq!((hour.open, hour.close, hour.high, hour.low), (100, 105, 110, 90));
    }
}
