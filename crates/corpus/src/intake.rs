//! What a run takes in: each changed file's records become index entries.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use tantivy::schema::Term;
use tantivy::{Index, IndexWriter};
use tokio_util::sync::CancellationToken;
use tribune_core::DocumentId;

use crate::claims::{Claims, Holder};
use crate::duplicates::with_content_hash;
use crate::entry;
use crate::indexer::{IndexError, IndexProgress, IndexReport, Indexing};
use crate::manifest::{FileEntry, Manifest, Signature};
use crate::read::{Dialect, Duplicates, Fault, Input, Record, Sink};
use crate::schema::Fields;
use crate::speeches::FACETS;
use crate::walk::{Found, FoundFile};

/// Faults kept and shown for each file; the rest are counted.
const MAX_FAULTS_PER_FILE: usize = 20;
/// Progress is told every so many documents of one file.
const DOCUMENTS_BETWEEN_REPORTS: u64 = 500;

/// One run under way.
pub(crate) struct Run<'a> {
    pub(crate) indexing: &'a Indexing,
    pub(crate) writer: &'a IndexWriter,
    pub(crate) fields: Fields,
    pub(crate) cancel: &'a CancellationToken,
    pub(crate) progress: &'a dyn Fn(IndexProgress),
}

impl Run<'_> {
    pub(crate) fn files(
        &self,
        index: &Index,
        old: &Manifest,
        found: Found,
    ) -> Result<(Manifest, IndexReport), IndexError> {
        let mut report = IndexReport {
            files: found.files.len() as u64,
            ..IndexReport::default()
        };
        let mut new = Manifest {
            reading: self.indexing.reading.fingerprint(),
            ..Manifest::default()
        };
        let read_otherwise = old.reading != new.reading;
        let mut changed = VecDeque::new();
        let mut files = HashMap::new();
        for fault in found.unreachable {
            keep_unreachable(old, &mut new, fault);
        }
        for fault in found.passed_over {
            // Looked at again in every run: it may become a file.
            let entry = FileEntry {
                faults: vec![fault.clone()],
                faults_in_all: 1,
                failures: 1,
                entangled: true,
                ..FileEntry::default()
            };
            new.files.insert(fault.file, entry);
        }
        for file in found.files {
            let signature = Signature::of(&file.metadata);
            let name = file.relative.clone();
            match old.files.get(&name) {
                Some(entry) if entry.signature == signature && !entry.entangled && !read_otherwise => {
                    report.files_unchanged += 1;
                    new.files.insert(name.clone(), entry.clone());
                }
                Some(entry) if let Err(error) = std::fs::File::open(&file.path) => {
                    let kept = kept(entry, &name, &format!("cannot be opened: {error}"));
                    new.files.insert(name.clone(), kept);
                }
                _ => changed.push_back(name.clone()),
            }
            files.insert(name, (file, signature));
        }
        let read_again: HashSet<&str> = changed.iter().map(String::as_str).collect();
        for (name, entry) in old.files.iter().filter(|(name, _)| !new.files.contains_key(*name)) {
            self.forget(name);
            report.files_removed += u64::from(entry.documents > 0 && !read_again.contains(name.as_str()));
        }
        let mut claims = Claims::new(self.indexing, index, &self.fields, &new)?;
        let read = self.read_all(changed, &files, &mut claims, &mut new)?;
        for entry in read.iter().filter_map(|name| new.files.get(name)) {
            report.documents_read += entry.documents;
            report.passages_added += entry.passages;
        }
        report.files_read = read.len() as u64;
        Ok((new, report))
    }

    /// Reads files in order, and those again that a later one has taken a text from; names what was read.
    fn read_all(
        &self,
        mut queue: VecDeque<String>,
        files: &HashMap<String, (FoundFile, Signature)>,
        claims: &mut Claims,
        new: &mut Manifest,
    ) -> Result<HashSet<String>, IndexError> {
        let mut read = HashSet::new();
        let mut state = IndexProgress {
            files_total: queue.len() as u64,
            ..IndexProgress::default()
        };
        (self.progress)(state);
        while let Some(name) = queue.pop_front() {
            let Some((file, signature)) = files.get(&name) else {
                continue;
            };
            claims.next_pass();
            let (entry, displaced) = self.file(file, signature.clone(), claims, &mut state)?;
            new.files.insert(name.clone(), entry);
            read.insert(name);
            for name in displaced
                .iter()
                .filter_map(|name| files.get_key_value(&**name))
                .map(|(name, _)| name)
            {
                self.forget(name);
                claims.read_again(name);
                if !queue.contains(name) {
                    queue.push_back(name.clone());
                    state.files_total += 1;
                }
            }
            state.files_done += 1;
            (self.progress)(state);
        }
        Ok(read)
    }

    /// Takes everything of a file out of the index.
    fn forget(&self, file: &str) {
        self.writer.delete_term(Term::from_field_text(self.fields.file, file));
    }

    /// Reads one file; also names the files that hold a text which this one has taken over.
    fn file(
        &self,
        file: &FoundFile,
        signature: Signature,
        claims: &mut Claims,
        state: &mut IndexProgress,
    ) -> Result<(FileEntry, HashSet<Arc<str>>), IndexError> {
        let mut intake = Intake {
            run: self,
            file: Arc::from(file.relative.as_str()),
            claims,
            state,
            entry: FileEntry {
                signature,
                ..FileEntry::default()
            },
            displaced: HashSet::new(),
        };
        let input = Input {
            path: &file.path,
            relative: &file.relative,
            format: file.format,
            reading: &self.indexing.reading,
            max_document_bytes: self.indexing.limits.max_document_bytes,
        };
        input.read(&mut intake)?;
        Ok((intake.entry, intake.displaced))
    }

    fn add(&self, file: &str, record: &Record) -> Result<u64, IndexError> {
        let (entries, passages) = self.indexing.attempt(
            "writing a document's fields",
            entry::entries(&self.fields, file, record),
        )?;
        for entry in entries {
            self.indexing
                .attempt("adding a document", self.writer.add_document(entry))?;
        }
        Ok(passages)
    }
}

