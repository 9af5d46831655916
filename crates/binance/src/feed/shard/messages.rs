//! What a shard does with a message: it goes to its symbol, or to the connection if it answers a subscription.

use std::time::{Duration, Instant};

use super::super::event::{Event, decode};
use super::super::published::Observer;
use super::{Connection, Shard, is_due};
use crate::model::Millis;
use crate::moment::Moment;

/// How often the log says that messages cannot be read.
const COMPLAIN_EVERY: Duration = Duration::from_secs(60);

impl<O: Observer> Shard<O> {
    pub(super) fn message(&mut self, text: &str, by: Connection, now: Moment) {
        let event = match decode(text) {
            Ok(event) => event,
            Err(stream) => return self.unreadable(stream.as_deref(), now),
        };
        match event {
            Event::Depth { symbol, diff } => {
                if let Some(time) = diff.time {
                    self.note_time(time, now);
                }
                if let Some(tracked) = self.symbols.get_mut(&*symbol) {
                    if !tracked.is_open() {
                        // Its stream is there, whether or not the subscription was confirmed.
                        tracked.opened(now, self.health.exchange_millis(now.wall));
                    }
                    tracked.event(diff, now);
                }
            }
            Event::BestQuote { symbol, quote } => {
                if let Some(tracked) = self.symbols.get_mut(&*symbol) {
                    tracked.quote(quote, now);
                }
            }
            Event::Trade { symbol, trade, aggregate } => {
                self.note_time(trade.time, now);
                if let Some(tracked) = self.symbols.get(&*symbol)
                    && tracked.published.tape.push(trade, aggregate)
                {
                    tracked.published.pulse.trade(now.monotonic);
                }
            }
            Event::MiniTickers { tickers, unreadable } => {
                if unreadable > 0 {
                    self.complain(unreadable, "tickers of the exchange could not be read", now.monotonic);
                }
                if let Some(time) = tickers.iter().map(|ticker| ticker.time).max() {
                    self.note_time(time, now);
                }
                if let Some(board) = &self.board {
                    board.update(&tickers, now);
                }
            }
            Event::Answered { id, error } => self.subscribed(id, error, by, now),
            Event::ServerShutdown => {
                if let Some(socket) = self.connection(by) {
                    socket.closing = true;
                }
            }
            Event::Other => {}
        }
        self.link.beat(now.monotonic);
    }

    /// The exchange has answered a subscription.
    fn subscribed(&mut self, id: u64, error: Option<String>, by: Connection, now: Moment) {
        let Some(socket) = self.connection(by) else { return };
        let refused = socket.subscriptions.answered(id, error.is_some(), now.monotonic);
        // What a successor does not bring still comes on the old connection.
        let Some(why) = error.filter(|_| by == Connection::Current && !refused.is_empty()) else { return };
        tracing::warn!(count = refused.len(), %why, "the exchange refused a subscription; it is tried again");
        for topic in refused {
            if let Some(tracked) = self.symbols.get(&topic).filter(|tracked| !tracked.is_open()) {
                tracked.refused(&why, now);
            }
        }
    }

    fn note_time(&mut self, time: Millis, now: Moment) {
        let lag = self.health.note_event(time, now.wall);
        self.link.set_lag(lag);
    }

    /// An update that cannot be read takes its book down. What else is missing shows at the next message, by its ids.
    fn unreadable(&mut self, stream: Option<&str>, now: Moment) {
        self.complain(1, "messages of the exchange could not be read", now.monotonic);
        let stream = stream.and_then(|name| name.split_once('@'));
        let Some((name, _)) = stream.filter(|(_, kind)| kind.starts_with("depth")) else { return };
        let tracked = self.symbols.values_mut().find(|tracked| tracked.published.symbol.to_lowercase() == name);
        if let Some(tracked) = tracked {
            tracked.unreadable(now);
        }
    }

    fn complain(&mut self, count: usize, what: &'static str, now: Instant) {
        metrics::counter!("tribune_feed_unreadable_total").increment(count as u64);
        if is_due(&mut self.past.complained, COMPLAIN_EVERY, now) {
            tracing::warn!("{what}; they are counted as tribune_feed_unreadable_total, and books they concern resync");
        }
    }
}
