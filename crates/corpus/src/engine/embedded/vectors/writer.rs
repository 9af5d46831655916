//! Appends vectors to a store, and rebuilds it without stale ones.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::Path;

use super::{Commit, KEY_BYTES, Key, TOO_SHORT, VectorStore};
use crate::engine::Result;
use crate::engine::embedded::attempt;

/// Below this many stale rows, the store is not rebuilt.
const MIN_STALE: usize = 10_000;

/// Adds rows; holds the store's lock.
pub(in crate::engine::embedded) struct VectorWriter {
    pub(super) store: VectorStore,
    pub(super) rows: StoredRows,
    pub(super) _lock: File,
}

/// The files of one generation, open for appending.
pub(super) struct StoredRows {
    commit: Commit,
    keys: File,
    rows: File,
    /// The row of each content hash.
    known: HashMap<u64, u32>,
}

impl StoredRows {
    pub(super) fn open(store: &VectorStore, commit: Commit) -> io::Result<Self> {
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

    pub(super) fn remove_other_generations(&mut self) {
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
