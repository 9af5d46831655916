//! The market as a source: searched by keywords, fetched by id, cited by record.

use std::sync::Arc;

use async_trait::async_trait;
use jiff::{Timestamp, tz::TimeZone};
use serde_json::json;
use tokio_util::sync::CancellationToken;
use tribune_core::wire::{clip, object};
use tribune_core::{
    CallContext, Cited, Document, DocumentId, Hit, Query, Result, Source, SourceFacts, SourceStatus, Tool,
};
use tribune_page::View;

use crate::citing::Citing;
use crate::kinds::{self, Found};
use crate::market::Market;
use crate::page;
use crate::tools;
use tribune_citations::Pool;
use tribune_citations::records::Records;
use tribune_market_resolve::id::{Kind, MarketId};
use tribune_market_resolve::{Match, search};

/// The name of the source, and its profile.
pub const NAME: &str = "market";
const SNIPPET_CHARS: usize = 200;

pub struct MarketSource {
    pub(crate) citing: Arc<Citing>,
    admin_tools: Vec<Arc<dyn Tool>>,
    /// Where the exchange is, for the operator.
    pub(crate) origin: Option<String>,
    pages: page::Pages,
}

impl MarketSource {
    pub fn new(market: Arc<Market>, records: Records) -> Self {
        Self {
            citing: Arc::new(Citing { market, records }),
            admin_tools: Vec::new(),
            origin: None,
            pages: page::Pages::default(),
        }
    }

    /// Tools about the same exchange that only those who may trade see.
    #[must_use]
    pub fn with_admin_tools(mut self, tools: Vec<Arc<dyn Tool>>) -> Self {
        self.admin_tools = tools;
        self
    }

    pub fn market(&self) -> &Arc<Market> {
        &self.citing.market
    }

    /// The id of a market document; a bare symbol means its ticker.
    fn meant(&self, id: &DocumentId) -> Result<Option<MarketId>> {
        if id.scheme() != NAME {
            return Ok(MarketId::parse(id)?.filter(|id| id.kind() != Kind::Report));
        }
        let known = self.market().known_symbols();
        let symbol = known.and_then(|table| table.lookup(id.key()).map(|symbol| symbol.name.clone()));
        Ok(symbol.map(|symbol| MarketId::new(Kind::Ticker, symbol)))
    }

    /// Search results, cited together if the call cites.
    async fn hits(&self, found: Vec<(Found, &Match)>, cx: &CallContext) -> Arc<[Hit]> {
        let documents: Vec<Document> = found.iter().map(|(found, matched)| in_brief(found, matched)).collect();
        let mut urls = match cx.cites {
            true => {
                let hits: Vec<_> = found.iter().map(|(found, _)| found).zip(&documents).collect();
                self.citing.cite_hits(Pool::new(cx), &hits).await.into_iter()
            }
            false => Vec::new().into_iter(),
        };
        let hit = |((_, matched), document): ((Found, &Match), Document)| Hit {
            url: urls.next(),
            id: document.id,
            title: document.title,
            snippet: document.text,
            passage: None,
            score: matched.score,
            coverage: matched.coverage,
            metadata: Some(document.metadata),
        };
        found.into_iter().zip(documents).map(hit).collect()
    }
}

fn in_brief(found: &Found, matched: &Match) -> Document {
    let resolved = match matched.kind {
        Kind::Markets => "quote_asset",
        _ => "resolved_symbol",
    };
    let alternatives: Vec<&str> = matched.alternatives.iter().take(5).map(|name| &**name).collect();
    Document {
        id: matched.id.clone(),
        title: found.title.clone(),
        text: clip(&found.snippet, SNIPPET_CHARS - 1).into_owned(),
        url: None,
        as_of: Some(found.as_of),
        metadata: object(json!({
            resolved: &*matched.symbol,
            "matched_on": matched.matched_on,
            "alternatives": alternatives,
        })),
        passages: Vec::new(),
    }
}

#[async_trait]
impl Source for MarketSource {
    fn name(&self) -> &str {
        NAME
    }

    fn owns(&self, scheme: &str) -> bool {
        scheme == NAME || MarketId::owns(scheme)
    }

