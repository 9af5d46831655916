//! The market: an exchange or a simulated one, its citations, its reports.

use std::sync::Arc;

use anyhow::Context;
use tribune_core::{Links, Source, SystemClock};
use tribune_exchange_sim as simulator;
use tribune_market::citations::{Citations, Limits};
use tribune_market::records::Records;
use tribune_market::report::cache::{MemoryCache, NodeId, RedisCache, ReportCache};
use tribune_market::report::{Engine, ReportsSource};
use tribune_market::{MarketSource, market, rest, source, trading};

use super::Stay;
use crate::config::{CachePlace, Config, Exchange, MarketConfig};

/// A market that has not been connected yet.
pub struct LiveMarket {
    /// `None` where reports of others are served, and nothing else.
    source: Option<Arc<MarketSource>>,
    reports: Arc<ReportsSource>,
    cache: Arc<dyn ReportCache>,
    /// Whether other processes may write reports too.
    is_shared: bool,
    node: String,
    config: MarketConfig,
}

impl LiveMarket {
    pub fn sources(&self) -> impl Iterator<Item = Arc<dyn Source>> {
        let source = self.source.clone().map(|source| source as Arc<dyn Source>);
        source.into_iter().chain([self.reports.clone() as Arc<dyn Source>])
    }
}

pub fn live_market(config: &Config, market: &MarketConfig, links: Links) -> anyhow::Result<LiveMarket> {
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
pub struct BegunMarket {
    source: Option<Arc<MarketSource>>,
    reports: Arc<ReportsSource>,
    engine: Option<Engine>,
    _exchange: Option<simulator::Exchange>,
}

impl BegunMarket {
    /// In good order: others can write the reports at once.
    pub async fn end(mut self) {
        if let Some(engine) = self.engine.take() {
            engine.stop().await;
        }
    }
}

impl Drop for BegunMarket {
    fn drop(&mut self) {
        self.reports.end();
        if let Some(source) = &self.source {
            source.end();
        }
    }
}

impl LiveMarket {
    /// Connects in the background.
    pub async fn begin(&self, stay: Stay) -> anyhow::Result<BegunMarket> {
        let Some(source) = &self.source else {
            self.reports.begin(None);
            return Ok(BegunMarket {
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
        Ok(BegunMarket {
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
