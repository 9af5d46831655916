//! The trades of the last seconds, from the tape where it has them all.

use std::sync::Arc;
use tribune_market_parts::exchange_error;

use tribune_core::Result;

use super::{Market, Origin};
use tribune_analytics::RATE_SECS;
use tribune_binance::{Aggregates, Millis, Moment, Shared, Stamped, Symbol, Trade};

/// Pages of aggregate trades fetched for one window.
const MAX_TRADE_PAGES: usize = 10;
const TRADE_PAGE: u32 = 1_000;

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
    pub async fn trades(&self, symbol: &Symbol, seconds: u32) -> Result<TradesReading> {
        if let Some(reading) = self.streamed_trades(symbol, seconds) {
            return Ok(reading);
        }
        self.watched(symbol);
        self.past_trades(symbol, Millis::from(seconds) * 1_000).await
    }

    /// From the tape; `None` if it does not have all of them.
    pub(crate) fn streamed_trades(&self, symbol: &Symbol, seconds: u32) -> Option<TradesReading> {
        let length = Millis::from(seconds) * 1_000;
        let tracked = self.feed.lookup(&symbol.name)?;
        tracked.live()?;
        // Trades after the last confirmation are not known, so the window ends there.
        let received = self.last_confirmed(&tracked);
        let until = self.heard_until(&tracked);
        let from = until - at_least_rate(length);
        let recent = tracked.tape.recent(from);
        let complete = recent.complete_from.filter(|complete| *complete <= until - length)?;
        Some(TradesReading {
            trades: recent.trades().filter(|trade| trade.time <= until).copied().collect(),
            complete_from: complete.max(from),
            until,
            received,
            origin: Origin::Stream,
        })
    }

    async fn past_trades(&self, symbol: &Symbol, length: Millis) -> Result<TradesReading> {
        let fetch = |from_id, limit| self.rest.agg_trades(&symbol.name, limit, from_id);
        let newest = fetch(None, TRADE_PAGE).await.map_err(exchange_error)?;
        let (received, until) = (newest.received, self.exchange_time_of(&newest.sent));
        let (mut trades, complete_from) = back_to(until - at_least_rate(length), newest, fetch).await?;
        trades.retain(|trade| trade.time <= until);
        Ok(TradesReading { trades, complete_from, until, received, origin: Origin::Rest })
    }
}

/// Rates need ten seconds, however short the window is.
fn at_least_rate(length: Millis) -> Millis {
    length.max(Millis::from(RATE_SECS) * 1_000)
}

