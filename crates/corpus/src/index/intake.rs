//! Turns the records of each changed key into index entries.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tribune_core::{DocumentId, Readers};

use super::ahead::{Found, read_ahead};
use super::claims::{Claims, Holder, with_content_hash};
use super::{IndexProgress, IndexReport};
use crate::collection::{Duplicates, Settings};
use crate::engine::{Changes, EngineError, Entry};
use crate::format::{Fault, Reason, Record, Sink, Stop};
use crate::hash;
use crate::manifest::{FileEntry, Manifest};
use crate::passage::passages;
use crate::provider::{Item, Listing, Unreachable};
use crate::skipped::kinds;

/// Faults stored and shown per file; the rest are counted.
const MAX_FAULTS_PER_FILE: usize = 20;
/// How often to look whether the run was cancelled, while a file is read.
const LOOK_AROUND_EVERY: Duration = Duration::from_millis(200);
/// Documents of one file between two progress reports.
const DOCUMENTS_BETWEEN_REPORTS: u64 = 500;

pub(crate) struct Run<'a> {
    pub(crate) settings: &'a Settings,
    pub(crate) changes: &'a mut dyn Changes,
    pub(crate) cancel: &'a CancellationToken,
    pub(crate) progress: &'a dyn Fn(IndexProgress),
}

impl Run<'_> {
    /// Stops early when it is cancelled.
    pub(crate) fn files(&mut self, old: &Manifest, found: Listing) -> Result<(Manifest, IndexReport), EngineError> {
        let mut report = IndexReport { files: found.items.len() as u64, ..IndexReport::default() };
        let how = format!("{} {:?}", self.settings.provider.fingerprint(), self.settings.collection);
        let mut new = Manifest {
            reading: format!("{:016x}", hash::stable(&how)),
            unread: kinds(&found.unread),
            ..Manifest::default()
        };
        let read_otherwise = old.reading != new.reading;
        if read_otherwise && !old.files.is_empty() {
            tracing::info!(source = self.settings.name, "the reading rules have changed; reading everything again");
        }
        for unreachable in found.unreachable {
            keep_unreachable(old, &mut new, unreachable);
        }
        for fault in found.excluded {
            new.files.insert(fault.file.clone(), FileEntry::unread(fault));
        }
        let mut changed = Vec::new();
        for item in found.items {
            match old.files.get(&item.key) {
                Some(entry)
                    if entry.fingerprint == item.fingerprint
                        && entry.readers == item.readers.to_string()
                        && !entry.entangled
                        && !read_otherwise =>
                {
                    report.files_unchanged += 1;
                    new.files.insert(item.key, entry.clone());
                }
                // Earlier contents do not stay if fewer may see them now.
                Some(entry)
                    if let Err(problem) = self.settings.provider.check(&item.key)
                        && Readers::read(&entry.readers).keep_to(&item.readers) =>
                {
                    let entry = kept(entry, &item.key, &problem);
                    new.files.insert(item.key, entry);
                }
                _ => changed.push(item),
            }
        }
        let read_again: HashSet<&str> = changed.iter().map(|item| item.key.as_str()).collect();
        // What is only named by a fault now has lost its records too.
        let is_gone = |name: &str, entry: &FileEntry| match new.files.get(name) {
            None => true,
            Some(now) => now.documents == 0 && entry.documents > 0,
        };
        for (name, entry) in old.files.iter().filter(|(name, entry)| is_gone(name, entry)) {
            self.changes.remove(name);
            report.files_removed += u64::from(entry.documents > 0 && !read_again.contains(name.as_str()));
        }
        let unchanged = new.files.keys().cloned().collect();
        let mut claims = Claims::new(unchanged, self.settings.collection.transcripts);
        let mut state = IndexProgress { files_total: changed.len() as u64, ..IndexProgress::default() };
        (self.progress)(state);
        let provider = self.settings.provider.clone();
        let read = read_ahead(&*provider, &changed, |item, found| {
            if self.cancel.is_cancelled() {
                return ControlFlow::Break(Ok(()));
            }
            let entry = match self.take(item, found, &mut claims, &mut state) {
                Ok(entry) => entry,
                Err(failure) => return ControlFlow::Break(Err(failure)),
            };
            report.files_read += 1;
            report.documents_read += entry.documents;
            report.passages_added += entry.passages;
            new.files.insert(item.key.clone(), entry);
            state.files_done += 1;
            (self.progress)(state);
            ControlFlow::Continue(())
        });
        match read {
            ControlFlow::Break(Err(failure)) => Err(failure),
            _ => Ok((new, report)),
        }
    }

    fn take(
        &mut self,
        item: &Item,
        found: Receiver<Found>,
        claims: &mut Claims,
        state: &mut IndexProgress,
    ) -> Result<FileEntry, EngineError> {
        let mut intake = Intake {
            run: self,
            file: Arc::from(item.key.as_str()),
            readers: &item.readers,
            claims,
            state,
            entry: FileEntry {
                fingerprint: item.fingerprint.clone(),
                readers: item.readers.to_string(),
                ..FileEntry::default()
            },
            failure: None,
        };
        // Only the intake stops a reading: when it is cancelled, or after a failure.
        loop {
            match found.recv_timeout(LOOK_AROUND_EVERY) {
                Ok(found) => {
                    if found.give(&mut intake).is_err() {
                        break;
                    }
                }
                Err(RecvTimeoutError::Timeout) if !intake.run.cancel.is_cancelled() => {}
                Err(_) => break,
            }
        }
        intake.failure.map_or(Ok(intake.entry), Err)
    }
}

