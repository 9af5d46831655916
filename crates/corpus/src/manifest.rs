//! Which files an index was made from, so that the next run reads only what changed.
//!
//! Written beside the index before the commit that names it, so index and manifest change together.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use jiff::civil::Date;
use serde::{Deserialize, Serialize};

use crate::read::Fault;

/// What tells a changed file from an unchanged one without opening it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Signature {
    bytes: u64,
    modified_ns: i128,
    /// Inode and change time where the system has them: they catch a file that was replaced by
    /// one of the same size and date.
    identity: (u64, i128),
}

impl Signature {
    pub fn of(metadata: &fs::Metadata) -> Self {
        let modified_ns = metadata
            .modified()
            .ok()
            .and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok())
            .map_or(0, |age| age.as_nanos() as i128);
        #[cfg(unix)]
        let identity = {
            use std::os::unix::fs::MetadataExt;
            let changed_ns = i128::from(metadata.ctime()) * 1_000_000_000 + i128::from(metadata.ctime_nsec());
            (metadata.ino(), changed_ns)
        };
        #[cfg(not(unix))]
        let identity = (0, 0);
        Self {
            bytes: metadata.len(),
            modified_ns,
            identity,
        }
    }
}

/// One file of the folder as it was when it was last read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileEntry {
    pub signature: Signature,
    pub documents: u64,
    pub passages: u64,
    pub first_date: Option<Date>,
    pub last_date: Option<Date>,
    /// How many documents of the file carry each field.
    pub fields: BTreeMap<String, u64>,
    /// How many documents of the file have each value of the fields that are told to hosts.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub values: BTreeMap<String, BTreeMap<String, u64>>,
    pub faults: Vec<Fault>,
    pub faults_in_all: u64,
    /// Its outcome depended on another file (an id already taken there): read it again next time.
    pub entangled: bool,
    /// Documents left out because another has the same text.
    #[serde(default)]
    pub duplicates: u64,
    /// Documents left out because something is wrong with them.
    #[serde(default)]
    pub failures: u64,
}

impl FileEntry {
    fn outcome(&self) -> Outcome {
        if self.documents > 0 {
            Outcome::Succeeded
        } else if self.failures > 0 {
            Outcome::Failed
        } else if self.duplicates > 0 {
            Outcome::Skipped
        } else {
            // A file of rows without a row: nothing is wrong with it.
            Outcome::Succeeded
        }
    }
}

#[derive(PartialEq, Eq)]
enum Outcome {
    Succeeded,
    Skipped,
    Failed,
}

/// How the files of a folder have fared.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Summary {
    pub total_files: u64,
    /// Files that gave a document.
    pub succeeded: u64,
    /// Files that gave none because every text in them is held already.
    pub skipped: u64,
    /// Files that gave none because something is wrong with them.
    pub failed: u64,
    /// Passages added by this run.
    pub total_chunks_created: u64,
}

/// All files of an index.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// How the files were read: when that changes, all of them are read again.
    #[serde(default)]
    pub reading: String,
    pub files: BTreeMap<String, FileEntry>,
}

impl Manifest {
    pub fn documents(&self) -> u64 {
        self.files.values().map(|file| file.documents).sum()
    }

    pub fn passages(&self) -> u64 {
        self.files.values().map(|file| file.passages).sum()
    }

    /// How the files have fared, in a run that added so many passages.
    pub fn summary(&self, passages_added: u64) -> Summary {
        let count = |outcome: &Outcome| self.files.values().filter(|file| file.outcome() == *outcome).count() as u64;
        Summary {
            total_files: self.files.len() as u64,
            succeeded: count(&Outcome::Succeeded),
            skipped: count(&Outcome::Skipped),
            failed: count(&Outcome::Failed),
            total_chunks_created: passages_added,
        }
    }

    pub fn dates(&self) -> Option<(Date, Date)> {
        let first = self.files.values().filter_map(|file| file.first_date).min()?;
        let last = self.files.values().filter_map(|file| file.last_date).max()?;
        Some((first, last))
    }

    /// Field names, those of most documents first.
    pub fn fields(&self) -> Vec<String> {
        let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
        for (name, count) in self.files.values().flat_map(|file| &file.fields) {
            *counts.entry(name).or_default() += count;
        }
        let mut names: Vec<(&str, u64)> = counts.into_iter().collect();
        names.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        names.into_iter().map(|(name, _)| name.to_owned()).collect()
    }

    /// The values of a field with the number of their documents, most first.
    pub fn values(&self, field: &str) -> Vec<(String, u64)> {
        let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
        for (value, count) in self.files.values().filter_map(|file| file.values.get(field)).flatten() {
            *counts.entry(value).or_default() += count;
        }
        let mut values: Vec<(String, u64)> = counts
            .into_iter()
            .map(|(value, count)| (value.to_owned(), count))
            .collect();
        values.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        values
    }

    pub fn load(path: &Path) -> io::Result<Self> {
        serde_json::from_slice(&fs::read(path)?).map_err(io::Error::other)
    }

    /// Writes under a name of its own; returns the name, for the commit to carry.
    pub fn save(&self, dir: &Path, generation: u64) -> io::Result<String> {
        use io::Write;
        let name = format!("manifest-{generation}.json");
        let mut file = fs::File::create(dir.join(&name))?;
        file.write_all(&serde_json::to_vec(self).map_err(io::Error::other)?)?;
        file.sync_all()?;
        Ok(name)
    }

    /// Removes the manifests that no commit names any more.
    pub fn remove_others(dir: &Path, current: &str) {
        let stale = |path: &PathBuf| {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            name.starts_with("manifest-") && name != current
        };
        let entries = fs::read_dir(dir).into_iter().flatten().flatten();
        for path in entries.map(|entry| entry.path()).filter(stale) {
            if let Err(error) = fs::remove_file(&path) {
                tracing::debug!(%error, "could not remove an old manifest");
            }
        }
    }
}
