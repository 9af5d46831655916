//! The ticker streams of all symbols, with those in which something happened in the last second.

use super::Markets;
use crate::interval::Millis;
use crate::market::Market;
use crate::market::ticker::DayTicker;
use crate::simulated::lock;

pub const STREAMS: [&str; 2] = ["!miniTicker@arr", "!ticker@arr"];

pub fn publish_both(markets: &Markets, at: Millis) {
    let hub = &markets.hub;
    let event_time = hub.event_time(at);
    let mini = |market: &Market| market.ticker(at).mini.event(event_time).to_string();
    let full = |market: &Market| DayTicker::new(market, at, hub).event(event_time).to_string();
    hub.publish(STREAMS[0], || array(markets, mini));
    hub.publish(STREAMS[1], || array(markets, full));
}

/// An empty text, which is not sent, if no symbol was active.
fn array(markets: &Markets, event: impl Fn(&Market) -> String) -> String {
    let events = markets.instruments.values().filter_map(|instrument| {
        let market = &lock(instrument).market;
        (market.is_active && market.has_ticker()).then(|| event(market))
    });
    let events: Vec<String> = events.collect();
    match events.is_empty() {
        true => String::new(),
        false => format!("[{}]", events.join(",")),
    }
}
