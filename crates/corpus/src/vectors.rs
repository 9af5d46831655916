//! Vectors on disk: kept by the hash of the text they stand for, so that what did not change is
//! never embedded twice, whatever file it moves to.
//!
//! One model, one store. Rows are appended, then a small commit file is replaced that says how many
//! of them count: a killed run costs the rows of its last batch and nothing else. The commit carries
//! the model's fingerprint, and a store made by another model is never opened.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use memmap2::Mmap;
use serde::{Deserialize, Serialize};
use tribune_embed::Embedder;
use tribune_embed::scan::Rows;

/// Content and scale of one row.
const KEY_BYTES: usize = 12;
/// Below this many stale rows, making the store again is not worth it.
const MIN_STALE: usize = 10_000;
const KEEP_OTHER_MODELS: Duration = Duration::from_secs(30 * 24 * 3600);

/// What the rows on disk are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Commit {
    pub(crate) model: String,
    pub(crate) fingerprint: String,
    pub(crate) dimensions: usize,
    /// Raised when the store is made again without its stale rows.
    generation: u64,
    pub(crate) rows: usize,
}

/// Where the vectors of one source by one model are.
#[derive(Debug, Clone)]
pub(crate) struct VectorStore {
    dir: PathBuf,
}

impl VectorStore {
    pub(crate) fn new(index_dir: &Path, embedder: &dyn Embedder) -> Self {
        Self {
            dir: index_dir.join(format!("vectors-{}", embedder.fingerprint())),
        }
    }

    fn commit_file(&self) -> PathBuf {
        self.dir.join("commit.json")
    }

    /// Replaced whenever a run ends: servers need not look at every batch of one that goes on for hours.
    pub(crate) fn ready_file(&self) -> PathBuf {
        self.dir.join("ready")
    }

    fn file(&self, generation: u64, ending: &str) -> PathBuf {
        self.dir.join(format!("{generation}.{ending}"))
    }

    /// The last commit, if there is one and it is this model's.
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

    /// All rows of the last commit.
    pub(crate) fn open(&self, embedder: &dyn Embedder) -> io::Result<Option<Vectors>> {
        let Some(commit) = self.commit(embedder)? else {
            return Ok(None);
        };
        if commit.rows == 0 {
            return Ok(None);
        }
        let keys = read_exactly(&self.file(commit.generation, "keys"), commit.rows * KEY_BYTES)?;
        let rows = File::open(self.file(commit.generation, "rows"))?;
        let bytes = commit.rows * commit.dimensions;
        if rows.metadata()?.len() < bytes as u64 {
            return Err(io::Error::other("the vector file is shorter than its commit says"));
        }
        Ok(Some(Vectors {
            keys: keys.chunks_exact(KEY_BYTES).map(Key::unpacked).collect(),
            rows: map(&rows)?,
            commit,
        }))
    }

    /// Opens the store to add rows. One writer at a time, across processes; a killed one's lock frees
    /// itself. `None` if another is at it.
    pub(crate) fn writer(&self, embedder: &dyn Embedder) -> io::Result<Option<VectorWriter>> {
        fs::create_dir_all(&self.dir)?;
        let lock = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(self.dir.join("lock"))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(fs::TryLockError::WouldBlock) => return Ok(None),
            Err(fs::TryLockError::Error(error)) => return Err(error),
        }
        let commit = match self.commit(embedder) {
            Ok(Some(commit)) => commit,
            Ok(None) => self.fresh(embedder, 1),
            Err(error) => {
                tracing::warn!(%error, "the vectors cannot be read; making them again");
                self.fresh(embedder, self.unused_generation())
            }
        };
        let mut writer = VectorWriter::open(self.clone(), commit, lock).or_else(|(error, lock)| {
            tracing::warn!(%error, "the vectors cannot be read; making them again");
            let fresh = self.fresh(embedder, self.unused_generation());
            VectorWriter::open(self.clone(), fresh, lock).map_err(|(error, _)| error)
        })?;
        writer.remove_other_generations();
        Ok(Some(writer))
    }

    /// A store that is made again is made of new files: the old ones may be mapped by a server, which
    /// would die if they became shorter.
    fn unused_generation(&self) -> u64 {
        let entries = fs::read_dir(&self.dir).into_iter().flatten().flatten();
        let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.split_once('.')?.0.parse::<u64>().ok());
        1 + numbers.max().unwrap_or(0)
    }

    fn fresh(&self, embedder: &dyn Embedder, generation: u64) -> Commit {
        Commit {
            model: embedder.name().to_owned(),
            fingerprint: embedder.fingerprint().to_owned(),
            dimensions: embedder.dimensions(),
            generation,
            rows: 0,
        }
    }

    /// Removes what other models left behind for this source and nobody has added to for long: a
    /// server may still use it, and whoever tries models goes back and forth.
    pub(crate) fn remove_others(&self) {
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

/// What is known of a row without looking at its numbers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Key {
    pub(crate) content: u64,
    pub(crate) scale: f32,
}

