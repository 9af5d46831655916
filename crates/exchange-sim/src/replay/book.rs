//! One symbol's state during a replay. Its book is correct at its update id, or has a gap.

use super::event::Event;
use crate::hub::Hub;
use crate::market::levels::Levels;
use crate::market::{Diff, Market};

/// Updates kept after a gap, for the snapshot that repairs the book: more than a minute of them.
const MAX_WAITING: usize = 1_000;

pub fn apply(market: &mut Market, hub: &Hub, event: Event) {
    match event {
        Event::Diff(diff) => apply_diff(market, hub, diff),
        Event::Snapshot(levels) => apply_snapshot(market, hub, levels),
        Event::Trade(trade) => {
            if market.record_trade(trade) && !market.recorded_streams.contains("aggTrade") {
                market.tape.aggregate_trade(&trade);
            }
        }
        Event::Aggregate(aggregate) => {
            // Candles of an aggregate are those of its trades: all were at one price.
            if market.record_aggregate(aggregate) && !market.recorded_streams.contains("trade") {
                market.candles.record(&aggregate);
            }
        }
        Event::Symbols(_) | Event::Other => {}
    }
}

fn apply_diff(market: &mut Market, hub: &Hub, diff: Diff) {
    let last_update_id = market.levels.last_update_id;
    if diff.last_id <= last_update_id {
        return;
    }
    if diff.first_id <= last_update_id + 1 {
        market.apply_diff(hub, &diff);
        return;
    }
    if market.waiting.is_empty() {
        let (symbol, next) = (&market.symbol.name, diff.first_id);
        tracing::warn!(symbol, last_update_id, next, "the recording has a gap in the depth updates");
    }
    if market.waiting.len() == MAX_WAITING {
        market.waiting.pop_front();
    }
    market.waiting.push_back(diff);
}

/// A newer snapshot replaces the book; updates that came after it follow.
fn apply_snapshot(market: &mut Market, hub: &Hub, levels: Levels) {
    if levels.last_update_id <= market.levels.last_update_id {
        return;
    }
    market.replace_levels(levels);
    for diff in std::mem::take(&mut market.waiting) {
        apply_diff(market, hub, diff);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::faults::Faults;
    use crate::market::candles::Candles;
    use crate::market::levels::Side;
    use crate::market::symbol::Symbol;

    fn diff(first_id: u64, last_id: u64, quantity: i128) -> Event {
        Event::Diff(Diff { first_id, last_id, bids: vec![(100, quantity)], asks: Vec::new() })
    }

    fn book(id: u64, quantity: i128) -> Levels {
        Levels::new(id, &[(100, quantity)], &[])
    }

    #[test]
    fn book_is_correct_at_its_id_or_unknown() {
        let symbol = Symbol::new("BTCUSDT", "BTC", "USDT", (1, 1));
        let hub = Hub::new(Arc::new(Faults::new(0)));
        let mut market = Market::new(symbol, book(10, 1), Candles::new(Vec::new(), Some(0)));
        let mut step = |event| {
            apply(&mut market, &hub, event);
            let quantity = market.levels.quantity(Side::Bid, 100);
            (market.waiting.is_empty(), market.levels.last_update_id, quantity)
        };
        assert_eq!(step(diff(5, 10, 9)), (true, 10, 1), "older than the book");
        assert_eq!(step(diff(9, 12, 2)), (true, 12, 2), "around the book's id");
        assert_eq!(step(diff(13, 13, 3)), (true, 13, 3), "the next one");
        assert_eq!(step(diff(15, 16, 4)), (false, 13, 3), "a gap");
        assert_eq!(step(diff(17, 20, 5)), (false, 13, 3), "after the gap");
        assert_eq!(step(Event::Snapshot(book(12, 7))), (false, 13, 3), "an old snapshot");
        assert_eq!(step(Event::Snapshot(book(18, 6))), (true, 20, 5), "a snapshot and the updates after it");
        assert_eq!(step(diff(21, 21, 0)), (true, 21, 0), "repaired");
        assert_eq!(step(diff(23, 23, 8)), (false, 21, 0), "a gap");
        assert_eq!(step(Event::Snapshot(book(21, 7))), (false, 21, 0), "a snapshot before the gap");
        for id in 24..24 + 2 * MAX_WAITING as u64 {
            step(diff(id, id, 1));
        }
        assert_eq!(step(Event::Snapshot(book(22, 7))), (false, 22, 7), "too old: the updates after it are gone");
    }
}
