//! The composition root: the one place where a configuration becomes running parts.

use std::sync::Arc;

use tribune_core::{Source, SystemClock};
use tribune_corpus::{DocumentsSource, Pool, Settings as CorpusSettings};
use tribune_embed::Embedder;
use tribune_server::{Service, Settings};

use crate::config::{Config, EmbedderChoice};

/// Everything that serves, and the corpora as what they are, for indexing.
pub struct Parts {
    pub service: Arc<Service>,
    pub corpora: Vec<Arc<DocumentsSource>>,
}

pub fn compose(config: &Config, settings: Settings) -> anyhow::Result<Parts> {
    let pool = Pool::start()?;
    let corpora = corpora(config, &pool)?;
    let sources = corpora.iter().map(|corpus| corpus.clone() as Arc<dyn Source>).collect();
    let service = Service::new(settings, sources, config.profiles.clone(), Arc::new(SystemClock))?;
    Ok(Parts {
        service: Arc::new(service),
        corpora,
    })
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
                let embedder = embedder(&source.embedder)?;
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

/// The model that a configuration names; `None` for full text alone.
pub fn embedder(choice: &EmbedderChoice) -> anyhow::Result<Option<Arc<dyn Embedder>>> {
    Ok(match choice {
        EmbedderChoice::None => None,
        EmbedderChoice::MiniLm => Some(tribune_embed::built_in()?),
        EmbedderChoice::Static | EmbedderChoice::Folder(_) | EmbedderChoice::Api { .. } => None,
    })
}
