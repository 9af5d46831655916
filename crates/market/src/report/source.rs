//! Reports as a source: searched by what people call a market, fetched by `report:SYMBOL`, cited by record.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use jiff::Timestamp;
use serde_json::json;
use tokio_util::sync::CancellationToken;
use tribune_core::view::View;
use tribune_core::wire::clip;
use tribune_core::{
    CallContext, Cited, Clock, Document, DocumentId, Error, Hit, JsonObject, Query, Result, Source, SourceFacts,
    SourceStatus, Tool,
};

use super::cache::{ReportCache, Unavailable};
use super::citing::{Citing, document, title};
use super::directory::{Directory, Listing};
use super::engine::WritingTrouble;
use super::markdown;
use super::reader::{Aged, Reader, Reading};
use super::{tools, view};
use crate::market::Market;
use crate::model::SymbolStatus;
use crate::records::Records;
use crate::symbols::{Kind, MarketId, Match, search};

/// The name of the source, and its profile.
pub const NAME: &str = "reports";
const SNIPPET_CHARS: usize = 200;
/// Symbols that an error names.
const MOST_NAMED: usize = 50;
/// So long after its start a process has just begun.
const BEGINNING: Duration = Duration::from_secs(6);
/// How long a caller waits for the first report when the process has just started.
const WAIT_FOR_FIRST: Duration = Duration::from_secs(4);
/// What a search looks through to find each symbol once.
const MATCHES: usize = 200;

/// What a report is worth to a question that asks for something it holds among other things.
const AMONG_OTHERS: f32 = 0.95;

pub struct ReportsSource {
    pub(super) reader: Reader,
    cache: Arc<dyn ReportCache>,
    directory: Arc<Directory>,
    pub(super) citing: Citing,
    /// Where this process has one.
    market: OnceLock<Arc<Market>>,
    begun: OnceLock<Instant>,
    writing: Arc<WritingTrouble>,
    clock: Arc<dyn Clock>,
    stop: CancellationToken,
}

impl ReportsSource {
    /// Nothing is asked of the cache before [`ReportsSource::begin`].
    pub fn new(cache: Arc<dyn ReportCache>, records: Records, clock: Arc<dyn Clock>) -> Self {
        Self {
            reader: Reader::new(cache.clone(), clock.clone()),
            cache,
            directory: Arc::default(),
            citing: Citing::new(records),
            market: OnceLock::new(),
            begun: OnceLock::new(),
            writing: Arc::default(),
            clock,
            stop: CancellationToken::new(),
        }
    }

    /// Starts to follow what is indexed. Must be called within a runtime, and once; with the market of this process,
    /// if it has one.
    pub fn begin(&self, market: Option<Arc<Market>>) {
        let _ = self.begun.set(self.clock.monotonic());
        if let Some(market) = market {
            let _ = self.market.set(market);
        }
        tokio::spawn(Directory::keep(
            self.directory.clone(),
            self.cache.clone(),
            self.stop.clone(),
        ));
    }

    /// Where the engine of this process says what keeps it from writing.
    pub fn writing_trouble(&self) -> Arc<WritingTrouble> {
        self.writing.clone()
    }

    pub fn end(&self) {
        self.stop.cancel();
    }

    /// Names of symbols as this process knows them: the exchange's, or those that are indexed.
    pub(super) fn spelled(&self, text: &str) -> String {
        let exchange = self.market.get().and_then(|market| market.known_symbols());
        let listing = self.directory.listing();
        let table = exchange.as_deref().or(listing.as_deref().map(|listing| &listing.table));
        crate::tools::spelled_symbol(text, table)
    }

