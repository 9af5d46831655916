//! What the source and its tools share: which symbols have reports, and reading one or saying why there is none.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, OnceLock};
use std::time::{Duration, Instant};

use jiff::civil::Date;
use jiff::tz::TimeZone;
use tokio::sync::watch;
use tribune_binance::Symbol;
use tribune_citations::records::Records;
use tribune_core::wire::clip;
use tribune_core::{Clock, Error, Result};
use tribune_market_resolve::{SymbolTable, search};

use super::aged::AgedReport;
use super::cache::{Indexed, NodeId, ReportCache, Unavailable};
use super::citing::Citing;
use super::engine::WritingTrouble;
use super::exchange::Exchange;
use super::reader::Reader;

const MAX_NAMED: usize = 50;
/// How often the cache is asked which symbols have reports.
const REFRESH: Duration = Duration::from_secs(1);
/// A process younger than this may still be computing its first reports, so callers wait for them.
const STARTUP: Duration = Duration::from_secs(6);
/// How long a caller waits for the first report of a symbol.
const WAIT_FOR_REPORT: Duration = Duration::from_secs(4);
/// How long a caller waits for the first listing.
const WAIT_FOR_LISTING: Duration = Duration::from_secs(1);
const POLL: Duration = Duration::from_millis(50);

/// Kept, because a lookup in the recorder for each report is slow.
static AGE: LazyLock<metrics::Histogram> = LazyLock::new(|| metrics::histogram!("tribune_report_age_seconds"));

pub struct ReportsSource {
    pub(super) reader: Reader,
    pub(super) cache: Arc<dyn ReportCache>,
    pub(super) citing: Citing,
    /// The exchange that this process follows, if it does.
    pub(super) exchange: Option<Arc<dyn Exchange>>,
    /// Under which name this process writes reports, if it does.
    pub(super) node: Option<NodeId>,
    /// What keeps the engine of this process from writing.
    pub(super) trouble: Arc<WritingTrouble>,
    directory: watch::Sender<Directory>,
    pub(super) revision: AtomicU64,
    started: OnceLock<Instant>,
    clock: Arc<dyn Clock>,
}

#[derive(Clone, Default)]
pub(super) struct Directory {
    /// The symbols that have reports.
    pub(super) listing: Option<Arc<SymbolTable>>,
    /// Why the last refresh failed. The last listing is most likely still true then.
    pub(super) trouble: Option<Unavailable>,
}

impl ReportsSource {
    pub(super) fn new(
        cache: Arc<dyn ReportCache>,
        records: Records,
        exchange: Option<Arc<dyn Exchange>>,
        node: Option<NodeId>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self {
            reader: Reader::new(cache.clone(), clock.clone()),
            cache,
            citing: Citing::new(records),
            exchange,
            node,
            trouble: Arc::default(),
            directory: watch::Sender::default(),
            revision: AtomicU64::default(),
            started: OnceLock::new(),
            clock,
        }
    }

    pub(super) fn directory(&self) -> Directory {
        self.directory.borrow().clone()
    }

    /// Asks the cache again and again which symbols have reports, until it is dropped.
    pub(super) async fn follow(&self) {
        // The source runs: its first reports may come any moment.
        self.started.get_or_init(|| self.clock.monotonic());
        loop {
            match self.cache.indexed().await {
                Ok(indexed) => self.update(indexed),
                Err(why) => self.directory.send_modify(|directory| directory.trouble = Some(why)),
            }
            tokio::time::sleep(REFRESH).await;
        }
    }

    fn update(&self, indexed: Vec<Indexed>) {
        let named = indexed.into_iter().map(|of| Symbol::named(of.symbol, of.base, of.quote));
        let table = SymbolTable::new(named.collect(), |_| None);
        let known = self.directory().listing.filter(|listing| listing.symbols() == table.symbols());
        let listing = known.unwrap_or_else(|| {
            self.revision.fetch_add(1, Ordering::Relaxed);
            Arc::new(table)
        });
        self.directory.send_replace(Directory { listing: Some(listing), trouble: None });
    }

    pub(super) fn today(&self) -> Date {
        self.clock.now().to_zoned(TimeZone::UTC).date()
    }

    /// How much of the startup is left: all of it before `run` has begun.
    fn startup_left(&self) -> Duration {
        let now = self.clock.monotonic();
        let left = |started: &Instant| STARTUP.saturating_sub(now.saturating_duration_since(*started));
        self.started.get().map_or(STARTUP, left)
    }

    /// The exchange, if this process has just started and its first reports may still come.
    fn starting(&self) -> Option<&Arc<dyn Exchange>> {
        self.exchange.as_ref().filter(|exchange| exchange.is_to_track() && !self.startup_left().is_zero())
    }

    /// A symbol as the exchange writes it.
    pub(super) fn spell(&self, text: &str) -> String {
        let exchange = self.exchange.as_ref().and_then(|exchange| exchange.known_symbols());
        let table = exchange.or_else(|| self.directory().listing);
        table.map_or_else(|| text.trim().to_uppercase(), |table| table.spelled(text))
    }

