//! A market as the tests start it, on top of what the tests of the client start.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tempfile::TempDir;
use tokio_util::sync::CancellationToken;
use tribune_binance::{feed, rest};
use tribune_citations::records::Records;
use tribune_citations::{self as citations, Citations};
use tribune_core::{CallContext, Document, DocumentId, Links, Principal, Result, Source as _, SystemClock};
use tribune_exchange_sim::Exchange;
use tribune_market::{MarketSource, market};

pub use crate::client::*;

/// A market as a source, and the folder of its citations.
pub struct Market {
    pub source: Arc<MarketSource>,
    _folder: TempDir,
}

#[derive(Clone)]
pub struct MarketSettings {
    pub rest: rest::Settings,
    pub feed: feed::Settings,
    pub symbols: Vec<String>,
    pub track_top: usize,
    pub keep_citations: Duration,
    pub max_citations: usize,
}

impl MarketSettings {
    pub fn of(exchange: &Exchange) -> Self {
        Self::at(exchange.rest_url(), exchange.stream_url())
    }

    pub fn at(rest_url: String, stream_url: String) -> Self {
        Self {
            rest: rest::Settings { base_url: rest_url, ..rest::Settings::default() },
            feed: feed::Settings::new(stream_url),
            symbols: Vec::new(),
            track_top: 0,
            keep_citations: Duration::from_secs(86_400),
            max_citations: 10_000,
        }
    }

    pub fn start(self) -> Market {
        let folder = tempfile::tempdir().expect("a folder");
        let limits = citations::Limits { keep: self.keep_citations, most: self.max_citations };
        let citations = Citations::open(folder.path().to_owned(), limits, Arc::new(SystemClock)).expect("a folder");
        let links = Links::new("http://tribune.test");
        let records = Records::new(Some(Arc::new(citations)), links);
        let settings =
            market::Settings { rest: self.rest, feed: self.feed, symbols: self.symbols, track_top: self.track_top };
        let market = market::Market::new(settings, Arc::new(SystemClock)).expect("settings");
        let source = Arc::new(MarketSource::new(market, records));
        tokio::spawn(source.clone().run(CancellationToken::new()));
        Market { source, _folder: folder }
    }
}

pub fn call() -> CallContext {
    CallContext::new(Principal::Local, Instant::now() + PATIENCE)
}

pub fn id(text: &str) -> DocumentId {
    DocumentId::parse(text).expect("an id")
}

impl Market {
    pub async fn fetch(&self, text: &str) -> Result<Document> {
        let document = self.source.fetch(&id(text), &call()).await?;
        Ok(document.expect("an id of the market"))
    }

    /// Once the symbols are loaded.
    pub async fn ready(self) -> Self {
        until("symbols are loaded", || async { self.source.facts().documents.is_some() }).await;
        self
    }

    /// Fetches until the book that answers is the live one of the streams.
    pub async fn live(&self, text: &str) -> Document {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let document = self.fetch(text).await;
            if let Ok(document) = &document
                && document.metadata["book_state"] == "live"
                && document.metadata["data_source"] == "stream"
            {
                return document.clone();
            }
            assert!(Instant::now() < deadline, "{text} never was live: {document:?}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}
