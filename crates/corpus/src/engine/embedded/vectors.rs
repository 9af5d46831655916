//! Vectors on disk, keyed by the hash of their text, so that unchanged text is never embedded twice, even in another
//! file.
//!
//! One store per model. Rows are appended, then a small commit file with their number is replaced: a killed run loses
//! only its last batch. The commit has the model's fingerprint; a store of another model is never opened.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use memmap2::Mmap;
use serde::{Deserialize, Serialize};
use tribune_embed::Embedder;
use tribune_embed::scan::Rows;

use super::attempt;
use crate::engine::Result;

/// The content hash and the scale of one row.
const KEY_BYTES: usize = 12;
/// Below this many stale rows, the store is not rebuilt.
const MIN_STALE: usize = 10_000;
const TOO_SHORT: &str = "the vector file is shorter than its commit says";
const KEEP_OTHER_MODELS: Duration = Duration::from_secs(30 * 24 * 3600);

/// The commit file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Commit {
    model: String,
    fingerprint: String,
    dimensions: usize,
    /// Incremented when the store is rebuilt without stale rows.
    generation: u64,
    rows: usize,
}

/// The folder of one source's vectors by one model.
#[derive(Debug, Clone)]
pub(super) struct VectorStore {
    dir: PathBuf,
}

impl VectorStore {
    pub(super) fn new(index_dir: &Path, embedder: &dyn Embedder) -> Self {
        Self { dir: index_dir.join(format!("vectors-{}", embedder.fingerprint())) }
    }

    fn commit_file(&self) -> PathBuf {
        self.dir.join("commit.json")
    }

    /// Replaced at the end of a run, so that servers do not reload after every batch.
    pub(super) fn ready_file(&self) -> PathBuf {
        self.dir.join("ready")
    }

    fn file(&self, generation: u64, ending: &str) -> PathBuf {
        self.dir.join(format!("{generation}.{ending}"))
    }

    /// The last commit, if it is of this model.
    fn commit(&self, embedder: &dyn Embedder) -> io::Result<Option<Commit>> {
        let bytes = match fs::read(self.commit_file()) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let commit: Commit = serde_json::from_slice(&bytes).map_err(io::Error::other)?;
        let same = commit.fingerprint == embedder.fingerprint() && commit.dimensions == embedder.dimensions();
        if !same {
            return Err(io::Error::other(format!(
                "the vectors in {} were made by {} and cannot be mixed with those of {}; remove the folder to have them made again",
                self.dir.display(),
                commit.model,
                embedder.name()
            )));
        }
        Ok(Some(commit))
    }

    pub(super) fn open(&self, embedder: &dyn Embedder) -> io::Result<Option<Vectors>> {
        match self.commit(embedder)? {
            Some(commit) if commit.rows > 0 => self.vectors(commit).map(Some),
            _ => Ok(None),
        }
    }

    fn vectors(&self, commit: Commit) -> io::Result<Vectors> {
        let rows = File::open(self.file(commit.generation, "rows"))?;
        if rows.metadata()?.len() < (commit.rows * commit.dimensions) as u64 {
            return Err(io::Error::other(TOO_SHORT));
        }
        Ok(Vectors { keys: self.keys(&commit)?, rows: map(&rows)?, dimensions: commit.dimensions })
    }

    fn keys(&self, commit: &Commit) -> io::Result<Vec<Key>> {
        let mut keys = vec![0; commit.rows * KEY_BYTES];
        File::open(self.file(commit.generation, "keys"))?.read_exact(&mut keys)?;
        Ok(keys.as_chunks().0.iter().map(Key::unpacked).collect())
    }

