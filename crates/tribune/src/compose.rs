//! The composition root: the one place where a configuration becomes running parts.

use std::sync::Arc;

use tribune_core::{Source, SystemClock};
use tribune_corpus::{DocumentsSource, Pool, Settings as CorpusSettings};
use tribune_server::{Service, Settings};

use crate::config::Config;

/// Everything that serves, and the corpora as what they are, for indexing.
pub struct Parts {
    pub service: Arc<Service>,
    pub corpora: Vec<Arc<DocumentsSource>>,
}

pub fn compose(config: &Config, settings: Settings) -> anyhow::Result<Parts> {
    let pool = Pool::start()?;
    let corpora = corpora(config, &pool);
    let sources = corpora.iter().map(|corpus| corpus.clone() as Arc<dyn Source>).collect();
    let service = Service::new(settings, sources, config.profiles.clone(), Arc::new(SystemClock))?;
    Ok(Parts {
        service: Arc::new(service),
        corpora,
    })
}

pub fn corpora(config: &Config, pool: &Pool) -> Vec<Arc<DocumentsSource>> {
    config
        .sources
        .iter()
        .map(|source| {
            let settings = CorpusSettings {
                name: source.name.clone(),
                title: source.title.clone(),
                description: source.description.clone(),
                path: source.path.clone(),
                index_dir: config.data_dir.join("index").join(&source.name),
                limits: source.limits.clone(),
                reading: source.reading.clone(),
            };
            Arc::new(DocumentsSource::new(settings, pool.clone()))
        })
        .collect()
}
