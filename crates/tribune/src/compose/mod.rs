//! The composition root: the one place where a configuration becomes running parts.

mod exchange;
mod local;
mod market;
mod people;

use std::sync::Arc;

use anyhow::Context;
use tribune_config::Environment;
use tribune_core::{Links, Source, SystemClock};
use tribune_corpus::{Built, DocumentsSource, Embedders, Environment as CorpusEnvironment, Pool, Upkeep, Workers};
use tribune_limits::shared::RedisCounts;
use tribune_server::audit::{Audit, AuditSettings};
use tribune_server::supervisor::Jitter;
use tribune_server::{Profile, Service, Settings};

use crate::config::Config;
use crate::demo::Demo;
use market::{market_source, reports_source};
use people::People;

pub use local::local_proof;
pub use people::store;

/// Everything that serves, and the corpora for the commands that index.
pub struct Parts {
    pub service: Arc<Service>,
    pub corpora: Vec<Arc<DocumentsSource>>,
    demo: Option<Arc<Demo>>,
    is_server: bool,
    audit: Option<AuditSettings>,
    nodes: Option<RedisCounts>,
    pub people: Arc<People>,
}

/// What the process does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Serves until it is stopped, and shares background work with other servers.
    Server,
    /// Answers one question and ends.
    Command,
}

impl Parts {
    pub fn profile(&self, name: &str) -> anyhow::Result<Arc<Profile>> {
        self.service.profile(name).cloned().with_context(|| {
            let known: Vec<&str> = self.service.profiles().map(|profile| profile.name()).collect();
            format!("there is no profile `{name}`; there are: {}", known.join(", "))
        })
    }

    /// Starts background work and connections; hold the result while serving.
    pub async fn start(&self) -> anyhow::Result<Running> {
        let exchange = match &self.demo {
            Some(demo) => Some(demo.start_exchange().await?),
            None => None,
        };
        #[expect(clippy::disallowed_methods, reason = "the composition root chooses the randomness")]
        let jitter: Jitter = Arc::new(fastrand::f64);
        if let Some(audit) = self.audit.clone().filter(|_| self.is_server) {
            let audit = Audit::start(self.people.store.audit(), audit, self.service.clock.clone());
            drop(self.service.audit.set(audit.context("audit.file")?));
        }
        // A command indexes before it asks, so it needs only what keeps live data coming.
        self.service.start(&jitter, |source| self.is_server || source.facts().live);
        if let (Some(counts), Some(nodes)) = (self.service.settings.shared.clone(), self.nodes.clone()) {
            self.service.supervisor.also("rates", &jitter, move |stop| {
                let (counts, nodes) = (counts.clone(), nodes.clone());
                async move {
                    counts.run(nodes, &SystemClock, &stop).await;
                    Ok(())
                }
            });
        }
        Ok(Running { service: self.service.clone(), people: self.people.clone(), _exchange: exchange })
    }
}

/// Running background work and connections.
pub struct Running {
    service: Arc<Service>,
    people: Arc<People>,
    /// The demo's; ends last.
    _exchange: Option<tribune_exchange_sim::Exchange>,
}

impl Running {
    /// Ends in good order: leases are released, and nothing is left half done.
    pub async fn stop(self) {
        self.service.supervisor.stop().await;
        self.people.upstreams.stop().await;
        if let Some(audit) = self.service.audit.get() {
            audit.stop().await;
        }
        self.people.store.close().await;
    }
}

pub fn compose(config: &Config, mut settings: Settings, mode: Mode) -> anyhow::Result<Parts> {
    if mode == Mode::Server {
        local::make_private(&config.data_dir)?;
        settings.local = local_proof(&config.data_dir, &settings.public_url)?;
    }
    let nodes = if mode == Mode::Server { nodes(config)? } else { None };
    settings.shared = nodes.is_some().then(Arc::default);
    let environment = environment(config, Links::new(&settings.public_url), mode);
    let corpora = Corpora::build(config, environment.clone(), Pool::start()?)?;
    let mut sources: Vec<Arc<dyn Source>> = corpora.built.iter().map(|built| built.source.clone()).collect();
    let people = Arc::new(People::new(config)?);
    if config.tasks {
        sources.push(people.tasks(config, environment.links.clone()));
    }
    if let Some(market) = &config.market {
        let source = market.feed.then(|| market_source(market, &environment)).transpose()?;
        let reports = reports_source(config, market, source.as_ref(), &environment)?;
        sources.extend(source.map(|source| source as Arc<dyn Source>));
        sources.push(Arc::new(reports));
    }
    let service = Service::new(settings, sources, config.profiles.clone(), Arc::new(SystemClock))?;
    Ok(Parts {
        service: Arc::new(people.join(service, config)?),
        corpora: corpora.built.into_iter().filter_map(|built| built.corpus).collect(),
        demo: config.demo.clone(),
        is_server: mode == Mode::Server,
        audit: config.audit.clone(),
        nodes,
        people,
    })
}

/// The way to the nodes that count rates together with this one.
#[expect(clippy::disallowed_methods, reason = "the composition root chooses the randomness")]
fn nodes(config: &Config) -> tribune_core::Result<Option<RedisCounts>> {
    let node = uuid::Uuid::new_v4().simple().to_string();
    Ok(config.cache.redis(&config.dir)?.map(|client| RedisCounts::new(client, node)))
}

fn environment(config: &Config, links: Links, mode: Mode) -> Environment {
    let is_server = mode == Mode::Server;
    Environment {
        clock: Arc::new(SystemClock),
        links,
        config_dir: config.dir.clone(),
        data_dir: config.data_dir.clone(),
        is_server,
        // The data folder of the demo ends with the process.
        keeps_citations: is_server || config.demo.is_none(),
        sources: config.source_names.clone(),
    }
}

/// The sources of `[[sources]]`, and their models.
pub struct Corpora {
    pub built: Vec<Built>,
    pub embedders: Arc<Embedders>,
}

impl Corpora {
    fn build(config: &Config, common: Environment, pool: Pool) -> anyhow::Result<Self> {
        let environment = CorpusEnvironment {
            pool,
            embedders: Arc::new(Embedders::new(config.embedder.clone())),
            upkeep: match (config.server.auto_index, config.server.watch) {
                (false, _) => Upkeep::Publish,
                (true, false) => Upkeep::IndexOnce,
                (true, true) => Upkeep::Follow,
            },
            // The program itself, also after its file was replaced.
            workers: Arc::new(Workers::new("/proc/self/exe", [crate::cli::EXTRACT_WORKER])),
            common,
        };
        let built = config.sources.iter().map(|source| source.build(&environment));
        Ok(Self { built: built.collect::<Result<_, _>>()?, embedders: environment.embedders })
    }

    /// For commands that index and serve nothing.
    pub fn for_indexing(config: &Config) -> anyhow::Result<Self> {
        let settings = config.settings(config.listen, false);
        let links = Links::new(&settings.public_url);
        Self::build(config, environment(config, links, Mode::Command), Pool::for_background()?)
    }
}
