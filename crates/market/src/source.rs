//! The market as a source: searched by what people say, fetched by id, cited by record.

use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use jiff::Timestamp;
use serde_json::json;
use tribune_core::view::View;
use tribune_core::wire::clip;
use tribune_core::{
    CallContext, Cited, Clock, Document, DocumentId, Error, ErrorKind, Hit, JsonObject, Query, Result, Source,
    SourceFacts, SourceStatus, Tool,
};

use crate::answers::{self, Answer, candles::Range, flow::FLOW_SECS};
use crate::brief::{self, Brief};
use crate::market::{self, Market};
use crate::model::Symbol;
use crate::records::Records;
use crate::rest::{self, Governor, Rest};
use crate::symbols::{AnalyticsKind, Kind, MarketId, Match, search};
use crate::tools;
use crate::trading::{self, CurrentBook};
use crate::view;

/// The name of the source, and its profile.
pub const NAME: &str = "market";
/// Snippets of search results.
const SNIPPET_CHARS: usize = 200;
/// What documents show, where tools can be told.
const DOCUMENT_LEVELS: usize = 50;
const DOCUMENT_CANDLES: usize = 120;
const DOCUMENT_TRADES: usize = 100;
const DOCUMENT_HOURS: u32 = 24;
const DOCUMENT_DEPTH_LEVELS: usize = 20;
/// To reckon an order by, where the book has to be asked for.
const ORDER_LEVELS: u32 = 1_000;

/// Account and order tools, and the address of an exchange that has accounts.
pub type Trading = (trading::Settings, rest::Settings);

pub struct MarketSource {
    /// Set once the market has been started.
    running: Arc<Running>,
    governor: Arc<Governor>,
    records: Records,
    trading_tools: Vec<Arc<dyn Tool>>,
    pages: view::Pages,
    clock: Arc<dyn Clock>,
}

#[derive(Default)]
struct Running(OnceLock<Arc<Market>>);

impl Running {
    fn market(&self) -> Result<&Arc<Market>> {
        self.0
            .get()
            .ok_or_else(|| Error::unavailable("The market has not been started yet; ask again in a second."))
    }
}

impl MarketSource {
    /// Nothing is asked of the exchange before [`MarketSource::begin`].
    pub fn new(records: Records, trading: Option<Trading>, clock: Arc<dyn Clock>) -> Result<Self> {
        let running = Arc::<Running>::default();
        let governor = Governor::new(clock.clone());
        let trading_tools = match trading {
            Some((trading, rest)) => {
                let rest = Rest::governed(rest, governor.clone(), clock.clone())?.for_orders();
                trading::tools(trading, rest, running.clone())?
            }
            None => Vec::new(),
        };
        Ok(Self {
            running,
            governor,
            records,
            trading_tools,
            pages: view::Pages::default(),
            clock,
        })
    }

    /// Connects to the exchange, in the background. Must be called within a runtime, and once.
    pub fn begin(&self, settings: market::Settings) -> Result<Arc<Market>> {
        let market = Market::start(settings, self.governor.clone(), self.clock.clone())?;
        let _ = self.running.0.set(market.clone());
        Ok(market)
    }

    /// Lets go of the exchange.
    pub fn end(&self) {
        if let Some(market) = self.running.0.get() {
            market.stop();
        }
    }

    pub(crate) fn market(&self) -> Result<&Arc<Market>> {
        self.running.market()
    }

    /// What pages keep between looks.
    pub(crate) fn pages(&self) -> &view::Pages {
        &self.pages
    }

    pub(crate) fn cite(&self, document: &Document) -> String {
        self.records.cite(document)
    }

    /// The answer as a document, cited if the call cites.
    fn document(&self, answer: Answer, cx: &CallContext) -> Document {
        let mut document = answer.into_document();
        document.url = cx.cites.then(|| self.cite(&document));
        document
    }

    pub(crate) async fn answer(&self, id: &MarketId) -> Result<Answer> {
        Self::answer_by(self.market()?, id).await
    }

