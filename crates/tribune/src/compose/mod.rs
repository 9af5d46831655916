//! The composition root: the one place where a configuration becomes running parts.

mod market;
mod people;

use std::sync::Arc;

use anyhow::Context;
use tokio_util::sync::DropGuard;
use tribune_core::{Links, Source, SystemClock};
use tribune_corpus::speeches::Spellings;
use tribune_corpus::{Dialect, DocumentsSource, Pool, Settings as CorpusSettings, SpeechesSource, ToolNames};
use tribune_embed::Embedder;
use tribune_embed::api::{Api, Settings as ApiSettings};
use tribune_server::{Service, Settings};

use crate::config::{Config, EmbedderChoice, Secret, SourceConfig};
use market::{BegunMarket, LiveMarket, live_market};
use people::People;

pub use people::store;

/// Everything that serves, and the corpora as what they are, for indexing.
pub struct Parts {
    pub service: Arc<Service>,
    pub corpora: Vec<Arc<DocumentsSource>>,
    market: Option<LiveMarket>,
    pub people: Arc<People>,
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
    /// Connects what is to be connected. What is given back must be held while it is served.
    pub async fn begin(&self, stay: Stay) -> anyhow::Result<Begun> {
        let market = match &self.market {
            Some(market) => Some(market.begin(stay).await?),
            None => None,
        };
        let watching = (stay == Stay::Serving).then(|| self.people.watch());
        Ok(Begun {
            market,
            people: self.people.clone(),
            _watching: watching,
        })
    }
}

/// What is connected; lets go of it when it is dropped.
pub struct Begun {
    market: Option<BegunMarket>,
    people: Arc<People>,
    _watching: Option<DropGuard>,
}

impl Begun {
    /// In good order: others can take over at once, and nothing is left half done.
    pub async fn end(self) {
        if let Some(market) = self.market {
            market.end().await;
        }
        self.people.upstreams.stop().await;
        self.people.store.close().await;
    }
}

pub fn compose(config: &Config, settings: Settings) -> anyhow::Result<Parts> {
    let pool = Pool::start()?;
    let corpora = corpora(config, &pool)?;
    let links = Links::new(&settings.public_url);
    let mut sources = sources(config, &corpora, &links);
    let people = Arc::new(People::new(config)?);
    if config.tasks {
        sources.push(people.tasks(links.clone()));
    }
    let market = config
        .market
        .as_ref()
        .map(|market| live_market(config, market, links))
        .transpose()?;
    sources.extend(market.iter().flat_map(LiveMarket::sources));
    let service = Service::new(settings, sources, config.profiles.clone(), Arc::new(SystemClock))?;
    let service = people.join(service, config)?;
    Ok(Parts {
        service: Arc::new(service),
        corpora,
        market,
        people,
    })
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