    async fn search(&self, query: &Query, cx: &CallContext) -> Result<Arc<[Hit]>> {
        let market = self.market();
        let table = market.symbols().await?;
        let today = self.market().clock.now().to_zoned(TimeZone::UTC).date();
        let found = search(&table, &query.text, query.limit, today);
        // Reports are a source of their own.
        let found = found.iter().filter(|found| found.kind != Kind::Report);
        let hits = found.filter_map(|found| {
            let known = match found.kind {
                Kind::Markets => kinds::found_all(market, &found.symbol)?,
                kind => kinds::found(market, table.lookup(&found.symbol)?, kind),
            };
            Some((known, found))
        });
        Ok(self.hits(hits.collect(), cx).await)
    }

    async fn fetch(&self, id: &DocumentId, cx: &CallContext) -> Result<Option<Document>> {
        let Some(id) = self.meant(id)? else {
            return Ok(None);
        };
        let answer = kinds::load(self.market(), &id).await?;
        let mut document = answer.document();
        if cx.cites {
            document.url = Some(self.citing.cite(Pool::new(cx), &answer, &document).await);
        }
        Ok(Some(document))
    }

    async fn cited(&self, id: &DocumentId, record: &str) -> Result<Option<Cited>> {
        self.citing.cited(id, record).await
    }

    async fn view(&self, document: &Document, cited: Option<Timestamp>, _cx: &CallContext) -> Result<Option<View>> {
        let board = match cited {
            Some(_) => self.citing.kept(document).await?.and_then(|kept| page::then(&kept)),
            None => match self.meant(&document.id)? {
                Some(id) => Some(page::now(self.market(), &self.pages, &id).await?),
                None => None,
            },
        };
        Ok(board.map(|board| View::Board(Box::new(board))))
    }

    fn facts(&self) -> SourceFacts {
        let market = self.market();
        let label = market.simulated().map_or("", |_| "SIMULATED ");
        SourceFacts {
            name: NAME.to_owned(),
            title: format!("{label}Binance Spot markets"),
            description: Some(
                "Live cryptocurrency prices, 24-hour statistics, order books, candles, trades, order flow and liquidity: ask by name (bitcoin, eth/btc) or symbol (BTCUSDT)."
                    .to_owned(),
            ),
            noun: "symbols".to_owned(),
            documents: market.known_symbols().map(|table| table.len() as u64),
            dates: None,
            example_id: Some("ticker:BTCUSDT".to_owned()),
            live: true,
            fields: Vec::new(),
        }
    }

    /// When the exchange last confirmed the freshest book.
    fn updated(&self) -> Option<Timestamp> {
        let books = self.market().feed.books();
        let live = books.iter().filter(|book| book.live().is_some());
        let confirmed = live.map(|book| book.confirmed()).max()?;
        let since = self.market().clock.monotonic().saturating_duration_since(confirmed);
        self.market().clock.now().checked_sub(since).ok()
    }

    /// Only the first moments count as unready: an unreachable exchange must not take the other sources down.
    fn status(&self) -> SourceStatus {
        let market = self.market();
        match (market.known_symbols(), market.current_trouble()) {
            (_, Some(trouble)) if market.has_tried() => SourceStatus::Degraded(trouble),
            // Degraded until the symbols arrive.
            (None, _) if market.has_tried() => SourceStatus::Degraded("symbols are being loaded".to_owned()),
            (None, _) => SourceStatus::Unready("symbols are being loaded".to_owned()),
            (Some(_), _) => SourceStatus::Ready,
        }
    }

    fn origin(&self) -> Option<String> {
        self.origin.clone()
    }

    fn revision(&self) -> u64 {
        self.market().revision()
    }

    async fn run(self: Arc<Self>, stop: CancellationToken) -> Result<()> {
        self.market().run(stop).await;
        Ok(())
    }

    fn tools(self: Arc<Self>) -> Vec<Arc<dyn Tool>> {
        tools::all(&self.citing)
    }

    fn admin_tools(self: Arc<Self>) -> Vec<Arc<dyn Tool>> {
        self.admin_tools.clone()
    }
}
