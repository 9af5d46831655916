//! The composition root: the one place where a configuration becomes running parts.

use std::sync::Arc;

use anyhow::Context;
use tribune_core::{Links, Source, SystemClock};
use tribune_corpus::speeches::Spellings;
use tribune_corpus::{Dialect, DocumentsSource, Pool, Settings as CorpusSettings, SpeechesSource, ToolNames};
use tribune_embed::Embedder;
use tribune_embed::api::{Api, Settings as ApiSettings};
use tribune_exchange_sim as simulator;
use tribune_market::citations::{Citations, Limits};
use tribune_market::records::Records;
use tribune_market::report::cache::{MemoryCache, NodeId, RedisCache, ReportCache};
use tribune_market::report::{Engine, ReportsSource};
use tribune_market::{MarketSource, market, rest, source, trading};
use tribune_server::{Service, Settings};

use crate::config::{CachePlace, Config, EmbedderChoice, Exchange, MarketConfig, Secret, SourceConfig};

/// Everything that serves, and the corpora as what they are, for indexing.
pub struct Parts {
    pub service: Arc<Service>,
    pub corpora: Vec<Arc<DocumentsSource>>,
    market: Option<LiveMarket>,
}

/// A market that has not been connected yet.
struct LiveMarket {
    /// `None` where reports of others are served, and nothing else.
    source: Option<Arc<MarketSource>>,
    reports: Arc<ReportsSource>,
    cache: Arc<dyn ReportCache>,
    /// Whether other processes may write reports too.
    is_shared: bool,
    node: String,
    config: MarketConfig,
}

/// What a process is there for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stay {
    /// Serves until it is stopped, and does its share of what several processes do together.
    Serving,
    /// Answers one question and goes.
    Asking,
}

impl Parts {
    /// Connects the market, if there is one. What is given back must be held while it is served.
    pub async fn begin(&self, stay: Stay) -> anyhow::Result<Option<Begun>> {
        match &self.market {
            Some(market) => market.begin(stay).await.map(Some),
            None => Ok(None),
        }
    }
}

pub fn compose(config: &Config, settings: Settings) -> anyhow::Result<Parts> {
    let pool = Pool::start()?;
    let corpora = corpora(config, &pool)?;
    let links = Links::new(&settings.public_url);
    let mut sources = sources(config, &corpora, &links);
    let market = config
        .market
        .as_ref()
        .map(|market| live_market(config, market, links))
        .transpose()?;
    if let Some(market) = &market {
        sources.extend(market.source.clone().map(|source| source as Arc<dyn Source>));
        sources.push(market.reports.clone());
    }
    let service = Service::new(settings, sources, config.profiles.clone(), Arc::new(SystemClock))?;
    Ok(Parts {
        service: Arc::new(service),
        corpora,
        market,
    })
}

fn live_market(config: &Config, market: &MarketConfig, links: Links) -> anyhow::Result<LiveMarket> {
    let clock = Arc::new(SystemClock);
    let records = |place: &str, most| {
        let citations = citations(config, market, place, most);
        Records::new(citations, market.keep_citations, links.clone())
    };
    // Apart, because programs read reports all day: their records must not take the place of others.
    let of_reports = records("citations-of-reports", market.max_citations.div_ceil(5));
    let source = match market.feed {
        true => {
            let trading = trading_settings(config, market)?;
            let records = records("citations", market.max_citations);
            let source = MarketSource::new(records, trading, clock.clone()).context("[market]")?;
            Some(Arc::new(source))
        }
        false => None,
    };
    let cache: Arc<dyn ReportCache> = match &config.cache.place {
        CachePlace::Memory => Arc::new(MemoryCache::new(clock.clone())),
        CachePlace::Redis(url) => Arc::new(RedisCache::open(url, clock.clone()).context("cache.url")?),
    };
    Ok(LiveMarket {
        source,
        reports: Arc::new(ReportsSource::new(cache.clone(), of_reports, clock)),
        cache,
        is_shared: config.cache.place != CachePlace::Memory,
        node: config.cache.node.clone(),
        config: market.clone(),
    })
}

