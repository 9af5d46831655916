//! A market's messages to the streams, each written once however many listen.

use std::fmt::Write as _;

use serde_json::json;

use super::levels::{Level, push_levels};
use super::tape::{Aggregate, Trade};
use super::{Diff, Market};
use crate::interval::{Interval, Millis, SECOND};
use crate::number;
use crate::stream::hub::Hub;

/// How many levels a partial depth stream can have.
pub const PARTIAL_LEVELS: [usize; 3] = [5, 10, 20];
/// Diffs and partial books come at this pace, or once a second.
pub const FAST: Millis = 100;

#[derive(Debug)]
pub struct StreamNames {
    pub depth: String,
    pub depth_fast: String,
    pub trade: String,
    pub aggregate: String,
    pub book_ticker: String,
    pub ticker: String,
    pub mini_ticker: String,
    partial: [String; 3],
    partial_fast: [String; 3],
    klines: [String; 16],
}

impl StreamNames {
    pub fn of(symbol: &str) -> Self {
        let symbol = symbol.to_lowercase();
        Self {
            depth: format!("{symbol}@depth"),
            depth_fast: format!("{symbol}@depth@100ms"),
            trade: format!("{symbol}@trade"),
            aggregate: format!("{symbol}@aggTrade"),
            book_ticker: format!("{symbol}@bookTicker"),
            ticker: format!("{symbol}@ticker"),
            mini_ticker: format!("{symbol}@miniTicker"),
            partial: PARTIAL_LEVELS.map(|levels| format!("{symbol}@depth{levels}")),
            partial_fast: PARTIAL_LEVELS.map(|levels| format!("{symbol}@depth{levels}@100ms")),
            klines: Interval::ALL.map(|interval| format!("{symbol}@kline_{}", interval.name())),
        }
    }
}

impl Market {
    fn publish(&self, hub: &Hub, stream: &str, write: impl FnOnce() -> String) {
        if !self.recorded.contains(stream) {
            hub.publish(stream, write);
        }
    }

    pub fn publish_trade(&self, hub: &Hub, trade: &Trade) {
        self.publish(hub, &self.names.trade, || {
            let event_time = hub.event_time(trade.time);
            trade_event(&self.symbol.name, trade, event_time)
        });
    }

    pub fn publish_aggregate(&self, hub: &Hub, aggregate: &Aggregate) {
        self.publish(hub, &self.names.aggregate, || {
            let event_time = hub.event_time(aggregate.time);
            aggregate_event(&self.symbol.name, aggregate, event_time)
        });
    }

    /// The best levels, with the id of the change that made them so; nothing if they are not known.
    pub fn publish_book_ticker(&self, hub: &Hub) {
        self.publish(hub, &self.names.book_ticker, || {
            let told = |(bid, ask)| book_ticker(&self.symbol.name, self.levels.last_update_id, bid, ask);
            self.known_top().map(told).unwrap_or_default()
        });
    }

    /// What is due at a multiple of 100 ms: everything that happened before `at` is in it.
    pub fn publish_boundary(&mut self, hub: &Hub, at: Millis) {
        let whole_second = at % SECOND == 0;
        if let Some(diff) = self.take_fast_diff() {
            self.publish_diff(hub, &self.names.depth_fast, &diff, at);
            self.publish_partial(hub, &self.names.partial_fast);
        }
        if !whole_second {
            return;
        }
        if let Some(diff) = self.take_slow_diff() {
            self.publish_diff(hub, &self.names.depth, &diff, at);
            self.publish_partial(hub, &self.names.partial);
        }
        self.active = std::mem::take(&mut self.stirred);
        if hub.is_idle() {
            return;
        }
        self.publish_klines(hub, at);
        if self.active {
            self.publish(hub, &self.names.ticker, || {
                self.ticker(at).told(hub).event(hub.event_time(at)).to_string()
            });
            self.publish(hub, &self.names.mini_ticker, || {
                self.ticker(at).mini_event(hub.event_time(at)).to_string()
            });
        }
    }

    fn publish_diff(&self, hub: &Hub, stream: &str, diff: &Diff, at: Millis) {
        if !self.recorded.contains(stream) {
            hub.publish_diff(&self.symbol.name, stream, || {
                depth_update(&self.symbol.name, diff, hub.event_time(at))
            });
        }
    }

