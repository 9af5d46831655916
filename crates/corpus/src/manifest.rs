//! The provider's keys in an index, with their fingerprints, so that the next run reads only changed ones.
//!
//! Written before the commit that names it, so that index and manifest change together.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

use jiff::Timestamp;
use jiff::civil::Date;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tribune_core::Readers;

use crate::format::{Fault, Reason, Record};

/// What documents with the same readers hold.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    pub documents: u64,
    pub first_date: Option<Date>,
    pub last_date: Option<Date>,
    /// The number of documents with each field.
    pub fields: BTreeMap<String, u64>,
    /// The sum of the documents' digests: equal if nothing has changed, in whatever order they are read.
    #[serde(default)]
    pub digest: u64,
    /// The number of documents with each value of the counted fields.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub values: BTreeMap<String, BTreeMap<String, u64>>,
}

impl Held {
    pub(crate) fn count(&mut self, record: &Record, counted_fields: &[&str]) {
        self.documents += 1;
        self.digest = self.digest.wrapping_add(record.digest());
        if let Some(date) = record.date {
            self.include_dates(Some(date), Some(date));
        }
        for name in record.fields.keys() {
            *self.fields.entry(name.clone()).or_default() += 1;
        }
        for name in counted_fields {
            if let Some(value) = record.fields.get(*name).and_then(|value| value.as_str()) {
                let values = self.values.entry((*name).to_owned()).or_default();
                *values.entry(value.to_owned()).or_default() += 1;
            }
        }
    }

    fn include_dates(&mut self, first: Option<Date>, last: Option<Date>) {
        self.first_date = self.first_date.into_iter().chain(first).min();
        self.last_date = self.last_date.into_iter().chain(last).max();
    }

    fn add(&mut self, other: &Self) {
        self.documents += other.documents;
        self.digest = self.digest.wrapping_add(other.digest);
        self.include_dates(other.first_date, other.last_date);
        for (name, count) in &other.fields {
            *self.fields.entry(name.clone()).or_default() += count;
        }
        for (name, counts) in &other.values {
            let values = self.values.entry(name.clone()).or_default();
            for (value, count) in counts {
                *values.entry(value.clone()).or_default() += count;
            }
        }
    }

    pub fn dates(&self) -> Option<(Date, Date)> {
        Some((self.first_date?, self.last_date?))
    }

    /// The values of a field with their number of documents, most frequent first.
    pub fn values(&self, field: &str) -> Vec<(String, u64)> {
        most_frequent(self.values.get(field).into_iter().flatten())
    }
}

/// Names of the fields of all these documents, most frequent first.
pub(crate) fn field_names<'a>(held: impl Iterator<Item = &'a Held>) -> Vec<String> {
    let fields = most_frequent(held.flat_map(|held| &held.fields));
    fields.into_iter().map(|(name, _)| name).collect()
}

/// The state of one key of the provider when it was last read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileEntry {
    /// The provider's fingerprint; absent in manifests of older releases.
    #[serde(default)]
    pub fingerprint: String,
    pub documents: u64,
    pub passages: u64,
    /// Who the provider said may see the key, as [`Readers`] prints them.
    pub readers: String,
    /// The documents by their readers.
    pub held: BTreeMap<String, Held>,
    pub faults: Vec<Fault>,
    pub faults_in_all: u64,
    /// The outcome depended on another key, for example on an id that it has: read again in the next run.
    pub entangled: bool,
    /// Documents skipped because another has the same text.
    #[serde(default)]
    pub duplicates: u64,
    /// Documents skipped because of an error.
    #[serde(default)]
    pub failures: u64,
    /// Those of them that its parser gave a reason for.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub unreadable: BTreeMap<Reason, u64>,
}

impl FileEntry {
    /// Nothing is indexed, and every run looks at the key again.
    pub(crate) fn unread(fault: Fault) -> Self {
        Self { faults: vec![fault], faults_in_all: 1, failures: 1, entangled: true, ..Self::default() }
    }

