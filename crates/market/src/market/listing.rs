//! Loads and refreshes the exchange's symbols, its clock, and the symbols that are always tracked.

use std::collections::HashSet;
use std::fmt::Display;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use tribune_binance::{Day, Moment, Observer as _, RestError};
use tribune_market_parts::exchange_error;

use tokio_util::sync::CancellationToken;
use tribune_core::Result;

use super::worth::by_worth;
use super::{Market, NOTABLE_OFFSET_MS};
use tribune_binance::rest::{self, Ticker};
use tribune_market_resolve::SymbolTable;

/// Symbols come and go a few times a day.
const RELOAD_SYMBOLS: Duration = Duration::from_secs(600);
const RERANK: Duration = Duration::from_secs(60);
const LEARN_CLOCK: Duration = Duration::from_secs(300);
/// How often the exchange's clock is checked for jumps, and how often it is requested while it is in doubt: it may have
/// been corrected, or be that of a replay, which runs at its own pace.
const LOOK_AT_CLOCK: Duration = Duration::from_secs(1);
const LEARN_DOUBTFUL_CLOCK: Duration = Duration::from_secs(2);
/// All tickers at once weigh 80, so while streams are silent they are requested at most this often.
const KEEP_DAYS_MS: u64 = 10_000;
const MAX_RETRY: Duration = Duration::from_secs(60);

/// When the 24-hour figures of all symbols were loaded. Only rankings and snippets need them.
type DaysLoaded = std::result::Result<Moment, RestError>;

impl Market {
    /// Asks for the exchange's time; returns whether it answered.
    async fn learn_clock(&self) -> bool {
        let before = self.rest.clock_offset_ms();
        if self.rest.server_time().await.is_err() {
            return false;
        }
        let Some(offset) = self.rest.clock_offset_ms() else {
            return false;
        };
        let is_news = before.is_none_or(|before| (before - offset).abs() >= NOTABLE_OFFSET_MS);
        if let Some(note) = self.clock_note().filter(|_| is_news) {
            tracing::warn!("{note}");
        }
        true
    }

    /// Loads the symbols, and their turnover if the exchange sends it.
    async fn load(&self) -> Result<DaysLoaded> {
        // Everything else needs the symbols, so both are requested at once.
        let (info, days) = futures::join!(self.rest.exchange_info(), self.ask_for_days());
        let info = info.map_err(exchange_error)?;
        for (symbol, why) in info.value.refused.iter().take(5) {
            tracing::warn!(symbol, why, "a symbol of the exchange could not be read and is not served");
        }
        let listed = info.value.symbols.iter().map(|symbol| symbol.name.clone());
        self.feed.board.list(listed.collect());
        let table = Arc::new(SymbolTable::new(info.value.symbols.clone(), |name| self.feed.board.quote_volume(name)));
        let refused = info.value.refused.iter();
        let unreadable = refused.map(|(symbol, why)| (symbol.to_uppercase(), why.clone()));
        self.known.unreadable.store(Arc::new(unreadable.collect()));
        let before = self.known.table.swap(Some(table.clone()));
        if before.is_none_or(|before| before.symbols() != table.symbols()) {
            self.known.revision.fetch_add(1, Ordering::Relaxed);
            tracing::info!(symbols = table.len(), "the exchange's symbols are loaded");
        }
        *self.known.loaded.lock() = info.received;
        *self.known.trouble.lock() = None;
        self.rank_all(&table);
        Ok(days)
    }

    /// Makes sure that the last day of every symbol is at most ten seconds old; returns when it was loaded.
    pub(crate) async fn days_loaded(&self) -> DaysLoaded {
        let last = *self.known.days_loaded.lock();
        match last.filter(|loaded| loaded.age_ms(&*self.clock) < KEEP_DAYS_MS) {
            Some(loaded) => Ok(loaded),
            None => self.ask_for_days().await,
        }
    }

    async fn ask_for_days(&self) -> DaysLoaded {
        let tickers = self.rest.all_tickers_24h().await?;
        let days = tickers.value.iter().filter_map(|ticker| day(ticker, tickers.received));
        self.feed.board.fill(days);
        *self.known.days_loaded.lock() = Some(tickers.received);
        Ok(tickers.received)
    }

    fn rerank(&self) {
        if let Some(table) = self.known.table.load_full() {
            let table = Arc::new(table.reranked(|name| self.feed.board.quote_volume(name)));
            self.rank_all(&table);
            self.known.table.store(Some(table));
        }
    }