    /// Of a book that is not known nothing is sent.
    fn publish_partial(&self, hub: &Hub, names: &[String; 3]) {
        for (name, levels) in names.iter().zip(PARTIAL_LEVELS) {
            self.publish(hub, name, || self.depth_json(levels).unwrap_or_default());
        }
    }

    /// A closed candle when it closes; the open one every other second, of seconds every second.
    fn publish_klines(&self, hub: &Hub, at: Millis) {
        for (interval, name) in Interval::ALL.into_iter().zip(&self.names.klines) {
            let open = interval.open_of(at, 0);
            let closes = open == at;
            let due = closes || interval.is_second() || at % (2 * SECOND) == 0;
            if !due {
                continue;
            }
            self.publish(hub, name, || {
                let open = if closes { interval.open_of(at - 1, 0) } else { open };
                self.kline_event(interval, open, closes, at, hub.event_time(at))
            });
        }
    }

    fn kline_event(&self, interval: Interval, open: Millis, closed: bool, at: Millis, event_time: Millis) -> String {
        // Where there is no candle, or not all of it is known, an empty text is not sent.
        let Some(candle) = self.candles.at(interval, open, 0, at) else {
            return String::new();
        };
        let id = |id: u64| {
            if candle.trades == 0 {
                -1
            } else {
                i64::try_from(id).unwrap_or(-1)
            }
        };
        json!({
            "e": "kline",
            "E": event_time,
            "s": self.symbol.name,
            "k": {
                "t": open,
                "T": interval.next_open(open, 0) - 1,
                "s": self.symbol.name,
                "i": interval.name(),
                "f": id(candle.first_trade),
                "L": id(candle.last_trade),
                "o": number::fixed_price(candle.open),
                "c": number::fixed_price(candle.close),
                "h": number::fixed_price(candle.high),
                "l": number::fixed_price(candle.low),
                "v": number::fixed(candle.volume),
                "n": candle.trades,
                "x": closed,
                "q": number::fixed_money(candle.quote_volume),
                "V": number::fixed(candle.buy_volume),
                "Q": number::fixed_money(candle.buy_quote_volume),
                "B": "0"
            }
        })
        .to_string()
    }
}

/// Writing to a String cannot fail, so results of `write!` are dropped here.
fn depth_update(symbol: &str, diff: &Diff, event_time: Millis) -> String {
    let mut text = String::with_capacity(128 + 40 * (diff.bids.len() + diff.asks.len()));
    let _ = write!(
        text,
        "{{\"e\":\"depthUpdate\",\"E\":{event_time},\"s\":\"{symbol}\",\"U\":{},\"u\":{},\"b\":",
        diff.first_id, diff.last_id
    );
    push_levels(&mut text, diff.bids.iter().copied());
    text.push_str(",\"a\":");
    push_levels(&mut text, diff.asks.iter().copied());
    text.push('}');
    text
}

fn trade_event(symbol: &str, trade: &Trade, event_time: Millis) -> String {
    format!(
        "{{\"e\":\"trade\",\"E\":{event_time},\"s\":\"{symbol}\",\"t\":{},\"p\":\"{}\",\"q\":\"{}\",\"T\":{},\"m\":{},\"M\":true}}",
        trade.id,
        number::fixed_price(trade.price),
        number::fixed(trade.quantity),
        event_time,
        trade.buyer_is_maker
    )
}

fn aggregate_event(symbol: &str, aggregate: &Aggregate, event_time: Millis) -> String {
    format!(
        "{{\"e\":\"aggTrade\",\"E\":{event_time},\"s\":\"{symbol}\",\"a\":{},\"p\":\"{}\",\"q\":\"{}\",\"f\":{},\"l\":{},\"T\":{},\"m\":{},\"M\":true}}",
        aggregate.id,
        number::fixed_price(aggregate.price),
        number::fixed(aggregate.quantity),
        aggregate.first_trade,
        aggregate.last_trade,
        event_time,
        aggregate.buyer_is_maker
    )
}

fn book_ticker(symbol: &str, id: u64, bid: Option<Level>, ask: Option<Level>) -> String {
    let (bid, ask) = (bid.unwrap_or_default(), ask.unwrap_or_default());
    format!(
        "{{\"u\":{id},\"s\":\"{symbol}\",\"b\":\"{}\",\"B\":\"{}\",\"a\":\"{}\",\"A\":\"{}\"}}",
        number::fixed_price(bid.0),
        number::fixed(bid.1),
        number::fixed_price(ask.0),
        number::fixed(ask.1)
    )
}
