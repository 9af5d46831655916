//! Which streams there are. Others are refused: nobody has to wait for what never comes.

use super::all::AllTickers;
use crate::interval::Interval;
use crate::market::publish::{PARTIAL_LEVELS, ZONES};
use crate::venue::{Venue, lock};

/// Longer than any stream's name.
const MAX_STREAM_NAME: usize = 128;

/// Whether a text can be written into messages as the name of a stream.
pub fn is_name(text: &str) -> bool {
    let odd = |c: char| c.is_control() || c.is_whitespace() || "\"\\/".contains(c);
    !text.is_empty() && text.len() <= MAX_STREAM_NAME && !text.chars().any(odd)
}

/// Whether a stream is made, or is in the recording. Symbols are taken as the exchange takes them, listed or not.
pub fn is_served(venue: &Venue, name: &str) -> bool {
    AllTickers::BOTH.iter().any(|all| all.stream() == name) || is_kind_of_symbol(name) || is_recorded(venue, name)
}

fn is_kind_of_symbol(name: &str) -> bool {
    let Some((symbol, kind)) = name.split_once('@') else {
        return false;
    };
    !symbol.is_empty() && !symbol.starts_with('!') && is_kind(kind)
}

fn is_kind(kind: &str) -> bool {
    let plain = ["trade", "aggTrade", "bookTicker", "ticker", "miniTicker", "avgPrice"];
    if let Some(candles) = kind.strip_prefix("kline_") {
        let mut lengths = ZONES.iter().filter_map(|(_, zone)| candles.strip_suffix(zone));
        return lengths.any(|length| length.parse::<Interval>().is_ok());
    }
    if let Some(depth) = kind.strip_prefix("depth") {
        let levels = depth.strip_suffix("@100ms").unwrap_or(depth);
        return levels.is_empty() || PARTIAL_LEVELS.iter().any(|count| count.to_string() == levels);
    }
    plain.contains(&kind)
}

fn is_recorded(venue: &Venue, name: &str) -> bool {
    let Some(replay) = &venue.replay else {
        return false;
    };
    let symbol = name.split('@').next().unwrap_or_default().to_uppercase();
    let of_symbol = |listed| lock(listed).market.recorded.contains(name);
    replay.is_recorded(name) || venue.lookup(&symbol).is_some_and(of_symbol)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_known_by_their_kind() {
        for name in [
            "btcusdt@trade",
            "btcusdt@depth",
            "btcusdt@depth@100ms",
            "btcusdt@depth20",
            "btcusdt@depth5@100ms",
            "btcusdt@kline_1M",
            "btcusdt@kline_1m@+08:00",
            "币安人生usdt@avgPrice",
        ] {
            assert!(is_name(name) && is_kind_of_symbol(name), "{name}");
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
            assert!(!is_kind_of_symbol(name), "{name}");
        }
        assert!(!is_name("not asdfads") && !is_name("a\"b@trade") && !is_name(""));
    }
}
