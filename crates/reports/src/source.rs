//! Reports as a source: searched by what people call a market, fetched by `report:SYMBOL`, cited by record.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use async_trait::async_trait;
use jiff::Timestamp;
use serde_json::json;
use tokio_util::sync::CancellationToken;
use tribune_citations::Pool;
use tribune_core::wire::{clip, object};
use tribune_core::{
    CallContext, Cited, Document, DocumentId, Hit, Query, Result, Source, SourceFacts, SourceStatus, Tool,
};
use tribune_market_resolve::id::Kind;
use tribune_market_resolve::{Match, search};
use tribune_page::View;

use super::aged::AgedReport;
use super::citing::{SCHEME, document, report_id, title};
use super::engine::Engine;
use super::exchange::Exchange;
use super::markdown;
use super::service::ReportsSource;
use super::{tools, view};

/// The name of the source, and its profile.
pub const NAME: &str = "reports";
const SNIPPET_CHARS: usize = 200;
/// Matches that a search looks through to find each symbol once.
const MATCHES: usize = 200;
/// Coverage of a report that has the figure asked for among others.
const PART_COVERAGE: f32 = 0.95;
/// Coverage of a report that does not have it: candles, single trades, trading rules.
const MISSING_COVERAGE: f32 = 0.5;

impl ReportsSource {
    /// The symbol that an id is about; `None` if it is not one of ours.
    fn symbol(&self, id: &DocumentId) -> Option<Arc<str>> {
        self.owns(id.scheme()).then(|| self.spell(id.key()).into())
    }

    async fn hit(&self, found: &Match, aged: &AgedReport, cx: &CallContext) -> Result<Hit> {
        let report = aged.now();
        let url = match cx.cites {
            true => Some(self.citing.citation(Pool::new(cx), aged).await?.url.clone()),
            false => None,
        };
        let metadata = json!({
            "resolved_symbol": report.symbol,
            "matched_on": found.matched_on,
            "alternatives": found.alternatives,
        });
        Ok(Hit {
            id: report_id(&found.symbol)?,
            title: title(&report),
            snippet: clip(&markdown::brief(&report), SNIPPET_CHARS - 1).into_owned(),
            url,
            passage: None,
            score: found.score,
            coverage: found.coverage,
            metadata: Some(object(metadata)),
        })
    }
}

/// The best match of each symbol, as far as a report answers it.
fn by_symbol(matches: Vec<Match>, limit: usize) -> Vec<Match> {
    // What is asked for by itself is better than a report that has it too.
    let rank = |found: &Match| (found.kind == Kind::Report, found.coverage);
    let mut found: Vec<Match> = Vec::new();
    for mut next in matches {
        next.coverage *= match next.kind {
            Kind::Report => 1.0,
            Kind::Klines(_) | Kind::Trades | Kind::ExchangeInfo => MISSING_COVERAGE,
            _ => PART_COVERAGE,
        };
        match found.iter_mut().find(|known| known.symbol == next.symbol) {
            Some(known) if rank(&next) > rank(known) => *known = next,
            Some(_) => {}
            None => found.push(next),
        }
    }
    found.truncate(limit);
    found
}

#[async_trait]
impl Source for ReportsSource {
    fn name(&self) -> &str {
        NAME
    }

    fn owns(&self, scheme: &str) -> bool {
        scheme == NAME || scheme == SCHEME
    }

    async fn search(&self, query: &Query, cx: &CallContext) -> Result<Arc<[Hit]>> {
        let listing = self.listing(Some(&query.text)).await?;
        let today = self.today();
        let matches = by_symbol(search(&listing, &query.text, MATCHES, today), query.limit);
        let symbols: Vec<Arc<str>> = matches.iter().map(|found| found.symbol.clone()).collect();
        if symbols.is_empty() {
            return Ok(Arc::from([]));
        }
        let reports = self.reader.read_all(&symbols).await?;
        let mut hits = Vec::new();
        for (found, report) in matches.iter().zip(reports) {
            if let Ok(Some(report)) = report {
                hits.push(self.hit(found, &report, cx).await?);
            }
        }
        Ok(hits.into())
    }