    /// The answer by a market that may be one for pages.
    pub(crate) async fn answer_by(market: &Market, id: &MarketId) -> Result<Answer> {
        let symbol = id.symbol();
        match id.kind() {
            Kind::Ticker => answers::ticker::ticker(market, symbol).await,
            Kind::OrderBook => answers::book::levels(market, symbol, DOCUMENT_LEVELS).await,
            Kind::OrderBookL1 => answers::book::l1(market, symbol).await,
            Kind::OrderBookL2 => answers::book::l2(market, symbol, DOCUMENT_DEPTH_LEVELS).await,
            Kind::Klines(interval) => {
                answers::candles::candles(market, symbol, Range::newest(interval, DOCUMENT_CANDLES)).await
            }
            Kind::Trades => answers::trades::trades(market, symbol, DOCUMENT_TRADES).await,
            Kind::ExchangeInfo => answers::info::info(market, symbol).await,
            Kind::Analytics(AnalyticsKind::OrderFlow) => answers::flow::order_flow(market, symbol, FLOW_SECS).await,
            Kind::Analytics(AnalyticsKind::VolumeProfile) => {
                answers::profile::profile(market, symbol, DOCUMENT_HOURS, None).await
            }
            Kind::Analytics(AnalyticsKind::LiquidityVacuums) => {
                answers::profile::liquidity_vacuums(market, symbol, DOCUMENT_HOURS).await
            }
            Kind::Analytics(AnalyticsKind::Anomalies) => answers::anomalies::anomalies(market, symbol).await,
            Kind::Analytics(AnalyticsKind::Health) => answers::anomalies::health_score(market, symbol).await,
            Kind::Markets => answers::ranking::overview(market, symbol).await,
            Kind::Report => Err(Error::not_found("reports are a source of their own")),
        }
    }

    /// The id that is meant: one of ours, or a bare symbol, which means its price.
    fn meant(&self, id: &DocumentId) -> Result<Option<MarketId>> {
        if id.scheme() != NAME {
            return Ok(MarketId::parse(id)?.filter(|id| id.kind() != Kind::Report));
        }
        let known = self.running.0.get().and_then(|market| market.known_symbols());
        let symbol = known.and_then(|table| table.lookup(id.key()).map(|symbol| symbol.name.clone()));
        Ok(symbol.map(MarketId::Ticker))
    }

    /// What is found, as it is now, all of it cited at once if the call cites.
    fn hits(&self, found: Vec<(Brief, &Match)>, cx: &CallContext) -> Arc<[Hit]> {
        let (documents, matches): (Vec<Document>, Vec<&Match>) = found
            .into_iter()
            .map(|(brief, found)| (in_brief(brief, found), found))
            .unzip();
        let urls = match cx.cites {
            true => self.records.cite_all(&documents).into_iter().map(Some).collect(),
            false => vec![None; documents.len()],
        };
        let found = documents.into_iter().zip(matches).zip(urls);
        let hit = |((document, found), url): ((Document, &Match), Option<String>)| Hit {
            url,
            id: document.id,
            title: document.title,
            snippet: document.text,
            passage: None,
            score: found.score,
            coverage: found.coverage,
            metadata: Some(document.metadata),
        };
        found.map(hit).collect()
    }
}

/// What a search finds, as a document of a few words.
fn in_brief(brief: Brief, found: &Match) -> Document {
    let mut metadata = JsonObject::new();
    let resolved = match found.kind {
        Kind::Markets => "quote_asset",
        _ => "resolved_symbol",
    };
    metadata.insert(resolved.to_owned(), json!(&*found.symbol));
    metadata.insert("matched_on".to_owned(), json!(found.matched_on.as_str()));
    let alternatives: Vec<&str> = found.alternatives.iter().take(5).map(|name| &**name).collect();
    metadata.insert("alternatives".to_owned(), json!(alternatives));
    Document {
        id: found.id.clone(),
        title: brief.title,
        text: clip(&brief.text, SNIPPET_CHARS - 1).into_owned(),
        url: None,
        as_of: Some(brief.as_of),
        metadata,
        passages: Vec::new(),
    }
}

#[async_trait]
impl Source for MarketSource {
    fn name(&self) -> &str {
        NAME
    }

    fn owns(&self, scheme: &str) -> bool {
        scheme == NAME || MarketId::SCHEMES.contains(&scheme)
    }

    async fn search(&self, query: &Query, cx: &CallContext) -> Result<Arc<[Hit]>> {
        let market = self.market()?;
        let table = market.symbols().await?;
        let found = search(&table, &query.text, query.limit);
        // Reports are a source of their own.
        let found = found.iter().filter(|found| found.kind != Kind::Report);
        let hits = found.filter_map(|found| {
            let brief = match found.kind {
                Kind::Markets => brief::of_all(market, &found.symbol)?,
                kind => brief::brief(market, table.lookup(&found.symbol)?, kind),
            };
            Some((brief, found))
        });
        Ok(self.hits(hits.collect(), cx))
    }