    /// Opens the store for writing. One writer at a time, across processes; the system releases the lock of a killed
    /// one. `None` if another writer has it.
    pub(super) fn writer(&self, embedder: &dyn Embedder) -> io::Result<Option<VectorWriter>> {
        fs::create_dir_all(&self.dir)?;
        let lock = OpenOptions::new().create(true).truncate(false).write(true).open(self.dir.join("lock"))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(fs::TryLockError::WouldBlock) => return Ok(None),
            Err(fs::TryLockError::Error(error)) => return Err(error),
        }
        let fresh = |generation| Commit {
            model: embedder.name().to_owned(),
            fingerprint: embedder.fingerprint().to_owned(),
            dimensions: embedder.dimensions(),
            generation,
            rows: 0,
        };
        let commit = self.commit(embedder).map(|commit| commit.unwrap_or_else(|| fresh(1)));
        let rows = commit.and_then(|commit| StoredRows::open(self, commit)).or_else(|error| {
            tracing::warn!(%error, "the vectors cannot be read; building them again");
            StoredRows::open(self, fresh(self.unused_generation()))
        })?;
        let mut writer = VectorWriter { store: self.clone(), rows, _lock: lock };
        writer.remove_other_generations();
        Ok(Some(writer))
    }

    /// A rebuilt store has new files: servers may have mapped the old ones, and would crash if those were truncated.
    fn unused_generation(&self) -> u64 {
        let entries = fs::read_dir(&self.dir).into_iter().flatten().flatten();
        let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.split_once('.')?.0.parse::<u64>().ok());
        1 + numbers.max().unwrap_or(0)
    }

    /// Removes stores of other models that have not been used for long. A recent one may still be in use, and people
    /// who compare models switch back.
    fn remove_others(&self) {
        let Some(parent) = self.dir.parent() else { return };
        for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
            let path = entry.path();
            let name = entry.file_name();
            let last_used = fs::metadata(path.join("commit.json")).and_then(|file| file.modified());
            let is_old = last_used.is_ok_and(|at| at.elapsed().is_ok_and(|age| age > KEEP_OTHER_MODELS));
            if name.to_string_lossy().starts_with("vectors-")
                && path != self.dir
                && is_old
                && let Err(error) = fs::remove_dir_all(&path)
            {
                tracing::debug!(%error, "could not remove the vectors of another model");
            }
        }
    }
}

/// The metadata of a row.
#[derive(Debug, Clone, Copy)]
pub(super) struct Key {
    pub(super) content: u64,
    pub(super) scale: f32,
}

impl Key {
    fn packed(self) -> [u8; KEY_BYTES] {
        let mut bytes = [0; KEY_BYTES];
        bytes[..8].copy_from_slice(&self.content.to_le_bytes());
        bytes[8..].copy_from_slice(&self.scale.to_le_bytes());
        bytes
    }

    fn unpacked(&[a, b, c, d, e, f, g, h, scale @ ..]: &[u8; KEY_BYTES]) -> Self {
        Self { content: u64::from_le_bytes([a, b, c, d, e, f, g, h]), scale: f32::from_le_bytes(scale) }
    }
}

/// The rows of a commit, for reading.
pub(super) struct Vectors {
    pub(super) keys: Vec<Key>,
    rows: Mmap,
    pub(super) dimensions: usize,
}

impl Vectors {
    pub(super) fn len(&self) -> usize {
        self.keys.len()
    }

    /// The bytes of rows `from..to`.
    pub(super) fn rows(&self, from: usize, to: usize) -> Rows<'_> {
        let dimensions = self.dimensions;
        Rows { records: &self.rows[from * dimensions..to * dimensions], stride: dimensions, offset: 0, dimensions }
    }

    /// The vector of a row.
    pub(super) fn vector(&self, row: usize) -> impl Iterator<Item = f32> {
        let scale = self.keys[row].scale;
        let bytes = &self.rows[row * self.dimensions..(row + 1) * self.dimensions];
        bytes.iter().map(move |byte| scale * f32::from(byte.cast_signed()))
    }
}

/// Adds rows; holds the store's lock.
pub(super) struct VectorWriter {
    store: VectorStore,
    rows: StoredRows,
    _lock: File,
}

/// The files of one generation, open for appending.
struct StoredRows {
    commit: Commit,
    keys: File,
    rows: File,
    /// The row of each content hash.
    known: HashMap<u64, u32>,
}

impl StoredRows {
    fn open(store: &VectorStore, commit: Commit) -> io::Result<Self> {
        let append = |ending: &str, bytes: usize| -> io::Result<File> {
            let mut file = OpenOptions::new()
                .create(true)
                .truncate(false)
                .write(true)
                .open(store.file(commit.generation, ending))?;
            if file.metadata()?.len() < bytes as u64 {
                return Err(io::Error::other(TOO_SHORT));
            }
            // Rows after the last commit may be incomplete.
            file.set_len(bytes as u64)?;
            file.seek(SeekFrom::End(0))?;
            Ok(file)
        };
        let keys = append("keys", commit.rows * KEY_BYTES)?;
        let rows = append("rows", commit.rows * commit.dimensions)?;
        let known = store.keys(&commit)?.iter().zip(0u32..).map(|(key, row)| (key.content, row)).collect();
        Ok(Self { commit, keys, rows, known })
    }
}

