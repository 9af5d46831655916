//! Which streams exist. Others are refused, so that nobody waits for a stream that never sends.

use crate::interval::Interval;
use crate::market::publish::{PARTIAL_LEVELS, ZONES};
use crate::markets::all_tickers;

/// Longer than any stream's name.
const MAX_NAME_BYTES: usize = 128;

/// Whether a text can be written into messages as the name of a stream.
pub fn is_name(text: &str) -> bool {
    let is_illegal = |c: char| c.is_control() || c.is_whitespace() || "\"\\/".contains(c);
    !text.is_empty() && text.len() <= MAX_NAME_BYTES && !text.chars().any(is_illegal)
}

/// Whether the exchange has such a stream. Like the exchange, it accepts symbols that are not listed.
pub fn exists(name: &str) -> bool {
    if all_tickers::STREAMS.contains(&name) {
        return true;
    }
    let Some((symbol, kind)) = name.split_once('@') else {
        return false;
    };
    !symbol.is_empty() && !symbol.starts_with('!') && is_kind(kind)
}

fn is_kind(kind: &str) -> bool {
    if let Some(candles) = kind.strip_prefix("kline_") {
        let mut intervals = ZONES.iter().filter_map(|(_, zone)| candles.strip_suffix(zone));
        return intervals.any(|interval| interval.parse::<Interval>().is_ok());
    }
    if let Some(depth) = kind.strip_prefix("depth") {
        let levels = depth.strip_suffix("@100ms").unwrap_or(depth);
        return levels.is_empty() || PARTIAL_LEVELS.iter().any(|count| count.to_string() == levels);
    }
    ["trade", "aggTrade", "bookTicker", "ticker", "miniTicker", "avgPrice"].contains(&kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_recognised_by_their_kind() {
        for name in [
            "btcusdt@trade",
            "btcusdt@depth",
            "btcusdt@depth@100ms",
            "btcusdt@depth20",
            "btcusdt@depth5@100ms",
            "btcusdt@kline_1M",
            "btcusdt@kline_1m@+08:00",
            "币安人生usdt@avgPrice",
            "!ticker@arr",
        ] {
            assert!(is_name(name) && exists(name), "{name}");
        }
        for name in [
            "not asdfads",
            "btcusdt",
            "@trade",
            "!x@trade",
            "btcusdt@nothing",
            "btcusdt@ticker_1h",
            "btcusdt@depth7",
            "btcusdt@depth@1ms",
            "btcusdt@kline_1h@+09:00",
            "btcusdt@kline_",
        ] {
            assert!(!exists(name), "{name}");
        }
        assert!(!is_name("not asdfads") && !is_name("a\"b@trade") && !is_name(""));
    }
}
