//! A market's messages to the streams, each written once however many listen.

use std::fmt::Write as _;

use serde_json::json;

use super::levels::{Level, push_levels};
use super::tape::{Aggregate, Trade};
use super::{Average, Diff, Market};
use crate::interval::{HOUR, Interval, Millis, SECOND};
use crate::number;
use crate::stream::hub::Hub;

/// How many levels a partial depth stream can have.
pub const PARTIAL_LEVELS: [usize; 3] = [5, 10, 20];
/// Diffs and partial books come at this pace, or once a second.
pub const FAST: Millis = 100;
/// Candles are streamed by UTC and by one other zone: its offset, and how stream names end.
pub const ZONES: [(Millis, &str); 2] = [(0, ""), (8 * HOUR, "@+08:00")];

#[derive(Debug)]
pub struct StreamNames {
    pub depth: String,
    pub depth_fast: String,
    pub trade: String,
    pub aggregate: String,
    pub book_ticker: String,
    pub ticker: String,
    pub mini_ticker: String,
    pub average: String,
    partial: [String; 3],
    partial_fast: [String; 3],
    /// By the zone that they are aligned to, in the order of `ZONES`.
    klines: [[String; 16]; 2],
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
            average: format!("{symbol}@avgPrice"),
            klines: ZONES
                .map(|(_, zone)| Interval::ALL.map(|interval| format!("{symbol}@kline_{}{zone}", interval.name()))),
        }
    }
}

/// One candle of one zone.
#[derive(Clone, Copy)]
struct Opened {
    interval: Interval,
    offset: Millis,
    open: Millis,
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
        self.publish_fast(hub, at);
        if at % SECOND != 0 {
            return;
        }
        self.publish_slow(hub, at);
        self.active = std::mem::take(&mut self.stirred);
        if !hub.is_idle() {
            self.publish_klines(hub, at);
            self.publish_statistics(hub, at);
        }
    }

    /// What has happened since the last boundary, because no other comes for long, or ever.
    pub fn publish_remaining(&mut self, hub: &Hub, at: Millis) {
        self.publish_fast(hub, at);
        self.publish_slow(hub, at);
        self.active = std::mem::take(&mut self.stirred);
        self.publish_open_klines(hub, at);
        self.publish_statistics(hub, at);
    }

    fn publish_fast(&mut self, hub: &Hub, at: Millis) {
        if let Some(diff) = self.take_fast_diff() {
            self.publish_diff(hub, &self.names.depth_fast, &diff, at);
            self.publish_partial(hub, &self.names.partial_fast);
        }
    }

    fn publish_slow(&mut self, hub: &Hub, at: Millis) {
        if let Some(diff) = self.take_slow_diff() {
            self.publish_diff(hub, &self.names.depth, &diff, at);
            self.publish_partial(hub, &self.names.partial);
        }
    }

    fn publish_statistics(&self, hub: &Hub, at: Millis) {
        let event_time = hub.event_time(at);
        self.publish(hub, &self.names.average, || {
            let average = self.average(at);
            average.map_or_else(
                |_| String::new(),
                |average| self.average_event(&average, hub, event_time),
            )
        });
        if !self.active || !self.knows_ticker() {
            return;
        }
        self.publish(hub, &self.names.ticker, || {
            self.ticker(at).told(hub).event(event_time).to_string()
        });
        self.publish(hub, &self.names.mini_ticker, || {
            self.ticker(at).mini_event(event_time).to_string()
        });
    }

    fn average_event(&self, average: &Average, hub: &Hub, event_time: Millis) -> String {
        json!({
            "e": "avgPrice",
            "E": event_time,
            "s": self.symbol.name,
            "i": "5m",
            "w": number::fixed(average.price),
            "T": hub.event_time(average.time)
        })
        .to_string()
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
        for ((interval, offset), name) in self.kline_streams() {
            let open = interval.open_of(at, offset);
            let closes = open == at;
            let due = closes || interval.is_second() || at % (2 * SECOND) == 0;
            if !due {
                continue;
            }
            self.publish(hub, name, || {
                let open = if closes { interval.open_of(at - 1, offset) } else { open };
                self.kline_event(Opened { interval, offset, open }, closes, at, hub.event_time(at))
            });
        }
    }

    fn publish_open_klines(&self, hub: &Hub, at: Millis) {
        for ((interval, offset), name) in self.kline_streams() {
            let open = interval.open_of(at, offset);
            self.publish(hub, name, || {
                self.kline_event(Opened { interval, offset, open }, false, at, hub.event_time(at))
            });
        }
    }

    /// Candle lengths with the offset of their zone, and the streams that have them.
    fn kline_streams(&self) -> impl Iterator<Item = ((Interval, Millis), &String)> {
        ZONES.iter().zip(&self.names.klines).flat_map(|((offset, _), names)| {
            let lengths = Interval::ALL.into_iter().map(|interval| (interval, *offset));
            lengths.zip(names)
        })
    }

    fn kline_event(&self, opened: Opened, closed: bool, at: Millis, event_time: Millis) -> String {
        let Opened { interval, offset, open } = opened;
        // Where there is no candle, or not all of it is known, an empty text is not sent.
        let Some(candle) = self.candles.at(interval, open, offset, at) else {
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
                "T": interval.next_open(open, offset) - 1,
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
