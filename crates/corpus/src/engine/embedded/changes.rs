//! One atomic change of the index.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tantivy::directory::error::LockError;
use tantivy::schema::Term;
use tantivy::{Index, IndexWriter, Searcher, TantivyError};

use super::schema::{ANALYZER, Fields, analyzer, facet_term};
use super::segments::entries_with;
use super::{attempt, entry, is_disk_full};
use crate::engine::{Changes, EngineError, Entry, IndexedDocument, Lookup, Result};
use crate::manifest::Manifest;

/// Tantivy's smallest arena is 15 MB a thread; this is enough for segments of tens of thousands of passages.
const ARENA_BYTES_PER_THREAD: usize = 48 * 1024 * 1024;
/// Below this much text a second indexing thread costs more (a second segment) than it saves.
const PARALLEL_FROM_BYTES: u64 = 16 * 1024 * 1024;

pub(super) struct EmbeddedChanges {
    dir: PathBuf,
    index: Index,
    writer: IndexWriter,
    fields: Fields,
    /// The file name of the last commit's manifest.
    payload: Option<String>,
    manifest: Arc<Manifest>,
    /// The last commit, opened on first use.
    published: std::cell::OnceCell<Searcher>,
}

impl EmbeddedChanges {
    pub(super) fn begin(source: &str, dir: &Path, bytes: u64) -> Result<Self> {
        let index = open_or_create(source, dir)?;
        let writer = writer(&index, bytes)?;
        // Files of a killed or failed run take disk space.
        if let Err(error) = writer.garbage_collect_files().wait() {
            tracing::debug!(source, %error, "could not remove the leftovers of an earlier run");
        }
        let payload = index.load_metas()?.payload;
        let manifest = match payload.as_ref().map(|name| Manifest::load(&dir.join(name))) {
            None => Manifest::default(),
            Some(Ok(manifest)) => manifest,
            Some(Err(error)) => {
                tracing::warn!(source, %error, "the index has lost its manifest; building it again");
                attempt("clearing the index", writer.delete_all_documents())?;
                Manifest::default()
            }
        };
        Ok(Self {
            dir: dir.to_owned(),
            index,
            writer,
            fields: Fields::new(),
            payload,
            manifest: Arc::new(manifest),
            published: std::cell::OnceCell::new(),
        })
    }

    fn published(&self) -> Result<&Searcher> {
        if let Some(searcher) = self.published.get() {
            return Ok(searcher);
        }
        let reader = self.index.reader()?;
        Ok(self.published.get_or_init(|| reader.searcher()))
    }

    /// After a worker has failed, the writer only reports that it was killed; committing returns the reason.
    fn cause(&mut self, error: EngineError) -> EngineError {
        match self.writer.prepare_commit() {
            Err(cause) if is_disk_full(&cause) => EngineError::DiskFull,
            Ok(prepared) => {
                // Nothing of a failed run is committed.
                drop(prepared.abort());
                error
            }
            Err(_) => error,
        }
    }
}

impl Changes for EmbeddedChanges {
    fn manifest(&self) -> Arc<Manifest> {
        self.manifest.clone()
    }

    fn is_first(&self) -> bool {
        self.payload.is_none()
    }

    fn holder(
        &self,
        by: &Lookup<'_>,
        is_wanted: &mut dyn FnMut(&IndexedDocument) -> bool,
    ) -> Result<Option<IndexedDocument>> {
        let term = match by {
            Lookup::Key(key) => Term::from_field_text(self.fields.record, key),
            Lookup::Field(field, value) => facet_term(&self.fields, field, value),
        };
        for segment in self.published()?.segment_readers() {
            for doc in entries_with(segment, &term)? {
                let stored = segment.get_store_reader(1)?.get(doc)?;
                let holder = entry::indexed_document(&self.fields, &stored);
                if is_wanted(&holder) {
                    return Ok(Some(holder));
                }
            }
        }
        Ok(None)
    }

    fn remove(&mut self, file: &str) {
        self.writer.delete_term(Term::from_field_text(self.fields.file, file));
    }

    fn add(&mut self, entry: &Entry<'_>) -> Result<()> {
        let entries = attempt("writing a document's fields", entry::entries(&self.fields, entry))?;
        for entry in entries {
            let added = attempt("adding a document", self.writer.add_document(entry));
            added.map_err(|error| self.cause(error))?;
        }
        Ok(())
    }

    fn commit(mut self: Box<Self>, manifest: &Manifest) -> Result<()> {
        let previous = self.payload.as_deref().and_then(|name| {
            let number = name.strip_prefix("manifest-")?.strip_suffix(".json")?;
            number.parse::<u64>().ok()
        });
        let saved = manifest.save(&self.dir, previous.unwrap_or(0) + 1);
        let name = attempt("writing the manifest", saved)?;
        let mut prepared = attempt("writing the index", self.writer.prepare_commit())?;
        prepared.set_payload(&name);
        attempt("committing the index", prepared.commit())?;
        Manifest::remove_others(&self.dir, &name);
        attempt("merging the index", self.writer.wait_merging_threads())
    }
}

fn open_or_create(source: &str, dir: &Path) -> Result<Index> {
    attempt("creating the index folder", std::fs::create_dir_all(dir))?;
    let open = || -> std::result::Result<Index, TantivyError> {
        let directory = tantivy::directory::MmapDirectory::open(dir)?;
        Index::open_or_create(directory, Fields::new().schema)
    };
    let index = open().or_else(|error| {
        let broken = matches!(
            error,
            TantivyError::DataCorruption(_) | TantivyError::SchemaError(_) | TantivyError::IncompatibleIndex(_)
        );
        if !broken {
            return Err(error);
        }
        // The index is derived from its provider, so rebuilding loses nothing.
        tracing::warn!(source, %error, "the index cannot be read; building it again");
        std::fs::remove_dir_all(dir)?;
        std::fs::create_dir_all(dir)?;
        open()
    });
    let index = attempt("opening the index", index)?;
    index.tokenizers().register(ANALYZER, analyzer());
    Ok(index)
}

fn writer(index: &Index, bytes: u64) -> Result<IndexWriter> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = if bytes < PARALLEL_FROM_BYTES { 1 } else { cores.min(4) };
    match index.writer_with_num_threads(threads, threads * ARENA_BYTES_PER_THREAD) {
        Err(TantivyError::LockFailure(LockError::LockBusy, _)) => Err(EngineError::Busy),
        other => attempt("opening the index for writing", other),
    }
}
