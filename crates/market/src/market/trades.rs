//! The trades of the last seconds, from the tape where it has them all.

use tribune_core::Result;

use super::{Market, Origin};
use crate::analytics::flow::RATE_SECS;
use crate::model::{Millis, Symbol, Trade};
use crate::moment::Moment;
use crate::rest::AggTradesQuery;

/// Pages of aggregate trades fetched for one window.
const MAX_TRADE_PAGES: usize = 10;
const TRADE_PAGE: u32 = 1_000;

/// The trades of a window.
#[derive(Debug, Clone)]
pub struct TradesReading {
    /// Oldest first; some of them may lie outside the window.
    pub trades: Vec<Trade>,
    /// Every trade from then until the window's end is here.
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
            let until = self.heard_until(&tracked);
            // Rates are of ten seconds, however short the window is.
            let from = until - length.max(Millis::from(RATE_SECS) * 1_000);
            let mut window = tracked.tape.since(from);
            window.trades.retain(|trade| trade.time <= until);
            if let Some(complete) = window.complete_from.filter(|complete| *complete <= until - length) {
                return Ok(TradesReading {
                    trades: window.trades,
                    complete_from: complete.max(from),
                    until,
                    received,
                    origin: Origin::Stream,
                });
            }
        } else {
            self.feed.track(&symbol.name, false, self.rank(&symbol.name));
        }
        self.past_trades(symbol, length).await
    }

    /// The newest first, so that it is the end of the window that is known where there are more trades than are
    /// fetched. No request has a time in it, so that all who ask in the same moment ask the same.
    async fn past_trades(&self, symbol: &Symbol, length: Millis) -> Result<TradesReading> {
        let mut query = AggTradesQuery {
            limit: TRADE_PAGE,
            start: None,
            end: None,
            from_id: None,
        };
        let newest = self.rest.agg_trades(&symbol.name, &query).await?;
        let (received, until) = (newest.received, self.exchange_time_of(&newest.sent));
        let from = until - length;
        let mut pages = vec![newest];
        let complete_from = loop {
            let Some(page) = pages.last().map(|page| &page.value) else {
                break until;
            };
            let (Some(first), Some(first_id)) = (page.trades.first(), page.first_id) else {
                // Nothing was ever traded, or nothing is told of what was before.
                break pages.iter().rev().find_map(|page| page.value.trades.first()).map_or(from, whole_from);
            };
            let is_all = first_id == 0 || (pages.len() == 1 && page.trades.len() < TRADE_PAGE as usize);
            if is_all {
                break from.min(first.time);
            }
            if first.time < from || pages.len() == MAX_TRADE_PAGES {
                break whole_from(first);
            }
            let before = first_id.saturating_sub(u64::from(TRADE_PAGE));
            query.from_id = Some(before);
            query.limit = u32::try_from(first_id - before).unwrap_or(TRADE_PAGE);
            pages.push(self.rest.agg_trades(&symbol.name, &query).await?);
        };
        let mut trades: Vec<Trade> = Vec::new();
        for page in pages.iter().rev() {
            let known = trades.last().map(|trade| trade.last_id);
            let next = page.value.trades.iter();
            trades.extend(next.filter(|trade| known.is_none_or(|known| trade.last_id > known)));
        }
        trades.retain(|trade| trade.time <= until);
        Ok(TradesReading {
            trades,
            complete_from,
            until,
            received,
            origin: Origin::Rest,
        })
    }
}

/// Others of the first one's millisecond may be before it.
const fn whole_from(first: &Trade) -> Millis {
    first.time.saturating_add(1)
}