impl Key {
    fn packed(self) -> [u8; KEY_BYTES] {
        let mut bytes = [0; KEY_BYTES];
        bytes[..8].copy_from_slice(&self.content.to_le_bytes());
        bytes[8..].copy_from_slice(&self.scale.to_le_bytes());
        bytes
    }

    fn unpacked(bytes: &[u8]) -> Self {
        let four = |at: usize| -> [u8; 4] { [bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]] };
        Self {
            content: u64::from(u32::from_le_bytes(four(0))) | (u64::from(u32::from_le_bytes(four(4))) << 32),
            scale: f32::from_le_bytes(four(8)),
        }
    }
}

/// The rows of one commit, for reading.
pub(crate) struct Vectors {
    pub(crate) keys: Vec<Key>,
    rows: Mmap,
    pub(crate) commit: Commit,
}

impl Vectors {
    pub(crate) fn len(&self) -> usize {
        self.keys.len()
    }

    pub(crate) fn dimensions(&self) -> usize {
        self.commit.dimensions
    }

    /// The numbers of rows `from..to`, one row after another.
    pub(crate) fn rows(&self, from: usize, to: usize) -> Rows<'_> {
        let dimensions = self.dimensions();
        Rows {
            records: &self.rows[from * dimensions..to * dimensions],
            stride: dimensions,
            offset: 0,
            dimensions,
        }
    }

    /// One row's vector.
    pub(crate) fn vector(&self, row: usize) -> impl Iterator<Item = f32> {
        let scale = self.keys[row].scale;
        let bytes = &self.rows[row * self.dimensions()..(row + 1) * self.dimensions()];
        bytes.iter().map(move |byte| scale * f32::from(byte.cast_signed()))
    }
}

/// Adds rows; holds the store's lock.
pub(crate) struct VectorWriter {
    store: VectorStore,
    commit: Commit,
    keys: File,
    rows: File,
    known: HashMap<u64, u32>,
    _lock: File,
}

impl VectorWriter {
    fn open(store: VectorStore, commit: Commit, lock: File) -> Result<Self, (io::Error, File)> {
        let files = || -> io::Result<(File, File, HashMap<u64, u32>)> {
            let append = |ending: &str, bytes: usize| -> io::Result<File> {
                let path = store.file(commit.generation, ending);
                let mut file = OpenOptions::new()
                    .create(true)
                    .truncate(false)
                    .read(true)
                    .write(true)
                    .open(path)?;
                if file.metadata()?.len() < bytes as u64 {
                    return Err(io::Error::other("the vector file is shorter than its commit says"));
                }
                // What a killed run added after its last commit is not known to be whole.
                file.set_len(bytes as u64)?;
                file.seek(SeekFrom::End(0))?;
                Ok(file)
            };
            let keys = append("keys", commit.rows * KEY_BYTES)?;
            let rows = append("rows", commit.rows * commit.dimensions)?;
            let packed = read_exactly(&store.file(commit.generation, "keys"), commit.rows * KEY_BYTES)?;
            let known = packed.chunks_exact(KEY_BYTES).zip(0u32..);
            let known = known.map(|(bytes, row)| (Key::unpacked(bytes).content, row)).collect();
            Ok((keys, rows, known))
        };
        match files() {
            Ok((keys, rows, known)) => Ok(Self {
                store,
                commit,
                keys,
                rows,
                known,
                _lock: lock,
            }),
            Err(error) => Err((error, lock)),
        }
    }

    pub(crate) fn holds(&self, content: u64) -> bool {
        self.known.contains_key(&content)
    }

