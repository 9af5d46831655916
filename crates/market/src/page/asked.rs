//! What a page of the present is made of: read from the streams, or asked of the exchange once in a while for all
//! viewers together. Requests for pages have a small share of the exchange's budget; where that is used up, what was
//! answered last stays, as old as it is.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::FutureExt as _;
use futures::future::BoxFuture;
use tribune_core::{Clock, Result};

use super::cache::{Cache, Found};
use super::now::Look;
use crate::kinds::flow::FLOW_SECS;
use crate::kinds::ranking::SILENT_MS;
use crate::kinds::{self, Answer, AnyFigures, Page};
use crate::market::{BookReading, Market, Origin};
use tribune_analytics::Published;
use tribune_binance::feed::BookState;
use tribune_binance::model::Interval;
use tribune_market_resolve::id::{AnalyticsKind, Kind, MarketId};

/// Levels asked for where the book is not live: enough for a picture, at half the weight of a thousand.
const ASKED_LEVELS: u32 = 500;
/// Trades of the stream that a page lists.
pub(super) const TRADES: usize = 50;

/// How long answers of the exchange are kept for pages. Each costs weight; a minute's candles change less than a price.
const KEEP_PRICE: Duration = Duration::from_secs(5);
/// Where the price itself comes from the stream: the range and the volume of a day.
const KEEP_DAY: Duration = Duration::from_secs(10);
pub(super) const KEEP_BOOK: Duration = Duration::from_secs(10);
/// Asking for all markets weighs as much as forty single prices.
const KEEP_MARKETS: Duration = Duration::from_secs(60);
const KEEP_ANALYTICS: Duration = Duration::from_secs(10);
const KEEP_PROFILE: Duration = Duration::from_secs(60);
/// What is read from streams costs only time.
const KEEP_STREAMED: Duration = Duration::from_millis(900);

/// What pages of the present keep between looks.
#[derive(Default)]
pub(crate) struct Pages {
    answers: Cache<Read>,
    books: Cache<BookReading>,
}

/// An answer, and when it was made.
struct Read {
    answer: Answer,
    at: Instant,
}

/// An answer that was made a moment ago.
pub(super) struct Recent {
    read: Arc<Read>,
    since_ms: u64,
}

impl Recent {
    pub(super) fn answer(&self) -> &Answer {
        &self.read.answer
    }

    pub(super) fn figures(&self) -> &AnyFigures {
        &self.read.answer.figures
    }

    pub(super) fn age_ms(&self) -> u64 {
        self.read.answer.provenance.age_ms.saturating_add(self.since_ms)
    }

    /// As old as it is by now.
    pub(super) fn page(&self) -> Page<'_> {
        let answer = &self.read.answer;
        Page { age_ms: self.age_ms(), ..Page::of(&answer.about, &answer.provenance) }
    }
}

impl Pages {
    /// An answer that was made a moment ago, as old as it is by now, or one that is made now.
    pub(super) async fn read(
        &self,
        key: String,
        keep: Duration,
        clock: &dyn Clock,
        answer: BoxFuture<'_, Result<Answer>>,
    ) -> Result<Recent, String> {
        let read = async { Ok(Read { answer: answer.await?, at: clock.monotonic() }) };
        let read = self.answers.get(key, keep, clock, read).await?;
        let since = clock.monotonic().saturating_duration_since(read.at).as_millis();
        Ok(Recent { read, since_ms: u64::try_from(since).unwrap_or(u64::MAX) })
    }
}

/// What all markets did in a day comes from one stream, or must be asked for, which costs the exchange much.
pub(super) fn keep_markets(market: &Market) -> Duration {
    match market.feed.board.heard() {
        Some(heard) if heard.age_ms(&*market.clock) < SILENT_MS => KEEP_STREAMED,
        _ => KEEP_MARKETS,
    }
}

/// A picture of days moves less than one of minutes.
fn keep_candles(interval: Interval) -> Duration {
    Duration::from_secs(match interval.millis() / 60_000 {
        ..=5 => 5,
        6..=60 => 30,
        _ => 120,
    })
}

/// Whether a book, `age_ms` old, says what the best prices are now: it is exact and current, or was asked for no earlier
/// than what else says so, which is `other_ms` old.
pub(super) fn is_current(book: &BookReading, age_ms: u64, other_ms: u64) -> bool {
    match book.origin {
        Origin::Stream => book.state == BookState::Live,
        Origin::Rest => age_ms <= other_ms,
    }
}

