//! A market's stream messages, each written once however many connections listen.

use std::fmt::Write as _;

use serde::Serialize;
use serde_json::json;

use super::levels::push_levels;
use super::tape::{Aggregate, Trade};
use super::{Diff, Market};
use crate::hub::Hub;
use crate::interval::{Interval, Millis, SECOND};
use crate::number;

/// Levels of a partial depth stream.
const PARTIAL_LEVELS: [usize; 3] = [5, 10, 20];
/// The interval of the `@100ms` streams; the others send once a second.
pub const FAST: Millis = 100;

/// Whether a symbol has such a stream: `trade`, `depth5@100ms`, `kline_1h`, ….
pub fn is_stream_kind(kind: &str) -> bool {
    if let Some(depth) = kind.strip_prefix("depth") {
        let levels = depth.strip_suffix("@100ms").unwrap_or(depth);
        return levels.is_empty() || PARTIAL_LEVELS.iter().any(|count| count.to_string() == levels);
    }
    ["trade", "aggTrade", "bookTicker", "ticker", "miniTicker"].contains(&kind) || candles_of_kind(kind).is_some()
}

/// The interval of a candle stream, such as `kline_1h`.
pub fn candles_of_kind(kind: &str) -> Option<Interval> {
    kind.strip_prefix("kline_")?.parse().ok()
}

/// A trade or an aggregate as a stream message.
#[derive(Serialize)]
struct TradeEvent<'a, T> {
    #[serde(rename = "e")]
    event: &'a str,
    #[serde(rename = "E")]
    event_time: Millis,
    #[serde(rename = "s")]
    symbol: &'a str,
    #[serde(flatten)]
    trade: T,
    #[serde(rename = "M")]
    is_best_match: bool,
}

impl Market {
    /// The name of a stream.
    fn stream(&self, kind: &str) -> String {
        format!("{}@{kind}", self.stream_name)
    }

    /// Sends a message that the recording does not have itself.
    fn publish(&self, hub: &Hub, kind: &str, write: impl FnOnce() -> Option<String>) {
        if !self.recorded_streams.contains(kind) {
            hub.publish(&self.stream(kind), write);
        }
    }

    pub fn publish_trade(&self, hub: &Hub, trade: &Trade) {
        let time = hub.event_time(trade.time);
        self.publish_trade_event(hub, "trade", time, Trade { time, ..*trade });
    }

    pub fn publish_aggregate(&self, hub: &Hub, aggregate: &Aggregate) {
        let time = hub.event_time(aggregate.time);
        self.publish_trade_event(hub, "aggTrade", time, Aggregate { time, ..*aggregate });
    }

    fn publish_trade_event(&self, hub: &Hub, kind: &str, event_time: Millis, trade: impl Serialize) {
        self.publish(hub, kind, || {
            let event = TradeEvent { event: kind, event_time, symbol: &self.symbol.name, trade, is_best_match: true };
            serde_json::to_string(&event).ok()
        });
    }

    /// The best levels with the id of the update that changed them; nothing if they are not known.
    pub fn publish_book_ticker(&self, hub: &Hub) {
        self.publish(hub, "bookTicker", || {
            let (bid, ask) = self.best().ok()?;
            Some(format!(
                "{{\"u\":{},\"s\":\"{}\",\"b\":\"{}\",\"B\":\"{}\",\"a\":\"{}\",\"A\":\"{}\"}}",
                self.levels.last_update_id,
                self.symbol.name,
                number::fixed(bid.0),
                number::fixed(bid.1),
                number::fixed(ask.0),
                number::fixed(ask.1)
            ))
        });
    }

    /// Sends what is due at `at`, a multiple of 100 ms; or, when a recording ends, what happened since the last one.
    pub fn publish_due(&mut self, hub: &Hub, at: Millis, is_end: bool) {
        if let Some(diff) = self.fast.take(&self.levels) {
            self.publish_depth(hub, "@100ms", &diff, at);
        }
        if is_end || at % SECOND == 0 {
            self.publish_second(hub, at, is_end);
        }
    }

    fn publish_depth(&self, hub: &Hub, suffix: &str, diff: &Diff, at: Millis) {
        let kind = format!("depth{suffix}");
        if !self.recorded_streams.contains(&kind) {
            let write = || depth_update(&self.symbol.name, diff, hub.event_time(at));
            hub.publish_diff(&self.stream(&kind), write);
        }
        // Nothing while the book is not known.
        for levels in PARTIAL_LEVELS {
            self.publish(hub, &format!("depth{levels}{suffix}"), || self.depth_json(levels).ok());
        }
    }

    fn publish_second(&mut self, hub: &Hub, at: Millis, is_end: bool) {
        if let Some(diff) = self.slow.take(&self.levels) {
            self.publish_depth(hub, "", &diff, at);
        }
        self.is_active = std::mem::take(&mut self.changed);
        let has_ticker = self.is_active && self.has_ticker();
        let (event_time, skew) = (hub.event_time(at), hub.faults.skew());
        let beginning = self.stream("");
        for stream in hub.streams(&beginning) {
            let kind = &stream[beginning.len()..];
            self.publish(hub, kind, || match kind {
                "ticker" if has_ticker => Some(self.ticker(at, skew).event(event_time).to_string()),
                "miniTicker" if has_ticker => Some(self.ticker(at, skew).mini_event(event_time).to_string()),
                kind => self.kline_event(kind, at, is_end, event_time),
            });
        }
    }

    /// A candle when it closes; the open one every two seconds, or every second for `1s`, and when a recording ends.
    fn kline_event(&self, kind: &str, at: Millis, is_end: bool, event_time: Millis) -> Option<String> {
        let interval = candles_of_kind(kind)?;
        let closes = !is_end && interval.open_of(at) == at;
        if !closes && !is_end && !interval.is_second() && at % (2 * SECOND) != 0 {
            return None;
        }
        let open = interval.open_of(if closes { at - 1 } else { at });
        let candle = self.candles.at(interval, open)?;
        let event = json!({
            "e": "kline",
            "E": event_time,
            "s": self.symbol.name,
            "k": {
                "t": open,
                "T": interval.next_open(open) - 1,
                "s": self.symbol.name,
                "i": interval.name(),
                "f": candle.id(candle.first_trade),
                "L": candle.id(candle.last_trade),
                "o": number::fixed(candle.open),
                "c": number::fixed(candle.close),
                "h": number::fixed(candle.high),
                "l": number::fixed(candle.low),
                "v": number::fixed(candle.volume),
                "n": candle.trades,
                "x": closes,
                "q": number::fixed_money(candle.quote_volume),
                "V": number::fixed(candle.buy_volume),
                "Q": number::fixed_money(candle.buy_quote_volume),
                "B": "0"
            }
        });
        Some(event.to_string())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_recognised_by_their_kind() {
        for kind in ["trade", "depth", "depth@100ms", "depth20", "depth5@100ms", "kline_1M"] {
            assert!(is_stream_kind(kind), "{kind}");
        }
        for kind in ["", "nothing", "ticker_1h", "depth7", "depth@1ms", "kline_1h@+08:00", "kline_"] {
            assert!(!is_stream_kind(kind), "{kind}");
        }
    }
}
