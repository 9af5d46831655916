//! A dataset's documents become a corpus, by the same code that serves. Index and vectors are kept:
//! the next run reads nothing again.

use std::collections::HashSet;
use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use tribune_corpus::snapshot::Snapshot;
use tribune_corpus::{Collection, DocumentsSource, Folder, IndexReport, Limits, Pool, Reading, Settings};
use tribune_embed::Embedder;

use super::beir::Dataset;
use super::contender::embedder_name;
use super::progress::embed_with_progress;
use crate::commands::index::{PATIENCE, update_with_progress};
use crate::commands::progress::Progress;
use tribune_corpus::{EmbedderChoice, stable_hash};

/// Makes corpora of datasets.
pub struct Workshop {
    data_dir: PathBuf,
    fresh: bool,
    /// Corpora that were made in this run and need not be made anew again.
    made: HashSet<PathBuf>,
    pool: Pool,
    /// One model, however many datasets it is tried on.
    models: Vec<(EmbedderChoice, Option<Arc<dyn Embedder>>)>,
}

/// A dataset, ready to be searched.
pub struct Prepared {
    pub snapshot: Arc<Snapshot>,
    pub dir: PathBuf,
    pub documents: u64,
    pub passages: u64,
    /// The model's own name.
    pub model: Option<String>,
    pub index_time: Duration,
    pub embed_time: Duration,
    /// Passages embedded now; the others had their vectors already.
    pub embedded: u64,
    pub faults: Vec<String>,
    pub faults_in_all: u64,
}

impl Workshop {
    pub fn new(data_dir: &Path, fresh: bool) -> anyhow::Result<Self> {
        Ok(Self {
            data_dir: data_dir.join("eval"),
            fresh,
            made: HashSet::new(),
            pool: Pool::for_background()?,
            models: Vec::new(),
        })
    }

    pub fn prepare(&mut self, dataset: &Dataset, choice: &EmbedderChoice) -> anyhow::Result<Prepared> {
        let embedder = self.model(choice)?;
        let folder = self.data_dir.join(folder_name(dataset));
        let dir = folder.join(model_folder(choice));
        std::fs::create_dir_all(&folder).with_context(|| format!("{} cannot be made", folder.display()))?;
        // Held until the corpus is open, so that a concurrent run finds it complete.
        let _lock = lock(&folder.join(format!("{}.lock", model_folder(choice))), &dataset.name)?;
        if self.made.insert(dir.clone()) && self.fresh && dir.exists() {
            std::fs::remove_dir_all(&dir).with_context(|| format!("{} cannot be removed", dir.display()))?;
        }
        let source = DocumentsSource::new(
            Settings {
                name: scheme(&dataset.name),
                title: dataset.name.clone(),
                description: None,
                provider: Arc::new(Folder::new(&dataset.corpus, Reading::default(), Limits::default())),
                collection: Collection::default(),
                index_dir: dir.clone(),
                embedder: embedder.clone(),
            },
            self.pool.clone(),
        );
        let indexed = update_with_progress(&source, &Progress::start(), PATIENCE)?;
        source.refresh()?;
        if indexed.documents == 0 {
            let first = indexed
                .faults
                .first()
                .map(|fault| format!(" ({fault})"))
                .unwrap_or_default();
            bail!("{} holds no documents{first}", dataset.corpus.display());
        }
        let embedded = embed_with_progress(&source)?.unwrap_or_default();
        let snapshot = source.published()?;
        let (passages, covered) = snapshot.coverage();
        if embedder.is_some() && covered < passages {
            bail!(
                "only {covered} of {passages} passages of {} got a vector; try again with --fresh",
                dataset.name
            );
        }
        Ok(Prepared {
            snapshot,
            dir,
            documents: indexed.documents,
            passages,
            model: embedder.map(|embedder| embedder.name().to_owned()),
            index_time: indexed.elapsed,
            embed_time: embedded.elapsed,
            embedded: embedded.embedded,
            faults: told(&indexed),
            faults_in_all: indexed.faults_in_all,
        })
    }

    fn model(&mut self, choice: &EmbedderChoice) -> anyhow::Result<Option<Arc<dyn Embedder>>> {
        if let Some((_, model)) = self.models.iter().find(|(known, _)| known == choice) {
            return Ok(model.clone());
        }
        let model = choice.load()?;
        if model.is_none() && *choice != EmbedderChoice::None {
            // Never pass the figures of full text for a model's.
            bail!(
                "this build does not have the model `{}`; full text alone is measured with --embedder none",
                embedder_name(choice)
            );
        }
        self.models.push((choice.clone(), model.clone()));
        Ok(model)
    }
}

fn told(report: &IndexReport) -> Vec<String> {
    report.faults.iter().take(3).map(ToString::to_string).collect()
}

/// Waits for another evaluation that makes the same. A killed one's lock frees itself.
fn lock(path: &Path, dataset: &str) -> anyhow::Result<File> {
    let failed = || format!("{} cannot be locked", path.display());
    let file = File::create(path).with_context(failed)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            eprintln!("tribune: another evaluation is indexing {dataset}; waiting for it");
            file.lock().with_context(failed)?;
        }
        Err(TryLockError::Error(error)) => return Err(error).with_context(failed),
    }
    Ok(file)
}

/// Two datasets of the same name in different places are two.
fn folder_name(dataset: &Dataset) -> String {
    let hash = short_hash(&dataset.corpus.to_string_lossy());
    format!("{}-{hash}", scheme(&dataset.name))
}

/// Each model has a folder of its own: a corpus keeps the vectors of one model, and two are compared.
fn model_folder(choice: &EmbedderChoice) -> String {
    match choice {
        EmbedderChoice::MiniLm => "minilm".to_owned(),
        EmbedderChoice::Static => "static".to_owned(),
        EmbedderChoice::None => "words".to_owned(),
        EmbedderChoice::Folder(path) => {
            let path = path.canonicalize().unwrap_or_else(|_| path.clone());
            format!("folder-{}", short_hash(&path.to_string_lossy()))
        }
        EmbedderChoice::Api { url, model, .. } => format!("api-{}", short_hash(&format!("{url} {model}"))),
    }
}

/// A name that can stand before an id's colon and in a path.
fn scheme(name: &str) -> String {
    let fit = |c: char| {
        if c.is_ascii_alphanumeric() {
            c.to_ascii_lowercase()
        } else {
            '-'
        }
    };
    name.chars().take(40).map(fit).collect()
}

fn short_hash(text: &str) -> String {
    format!("{:08x}", stable_hash(text) >> 32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_fit_for_ids_and_paths() {
        assert_eq!(scheme("Sci:Fact/é v2"), "sci-fact---v2");
        assert_eq!(short_hash("a"), short_hash("a"));
        assert_ne!(short_hash("/x/scifact"), short_hash("/y/scifact"));
    }
}
