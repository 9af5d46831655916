//! Configuration of sources with a corpus, and how they are built.
//!
//! - [`embedder`]: `[embedder]`, the models for vector search;
//! - here: `[[sources]]` with `kind = "documents"`, and the parts that other kinds share.

pub mod embedder;

use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Deserialize;
use tribune_config::{check_range, default_title};
use tribune_core::{Readers, Result, Source};
use tribune_extract::Workers;

use crate::collection::{Collection, Duplicates, Settings};
use crate::format::{FieldMap, Formats, Reading};
use crate::pool::Pool;
use crate::provider::{Choice, Folder, Limits, Provider};
use crate::source::{DocumentsSource, Upkeep};
use embedder::Embedders;

/// The environment of a source with a corpus: the common one, search threads and models.
#[derive(Clone)]
pub struct Environment {
    pub common: tribune_config::Environment,
    pub pool: Pool,
    pub embedders: Arc<Embedders>,
    /// How the background task keeps the index up to date.
    pub upkeep: Upkeep,
    /// Child processes that read PDF, office documents and others.
    pub workers: Arc<Workers>,
}

impl Deref for Environment {
    type Target = tribune_config::Environment;

    fn deref(&self) -> &Self::Target {
        &self.common
    }
}

/// A source, and its corpus if it has one, for the commands that index.
pub struct Built {
    pub source: Arc<dyn Source>,
    pub corpus: Option<Arc<DocumentsSource>>,
}

impl From<DocumentsSource> for Built {
    fn from(corpus: DocumentsSource) -> Self {
        let corpus = Arc::new(corpus);
        Self { source: corpus.clone(), corpus: Some(corpus) }
    }
}

/// `[[sources]]` with `kind = "documents"`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    pub name: String,
    pub path: PathBuf,
    pub title: Option<String>,
    pub description: Option<String>,
    pub embedder: Option<String>,
    #[serde(default)]
    pub readers: Readers,
    #[serde(default = "default_max_document_mb")]
    pub max_document_mb: u64,
    /// Patterns of files to read; empty for all.
    #[serde(default)]
    pub include: Vec<String>,
    /// Patterns of files and folders to leave out.
    #[serde(default)]
    pub exclude: Vec<String>,
    #[serde(default)]
    pub duplicates: Duplicates,
    #[serde(default)]
    pub fields: FieldMap,
}

pub const fn default_max_document_mb() -> u64 {
    16
}

/// Builds the source of `kind = "documents"`.
pub fn build(config: &Config, environment: &Environment) -> Result<Built> {
    let formats = Formats::default().with_files(&environment.workers);
    let reading = Reading { fields: config.fields.clone(), formats, ..Reading::default() };
    let collection = Collection { duplicates: config.duplicates, ..Collection::default() };
    let choice = Choice::new(config.include.clone(), config.exclude.clone())?;
    let folder = environment.folder(&config.name, &config.path, config.max_document_mb, reading)?.choosing(choice);
    let identity = Identity {
        name: &config.name,
        title: config.title.as_deref(),
        description: config.description.as_deref(),
        embedder: config.embedder.as_deref(),
        readers: &config.readers,
    };
    environment.corpus(identity, Arc::new(folder), collection).map(Built::from)
}

/// The settings that every source with a corpus has.
pub struct Identity<'a> {
    pub name: &'a str,
    pub title: Option<&'a str>,
    pub description: Option<&'a str>,
    pub embedder: Option<&'a str>,
    pub readers: &'a Readers,
}

impl Environment {
    fn index_dir(&self, name: &str) -> PathBuf {
        self.data_dir.join("index").join(name)
    }

    /// The folder that a source reads; `path` may be relative to the configuration.
    pub fn folder(&self, name: &str, path: &Path, max_document_mb: u64, reading: Reading) -> Result<Folder> {
        check_range(&format!("source `{name}`: max_document_mb"), max_document_mb, 1, 1024)?;
        let limits = Limits { max_document_bytes: max_document_mb * 1024 * 1024 };
        Ok(Folder::new(self.config_dir.join(path), reading, limits).ignoring(self.index_dir(name)))
    }

    /// The corpus of a source, from any provider.
    pub fn corpus(
        &self,
        identity: Identity<'_>,
        provider: Arc<dyn Provider>,
        collection: Collection,
    ) -> Result<DocumentsSource> {
        let name = identity.name;
        let settings = Settings {
            name: name.to_owned(),
            title: identity.title.map_or_else(|| default_title(name), str::to_owned),
            description: identity.description.map(str::to_owned),
            readers: identity.readers.clone(),
            index_dir: self.index_dir(name),
            provider,
            collection,
            embedder: self.embedders.get(name, identity.embedder)?,
        };
        Ok(DocumentsSource::new(settings, self.pool.clone()).with_upkeep(self.upkeep))
    }
}
