//! What the source and its tools share: reading a report, or saying why there is none.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use jiff::civil::Date;
use jiff::tz::TimeZone;
use tribune_binance::model::SymbolStatus;
use tribune_citations::records::Records;
use tribune_core::wire::clip;
use tribune_core::{Clock, Error, Result};

use super::cache::ReportCache;
use super::citing::Citing;
use super::directory::{Directory, Listing};
use super::engine::WritingTrouble;
use super::exchange::{Exchange, Names};
use super::reader::{AgedReport, Reader};

/// Symbols that an error names.
const MAX_NAMED: usize = 50;
/// A process younger than this may still be computing its first reports, so callers wait for them.
const STARTUP: Duration = Duration::from_secs(6);
/// How long a caller waits for the first report of a symbol.
const WAIT_FOR_REPORT: Duration = Duration::from_secs(4);
/// How long a caller waits for the first listing.
const WAIT_FOR_LISTING: Duration = Duration::from_secs(1);
const POLL: Duration = Duration::from_millis(50);

pub(super) struct Reports {
    pub(super) reader: Reader,
    pub(super) cache: Arc<dyn ReportCache>,
    pub(super) directory: Directory,
    pub(super) citing: Citing,
    /// The exchange that this process follows, if it does.
    pub(super) exchange: Option<Arc<dyn Exchange>>,
    pub(super) names: Arc<dyn Names>,
    /// What keeps the engine of this process from writing.
    pub(super) trouble: Arc<WritingTrouble>,
    started: OnceLock<Instant>,
    clock: Arc<dyn Clock>,
}

impl Reports {
    pub(super) fn new(
        cache: Arc<dyn ReportCache>,
        records: Records,
        names: Arc<dyn Names>,
        exchange: Option<Arc<dyn Exchange>>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self {
            reader: Reader::new(cache.clone(), clock.clone()),
            cache,
            directory: Directory::new(names.clone()),
            citing: Citing::new(records),
            exchange,
            names,
            trouble: Arc::default(),
            started: OnceLock::new(),
            clock,
        }
    }

    /// The source runs: its first reports may come any moment.
    pub(super) fn note_start(&self) {
        self.started.get_or_init(|| self.clock.monotonic());
    }

    pub(super) fn today(&self) -> Date {
        self.clock.now().to_zoned(TimeZone::UTC).date()
    }

    /// How much of the startup is left.
    fn startup_left(&self) -> Duration {
        let now = self.clock.monotonic();
        let left = |started: &Instant| STARTUP.saturating_sub(now.saturating_duration_since(*started));
        self.started.get().map(left).unwrap_or_default()
    }

    pub(super) fn is_starting(&self) -> bool {
        !self.startup_left().is_zero()
    }

    /// A symbol as the exchange writes it.
    pub(super) fn spell(&self, text: &str) -> String {
        let exchange = self.exchange.as_ref().and_then(|exchange| exchange.known_symbols());
        let table = exchange.or_else(|| Some(self.directory.listing()?.table.clone()));
        table.map_or_else(|| text.trim().to_uppercase(), |table| table.spelled(text))
    }

    async fn first_listing(&self) -> Result<Arc<Listing>> {
        Ok(self.directory.wait(WAIT_FOR_LISTING, |_| true).await?)
    }

    /// The symbols that have reports. A process that has just started waits for its first ones.
    pub(super) async fn listing(&self) -> Result<Arc<Listing>> {
        let listing = self.first_listing().await?;
        let tracks = self.exchange.as_ref().is_some_and(|exchange| exchange.is_to_track());
        if !listing.symbols.is_empty() || !tracks {
            return Ok(listing);
        }
        let has_symbols = |listing: &Listing| !listing.symbols.is_empty();
        Ok(self.directory.wait(self.startup_left(), has_symbols).await?)
    }

    /// The same for a search; only a query that names a market waits.
    pub(super) async fn listing_for(&self, query: &str) -> Result<Arc<Listing>> {
        let listing = self.first_listing().await?;
        let exchange = self.exchange.as_ref().filter(|_| self.is_starting());
        let Some(exchange) = exchange.filter(|_| listing.symbols.is_empty()) else {
            return Ok(listing);
        };
        let table = exchange.symbols().await;
        if table.is_ok_and(|table| !table.search(query, 1, self.today()).is_empty()) {
            return self.listing().await;
        }
        Ok(listing)
    }