    /// Adds rows and makes them count.
    pub(crate) fn add(&mut self, batch: &[(u64, Vec<f32>)]) -> io::Result<()> {
        let mut keys = Vec::with_capacity(batch.len() * KEY_BYTES);
        let mut rows = Vec::with_capacity(batch.len() * self.commit.dimensions);
        let mut next = u32::try_from(self.commit.rows).map_err(io::Error::other)?;
        for (content, vector) in batch {
            if vector.len() != self.commit.dimensions {
                return Err(io::Error::other("a vector has the wrong number of dimensions"));
            }
            if self.known.contains_key(content) {
                continue;
            }
            self.known.insert(*content, next);
            let (row, scale) = tribune_embed::scan::quantise(vector);
            let key = Key {
                content: *content,
                scale,
            };
            keys.extend(key.packed());
            rows.extend(row.iter().map(|value| value.cast_unsigned()));
            next += 1;
        }
        self.rows.write_all(&rows)?;
        self.keys.write_all(&keys)?;
        self.rows.sync_data()?;
        self.keys.sync_data()?;
        self.commit.rows = next as usize;
        self.publish()
    }

    fn publish(&self) -> io::Result<()> {
        let temporary = self.store.dir.join("commit.json.new");
        let mut file = File::create(&temporary)?;
        file.write_all(&serde_json::to_vec(&self.commit).map_err(io::Error::other)?)?;
        file.sync_all()?;
        fs::rename(temporary, self.store.commit_file())
    }

    /// Tells servers that there is something new to be read, if there is: an earlier run may have been
    /// killed before it could.
    pub(crate) fn announce(&self) -> io::Result<()> {
        let state = format!("{} {}", self.commit.generation, self.commit.rows);
        if fs::read_to_string(self.store.ready_file()).is_ok_and(|announced| announced == state) {
            return Ok(());
        }
        let temporary = self.store.dir.join("ready.new");
        fs::write(&temporary, state)?;
        fs::rename(temporary, self.store.ready_file())
    }

    /// Makes the store again without the rows that no passage needs any more, once they are the most.
    pub(crate) fn drop_stale(&mut self, is_needed: impl Fn(u64) -> bool) -> io::Result<()> {
        let needed: Vec<u64> = self
            .known
            .keys()
            .copied()
            .filter(|content| is_needed(*content))
            .collect();
        let stale = self.commit.rows - needed.len();
        if stale < MIN_STALE || stale < needed.len() {
            return Ok(());
        }
        let mut order: Vec<u32> = needed.iter().map(|content| self.known[content]).collect();
        order.sort_unstable();
        let dimensions = self.commit.dimensions;
        let old_keys = read_exactly(
            &self.store.file(self.commit.generation, "keys"),
            self.commit.rows * KEY_BYTES,
        )?;
        let generation = self.commit.generation + 1;
        let mut keys = io::BufWriter::new(File::create(self.store.file(generation, "keys"))?);
        let mut rows = io::BufWriter::new(File::create(self.store.file(generation, "rows"))?);
        let mut row = vec![0; dimensions];
        for number in &order {
            let at = *number as usize;
            self.rows.seek(SeekFrom::Start((at * dimensions) as u64))?;
            self.rows.read_exact(&mut row)?;
            rows.write_all(&row)?;
            keys.write_all(&old_keys[at * KEY_BYTES..(at + 1) * KEY_BYTES])?;
        }
        self.keys = keys.into_inner().map_err(io::Error::other)?;
        self.rows = rows.into_inner().map_err(io::Error::other)?;
        self.keys.sync_all()?;
        self.rows.sync_all()?;
        self.commit.generation = generation;
        self.commit.rows = order.len();
        let new_keys = order.iter().zip(0u32..).map(|(old, new)| {
            let at = *old as usize * KEY_BYTES;
            (Key::unpacked(&old_keys[at..at + KEY_BYTES]).content, new)
        });
        self.known = new_keys.collect();
        self.publish()?;
        self.announce()?;
        self.remove_other_generations();
        Ok(())
    }

    fn remove_other_generations(&mut self) {
        let current = format!("{}.", self.commit.generation);
        for entry in fs::read_dir(&self.store.dir).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let is_data = name.ends_with(".keys") || name.ends_with(".rows");
            if is_data && !name.starts_with(&current) {
                drop(fs::remove_file(entry.path()));
            }
        }
    }
}

fn read_exactly(path: &Path, bytes: usize) -> io::Result<Vec<u8>> {
    let mut read = vec![0; bytes];
    File::open(path)?.read_exact(&mut read)?;
    Ok(read)
}

#[allow(unsafe_code)]
fn map(file: &File) -> io::Result<Mmap> {
    // SAFETY: rows below the committed count are never written again: the one writer, which holds the
    // store's lock, appends behind them, and a store made anew is another file.
    unsafe { Mmap::map(file) }
}
