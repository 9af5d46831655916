//! For benchmarks and tests: one book without a connection, which does what a shard does with its messages and nothing
//! else; and a feed that is connected from the start.

use std::sync::Arc;

use tribune_clock::Clock;

use super::event::{Event, decode};
use super::published::Observer;
use super::published::Published;
use super::tracked::Tracked;
use super::{Feed, Settings};
use crate::book::{Outcome, Snapshot};
use crate::model::Millis;
use crate::moment::Moment;
use crate::rest::Rest;

pub struct Alone<O> {
    tracked: Tracked<O>,
}

impl<O: Observer> Alone<O> {
    pub fn new(symbol: &str, snapshot: Snapshot, max_levels: usize, now: Moment) -> Self {
        let published = Arc::new(Published::new(Arc::from(symbol), true, 0, now));
        let mut tracked = Tracked::new(published, max_levels, now.monotonic);
        tracked.opened(now, now.wall.as_millisecond());
        tracked.install(snapshot, now);
        Self { tracked }
    }

    pub fn published(&self) -> &Arc<Published<O>> {
        &self.tracked.published
    }

    /// As the feed takes a message of the market: read, applied and published. Whether it was one.
    pub fn message(&mut self, text: &str, now: Moment) -> bool {
        match decode(text) {
            Ok(Event::Depth { diff, .. }) => self.tracked.event(diff, now),
            Ok(Event::BestQuote { quote, .. }) => self.tracked.quote(quote, now),
            Ok(Event::Trade { trade, aggregate, .. }) => {
                if self.tracked.published.tape.push(trade, aggregate) {
                    self.tracked.published.pulse.trade(now.monotonic);
                }
            }
            _ => return false,
        }
        true
    }

    /// As the feed does once a second.
    pub fn look(&self, now: Moment, exchange_millis: Millis) {
        self.tracked.look(now.monotonic, exchange_millis);
    }

    /// Applies an update of the depth without publishing; whether it was one and was applied.
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

impl<O: Observer> Feed<O> {
    /// A feed that is connected. Must be called within a runtime.
    pub fn start(settings: Settings, rest: Rest, clock: Arc<dyn Clock>) -> Arc<Self> {
        let feed = Self::new(settings, rest, clock);
        feed.connect();
        feed
    }
}
