//! The trades of the last seconds, from the tape where it has them all.

use tribune_core::Result;

use super::{Market, Origin};
use crate::model::{Millis, Symbol, Trade};
use crate::moment::Moment;
use crate::rest::AggTradesQuery;

/// Pages of aggregate trades fetched for one window.
const MAX_TRADE_PAGES: usize = 10;
const TRADE_PAGE: u32 = 1_000;

/// The trades of a window.
#[derive(Debug, Clone)]
pub struct TradesReading {
    pub trades: Vec<Trade>,
    /// Every trade since then is here.
    pub complete_from: Millis,
    /// The end of the window by the exchange's clock.
    pub until: Millis,
    pub received: Moment,
    pub origin: Origin,
}

impl Market {
    /// The trades of the last seconds.
    pub async fn trades(&self, symbol: &Symbol, seconds: u32) -> Result<TradesReading> {
        let length = Millis::from(seconds) * 1_000;
        if let Some(tracked) = self.feed.lookup(&symbol.name)
            && tracked.live().is_some()
        {
            // Of what came after the last word nothing is known: the window ends there.
            let received = self.last_word(&tracked);
            let age = received.age_ms(&*self.clock);
            let until = self.exchange_now().saturating_sub_unsigned(age);
            let from = until - length;
            let mut window = tracked.tape.since(from);
            window.trades.retain(|trade| trade.time <= until);
            if window.complete_from.is_some_and(|complete| complete <= from) {
                return Ok(TradesReading {
                    trades: window.trades,
                    complete_from: from,
                    until,
                    received,
                    origin: Origin::Stream,
                });
            }
        } else {
            self.feed.track(&symbol.name, false, self.rank(&symbol.name));
        }
        let until = self.exchange_now();
        self.past_trades(symbol, until - length, until).await
    }

    async fn past_trades(&self, symbol: &Symbol, from: Millis, until: Millis) -> Result<TradesReading> {
        let mut query = AggTradesQuery {
            limit: TRADE_PAGE,
            start: Some(from),
            end: Some(until),
            from_id: None,
        };
        let mut trades: Vec<Trade> = Vec::new();
        let mut received = Moment::now(&*self.clock);
        let mut whole = false;
        for _ in 0..MAX_TRADE_PAGES {
            let page = self.rest.agg_trades(&symbol.name, &query).await?;
            received = page.received;
            let known = trades.last().map_or(0, |trade| trade.last_id);
            trades.extend(page.value.iter().filter(|trade| trade.last_id > known));
            whole = page.value.len() < TRADE_PAGE as usize;
            let Some(last) = page.value.last().filter(|_| !whole) else {
                break;
            };
            // The next page begins within the last millisecond of this one.
            query.start = Some(last.time);
        }
        // Of more pages than are fetched the first are here: the window ends early.
        let until = match trades.last() {
            Some(last) if !whole => last.time,
            _ => until,
        };
        Ok(TradesReading {
            trades,
            complete_from: from,
            until,
            received,
            origin: Origin::Rest,
        })
    }
}
