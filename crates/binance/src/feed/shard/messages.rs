//! What a shard does with a message: it goes to its symbol, or to the connection if it answers a subscription.

use std::time::{Duration, Instant};

use super::super::event::{Event, Unreadable, decode};
use super::super::observer::Observer;
use super::super::socket::Socket;
use super::super::subscriptions::Outcome;
use super::super::tracked::Tracked;
use super::{Shard, is_due};
use crate::model::Millis;
use crate::moment::Moment;

/// How often the log says that messages cannot be read.
const COMPLAIN_EVERY: Duration = Duration::from_secs(60);

impl<O: Observer> Shard<O> {
    /// Takes one message in; gives it back if it concerns the connection that it came on.
    pub(super) fn message<'a>(&mut self, text: &'a str, now: Moment) -> Option<Event<'a>> {
        let event = match decode(text) {
            Ok(event) => event,
            Err(unreadable) => {
                self.unreadable(&unreadable, now);
                return None;
            }
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
                self.heartbeat.note_event(trade.time);
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
            Event::Answered { .. } | Event::ServerShutdown => return Some(event),
            Event::Other => {}
        }
        self.heartbeat.beat(now.monotonic);
        None
    }

    fn note_time(&mut self, time: Millis, now: Moment) {
        self.past.lag_learned = self.health.readings();
        let lag = self.health.note_event(time, now.wall);
        self.heartbeat.note_event(time);
        self.heartbeat.set_lag(lag);
    }

    /// An unreadable message may have been an update: the book it may concern is not trusted.
    fn unreadable(&mut self, unreadable: &Unreadable, now: Moment) {
        self.complain(1, "messages of the exchange could not be read", now.monotonic);
        // The line and column, never the content.
        let (line, column) = (unreadable.line, unreadable.column);
        tracing::debug!(line, column, "a message of the exchange could not be read");
        let Some((name, kind)) = unreadable.stream.as_deref().and_then(|name| name.split_once('@')) else {
            self.past.is_doubtful = true;
            return;
        };
        let of_stream = |tracked: &&mut Tracked<O>| tracked.published.symbol.to_lowercase() == name;
        let Some(tracked) = self.symbols.values_mut().find(of_stream) else {
            return;
        };
        if kind.starts_with("depth") {
            tracked.unreadable(now);
        } else if matches!(kind, "trade" | "aggTrade") {
            let millis = self.health.exchange_millis(now.wall);
            tracked.published.tape.missed(millis, kind == "aggTrade");
        }
    }

    fn complain(&mut self, count: usize, what: &'static str, now: Instant) {
        metrics::counter!("tribune_feed_unreadable_total").increment(count as u64);
        if is_due(&mut self.past.complained, COMPLAIN_EVERY, now) {
            tracing::warn!("{what}; they are counted as tribune_feed_unreadable_total, and books they concern resync");
        }
    }
}

/// Notes what a message means for the connection it came on: `event` is what no symbol took.
pub(super) fn note(event: Option<Event<'_>>, socket: &mut Socket, now: Instant) -> Option<Outcome> {
    match event {
        Some(Event::Answered { id, error }) => return Some(socket.subscriptions.answered(id, error, now)),
        // The exchange is about to close it.
        Some(_) => socket.closing = true,
        None => socket.subscriptions.note_market(),
    }
    None
}
