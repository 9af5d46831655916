//! One symbol's state as the recording goes on: a book that is true at its id or unknown, trades, candles, ticker.

use std::collections::VecDeque;

use super::message::Content;
use super::scan::FirstBook;
use crate::clock::Nanos;
use crate::market::known::Unknown;
use crate::market::levels::Levels;
use crate::market::tape::Trade;
use crate::market::{Diff, Market};
use crate::stream::hub::Hub;

/// Diffs kept while the book waits for a snapshot: at ten a second more than an hour of them.
const MAX_WAITING: usize = 50_000;

/// Applied diffs kept: a snapshot that was asked for is a little older than the book when it comes.
const MAX_RECENT: usize = 64;

/// So much before its time the first snapshot may be shown: it says what was true when it was asked for, and clients
/// ask for it as soon as they listen.
const EARLY: Nanos = 2_000_000_000;

impl FirstBook {
    const fn due(&self) -> Nanos {
        self.time.saturating_sub(EARLY)
    }
}

/// What the recording has of a symbol beside its book.
#[derive(Debug, Clone, Copy)]
pub struct Sources {
    pub trades: bool,
    pub aggregates: bool,
    pub tickers: bool,
}

#[derive(Debug)]
pub struct Replica {
    sources: Sources,
    /// There was a gap: nothing is known of the book until a snapshot comes.
    broken: bool,
    waiting: VecDeque<Diff>,
    recent: VecDeque<Diff>,
    /// The first snapshot, until its time has nearly come.
    first: Option<FirstBook>,
}

impl Replica {
    pub const fn new(sources: Sources, first: Option<FirstBook>) -> Self {
        Self {
            sources,
            broken: false,
            waiting: VecDeque::new(),
            recent: VecDeque::new(),
            first,
        }
    }

    /// From when on the first snapshot may be shown, if it has not been.
    pub fn first_due(&self) -> Option<Nanos> {
        self.first.as_ref().map(FirstBook::due)
    }

    /// Shows the first snapshot if its time has nearly come.
    pub fn begin_book(&mut self, market: &mut Market, hub: &Hub, at: Nanos) {
        if let Some(first) = self.first.take_if(|first| first.due() <= at) {
            self.apply_snapshot(market, hub, first.levels);
        }
    }

    pub fn apply(&mut self, market: &mut Market, hub: &Hub, content: Content) {
        match content {
            Content::Diff(diff) => self.apply_diff(market, hub, diff),
            Content::Snapshot(levels) => self.apply_snapshot(market, hub, levels),
            Content::Trade(trade) => {
                if market.record_trade(trade) && !self.sources.aggregates {
                    market.tape.aggregate_trade(&trade);
                }
            }
            Content::Aggregate(aggregate) => {
                if market.record_aggregate(aggregate) && !self.sources.trades {
                    // Candles are the same as of its trades: all were at one price.
                    let trade = Trade {
                        id: aggregate.last_trade,
                        price: aggregate.price,
                        quantity: aggregate.quantity,
                        time: aggregate.time,
                        buyer_is_maker: aggregate.buyer_is_maker,
                    };
                    let count = aggregate.last_trade - aggregate.first_trade + 1;
                    market.candles.record_many(&trade, count);
                }
            }
            Content::Ticker(ticker) => market.recorded_ticker = Some(*ticker),
            Content::MiniTicker(ticker) => {
                if !self.sources.tickers {
                    market.recorded_ticker = Some(*ticker);
                }
            }
            Content::Candle(interval, candle) => market.candles.record_candle(interval, candle),
            Content::Quote(quote) => market.record_quote(quote),
            Content::Average(average) => market.recorded_average = Some(average),
            Content::Partial(_)
            | Content::Tickers { .. }
            | Content::Listings(_)
            | Content::Other
            | Content::Unread(_) => {}
        }
    }

    fn apply_diff(&mut self, market: &mut Market, hub: &Hub, diff: Diff) {
        let at = market.levels.last_update_id;
        // Nothing is known yet, and a book made of changes alone would lack what did not change.
        if at == 0 {
            let first = self.first.as_ref().map(|first| first.levels.last_update_id);
            if first.is_some_and(|first| diff.last_id > first) {
                self.hold(diff);
            }
            return;
        }
        if diff.last_id <= at {
            return;
        }
        if diff.first_id > at + 1 {
            if !self.broken {
                tracing::warn!(
                    symbol = market.symbol.name,
                    at,
                    next = diff.first_id,
                    "the recording has a gap"
                );
            }
            self.broken = true;
            market.unknown = Some(Unknown::Gap);
            self.hold(diff);
            return;
        }
        if market.apply_diff(&diff) {
            market.publish_book_ticker(hub);
        }
        if self.recent.len() == MAX_RECENT {
            self.recent.pop_front();
        }
        self.recent.push_back(diff);
        // What was missing came late: what waited for it follows.
        if std::mem::take(&mut self.broken) {
            market.unknown = None;
            self.apply_waiting(market, hub);
        }
    }

