//! The chart and the order book at the moment of a citation, from memory.

use serde::Serialize;
use tribune_binance::{Candle, Millis, Symbol, Tape};

use crate::kinds::book::Levels;
use crate::kinds::table::Table;
use crate::market::Market;

const LEVELS: usize = 20;
const MINUTE: Millis = 60_000;
/// As long as the tape goes back.
const MINUTES: Millis = 15;

/// Fields have the names of figures, so that they are drawn like those.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Beside {
    interval: &'static str,
    /// The last minutes; the last one is still open.
    #[serde(skip_serializing_if = "Option::is_none")]
    klines: Option<Table<Candle>>,
    #[serde(flatten)]
    levels: Option<Levels>,
}

impl Beside {
    /// `None` for a symbol whose book is not tracked.
    pub(crate) fn at_hand(market: &Market, symbol: &Symbol) -> Option<Self> {
        let tracked = market.feed.lookup(&symbol.name)?;
        let minutes = minutes(&tracked.tape, market.heard_until(&tracked));
        let klines = Some(Table(minutes)).filter(|minutes| !minutes.0.is_empty());
        let levels = tracked.live().map(|view| Levels::new(&view.depth, LEVELS));
        (klines.is_some() || levels.is_some()).then_some(Self { interval: "1m", klines, levels })
    }
}

/// The last minutes whose trades are complete on the tape; the last minute is still open.
fn minutes(tape: &Tape, until: Millis) -> Vec<Candle> {
    let recent = tape.recent(until.saturating_sub(MINUTES * MINUTE));
    let Some(complete_from) = recent.complete_from else {
        return Vec::new();
    };
    let mut minutes: Vec<Candle> = Vec::new();
    for trade in recent.trades() {
        let open_time = trade.time.div_euclid(MINUTE) * MINUTE;
        let count = trade.last_id.saturating_sub(trade.first_id) + 1;
        match minutes.last_mut() {
            _ if open_time < complete_from => {}
            Some(last) if last.open_time >= open_time => {
                last.high = last.high.max(trade.price);
                last.low = last.low.min(trade.price);
                last.close = trade.price;
                last.volume = last.volume.checked_add(trade.quantity).unwrap_or(last.volume);
                last.trades += count;
            }
            // Only what a row shows.
            _ => minutes.push(Candle {
                open_time,
                open: trade.price,
                high: trade.price,
                low: trade.price,
                close: trade.price,
                volume: trade.quantity,
                trades: count,
                ..Candle::default()
            }),
        }
    }
    minutes
}

#[cfg(test)]
mod tests {
    use super::*;
    use tribune_binance::Aggressor::Buyer;
    use tribune_binance::testing::{price, quantity, trade};

    #[test]
    fn minutes_are_complete_and_ordered() {
        let tape = Tape::new(900_000);
        tape.opened(30_000);
        // Of the first minute only a half was seen.
        tape.push(trade(1, 40_000, "9", "1", Buyer), false);
        for (id, time, at) in [(2, 60_000, "10"), (3, 61_000, "12"), (4, 119_999, "11"), (5, 120_000, "13")] {
            tape.push(trade(id, time, at, "0.5", Buyer), false);
        }
        let minutes = minutes(&tape, 121_000);
        assert_eq!(minutes.len(), 2);
        let first = &minutes[0];
        assert_eq!((first.open_time, first.volume, first.trades), (60_000, quantity("1.5"), 3));
        assert_eq!([first.open, first.high, first.low, first.close], ["10", "12", "10", "11"].map(price));
        assert_eq!((minutes[1].open_time, minutes[1].close), (120_000, price("13")));
    }
}