    /// The listing, as soon as it is enough; does not wait while the cache does not answer.
    async fn wait(&self, patience: Duration, is_enough: fn(&SymbolTable) -> bool) -> Result<Arc<SymbolTable>> {
        let is_over = |state: &Directory| state.trouble.is_some() || state.listing.as_deref().is_some_and(is_enough);
        let mut changes = self.directory.subscribe();
        let _ = tokio::time::timeout(patience, changes.wait_for(is_over)).await;
        let Directory { listing, trouble } = self.directory();
        let pending = || Unavailable("Tribune is still looking up which symbols have reports".to_owned());
        Ok(listing.ok_or_else(|| trouble.unwrap_or_else(pending))?)
    }

    /// The symbols that have reports. A process that has just started waits for its first ones, unless a query that names no
    /// market asks.
    pub(super) async fn listing(&self, query: Option<&str>) -> Result<Arc<SymbolTable>> {
        let listing = self.wait(WAIT_FOR_LISTING, |_| true).await?;
        let Some(exchange) = self.starting().filter(|_| listing.is_empty()) else {
            return Ok(listing);
        };
        if let Some(query) = query
            && !exchange.symbols().await.is_ok_and(|table| !search(&table, query, 1, self.today()).is_empty())
        {
            return Ok(listing);
        }
        self.wait(self.startup_left(), |listing| !listing.is_empty()).await
    }

    pub(super) async fn report(&self, symbol: &Arc<str>) -> Result<AgedReport> {
        let deadline = tokio::time::Instant::now() + WAIT_FOR_REPORT;
        loop {
            if let Some(report) = self.reader.read(symbol).await? {
                AGE.record(report.age().as_secs_f64());
                return Ok(report);
            }
            let is_expected = self.starting().is_some_and(|exchange| exchange.is_to_be_tracked(symbol));
            if !is_expected || tokio::time::Instant::now() >= deadline {
                return Err(self.why_no_report(symbol).await);
            }
            tokio::time::sleep(POLL).await;
        }
    }

    /// Why there is no report of a symbol, and what to do.
    async fn why_no_report(&self, symbol: &Arc<str>) -> Error {
        if let Some(exchange) = self.starting() {
            // The error lists other symbols, so both must be known.
            let _ = exchange.symbols().await;
            let _ = self.listing(None).await;
        }
        let indexed = match self.cache.indexed().await {
            Ok(indexed) => indexed,
            Err(unavailable) => return unavailable.into(),
        };
        if let Some(known) = indexed.iter().find(|indexed| indexed.symbol == *symbol) {
            return Error::unavailable(format!(
                "stale: the last report of {symbol} was written {} s ago and has expired: no node writes it now. The logs of the nodes that write reports say why.",
                known.age.as_secs()
            ));
        }
        let names: Vec<&str> = indexed.iter().take(MAX_NAMED).map(|indexed| &*indexed.symbol).collect();
        let more = if indexed.len() > MAX_NAMED { " and more (market_overview lists all)" } else { "" };
        let known = match names.join(", ") {
            names if names.is_empty() => "No symbol is indexed yet.".to_owned(),
            names => format!("Indexed: {names}{more}."),
        };
        let remedy = match self.exchange {
            Some(_) => "and restart. For single figures of any other symbol there are the binance_ tools",
            None => "of the nodes that write reports",
        };
        let why = self.why_not_indexed(symbol);
        Error::not_found(format!(
            "symbol_not_indexed: {why}. {known} To add one, put it into `symbols` of [market] in the configuration {remedy}."
        ))
    }

    fn why_not_indexed(&self, symbol: &str) -> String {
        let name = clip(symbol, 40);
        let exchange = self.exchange.as_deref();
        let table = exchange.and_then(Exchange::known_symbols);
        if table.is_some_and(|table| table.lookup(symbol).is_none()) {
            return format!("there is no symbol {name} on the exchange, so there are no reports of it");
        }
        match exchange.filter(|exchange| exchange.is_to_be_tracked(symbol)) {
            Some(exchange) => format!("{name} has no report yet: {}", self.writing_trouble(exchange)),
            None => format!("{name} is not among the symbols that have reports"),
        }
    }

    /// Why there are no reports at all.
    pub(super) fn why_no_reports(&self) -> String {
        match self.exchange.as_deref() {
            None => "No reports have been written yet: nodes with a feed and `symbols` write them.".to_owned(),
            Some(exchange) if exchange.is_to_track() => {
                format!("There are no reports yet: {}.", self.writing_trouble(exchange))
            }
            Some(_) => "No symbol is indexed: put some into `symbols` of [market] in the configuration.".to_owned(),
        }
    }

    fn writing_trouble(&self, exchange: &dyn Exchange) -> String {
        let trouble = self.trouble.borrow().clone().or_else(|| exchange.current_trouble());
        trouble.unwrap_or_else(|| "the first one is being computed; ask again in a second".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::{MemoryCache, Timing};
    use tribune_binance::testing::ManualClock;
    use tribune_core::Links;

    #[tokio::test]
    async fn startup_ends_by_the_given_clock() {
        let clock = Arc::new(ManualClock::at(0));
        let records = Records::new(None, Links::new("http://tribune.test"));
        let cache = Arc::new(MemoryCache::new(clock.clone(), Timing::DEFAULT));
        let reports = ReportsSource::new(cache, records, None, None, clock.clone());
        let run = async || tokio::time::timeout(Duration::ZERO, reports.follow()).await.expect_err("it follows on");
        run().await;
        assert!(!reports.startup_left().is_zero());
        clock.advance_ms(6_000);
        assert!(reports.startup_left().is_zero());
        run().await;
        assert!(reports.startup_left().is_zero(), "a restarted task is no new process");
    }
}