    fn rank_all(&self, table: &SymbolTable) {
        self.known.ranked.store(Arc::new(by_worth(table, &self.feed.board)));
        for book in self.feed.books() {
            // It may have been tracked before the list of symbols was loaded.
            book.set_rank(self.rank(&book.symbol));
            if let Some(turnover) = self.feed.board.quote_volume(&book.symbol) {
                book.watch.set_turnover(turnover);
            }
        }
    }

    fn pin(&self) {
        let Some(table) = self.known.table.load_full() else {
            return;
        };
        let ranked = self.known.ranked.load_full();
        let named = self.known.settings.symbols.iter().map(String::as_str);
        let top = ranked.iter().map(|symbol| &**symbol);
        let mut wanted: HashSet<Arc<str>> = HashSet::new();
        for name in named.chain(top.take(self.known.settings.track_top)) {
            match table.lookup(name).filter(|symbol| symbol.is_traded()) {
                Some(symbol) => {
                    self.feed.track(&symbol.name, true, self.rank(&symbol.name));
                    wanted.insert(symbol.name.clone());
                }
                None => tracing::warn!(symbol = name, "market.symbols names a symbol that the exchange does not trade"),
            }
        }
        // A symbol that is no longer among the most traded is dropped when nobody asks for it.
        for book in self.feed.books() {
            if book.is_pinned() && !wanted.contains(&book.symbol) {
                book.set_pinned(false);
            }
        }
    }
}

pub(super) async fn keep_symbols(market: &Market, stop: CancellationToken) {
    let mut retry = Retry::default();
    let (mut loaded, mut learned, mut ranked) = (None, None, None);
    loop {
        let now = market.clock.monotonic();
        let is_due = |last: Option<Instant>, every| last.is_none_or(|last| now.duration_since(last) >= every);
        let mut is_new = false;
        if is_due(loaded, RELOAD_SYMBOLS) && retry.is_due(now) {
            let outcome = market.load().await;
            is_new = outcome.is_ok();
            match outcome {
                // Without the tickers everything is loaded again; meanwhile the symbols are there.
                Ok(Err(error)) => retry.note("the tickers", market, &error, now),
                Ok(Ok(_)) => (loaded, ranked, retry) = (Some(now), Some(now), Retry::default()),
                Err(error) => {
                    retry.note("the symbols", market, &error, now);
                    *market.known.trouble.lock() = Some(error);
                }
            }
            market.known.tried.send_modify(|tried| *tried += 1);
        } else if is_due(ranked, RERANK) {
            ranked = Some(now);
            market.rerank();
        }
        // After the first answer, which says whether this is a replay.
        let replayed = market.rest.simulation() == Some(rest::Simulation::Replay);
        let is_doubtful = replayed || market.feed.health.has_drifted();
        if is_due(learned, LEARN_CLOCK) || (is_doubtful && is_due(learned, LEARN_DOUBTFUL_CLOCK)) {
            learned = market.learn_clock().await.then_some(now).or(learned);
        }
        if is_new {
            // Books are opened by the exchange's clock, so that comes first.
            market.pin();
        }
        let pause = retry.at.map_or(LOOK_AT_CLOCK, |at| at.saturating_duration_since(now).min(LOOK_AT_CLOCK));
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(pause.max(Duration::from_millis(100))) => {}
        }
    }
}

#[derive(Debug, Default)]
struct Retry {
    failures: u32,
    at: Option<Instant>,
}

impl Retry {
    fn is_due(&self, now: Instant) -> bool {
        self.at.is_none_or(|at| now >= at)
    }

    /// Logs only the first of several failures in a row.
    fn note(&mut self, what: &str, market: &Market, error: &impl Display, now: Instant) {
        if self.failures == 0 {
            tracing::warn!(%error, "{what} of {} could not be loaded; trying again", market.rest.host());
        }
        let wait = Duration::from_millis(500) * 2u32.pow(self.failures.min(10));
        self.at = Some(now + wait.min(MAX_RETRY));
        self.failures = self.failures.saturating_add(1);
    }
}

/// `None` for a symbol that was not traded.
fn day(ticker: &Ticker, received: Moment) -> Option<(Arc<str>, Day)> {
    let day = Day {
        last: ticker.last?,
        open: ticker.open?,
        high: ticker.high?,
        low: ticker.low?,
        volume: ticker.volume,
        quote_volume: ticker.quote_volume,
        exchange_time: Some(ticker.close_time),
        received,
    };
    Some((ticker.symbol.clone(), day))
}

#[cfg(test)]
mod tests;
