//! Turns the records of each changed key into index entries.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use tribune_core::DocumentId;

use super::claims::{Claims, Holder, with_content_hash};
use super::{IndexProgress, IndexReport};
use crate::collection::{Duplicates, Settings};
use crate::engine::{Changes, EngineError, Entry};
use crate::format::{Fault, Markup, Record, Sink, Stop};
use crate::hash;
use crate::manifest::{FileEntry, Manifest};
use crate::passage::passages;
use crate::provider::{Item, Listing};

/// Faults stored and shown per file; the rest are counted.
const MAX_FAULTS_PER_FILE: usize = 20;
/// Documents of one file between two progress reports.
const DOCUMENTS_BETWEEN_REPORTS: u64 = 500;

/// Why a run ended early.
pub(crate) enum RunError {
    Engine(EngineError),
    Cancelled,
}

impl From<EngineError> for RunError {
    fn from(error: EngineError) -> Self {
        Self::Engine(error)
    }
}

pub(crate) struct Run<'a> {
    pub(crate) settings: &'a Settings,
    pub(crate) changes: &'a mut dyn Changes,
    pub(crate) cancel: &'a CancellationToken,
    pub(crate) progress: &'a dyn Fn(IndexProgress),
}

impl Run<'_> {
    pub(crate) fn files(&mut self, old: &Manifest, found: Listing) -> Result<(Manifest, IndexReport), RunError> {
        let mut report = IndexReport { files: found.items.len() as u64, ..IndexReport::default() };
        let how = format!("{} {:?}", self.settings.provider.fingerprint(), self.settings.collection);
        let mut new = Manifest { reading: format!("{:016x}", hash::stable(&how)), ..Manifest::default() };
        let read_otherwise = old.reading != new.reading;
        if read_otherwise && !old.files.is_empty() {
            tracing::info!(source = self.settings.name, "the reading rules have changed; reading everything again");
        }
        let mut changed = VecDeque::new();
        let mut items = HashMap::new();
        for fault in found.unreachable {
            keep_unreachable(old, &mut new, fault);
        }
        for fault in found.excluded {
            new.files.insert(fault.file.clone(), FileEntry::unread(fault));
        }
        for item in found.items {
            match old.files.get(&item.key) {
                Some(entry) if entry.fingerprint == item.fingerprint && !entry.entangled && !read_otherwise => {
                    report.files_unchanged += 1;
                    new.files.insert(item.key.clone(), entry.clone());
                }
                Some(entry) if let Err(problem) = self.settings.provider.check(&item.key) => {
                    new.files.insert(item.key.clone(), kept(entry, &item.key, &problem));
                }
                _ => changed.push_back(item.key.clone()),
            }
            items.insert(item.key.clone(), item);
        }
        let read_again: HashSet<&str> = changed.iter().map(String::as_str).collect();
        for (name, entry) in old.files.iter().filter(|(name, _)| !new.files.contains_key(*name)) {
            self.changes.remove(name);
            report.files_removed += u64::from(entry.documents > 0 && !read_again.contains(name.as_str()));
        }
        let unchanged = new.files.keys().cloned().collect();
        let mut claims = Claims::new(unchanged, self.settings.collection.transcripts);
        let read = self.read_all(changed, &items, &mut claims, &mut new)?;
        for entry in read.iter().filter_map(|name| new.files.get(name)) {
            report.documents_read += entry.documents;
            report.passages_added += entry.passages;
        }
        report.files_read = read.len() as u64;
        Ok((new, report))
    }

    /// Reads files in order, then again those whose text a later file has taken over. Returns the keys that were read.
    fn read_all(
        &mut self,
        mut queue: VecDeque<String>,
        items: &HashMap<String, Item>,
        claims: &mut Claims,
        new: &mut Manifest,
    ) -> Result<HashSet<String>, RunError> {
        let mut read = HashSet::new();
        let mut state = IndexProgress { files_total: queue.len() as u64, ..IndexProgress::default() };
        (self.progress)(state);
        while let Some(name) = queue.pop_front() {
            let Some(item) = items.get(&name) else {
                continue;
            };
            if read.contains(&name) {
                claims.free_ids(&name);
            }
            let (entry, displaced) = self.read(item, claims, &mut state)?;
            new.files.insert(name.clone(), entry);
            read.insert(name);
            for name in displaced.iter().filter(|name| items.contains_key(&***name)) {
                self.changes.remove(name);
                claims.read_again(name);
                if !queue.iter().any(|queued| **queued == **name) {
                    queue.push_back(name.to_string());
                    state.files_total += 1;
                }
            }
            state.files_done += 1;
            (self.progress)(state);
        }
        Ok(read)
    }

    /// Reads one key. Returns the keys whose text it has taken over.
    fn read(
        &mut self,
        item: &Item,
        claims: &mut Claims,
        state: &mut IndexProgress,
    ) -> Result<(FileEntry, HashSet<Arc<str>>), RunError> {
        let provider = &self.settings.provider;
        let mut intake = Intake {
            run: self,
            file: Arc::from(item.key.as_str()),
            markup: provider.contents(&item.key).markup,
            claims,
            state,
            entry: FileEntry { fingerprint: item.fingerprint.clone(), ..FileEntry::default() },
            displaced: HashSet::new(),
            failure: None,
        };
        // Only the intake itself stops a reading, and it stores the reason.
        let _ = provider.read(&item.key, &mut intake);
        match intake.failure {
            Some(failure) => Err(failure),
            None => Ok((intake.entry, intake.displaced)),
        }
    }
}

