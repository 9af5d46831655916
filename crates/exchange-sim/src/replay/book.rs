//! One symbol's state during a replay. No update is missing, as the recording was checked before.

use super::event::Event;
use crate::hub::Hub;
use crate::market::Market;

pub fn apply(market: &mut Market, hub: &Hub, event: Event) {
    match event {
        Event::Diff(diff) if diff.last_id > market.levels.last_update_id => market.apply_diff(hub, &diff),
        // A newer snapshot may reach further than the book.
        Event::Snapshot(levels) if levels.last_update_id > market.levels.last_update_id => {
            market.replace_levels(levels);
        }
        Event::Trade(trade) => {
            if market.record_trade(trade) && !market.recorded_streams.contains("aggTrade") {
                market.tape.aggregate_trade(&trade);
            }
        }
        Event::Aggregate(aggregate) => {
            market.tape.push_aggregate(aggregate);
        }
        Event::Diff(_) | Event::Snapshot(_) | Event::Symbols(_) | Event::Other => {}
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::faults::Faults;
    use crate::market::Diff;
    use crate::market::candles::Candles;
    use crate::market::levels::{Levels, Side};
    use crate::market::symbol::Symbol;

    fn diff(first_id: u64, last_id: u64, quantity: i128) -> Event {
        Event::Diff(Diff { first_id, last_id, bids: vec![(100, quantity)], asks: Vec::new() })
    }

    fn book(id: u64, quantity: i128) -> Levels {
        Levels::new(id, &[(100, quantity)], &[])
    }

    #[test]
    fn updates_and_snapshots_older_than_the_book_are_ignored() {
        let symbol = Symbol::new("BTCUSDT", "BTC", "USDT", (1, 1));
        let hub = Hub::new(Arc::new(Faults::new(0)));
        let mut market = Market::new(symbol, book(10, 1), Candles::new(Vec::new(), Some(0)));
        let mut step = |event| {
            apply(&mut market, &hub, event);
            (market.levels.last_update_id, market.levels.quantity(Side::Bid, 100))
        };
        assert_eq!(step(diff(5, 10, 9)), (10, 1), "older than the book");
        assert_eq!(step(diff(9, 12, 2)), (12, 2), "around the book's id");
        assert_eq!(step(diff(13, 13, 3)), (13, 3), "the next one");
        assert_eq!(step(Event::Snapshot(book(12, 7))), (13, 3), "an old snapshot");
        assert_eq!(step(Event::Snapshot(book(18, 6))), (18, 6), "a newer snapshot");
        assert_eq!(step(diff(14, 18, 5)), (18, 6), "part of the snapshot");
        assert_eq!(step(diff(19, 19, 0)), (19, 0), "after the snapshot");
    }
}