/// A key that cannot be read now may still exist: its entries stay unless fewer may see them now, and every run tries
/// again.
fn keep_unreachable(old: &Manifest, new: &mut Manifest, unreachable: Unreachable) {
    let Unreachable { fault, readers } = unreachable;
    let below = format!("{}/", fault.file);
    for (name, entry) in &old.files {
        let is_below = *name == fault.file || name.starts_with(&below);
        if is_below && Readers::read(&entry.readers).keep_to(&readers) {
            new.files.insert(name.clone(), kept(entry, name, &fault.problem));
        }
    }
    let file = fault.file.clone();
    new.files.entry(file).or_insert_with(|| FileEntry::unread(fault));
}

/// The entry of a key whose earlier contents stay.
fn kept(entry: &FileEntry, name: &str, problem: &str) -> FileEntry {
    let fault = Fault::skipped(name, format!("{problem}; its earlier contents are still served"));
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
    /// Who may see the file.
    readers: &'a Readers,
    claims: &'a mut Claims,
    state: &'a mut IndexProgress,
    entry: FileEntry,
    failure: Option<EngineError>,
}

impl Intake<'_, '_> {
    /// Reports a document whose text another one has, by the source's policy for duplicates.
    fn report_duplicate(&mut self, rival: &Holder, line: Option<u64>) {
        let (key, file) = (&rival.key, &rival.file);
        let mut problem = format!("has the same text as `{key}`");
        if !key.starts_with(&**file) && *file != self.file {
            problem.push_str(&format!(" in {file}"));
        }
        self.entry.entangled = true;
        if self.run.settings.collection.duplicates == Duplicates::Error {
            problem.push_str(", which is an error here (`duplicates = \"error\"`)");
            self.entry.failures += 1;
        } else {
            self.entry.duplicates += 1;
        }
        self.note(line, true, problem, None);
    }

    fn note(&mut self, line: Option<u64>, skipped: bool, problem: String, reason: Option<Reason>) {
        self.entry.faults_in_all += 1;
        if self.entry.faults.len() < MAX_FAULTS_PER_FILE {
            self.entry.faults.push(Fault { file: self.file.to_string(), line, problem, skipped, reason });
        }
    }

    fn count(&mut self, record: &Record) {
        self.entry.documents += 1;
        let held = self.entry.held.entry(record.readers.to_string()).or_default();
        held.count(record, self.run.settings.collection.counted_fields);
        self.state.documents += 1;
        if self.entry.documents.is_multiple_of(DOCUMENTS_BETWEEN_REPORTS) {
            (self.run.progress)(*self.state);
        }
    }

    fn take(&mut self, line: Option<u64>, mut record: Record, warnings: Vec<String>) -> Result<(), EngineError> {
        let settings = self.run.settings;
        if let Err(problem) = DocumentId::new(&settings.name, &record.key) {
            self.fault(line, true, format!("its id cannot be used: {problem}"));
            return Ok(());
        }
        record.readers = record.readers.narrowed(self.readers);
        let mut claimed = None;
        if settings.collection.duplicates != Duplicates::Keep {
            let hash = with_content_hash(&mut record);
            let holder =
                self.claims.holder(&record.key, &self.file, record.date, &record.readers, Some(&record.fields));
            if let Some(rival) = self.claims.rival(&holder, &hash, self.run.changes)? {
                self.report_duplicate(&rival, line);
                return Ok(());
            }
            claimed = Some((holder, hash));
        }
        if !self.claims.take_id(&record.key, self.run.changes)? {
            self.entry.entangled = true;
            let problem = format!("the id `{}` is already another document's", record.key);
            self.fault(line, true, problem);
            return Ok(());
        }
        if let Some((holder, hash)) = claimed {
            self.claims.hold(holder, &hash);
        }
        let passages = passages(&record);
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
        if self.run.cancel.is_cancelled() {
            return Err(Stop);
        }
        self.take(line, record, warnings).map_err(|failure| {
            self.failure = Some(failure);
            Stop
        })
    }

    fn fault(&mut self, line: Option<u64>, skipped: bool, problem: String) {
        self.entry.failures += u64::from(skipped);
        self.note(line, skipped, problem, None);
    }

    fn unreadable(&mut self, reason: Reason, problem: String) {
        self.entry.failures += 1;
        *self.entry.unreadable.entry(reason).or_default() += 1;
        self.note(None, true, problem, Some(reason));
    }
}
