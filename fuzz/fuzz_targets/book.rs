//! Messages of the exchange, one a line, into an order book: a book that is offered as exact is never crossed.

#![no_main]

use libfuzzer_sys::fuzz_target;
use tribune_binance::{LocalBook, Snapshot};
use tribune_binance::feed::event::{Event, decode};

fuzz_target!(|lines: &str| {
    let mut book = LocalBook::new(50);
    for line in lines.lines() {
        if let Some(depth) = line.strip_prefix("snapshot ") {
            if let Ok(snapshot) = serde_json::from_str::<Snapshot>(depth) {
                let _ = book.snapshot(Snapshot { limit: 5, ..snapshot });
            }
            continue;
        }
        match decode(line) {
            Ok(Event::Depth { diff, .. }) => {
                let _ = book.event(diff);
            }
            Ok(Event::BestQuote { quote, .. }) => {
                let _ = book.announce(quote);
            }
            _ => {}
        }
        assert!(!book.is_synced() || !book.depth().is_crossed(), "{line}");
    }
});
