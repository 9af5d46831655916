//! The chart and the order book of the moment in which something is cited, without asking the exchange.

use serde::{Deserialize, Serialize};
use tribune_binance::book::Level;
use tribune_binance::model::{Millis, Symbol};
use tribune_binance::tape::Tape;
use tribune_page::Panel;

use crate::kinds::Page;
use crate::kinds::book::book_panels;
use crate::kinds::candle_chart::chart;
use crate::kinds::klines::{Kline, counted};
use crate::kinds::table::Table;
use crate::market::Market;

/// Levels a side that a page shows.
const LEVELS: usize = 20;
const MINUTE: Millis = 60_000;
/// As long as the tape goes back.
const MINUTES: Millis = 15;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Surroundings {
    /// The last minutes as candles; the last one is still open.
    minutes: Table<Kline>,
    bids: Table<Level>,
    asks: Table<Level>,
}

impl Surroundings {
    /// `None` of a symbol whose book is not kept.
    pub(crate) fn at_hand(market: &Market, symbol: &Symbol) -> Option<Self> {
        let tracked = market.feed.lookup(&symbol.name)?;
        let minutes = minutes(&tracked.tape, market.heard_until(&tracked));
        let (bids, asks): (Vec<Level>, Vec<Level>) = tracked.live().map_or_else(Default::default, |view| {
            let (bids, asks) = (view.depth.known_bids(), view.depth.known_asks());
            (bids.take(LEVELS).collect(), asks.take(LEVELS).collect())
        });
        let is_empty = minutes.is_empty() && bids.is_empty() && asks.is_empty();
        (!is_empty).then(|| Self { minutes: minutes.into(), bids: bids.into(), asks: asks.into() })
    }

    #[cfg(test)]
    pub(crate) fn is_whole(&self) -> bool {
        !self.minutes.rows.is_empty() && !self.bids.rows.is_empty()
    }

    pub(crate) fn panels(&self, page: &Page<'_>) -> Vec<Panel> {
        let mut panels = Vec::new();
        let minutes = &self.minutes.rows;
        if !minutes.is_empty() {
            panels.push(chart(minutes, "1m", true, &counted(minutes.len()), "", page));
        }
        if !self.bids.rows.is_empty() || !self.asks.rows.is_empty() {
            panels.extend(book_panels(&self.bids.rows, &self.asks.rows, page));
        }
        panels
    }
}

/// The last minutes whose trades are complete on the tape; the last minute is still open.
fn minutes(tape: &Tape, until: Millis) -> Vec<Kline> {
    let recent = tape.recent(until.saturating_sub(MINUTES * MINUTE));
    let Some(complete_from) = recent.complete_from else {
        return Vec::new();
    };
    let mut minutes: Vec<Kline> = Vec::new();
    for trade in recent.trades() {
        let open_time = trade.time.div_euclid(MINUTE) * MINUTE;
        match minutes.last_mut() {
            _ if open_time < complete_from => {}
            Some(last) if last.open_time >= open_time => {
                last.high = last.high.max(trade.price);
                last.low = last.low.min(trade.price);
                last.close = trade.price;
                last.volume = last.volume.checked_add(trade.quantity).unwrap_or(last.volume);
            }
            _ => minutes.push(Kline {
                open_time,
                open: trade.price,
                high: trade.price,
                low: trade.price,
                close: trade.price,
                volume: trade.quantity,
                trades: None,
            }),
        }
    }
    minutes
}

#[cfg(test)]
mod tests {
    use super::*;
    use tribune_binance::model::Aggressor::Buyer;
    use tribune_binance::testing::{price, quantity, trade};

    #[test]
    fn minutes_are_whole_and_in_order() {
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
        assert_eq!((first.open_time, first.volume), (60_000, quantity("1.5")));
        assert_eq!([first.open, first.high, first.low, first.close], ["10", "12", "10", "11"].map(price));
        assert_eq!((minutes[1].open_time, minutes[1].close), (120_000, price("13")));
    }
}
