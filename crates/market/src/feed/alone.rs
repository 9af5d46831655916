//! One book without a connection, to be measured: what a shard does with its messages, and nothing else.

use std::sync::Arc;

use super::event::{Event, decode};
use super::published::Published;
use super::tracked::Tracked;
use crate::book::{Outcome, Snapshot};
use crate::model::Millis;
use crate::moment::Moment;

#[doc(hidden)]
pub struct Alone {
    tracked: Tracked,
}

impl Alone {
    pub fn new(symbol: &str, snapshot: Snapshot, max_levels: usize, now: Moment) -> Self {
        let published = Arc::new(Published::new(Arc::from(symbol), true, 0, None, now));
        let mut tracked = Tracked::new(published, max_levels);
        tracked.opened(now, now.wall.as_millisecond());
        tracked.install(snapshot, now);
        Self { tracked }
    }

    pub fn published(&self) -> &Arc<Published> {
        &self.tracked.published
    }

    /// As the feed takes a message: read, applied and published. Whether it was one of the depth.
    pub fn message(&mut self, text: &str, now: Moment) -> bool {
        let Ok(Event::Depth { diff, .. }) = decode(text) else {
            return false;
        };
        self.tracked.event(diff, now);
        true
    }

    /// The same of any message of the market, trades among them.
    pub fn heard(&mut self, text: &str, now: Moment) {
        match decode(text) {
            Ok(Event::Depth { diff, .. }) => self.tracked.event(diff, now),
            Ok(Event::BestQuote { quote, .. }) => self.tracked.quote(quote, now),
            Ok(Event::Trade { trade, aggregate, .. }) => {
                let is_new = self.tracked.published.tape.push(trade, aggregate);
                if is_new {
                    self.tracked.published.pulse.trade(now.monotonic);
                }
            }
            _ => {}
        }
    }

    /// As the feed does once a second.
    pub fn look(&self, now: Moment, exchange_millis: Millis) {
        self.tracked.look(now.monotonic, exchange_millis);
    }

    /// The same without publishing; whether it was applied.
    pub fn apply(&mut self, text: &str) -> bool {
        match decode(text) {
            Ok(Event::Depth { diff, .. }) => self.tracked.book.event(diff) == Ok(Outcome::Applied),
            _ => false,
        }
    }

    pub fn publish(&mut self, now: Moment) {
        self.tracked.publish(now);
    }
}