    pub fn outcome(&self) -> Outcome {
        match self {
            Self { documents: 1.., .. } => Outcome::Succeeded,
            Self { failures: 1.., .. } => Outcome::Failed,
            Self { duplicates: 1.., .. } => Outcome::Skipped,
            // An empty file of rows is not an error.
            _ => Outcome::Succeeded,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// At least one document is indexed.
    Succeeded,
    /// All documents are duplicates.
    Skipped,
    /// No document is indexed because of an error.
    Failed,
}

/// The number of files by outcome.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Summary {
    pub total_files: u64,
    pub succeeded: u64,
    pub skipped: u64,
    pub failed: u64,
    /// Passages added by this run.
    pub total_chunks_created: u64,
}

impl Summary {
    pub fn count(&mut self, outcome: Outcome) {
        match outcome {
            Outcome::Succeeded => self.succeeded += 1,
            Outcome::Skipped => self.skipped += 1,
            Outcome::Failed => self.failed += 1,
        }
    }
}

/// All keys of an index.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// The fingerprint of provider and collection: when it changes, everything is read again.
    #[serde(default)]
    pub reading: String,
    /// When what everybody may see has last changed; absent in manifests of older releases.
    #[serde(default)]
    pub public_since: Option<Timestamp>,
    /// The number of files that no format reads, by kind.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub unread: BTreeMap<String, u64>,
    pub files: BTreeMap<String, FileEntry>,
}

impl Manifest {
    pub fn documents(&self) -> u64 {
        self.files.values().map(|file| file.documents).sum()
    }

    pub fn passages(&self) -> u64 {
        self.files.values().map(|file| file.passages).sum()
    }

    /// The outcome of a run that added so many passages.
    pub fn summary(&self, passages_added: u64) -> Summary {
        let mut summary = Summary {
            total_files: self.files.len() as u64,
            total_chunks_created: passages_added,
            ..Summary::default()
        };
        self.files.values().for_each(|file| summary.count(file.outcome()));
        summary
    }

    /// The documents by their readers.
    pub fn held(&self) -> BTreeMap<Readers, Held> {
        let mut by_text: BTreeMap<&str, Held> = BTreeMap::new();
        for (readers, held) in self.files.values().flat_map(|file| &file.held) {
            by_text.entry(readers).or_default().add(held);
        }
        let mut all: BTreeMap<Readers, Held> = BTreeMap::new();
        for (readers, held) in by_text {
            all.entry(Readers::read(readers)).or_default().add(&held);
        }
        all
    }

    /// What everybody may see; a change that it leaves alone is nobody else's to know.
    pub(crate) fn public(&self) -> Option<Held> {
        self.held().remove(Readers::EVERYBODY)
    }

    pub fn load(path: &Path) -> io::Result<Self> {
        serde_json::from_slice(&fs::read(path)?).map_err(io::Error::other)
    }

    /// Writes a new file and returns its name for the commit.
    pub fn save(&self, dir: &Path, generation: u64) -> io::Result<String> {
        use io::Write;
        let name = format!("manifest-{generation}.json");
        let mut file = fs::File::create(dir.join(&name))?;
        file.write_all(&serde_json::to_vec(self).map_err(io::Error::other)?)?;
        file.sync_all()?;
        Ok(name)
    }

    /// Removes manifests that no commit names.
    pub fn remove_others(dir: &Path, current: &str) {
        for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let is_stale = name.to_str().is_some_and(|name| name.starts_with("manifest-") && name != current);
            if is_stale && let Err(error) = fs::remove_file(entry.path()) {
                tracing::debug!(%error, "could not remove an old manifest");
            }
        }
    }
}

fn most_frequent<'a>(counts: impl Iterator<Item = (&'a String, &'a u64)>) -> Vec<(String, u64)> {
    let mut sums: BTreeMap<&str, u64> = BTreeMap::new();
    for (name, count) in counts {
        *sums.entry(name).or_default() += count;
    }
    let mut sums: Vec<(String, u64)> = sums.into_iter().map(|(name, sum)| (name.to_owned(), sum)).collect();
    sums.sort_by_key(|(_, sum)| std::cmp::Reverse(*sum));
    sums
}
