//! What the exchange trades, its clock, and what is always tracked: learned at the start, and again and again.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;
use tribune_core::Result;

use super::{Market, NOTABLE_OFFSET_MS};
use crate::feed::Day;
use crate::model::SymbolStatus;
use crate::moment::Moment;
use crate::number::Notional;
use crate::rest::{self, Ticker};
use crate::symbols::SymbolTable;

/// Symbols come and go a few times a day.
const RELOAD_SYMBOLS: Duration = Duration::from_secs(600);
const RERANK: Duration = Duration::from_secs(60);
const LEARN_CLOCK: Duration = Duration::from_secs(300);
/// How often is looked whether the exchange's clock is still as it was: it may have been put right, or be that of
/// a replay, which runs at another pace and stops.
const LOOK_AT_CLOCK: Duration = Duration::from_secs(5);
const MAX_RETRY: Duration = Duration::from_secs(60);

impl Market {
    /// Asks for the exchange's time; says whether it was told.
    async fn learn_clock(&self) -> bool {
        let before = self.rest.clock_offset_ms();
        if self.rest.server_time().await.is_err() {
            return false;
        }
        let Some(offset) = self.rest.clock_offset_ms() else {
            return false;
        };
        self.feed.health.set_offset_ms(offset, self.clock.now());
        let is_replay = self.rest.simulation() == Some(rest::Simulation::Replay);
        self.feed.health.set_has_clock(!is_replay);
        let is_news = before.is_none_or(|before| (before - offset).abs() >= NOTABLE_OFFSET_MS);
        if let Some(note) = self.clock_note().filter(|_| is_news) {
            tracing::warn!("{note}");
        }
        true
    }

    async fn load(&self) -> Result<()> {
        // Nothing can be asked before this is known, so it is not left for when there is time.
        let (info, tickers) = futures::join!(self.rest.exchange_info(), self.rest.all_tickers_24h());
        let info = info?;
        for (symbol, why) in info.value.refused.iter().take(5) {
            tracing::warn!(
                symbol,
                why,
                "a symbol of the exchange could not be read and is not served"
            );
        }
        match tickers {
            Ok(tickers) => {
                let days = tickers.value.iter().filter_map(|ticker| day(ticker, tickers.received));
                self.feed.board.fill(days);
            }
            // Only the ranking and the snippets suffer.
            Err(error) => tracing::warn!(%error, "no tickers of all symbols yet"),
        }
        let table = SymbolTable::new(info.value.symbols.clone(), &self.feed.board.quote_volumes());
        let before = self.known.table.swap(Some(Arc::new(table)));
        let known = before.map_or(0, |table| table.len());
        if known != info.value.symbols.len() {
            self.known.revision.fetch_add(1, Ordering::Relaxed);
            tracing::info!(symbols = info.value.symbols.len(), "the exchange's symbols are loaded");
        }
        *self.known.loaded.lock().unwrap_or_else(PoisonError::into_inner) = info.received;
        *self.trouble() = None;
        Ok(())
    }

    /// Tracks what is always to be tracked.
    fn pin(&self) {
        let Some(table) = self.known.table.load_full() else {
            return;
        };
        let volumes = self.feed.board.quote_volumes();
        let mut by_volume: Vec<(&Arc<str>, &Notional)> = volumes.iter().collect();
        by_volume.sort_by(|a, b| b.1.cmp(a.1).then(a.0.cmp(b.0)));
        let ranks: HashMap<&str, usize> = by_volume
            .iter()
            .enumerate()
            .map(|(rank, (symbol, _))| (&***symbol, rank))
            .collect();
        let traded = |name: &str| {
            table
                .lookup(name)
                .filter(|symbol| symbol.status == SymbolStatus::Trading)
        };
        let named = self.known.settings.symbols.iter().map(String::as_str);
        let top = by_volume
            .iter()
            .map(|(symbol, _)| &***symbol)
            .filter(|name| traded(name).is_some());
        let mut wanted: HashSet<Arc<str>> = HashSet::new();
        for name in named.chain(top.take(self.known.settings.track_top)) {
            match traded(name) {
                Some(symbol) => {
                    let rank = ranks.get(name).copied().unwrap_or(usize::MAX);
                    self.feed.track(&symbol.name, true, rank);
                    wanted.insert(symbol.name.clone());
                }
                None => tracing::warn!(
                    symbol = name,
                    "market.symbols names a symbol that the exchange does not trade"
                ),
            }
        }
        // What is no longer among the most traded goes when nobody asks for it.
        for book in self.feed.books() {
            if book.is_pinned() && !wanted.contains(&book.symbol) {
                book.set_pinned(false);
            }
        }
    }
}

pub(super) async fn keep_symbols(market: Arc<Market>, stop: CancellationToken) {
    // Held weakly while it sleeps, so that dropping the market ends it.
    let weak = Arc::downgrade(&market);
    drop(market);
    let mut failures = 0u32;
    let (mut loaded, mut learned, mut ranked) = (None, None, None);
    let mut load_at = None;
    loop {
        let Some(market) = weak.upgrade() else { return };
        let now = market.clock.monotonic();
        let is_due = |last: Option<Instant>, every| last.is_none_or(|last| now.duration_since(last) >= every);
        let mut is_new = false;
        if is_due(loaded, RELOAD_SYMBOLS) && load_at.is_none_or(|at| now >= at) {
            match market.load().await {
                Ok(()) => {
                    (loaded, ranked, load_at, failures) = (Some(now), Some(now), None, 0);
                    is_new = true;
                }
                Err(error) => {
                    if failures == 0 {
                        tracing::warn!(%error, "the exchange's symbols could not be loaded; trying again");
                    }
                    *market.trouble() = Some(error);
                    let wait = Duration::from_millis(500) * 2u32.pow(failures.min(10));
                    load_at = Some(now + wait.min(MAX_RETRY));
                    failures = failures.saturating_add(1);
                }
            }
            market.known.tried.send_modify(|tried| *tried += 1);
        } else if is_due(ranked, RERANK)
            && let Some(table) = market.known.table.load_full()
        {
            ranked = Some(now);
            market
                .known
                .table
                .store(Some(Arc::new(table.reranked(&market.feed.board.quote_volumes()))));
        }
        // After the first answer, which says what may be asked at all.
        let replayed = market.rest.simulation() == Some(rest::Simulation::Replay);
        if is_due(learned, LEARN_CLOCK) || replayed || market.feed.health.has_drifted() {
            learned = market.learn_clock().await.then_some(now).or(learned);
        }
        if is_new {
            // Books are opened by the exchange's clock, so that comes first.
            market.pin();
        }
        drop(market);
        let pause = load_at.map_or(LOOK_AT_CLOCK, |at: Instant| {
            at.saturating_duration_since(now).min(LOOK_AT_CLOCK)
        });
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(pause.max(Duration::from_millis(100))) => {}
        }
    }
}

/// A ticker without a price says nothing: nothing was traded.
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