/// The trades of the newest page and those before it, oldest first, back to a time or to the page limit, and since when
/// they are complete. Requests contain no time, so that callers of the same moment share them.
async fn back_to<F>(
    from: Millis,
    newest: Arc<Stamped<Aggregates>>,
    fetch: impl Fn(Option<u64>, u32) -> F,
) -> Result<(Vec<Trade>, Millis)>
where
    F: Future<Output = Shared<Aggregates>>,
{
    // A page that is not full has all trades there are, unless it is of a recording, which begins later than id 0.
    let is_full = newest.value.trades.len() >= TRADE_PAGE as usize;
    let mut is_all = !is_full && newest.value.first_id.is_none_or(|first| first == 0);
    let mut pages = vec![newest];
    while is_full && !is_all && pages.len() < MAX_TRADE_PAGES {
        let oldest = pages.last().map(|page| &page.value);
        let first = oldest.and_then(|page| Some((page.first_id?, page.trades.first()?.time)));
        let Some((first_id, _)) = first.filter(|(_, time)| *time >= from) else {
            break;
        };
        let before = first_id.saturating_sub(u64::from(TRADE_PAGE));
        let Some(limit) = u32::try_from(first_id - before).ok().filter(|limit| *limit > 0) else {
            is_all = true;
            break;
        };
        let next = fetch(Some(before), limit).await.map_err(exchange_error)?;
        if next.value.first_id.is_none_or(|next| next >= first_id) {
            // There is nothing before it.
            break;
        }
        pages.push(next);
    }
    let mut trades: Vec<Trade> = Vec::new();
    for page in pages.iter().rev() {
        let known = trades.last().map(|trade| trade.last_id);
        let next = page.value.trades.iter();
        trades.extend(next.filter(|trade| known.is_none_or(|known| trade.last_id > known)));
    }
    let complete_from = match trades.first() {
        // Others of the same millisecond may be missing.
        Some(first) if !is_all => first.time.saturating_add(1),
        _ => from,
    };
    Ok((trades, complete_from))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use tribune_binance::Aggressor::Buyer;
    use tribune_binance::testing::trade;

    /// An exchange with so many aggregates, one every ten milliseconds, each of which is two trades.
    fn answer(count: u64, from_id: Option<u64>, limit: u32) -> Arc<Stamped<Aggregates>> {
        let first = from_id.unwrap_or(count.saturating_sub(u64::from(limit)));
        let last = count.min(first + u64::from(limit));
        let one = |id: u64| Trade { first_id: 2 * id, ..trade(2 * id + 1, id as Millis * 10, "1", "1", Buyer) };
        let now = Moment::now(&tribune_core::SystemClock);
        Arc::new(Stamped {
            value: Aggregates { first_id: (first < last).then_some(first), trades: (first..last).map(one).collect() },
            exchange_time: None,
            sent: now,
            received: now,
            simulated: true,
        })
    }

    async fn read(count: u64, from: Millis) -> (Vec<u64>, Millis, usize) {
        let asked = AtomicUsize::new(1);
        let fetch = |from_id, limit| {
            asked.fetch_add(1, Ordering::Relaxed);
            std::future::ready(Ok(answer(count, from_id, limit)))
        };
        let newest = answer(count, None, TRADE_PAGE);
        let (trades, complete_from) = back_to(from, newest, fetch).await.expect("trades");
        let ids = trades.iter().map(|trade| trade.first_id / 2).collect();
        (ids, complete_from, asked.into_inner())
    }

    #[tokio::test]
    async fn busy_window_keeps_its_end() {
        // 25,000 within 250 s, of which ten pages are read: the last 10,000, from 150 s on.
        let (ids, complete_from, asked) = read(25_000, 0).await;
        assert_eq!(ids, (15_000..25_000).collect::<Vec<_>>());
        assert_eq!((complete_from, asked), (150_001, 10));
    }

    #[tokio::test]
    async fn only_needed_pages_are_read() {
        // From 225 s on are 2,500: three pages, the third from 220 s on.
        let (ids, complete_from, asked) = read(25_000, 225_000).await;
        assert_eq!((ids.len(), complete_from, asked), (3_000, 220_001, 3));
        // All there are, which are whole as far back as was asked for.
        assert_eq!(read(700, -5).await, ((0..700).collect(), -5, 1));
        let (ids, complete_from, asked) = read(2_500, -5).await;
        assert_eq!((ids, complete_from, asked), ((0..2_500).collect(), -5, 3));
        assert_eq!(read(0, 9).await, (vec![], 9, 1));
    }

    #[tokio::test]
    async fn trades_before_a_recording_are_unknown() {
        let mut recorded = Arc::unwrap_or_clone(answer(700, None, TRADE_PAGE));
        recorded.value.first_id = Some(90_000);
        let nothing = |_, _| async { unreachable!("there is no more to be had") };
        let (trades, complete_from) = back_to(-5, Arc::new(recorded), nothing).await.expect("trades");
        assert_eq!((trades.len(), complete_from), (700, 1));
        // One that has more than a page gives the same again, however far back it is asked.
        let mut full = Arc::unwrap_or_clone(answer(1_000, None, TRADE_PAGE));
        full.value.first_id = Some(500);
        let full = Arc::new(full);
        let asked = AtomicUsize::new(0);
        let same = |_, _| {
            asked.fetch_add(1, Ordering::Relaxed);
            std::future::ready(Ok(full.clone()))
        };
        let (trades, complete_from) = back_to(-5, full.clone(), same).await.expect("trades");
        assert_eq!((trades.len(), complete_from, asked.into_inner()), (1_000, 1, 1));
    }
}
