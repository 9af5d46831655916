//! The streams of all symbols' tickers, of those in which something happened in the last second.

use crate::interval::Millis;
use crate::venue::{Venue, lock};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AllTickers {
    Mini,
    Full,
}

impl AllTickers {
    pub const BOTH: [Self; 2] = [Self::Mini, Self::Full];

    pub const fn stream(self) -> &'static str {
        match self {
            Self::Mini => "!miniTicker@arr",
            Self::Full => "!ticker@arr",
        }
    }

    pub fn publish(self, venue: &Venue, at: Millis) {
        let hub = &venue.hub;
        let event_time = hub.event_time(at);
        hub.publish(self.stream(), || {
            let events = venue.listed.values().filter_map(|listed| {
                let market = &lock(listed).market;
                let ticker = (market.active && market.knows_ticker()).then(|| market.ticker(at))?;
                Some(match self {
                    Self::Mini => ticker.mini_event(event_time).to_string(),
                    Self::Full => ticker.told(hub).event(event_time).to_string(),
                })
            });
            let events: Vec<String> = events.collect();
            if events.is_empty() {
                String::new()
            } else {
                format!("[{}]", events.join(","))
            }
        });
    }
}
