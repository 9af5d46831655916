//! What a shard makes of a message: the symbol that it is about hears of it, and the connection whether it was answered.

use std::time::{Duration, Instant};

use super::super::event::{Event, Unreadable, decode};
use super::super::socket::Socket;
use super::super::subscriptions::Verdict;
use super::super::tracked::Tracked;
use super::{Shard, may_again};
use crate::model::Millis;
use crate::moment::Moment;

/// How often is said that messages cannot be read.
const COMPLAIN_EVERY: Duration = Duration::from_secs(60);

/// What a message means for the connection that it came on.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Said {
    Market,
    /// What was asked with this id was done, or not.
    Answer {
        id: u64,
        error: Option<String>,
    },
    /// It is about to be closed.
    Closing,
}

impl Shard {
    /// Takes one message in.
    pub(super) fn message(&mut self, text: &str, now: Moment) -> Said {
        let event = match decode(text) {
            Ok(event) => event,
            Err(unreadable) => {
                self.unreadable(&unreadable, now);
                return Said::Market;
            }
        };
        match event {
            Event::Depth { symbol, diff } => {
                if let Some(time) = diff.time {
                    self.note_time(time, now);
                }
                if let Some(tracked) = self.symbols.get_mut(&*symbol) {
                    if !tracked.is_open() {
                        // It comes, whether or not the answer to its subscription did.
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
            Event::Trade {
                symbol,
                trade,
                aggregate,
            } => {
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
            Event::Answered { id, error } => return Said::Answer { id, error },
            Event::ServerShutdown => return Said::Closing,
            Event::Candle { .. } | Event::Other => {}
        }
        self.heartbeat.beat(now.monotonic);
        Said::Market
    }

    fn note_time(&mut self, time: Millis, now: Moment) {
        self.past.lag_learned = self.health.learned();
        let lag = self.health.note_event(time, now.wall);
        self.heartbeat.note_event(time);
        self.heartbeat.set_lag(lag);
    }

    /// A message that is not understood is not forgotten: what it may have said is doubted.
    fn unreadable(&mut self, unreadable: &Unreadable<'_>, now: Moment) {
        self.complain(1, "messages of the exchange could not be read", now.monotonic);
        // The line and column, never the content.
        let (line, column) = (unreadable.line, unreadable.column);
        tracing::debug!(line, column, "a message of the exchange could not be read");
        let Some((name, kind)) = unreadable.stream.as_deref().and_then(|name| name.split_once('@')) else {
            self.past.is_doubtful = true;
            return;
        };
        let of_stream = |tracked: &&mut Tracked| tracked.published.symbol.to_lowercase() == name;
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
        if may_again(&mut self.past.complained, COMPLAIN_EVERY, now) {
            tracing::warn!(
                "{what}; they are counted as tribune_feed_unreadable_total, and books they concern begin again"
            );
        }
    }
}

/// What a connection makes of what was said on it.
pub(super) fn note(said: Said, socket: Option<&mut Socket>, now: Instant) -> Option<Verdict> {
    let socket = socket?;
    match said {
        Said::Answer { id, error } => Some(socket.subscriptions.answered(id, error, now)),
        Said::Closing => {
            socket.closing = true;
            None
        }
        Said::Market => {
            socket.subscriptions.note_market();
            None
        }
    }
}
