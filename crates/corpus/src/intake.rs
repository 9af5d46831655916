//! What a run takes in: each changed file's records become index entries.

use std::collections::HashSet;

use tantivy::schema::{Field, Term, Value};
use tantivy::{DocSet, Index, IndexWriter, Searcher, TERMINATED, TantivyDocument};
use tokio_util::sync::CancellationToken;
use tribune_core::DocumentId;

use crate::entry;
use crate::indexer::{IndexError, IndexProgress, IndexReport, Indexing};
use crate::manifest::{FileEntry, Manifest, Signature};
use crate::read::{self, Fault, Record, Sink};
use crate::schema::{Fields, document_hash};
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
        let mut new = Manifest::default();
        let mut changed = Vec::new();
        for fault in found.unreachable {
            keep_unreachable(old, &mut new, fault);
        }
        for fault in found.passed_over {
            // Looked at again in every run: it may become a file.
            let entry = FileEntry {
                faults: vec![fault.clone()],
                faults_in_all: 1,
                entangled: true,
                ..FileEntry::default()
            };
            new.files.insert(fault.file, entry);
        }
        for file in found.files {
            let signature = Signature::of(&file.metadata);
            match old.files.get(&file.relative) {
                Some(entry) if entry.signature == signature && !entry.entangled => {
                    report.files_unchanged += 1;
                    new.files.insert(file.relative, entry.clone());
                }
                Some(entry) if let Err(error) = std::fs::File::open(&file.path) => {
                    let kept = kept(entry, &file.relative, &format!("cannot be opened: {error}"));
                    new.files.insert(file.relative, kept);
                }
                _ => changed.push((file, signature)),
            }
        }
        let read_again: HashSet<&str> = changed.iter().map(|(file, _)| file.relative.as_str()).collect();
        for (name, entry) in old.files.iter().filter(|(name, _)| !new.files.contains_key(*name)) {
            self.writer.delete_term(Term::from_field_text(self.fields.file, name));
            report.files_removed += u64::from(entry.documents > 0 && !read_again.contains(name.as_str()));
        }

        let mut ids = Taken::new(self.indexing, index, &self.fields, &new)?;
        let mut state = IndexProgress {
            files_total: changed.len() as u64,
            ..IndexProgress::default()
        };
        (self.progress)(state);
        for (file, signature) in changed {
            let entry = self.file(&file, signature, &mut ids, &mut state)?;
            report.documents_read += entry.documents;
            report.files_read += 1;
            new.files.insert(file.relative, entry);
            state.files_done += 1;
            (self.progress)(state);
        }
        Ok((new, report))
    }

    fn file(
        &self,
        file: &FoundFile,
        signature: Signature,
        ids: &mut Taken,
        state: &mut IndexProgress,
    ) -> Result<FileEntry, IndexError> {
        let mut intake = Intake {
            run: self,
            file: &file.relative,
            ids,
            state,
            entry: FileEntry {
                signature,
                ..FileEntry::default()
            },
        };
        read::read_file(
            &file.path,
            &file.relative,
            file.format,
            self.indexing.limits.max_document_bytes,
            &mut intake,
        )?;
        Ok(intake.entry)
    }

    fn add(&self, file: &str, record: &Record) -> Result<u64, IndexError> {
        let (entries, passages) = self
            .indexing
            .attempt("writing a document's fields", entry::entries(&self.fields, file, record))?;
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
    file: &'a str,
    ids: &'a mut Taken,
    state: &'a mut IndexProgress,
    entry: FileEntry,
}

impl Sink for Intake<'_, '_> {
    type Error = IndexError;

    fn record(&mut self, line: Option<u64>, record: Record) -> Result<(), IndexError> {
        let indexing = self.run.indexing;
        if self.run.cancel.is_cancelled() {
            return Err(IndexError::Cancelled(indexing.source.clone()));
        }
        if let Err(problem) = DocumentId::new(&indexing.source, &record.key) {
            self.fault(line, true, format!("its id cannot be used: {problem}"));
            return Ok(());
        }
        if !self.ids.take(&record.key) {
            self.entry.entangled = true;
            self.fault(
                line,
                true,
                format!("the id `{}` is already another document's", record.key),
            );
            return Ok(());
        }
        self.entry.passages += self.run.add(self.file, &record)?;
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
        self.state.documents += 1;
        if self.entry.documents.is_multiple_of(DOCUMENTS_BETWEEN_REPORTS) {
            (self.run.progress)(*self.state);
        }
        Ok(())
    }

    fn fault(&mut self, line: Option<u64>, skipped: bool, problem: String) {
        self.entry.faults_in_all += 1;
        if self.entry.faults.len() < MAX_FAULTS_PER_FILE {
            self.entry.faults.push(Fault {
                file: self.file.to_owned(),
                line,
                problem,
                skipped,
            });
        }
    }
}

/// The ids in use, so that two documents never share one.
struct Taken {
    /// Of the files read in this run.
    now: HashSet<u64>,
    /// Of the files that are not read again: looked up in the last commit.
    before: Option<Before>,
}

struct Before {
    searcher: Searcher,
    record: Field,
    file: Field,
    unchanged: HashSet<String>,
}

impl Taken {
    fn new(indexing: &Indexing, index: &Index, fields: &Fields, unchanged: &Manifest) -> Result<Self, IndexError> {
        let before = if unchanged.files.is_empty() {
            None
        } else {
            let reader = indexing.attempt("reading the index", index.reader())?;
            Some(Before {
                searcher: reader.searcher(),
                record: fields.record,
                file: fields.file,
                unchanged: unchanged.files.keys().cloned().collect(),
            })
        };
        Ok(Self {
            now: HashSet::new(),
            before,
        })
    }

    /// Takes `key` for a document; `false` if it is another's.
    fn take(&mut self, key: &str) -> bool {
        let held = self
            .before
            .as_ref()
            .is_some_and(|before| before.holds(key).unwrap_or(false));
        !held && self.now.insert(document_hash(key))
    }
}

impl Before {
    fn holds(&self, key: &str) -> tantivy::Result<bool> {
        let term = Term::from_field_text(self.record, key);
        for segment in self.searcher.segment_readers() {
            let Some(mut postings) = segment
                .inverted_index(self.record)?
                .read_postings(&term, tantivy::schema::IndexRecordOption::Basic)?
            else {
                continue;
            };
            while postings.doc() != TERMINATED {
                let doc = postings.doc();
                if !segment.is_deleted(doc) {
                    let entry: TantivyDocument = segment.get_store_reader(1)?.get(doc)?;
                    let file = entry.get_first(self.file);
                    if file
                        .and_then(|f| f.as_str())
                        .is_some_and(|f| self.unchanged.contains(f))
                    {
                        return Ok(true);
                    }
                }
                postings.advance();
            }
        }
        Ok(false)
    }
}
