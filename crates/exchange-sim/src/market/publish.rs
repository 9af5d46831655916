//! A market's stream messages, each written once however many connections listen.

use std::fmt::Write as _;

use serde_json::json;

use super::levels::push_levels;
use super::tape::{Aggregate, Trade};
use super::ticker::DayTicker;
use super::{Diff, Market};
use crate::hub::Hub;
use crate::interval::{HOUR, Interval, Millis, SECOND};
use crate::number;

/// Levels of a partial depth stream.
pub const PARTIAL_LEVELS: [usize; 3] = [5, 10, 20];
/// The interval of the `@100ms` streams; the others send once a second.
pub const FAST: Millis = 100;
/// Time zones of the candle streams: the offset and the end of the stream's name.
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
    /// One list for each of `ZONES`.
    klines: [[String; 16]; 2],
}

impl StreamNames {
    pub fn new(symbol: &str) -> Self {
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

/// Identifies one candle.
#[derive(Clone, Copy)]
struct CandleKey {
    interval: Interval,
    offset: Millis,
    open: Millis,
}

impl Market {
    fn publish(&self, hub: &Hub, stream: &str, write: impl FnOnce() -> String) {
        if !self.recorded_streams.contains(stream) {
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

    /// The best levels with the id of the update that changed them; nothing if they are not known.
    pub fn publish_book_ticker(&self, hub: &Hub) {
        self.publish(hub, &self.names.book_ticker, || {
            let Ok((bid, ask)) = self.best() else {
                return String::new();
            };
            format!(
                "{{\"u\":{},\"s\":\"{}\",\"b\":\"{}\",\"B\":\"{}\",\"a\":\"{}\",\"A\":\"{}\"}}",
                self.levels.last_update_id,
                self.symbol.name,
                number::fixed_price(bid.0),
                number::fixed(bid.1),
                number::fixed_price(ask.0),
                number::fixed(ask.1)
            )
        });
    }

    /// Sends what is due at `at`, a multiple of 100 ms.
    pub fn publish_boundary(&mut self, hub: &Hub, at: Millis) {
        self.publish_fast(hub, at);
        if at % SECOND != 0 {
            return;
        }
        self.publish_slow(hub, at);
        self.is_active = std::mem::take(&mut self.changed);
        if !hub.is_idle() {
            self.publish_klines(hub, at, false);
            self.publish_statistics(hub, at);
        }
    }

    /// Sends what happened since the last boundary, when a recording ends.
    pub fn publish_remaining(&mut self, hub: &Hub, at: Millis) {
        self.publish_fast(hub, at);
        self.publish_slow(hub, at);
        self.is_active = std::mem::take(&mut self.changed);
        self.publish_klines(hub, at, true);
        self.publish_statistics(hub, at);
    }

    fn publish_fast(&mut self, hub: &Hub, at: Millis) {
        if let Some(diff) = self.fast.take(&self.levels) {
            self.publish_diff(hub, &self.names.depth_fast, &diff, at);
            self.publish_partial(hub, &self.names.partial_fast);
        }
    }

    fn publish_slow(&mut self, hub: &Hub, at: Millis) {
        if let Some(diff) = self.slow.take(&self.levels) {
            self.publish_diff(hub, &self.names.depth, &diff, at);
            self.publish_partial(hub, &self.names.partial);
        }
    }

    fn publish_statistics(&self, hub: &Hub, at: Millis) {
        let event_time = hub.event_time(at);
        self.publish(hub, &self.names.average, || {
            let Ok(average) = self.average(at) else {
                return String::new();
            };
            let (price, time) = (number::fixed(average.price), hub.event_time(average.time));
            json!({"e": "avgPrice", "E": event_time, "s": self.symbol.name, "i": "5m", "w": price, "T": time})
                .to_string()
        });
        if !self.is_active || !self.has_ticker() {
            return;
        }
        self.publish(hub, &self.names.ticker, || {
            DayTicker::new(self, at, hub).event(event_time).to_string()
        });
        self.publish(hub, &self.names.mini_ticker, || {
            self.ticker(at).mini.event(event_time).to_string()
        });
    }

    fn publish_diff(&self, hub: &Hub, stream: &str, diff: &Diff, at: Millis) {
        if !self.recorded_streams.contains(stream) {
            hub.publish_diff(&self.symbol.name, stream, || {
                depth_update(&self.symbol.name, diff, hub.event_time(at))
            });
        }
    }

    /// Sends nothing while the book is not known.
    fn publish_partial(&self, hub: &Hub, names: &[String; 3]) {
        for (name, levels) in names.iter().zip(PARTIAL_LEVELS) {
            self.publish(hub, name, || self.depth_json(levels).unwrap_or_default());
        }
    }

    /// A candle when it closes; the open one every two seconds, or every second for `1s`, and when a recording ends.
    fn publish_klines(&self, hub: &Hub, at: Millis, is_end: bool) {
        for ((interval, offset), name) in self.kline_streams() {
            let open = interval.open_of(at, offset);
            let closes = open == at && !is_end;
            if !closes && !is_end && !interval.is_second() && at % (2 * SECOND) != 0 {
                continue;
            }
            self.publish(hub, name, || {
                let open = if closes { interval.open_of(at - 1, offset) } else { open };
                self.kline_event(CandleKey { interval, offset, open }, closes, at, hub.event_time(at))
            });
        }
    }

    /// The candle streams with their interval and offset.
    fn kline_streams(&self) -> impl Iterator<Item = ((Interval, Millis), &String)> {
        ZONES.iter().zip(&self.names.klines).flat_map(|((offset, _), names)| {
            let lengths = Interval::ALL.into_iter().map(|interval| (interval, *offset));
            lengths.zip(names)
        })
    }

    fn kline_event(&self, key: CandleKey, closed: bool, at: Millis, event_time: Millis) -> String {
        let CandleKey { interval, offset, open } = key;
        // An empty text is not sent.
        let Some(candle) = self.candles.at(interval, open, offset, at) else {
            return String::new();
        };
        let id = |id: u64| i64::try_from(id).ok().filter(|_| candle.trades > 0).unwrap_or(-1);
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

fn depth_update(symbol: &str, diff: &Diff, event_time: Millis) -> String {
    let mut text = String::with_capacity(128 + 40 * (diff.bids.len() + diff.asks.len()));
    // Writing to a String cannot fail.
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