    pub(super) async fn report(&self, symbol: &Arc<str>) -> Result<AgedReport> {
        let deadline = tokio::time::Instant::now() + WAIT_FOR_REPORT;
        loop {
            if let Some(report) = self.reader.read(symbol).await? {
                metrics::histogram!("tribune_report_age_seconds").record(report.age().as_secs_f64());
                return Ok(report);
            }
            let is_tracked = |exchange: &Arc<dyn Exchange>| exchange.is_to_be_tracked(symbol);
            let is_expected = self.is_starting() && self.exchange.as_ref().is_some_and(is_tracked);
            if !is_expected || tokio::time::Instant::now() >= deadline {
                return Err(self.why_no_report(symbol).await);
            }
            tokio::time::sleep(POLL).await;
        }
    }

    /// Why there is no report of a symbol, and what to do.
    async fn why_no_report(&self, symbol: &Arc<str>) -> Error {
        if let Some(exchange) = self.exchange.as_ref().filter(|_| self.is_starting()) {
            // The error lists other symbols, so both must be known.
            let _ = exchange.symbols().await;
            let _ = self.listing().await;
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
        let names: Vec<&str> = indexed.iter().map(|indexed| &*indexed.symbol).collect();
        let (why, known) = (self.why_not_indexed(symbol), name_symbols(&names));
        let remedy = match self.exchange {
            Some(_) => "and restart. For single figures of any other symbol there are the binance_ tools",
            None => "of the nodes that write reports",
        };
        Error::not_found(format!(
            "symbol_not_indexed: {why}. {known} To add one, put it into `symbols` of [market] in the configuration {remedy}."
        ))
    }

    fn why_not_indexed(&self, symbol: &str) -> String {
        let name = clip(symbol, 40);
        let Some(exchange) = &self.exchange else {
            return format!("there are no reports of {name}");
        };
        let listed = exchange.known_symbols().map(|table| table.lookup(symbol));
        match listed {
            Some(None) => format!("there is no symbol {name} on the exchange, so there are no reports of it"),
            Some(Some(symbol)) if symbol.status != SymbolStatus::Trading => {
                let status = &symbol.status_text;
                format!("{name} is listed but not traded now (status {status}), so there are no reports of it")
            }
            _ if exchange.is_to_be_tracked(symbol) => {
                let trouble = self.writing_trouble(&**exchange, "the first one is");
                format!("{name} is to have reports and has none yet: {trouble}")
            }
            _ => format!("{name} is not among the symbols that have reports"),
        }
    }

    /// Why there are no reports at all.
    pub(super) fn why_no_reports(&self) -> String {
        let Some(exchange) = &self.exchange else {
            return "No reports have been written yet: nodes with a feed and `symbols` write them.".to_owned();
        };
        if !exchange.is_to_track() {
            return "No symbol is indexed: put some into `symbols` of [market] in the configuration.".to_owned();
        }
        let trouble = self.writing_trouble(&**exchange, "they are");
        format!("There are no reports yet: {trouble}.")
    }

    fn writing_trouble(&self, exchange: &dyn Exchange, pending: &str) -> String {
        let trouble = self.trouble.borrow().clone();
        let trouble = trouble.or_else(|| exchange.current_trouble());
        trouble.unwrap_or_else(|| format!("{pending} being computed; ask again in a second"))
    }
}

fn name_symbols(names: &[&str]) -> String {
    match names {
        [] => "No symbol is indexed yet.".to_owned(),
        names if names.len() <= MAX_NAMED => format!("Indexed: {}.", names.join(", ")),
        names => format!(
            "Indexed: {} and {} more (market_overview lists all).",
            names[..MAX_NAMED].join(", "),
            names.len() - MAX_NAMED
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::MemoryCache;
    use crate::tests::fixture;
    use tribune_binance::testing::ManualClock;
    use tribune_core::Links;

    #[tokio::test]
    async fn startup_ends_by_the_given_clock() {
        let clock = Arc::new(ManualClock::at(0));
        let records = Records::new(None, Links::new("http://tribune.test"));
        let cache = Arc::new(MemoryCache::new(clock.clone()));
        let reports = Reports::new(cache, records, Arc::new(fixture::FewNames), None, clock.clone());
        assert!(!reports.is_starting(), "it does not run yet");
        reports.note_start();
        assert!(reports.is_starting());
        clock.advance_ms(6_000);
        assert!(!reports.is_starting());
        reports.note_start();
        assert!(!reports.is_starting(), "a restarted task is no new process");
    }
}