/// Where what is cited is kept; without such a place answers are cited by their current page.
fn citations(config: &Config, market: &MarketConfig, place: &str, most: usize) -> Option<Arc<Citations>> {
    if !market.keep_records {
        return None;
    }
    let limits = Limits {
        keep: market.keep_citations,
        most,
    };
    Citations::open(config.data_dir.join(place), limits, Arc::new(SystemClock))
        .inspect_err(|error| tracing::error!(%error, "citations of the market are not kept"))
        .ok()
        .map(Arc::new)
}

/// Orders go where accounts are: the address for public data has none.
fn trading_settings(config: &Config, market: &MarketConfig) -> anyhow::Result<Option<source::Trading>> {
    let (Some(trading), Exchange::At { rest_url, .. }) = (&market.trading, &market.exchange) else {
        return Ok(None);
    };
    let accounts = match rest_url.as_str() {
        "https://data-api.binance.vision" => "https://api.binance.com",
        other => other,
    };
    let settings = trading::Settings {
        trading: true,
        credentials: Some(trading::Credentials {
            api_key: trading.api_key.read().context("market.trading.api_key")?,
            secret: trading.api_secret.read().context("market.trading.api_secret")?,
        }),
        max_order_notional: trading.max_order_notional,
        quote_assets: trading.quote_assets.clone(),
        symbols: (!trading.symbols.is_empty()).then(|| trading.symbols.clone()),
        journal: config.data_dir.join("orders.jsonl"),
    };
    let rest = rest::Settings {
        base_url: accounts.to_owned(),
        ..rest::Settings::default()
    };
    Ok(Some((settings, rest)))
}

/// A market that is served; lets go of the exchange when it is dropped, and of one of our own last.
pub struct Begun {
    source: Option<Arc<MarketSource>>,
    reports: Arc<ReportsSource>,
    engine: Option<Engine>,
    _exchange: Option<simulator::Exchange>,
}

impl Begun {
    /// In good order: others can write the reports at once.
    pub async fn end(mut self) {
        if let Some(engine) = self.engine.take() {
            engine.stop().await;
        }
    }
}

impl Drop for Begun {
    fn drop(&mut self) {
        self.reports.end();
        if let Some(source) = &self.source {
            source.end();
        }
    }
}

impl LiveMarket {
    /// Connects in the background.
    async fn begin(&self, stay: Stay) -> anyhow::Result<Begun> {
        let Some(source) = &self.source else {
            self.reports.begin(None);
            return Ok(Begun {
                source: None,
                reports: self.reports.clone(),
                engine: None,
                _exchange: None,
            });
        };
        let (settings, exchange) = self.exchange().await?;
        let market = source.begin(settings)?;
        self.reports.begin(Some(market.clone()));
        // Whoever only asks a question must not take symbols over from those that serve.
        let writes = stay == Stay::Serving || !self.is_shared;
        let engine = writes.then(|| {
            let id = uuid::Uuid::new_v4().simple().to_string();
            let node = NodeId(format!("{}-{}", self.node, &id[..8]).into());
            Engine::start(market, self.cache.clone(), node, self.reports.writing_trouble())
        });
        Ok(Begun {
            source: Some(source.clone()),
            reports: self.reports.clone(),
            engine,
            _exchange: exchange,
        })
    }

    async fn exchange(&self) -> anyhow::Result<(market::Settings, Option<simulator::Exchange>)> {
        let (rest_url, stream_url, simulated) = match &self.config.exchange {
            Exchange::At { rest_url, stream_url } => (rest_url.clone(), stream_url.clone(), None),
            Exchange::Simulated { seed } => {
                let simulation = simulator::Simulation {
                    seed: *seed,
                    ..simulator::Simulation::default()
                };
                let settings = simulator::Settings {
                    mode: simulator::Mode::Simulated(simulation),
                    ..simulator::Settings::default()
                };
                let exchange = simulator::start(settings).await?;
                (exchange.rest_url(), exchange.stream_url(), Some(exchange))
            }
        };
        let mut feed = tribune_market::feed::Settings::new(stream_url);
        feed.max_books = self.config.max_books;
        feed.idle_after = self.config.idle_after;
        let settings = market::Settings {
            rest: rest::Settings {
                base_url: rest_url,
                window: self.config.coalesce,
                ..rest::Settings::default()
            },
            feed,
            symbols: self.config.symbols.clone(),
            track_top: self.config.track_top,
        };
        Ok((settings, simulated))
    }
}

