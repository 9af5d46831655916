//! A dataset's documents become a corpus, by the same code that serves. Index and vectors are kept for the next run.

use std::collections::HashSet;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, bail};
use tribune_corpus::snapshot::Snapshot;
use tribune_corpus::{
    Collection, DocumentsSource, EmbedReport, EmbedderChoice, Folder, IndexReport, Limits, Pool, Reading, Settings,
    stable_hash,
};

use super::beir::Dataset;
use crate::commands::index::{PATIENCE, embed_with_progress, update_with_progress};
use crate::commands::progress::Progress;

/// Makes corpora of datasets.
pub struct DatasetIndexes {
    data_dir: PathBuf,
    fresh: bool,
    /// Corpora that this run has made: `fresh` removes each of them once.
    made: HashSet<PathBuf>,
    pool: Pool,
}

/// A dataset, ready to be searched.
pub struct Prepared {
    pub snapshot: Snapshot,
    pub dir: PathBuf,
    pub indexed: IndexReport,
    /// `None` without a model.
    pub embedded: Option<EmbedReport>,
}

impl DatasetIndexes {
    pub fn new(data_dir: &Path, fresh: bool) -> anyhow::Result<Self> {
        Ok(Self { data_dir: data_dir.join("eval"), fresh, made: HashSet::new(), pool: Pool::for_background()? })
    }

    pub fn prepare(&mut self, dataset: &Dataset, choice: &EmbedderChoice) -> anyhow::Result<Prepared> {
        let embedder = choice.load()?;
        // Two datasets of the same name in different places are two.
        let folder = distinct(&dataset.name, &dataset.corpus.to_string_lossy());
        let folder = self.data_dir.join(folder);
        let dir = folder.join(model_folder(choice));
        std::fs::create_dir_all(&folder).with_context(|| format!("cannot create the folder {}", folder.display()))?;
        // Held until the corpus is open, so that a concurrent run finds it complete.
        let _lock = lock(&dir.with_extension("lock"), &dataset.name)?;
        if self.made.insert(dir.clone()) && self.fresh && dir.exists() {
            std::fs::remove_dir_all(&dir).with_context(|| format!("cannot remove the old index {}", dir.display()))?;
        }
        let source = DocumentsSource::new(
            Settings {
                name: scheme(&dataset.name),
                title: dataset.name.clone(),
                description: None,
                readers: tribune_core::Readers::default(),
                provider: Arc::new(Folder::new(&dataset.corpus, Reading::default(), Limits::default())),
                collection: Collection::default(),
                index_dir: dir.clone(),
                embedder,
            },
            self.pool.clone(),
        );
        let progress = Progress::start();
        let indexed = update_with_progress(&source, &progress, PATIENCE)?;
        source.refresh()?;
        if indexed.documents == 0 {
            let first = indexed.faults.first().map(|fault| format!(" ({fault})"));
            let first = first.unwrap_or_default();
            bail!("{} has no documents{first}", dataset.corpus.display());
        }
        let embedded = embed_with_progress(&source, &progress)?;
        let snapshot = source.seen_in_full()?;
        let (passages, covered) = snapshot.coverage();
        if embedded.is_some() && covered < passages {
            bail!("only {covered} of {passages} passages of {} have vectors; try again with --fresh", dataset.name);
        }
        Ok(Prepared { snapshot, dir, indexed, embedded })
    }
}

/// Waits for another evaluation that makes the same. A killed one's lock frees itself.
fn lock(path: &Path, dataset: &str) -> anyhow::Result<File> {
    let file = File::create(path).with_context(|| format!("cannot create {}", path.display()))?;
    if file.try_lock().is_err() {
        eprintln!("tribune: another evaluation is indexing {dataset}; waiting for it");
        file.lock().with_context(|| format!("cannot lock {}", path.display()))?;
    }
    Ok(file)
}

/// Each model has a folder of its own: a corpus keeps the vectors of one model, and two are compared.
fn model_folder(choice: &EmbedderChoice) -> String {
    match choice {
        EmbedderChoice::MiniLm => "minilm".to_owned(),
        EmbedderChoice::Static => "static".to_owned(),
        EmbedderChoice::None => "words".to_owned(),
        EmbedderChoice::Folder(path) => distinct("folder", &path.to_string_lossy()),
        EmbedderChoice::Api { url, model, .. } => distinct("api", &format!("{url} {model}")),
    }
}

/// A name for a path that differs where `text` does.
fn distinct(name: &str, text: &str) -> String {
    format!("{}-{:08x}", scheme(name), stable_hash(text) >> 32)
}

/// A name that can stand before an id's colon and in a path.
fn scheme(name: &str) -> String {
    let name = name.chars().take(40).collect::<String>().to_ascii_lowercase();
    name.replace(|c: char| !c.is_ascii_alphanumeric(), "-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_fit_for_ids_and_paths() {
        assert_eq!(scheme("Sci:Fact/é v2"), "sci-fact---v2");
        assert_eq!(distinct("a", "/x/a"), distinct("a", "/x/a"));
        assert_ne!(distinct("a", "/x/a"), distinct("a", "/y/a"));
    }
}