    /// The symbols that have reports.
    pub(super) async fn indexed(&self) -> Result<Vec<Arc<str>>> {
        loop {
            let listing = self.directory.first_listing().await;
            let listing = listing.map_err(|unavailable| backend_unavailable(&unavailable))?;
            let is_to_come = || self.market.get().is_some_and(|market| market.is_to_track()) && self.has_just_begun();
            if !listing.symbols.is_empty() || !is_to_come() {
                return Ok(listing.symbols.clone());
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// What there is to search; a question about a market waits for the first reports of a process that has just begun.
    async fn listing_for(&self, query: &str) -> Result<Arc<Listing>> {
        let listing = || async {
            let listing = self.directory.first_listing().await;
            listing.map_err(|unavailable| backend_unavailable(&unavailable))
        };
        let first = listing().await?;
        if !first.symbols.is_empty() || !self.has_just_begun() {
            return Ok(first);
        }
        let table = match self.market.get() {
            Some(market) => market.symbols().await,
            None => return Ok(first),
        };
        if table.is_ok_and(|table| !search(&table, query, 1).is_empty()) {
            self.indexed().await?;
        }
        listing().await
    }

    pub(super) async fn report(&self, symbol: &Arc<str>) -> Result<Aged> {
        let deadline = tokio::time::Instant::now() + WAIT_FOR_FIRST;
        loop {
            match self.reader.read(symbol).await {
                Ok(Reading::Report(report)) => {
                    report.record_age();
                    return Ok(report);
                }
                Err(unavailable) => return Err(backend_unavailable(&unavailable)),
                Ok(Reading::Nothing) => {}
            }
            if !self.is_to_come(symbol) || tokio::time::Instant::now() >= deadline {
                return Err(self.why_none(symbol).await);
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Whether this process has just started and will have a report of the symbol.
    fn is_to_come(&self, symbol: &str) -> bool {
        let is_tracked = |market: &Arc<Market>| market.is_to_be_tracked(symbol);
        self.has_just_begun() && self.market.get().is_some_and(is_tracked)
    }

    fn has_just_begun(&self) -> bool {
        let now = self.clock.monotonic();
        let is_young = |begun: &Instant| now.saturating_duration_since(*begun) < BEGINNING;
        self.begun.get().is_some_and(is_young)
    }

    /// Why there is no report of a symbol, and what to do.
    async fn why_none(&self, symbol: &Arc<str>) -> Error {
        if let Some(market) = self.market.get().filter(|_| self.has_just_begun()) {
            // So that what is said of other symbols is true: both wait only where the process has just started.
            let _ = market.symbols().await;
            let _ = self.indexed().await;
        }
        let indexed = match self.cache.indexed().await {
            Ok(indexed) => indexed,
            Err(unavailable) => return backend_unavailable(&unavailable),
        };
        if let Some(known) = indexed.iter().find(|indexed| indexed.symbol == *symbol) {
            return Error::unavailable(format!(
                "stale: the last report of {symbol} was written {} s ago and is no longer kept: no node writes it now. Whoever runs the nodes that write reports can see why in their logs.",
                known.age.as_secs()
            ));
        }
        let names: Vec<&str> = indexed.iter().map(|indexed| &*indexed.symbol).collect();
        Error::not_found(format!(
            "symbol_not_indexed: {}. {} {}",
            self.why_not_indexed(symbol),
            listed(&names),
            self.remedy()
        ))
    }

    /// Whether this process has symbols to report on, and nothing that keeps it from it.
    fn is_about_to_write(&self) -> bool {
        let is_well = |market: &Arc<Market>| market.is_to_track() && market.current_trouble().is_none();
        self.market.get().is_some_and(is_well)
    }

    /// Why there are no reports at all.
    pub(super) fn why_nothing(&self) -> String {
        let Some(market) = self.market.get() else {
            return "No reports have been written yet: nodes with a feed and `symbols` write them.".to_owned();
        };
        if !market.is_to_track() {
            return "No symbol is indexed: put some into `symbols` of [market] in the configuration.".to_owned();
        }
        let trouble = self.writing.get().or_else(|| market.current_trouble());
        let trouble = trouble.unwrap_or_else(|| "they are being computed; ask again in a second".to_owned());
        format!("There are no reports yet: {trouble}.")
    }

    fn why_not_indexed(&self, symbol: &str) -> String {
        let name = clip(symbol, 40);
        let Some(market) = self.market.get() else {
            return format!("there are no reports of {name}");
        };
        let table = market.known_symbols();
        let listed = table.as_ref().map(|table| table.lookup(symbol));
        match listed {
            Some(None) => format!("there is no symbol {name} on the exchange, so there are no reports of it"),
            Some(Some(symbol)) if symbol.status != SymbolStatus::Trading => {
                let status = &symbol.status_text;
                format!("{name} is listed but not traded now (status {status}), so there are no reports of it")
            }
            _ if market.is_to_be_tracked(symbol) => {
                let trouble = self.writing.get().or_else(|| market.current_trouble());
                let trouble =
                    trouble.unwrap_or_else(|| "the first one is being computed; ask again in a second".to_owned());
                format!("{name} is to have reports and has none yet: {trouble}")
            }
            _ => format!("{name} is not among the symbols that have reports"),
        }
    }

    fn remedy(&self) -> &'static str {
        if self.market.get().is_some() {
            "To add one, put it into `symbols` of [market] in the configuration and restart. For single figures of any other symbol there are the binance_ tools."
        } else {
            "To add one, put it into `symbols` of [market] in the configuration of the nodes that write reports."
        }
    }

    /// The symbol that an id is about; `None` if it is not one of ours.
    fn meant(&self, id: &DocumentId) -> Result<Option<Arc<str>>> {
        Ok(match id.scheme() {
            NAME => Some(self.spelled(id.key()).into()),
            _ => match MarketId::parse(id)? {
                Some(MarketId::Report(symbol)) => Some(symbol),
                _ => None,
            },
        })
    }

    fn hit(&self, found: &Match, aged: &Aged, cx: &CallContext) -> Result<Hit> {
        let report = aged.now();
        let mut metadata = JsonObject::new();
        metadata.insert("resolved_symbol".to_owned(), json!(report.symbol));
        metadata.insert("matched_on".to_owned(), json!(found.matched_on.as_str()));
        metadata.insert("alternatives".to_owned(), json!(found.alternatives));
        Ok(Hit {
            id: MarketId::Report(found.symbol.clone()).document_id()?,
            title: title(&report),
            snippet: clip(&markdown::brief(&report), SNIPPET_CHARS - 1).into_owned(),
            url: cx.cites.then(|| self.citing.citation(aged)).transpose()?,
            passage: None,
            score: found.score,
            coverage: found.coverage,
            metadata: Some(metadata),
        })
    }
}

/// The best match of each symbol, as far as a report answers it: it has no candles, single trades or trading
/// rules, and what is asked for by itself is better than a report that has it too.
fn by_symbol(matches: Vec<Match>, limit: usize) -> Vec<Match> {
    let mut found: Vec<Match> = Vec::new();
    for mut next in matches {
        next.coverage *= match next.kind {
            Kind::Report => 1.0,
            Kind::Klines(_) | Kind::Trades | Kind::ExchangeInfo => 0.5,
            _ => AMONG_OTHERS,
        };
        match found.iter_mut().find(|known| known.symbol == next.symbol) {
            Some(known) if known.kind == Kind::Report => {}
            Some(known) if next.kind == Kind::Report || next.coverage > known.coverage => *known = next,
            Some(_) => {}
            None => found.push(next),
        }
    }
    found.truncate(limit);
    found
}

pub(super) fn backend_unavailable(unavailable: &Unavailable) -> Error {
    Error::unavailable(format!(
        "backend_unavailable: reports cannot be read now: {unavailable}. Ask again in a few seconds."
    ))
}

fn listed(names: &[&str]) -> String {
    match names {
        [] => "No symbol is indexed yet.".to_owned(),
        names if names.len() <= MOST_NAMED => format!("Indexed: {}.", names.join(", ")),
        names => format!(
            "Indexed: {} and {} more (market_overview lists all).",
            names[..MOST_NAMED].join(", "),
            names.len() - MOST_NAMED
        ),
    }
}

#[async_trait]
impl Source for ReportsSource {
    fn name(&self) -> &str {
        NAME
    }

    fn owns(&self, scheme: &str) -> bool {
        scheme == NAME || scheme == Kind::Report.scheme()
    }

    async fn search(&self, query: &Query, cx: &CallContext) -> Result<Arc<[Hit]>> {
        let listing = self.listing_for(&query.text).await?;
        let matches = by_symbol(search(&listing.table, &query.text, MATCHES), query.limit);
        let symbols: Vec<Arc<str>> = matches.iter().map(|found| found.symbol.clone()).collect();
        if symbols.is_empty() {
            return Ok(Arc::from([]));
        }
        let readings = self.reader.read_all(&symbols).await;
        let readings = readings.map_err(|unavailable| backend_unavailable(&unavailable))?;
        let hits = matches
            .iter()
            .zip(readings)
            .filter_map(|(found, reading)| match reading {
                Ok(Reading::Report(report)) => Some(self.hit(found, &report, cx)),
                _ => None,
            });
        hits.collect()
    }

    async fn fetch(&self, id: &DocumentId, cx: &CallContext) -> Result<Option<Document>> {
        let Some(symbol) = self.meant(id)? else {
            return Ok(None);
        };
        let report = self.report(&symbol).await?;
        if !cx.cites {
            return document(&report.now()).map(Some);
        }
        self.citing.document(&report).map(Some)
    }

    async fn cited(&self, id: &DocumentId, record: &str) -> Result<Option<Cited>> {
        self.citing.cited(id, record)
    }

    async fn view(&self, document: &Document, cited: Option<Timestamp>, _cx: &CallContext) -> Result<Option<View>> {
        let board = match cited {
            Some(_) => view::then(document),
            None => match self.meant(&document.id)? {
                Some(symbol) => view::now(&self.report(&symbol).await?.now()),
                None => return Ok(None),
            },
        };
        Ok(Some(View::Board(Box::new(board))))
    }

    fn facts(&self) -> SourceFacts {
        let listing = self.directory.listing();
        let simulated = self.market.get().is_some_and(|market| market.simulated().is_some());
        let example = listing.as_ref().and_then(|listing| listing.symbols.first().cloned());
        SourceFacts {
            name: NAME.to_owned(),
            title: if simulated {
                "SIMULATED market reports".to_owned()
            } else {
                "Market reports".to_owned()
            },
            description: Some(
                "The whole state of a market in one document: price, order book, flow, liquidity, anomalies and health, computed all the time."
                    .to_owned(),
            ),
            noun: "reports".to_owned(),
            documents: listing.as_ref().map(|listing| listing.symbols.len() as u64),
            dates: None,
            example_id: Some(format!("report:{}", example.as_deref().unwrap_or("BTCUSDT"))),
            live: true,
            fields: Vec::new(),
        }
    }

    /// A cache that does not answer must not take the other sources with it.
    fn status(&self) -> SourceStatus {
        match (self.directory.trouble(), self.directory.listing()) {
            (Some(trouble), _) => SourceStatus::Degraded(format!("backend_unavailable: {trouble}")),
            (None, _) if let Some(trouble) = self.writing.get() => {
                SourceStatus::Degraded(format!("reports cannot be written: {trouble}"))
            }
            (None, None) => SourceStatus::Unready("what has reports is being looked up".to_owned()),
            (None, Some(listing)) if listing.symbols.is_empty() && self.is_about_to_write() => {
                SourceStatus::Unready("the first reports are being computed".to_owned())
            }
            (None, Some(_)) => SourceStatus::Ready,
        }
    }

    fn revision(&self) -> u64 {
        self.directory.revision()
    }

    fn tools(self: Arc<Self>) -> Vec<Arc<dyn Tool>> {
        tools::all(&self)
    }
}

#[cfg(test)]
mod tests;