/// Corpora as what they serve: plain documents, or speeches with tools of their own.
fn sources(config: &Config, corpora: &[Arc<DocumentsSource>], links: &Links) -> Vec<Arc<dyn Source>> {
    // One of several speeches sources has the names that hosts know: the one called so, or the first.
    let speeches = || config.sources.iter().filter(|source| source.reading.is_speeches());
    let known = speeches()
        .find(|source| source.name == "hansard")
        .or_else(|| speeches().next());
    let known = known.map(|source| source.name.as_str());
    let source = |(source, corpus): (&SourceConfig, &Arc<DocumentsSource>)| -> Arc<dyn Source> {
        let Dialect::Speeches(rules) = &source.reading.dialect else {
            return corpus.clone();
        };
        let names = if known == Some(source.name.as_str()) {
            ToolNames::hansard()
        } else {
            ToolNames::of(&source.name)
        };
        let speeches = SpeechesSource::new(corpus.clone(), names, Spellings::of(rules), links.clone());
        Arc::new(speeches.ingesting_from(source.ingest_dir.clone()))
    };
    config.sources.iter().zip(corpora).map(source).collect()
}

pub fn corpora(config: &Config, pool: &Pool) -> anyhow::Result<Vec<Arc<DocumentsSource>>> {
    // One model, however many sources use it.
    let mut models: Vec<(&EmbedderChoice, Option<Arc<dyn Embedder>>)> = Vec::new();
    let mut corpora = Vec::with_capacity(config.sources.len());
    for source in &config.sources {
        let known = models.iter().find(|(choice, _)| **choice == source.embedder);
        let embedder = match known {
            Some((_, embedder)) => embedder.clone(),
            None => {
                let embedder = reachable(embedder(&source.embedder), &source.embedder)?;
                models.push((&source.embedder, embedder.clone()));
                embedder
            }
        };
        let settings = CorpusSettings {
            name: source.name.clone(),
            title: source.title.clone(),
            description: source.description.clone(),
            path: source.path.clone(),
            index_dir: config.data_dir.join("index").join(&source.name),
            limits: source.limits.clone(),
            reading: source.reading.clone(),
            embedder,
        };
        corpora.push(Arc::new(DocumentsSource::new(settings, pool.clone())));
    }
    Ok(corpora)
}

/// An endpoint that does not answer now must not keep everything else from being served.
fn reachable(
    embedder: anyhow::Result<Option<Arc<dyn Embedder>>>,
    choice: &EmbedderChoice,
) -> anyhow::Result<Option<Arc<dyn Embedder>>> {
    match embedder {
        Err(error) if matches!(choice, EmbedderChoice::Api { .. }) => {
            tracing::error!("{error:#}; full text serves alone until the next start");
            Ok(None)
        }
        other => other,
    }
}

/// The model that a configuration names; `None` for full text alone.
pub fn embedder(choice: &EmbedderChoice) -> anyhow::Result<Option<Arc<dyn Embedder>>> {
    Ok(Some(match choice {
        EmbedderChoice::None => return Ok(None),
        EmbedderChoice::MiniLm => tribune_embed::built_in()?,
        EmbedderChoice::Static => tribune_embed::static_table()?,
        EmbedderChoice::Folder(path) => Arc::new(
            tribune_embed::folder::load(path)
                .with_context(|| format!("the model in {} cannot be used", path.display()))?,
        ),
        EmbedderChoice::Api {
            url,
            model,
            api_key,
            dimensions,
        } => {
            let mut settings = ApiSettings::new(url.clone(), model.clone());
            settings.key = api_key.as_ref().map(Secret::read).transpose()?;
            settings.dimensions = *dimensions;
            // On a thread of its own: it blocks, and may be called where that is not allowed. Where the
            // dimensions are known nothing need be asked, and an endpoint that is down comes back by itself.
            let connect = move || match settings.dimensions {
                Some(_) => Api::new(settings),
                None => Api::connect(settings),
            };
            let connected = std::thread::spawn(connect).join();
            let api = connected.map_err(|_| anyhow::anyhow!("connecting to {url} failed unexpectedly"))?;
            Arc::new(api.with_context(|| format!("the embeddings of {url} cannot be used"))?)
        }
    }))
}