impl Look<'_> {
    /// The book: the live one, or one that was asked for a moment ago.
    pub(super) async fn book(&self) -> Found<BookReading> {
        if let Some(tracked) = &self.tracked
            && let Some(view) = tracked.live()
        {
            return Ok(Arc::new(BookReading::live(view, self.market.last_word(tracked))));
        }
        let asked = self.market.book_of(self.symbol, ASKED_LEVELS);
        let key = self.symbol.name.to_string();
        let kept = self.pages.books.get(key, KEEP_BOOK, &*self.market.clock, asked).await?;
        // The levels may be of a moment ago; why they had to be asked for is told as it is now.
        let Some(status) = self.tracked.as_ref().map(|tracked| tracked.status()) else {
            return Ok(kept);
        };
        Ok(Arc::new(BookReading { state: status.state, reason: status.reason.clone(), ..(*kept).clone() }))
    }

    pub(super) fn age_of(&self, book: &BookReading) -> u64 {
        book.received.age_ms(&*self.market.clock)
    }

    /// What a document of the symbol has: read a moment ago, or now.
    pub(super) async fn read(&self, kind: Kind) -> Result<Recent, String> {
        let id = MarketId::new(kind, self.symbol.name.clone());
        let streamed = (kind == Kind::Trades).then(|| self.streamed_trades()).flatten();
        let (keep, answer) = match streamed {
            Some(answer) => (KEEP_STREAMED, async { Ok(answer) }.boxed()),
            None => (self.keep(kind), kinds::load(self.market, &id).boxed()),
        };
        self.pages.read(id.to_string(), keep, &*self.market.clock, answer).await
    }

    pub(super) fn streamed_trades(&self) -> Option<Answer> {
        kinds::trades::streamed(self.market, self.symbol, TRADES)
    }

    fn is_live(&self) -> bool {
        self.tracked.as_ref().is_some_and(|tracked| tracked.live().is_some())
    }

    pub(super) fn keep(&self, kind: Kind) -> Duration {
        match kind {
            Kind::Ticker if self.is_live() => KEEP_DAY,
            Kind::Ticker => KEEP_PRICE,
            Kind::Klines(interval) => keep_candles(interval),
            Kind::OrderBook | Kind::OrderBookL1 | Kind::OrderBookL2 if self.is_live() => KEEP_STREAMED,
            Kind::Analytics(AnalyticsKind::OrderFlow) => self.keep_flow(),
            Kind::Analytics(AnalyticsKind::VolumeProfile | AnalyticsKind::LiquidityVacuums) => KEEP_PROFILE,
            _ => KEEP_ANALYTICS,
        }
    }

    /// The tape has the last minute, or the exchange must be asked for it.
    fn keep_flow(&self) -> Duration {
        let from = self.market.exchange_now() - i64::from(FLOW_SECS) * 1_000;
        let is_whole = |tracked: &Arc<Published>| {
            let complete_from = tracked.tape.complete_from();
            tracked.live().is_some() && complete_from.is_some_and(|complete| complete <= from)
        };
        match &self.tracked {
            Some(tracked) if is_whole(tracked) => KEEP_STREAMED,
            _ => KEEP_ANALYTICS,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn best_prices_are_of_a_book_that_is_current() {
        let view = tribune_binance::feed::BookView {
            symbol: "BTCUSDT".into(),
            depth: tribune_binance::testing::depth(&[("99", "1")], &[("101", "1")]),
            last_update_id: 1,
            exchange_time: None,
            received: tribune_binance::moment::Moment::now(&tribune_core::SystemClock),
        };
        let received = view.received;
        let live = BookReading::live(Arc::new(view), received);
        assert!(is_current(&live, 9_000, 10), "nothing has changed since");
        let stale = BookReading { state: BookState::Stale, ..live.clone() };
        assert!(!is_current(&stale, 5, 10));
        let asked = BookReading { origin: Origin::Rest, state: BookState::Resyncing, ..live };
        assert!(is_current(&asked, 10, 10));
        assert!(!is_current(&asked, 11, 10), "the ticker is newer");
    }

    #[test]
    fn longer_candles_are_asked_for_less() {
        let secs = |interval| keep_candles(interval).as_secs();
        assert_eq!((secs(Interval::M1), secs(Interval::M5)), (5, 5));
        assert_eq!((secs(Interval::M15), secs(Interval::H1)), (30, 30));
        assert_eq!((secs(Interval::H4), secs(Interval::D1)), (120, 120));
    }
}