    async fn fetch(&self, id: &DocumentId, cx: &CallContext) -> Result<Option<Document>> {
        let Some(symbol) = self.symbol(id) else {
            return Ok(None);
        };
        let report = self.report(&symbol).await?;
        if !cx.cites {
            return document(&report.now()).map(Some);
        }
        self.citing.document(Pool::new(cx), &report).await.map(Some)
    }

    async fn cited(&self, id: &DocumentId, record: &str) -> Result<Option<Cited>> {
        self.citing.records.cited(id, record).await
    }

    async fn view(&self, document: &Document, cited: Option<Timestamp>, _cx: &CallContext) -> Result<Option<View>> {
        let board = match (cited, self.symbol(&document.id)) {
            (Some(_), _) => view::then(document),
            (None, Some(symbol)) => Some(view::now(&self.report(&symbol).await?.now())),
            (None, None) => None,
        };
        Ok(board.map(|board| View::Board(Box::new(board))))
    }

    fn facts(&self) -> SourceFacts {
        let listing = self.directory().listing;
        let exchange = self.exchange.as_ref();
        let simulated = exchange.is_some_and(|exchange| exchange.simulated().is_some());
        let example = listing.as_ref().and_then(|listing| listing.symbols().first().map(|first| first.name.clone()));
        SourceFacts {
            name: NAME.to_owned(),
            title: if simulated { "SIMULATED market reports" } else { "Market reports" }.to_owned(),
            description: Some(
                "The whole state of a market in one document: price, order book, flow, liquidity, anomalies and health, computed all the time."
                    .to_owned(),
            ),
            noun: "reports".to_owned(),
            documents: listing.as_ref().map(|listing| listing.len() as u64),
            dates: None,
            example_id: Some(format!("report:{}", example.as_deref().unwrap_or("BTCUSDT"))),
            live: true,
            fields: Vec::new(),
        }
    }

    /// A cache that does not answer must not take the other sources with it.
    fn status(&self) -> SourceStatus {
        let directory = self.directory();
        if let Some(trouble) = directory.trouble {
            return SourceStatus::Degraded(format!("backend_unavailable: {trouble}"));
        }
        if let Some(trouble) = self.trouble.borrow().clone() {
            return SourceStatus::Degraded(format!("reports cannot be written: {trouble}"));
        }
        let is_well = |exchange: &Arc<dyn Exchange>| exchange.is_to_track() && exchange.current_trouble().is_none();
        let expects_reports = self.exchange.as_ref().is_some_and(is_well);
        match directory.listing {
            None => SourceStatus::Unready("looking up which symbols have reports".to_owned()),
            Some(listing) if listing.is_empty() && expects_reports => {
                SourceStatus::Unready("the first reports are being computed".to_owned())
            }
            Some(_) => SourceStatus::Ready,
        }
    }

    fn origin(&self) -> Option<String> {
        Some(self.cache.place().to_owned())
    }

    fn revision(&self) -> u64 {
        self.revision.load(Ordering::Relaxed)
    }

    /// Follows which symbols have reports, and writes those of the exchange. A stop gives the leases up, so that other
    /// nodes can take over at once.
    async fn run(self: Arc<Self>, stop: CancellationToken) -> Result<()> {
        let follow = stop.run_until_cancelled(self.follow());
        let write = async {
            if let (Some(exchange), Some(node)) = (&self.exchange, &self.node) {
                let (cache, trouble) = (self.cache.clone(), self.trouble.clone());
                let engine = Engine::new(exchange.clone(), cache, node.clone(), trouble);
                engine.run(&stop).await;
            }
        };
        tokio::join!(follow, write);
        Ok(())
    }

    fn tools(self: Arc<Self>) -> Vec<Arc<dyn Tool>> {
        tools::all(&self)
    }
}

#[cfg(test)]
mod tests;