    fn apply_waiting(&mut self, market: &mut Market, hub: &Hub) {
        let mut waiting = Vec::from(std::mem::take(&mut self.waiting));
        waiting.sort_by_key(|diff| diff.first_id);
        for diff in waiting {
            self.apply_diff(market, hub, diff);
        }
    }

    fn hold(&mut self, diff: Diff) {
        if self.waiting.len() == MAX_WAITING {
            self.waiting.pop_front();
        }
        self.waiting.push_back(diff);
    }

    /// A newer book takes the place of what is known; an older one only if it reaches further.
    fn apply_snapshot(&mut self, market: &mut Market, hub: &Hub, levels: Levels) {
        if levels.last_update_id <= market.levels.last_update_id {
            self.extend_reach(market, levels);
            return;
        }
        market.replace_levels(levels);
        self.recent.clear();
        self.broken = false;
        self.apply_waiting(market, hub);
    }

    /// A slightly older snapshot with what happened since is the book as it is, and known as far as the snapshot is.
    fn extend_reach(&self, market: &mut Market, levels: Levels) {
        let since = levels.last_update_id;
        let newer = || self.recent.iter().filter(|diff| diff.last_id > since);
        let joins = newer().next().is_some_and(|first| first.first_id <= since + 1);
        if self.broken || !market.is_cut() || !joins {
            return;
        }
        market.replace_levels(levels);
        for diff in newer() {
            market.apply_diff(diff);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::faults::Faults;
    use crate::market::candles::Candles;
    use crate::market::levels::Side;
    use crate::market::symbol::{Source, Status, Symbol};

    fn diff(first_id: u64, last_id: u64, quantity: i128) -> Content {
        Content::Diff(Diff {
            first_id,
            last_id,
            bids: vec![(100, quantity)],
            asks: Vec::new(),
        })
    }

    fn book(id: u64, quantity: i128) -> Levels {
        let mut levels = Levels::standing_at(id);
        levels.set(Side::Bid, 100, quantity);
        levels
    }

    #[test]
    fn a_book_is_true_at_its_id_or_unknown() {
        let symbol = Symbol {
            name: "BTCUSDT".to_owned(),
            base: "BTC".to_owned(),
            quote: "USDT".to_owned(),
            status: Status::Trading,
            tick: 1,
            step: 1,
            min_notional: None,
            source: Source::Exchange,
        };
        let hub = Hub::new(Arc::new(Faults::new(0)));
        let mut market = Market::new(symbol, book(10, 1), Candles::default());
        let mut replica = Replica::new(
            Sources {
                trades: true,
                aggregates: true,
                tickers: true,
            },
            None,
        );
        let mut step = |content| {
            replica.apply(&mut market, &hub, content);
            let quantity = market.levels.quantity(Side::Bid, 100);
            (market.unknown, market.levels.last_update_id, quantity)
        };
        assert_eq!(step(diff(5, 10, 9)), (None, 10, 1), "older than the book");
        assert_eq!(step(diff(9, 12, 2)), (None, 12, 2), "around the book's id");
        assert_eq!(step(diff(13, 13, 3)), (None, 13, 3), "the next one");
        assert_eq!(step(diff(15, 16, 4)), (Some(Unknown::Gap), 13, 3), "a gap");
        assert_eq!(step(diff(17, 20, 5)), (Some(Unknown::Gap), 13, 3), "after the gap");
        assert_eq!(
            step(Content::Snapshot(book(12, 7))),
            (Some(Unknown::Gap), 13, 3),
            "an old snapshot"
        );
        assert_eq!(
            step(Content::Snapshot(book(18, 6))),
            (None, 20, 5),
            "a snapshot and what waited"
        );
        assert_eq!(step(diff(21, 21, 0)), (None, 21, 0), "whole again");
        assert_eq!(step(diff(24, 24, 8)), (Some(Unknown::Gap), 21, 0), "a gap");
        assert_eq!(step(diff(23, 23, 7)), (Some(Unknown::Gap), 21, 0), "still one");
        assert_eq!(step(diff(22, 22, 6)), (None, 24, 8), "what was missing came late");
    }
}