/// A key that cannot be read now may still exist: its entries stay, and every run tries again.
fn keep_unreachable(old: &Manifest, new: &mut Manifest, fault: Fault) {
    let below = format!("{}/", fault.file);
    for (name, entry) in &old.files {
        if *name == fault.file || name.starts_with(&below) {
            new.files.insert(name.clone(), kept(entry, name, &fault.problem));
        }
    }
    let file = fault.file.clone();
    new.files.entry(file).or_insert_with(|| FileEntry::unread(fault));
}

/// The entry of a key whose earlier contents stay.
fn kept(entry: &FileEntry, name: &str, problem: &str) -> FileEntry {
    let fault = Fault {
        file: name.to_owned(),
        line: None,
        problem: format!("{problem}; its earlier contents are still served"),
        skipped: true,
    };
    FileEntry {
        faults: vec![fault],
        faults_in_all: 1,
        // Forces the next run to read it, changed or not.
        entangled: true,
        ..entry.clone()
    }
}

/// The state of reading one file.
struct Intake<'a, 'r> {
    run: &'a mut Run<'r>,
    file: Arc<str>,
    markup: Markup,
    claims: &'a mut Claims,
    state: &'a mut IndexProgress,
    entry: FileEntry,
    /// Files whose documents this one replaces.
    displaced: HashSet<Arc<str>>,
    failure: Option<RunError>,
}

impl Intake<'_, '_> {
    /// Whether the document may be indexed, by the source's policy for duplicates.
    fn may_hold(&mut self, holder: &Holder, hash: &str) -> Result<bool, EngineError> {
        let policy = self.run.settings.collection.duplicates;
        let Some(rival) = self.claims.rival(holder, hash, self.run.changes)? else {
            return Ok(true);
        };
        if policy == Duplicates::Update && holder.is_after(&rival) {
            self.claims.release(&rival);
            self.displaced.insert(rival.file);
            return Ok(true);
        }
        let (key, file) = (&rival.key, &rival.file);
        let mut problem = if key.starts_with(&**file) || *file == self.file {
            format!("has the same text as `{key}`")
        } else {
            format!("has the same text as `{key}` in {file}")
        };
        self.entry.entangled = true;
        if policy == Duplicates::Error {
            problem.push_str(", which is an error here (`duplicates = \"error\"`)");
            self.fault(holder.line, true, problem);
            return Ok(false);
        }
        if policy == Duplicates::Update {
            problem.push_str(", which comes later and replaces it");
        }
        self.entry.duplicates += 1;
        self.note(holder.line, true, problem);
        Ok(false)
    }

    fn note(&mut self, line: Option<u64>, skipped: bool, problem: String) {
        self.entry.faults_in_all += 1;
        if self.entry.faults.len() < MAX_FAULTS_PER_FILE {
            self.entry.faults.push(Fault { file: self.file.to_string(), line, problem, skipped });
        }
    }

    fn count(&mut self, record: &Record) {
        self.entry.documents += 1;
        if let Some(date) = record.date {
            let entry = &mut self.entry;
            entry.first_date = Some(entry.first_date.map_or(date, |first| first.min(date)));
            entry.last_date = Some(entry.last_date.map_or(date, |last| last.max(date)));
        }
        for name in record.fields.keys() {
            *self.entry.fields.entry(name.clone()).or_default() += 1;
        }
        for name in self.run.settings.collection.counted_fields {
            if let Some(value) = record.fields.get(*name).and_then(|value| value.as_str()) {
                let values = self.entry.values.entry((*name).to_owned()).or_default();
                *values.entry(value.to_owned()).or_default() += 1;
            }
        }
        self.state.documents += 1;
        if self.entry.documents.is_multiple_of(DOCUMENTS_BETWEEN_REPORTS) {
            (self.run.progress)(*self.state);
        }
    }

    fn take(&mut self, line: Option<u64>, mut record: Record, warnings: Vec<String>) -> Result<(), RunError> {
        let settings = self.run.settings;
        if self.run.cancel.is_cancelled() {
            return Err(RunError::Cancelled);
        }
        if let Err(problem) = DocumentId::new(&settings.name, &record.key) {
            self.fault(line, true, format!("its id cannot be used: {problem}"));
            return Ok(());
        }
        let holder = if settings.collection.duplicates == Duplicates::Keep {
            None
        } else {
            let hash = with_content_hash(&mut record);
            let holder = Holder::new(&record, &hash, &self.file, line, settings.collection.transcripts);
            if !self.may_hold(&holder, &hash)? {
                return Ok(());
            }
            Some(holder)
        };
        if !self.claims.take_id(&record.key, &self.file, self.run.changes)? {
            self.entry.entangled = true;
            let problem = format!("the id `{}` is already another document's", record.key);
            self.fault(line, true, problem);
            return Ok(());
        }
        if let Some(holder) = holder {
            self.claims.hold(holder);
        }
        let passages = passages(&record, self.markup);
        self.run.changes.add(&Entry { file: &self.file, record: &record, passages: &passages })?;
        self.entry.passages += passages.len() as u64;
        self.count(&record);
        for warning in warnings {
            self.fault(line, false, warning);
        }
        Ok(())
    }
}

impl Sink for Intake<'_, '_> {
    fn record(&mut self, line: Option<u64>, record: Record, warnings: Vec<String>) -> Result<(), Stop> {
        self.take(line, record, warnings).map_err(|failure| {
            self.failure = Some(failure);
            Stop
        })
    }

    fn fault(&mut self, line: Option<u64>, skipped: bool, problem: String) {
        self.entry.failures += u64::from(skipped);
        self.note(line, skipped, problem);
    }
}