    async fn fetch(&self, id: &DocumentId, cx: &CallContext) -> Result<Option<Document>> {
        match self.meant(id)? {
            Some(id) => Ok(Some(self.document(self.answer(&id).await?, cx))),
            None => Ok(None),
        }
    }

    async fn cited(&self, id: &DocumentId, record: &str) -> Result<Option<Cited>> {
        self.records.cited(id, record)
    }

    async fn view(&self, document: &Document, cited: Option<Timestamp>, _cx: &CallContext) -> Result<Option<View>> {
        let board = match cited {
            Some(_) => view::then(document),
            None => match self.meant(&document.id)? {
                Some(id) => Some(view::now(self, &id).await?),
                None => None,
            },
        };
        Ok(board.map(|board| View::Board(Box::new(board))))
    }

    fn facts(&self) -> SourceFacts {
        let market = self.running.0.get();
        let simulated = market.is_some_and(|market| market.simulated().is_some());
        SourceFacts {
            name: NAME.to_owned(),
            title: if simulated {
                "SIMULATED Binance Spot markets".to_owned()
            } else {
                "Binance Spot markets".to_owned()
            },
            description: Some(
                "Live cryptocurrency prices, 24-hour statistics, order books, candles, trades, order flow and liquidity: ask by name (bitcoin, eth/btc) or symbol (BTCUSDT)."
                    .to_owned(),
            ),
            noun: "symbols".to_owned(),
            documents: market.and_then(|market| market.known_symbols()).map(|table| table.len() as u64),
            dates: None,
            example_id: Some("ticker:BTCUSDT".to_owned()),
            live: true,
            fields: Vec::new(),
        }
    }

    /// When the exchange last confirmed the freshest book.
    fn updated(&self) -> Option<Timestamp> {
        let books = self.running.0.get()?.feed.books();
        let live = books.iter().filter(|book| book.live().is_some());
        let confirmed = live.map(|book| book.confirmed()).max()?;
        let since = self.clock.monotonic().saturating_duration_since(confirmed);
        self.clock.now().checked_sub(since).ok()
    }

    /// An exchange that cannot be reached must not take the other sources with it: only the first moments
    /// count as unready.
    fn status(&self) -> SourceStatus {
        let Some(market) = self.running.0.get() else {
            return SourceStatus::Unready("not started".to_owned());
        };
        match (market.known_symbols(), market.current_trouble()) {
            (_, Some(trouble)) if market.has_tried() => SourceStatus::Degraded(trouble),
            // It was ready without them, and is not less so when they come.
            (None, _) if market.has_tried() => SourceStatus::Degraded("symbols are being loaded".to_owned()),
            (None, _) => SourceStatus::Unready("symbols are being loaded".to_owned()),
            (Some(_), _) => SourceStatus::Ready,
        }
    }

    fn revision(&self) -> u64 {
        self.running.0.get().map_or(0, |market| 1 + market.revision())
    }

    fn tools(self: Arc<Self>) -> Vec<Arc<dyn Tool>> {
        tools::all(&self)
    }

    fn admin_tools(self: Arc<Self>) -> Vec<Arc<dyn Tool>> {
        self.trading_tools.clone()
    }
}

#[async_trait]
impl trading::Market for Running {
    async fn symbol(&self, name: &str) -> Result<Option<Symbol>> {
        match self.market()?.symbol(name).await {
            Ok(symbol) => Ok(Some(symbol)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Live and confirmed of late, or asked for now.
    async fn book(&self, symbol: &str) -> Result<CurrentBook> {
        let market = self.market()?;
        let symbol = market.traded(symbol).await?;
        let live = market
            .watched(&symbol)
            .and_then(|tracked| Some((tracked.live()?, tracked.confirmed())));
        if let Some((view, confirmed)) = live {
            let age = market.clock.monotonic().saturating_duration_since(confirmed);
            let age_ms = u64::try_from(age.as_millis()).unwrap_or(u64::MAX);
            if age_ms <= trading::MAX_PRICE_AGE_MS {
                let depth = view.depth.clone();
                return Ok(CurrentBook { depth, age_ms });
            }
        }
        let view = market.snapshot_of(&symbol, ORDER_LEVELS).await?.view;
        Ok(CurrentBook {
            depth: view.depth.clone(),
            age_ms: view.received.age_ms(&*market.clock),
        })
    }
}