impl VectorWriter {
    /// Appends rows and commits them.
    fn append(&mut self, batch: &[(u64, Vec<f32>)]) -> io::Result<()> {
        let StoredRows { commit, keys, rows, known } = &mut self.rows;
        let mut new_keys = Vec::with_capacity(batch.len() * KEY_BYTES);
        let mut new_rows = Vec::with_capacity(batch.len() * commit.dimensions);
        let mut next = u32::try_from(commit.rows).map_err(io::Error::other)?;
        for (content, vector) in batch {
            if vector.len() != commit.dimensions {
                return Err(io::Error::other("a vector has the wrong number of dimensions"));
            }
            if known.contains_key(content) {
                continue;
            }
            known.insert(*content, next);
            let (row, scale) = tribune_embed::scan::quantise(vector);
            let key = Key { content: *content, scale };
            new_keys.extend(key.packed());
            new_rows.extend(row.iter().map(|value| value.cast_unsigned()));
            next += 1;
        }
        rows.write_all(&new_rows)?;
        keys.write_all(&new_keys)?;
        rows.sync_data()?;
        keys.sync_data()?;
        commit.rows = next as usize;
        self.commit_rows()
    }

    fn commit_rows(&self) -> io::Result<()> {
        let commit = serde_json::to_vec(&self.rows.commit).map_err(io::Error::other)?;
        replace(&self.store.commit_file(), &commit)
    }

    /// Publishes new rows to servers, including those of an earlier run that was killed before it published.
    fn announce(&self) -> io::Result<()> {
        let state = format!("{} {}", self.rows.commit.generation, self.rows.commit.rows);
        if fs::read_to_string(self.store.ready_file()).is_ok_and(|announced| announced == state) {
            return Ok(());
        }
        replace(&self.store.ready_file(), state.as_bytes())
    }

    /// Rebuilds the store without stale rows, once most rows are stale.
    fn drop_stale(&mut self, is_needed: impl Fn(u64) -> bool) -> io::Result<()> {
        let known = self.rows.known.iter().filter(|(content, _)| is_needed(**content));
        let mut needed: Vec<usize> = known.map(|(_, row)| *row as usize).collect();
        let stale = self.rows.commit.rows - needed.len();
        if stale < MIN_STALE || stale < needed.len() {
            return Ok(());
        }
        needed.sort_unstable();
        let old = self.store.vectors(self.rows.commit.clone())?;
        let commit =
            Commit { generation: self.rows.commit.generation + 1, rows: needed.len(), ..self.rows.commit.clone() };
        let create = |ending: &str| File::create(self.store.file(commit.generation, ending)).map(io::BufWriter::new);
        let (mut keys, mut rows) = (create("keys")?, create("rows")?);
        for row in needed {
            keys.write_all(&old.keys[row].packed())?;
            rows.write_all(old.rows(row, row + 1).records)?;
        }
        for written in [keys, rows] {
            written.into_inner().map_err(io::Error::other)?.sync_all()?;
        }
        self.rows = StoredRows::open(&self.store, commit)?;
        self.commit_rows()?;
        self.announce()?;
        self.remove_other_generations();
        Ok(())
    }

    fn remove_other_generations(&mut self) {
        let current = format!("{}.", self.rows.commit.generation);
        for entry in fs::read_dir(&self.store.dir).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let is_data = name.ends_with(".keys") || name.ends_with(".rows");
            if is_data && !name.starts_with(&current) {
                drop(fs::remove_file(entry.path()));
            }
        }
    }
}

/// Replaces a file by a rename.
fn replace(path: &Path, contents: &[u8]) -> io::Result<()> {
    let temporary = path.with_added_extension("new");
    let mut file = File::create(&temporary)?;
    file.write_all(contents)?;
    file.sync_all()?;
    fs::rename(temporary, path)
}

impl crate::engine::VectorWriter for VectorWriter {
    fn holds(&self, content: u64) -> bool {
        self.rows.known.contains_key(&content)
    }

    fn add(&mut self, vectors: &[(u64, Vec<f32>)]) -> Result<()> {
        attempt("writing vectors", self.append(vectors))
    }

    fn publish(&mut self) -> Result<()> {
        attempt("publishing vectors", self.announce())
    }

    fn retain(&mut self, is_needed: &dyn Fn(u64) -> bool) -> Result<()> {
        attempt("dropping stale vectors", self.drop_stale(is_needed))?;
        self.store.remove_others();
        Ok(())
    }
}

#[allow(unsafe_code)]
fn map(file: &File) -> io::Result<Mmap> {
    // SAFETY: rows below the committed count are never changed: the only writer, which holds the lock, appends after
    // them, and a rebuilt store is a new file.
    unsafe { Mmap::map(file) }
}
