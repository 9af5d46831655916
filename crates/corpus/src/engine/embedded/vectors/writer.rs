//! Appends vectors to a store, and rebuilds it without stale ones.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};

use super::{Commit, KEY_BYTES, Key, VectorStore, read_exactly};
use crate::engine::Result;
use crate::engine::embedded::attempt;

/// Below this many stale rows, the store is not rebuilt.
const MIN_STALE: usize = 10_000;

/// Adds rows; holds the store's lock.
pub(in crate::engine::embedded) struct VectorWriter {
    store: VectorStore,
    commit: Commit,
    keys: File,
    rows: File,
    known: HashMap<u64, u32>,
    _lock: File,
}

impl VectorWriter {
    pub(super) fn open(store: VectorStore, commit: Commit, lock: File) -> std::result::Result<Self, (io::Error, File)> {
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
                // Rows after the last commit may be incomplete.
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

    /// Appends rows and commits them.
    fn append(&mut self, batch: &[(u64, Vec<f32>)]) -> io::Result<()> {
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
        self.commit_rows()
    }

    fn commit_rows(&self) -> io::Result<()> {
        let temporary = self.store.dir.join("commit.json.new");
        let mut file = File::create(&temporary)?;
        file.write_all(&serde_json::to_vec(&self.commit).map_err(io::Error::other)?)?;
        file.sync_all()?;
        fs::rename(temporary, self.store.commit_file())
    }

    /// Publishes new rows to servers, including those of an earlier run that was killed before it published.
    fn announce(&self) -> io::Result<()> {
        let state = format!("{} {}", self.commit.generation, self.commit.rows);
        if fs::read_to_string(self.store.ready_file()).is_ok_and(|announced| announced == state) {
            return Ok(());
        }
        let temporary = self.store.dir.join("ready.new");
        fs::write(&temporary, state)?;
        fs::rename(temporary, self.store.ready_file())
    }

    /// Rebuilds the store without stale rows, once most rows are stale.
    fn drop_stale(&mut self, is_needed: impl Fn(u64) -> bool) -> io::Result<()> {
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
        self.commit_rows()?;
        self.announce()?;
        self.remove_other_generations();
        Ok(())
    }

    pub(super) fn remove_other_generations(&mut self) {
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

impl crate::engine::VectorWriter for VectorWriter {
    fn holds(&self, content: u64) -> bool {
        self.known.contains_key(&content)
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