/// What cannot be looked at now may still be there: what was indexed of it stays, and it is looked
/// at again in every run.
fn keep_unreachable(old: &Manifest, new: &mut Manifest, fault: Fault) {
    let below = format!("{}/", fault.file);
    for (name, entry) in &old.files {
        if *name == fault.file || name.starts_with(&below) {
            new.files.insert(name.clone(), kept(entry, name, &fault.problem));
        }
    }
    let entry = new.files.entry(fault.file.clone()).or_default();
    if entry.faults.is_empty() {
        entry.faults = vec![fault];
        entry.faults_in_all = 1;
        entry.failures = 1;
    }
    entry.entangled = true;
}

fn kept(entry: &FileEntry, name: &str, problem: &str) -> FileEntry {
    let fault = Fault {
        file: name.to_owned(),
        line: None,
        problem: format!("{problem}; what was indexed of it before is still served"),
        skipped: true,
    };
    FileEntry {
        faults: vec![fault],
        faults_in_all: 1,
        // Read again as soon as it can be, whether it has changed or not.
        entangled: true,
        ..entry.clone()
    }
}

/// One file being read.
struct Intake<'a, 'r> {
    run: &'a Run<'r>,
    file: Arc<str>,
    claims: &'a mut Claims,
    state: &'a mut IndexProgress,
    entry: FileEntry,
    /// Files that hold what this one has taken over.
    displaced: HashSet<Arc<str>>,
}

impl Intake<'_, '_> {
    /// Whether the document's text may be held, by the source's policy for texts that occur twice.
    fn may_hold(&mut self, holder: &Holder, hash: &str) -> bool {
        let policy = self.run.indexing.reading.duplicates;
        let Some(rival) = self.claims.rival(holder, hash) else {
            return true;
        };
        if policy == Duplicates::Update && holder.is_after(&rival) {
            self.claims.release(&rival);
            self.displaced.insert(rival.file);
            return true;
        }
        let (key, file) = (&rival.key, &rival.file);
        let place = if key.starts_with(&**file) || *file == self.file {
            format!("`{key}`")
        } else {
            format!("`{key}` in {file}")
        };
        let done = match policy {
            Duplicates::Update => ", which comes later and replaces it",
            Duplicates::Error => ", which is an error here (`duplicates = \"error\"`)",
            Duplicates::Skip | Duplicates::Keep => "",
        };
        self.entry.entangled = true;
        if policy == Duplicates::Error {
            self.fault(holder.line, true, format!("has the same text as {place}{done}"));
        } else {
            self.entry.duplicates += 1;
            self.note(holder.line, true, format!("has the same text as {place}{done}"));
        }
        false
    }

    fn note(&mut self, line: Option<u64>, skipped: bool, problem: String) {
        self.entry.faults_in_all += 1;
        if self.entry.faults.len() < MAX_FAULTS_PER_FILE {
            self.entry.faults.push(Fault {
                file: self.file.to_string(),
                line,
                problem,
                skipped,
            });
        }
    }

    /// What tools tell their hosts to choose from.
    fn count_values(&mut self, record: &Record) {
        for name in FACETS {
            if let Some(value) = record.fields.get(name).and_then(|value| value.as_str()) {
                let values = self.entry.values.entry(name.to_owned()).or_default();
                *values.entry(value.to_owned()).or_default() += 1;
            }
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
            match self.entry.fields.get_mut(name) {
                Some(count) => *count += 1,
                None => drop(self.entry.fields.insert(name.clone(), 1)),
            }
        }
        if let Dialect::Speeches(_) = self.run.indexing.reading.dialect {
            self.count_values(record);
        }
        self.state.documents += 1;
        if self.entry.documents.is_multiple_of(DOCUMENTS_BETWEEN_REPORTS) {
            (self.run.progress)(*self.state);
        }
    }
}

impl Sink for Intake<'_, '_> {
    type Error = IndexError;

    fn record(&mut self, line: Option<u64>, mut record: Record, warnings: Vec<String>) -> Result<(), IndexError> {
        let indexing = self.run.indexing;
        if self.run.cancel.is_cancelled() {
            return Err(IndexError::Cancelled(indexing.source.clone()));
        }
        if let Err(problem) = DocumentId::new(&indexing.source, &record.key) {
            self.fault(line, true, format!("its id cannot be used: {problem}"));
            return Ok(());
        }
        let holder = if indexing.reading.duplicates == Duplicates::Keep {
            None
        } else {
            let hash = with_content_hash(&mut record);
            let holder = Holder::of(&record, &hash, &self.file, line);
            if !self.may_hold(&holder, &hash) {
                return Ok(());
            }
            Some(holder)
        };
        if !self.claims.take_id(&record.key, &self.file) {
            self.entry.entangled = true;
            self.fault(
                line,
                true,
                format!("the id `{}` is already another document's", record.key),
            );
            return Ok(());
        }
        if let Some(holder) = holder {
            self.claims.hold(holder);
        }
        self.entry.passages += self.run.add(&self.file, &record)?;
        self.count(&record);
        for warning in warnings {
            self.fault(line, false, warning);
        }
        Ok(())
    }

    fn fault(&mut self, line: Option<u64>, skipped: bool, problem: String) {
        self.entry.failures += u64::from(skipped);
        self.note(line, skipped, problem);
    }
}
